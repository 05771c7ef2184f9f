"""Order the instructions so that an update of a loop variable follows the last use of the old value.

    %dr2 = mul %dr1, %x                 dr_1 = dr * x               dx += dr * r
    %t = mul %dr1, %r                   dx += dr * r                dr *= x
    %dx2 = add %dx1, %t                 dr = dr_1

Without this, as in the middle column, `%dr1` and `%dr2` are live together and cannot share a variable. Only the order
of instructions without effects changes, and none leaves its block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zygote_py.emit.inlining import is_movable
from zygote_py.ir import Block, CameFrom, Function, Instr, InternalError, Jump, Phi, Terminator, Use, Value, ops, uses

Order = Mapping[Block, Sequence[Instr]]
Uses = Mapping[Value, Sequence[Use]]


def schedule(function: Function) -> Order:
    """Return the instructions of every block, in the order in which they are written."""
    used = uses(function)
    return {block: _scheduled(block, used) for block in function.blocks}


def _scheduled(block: Block, used: Uses) -> list[Instr]:
    instrs = list(block.instrs)
    if any(isinstance(instr, CameFrom) for instr in instrs):
        raise InternalError("emit: the function still contains `came_from`")
    if not isinstance(block.terminator, Jump) or not block.terminator.target.phis:
        return instrs
    position: dict[Value, int] = {instr: index for index, instr in enumerate(instrs)}
    updates = {phi: phi.incoming[block] for phi in block.terminator.target.phis}
    moved: dict[int, list[Instr]] = {}  # by the index after which they are inserted
    for phi, update in updates.items():
        if not isinstance(update, Instr) or update not in position or len(used[update]) != 1:
            continue
        if ops.of(update.op).may_raise or not is_movable(update):
            continue
        start = position[update]
        users = (use.user for use in used.get(phi, ()) if use.user is not update)
        end = max((_written(user, used, position) for user in users), default=-1)
        if end <= start or _overtakes(update, start, end, updates, position):
            continue
        moved.setdefault(end, []).append(update)
    if not moved:
        return instrs
    late = {instr for group in moved.values() for instr in group}
    order: list[Instr] = []
    for index, instr in enumerate(instrs):
        if instr not in late:
            order.append(instr)
        order += sorted(moved.get(index, ()), key=position.__getitem__)
    return order


def _written(user: Value | Terminator, used: Uses, position: Mapping[Value, int]) -> int:
    """Return the position at which `user` is computed if it moves into the expressions that contain it."""
    index = -1
    while isinstance(user, Instr) and user in position:
        index = position[user]
        if user.hint or len(used.get(user, ())) != 1:
            break
        user = used[user][0].user
    return index


def _overtakes(
    update: Instr, start: int, end: int, updates: Mapping[Phi, object], position: Mapping[Value, int]
) -> bool:
    """Return whether `update` reads another variable that is updated between the two positions."""
    return any(
        isinstance(arg, Phi)
        and isinstance(other := updates.get(arg), Instr)
        and other is not update
        and start < position.get(other, -1) <= end
        for arg in update.args
    )
