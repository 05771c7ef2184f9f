"""Join stacks that are filled and emptied together into one stack of tuples: for Numba each list is much code.

    %s = stack : list(f64[:])                   %s = stack : list((f64[:], f64[:]))
    %t = stack : list(f64[:])
    ...                                         ...
    push %s, %x                         ->      %p = pack %x, %y
    push %t, %y                                 push %s, %p
    ...                                         ...
    %a = pop %s                                 %q = pop %s
    %b = pop %t                                 %a = getitem %q, 0
                                                %b = getitem %q, 1

It undoes `split_stacks` once nothing is differentiated anymore.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.building.builder import LARGEST, Builder
from zygote_py.ir.core import Block, Const, Function, Instr, Type, Value
from zygote_py.ir.types import is_scalar
from zygote_py.ir.walks import Use, definitions, grouped, uses

_list_of: Callable[[Type], Type] = types.List


def join_stacks(function: Function) -> None:
    """Join the stacks of numbers and arrays that are made in one block and change in the same blocks, once in each."""
    stacks = [instr for instr in function.instrs() if instr.op is ops.stack and _is_simple(instr.type)]
    if len(stacks) < 2:
        return
    found, home = uses(function), definitions(function)
    keys = ((_changes(stack, found.get(stack, ()), home), stack) for stack in stacks)
    for key, together in grouped((key, stack) for key, stack in keys if key is not None).items():
        for start in range(0, len(together), LARGEST):
            chosen = together[start : start + LARGEST]
            if len(chosen) > 1:
                _join(chosen, key)


def _is_simple(kind: Type) -> bool:
    return isinstance(kind, types.List) and (is_scalar(kind.dtype) or isinstance(kind.dtype, types.Array))


_Key = tuple[Block, frozenset[tuple[Block, ops.Op]]]


def _changes(stack: Instr, found: Sequence[Use], home: dict[Value, Block]) -> _Key | None:
    """Return the block in which a stack is made, and those in which it changes, how; None if more is done with it."""
    changes: list[tuple[Block, ops.Op]] = []
    for use in found:
        user = use.user
        if not isinstance(user, Instr) or user.op not in (ops.push, ops.pop) or stack in user.args[1:]:
            return None
        changes.append((home[user], user.op))
    is_once = len({block for block, _ in changes}) == len(changes)
    return (home[stack], frozenset(changes)) if changes and is_once else None


def _join(stacks: Sequence[Instr], key: _Key) -> None:
    """Let the first of these stacks hold tuples of what all of them hold."""
    made, changes = key
    places = {stack: number for number, stack in enumerate(stacks)}
    kind = types.Tuple(tuple(stack.type.dtype for stack in stacks))  # type: ignore[attr-defined]
    joined = Instr(ops.stack, (), _list_of(kind), "records", stacks[0].loc)
    made.instrs = [joined if instr is stacks[0] else instr for instr in made.instrs if instr not in stacks[1:]]
    for block, _ in changes:
        _change(block, joined, places)


def _change(block: Block, joined: Instr, places: dict[Instr, int]) -> None:
    """Let a block push or pop a tuple: at the last push, or at the first pop."""
    b = Builder(Block(block.loc))
    pushed: dict[int, Instr] = {}
    popped: Instr | None = None
    for instr in block.instrs:
        number = places.get(instr.args[0]) if instr.op in (ops.push, ops.pop) else None  # type: ignore[call-overload]
        if number is None:
            b.add(instr)
        elif instr.op is ops.push:
            pushed[number] = instr
            if len(pushed) == len(places):
                whole = b.pack([pushed[n].args[1] for n in range(len(places))])
                b.call(ops.push, joined, whole, type=types.none)
        else:
            if popped is None:
                popped = b.call(ops.pop, joined, type=joined.type.dtype, hint="entry")  # type: ignore[attr-defined]
            instr.op, instr.args = ops.getitem, (popped, Const(number, types.int64))
            b.add(instr)
    block.instrs = b.block.instrs
