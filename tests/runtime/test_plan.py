"""The plan of a derivative: what it says it keeps and allocates, compared with what the emitted source allocates."""

import json
import math
import tracemalloc

import numpy as np
import pytest

from tests.modes import one_in
from tests.plain import plain
from zygote_py import gradient, hessian, value_and_gradient

pytestmark = pytest.mark.interpreted

LARGE = 4000


def polynomial(x, c):
    r = 0.0
    for i in range(len(c)):
        r = r * x + c[i]
    return r


def row_sums(a, w):
    s = 0.0
    for i in range(a.shape[0]):
        r = 1.0
        for j in range(a.shape[1]):
            r = math.sin(r * a[i, j]) + w[j]
        s += r * r
    return s


def triangle(a):
    s = 0.0
    for i in range(a.shape[0]):
        r = 1.0
        for j in range(i):
            r = math.sin(r * a[i, j])
        s = math.sin(s + r)
    return s


def every_other(a):
    s = 0.0
    for i in range(a.shape[0]):
        r = 1.0
        for j in range(0, i, 2):
            r = math.sin(r * a[i, j])
        s = math.sin(s + r)
    return s


def steps(u, count):
    for _ in range(count):
        new = np.zeros_like(u)
        for i in range(1, len(u) - 1):
            new[i] = u[i] * u[i + 1] - u[i - 1]
        u = new
    return np.sum(u)


def halves(x):
    y = np.sin(x[1:]) * x[:-1]
    z = np.exp(y) + y
    return np.sum(z * z)


def in_two_parts(x):
    """The first array is of no use when the second is made."""
    a = np.sum(np.sin(np.sort(x) * x))
    return a * np.sum(np.cos(np.sort(x) * x))


def products(w, x):
    h = np.tanh(w @ x)
    return np.sum(w.T @ h)


