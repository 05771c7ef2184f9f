"""Tangents in several directions as one value: Hessians against differences of gradients, in plain Python.

Where an operation is not one of numbers and loops alone, there is a tangent for each direction. The emitted source runs
alone, compiled by Numba or not, and what is differentiated again has no lanes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numba import types

import zygote_py as zg
from tests.checking.second import slopes
from tests.modes import interpreter, one_in
from tests.plain import plain
from zygote_py.adjoints import NotInLanes, push_in_lanes
from zygote_py.ir import Const, parse, parse_type, type_text
from zygote_py.ir.text.printer import text

pytestmark = pytest.mark.interpreted

X = np.array([0.4, 0.9, 0.25, 0.7, 0.55])


def check_hessian(f: Any, x: Any, *rest: Any) -> str:
    """Compare a Hessian with differences of the gradient, and return its source."""
    gradient, hessian = zg.gradient(f, wrt=0), zg.hessian(f, wrt=0)
    found = hessian(x, *rest).reshape((x.size, x.size))
    units = np.eye(x.size).reshape((x.size, *x.shape))
    expected = [slopes(lambda at: gradient(at, *rest), x, unit).ravel() for unit in units]
    np.testing.assert_allclose(found, np.array(expected).T, atol=1e-8 * (1.0 + np.abs(expected).max()))
    assert np.array_equal(found, found.T)
    return str(hessian.source(x, *rest))


def in_lanes(source: str) -> bool:
    """Whether there are values of several numbers."""
    return "def lanes" in source


# --------------------------------------------------------------------------------------------------------- in lanes


def branches(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += np.sin(x[i]) * x[0] / (1.0 + x[i - 1] ** 2)
        else:
            s += x[i] ** 3 * s
    return s


def guarded(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sqrt(abs(x[i] - 0.3)) if x[i] != 0.2 else x[i] ** 2 * x[1]
        s += max(x[i], 0.5) * x[2] + np.hypot(x[i], s)
    return s


def until_the_data_say_so(x):
    s, i = 0.0, 0
    while s < 0.8 and i < len(x):
        s += x[i] ** 2 * (x[0] + s)
        i += 1
    return s * s


def views(x):
    y = np.zeros(6)
    v = y[1:]
    for i in range(5):
        v[i] = x[i] * x[(i + 1) % 5]
    w = y[::2]
    s = 0.0
    for i in range(3):
        s += w[i] ** 2 * v[i]
    return s


def buffers(x):
    y = np.zeros((2, len(x)))
    for t in range(3):
        for i in range(len(x)):
            y[1 - t % 2, i] = 0.5 * y[t % 2, i] * x[0] + x[i] * x[(i + t) % 5]
    return np.sum(y)


def sums_in_bins(x, bins):
    y = np.zeros(3)
    for i in range(len(x)):
        y[bins[i]] += x[i] ** 2 * x[0]
    return y[0] * y[1] + y[2] ** 2


def swapped(x):
    a, b = x[0], x[1]
    for i in range(len(x)):
        a, b = b * x[i], a + x[i] * a
    return a * b


def inner(a, n, b):
    t = 0.0
    for k in range(n):
        t += a[k] * b * a[k]
    return t


def calls(x):
    s = 0.0
    for i in range(len(x)):
        s += inner(x, i, x[i]) + inner(x, 2, s)
    return s


def a_list_that_is_stored_in(x):
    kept = [x[0]]
    for i in range(len(x)):
        kept[0] = kept[0] * x[i]
    return kept[0]


def a_list_that_is_read(x):
    s = 0.0
    for value in [v * v for v in x]:
        s += value * x[0]
    return s


def whole_arrays(x):
    return np.sum(np.cumsum(x) ** 2 * x) + np.sort(x)[1] * np.sum(np.where(x > 0.5, x**3, x[0]))


def cubed(y):
    return y**3


@zg.adjoint(cubed)
def _(y):
    return y**3, lambda d: (3.0 * y**2 * d,)


def with_a_custom_rule(x):
    s = 0.0
    for i in range(len(x)):
        s += cubed(x[i]) * x[0]
    return s


@pytest.mark.parametrize(
    "f",
    [
        branches,
        guarded,
        until_the_data_say_so,
        views,
        buffers,
        swapped,
        calls,
        whole_arrays,
        with_a_custom_rule,
        a_list_that_is_stored_in,
        a_list_that_is_read,
    ],
    ids=lambda f: f.__name__,
)
def test_of_loops(f):
    assert in_lanes(check_hessian(f, X))


def test_indices_that_are_data():
    assert in_lanes(check_hessian(sums_in_bins, X, np.array([0, 1, 2, 1, 0])))


@pytest.mark.parametrize(
    "matrix",
    [np.sin(np.arange(6.0)).reshape((3, 2)), np.asfortranarray(np.cos(np.arange(6.0)).reshape((3, 2)))],
    ids=["C", "F"],
)
def test_matrices(matrix):
    def f(m):
        s = 0.0
        for i in range(m.shape[0]):
            row = m[i]
            for j in range(m.shape[1]):
                s += row[j] ** 3 * m[0, j] + m[i, j - 1]
        return s

    check_hessian(f, matrix)


def test_single_precision():
    x = X.astype(np.float32)
    found = zg.hessian(branches)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, zg.hessian(branches)(X), rtol=2e-5, atol=1e-5)


def test_numbers_among_which_are_constants():
    def f(a, b, c):
        return np.sin(a * b) * c**2 / (1.0 + a * a)

    at = (0.3, 0.4, 0.5)
    found = np.array(zg.hessian(f, wrt=(0, 1, 2))(*at))
    expected = [slopes(lambda v: np.array(zg.gradient(f)(*v)), np.array(at), unit) for unit in np.eye(3)]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_no_elements():
    assert zg.hessian(swapped_sum)(np.zeros(0)).shape == (0, 0)


def swapped_sum(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[len(x) - 1 - i] * s
    return s


def test_an_infinite_derivative_is_left_out_in_each_direction_by_itself():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += np.sqrt(x[i]) if x[i] > 0.0 else x[i] * x[1]
        return s

    x = np.array([0.0, 0.25, 0.0, 1.0, 0.0])
    expected = np.diag([0.0, -0.25 * 0.25**-1.5, 0.0, -0.25, 0.0])
    expected[[0, 2, 4], 1] = expected[1, [0, 2, 4]] = 1.0
    np.testing.assert_allclose(zg.hessian(f)(x), expected)


def test_jacobian_of_a_vector():
    def f(x):
        found = np.empty(len(x) + 2)
        for i in range(len(found)):
            found[i] = x[i % len(x)] * x[0] ** i
        return found

    jacobian = zg.jacobian(f, mode="forward")
    found = jacobian(X)
    h = 1e-6
    expected = [(f(X + h * unit) - f(X - h * unit)) / (2 * h) for unit in np.eye(5)]
    np.testing.assert_allclose(found, np.array(expected).T, atol=1e-9)
    assert in_lanes(jacobian.source(X))


def test_jacobian_of_parts_of_the_argument():
    whole, (rest, products) = (
        zg.jacobian(lambda x: x, mode="forward"),
        zg.jacobian(lambda x: (x[1:], x[0] * x), mode="forward")(X),
    )
    np.testing.assert_array_equal(whole(X), np.eye(5))
    np.testing.assert_array_equal(rest, np.eye(5)[1:])
    np.testing.assert_allclose(products, X[0] * np.eye(5) + np.outer(X, np.eye(5)[0]))


def test_jacobian_of_structures_that_are_returned():
    (by_x, by_number), (number_by_x, number) = zg.jacobian(lambda pair: pair, mode="forward")((X, 3.0))
    np.testing.assert_array_equal(by_x, np.eye(5))
    assert not by_number.any()
    assert not number_by_x.any()
    assert number == 1.0
    whole, (rest, first) = zg.jacobian(lambda x: (x, (x[1:], 2.0 * x[0])), mode="forward")(X)
    np.testing.assert_array_equal(whole, np.eye(5))
    np.testing.assert_array_equal(rest, np.eye(5)[1:])
    np.testing.assert_array_equal(first, 2.0 * np.eye(5)[0])


def test_the_plan_counts_all_lanes():
    shown = str(zg.hessian(buffers).plan(X))
    assert "e, line" in shown
    assert "32 * x.shape[0] bytes = 160" in shown


def test_jacobian_of_numbers_and_arrays():
    def f(x, r):
        s = 0.0
        for i in range(len(x)):
            s += x[i] ** 2 * r
        return s, x * r

    (by_x, by_r), (rows_x, rows_r) = zg.jacobian(f, wrt=(0, 1))(X, 0.5)
    np.testing.assert_allclose(by_x, X)
    np.testing.assert_allclose(by_r, np.sum(X**2))
    np.testing.assert_allclose(rows_x, 0.5 * np.eye(5))
    np.testing.assert_allclose(rows_r, X)


# ----------------------------------------------------------------------------------------------------- not in lanes


def products(x):
    return np.sum(np.tanh(np.outer(x, x) @ x))


def complex_numbers(x):
    z = 0j
    for i in range(len(x)):
        z = z * (x[i] + 1j * x[0]) + x[i]
    return (z * z.conjugate()).real


def reshaped(x):
    y = x[:4].copy().reshape((2, 2))
    return y[0, 1] * y[1, 0] ** 2 * x[4]


def lists_of_arrays(x):
    kept = [x.copy()]
    for k in range(3):
        kept.append(kept[k] * x)
    return np.sum(kept[3]) * x[0]


def solved(x):
    a = np.eye(2) + 0.1 * np.outer(x[:2], x[:2])
    return np.sum(np.linalg.solve(a, x[2:4]))


def recursive(x, n):
    return x[0] * x[1] if n == 0 else np.sin(recursive(x, n - 1)) * x[2]


def ellipsis(x):
    y = np.zeros((2, 5))
    y[0] = x * x[0]
    s = 0.0
    for i in range(5):
        s += y[..., i][0] ** 2
    return s


@pytest.mark.parametrize(
    "f",
    [products, complex_numbers, reshaped, lists_of_arrays, solved, ellipsis],
    ids=lambda f: f.__name__,
)
def test_of_other_operations(f):
    assert not in_lanes(check_hessian(f, X))


def test_two_precisions():
    def f(x):
        y = np.zeros(len(x), np.float32)
        for i in range(len(x)):
            y[i] = x[i]
        s = 0.0
        for i in range(len(x)):
            s += y[i] * x[i] ** 2 * x[0]
        return s

    hessian = zg.hessian(f)
    expected = np.diag(6.0 * X * X[0])
    expected[0] += 3.0 * X**2
    expected[:, 0] += 3.0 * X**2
    np.testing.assert_allclose(hessian(X), expected, rtol=1e-6)
    assert not in_lanes(hessian.source(X))


def test_an_array_without_axes():
    hessian = zg.hessian(lambda x: x[()] ** 3)
    assert hessian(np.array(2.0)) == 12.0
    assert not in_lanes(hessian.source(np.array(2.0)))


def test_recursion():
    assert not in_lanes(check_hessian(recursive, X, 3))


@pytest.mark.compiled
def test_a_parallel_function():
    @numba.njit(parallel=True)
    def f(x):
        s = 0.0
        for i in numba.prange(len(x)):
            s += np.sin(x[i]) * x[i] * x[0]
        return s

    assert not in_lanes(check_hessian(f, X))


# ---------------------------------------------------------------------------------- the text, and derivatives of it


@pytest.mark.long
@pytest.mark.compiled
def test_the_source_alone_gives_the_same():
    hessian = zg.hessian(guarded)
    found, source = hessian(X), hessian.source(X)
    np.testing.assert_allclose(plain(source)(X), found, rtol=1e-14)
    scope: dict[str, Any] = {"__name__": "alone"}
    exec(compile(source, "<alone>", "exec"), scope)
    np.testing.assert_allclose(scope["guarded_hessian"](X), found, rtol=1e-14)


@pytest.mark.compiled
@pytest.mark.parametrize("fastmath", one_in(2, [False, True]))
@pytest.mark.parametrize("f", [branches, until_the_data_say_so, buffers], ids=lambda f: f.__name__)
def test_compiled(f, fastmath):
    compiled = numba.njit(fastmath=fastmath)(f)
    with interpreter():
        expected = zg.hessian(f)(X)
    hessian = zg.hessian(compiled)
    np.testing.assert_allclose(hessian(X), expected, rtol=1e-12)


@pytest.mark.compiled
def test_indices_that_are_out_of_bounds_are_found():
    @numba.njit(boundscheck=True)
    def f(x, n):
        s = 0.0
        for i in range(-2, n):
            s += x[i] ** 2 * x[0]
        return s

    hessian = zg.hessian(f)
    assert hessian(X, 3).shape == (5, 5)
    with pytest.raises(IndexError):
        hessian(X, 6)


@pytest.mark.compiled
@pytest.mark.parametrize("f", [a_list_that_is_stored_in, a_list_that_is_read], ids=lambda f: f.__name__)
def test_lists_compiled(f):
    assert in_lanes(check_hessian(f, X))


@pytest.mark.compiled
def test_parameters_with_the_names_of_helpers():
    def f(x, lanes, lane, lanes_at):
        s = 0.0
        for i in range(len(x)):
            s += np.sqrt(abs(x[i])) * x[0] * lanes * lanes + lane * lanes_at * s
        return s

    at = (X, 0.3, 0.2, 0.1)
    assert "lanes_at_1" in check_hessian(f, *at)
    found = zg.gradient(lambda lanes, lane, n: power_of_both(lanes, lane, n), wrt=(0, 1))(1.1, 0.9, 3)
    np.testing.assert_allclose(found, (3 * 1.1**2 * 0.9**3, 3 * 1.1**3 * 0.9**2))


def power_of_both(a, b, n):
    r = 1.0
    for _ in range(n):
        r *= a * b
    return r


def test_hessians_of_functions_of_hessians():
    def recurrence(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * x[0] * s + x[i]
        return s

    hessian = zg.hessian(recurrence)

    def f(x):
        return hessian(x)[0, 1] * x[0]

    check_hessian(f, X[:3])


def test_third_derivatives():
    hessian = zg.hessian(branches)

    def f(x):
        found = hessian(x)
        return np.sum(found * found)

    gradient = zg.gradient(f)
    assert not in_lanes(gradient.source(X))
    h = 1e-5
    expected = [(f(X + h * unit) - f(X - h * unit)) / (2 * h) for unit in np.eye(5)]
    np.testing.assert_allclose(gradient(X), expected, rtol=1e-7)


# ----------------------------------------------------------------------------------------------------------- the IR


PRIMAL = """
primal f(%x: f64, %w: f64, %a: f64[:]) -> f64
b0:
  %y = mul %x, %w : f64
  %n = dim %a, 0 : i64
  %b = zeros %n : f64[:]
  setitem %b, %y, 0
  %z = getitem %b, 0 : f64
  return %z
