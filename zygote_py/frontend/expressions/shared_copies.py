"""Copies in place of objects that Python shares: they are allowed where the difference cannot be observed.

    y = stop_gradient(x)        a copy of `x`, through which no derivative flows
    x[0] = 1.0                  refused, if `y` is read later: in Python it would be another `y`

In Python `stop_gradient(x)` and `hook(x, fn)` are `x` itself, and a function that is ignored may return its argument,
or a part of it. In the IR such an array must be memory of its own, for its derivative is another one. Nothing may be
written to it then, nor to the original while the copy is still read. The result of
`np.ascontiguousarray` may be the original as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numba import types

from zygote_py.adjoints import Custom, refuse
from zygote_py.adjoints.analysis import is_array
from zygote_py.adjoints.routines import refuse_if_shared
from zygote_py.ir import (
    Block,
    Builder,
    Foreign,
    Function,
    Instr,
    Loc,
    Memory,
    Operand,
    Routine,
    find_effects,
    has_memory,
    item_reads,
    ops,
)


def separate(functions: Sequence[Function], routines: Sequence[Routine]) -> None:
    """Make ignored functions return memory of their own. Raise DifferentiationError where a copy would not do."""
    ignored = (routine for routine in routines if not routine.is_custom and routine.passes == frozenset())
    original = {routine: routine.shares for routine in ignored if routine.shares}
    for routine in original:
        _copy_results(routine)
    if original:
        find_effects(routines)
    for function in functions:
        if not (copies := list(_copies(function, original))):
            continue
        memory = Memory(function)
        for instr, source, result, name in copies:
            _check(function, memory, instr, source, result, name)


def check_copied(function: Function, copied: Sequence[tuple[Operand, Loc]], *, is_routine: bool) -> None:
    """Raise DifferentiationError where a copy differs observably from the array, returned itself if contiguous."""
    if not copied:
        return
    memory = Memory(function)
    kept = {value for block in function.blocks for value in block.instrs}
    for copy, loc in copied:
        if not isinstance(copy, Instr) or copy not in kept:
            continue
        (array,) = copy.args
        if memory.is_written(copy) or (
            memory.may_be_written_after(copy, (array,)) and _is_read_after_write(function, memory, copy, array, copy)
        ):
            told = "one of the two is written to"
        elif is_routine and _leave_together(function, memory, array, copy):
            told = "the caller has both"
        else:
            continue
        raise refuse(
            f"whether this copies the array is only known at run time, and {told}",
            loc,
            "make a copy: `x.copy()`",
            "ascontiguousarray",
        )


def _leave_together(function: Function, memory: Memory, array: Operand, copy: Operand) -> bool:
    """Return whether a copy is returned, and the array is an argument, a part of one, or returned, too."""
    returned = {memory.root(value) for _, end in function.returns() for value in end.args if has_memory(value.type)}
    root = memory.root(array)
    return memory.root(copy) in returned and root is not None and (root in returned or bool(memory.seen_outside(root)))


def _copy_results(routine: Routine) -> None:
    function = routine.function
    memory = Memory(function)
    foreign = any(isinstance(instr.op, Foreign) for instr in function.instrs())
    shared = [param for number, param in enumerate(function.params) if number in routine.shares]
    for block, end in function.returns():
        (value,) = end.args
        whole = value if isinstance(value, Instr) and value.op is ops.pack else None
        items = list(end.args if whole is None else whole.args)
        b = Builder(block, function.loc)
        for number, item in enumerate(items):
            if not isinstance(item.type, types.Array) or not any(memory.may_share(item, param) for param in shared):
                continue
            for param in shared if foreign else ():
                if isinstance(param.type, types.Array):
                    message = f"`{routine.__name__}` is ignored, and gives an array that shares memory with an argument"
                    refuse_if_shared(b, param, item, message + ": let it return a copy")
            items[number] = b.copy(item, "y")
        end.args = (items[0] if whole is None else b.pack(items),)


def _copies(function: Function, original: dict[Routine, frozenset[int]]) -> Iterator[tuple[Instr, Operand, Instr, str]]:
    """Yield each instruction that makes a copy, the original, the copy, and the name of the user's function."""
    items = item_reads(function)
    for instr in function.instrs():
        match instr:
            case Instr(op=ops.stop, args=(source,)) if is_array(instr.type):
                yield instr, source, instr, "stop_gradient"
            case Instr(op=Routine(derivation=Custom(rule=None))) if is_array(instr.type):
                yield instr, instr.args[0], instr, "hook"
            case Instr(op=Routine() as routine) if routine in original:
                for number in sorted(original[routine]):
                    for result in [instr] if isinstance(instr.type, types.Array) else items.get(instr, ()):
                        if is_array(result.type):
                            yield instr, instr.args[number], result, routine.__name__


def _check(function: Function, memory: Memory, instr: Instr, source: Operand, result: Instr, name: str) -> None:
    if memory.may_be_written_after(result, (result,)):
        raise refuse(
            f"an array that `{name}` has given is written to, and may be the one that it was given",
            instr.loc,
            f"write to a copy: `{name}(...).copy()`",
            name,
        )
    if memory.may_be_written_after(instr, (source,)) and _is_read_after_write(function, memory, instr, source, result):
        raise refuse(
            f"an array that was given to `{name}` is written to while what it gave is still read",
            instr.loc,
            f"give it a copy: `{name}(x.copy())`",
            name,
        )


def _is_read_after_write(function: Function, memory: Memory, instr: Instr, source: Operand, result: Instr) -> bool:
    """Return whether control may flow from `instr` to a write to `source` and from there to a read of `result`."""
    writers = set(memory.writers(source))
    root = memory.root(result)
    start = next(block for block in function.blocks if instr in block.instrs)
    pending: list[tuple[Block, int, bool]] = [(start, start.instrs.index(instr) + 1, False)]
    seen: set[tuple[Block, bool]] = set()
    while pending:
        block, place, written = pending.pop()
        for value in block.instrs[place:]:
            if value is instr:
                break  # created again
            if written and any(has_memory(arg.type) and memory.root(arg) is root for arg in value.args):
                return True
            written = written or value in writers
        else:
            if written and any(memory.root(arg) is root for arg in block.terminator.args if has_memory(arg.type)):
                return True
            for successor in block.successors:
                if written and any(
                    has_memory(phi.type) and memory.root(phi) is root and block in phi.incoming
                    for phi in successor.phis
                ):
                    return True
                if (successor, written) not in seen:
                    seen.add((successor, written))
                    pending.append((successor, 0, written))
    return False
