"""Elements of shadows that a loop sets, in place of zeros to which it adds; and where it must not."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.checking.slopes import differences
from tests.ir.transform import read, shown
from zygote_py import gradient, hessian, jacobian, pullback
from zygote_py.adjoints.reverse.finished.elements import keep_elements_in_variables
from zygote_py.ir import verify

pytestmark = pytest.mark.interpreted


def squares(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i] * y[i]
    return s


def by_numpy(x, y):
    return np.sum(np.exp(x) ** 2) + np.sum(np.sqrt(y))


def twice_in_a_round(x, y):
    s = 0.0
    for i in range(len(x)):
        s += math.sin(x[i])
        if x[i] > 0.5:
            s += x[i] ** 2 * y[0]
    return s


def backwards(x, y):
    s = 0.0
    for i in range(len(x) - 1, -1, -1):
        s = 0.5 * s + x[i] ** 2
    return s * y[0]


def in_place(x, y):
    u = np.empty(len(x))
    for i in range(len(x)):
        u[i] = x[i] * y[0]
        u[i] *= u[i]
        u[i] += x[i]
    return np.sum(u)


def in_matrices(x, y):
    a = np.empty((len(x), len(y)))
    for i in range(len(x)):
        for j in range(len(y)):
            a[i, j] = math.sin(x[i] * y[j])
    return np.sum(a * a)


def in_columns(x, y):
    a = np.empty((len(x), len(y)))
    for j in range(len(y)):
        for i in range(len(x)):
            a[i, j] = x[i] ** 2 * y[j]
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            s += a[i, j] ** 2
    return s


def by_slices(x, y):
    return np.sum(np.exp(x[: len(y)]) * y) + np.sum(x**3)


def under_a_condition(x, y):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.6:
            s += x[i] ** 2
    return s + y[0]


def again_and_again(x, y):
    s = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            s += x[i] * y[j]
    return s


# All elements of these are set, and begin as nothing.
SET = {
    squares: "dx",
    by_numpy: "dx dy",
    twice_in_a_round: "dx",
    under_a_condition: "dx",
    in_place: "dx",
    in_matrices: "dx da",
    in_columns: "dy da",
    again_and_again: "dx",
}


def without_the_first(x, y):
    s = 0.0
    for i in range(1, len(x)):
        s += x[i] ** 2 * y[0]
    return s


def every_second(x, y):
    s = 0.0
    for i in range(0, len(x), 2):
        s += x[i] ** 2
    return s


def from_both_ends(x, y):
    s = 0.0
    for i in range(-3, 3):
        s += x[i] ** 3
    return s


def in_two_places(x, y):
    s = 0.0
    for i in range(len(x) - 1):
        s += x[i] * x[i + 1] ** 2
    return s


def until_it_is_enough(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 2
        if s > 1.0:
            break
    return s


def at_indices(x, y):
    places = np.array([0, 2, 2, 1])
    s = 0.0
    for i in range(len(places)):
        s += x[places[i]] ** 2
    return s


def in_rounds(x, y):
    s = 0.0
    for k in range(3):
        for i in range(len(x)):
            s += x[i] ** (k + 1)
    return s


def the_shorter(x, y):
    s = 0.0
    for i in range(min(len(x), len(y))):
        s += x[i] * y[i] ** 2
    return s


def the_diagonal(x, y):
    a = np.outer(x, x)
    s = 0.0
    for i in range(len(x)):
        s += a[i, i] ** 2
    return s


def another_loop_first(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 2
    for i in range(len(x)):
        s += s * x[i]
    return s


def a_view_of_it(x, y):
    u = np.zeros(len(x))
    v = u[1:]
    for i in range(len(x)):
        u[i] = x[i] ** 2
    s = 0.0
    for i in range(len(v)):
        s += v[i] * u[i]
    return s


PARTS = [
    by_slices,
    backwards,
    without_the_first,
    every_second,
    from_both_ends,
    in_two_places,
    until_it_is_enough,
    at_indices,
    in_rounds,
    the_shorter,
    the_diagonal,
]
X, Y = np.array([0.9, 0.3, -0.4, 1.2, 0.7]), np.array([0.5, 1.1, 0.8])


def arguments(function):
    return (X, np.append(Y, [0.2, 1.3])) if function is squares else (X, Y)


@pytest.mark.parametrize("function", [*SET, *PARTS, another_loop_first, a_view_of_it], ids=lambda each: each.__name__)
def test_gradients(function):
    given = arguments(function)
    (expected,) = differences(function, *given)
    np.testing.assert_allclose(np.concatenate(gradient(function)(*given)), expected, atol=1e-7)
    np.testing.assert_allclose(np.concatenate(gradient(function, mode="reverse")(*given)), expected, atol=1e-7)
    _, back = pullback(function, *given)
    np.testing.assert_allclose(np.concatenate(back(1.0)), expected, atol=1e-7)


def own_text(function):
    text = gradient(function, mode="reverse").source(*arguments(function))
    return text.partition(f"def {function.__name__}_gradient(")[2]


@pytest.mark.parametrize("function", SET, ids=lambda each: each.__name__)
def test_all_elements_are_set(function, monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "fused-loops")
    found = re.findall(r"(d[a-z]) = np\.empty", own_text(function))
    assert sorted(name for name in found if name != "du") == sorted(SET[function].split())


@pytest.mark.parametrize("function", PARTS, ids=lambda each: each.__name__)
def test_not_all_elements_are_set(function):
    assert "dx = np.zeros_like(x)" in own_text(function)


def test_the_first_of_two_loops_sets_them(monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "reused-records")
    text = own_text(another_loop_first)
    assert re.findall(r"dx\[\w+\] (.*?=)", text) == ["=", "+="]


def test_what_has_a_view_before_is_added():
    text = own_text(a_view_of_it)
    assert "du = np.zeros(" in text
    assert "du[i] += " in text


def test_what_nothing_reads_is_not_stored(monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "returned-copies,reused-records,fused-loops")
    for function in (in_matrices, in_columns, in_place):
        assert not re.search(r"d[au]\[i.*\] = 0\.0", own_text(function))
    assert re.findall(r"du\[\w+\]", own_text(in_place)) == ["du[i]", "du[i_1]"]  # set, then read


def overwritten(x, y, n):
    s = 0.0
    for i in range(n):
        y[i] = x[i] * s
        s += x[i] ** 2
    return s


def overwritten_and_read_before(x, y, n):
    s = y[1] * y[2]
    for i in range(n):
        y[i] = x[i] * s
        s += x[i] ** 2
    return s


def overwritten_and_read_by_another_name(x, y, n):
    rest = y[1:]
    s = 0.0
    for i in range(n):
        y[i] = x[i] * s
        s += x[i] ** 2
    return s + rest[0] * rest[1]


def test_zeros_are_not_stored_in_zeros():
    text = gradient(overwritten).source(X, Y, 2).partition("def overwritten_gradient(")[2]
    assert "dy[" not in text
    assert "dy = np.zeros_like(y)" in text


@pytest.mark.parametrize(
    "function",
    [overwritten, overwritten_and_read_before, overwritten_and_read_by_another_name],
    ids=lambda f: f.__name__,
)
def test_zeros_in_what_is_overwritten(function):
    (expected,) = differences(lambda x, y: function(x, y.copy(), 2), X, Y)
    np.testing.assert_allclose(np.concatenate(gradient(function)(X, Y.copy(), 2)[:2]), expected, atol=1e-7)


def read_by_another_name(x, y):
    u = np.empty(len(x))
    v = u[1:]
    for i in range(len(x)):
        u[i] = x[i] ** 2
    for i in range(len(x)):
        u[i] = 3.0 * u[i]
    return np.sum(v) * y[0]


def read_in_the_next_round(x, y):
    u = np.zeros(len(x))
    s = 0.0
    for _ in range(3):
        for i in range(len(x)):
            s += u[i] * y[0]
            u[i] = x[i] * u[i] + x[i]
    return s


def read_by_others_later(x, y):
    u = np.empty(len(x))
    for i in range(len(x)):
        u[i] = x[i] ** 2
    for i in range(len(x)):
        u[i] = u[i] * y[0]
    return u[1] * u[2]


def read_by_another_name_in_the_loop(x, y):
    u = np.zeros(len(x) + 1)
    v = u[1:]
    s = 0.0
    for i in range(1, len(u)):
        u[i] = x[i - 1] ** 2
        s += v[i - 1] * y[0]
        u[i] = x[i - 1]
        s += u[i] * v[i - 1]
    return s


def exchanged(x, y):
    u, v = x.copy(), np.zeros(len(x))
    for _ in range(3):
        for i in range(len(x)):
            v[i] = u[i] * y[0]
            v[i] += x[i] * v[i]
        u, v = v, u
    return np.sum(u)


def of_a_list(x, y):
    u = np.zeros(len(x))
    kept = [u]
    for i in range(len(x)):
        u[i] = x[i] ** 2
        u[i] *= x[i]
    return np.sum(kept[0]) * y[0]


def in_a_loop_around(x, y):
    s = 0.0
    for k in range(len(y)):
        u = np.zeros(len(x))
        for i in range(len(x)):
            u[i] += x[i] * y[k]
            u[i] *= u[i]
        for i in range(len(x)):
            s += u[i] ** 2
    return s


def added_to_after_it_was_read(x, y):
    u = np.empty(len(x))
    for i in range(len(x)):
        u[i] = x[i] * y[0]
    s = 0.0
    for i in range(len(x)):
        s += u[i] * x[i]
    for i in range(len(x)):
        u[i] += s
    return s


LATER = [
    added_to_after_it_was_read,
    read_by_another_name,
    read_in_the_next_round,
    read_by_others_later,
    read_by_another_name_in_the_loop,
    exchanged,
    of_a_list,
    in_a_loop_around,
]


@pytest.mark.parametrize("function", LATER, ids=lambda each: each.__name__)
def test_what_is_read_later_is_stored(function):
    (expected,) = differences(function, X, Y)
    np.testing.assert_allclose(np.concatenate(gradient(function)(X, Y)), expected, atol=1e-7)
    np.testing.assert_allclose(
        np.concatenate(jacobian(function, mode="forward", wrt=(0, 1))(X, Y)), expected, atol=1e-7
    )


@pytest.mark.parametrize("function", [squares, in_place, twice_in_a_round], ids=lambda each: each.__name__)
def test_second_derivatives(function):
    given = arguments(function)
    first = gradient(function, wrt=0)
    found = hessian(function, wrt=0)(*given)
    np.testing.assert_allclose(found, differences(lambda x: first(x, given[1]), X), atol=1e-6)


def test_vectors_without_elements():
    empty = np.empty(0)
    for function in (squares, twice_in_a_round):
        assert [each.shape for each in gradient(function)(empty, np.ones(2))] == [(0,), (2,)]


@pytest.mark.compiled
def test_compiled():
    for function in (squares, in_place, in_matrices):
        given = arguments(function)
        (expected,) = differences(function, *given)
        np.testing.assert_allclose(np.concatenate(gradient(function)(*given)), expected, atol=1e-7)


SUMS = """
    b0:
      %dx = np.zeros_like %x : f64[:]
      %t0 = dim %x, 0 : i64
      %t1 = dim %y, 0 : i64
      jump b1
    b1:
      %i0: i64 = phi b0: 0, b6: %i1
      %c0 = lt %i0, %t0 : bool
      branch %c0, b2, b7
    b2:
      jump b3
    b3:
      %j0: i64  = phi b2: 0,   b4: %j1
      %du0: f64 = phi b2: 0.0, b4: %du1
      %c1 = lt %j0, %t1 : bool
      branch %c1, b4, b5
    b4:
      %t2 = getitem %y, %j0 : f64
      %j1 = add %j0, 1 : i64
      %du1 = add %du0, %t2 : f64
      jump b3
    b5:
      %i1 = add %i0, 1 : i64
      %c2 = lt START, %t1 : bool
      branch %c2, b8, b6
    b8:
      accumulate %dx, %du0, %i0
      jump b6
    b6:
      jump b1
    b7:
      return %dx
    """


@pytest.mark.parametrize("start", [0, 1])
def test_sums_are_always_added_if_the_condition_is_that_of_their_loop(start):
    function = read(SUMS.replace("START", str(start)), "joint f(%x: f64[:], %y: f64[:]) -> f64[:]")
    of_adjoints(function)
    keep_elements_in_variables(function)
    assert ("np.empty_like %x" in shown(function)) == (start == 0)
    verify(function)


def test_a_loop_that_may_not_run_sets_nothing_first():
    function = read(
        """
        b0:
          %dx = np.zeros_like %x : f64[:]
          %t0 = dim %x, 0 : i64
          branch %p, b1, b9
        b1:
          %i0: i64 = phi b0: 0, b2: %i1
          %c0 = lt %i0, %t0 : bool
          branch %c0, b2, b9
        b2:
          %i1 = add %i0, 1 : i64
          accumulate %dx, 1.0, %i0
          jump b1
        b9:
          return %dx
        """,
        "joint f(%x: f64[:], %p: bool) -> f64[:]",
    )
    of_adjoints(function)
    keep_elements_in_variables(function)
    assert "np.zeros_like %x" in shown(function)


def test_what_happens_in_a_header_happens_once_more():
    function = read(
        """
        b0:
          %dx = np.zeros_like %x : f64[:]
          %t0 = dim %x, 0 : i64
          %t1 = sub %t0, 1 : i64
          jump b1
        b1:
          %i0: i64 = phi b0: %t1, b2: %i1
          accumulate %dx, 1.0, %i0
          %c0 = gt %i0, -1 : bool
          branch %c0, b2, b3
        b2:
          %i1 = sub %i0, 1 : i64
          jump b1
        b3:
          return %dx
        """,
        "joint f(%x: f64[:]) -> f64[:]",
    )
    of_adjoints(function)
    assert not keep_elements_in_variables(function)


def said_in_an_exception(x, limit):
    u = np.zeros(len(x))
    s = 0.0
    for i in range(len(x)):
        u[i] = 2.0 * x[i]
        u[i] += 1.0
        s += u[i] * x[i]
        if u[i] > limit:
            raise ValueError(u[i], u[0])
    return s


def test_what_an_exception_says_is_stored():
    df = gradient(said_in_an_exception, wrt=0, mode="reverse")
    np.testing.assert_allclose(df(X, 9.0), 4.0 * X + 1.0)
    with pytest.raises(ValueError) as found:
        df(X, 3.0)
    assert found.value.args == pytest.approx((3.4, 2.8))


def of_adjoints(function):
    """Mark the instructions as those of adjoints."""
    for instr in function.instrs():
        instr.origin = function.params[0]
