from tests.ir.analysis.test_dominators import graph
from zygote_py.ir import intersection, liveness, parse, reach, solve


def gen_kill(gen, kill):
    return lambda block, facts: gen.get(block, 0) | facts & ~kill.get(block, 0)


def test_reach_gives_each_once_and_follows_what_was_met_last():
    following = {1: (2, 3), 2: (4,), 3: (1, 5), 4: (5,), 5: ()}
    assert list(reach([1], following.__getitem__)) == [1, 2, 3, 5, 4]
    assert list(reach([3, 1], following.__getitem__, stop=[5])) == [3, 1, 2, 4]
    assert list(reach([], following.__getitem__)) == []


def test_reach_asks_for_what_follows_only_when_the_next_is_wanted():
    asked = []
    found = reach([0], lambda n: asked.append(n) or [n + 1])  # endless
    assert (next(found), next(found), next(found)) == (0, 1, 2)
    assert asked == [0, 1]


def test_union_and_intersection_forward():
    function = graph((1, 2), (3,), (3,), ())
    b = function.blocks
    transfer = gen_kill({b[0]: 0b001, b[1]: 0b010, b[2]: 0b100}, {b[2]: 0b001})
    some = solve(function, transfer, start=0, top=0)
    assert (some.before[b[3]], some.after[b[2]]) == (0b111, 0b100)
    every = solve(function, transfer, start=0, top=0b111, meet=intersection)
    assert every.before[b[3]] == 0
    assert every.before[b[1]] == 0b001


def test_intersection_around_a_loop():
    function = graph((1,), (2, 3), (1,), ())
    b = function.blocks
    found = solve(function, gen_kill({b[0]: 1, b[2]: 2}, {}), start=0, top=3, meet=intersection)
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


def test_liveness_of_some_values_with_other_reads():
    (function,) = parse("""\
function f(%x: f64, %n: i64) -> f64
b0:
  %c = gt %n, 0 : bool
  branch %c, b1, b2
b1:
  %y = mul %x, %x : f64
  jump b3
b2:
  %z = neg %x : f64
  jump b3
b3:
  %r: f64 = phi b1: %y, b2: %z
  return %r
""")
    b0, b1, b2, b3 = function.blocks
    x, n = function.params
    (y,), (r,) = b1.instrs, b3.phis
    some = liveness(function, number={x: 0, y: 1})
    assert some.after(b0) == [x]
    assert some.after(b1) == []  # the phi does not count
    assert liveness(function, number={x: 0, y: 1, r: 2}).after(b1) == [y]
    assert liveness(function, reads=lambda node: ()).after(b0) == []
    on_edge = liveness(function, reads=lambda node: (), on_edge={(b1, b3): [n]})
    assert set(on_edge.before(b0)) == {n}
    assert set(on_edge.after(b2)) == {b2.instrs[0]}
    assert set(liveness(function, order=[b0, b1, b3]).before(b0)) == {x, n}
    assert b2 not in liveness(function, order=[b0, b1, b3]).live_in
