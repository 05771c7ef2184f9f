import operator
from typing import NamedTuple

import numpy as np
import pytest
from numba import types

from zygote_py.ir import (
    LARGEST,
    NONE,
    Block,
    Builder,
    Const,
    Function,
    InternalError,
    Jump,
    Loc,
    Param,
    Return,
    at_exit,
    inserting,
    ops,
    packed_type,
    result_type,
)

F8, I8 = types.float64, types.int64
LOC = Loc("f.py", 3)


def params(*kinds):
    return [Param(kind, f"x{number}") for number, kind in enumerate(kinds)]


def test_instructions_get_the_location_and_the_origin_of_the_builder():
    x, y = params(F8, F8)
    b = Builder(Block(), LOC, origin=y)
    product = b.call(operator.mul, x, y, type=F8, hint="p")
    assert b.block.instrs == [product]
    assert (product.op, product.args, product.hint, product.loc, product.origin) == (
        operator.mul,
        (x, y),
        "p",
        LOC,
        y,
    )
    b.loc = None
    assert b.call(operator.neg, x, type=F8).loc is None
    negated = b.like(product, operator.neg, product)
    assert (negated.type, negated.hint, negated.loc, negated.origin) == (F8, "p", LOC, y)


@pytest.mark.parametrize("count", [1, 2, LARGEST, LARGEST + 1, 40, LARGEST**2 + 5])
def test_what_is_packed_comes_back_in_order(count):
    items = params(*[(F8, I8)[n % 2] for n in range(count)])
    b = Builder(Block())
    whole = b.pack_all(items)
    assert whole.type == packed_type([item.type for item in items])
    assert all(len(instr.args) <= LARGEST for instr in b.block.instrs)
    taken = Builder(Block())
    found = taken.unpack_all(whole, count)
    assert [each.type for each in found] == [item.type for item in items]
    read = {}
    for instr in taken.block.instrs:
        of, number = instr.args
        read[instr] = read.get(of, of).args[number.value]
    assert [read[each] for each in found] == items


def test_nothing_is_returned_as_none():
    b = Builder(Block())
    b.return_packed([])
    assert b.block.terminator.args == (NONE,)
    assert packed_type([]) == result_type([]) == types.none
    assert b.unpack_all(NONE, 0) == []
    assert b.call_all(ops.record, [], []) == []


def test_a_call_gives_its_results_one_by_one():
    (x,) = params(F8)
    b = Builder(Block())
    (one,) = b.call_all(operator.neg, [x], [F8])
    assert (one.op, one.type) == (operator.neg, F8)
    two = b.call_all(divmod, [x, x], [F8, F8])
    assert [(each.op, each.args[1].value, each.type) for each in two] == [(ops.getitem, 0, F8), (ops.getitem, 1, F8)]
    (packed,) = b.call_packed(operator.neg, [x], [F8])
    assert packed.args[0].type == types.Tuple((F8,))


def test_items_of_what_was_packed_are_known():
    x, t = params(F8, types.Tuple((F8, I8)))
    b = Builder(Block())
    assert b.items(b.pack([x, t])) == (x, t)
    first, second = b.items(t)
    assert [each.type for each in (first, second)] == [F8, I8]
    assert len(b.block.instrs) == 3


def test_a_pack_is_like_another():
    class Point(NamedTuple):
        x: float
        y: float

    (x,) = params(F8)
    kind = types.NamedUniTuple(I8, 2, Point)
    made = Builder(Block()).pack([x, x], kind, "p")
    assert made.type == types.NamedUniTuple(F8, 2, Point)
    assert made.hint == "p"


def test_arrays():
    f, r = params(types.Array(F8, 2, "F"), types.Array(F8, 1, "A", readonly=True))
    zero, scalar = params(types.Array(F8, 0, "C"), types.Array(F8, 0, "C"))
    b = Builder(Block())
    assert b.copy(f).type == types.Array(F8, 2, "F")
    assert b.copy(r, "c").type == types.Array(F8, 1, "C")
    assert b.zeros_like(r).type == types.Array(F8, 1, "A")
    added = b.accumulate(zero, scalar)
    assert added.args[0] is zero
    assert (added.args[1].op, added.args[1].type) == (ops.getitem, F8)
    assert b.accumulate(f, f).args == (f, f)
    refused = b.refuse_if(Const(True, types.boolean), "no")
    assert refused.args[1].value == "no"


def test_inserting_keeps_what_stands_there_in_its_place():
    x, _ = params(F8, F8)
    block = Block()
    b = Builder(block)
    first, last = b.call(operator.neg, x, type=F8), b.call(operator.pos, x, type=F8)
    with inserting(block, 1, LOC) as between:
        made = [between.call(operator.neg, x, type=F8), between.call(np.sin, x, type=F8)]
        assert block.instrs == [first, last]
    assert block.instrs == [first, *made, last]
    assert made[0].loc == LOC


def test_the_only_exit():
    (x,) = params(F8)
    entry, end = Block(), Block()
    entry.terminator, end.terminator = Jump(end), Return((x,))
    function = Function("f", [x], [entry, end])
    b, leave = at_exit(function)
    assert (b.block, leave) == (end, end.terminator)
    entry.terminator = Return((x,))
    with pytest.raises(InternalError, match="2 blocks return"):
        at_exit(function)
