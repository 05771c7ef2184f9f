"""Repeatable halves: the reverse half of a split function may run several times, and after its arguments have changed.

    def f_forward(x):                           def f_forward(x):
        ...                                         ...
        return y, x, record                         return y, x.copy(), record
                                        ->
    def f_reverse(x, record, dy):               def f_reverse(x, record, dy):
                                                    record = record[:]      # it is popped from

Values visible to the caller, arguments and results, are saved as copies; the reverse half copies the memory it writes
to first. If a saved array may alias another, or a list holds arrays that are written to, copies would break the
aliasing: such a function cannot be made repeatable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from numba import types

from zygote_py.adjoints.reverse.split import Halves
from zygote_py.ir import (
    Function,
    Instr,
    Memory,
    Operand,
    Param,
    Routine,
    Value,
    check_after,
    copied_type,
    has_memory,
    ops,
    replace_uses,
)


def make_repeatable(halves: Halves, results: Iterable[Operand], fresh: Collection[Param] = ()) -> Halves | None:
    """Return the halves with the copies required; None if that is impossible. The halves are changed in any case.

    Parameters of the forward half and `results` that cross are replaced by copies; not those in `fresh`, which are
    memory that only the function has.
    """
    forward, reverse = halves.forward, halves.reverse
    if any(_calls_with_memory(half) for half in (forward, reverse)):
        return None
    memory = Memory(forward)
    results = [result for result in results if has_memory(result.type)]
    of_caller = _given(forward, memory, fresh) | {memory.root(result) for result in results}
    written = _written_by(reverse, len(halves.crossing))
    if written is None:
        return None
    stand_ins = reverse.params[: len(halves.crossing)]
    roots = [memory.root(value) for value in halves.crossing]
    crossing: list[Value] = []
    for value, root, stand_in in zip(halves.crossing, roots, stand_ins, strict=True):
        if root is None:
            crossing.append(value)
            continue
        shared = roots.count(root) > 1
        if root in of_caller:
            whole = isinstance(value.type, types.Array) and (value in memory.seen_outside(root) or value in results)
            if not whole or shared:
                return None
            copy = Instr(np.copy, (value,), copied_type(value.type), value.hint, value.loc)
            halves.last.instrs.append(copy)
            stand_in.type = copy.type
            crossing.append(copy)
        else:
            crossing.append(value)
        if stand_in in written:
            if shared:
                return None
            _copy_first(reverse, stand_in)
    check_after("make_repeatable", forward, reverse)
    return Halves(forward, halves.last, reverse, tuple(crossing))


def _given(forward: Function, memory: Memory, fresh: Collection[Param]) -> set[Value | None]:
    """Return the roots of the memory of parameters, and of items of tuple parameters, except for those in `fresh`."""
    origin: dict[Operand, Value] = {param: param for param in forward.params}
    for instr in forward.instrs():
        if instr.op is ops.getitem and instr.args[0] in origin and isinstance(instr.args[0].type, types.BaseTuple):
            origin[instr] = origin[instr.args[0]]
    return {memory.root(value) for value, of in origin.items() if of not in fresh}


def _calls_with_memory(half: Function) -> bool:
    """Return whether residuals are stored elsewhere, in the records of routines."""
    return any(
        isinstance(instr.op, Routine) and (instr.op.may_alias_after or has_memory(instr.type))
        for block in half.blocks
        for instr in block.instrs
    )


def _written_by(reverse: Function, count: int) -> set[Param] | None:
    """Return the parameters that the reverse half writes to, or pops from; None if it writes to items of a list."""
    memory = Memory(reverse)
    found: set[Param] = set()
    for param in reverse.params[:count]:
        writers = memory.writers_to(param) if isinstance(param.type, types.Array) else memory.writers(param)
        if not writers:
            continue
        found.add(param)
        if isinstance(param.type, types.Array):
            continue
        pops = (ops.Role.POP, ops.Role.APPEND)
        popped = all(ops.of(writer.op).role in pops and writer.args[0] is param for writer in writers)
        if not isinstance(param.type, types.List) or not popped:
            return None
    return found


def _copy_first(reverse: Function, param: Param) -> None:
    """Make the reverse half work on a copy of a parameter."""
    op: ops.Op = np.copy if isinstance(param.type, types.Array) else ops.copied
    copy = Instr(op, (param,), copied_type(param.type), param.hint, param.loc)
    replace_uses(reverse, {param: copy})
    reverse.entry.instrs.insert(0, copy)