"""


def test_an_operation_for_all_directions():
    (primal,) = parse(PRIMAL)
    pushed = push_in_lanes((), primal, [primal.params[0]], 2, {})
    assert [param.hint for param in pushed.tangents] == ["tx_0", "tx_1"]
    shown = text(pushed.function)
    assert "%tx = lanes %tx_0, %tx_1 : f64x2" in shown
    assert "%ty = mul %tx, %w : f64x2" in shown
    assert "zeros %n : f64x2[:]" in shown
    assert "lane %tz, 1 : f64" in shown


def test_a_known_tangent_is_no_parameter():
    (primal,) = parse(PRIMAL)
    x = primal.params[0]
    known = {x: [Const(1.0, types.float64), None]}
    pushed = push_in_lanes((), primal, [x], 2, known)
    assert len(pushed.function.params) == 4
    assert "lanes 1.0, %tx_1 : f64x2" in text(pushed.function)


def test_a_product_of_matrices_is_not_in_lanes():
    (primal,) = parse(
        """
        primal f(%a: f64[:, :], %b: f64[:]) -> f64[:]
        b0:
          %y = np.dot %a, %b : f64[:]
          return %y
        """
    )
    with pytest.raises(NotInLanes):
        push_in_lanes((), primal, [primal.params[1]], 3, {})


def test_types():
    for written in ("f64x4", "f32x8", "f64x3[:, :]", "(f64x2, i64)"):
        assert type_text(parse_type(written)) == written
    assert parse_type("f64x4") == parse_type("f64x4") != parse_type("f64x2")
