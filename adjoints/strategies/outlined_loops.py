"""Loops as routines: the call that replaces the loop, and the copies that make the routine self-contained.

    while i < n:                            x, i = f_loop(x, 0, n)
        x, i = g(x, i), i + 1       ->

The routine returns new arrays, so that none of its results is one of its arguments, and each has its own shadow. This
is unobservable if neither they nor the arrays that they would have aliased are written to afterwards (`is_harmless`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.reverse.calls import name_apart
from zygote_py.ir import (
    Block,
    Const,
    Function,
    Instr,
    Jump,
    Loop,
    Memory,
    Operand,
    Routine,
    Value,
    bases,
    is_fresh,
    is_view,
    ops,
    replace_loop,
    routines_of,
)


def is_harmless(loop: Loop, writer: Instr, target: Operand) -> bool:
    """Return whether a write to memory that a loop may carry is to an array created since.

    The array was created in the same iteration, or outside and is then not visible after the loop.
    """
    if writer in loop.values:
        found = bases(target, loop.header.phis)
        return all(isinstance(base, Instr) and is_fresh(base) and base in loop.values for base in found)
    while isinstance(target, Instr) and is_view(target):
        target = target.args[0]
    # A phi may represent an array created before the loop, though a different one is created after it.
    made = target if isinstance(target, Instr) and is_fresh(target) else None
    return not _comes_behind(loop, writer, made)


def _comes_behind(loop: Loop, writer: Instr, made: Instr | None) -> bool:
    """Return whether control may reach an instruction from the end of a loop without passing `made` first."""
    pending, seen = [loop.exits[0][1]], set()
    while pending:
        block = pending.pop()
        if block in seen:
            continue
        seen.add(block)
        for instr in block.instrs:
            if instr is writer:
                return True
            if instr is made:
                break
        else:
            pending += block.successors
    return False


def written_after_return(functions: Sequence[Function], looping: Collection[Routine]) -> Instr | None:
    """Return a call that may return one of its arguments, which is written to afterwards; None if there is none.

    Only calls that reach one of the `looping` routines count: these return copies once their loops are routines.
    """
    for function in functions:
        memory = Memory(function)
        for call, routine in function.calls():
            if routine.shares:
                reached = (routine, *routines_of(routine.function))
                if any(each in looping for each in reached) and memory.may_be_written_after(call, (call,)):
                    return call
    return None


def return_copies(function: Function) -> None:
    """Make an outlined function return new arrays."""
    block, end = function.exit()
    (result,) = end.args
    whole = result if isinstance(result, Instr) and result.op is ops.pack else None
    items = list(whole.args) if whole is not None else [result]
    for number, item in enumerate(items):
        if isinstance(item.type, types.Array):
            items[number] = copy = Instr(np.copy, (item,), item.type, "", function.loc)
            block.instrs.append(copy)
    if whole is not None:
        block.instrs.remove(whole)
        block.instrs.append(whole)
        whole.args = tuple(items)
    else:
        end.args = (items[0],)
    name_apart(function.params)


def call_in_place(function: Function, loop: Loop, routine: Routine, rest: Sequence[Operand]) -> Instr:
    """Replace a loop by the call of the routine that runs it; the `rest` are the inputs."""
    header = loop.header
    block = Block(header.loc)
    (before,) = loop.entering
    args = [*(phi.incoming[before] for phi in header.phis), *rest]
    call, items = call_outlined(block, routine, args, loop)
    copies = copied_instrs(header, dict(zip(header.phis, items, strict=True)))
    block.instrs += copies.values()
    (_, behind) = loop.exits[0]
    block.terminator = Jump(behind)
    function.blocks.append(block)
    stand: dict[Value, Operand] = dict(zip(header.phis, items, strict=True))
    replace_loop(function, loop, block, {**stand, **copies})
    return call


def call_outlined(block: Block, routine: Routine, args: Sequence[Operand], loop: Loop) -> tuple[Instr, list[Operand]]:
    """Append the call of a routine that returns the values a loop carries; return the call and its results."""
    phis = loop.header.phis
    kinds = [phi.type for phi in phis]
    kind = kinds[0] if len(kinds) == 1 else types.Tuple(kinds)
    block.instrs.append(call := Instr(routine, tuple(args), kind, "", block.loc))
    if len(kinds) == 1:
        return call, [call]
    items: list[Operand] = []
    for number, phi in enumerate(phis):
        item = Instr(ops.getitem, (call, Const(number, types.int64)), phi.type, phi.hint, phi.loc)
        block.instrs.append(item)
        items.append(item)
    return call, items


def copied_instrs(block: Block, given: dict[Value, Operand]) -> dict[Value, Instr]:
    """Return copies of the instructions of a block with some operands replaced."""
    found: dict[Value, Instr] = {}
    for instr in block.instrs:
        args = tuple(found.get(arg, given.get(arg, arg)) if isinstance(arg, Value) else arg for arg in instr.args)
        found[instr] = instr.copy(args, with_origin=False)
    return found