def called(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = math.sin(x[i]) * x[i]
    return y


def calls(x):
    return np.sum(called(called(x)) ** 2)


CASES = [
    (polynomial, (0.5, np.ones(LARGE)), None),
    (row_sums, (np.ones((40, 100)), np.ones(100)), None),
    (steps, (np.ones(2000), 30), "u"),
    (halves, (np.linspace(0.1, 0.9, LARGE),), None),
    (in_two_parts, (np.linspace(0.1, 0.9, LARGE),), None),
    (products, (np.ones((100, 200)), np.ones(200)), None),
    (calls, (np.ones(LARGE),), None),
]


def peak_of(source, arguments):
    """The most bytes that a call has, which are counted for all of the process: the least of some calls."""
    function = plain(source)
    function(*arguments)
    return min(peak_of_a_call(function, arguments) for _ in range(3))


def peak_of_a_call(function, arguments):
    tracemalloc.start()
    try:
        result = function(*arguments)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result is not None
    return most


@pytest.mark.parametrize(("f", "arguments", "wrt"), one_in(3, CASES), ids=lambda each: getattr(each, "__name__", ""))
def test_the_peak_is_that_of_the_emitted_source(f, arguments, wrt):
    df = gradient(f, wrt=wrt, mode="reverse")
    found = peak_of(df.source(*arguments), arguments)
    assert df.plan(*arguments).bytes == pytest.approx(found, rel=0.05)


def test_without_values_there_is_a_formula():
    plan = gradient(polynomial, mode="reverse").plan("f64, f64[:]")
    assert plan.bytes is None
    assert plan.formula == "8 * c.shape[0]"
    assert [each.bytes for each in plan.allocations] == [None]


def test_rounds_that_depend_on_an_outer_loop_are_added_up():
    plan = gradient(triangle, mode="reverse").plan(np.ones((50, 50)))
    assert [loop.rounds for loop in plan.loops] == ["a.shape[0]", "i"]
    (kept,) = (each for each in plan.allocations if each.name == "r_record")
    assert (kept.kind, kept.bytes) == ("array", 8 * 50 * 49 / 2)
    assert kept.formula == "8 * a.shape[0] * (a.shape[0] - 1) / 2"


def test_rounds_of_lists_that_depend_on_an_outer_loop_are_added_up():
    plan = gradient(every_other, mode="reverse").plan(np.ones((50, 50)))
    (kept,) = (each for each in plan.allocations if each.kind == "list")
    assert kept.bytes >= 8 * 25 * 25
    assert kept.bytes < 8 * 1.2 * 25 * 25


def test_what_is_kept_and_why():
    plan = gradient(polynomial, mode="reverse").plan("f64, f64[:]")
    assert (plan.mode, plan.why) == ("reverse", "as asked")
    (loop,) = plan.loops
    assert loop.rounds == "c.shape[0]"
    assert loop.bytes_per_round == 8
    (kept,) = plan.values
    line = polynomial.__code__.co_firstlineno + 2
    assert (kept.name, kept.way, kept.where, kept.loop) == ("r", "kept", "array", line)
    assert kept.why == "is handed from round to round"


def test_loops_that_keep_nothing():
    def squares(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * x[i]
        return s

    plan = gradient(squares).plan(np.ones(10))
    assert [loop.reversal for loop in plan.loops] == ["as it runs, with no record"]
    assert plan.values == ()
    assert plan.bytes == 80


def test_arrays_that_rounds_make():
    plan = gradient(steps, wrt="u").plan(np.ones(10), 5)
    ways = {value.name: value.way for value in plan.values}
    assert ways["u"] == "reference kept"
    assert ways["dnew"] == "made by the reverse sweep"


def test_forward_mode_keeps_nothing():
    def power(x, n):
        r = 1.0
        for _ in range(n):
            r = math.sin(r * x)
        return r

    df = gradient(power)
    plan = df.plan(0.5, 1000)
    assert plan.mode == "forward"
    assert (plan.values, plan.allocations, plan.bytes) == ((), (), 0)
    assert gradient(power, mode="reverse").plan(0.5, 1000).bytes == 8000


def test_other_derivatives_have_plans():
    assert hessian(halves).plan(np.ones(20)).mode == ""
    assert value_and_gradient(halves).plan(np.ones(20)).bytes > 0


def test_the_text_and_the_data():
    plan = gradient(row_sums).plan(np.ones((40, 100)), np.ones(100))
    text = str(plan)
    assert text.startswith("gradient of row_sums(array(float64, 2d, C), array(float64, 1d, C))\nmode: reverse")
    assert "at most alive at a time: " in text
    assert f"= {plan.bytes:,}" in text
    assert json.loads(json.dumps(plan.as_dict()))["bytes"] == plan.bytes


def test_the_next_call_works():
    def loud(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] ** 3
        return s

    df = gradient(loud)
    df.plan(np.ones(3))
    assert df(np.ones(3)).tolist() == [3.0, 3.0, 3.0]


def test_strided_ranges_and_other_integers():
    def powers(x, n):
        r = x[0]
        for _ in range(10, n, -2):
            r = r * r + x[1]
        return r

    df = gradient(powers, wrt="x", mode="reverse")
    plan = df.plan(np.ones(2), 2)
    assert plan.formula == "8 * ceil((10 - n) / 2)"  # freed when the gradient is made
    assert plan.bytes == 32
    assert df.plan(np.ones(2), np.int32(5)).bytes == 24
    assert df.plan(np.ones(6), 2).formula == "8 * x.shape[0]"
    assert df.plan(np.ones(6), 2).bytes == df.plan(np.ones(6), 20).bytes == 48


def test_lists_of_arrays_have_no_known_size():
    plan = gradient(lambda xs: np.sum(xs[0] ** 2), mode="reverse").plan([np.ones(1000)])
    assert plan.bytes is None
    assert "makes" in plan.formula


def recursive(x, n):
    return np.sum(x) if n == 0 else recursive(x * x, n - 1)


def test_what_a_recursion_takes_is_not_known():
    plan = gradient(recursive, wrt="x").plan(np.ones(5), 3)
    assert plan.bytes is None
    assert "what recursive_forward takes" in plan.formula
