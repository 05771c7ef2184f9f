"""Arrays that are read by element: layouts, dimensions, dtypes, emptiness, sharing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.derivatives import PRECISELY, check_derivatives
from zygote_py import gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

rng = np.random.default_rng(5)


def weighted(x, a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j] ** 2 * x * (i + 1) + a[i, j] * j
    return s


LAYOUTS = {
    "C": np.ascontiguousarray(rng.normal(size=(3, 4))),
    "F": np.asfortranarray(rng.normal(size=(3, 4))),
    "strided": rng.normal(size=(6, 8))[::2, 1::2],
    "reversed": rng.normal(size=(3, 4))[::-1, ::-1],
    "transposed": rng.normal(size=(4, 3)).T,
    "broadcast": np.broadcast_to(rng.normal(size=4), (3, 4)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(layout):
    a = LAYOUTS[layout]
    check_derivatives(weighted, 0.7, a, **PRECISELY)
    _, da = gradient(weighted)(0.7, a)
    assert da.shape == a.shape
    assert da.dtype == a.dtype
    assert da.flags.writeable
    assert not np.shares_memory(da, a)


def test_a_read_only_array():
    a = rng.normal(size=(2, 3))
    a.flags.writeable = False
    check_derivatives(weighted, 0.7, a, **PRECISELY)


def dimensions_1(a):
    return a[0] * a[-1] + a[1] * a.shape[0] * len(a) * a.ndim * a.size


def dimensions_2(a):
    return a[0, 1] * a[-1, -2] + a[1, 0] * a.shape[1] * len(a)


def dimensions_3(a):
    s = 0.0
    n, m, k = a.shape
    for i in range(n):
        for j in range(m):
            for l in range(k):  # noqa: E741
                s += a[i, j, l] * a[i, -1, l] * (i + 2 * j + 3 * l)
    return s


def dimensions_4(a):
    s = 1.0
    for i in range(a.shape[0]):
        s *= a[i, 0, -1, i] + a[-1, 1, 0, -i]
    return s


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("f", "shape"),
    [(dimensions_1, (4,)), (dimensions_2, (3, 2)), (dimensions_3, (2, 3, 2)), (dimensions_4, (2, 2, 3, 2))],
)
def test_dimensions(f, shape):
    check_derivatives(f, rng.normal(size=shape), **PRECISELY)


def test_no_dimensions():
    df = gradient(lambda a, x: a[()] * x)
    da, dx = df(np.array(3.0), 2.0)
    assert da.shape == ()
    assert (float(da), dx) == (2.0, 3.0)


def test_negative_indices_that_vary():
    def f(a, x):
        s = x
        for i in range(-a.shape[0], a.shape[0]):
            s = s * x + a[i] * a[-1 - i]
        return s

    check_derivatives(f, rng.normal(size=5), 0.7, **PRECISELY)


def test_the_same_element_many_times():
    check_derivatives(lambda a: a[0] * a[0] * a[0] + a[0] * a[-2], np.array([1.5, 2.0]), **PRECISELY)


def test_an_index_that_depends_on_the_data():
    def f(a, k):
        s = 0.0
        i = k
        for _ in range(6):
            s += a[i] * a[i]
            i = (i * 3 + int(abs(a[i]))) % len(a)
        return s

    check_derivatives(f, rng.normal(size=5), 2, **PRECISELY)


def test_an_array_of_ints_as_index():
    def f(a, index):
        s = 1.0
        for i in index:
            s = s * a[i] + 0.5
        return s

    check_derivatives(f, rng.normal(size=4), np.array([0, 3, 3, 1]), **PRECISELY)
    assert gradient(f)(rng.normal(size=4), np.array([1, 2]))[1] is None


@pytest.mark.parametrize(
    "taken",
    [
        lambda a, i: a[i, 0:, np.newaxis] * np.arange(3.0),
        lambda a, i: a[None, i, :] * a[0],
        lambda a, i: a[:, None, i] ** 2,
        lambda a, i: a[..., i % 2, None] * np.arange(2.0),
        lambda a, i: a[a[:, 0] > 0.0, None] ** 2,
    ],
)
def test_an_array_of_ints_and_new_axes_as_index(taken):
    def f(a, index):
        found = taken(a, index)
        return np.sum(found * np.arange(found.size).reshape(found.shape))

    check_derivatives(
        f, np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 0.7], [0.4, -2.0, 1.5]]), np.array([0, 2, 2]), **PRECISELY
    )


@pytest.mark.compiled
def test_an_array_of_truth_values():
    def f(a, mask):
        s = 0.0
        for i in range(len(a)):
            if mask[i]:
                s += a[i] * a[i]
        return s

    check_derivatives(f, rng.normal(size=4), np.array([True, False, True, True]), **PRECISELY)


def test_zero_length():
    def f(x, a):
        s = x
        for v in a:
            s *= v
        for i in range(len(a)):
            s *= a[i]
        return s

    dx, da = gradient(f)(3.0, np.zeros(0))
    assert dx == 1.0
    assert da.shape == (0,)
    assert gradient(weighted)(1.0, np.zeros((0, 3)))[1].shape == (0, 3)
    assert gradient(weighted)(1.0, np.zeros((3, 0)))[1].shape == (3, 0)


def test_the_same_array_twice():
    def f(a, b):
        s = 0.0
        for i in range(len(a)):
            s += a[i] * a[i] * b[i]
        return s

    a = rng.normal(size=3)
    da, db = gradient(f)(a, a)
    np.testing.assert_allclose(da, 2 * a * a)
    np.testing.assert_allclose(db, a * a)
    assert not np.shares_memory(da, db)


def test_views_that_overlap():
    def f(a, b):
        return a[0] * b[0] + a[1] * b[1] * b[1]

    whole = np.array([1.0, 2.0, 3.0])
    da, db = gradient(f)(whole[:2], whole[1:])
    np.testing.assert_allclose(da, [2.0, 9.0])
    np.testing.assert_allclose(db, [1.0, 2 * 2.0 * 3.0])


def test_an_array_that_does_not_matter_has_zeros():
    a = rng.normal(size=(2, 3))
    dx, da = gradient(lambda x, a: x * a.shape[1])(2.0, a)
    assert dx == 3.0
    np.testing.assert_array_equal(da, np.zeros((2, 3)))
    assert da.dtype == np.float64


def test_an_array_that_only_steers_has_zeros():
    dx, da = gradient(lambda x, a: x * x if a[0] > a[1] else x)(2.0, np.array([2.0, 1.0]))
    assert dx == 4.0
    np.testing.assert_array_equal(da, [0.0, 0.0])


@pytest.mark.compiled
def test_float32():
    def f(a, x):
        s = np.float32(0.0)
        for v in a:
            s += v * v * x
        return s

    a = rng.normal(size=5).astype(np.float32)
    da, dx = gradient(f)(a, np.float32(1.5))
    assert da.dtype == np.float32
    np.testing.assert_allclose(da, 3 * a, rtol=1e-6)
    np.testing.assert_allclose(dx, np.sum(a * a), rtol=1e-5)


def test_float32_in_a_float64_sum():
    def f(a, w):
        s = 0.0
        for i in range(len(a)):
            s += a[i] * w[i]
        return s

    a, w = rng.normal(size=5).astype(np.float32), rng.normal(size=5)
    da, dw = gradient(f)(a, w)
    assert (da.dtype, dw.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(da, w, rtol=1e-6)
    np.testing.assert_allclose(dw, a)


def test_nan_and_infinity_are_data():
    def f(a):
        s = 0.0
        for v in a:
            s += v * v
        return s

    value, da = value_and_gradient(f)(np.array([1.0, np.nan, np.inf]))
    assert math.isnan(value)
    np.testing.assert_equal(da, [2.0, np.nan, np.inf])


def test_the_gradient_is_new_at_each_call():
    f = lambda a: a[0] * a[1]
    df = gradient(f)
    first = df(np.array([2.0, 3.0]))
    first[0] = 100.0
    np.testing.assert_array_equal(df(np.array([2.0, 3.0])), [3.0, 2.0])


def test_reads_that_are_not_reached_leave_zeros():
    def f(a, n):
        s = 0.0
        for i in range(len(a)):
            if i == n:
                break
            s += a[i] ** 3
        return s

    check_derivatives(f, rng.normal(size=5), 2, at=[(rng.normal(size=5), 9)], **PRECISELY)


def test_two_passes_over_an_array():
    def log_sum_exp(a):
        largest = a[0]
        for v in a:
            largest = max(largest, v)
        s = 0.0
        for v in a:
            s += math.exp(v - largest)
        return largest + math.log(s)

    check_derivatives(log_sum_exp, rng.normal(size=6), **PRECISELY)


def test_matrix_times_vector_by_loops():
    def f(m, v, w):
        s = 0.0
        for i in range(m.shape[0]):
            dot = 0.0
            for j in range(m.shape[1]):
                dot += m[i, j] * v[j]
            s += math.tanh(dot) * w[i]
        return s

    check_derivatives(f, rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=3), **PRECISELY)


@pytest.mark.parametrize(
    "read",
    [
        lambda y: np.dot(y[:, None, 0], y[None, 1]),
        lambda y: y[..., 0] * y[..., 1],
        lambda y: y[None, 0] * y[None],
        lambda y: y[None, ..., None],
    ],
)
def test_results_of_opaque_operations_are_read_with_new_axes(read):
    """`None` and `...` are constants, too, but no numbers of the items of a tuple."""

    def product(a, b):
        return read(np.dot(a, b))

    def solution(a, b):
        return read(np.linalg.solve(a, b))

    a, b = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([[1.0, -2.0], [0.5, 0.25]])
    check_derivatives(product, a, b)
    check_derivatives(solution, a, b)
