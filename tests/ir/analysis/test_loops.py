import operator

import pytest

from tests.ir.analysis.test_dominators import graph
from zygote_py.ir import Const, InternalError, counted, invariant, loop_nest, parse, returning_blocks


def numbers(function, blocks):
    return [function.blocks.index(block) for block in blocks]


def test_a_nest():
    #  1 is the header of {1, 2, 3, 4}, 2 of {2, 3}; 3 raises too, 4 leaves
    function = graph((1,), (2, 5), (3, 4), (2, 6), (1, 5), (), (-1,))
    b = function.blocks
    nest = loop_nest(function)
    outer, inner = nest.loops
    assert outer.header is b[1]
    assert inner.header is b[2]
    assert inner.parent is outer
    assert outer.children == [inner]
    assert (outer.depth, inner.depth) == (1, 2)
    assert outer.blocks == set(b[1:5])
    assert numbers(function, outer.order) == [1, 2, 3, 4]
    assert inner.blocks == {b[2], b[3]}
    assert (outer.entering, outer.latches) == ([b[0]], [b[4]])
    assert outer.exits == [(b[1], b[5]), (b[4], b[5])]
    assert outer.raising_exits == [(b[3], b[6])]
    assert inner.exits == [(b[2], b[4])]
    assert inner.raising_exits == [(b[3], b[6])]
    assert nest.innermost(b[3]) is inner
    assert nest.innermost(b[4]) is outer
    assert nest.innermost(b[5]) is None
    assert [nest.depth(block) for block in b] == [0, 1, 2, 2, 1, 0, 0]
    assert returning_blocks(function) == set(b[:6])


def test_loops_of_one_header_are_one_loop():
    function = graph((1,), (2, 4), (1, 3), (1,), ())
    (loop,) = loop_nest(function).loops
    assert numbers(function, loop.latches) == [2, 3]


def test_loops_side_by_side_and_deep_inside():
    function = graph((1,), (1, 2), (3,), (4,), (4, 5), (3, 6), (2, 7), ())
    nest = loop_nest(function)
    assert [(numbers(function, [loop.header])[0], loop.depth) for loop in nest.loops] == [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 3),
    ]


def test_a_loop_that_only_ends_by_raising_has_no_proper_exit():
    function = graph((1, 3), (2, 4), (1,), (), (-1,))
    (loop,) = loop_nest(function).loops
    assert loop.exits == []
    assert len(loop.raising_exits) == 1


def test_irreducible_graphs_are_refused():
    with pytest.raises(InternalError, match="irreducible"):
        loop_nest(graph((1, 2), (2,), (1, 3), ()))


def counting(start="0", step="add %i, 1", test="lt %i, %n", branch="b2, b3"):
    (function,) = parse(f"""\
function f(%n: i64, %m: i64) -> i64
b0:
  jump b1
b1:
  %i: i64 = phi b0: {start}, b2: %i2
  %c = {test} : bool
  branch %c, {branch}
b2:
  %i2 = {step} : i64
  jump b1
b3:
  return %i
""")
    return function


@pytest.mark.parametrize(
    ("how", "step", "comparison"),
    [
        ({}, 1, operator.lt),
        ({"step": "add 2, %i", "test": "le %i, %n"}, 2, operator.le),
        ({"test": "gt %n, %i"}, 1, operator.lt),
        ({"test": "ge %i, %n", "branch": "b3, b2"}, 1, operator.lt),
        ({"test": "lt %n, %i", "branch": "b3, b2"}, 1, operator.le),
        ({"start": "%m", "step": "sub %i, 3", "test": "gt %i, %n"}, -3, operator.gt),
        ({"start": "%m", "step": "add %i, -1", "test": "le %n, %i"}, -1, operator.ge),
    ],
)
def test_loops_that_count(how, step, comparison):
    function = counting(**how)
    (loop,) = loop_nest(function).loops
    found = counted(loop, function)
    assert found is not None
    assert found.phi is function.blocks[1].phis[0]
    assert (found.step, found.comparison.op) == (step, comparison)
    assert found.bound is function.params[0]
    assert found.start == (function.params[1] if how.get("start") else Const(0, found.phi.type))
    assert found.increment is function.blocks[2].instrs[0]
    assert found.condition is function.blocks[1].instrs[0]


@pytest.mark.parametrize(
    "how",
    [
        {"test": "gt %i, %n"},  # wrong direction
        {"step": "sub %i, 1"},
        {"step": "add %i, 0"},
        {"step": "mul %i, 2"},
        {"step": "add %i, %m"},
        {"test": "ne %i, %n"},
        {"test": "lt %n, %m"},  # says nothing of %i
        {"branch": "b3, b2"},
    ],
)
def test_loops_that_do_not_count(how):
    function = counting(**how)
    (loop,) = loop_nest(function).loops
    assert counted(loop, function) is None


def test_what_is_invariant():
    function = counting()
    (loop,) = loop_nest(function).loops
    assert invariant(function.params[0], loop)
    assert invariant(Const(1, function.params[0].type), loop)
    assert not invariant(function.blocks[1].phis[0], loop)
    assert not invariant(function.blocks[2].instrs[0], loop)
