"""Products of vectors that a loop adds to a matrix, gathered: against differences along a direction."""

from __future__ import annotations

import numpy as np
import pytest

import zygote_py as zg
from tests.checking.left_out import check_not_made
from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.modes import one_in
from tests.plain import plain

RNG = np.random.default_rng(11)
W = RNG.normal(size=(50, 48)) / 8.0
V = RNG.normal(size=(48, 50)) / 8.0


def chained(w, v, h, n):
    """One product by a vector on each side in each round."""
    total = 0.0
    for _ in range(n):
        a = np.tanh(w @ h)
        h = np.tanh(a @ v.T)
        total += np.sum(a)
    return total + np.sum(h * h)


def by_rows(w, v, h, n):
    """Rows of a matrix, downwards, and two products with one matrix."""
    states = np.zeros((n + 1, h.shape[0]))
    states[n] = h
    for t in range(n, 0, -1):
        a = w @ states[t]
        states[t - 1] = 0.5 * np.sin(v @ a) + 0.1 * (v @ (a * a))
    return np.sum(states)


def rows_of_a_matrix(w, v, h, n):
    """Vectors that have a gradient as well."""
    x = np.outer(np.sin(np.arange(n + 1.0)), h)
    total = 0.0
    for t in range(n):
        total += np.sum(np.sin(w @ x[t])) * v[0, 0]
    return total


def nested(w, v, h, n):
    total = 0.0
    for k in range(2):
        g = h * (k + 1.0)
        for _ in range(n):
            g = np.tanh(v @ (w @ g))
        total += np.sum(g)
    return total


def until(w, v, h, n):
    """A loop without a count."""
    k = 0
    while k < n and h[0] < 10.0:
        h = np.tanh(v @ np.tanh(w @ h))
        k += 1
    return np.sum(h)


def sometimes(w, v, h, n):
    """Products that some rounds leave out."""
    for t in range(n):
        h = np.tanh(v @ np.tanh(w @ h)) if t % 3 != 1 else h * 0.9
    return np.sum(h)


def changed(w, v, h, n):
    """A matrix that each round changes."""
    m = w.copy()
    for t in range(n):
        h = np.tanh(v @ (m @ h))
        m[t % 5, 0] = h[0]
    return np.sum(h) + np.sum(m)


