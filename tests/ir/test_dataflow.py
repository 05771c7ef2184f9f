from test_dominators import graph

from zygote_py.ir.dataflow import Meet, gen_kill, liveness, solve
from zygote_py.ir.parse import parse


def test_union_and_intersection_forward():
    function = graph((1, 2), (3,), (3,), ())
    b = function.blocks
    transfer = gen_kill({b[0]: 0b001, b[1]: 0b010, b[2]: 0b100}, {b[2]: 0b001})
    some = solve(function, transfer, start=0, top=0)
    assert (some.before[b[3]], some.after[b[2]]) == (0b111, 0b100)
    every = solve(function, transfer, start=0, top=0b111, meet=Meet.INTERSECTION)
    assert every.before[b[3]] == 0
    assert every.before[b[1]] == 0b001


def test_intersection_around_a_loop():
    function = graph((1,), (2, 3), (1,), ())
    b = function.blocks
    found = solve(function, gen_kill({b[0]: 1, b[2]: 2}, {}), start=0, top=3, meet=Meet.INTERSECTION)
    assert [found.before[block] for block in b] == [0, 1, 1, 1]


def test_frozen_sets_backward_with_an_edge_function():
    function = graph((1, 2), (3,), (3,), ())
    b = function.blocks
    found = solve(
        function,
        lambda block, facts: facts | {b.index(block)},
        start=frozenset({"end"}),
        top=frozenset(),
        forward=False,
        edge=lambda pred, successor, facts: facts | {(b.index(pred), b.index(successor))},
    )
    assert found.after[b[1]] == {"end", 3, (1, 3)}
    assert found.before[b[0]] == {"end", 0, 1, 2, 3, (0, 1), (0, 2), (1, 3), (2, 3)}


def test_liveness():
    (function,) = parse("""\
function pow(%x: f64, %n: i64) -> f64
b0:
  %r0 = const 1.0 : f64
  jump b1
b1:
  %r1: f64 = phi b0: %r0, b2: %r2
  %n1: i64 = phi b0: %n, b2: %n2
  %c = gt %n1, 0 : bool
  branch %c, b2, b3
b2:
  %n2 = sub %n1, 1 : i64
  %r2 = mul %r1, %x : f64
  jump b1
b3:
  return %r1
""")
    b0, b1, b2, b3 = function.blocks
    x, n = function.params
    (r0,), (r1, n1), (n2, r2) = b0.instrs, b1.phis, b2.instrs
    live = liveness(function)
    assert set(live.before(b0)) == {x, n}
    assert set(live.after(b0)) == {x, n, r0}  # operands of phis are used at the end of the predecessor
    assert set(live.before(b1)) == {x}  # and phis are defined on the edge
    assert set(live.after(b1)) == {x, r1, n1}
    assert set(live.before(b2)) == {x, r1, n1}
    assert set(live.after(b2)) == {x, r2, n2}
    assert set(live.before(b3)) == {r1}
    assert live.after(b3) == []
    assert live.is_live_after(r2, b2)
    assert not live.is_live_after(r2, b1)
