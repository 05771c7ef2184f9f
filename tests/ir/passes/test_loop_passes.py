"""The small passes on loops: counters, headers, loops that do nothing; and phis of truth values."""

from textwrap import dedent

import pytest

from tests.ir.transform import check, read, shown
from zygote_py.ir import interpret
from zygote_py.ir.passes import (
    bare_headers,
    keep_counting,
    remove_dead_code,
    remove_dead_loops,
    replace_boolean_phis,
)

LEFT_BY_BREAK = """
    b0:
      jump b1
    b1:
      %s0: f64  = phi b0: %x,   b6: %s1
      %i0: i64  = phi b0: 0,    b6: %i2
      %go0: bool = phi b0: True, b6: %go1
      %c0 = lt %i0, %n : bool
      %t = and_ %c0, %go0 : bool
      branch %t, b2, b7
    b2:
      %s1 = mul %s0, %y : f64
      %c1 = gt %s1, 100.0 : bool
      branch %c1, b3, b4
    b3:
      jump b6
    b4:
      %i1 = add %i0, 1 : i64
      jump b6
    b6:
      %i2: i64   = phi b3: %i0,   b4: %i1
      %go1: bool = phi b3: False, b4: True
      jump b1
    b7:
      return RESULT
    """


def run(source, step, *args):
    function = read(source)
    wanted = interpret(function, *args)
    step(function)
    remove_dead_code(function)
    assert interpret(function, *args) == wanted
    return shown(function)


@pytest.mark.parametrize("n", [0, 3, 20])
def test_a_counter_counts_on_in_the_last_iteration(n):
    after = run(LEFT_BY_BREAK.replace("RESULT", "%s0"), keep_counting, 1.0, 3.0, n, True)
    assert "%i1 = add %i0, 1" in after.split("\nb5:")[1]
    assert "%i2" not in after


@pytest.mark.parametrize("n", [0, 3, 20])
def test_a_counter_that_is_used_behind_the_loop_is_left_alone(n):
    source = LEFT_BY_BREAK.replace("return RESULT", "%f = float %i0 : f64\n      return %f")
    assert "phi b3: %i0" in run(source, keep_counting, 1.0, 3.0, n, True)


@pytest.mark.parametrize("n", [0, 3, 20])
def test_a_counter_that_is_merged_with_another_number_behind_the_loop_is_left_alone(n):
    source = LEFT_BY_BREAK.replace("branch %t, b2, b7", "branch %t, b2, b8").replace(
        "jump b1\n", "branch %p, b1, b8\n", 1
    )
    source = source.replace(
        "b7:\n      return RESULT",
        "b8:\n      %j: i64 = phi b0: 7, b1: %i0\n      %f = float %j : f64\n      return %f",
    )
    assert "phi b3: %i0" in run(source, keep_counting, 1.0, 3.0, n, True)


@pytest.mark.parametrize(("true", "value"), [("b1", "%p"), ("b2", "%go")])
def test_a_phi_of_true_and_false_is_the_condition(true, value):
    side = {"b1": "True", "b2": "False"} if true == "b1" else {"b1": "False", "b2": "True"}
    source = f"""
        b0:
          branch %p, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %go: bool = phi b1: {side["b1"]}, b2: {side["b2"]}
          branch %go, b4, b5
        b4:
          return %x
        b5:
          return %y
        """
    for p in (False, True):
        after = run(source, replace_boolean_phis, 1.0, 2.0, 3, p)
        assert f"branch {value}, b4, b5" in after
        assert ("%go = not_ %p : bool" in after) == (true == "b2")


def test_a_phi_of_other_branches_stays():
    source = """
        b0:
          branch %p, b1, b2
        b1:
          %c = gt %x, %y : bool
          branch %c, b3, b4
        b2:
          jump b5
        b3:
          jump b6
        b4:
          jump b5
        b5:
          jump b6
        b6:
          %go: bool = phi b3: True, b5: False
          branch %go, b7, b8
        b7:
          return %x
        b8:
          return %y
        """
    check(replace_boolean_phis, source, shown(read(source)))


def test_a_number_of_the_header_that_is_used_elsewhere_is_computed_elsewhere():
    check(
        bare_headers,
        """
        b0:
          jump b1
        b1:
          %v: f64 = phi b0: %x, b2: %w
          %t = mul %v, %v : f64
          %c = lt %t, 4.0 : bool
          branch %c, b2, b3
        b2:
          %w = add %t, 1.0 : f64
          jump b1
        b3:
          return %t
        """,
        """
        b0:
          jump b1
        b1:
          %v: f64 = phi b0: %x, b2: %w
          %t0 = mul %v, %v : f64
          %c = lt %t0, 4.0 : bool
          branch %c, b2, b3
        b2:
          %t1 = mul %v, %v : f64
          %w = add %t1, 1.0 : f64
          jump b1
        b3:
          %t2 = mul %v, %v : f64
          return %t2
        """,
    )


COUNTING = """
    b0:
      jump b1
    b1:
      %i0: i64 = phi b0: 0, b2: %i1
      %c = COMPARISON %i0, %n : bool
      branch %c, b2, b3
    b2:
      %t = truediv %x, DIVISOR : f64
      %i1 = add %i0, 1 : i64
      jump b1
    b3:
      return RESULT
    """


def counting(comparison="lt", divisor="2.0", result="%x"):
    return COUNTING.replace("COMPARISON", comparison).replace("DIVISOR", divisor).replace("RESULT", result)


def test_a_loop_that_does_nothing_is_removed():
    expected = """
        b0:
          jump b1
        b1:
          jump b2
        b2:
          return %x
        """
    function = read(counting())
    remove_dead_loops(function)
    remove_dead_code(function)
    assert shown(function) == dedent(expected).strip("\n")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(counting("ne"), id="one that may not end"),
        pytest.param(counting(divisor="%y"), id="one that may raise"),
        pytest.param(
            counting(result="%f").replace("return", "%f = float %i0 : f64\n      return"), id="one that is used"
        ),
    ],
)
def test_other_loops_stay(source):
    function = read(source)
    before = shown(function)
    remove_dead_loops(function)
    assert shown(function) == before


@pytest.mark.parametrize(
    ("start", "comparison", "bound", "stays"), [(0, "lt", 0, False), (3, "gt", 3, False), (0, "le", 0, True)]
)
def test_a_loop_whose_test_fails_at_once_is_removed(start, comparison, bound, stays):
    source = f"""
        b0:
          %k0 = const {start} : i64
          jump b1
        b1:
          %k1: i64 = phi b0: %k0, b2: %n
          %s0: f64 = phi b0: %x, b2: %s1
          %c = {comparison} %k1, {bound} : bool
          branch %c, b2, b3
        b2:
          %s1 = mul %s0, %y : f64
          jump b1
        b3:
          return %s0
        """
    function = read(source)
    wanted = interpret(function, 1.0, 2.0, 7, True)
    remove_dead_loops(function)
    assert ("mul" in shown(function)) == stays
    assert interpret(function, 1.0, 2.0, 7, True) == wanted
