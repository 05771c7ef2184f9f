"""Outlining of a loop, or of its body, into a separate function.

b1: %x1 = phi b0: %x, b2: %x2                          loop(%x1, %w, %stop):       the loop until %stop
    %i1 = phi b0: 0, b2: %i2                           body(%x1, %i1, %w, %stop):  one iteration
    %c = lt %i1, %stop                      ->
    branch %c, b2, b3                                  Both return (%x1, %i1), as they are then.
b2: %x2 = mul %x1, %w ...

The parameters are the values that the loop changes (the phis of its header), followed by the values it uses from
outside, the same for both. The loop is canonical: one preheader, one latch, one exit, from the header, which only
tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Loop, reach
from zygote_py.ir.building.cfg import drop_unreachable, order_blocks, rename_incoming
from zygote_py.ir.building.clone import Clone, clone
from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Operand,
    Param,
    Return,
    Value,
    retarget,
)
from zygote_py.ir.walks import replace_uses


def inputs_of(loop: Loop) -> list[Value]:
    """Return the outside values that a loop and its raising exits use, in order of first use."""
    raising = reach((target for _, target in loop.raising_exits), lambda block: block.successors, loop.blocks)
    region = dict.fromkeys((*loop.order, *raising))
    inside = {value for block in region for value in block.values}
    used: list[Operand] = []
    for block in region:
        used += [operand for phi in block.phis for pred, operand in phi.incoming.items() if pred in region]
        used += [operand for node in (*block.instrs, block.terminator) for operand in node.args]
    return list(dict.fromkeys(each for each in used if isinstance(each, Value) and each not in inside))


def outlined_loop(function: Function, loop: Loop, name: str, inputs: Sequence[Value]) -> Function:
    """Return a function that runs the loop from a given state to its end."""
    copy, params, entry = _start(function, loop, name, inputs)
    header = copy.blocks[loop.header]
    (before,) = loop.entering
    for param, phi in zip(params, header.phis, strict=False):
        phi.incoming[entry] = param
        del phi.incoming[copy.blocks[before]]
    retarget(copy.blocks[before], header, copy.function.entry)  # now unreachable
    entry.terminator = Jump(header)
    (_, behind) = loop.exits[0]
    end = Block(loop.header.loc)
    copy.function.blocks.append(end)
    rest = copy.blocks[behind]
    for phi in rest.phis:
        del phi.incoming[header]
    retarget(header, rest, end)
    return _finished(copy, end, params, header.phis)


def outlined_body(function: Function, loop: Loop, name: str, inputs: Sequence[Value]) -> Function:
    """Return a function that runs one iteration."""
    copy, params, entry = _start(function, loop, name, inputs)
    header = copy.blocks[loop.header]
    branch = loop.header.terminator
    assert isinstance(branch, Branch)
    first = copy.blocks[branch.then if branch.then in loop else branch.orelse]
    (latch,) = (copy.blocks[each] for each in loop.latches)
    following = [phi.incoming[latch] for phi in header.phis]
    entry.instrs += header.instrs
    entry.terminator = Jump(first)
    rename_incoming(first, header, entry)
    end = Block(loop.header.loc)
    copy.function.blocks.append(end)
    latch.terminator = Jump(end)
    given: dict[Value, Operand] = dict(zip(header.phis, params, strict=False))
    header.instrs, header.phis, header.terminator = [], [], Jump(header)
    replace_uses(copy.function, given)
    following = [given.get(each, each) if isinstance(each, Value) else each for each in following]
    return _finished(copy, end, params, following)


def replace_loop(function: Function, loop: Loop, block: Block, results: Mapping[Value, Operand]) -> None:
    """Route control through a block that is already in the function instead of through the loop.

    The results replace the phis of the header after the loop, and inside the block the values the header computes.
    """
    (before,) = loop.entering
    (_, behind) = loop.exits[0]
    retarget(before, loop.header, block)
    rename_incoming(behind, loop.header, block)
    replace_uses(function, results)
    loop.header.terminator = Jump(loop.header)
    drop_unreachable(function)
    check_after("replace_loop", function)


def _start(function: Function, loop: Loop, name: str, inputs: Sequence[Value]) -> tuple[Clone, list[Param], Block]:
    copy = clone(function)
    params = [Param(each.type, each.hint or "t", each.loc) for each in (*loop.header.phis, *inputs)]
    given: dict[Value, Operand] = {
        copy.values[value]: param for value, param in zip(inputs, params[len(loop.header.phis) :], strict=True)
    }
    replace_uses(copy.function, given)
    copy.function.name, copy.function.loc = name, loop.header.loc or function.loc
    copy.function.blocks.insert(0, entry := Block(loop.header.loc))
    return copy, params, entry


def _finished(copy: Clone, end: Block, params: list[Param], results: Sequence[Operand]) -> Function:
    """Return the finished function, which returns a single result bare and several as a tuple."""
    made = copy.function
    made.params = params
    result: Operand = Const(None, types.none)
    if len(results) == 1:
        result = results[0]
    elif results:
        end.instrs.append(whole := Instr(ops.pack, tuple(results), types.Tuple([each.type for each in results])))
        result = whole
    end.terminator = Return((result,))
    order_blocks(made)
    return made