@pytest.mark.interpreted
@pytest.mark.parametrize("f", [chained, by_rows, rows_of_a_matrix, nested, until, sometimes, changed])
@pytest.mark.parametrize("n", [70, 3, 0])
def test_gradients(f, n):
    h = RNG.normal(size=48)
    source = zg.gradient(f, wrt=(0, 1, 2), mode="reverse").source(W, V, h, n)
    assert ("gather(" in source) == (f not in (sometimes, until))
    by_difference = slopes(f, (W, V, h, n), (0, 1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(plain(source)(W, V, h, n))) < 1e-7


@pytest.mark.interpreted
def test_small_matrices():
    w, v, h = W[:4, :3].copy(), V[:3, :4].copy(), RNG.normal(size=3)
    found = plain(zg.gradient(chained, wrt=(0, 1, 2), mode="reverse").source(w, v, h, 9))(w, v, h, 9)
    by_difference = slopes(chained, (w, v, h, 9), (0, 1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7


@pytest.mark.interpreted
def test_matrices_of_few_rows():
    """Whose vectors would take more memory than they do."""

    def f(w, x, n):
        s = 0.1
        for _ in range(n):
            a = np.tanh((w @ x) * s)
            s += a[0] * a[1]
        return s

    w, x = RNG.normal(size=(2, 1500)) / 40.0, RNG.normal(size=1500)
    found = plain(zg.gradient(f, wrt=(0, 1), mode="reverse").source(w, x, 20))(w, x, 20)
    by_difference = slopes(f, (w, x, 20), (0, 1), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7


@pytest.mark.long
def test_compiled():
    h = RNG.normal(size=48)
    gradient = zg.gradient(chained, wrt=(0, 1, 2), mode="reverse")
    for n in (130, 64, 2):
        by_difference = slopes(chained, (W, V, h, n), (0, 1, 2), np.random.default_rng(1))
        assert by_difference.off(np.ones(1), real_parts(gradient(W, V, h, n))) < 1e-7
    single = [each.astype(np.float32) for each in (W, V, h)]
    for one, other in zip(gradient(*single, 70), gradient(W, V, h, 70), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=1e-4)
    _, back = zg.pullback(chained, W, V, h, 70)
    for one, other in zip(back(1.0), gradient(W, V, h, 70), strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    with pytest.raises(ValueError, match="size"):
        gradient(W, V, h[:-1], 3)


def rectified(w, v, h, n):
    """A selection, which may leave something out that is not finite."""
    for _ in range(n):
        a = w @ h
        a[np.where(a < 0.0)] = 0.0
        h = np.tanh(a @ v.T) + 0.1 * h
    return np.sum(h)


def _of_rectified(w, v, h, n):
    """The gradients of `rectified`, from the rules of calculus."""
    states, products = [h], []
    for _ in range(n):
        products.append(w @ states[-1])
        states.append(np.tanh(np.maximum(products[-1], 0.0) @ v.T) + 0.1 * states[-1])
    dw, dv, dh = np.zeros_like(w), np.zeros_like(v), np.ones_like(h)
    for t in range(n - 1, -1, -1):
        a = np.maximum(products[t], 0.0)
        dt = dh * (1.0 - np.tanh(v @ a) ** 2)
        dv += np.outer(dt, a)
        da = (v.T @ dt) * (products[t] > 0.0)
        dw += np.outer(da, states[t])
        dh = w.T @ da + 0.1 * dh
    return dw, dv, dh


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [48, 4])
def test_guarded_products(size):
    w, v, h = W[: size + 2, :size].copy(), V[:size, : size + 2].copy(), RNG.normal(size=size)
    source = zg.gradient(rectified, wrt=(0, 1, 2), mode="reverse").source(w, v, h, 9)
    assert "gather_guarded_row(" in source
    for found, expected in zip(plain(source)(w, v, h, 9), _of_rectified(w, v, h, 9), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def kept_of_rows(w, x, kept):
    total = 0.0
    for t in range(x.shape[0]):
        total += np.sum(np.where(kept[t], x[t] @ w, 0.0))
    return total


def kept_of_columns(w, x, kept):
    total = 0.0
    for t in range(x.shape[0]):
        total += np.sum(np.where(kept[t], w.T @ x[t], 0.0))
    return total


def kept_of_transposed(w, x, kept):
    total = 0.0
    for t in range(x.shape[0]):
        total += np.sum(np.where(kept[t], w @ x[t], 0.0))
    return total


@pytest.mark.interpreted
@pytest.mark.parametrize("f", [kept_of_rows, kept_of_columns, kept_of_transposed])
@pytest.mark.parametrize("size", [48, 3])
def test_what_is_not_finite_is_left_out(f, size):
    """Rounds whose vectors hold infinities and nan, of which nothing is kept, beside others."""
    x, kept = RNG.normal(size=(70, size)), RNG.random(size=(70, size)) < 0.6
    for t, value in ((5, np.inf), (6, np.nan), (66, -np.inf)):
        x[t, t % size], kept[t] = value, False
    of_each = np.where(np.isfinite(x), x, 0.0)
    expected = np.einsum("tk,tj->kj", of_each, kept.astype(float))
    w = RNG.normal(size=(size, size))
    source = zg.gradient(f, wrt="w", mode="reverse").source(w, x, kept)
    assert ("gather_guarded_" in source) != (f is kept_of_columns)  # which adds to a view of the gradient
    found = plain(source)(w, x, kept)
    np.testing.assert_allclose(found.T if f is kept_of_transposed else found, expected, rtol=1e-10, atol=1e-12)


def kept_of_matrices(w, v, x, kept):
    total = 0.0
    for t in range(x.shape[0]):
        total += np.sum(np.where(kept[t], x[t] @ w, 0.0)) + np.sum(np.where(kept[t], v @ x[t], 0.0))
    return total


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [8, 3])
def test_matrices_that_are_not_finite(size):
    x, kept = RNG.normal(size=(5, size, size)), RNG.random(size=(5, size, size)) < 0.6
    x[1, 2, 0], kept[1] = np.inf, False
    x[3, 0, 1], kept[3] = np.nan, False
    of_each, weights = np.where(np.isfinite(x), x, 0.0), kept.astype(float)
    w, v = RNG.normal(size=(2, size, size))
    source = zg.gradient(kept_of_matrices, wrt=("w", "v"), mode="reverse").source(w, v, x, kept)
    assert "add_guarded_dot_right(" in source
    assert "add_guarded_dot_left(" in source
    dw, dv = plain(source)(w, v, x, kept)
    np.testing.assert_allclose(dw, np.einsum("tki,tkj->ij", of_each, weights), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dv, np.einsum("tik,tjk->ij", weights, of_each), rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------- one by one

_W, _V, _H = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 4)), np.array([0.3, -0.5, 0.7])


def once(w, v, h, n):
    """Not in a loop."""
    return np.sum(np.tanh(v @ np.tanh(w @ h))) * n


def of_matrices(w, v, h, n):
    total, x = 0.0, np.outer(h, h)
    for _ in range(n):
        total += np.sum(np.tanh(x @ (v @ w)))
        x = x * 0.9
    return total


def of_a_matrix_of_each_round(w, v, h, n):
    for t in range(n):
        m, q = w * (t + 1.0), v * (t + 2.0)
        h = np.tanh(q @ np.sin(m @ h))
    return np.sum(h * h)


def of_planes(w, v, h, n):
    """Each round has a matrix of its own."""
    p = np.zeros((n, 4, 3))
    for t in range(n):
        p[t] = w * (t + 1.0)
    for t in range(n):
        h = np.tanh(p[t, :3] @ h)
    return np.sum(h * h) * v[0, 0]


def in_some_rounds(w, v, h, n):
    x = np.outer(np.sin(np.arange(1.0, n + 1.0)), h)
    total = 0.0
    for t in range(n):
        if t != 1:
            total += np.sum(np.sin(w @ x[t])) * v[0, 0]
    return total


def returned_early(w, v, h, n):
    for _ in range(n):
        h = np.tanh(v @ np.tanh(w @ h))
        if h[0] > 2.0:
            return h[0]
    return np.sum(h * h)


def of_complex_numbers(w, v, h, n):
    total = 0.0
    for k in range(1, n):
        total += np.sum(np.abs((w + 1j * v.T) @ (h * (k + 0.5j))) ** 2)
    return total


ONE_BY_ONE = [once, of_matrices, of_a_matrix_of_each_round, of_planes]
ONE_BY_ONE += [in_some_rounds, returned_early, of_complex_numbers]


@pytest.mark.interpreted
@pytest.mark.parametrize("f", one_in(3, ONE_BY_ONE), ids=lambda f: f.__name__)
def test_products_that_are_not_gathered(f):
    check_not_made("gathered-products", f, _W, _V, _H, 3)
