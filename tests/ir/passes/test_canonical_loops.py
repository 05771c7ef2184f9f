import random

import pytest
from hypothesis import example, given, settings, strategies as st

from tests.ir.structured import build, outcomes, statements
from tests.ir.transform import check, read, same
from zygote_py.ir import (
    CANONICAL,
    CLEAN_UP,
    Instr,
    InternalError,
    Return,
    clone,
    interpret,
    loop_nest,
    run,
    verify,
    verify_canonical,
)
from zygote_py.ir.passes import canonicalise_loops

PREFIX = (canonicalise_loops, *CLEAN_UP)


def canonical(function):
    for step in PREFIX:
        step(function)
        verify(function, step.__name__)
    return function


def test_a_loop_that_is_canonical_stays():
    source = """
        b0:
          jump b1
        b1:
          %i: i64 = phi b0: 0, b2: %i2
          %c = lt %i, %n : bool
          branch %c, b2, b3
        b2:
          %i2 = add %i, 1 : i64
          jump b1
        b3:
          return %x
        """
    check(canonicalise_loops, source, source)


def test_preheader_and_latch():
    check(
        canonicalise_loops,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %i: i64 = phi b1: 0, b2: 1, b4: %i2, b5: 7
          %c = lt %i, %n : bool
          branch %c, b4, b6
        b4:
          %i2 = add %i, 1 : i64
          branch %p, b3, b5
        b5:
          jump b3
        b6:
          return %x
        """,
        """
        b0:
          branch %p, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %i0: i64 = phi b1: 0, b2: 1
          jump b4
        b4:
          %i1: i64 = phi b3: %i0, b7: %i3
          %c = lt %i1, %n : bool
          branch %c, b5, b8
        b5:
          %i2 = add %i1, 1 : i64
          branch %p, b7, b6
        b6:
          jump b7
        b7:
          %i3: i64 = phi b5: %i2, b6: 7
          jump b4
        b8:
          return %x
        """,
    )


COUNTED = """
    b0:
      jump b1
    b1:
      %i: i64 = phi b0: 0, b3: %i2
      %s: f64 = phi b0: 0.0, b3: %s2
      %c = lt %i, %n : bool
      branch %c, b2, b4
    b2:
      %s2 = add %s, %x : f64
      %b = gt %s2, %y : bool
      branch %b, b4, b3
    b3:
      %i2 = add %i, 1 : i64
      jump b1
    b4:
      %r: f64 = phi b1: %s, b2: {}
      return %r
    """


def test_a_break_from_a_counted_loop_is_a_flag_in_its_test():
    # The phi of the header carries what the break hands on, so that nothing is left to tell apart after the loop.
    function = canonical(read(COUNTED.format("%s2")))
    same(
        function,
        """
        b0:
          jump b1
        b1:
          %i0: i64   = phi b0: 0,    b5: %i1
          %s: f64    = phi b0: 0.0,  b5: %s2
          %go0: bool = phi b0: True, b5: %go1
          %c = lt %i0, %n : bool
          %t = and_ %c, %go0 : bool
          branch %t, b2, b6
        b2:
          %s2 = add %s, %x : f64
          %b = gt %s2, %y : bool
          branch %b, b3, b4
        b3:
          jump b5
        b4:
          %i2 = add %i0, 1 : i64
          jump b5
        b5:
          %i1: i64   = phi b3: %i0,   b4: %i2
          %go1: bool = phi b3: False, b4: True
          jump b1
        b6:
          return %s
        """,
    )


@pytest.mark.parametrize("handed_on", ["%s", "%s2", "-1.0", "%x"])
def test_what_a_break_hands_on(handed_on):
    for n in (0, 1, 5):
        for y in (-1.0, 2.5, 100.0):
            expected = interpret(read(COUNTED.format(handed_on)), 1.0, y, n, True)
            function = read(COUNTED.format(handed_on))
            canonical(function)
            verify_canonical(function)
            assert interpret(function, 1.0, y, n, True) == expected


def test_a_loop_without_a_test_at_the_top():
    source = """
        b0:
          jump b1
        b1:
          %s: f64 = phi b0: 0.0, b3: %s2
          %s2 = add %s, %x : f64
          %b = gt %s2, %y : bool
          branch %b, b4, b2
        b2:
          %s3 = mul %s2, 2.0 : f64
          %c = lt %s3, 100.0 : bool
          branch %c, b3, b5
        b3:
          jump b1
        b4:
          %u = neg %s2 : f64
          return %u
        b5:
          return %s3
        """.replace("b3: %s2", "b3: %s3")
    function = read(source)
    run(function, CANONICAL)
    verify_canonical(function)
    (loop,) = loop_nest(function).loops
    assert not loop.header.instrs  # a flag, and nothing else
    assert [phi.hint for phi in loop.header.phis].count("go") == 1
    for args in [(1.0, 50.0, 0, True), (1.0, 1e9, 0, True), (3.0, 2.0, 0, True)]:
        assert interpret(function, *args) == interpret(read(source), *args)


def test_a_loop_with_its_test_at_the_end_and_effects():
    source = """
        b0:
          jump b1
        b1:
          %i: i64 = phi b0: 0, b1: %i2
          %v = getitem %a, 0 : f64
          %w = add %v, 1.0 : f64
          setitem %a, %w, 0
          %i2 = add %i, 1 : i64
          %c = lt %i2, %n : bool
          branch %c, b1, b2
        b2:
          return %v
        """
    function = read(source, "function f(%a: f64[:], %n: i64) -> f64")
    run(function, CANONICAL)
    verify_canonical(function)
    (loop,) = loop_nest(function).loops
    assert not loop.header.instrs
    array = [1.0]
    assert interpret(function, array, 3) == 3.0
    assert array == [4.0]


def test_an_exit_out_of_two_loops_with_a_value():
    source = """
        b0:
          jump b1
        b1:
          %i: i64 = phi b0: 0, b6: %i2
          %c = lt %i, %n : bool
          branch %c, b2, b7
        b2:
          %j: i64 = phi b1: 0, b5: %j2
          %d = lt %j, %n : bool
          branch %d, b3, b6
        b3:
          %k = mul %i, %j : i64
          %e = gt %k, 5 : bool
          branch %e, b8, b4
        b4:
          %f = gt %j, 3 : bool
          branch %f, b6, b5
        b5:
          %j2 = add %j, 1 : i64
          jump b2
        b6:
          %i2 = add %i, 1 : i64
          jump b1
        b7:
          return -1
        b8:
          %m = add %k, %j : i64
          return %m
        """
    header = "function f(%n: i64) -> i64"
    function = read(source, header)
    run(function, (*CANONICAL, *CLEAN_UP))
    verify_canonical(function)
    for n in range(9):
        assert interpret(function, n) == interpret(read(source, header), n)


def test_a_test_that_is_used_after_the_loop():
    # The header runs once more after a break, and then computes the same as before.
    source = """
        b0:
          jump b1
        b1:
          %i: i64 = phi b0: 0, b3: %i2
          %k = mul %i, 2 : i64
          %c = lt %k, %n : bool
          branch %c, b2, b4
        b2:
          %b = gt %i, 2 : bool
          branch %b, b5, b3
        b3:
          %i2 = add %i, 1 : i64
          jump b1
        b4:
          return 0
        b5:
          %r: i64 = phi b2: 17
          %s = add %r, %k : i64
          return %s
        """
    header = "function f(%n: i64) -> i64"
    function = read(source, header)
    run(function, (*CANONICAL, *CLEAN_UP))
    verify_canonical(function)
    (loop,) = loop_nest(function).loops
    assert len([instr for instr in loop.header.instrs if isinstance(instr, Instr)]) == 3
    for n in range(10):
        assert interpret(function, n) == interpret(read(source, header), n)


def test_a_raise_reached_from_inside_and_from_behind_the_loop():
    source = """
        b0:
          jump b1
        b1:
          %s: f64 = phi b0: %x, b4: %v
          %v = mul %s, 2.0 : f64
          %a = gt %v, 10.0 : bool
          branch %a, b5, b2
        b2:
          %b = gt %v, %y : bool
          branch %b, b6, b3
        b3:
          %d = lt %v, 0.0 : bool
          branch %d, b7, b4
        b4:
          jump b1
        b5:
          branch %p, b6, b8
        b6:
          raise ValueError %v
        b7:
          return 0.0
        b8:
          return %v
        """
    for args in [(1.0, 100.0, 0, True), (1.0, 100.0, 0, False), (1.0, 3.0, 0, True), (-1.0, 0.0, 0, True)]:
        function = read(source)
        run(function, (*CANONICAL, *CLEAN_UP))
        verify_canonical(function)
        assert outcome(function, args) == outcome(read(source), args)
    (loop,) = loop_nest(function).loops
    assert loop.raising_exits


def test_a_phi_of_the_header_that_only_a_raise_behind_the_loop_uses():
    source = """
        b0:
          jump b1
        b1:
          %i: i64 = phi b0: 0, b2: %i2
          %s: f64 = phi b0: %x, b2: %s2
          %c = lt %i, %n : bool
          branch %c, b3, b4
        b2:
          %i2 = add %i, 1 : i64
          %s2 = add %s, %y : f64
          jump b1
        b3:
          %b = gt %s, 10.0 : bool
          branch %b, b4, b2
        b4:
          branch %p, b5, b6
        b5:
          return %x
        b6:
          raise ValueError %s
        """
    for args in [(1.0, 2.0, 3, False), (1.0, 5.0, 9, False), (1.0, 5.0, 9, True), (0.0, 0.0, 0, False)]:
        function = read(source)
        run(function, (*CANONICAL, *CLEAN_UP))
        verify_canonical(function)
        assert outcome(function, args) == outcome(read(source), args)


def outcome(function, args):
    try:
        return interpret(function, *args)
    except ValueError as error:
        return error.args


def test_loops_with_no_exit_but_a_raise_stay():
    source = """
        b0:
          branch %p, b1, b4
        b1:
          jump b2
        b2:
          %b = gt %x, %y : bool
          branch %b, b3, b5
        b3:
          raise ValueError
        b4:
          return %x
        b5:
          jump b2
        """
    function = read(source)
    canonicalise_loops(function)
    verify_canonical(function)
    (loop,) = loop_nest(function).loops
    assert not loop.header.phis


@settings(max_examples=70, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
@example(3261473, 3)  # the header of a loop and a branch in it lead to one exception
def test_random_programs_mean_the_same_after_every_pass(seed, depth):
    function = build(statements(random.Random(seed), depth))
    verify(function)
    expected = outcomes(function)
    if expected is None:
        return
    for passes in ((*CANONICAL, *CLEAN_UP), (*CLEAN_UP, *CANONICAL, *CLEAN_UP)):
        changed = clone(function).function
        for step in passes:
            step(changed)
            verify(changed, step.__name__)
            try:
                found = outcomes(changed)
            except InternalError as error:
                raise AssertionError(step.__name__) from error
            assert found == expected, step.__name__
        if any(isinstance(block.terminator, Return) for block in changed.blocks):
            verify_canonical(changed)
