"""Iterations of independent loops side by side, compiled: against differences in plain Python, and the text alone."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.plain import plain
from zygote_py.emit import target
from zygote_py.ir.passes.lanes import iterations
from zygote_py.ir.passes.lanes.iterations import iterations_in_lanes
from zygote_py.ir.passes.lanes.widened import NARROW, WIDE

RNG = np.random.default_rng(4)
X = RNG.normal(size=(2 * WIDE + 2 * NARROW + 3, 4))
W = RNG.normal(size=4)


@pytest.fixture
def widened(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each function that is emitted, whether iterations of a loop run in lanes, whatever that costs."""
    monkeypatch.setattr(iterations, "is_worth_it", lambda *_: True)
    return watched(monkeypatch)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    found: list[bool] = []

    def spy(function: Any) -> list[Any]:
        places = iterations_in_lanes(function)
        found.append(bool(places))
        return places

    monkeypatch.setattr(target, "iterations_in_lanes", spy)
    return found


def prices(x, w, s):
    """Paths, whose values enter by a kink."""
    total = 0.0
    for i in range(x.shape[0]):
        value = s
        for t in range(x.shape[1]):
            value *= math.exp(0.2 * x[i, t] * w[t] - 0.02 * w[t] * w[t])
        total += max(value - 0.75, 0.0) + min(value, 1.05)
    return total / x.shape[0]


def scratch(x, w, s):
    """An array that each iteration fills anew, and reads by a place that differs."""
    total, d = 0.0, x.shape[1]
    centered = np.empty(d)
    for i in range(x.shape[0]):
        for j in range(d):
            centered[j] = (x[i, j] - w[j]) * s
        for j in range(1, d):
            for k in range(j):
                centered[j] += centered[k] * w[k] * 0.5
        largest = np.max(centered)
        for j in range(d):
            total -= math.exp(centered[j] - largest) + largest * centered[np.argmin(centered)]
    return total


def divided(x, w, s):
    """Quotients, roots and conditions of values."""
    total = 0.0
    for i in range(1, x.shape[0]):
        y = 0.3
        for j in range(x.shape[1]):
            root = math.sqrt(1.5 + math.sin(x[i, j] * x[i - 1, j]) + y * y)
            y = root / (2.0 + math.cos(y * w[j])) + min(root, 1.9) + abs(x[i, j]) * s
        total += y * float(i)
    return total


def several(x, w, s):
    """A matrix for each iteration, two sums, and numbers of the iteration as floats."""
    first, second, d = 0.0, s, x.shape[1]
    q = np.empty((d, d))
    for i in range(x.shape[0]):
        for j in range(d):
            for k in range(d):
                q[j, k] = math.sin(x[i, j] * w[k]) + 0.01 * i
        for j in range(d):
            for k in range(d):
                first += q[j, k] * q[k, j] * x[i, k]
        second -= q[0, 1] * s
    return first * 0.1 + second


def same_for_all(x, w, s):
    """Terms that are the same in all iterations, and constants."""
    total = 0.0
    for i in range(x.shape[0]):
        value = 0.3
        for t in range(x.shape[1]):
            value = math.exp(0.1 * x[i, t] * value - 0.02 * w[t] * w[t])
            total += w[t] + 0.25 * w[0] * s
        total += value
    return total


@pytest.mark.parametrize("f", [prices, scratch, divided, several])
def test_gradients(f, widened):
    gradient = zg.value_and_gradient(f, mode="reverse")
    for count in (len(X), WIDE, WIDE - 1, NARROW, NARROW - 1, *([0] if f is not prices else [])):
        args = (X[:count], W, 0.8)
        value, found = gradient(*args)
        assert value == pytest.approx(f(*args), rel=1e-12)
        by_difference = slopes(f, args, (0, 1, 2), np.random.default_rng(1))
        assert by_difference.doubt is None
        assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    assert any(widened)


def test_sums_of_what_is_the_same_for_all(widened):
    found = zg.gradient(same_for_all, mode="reverse")(X, W, 0.8)
    by_difference = slopes(same_for_all, (X, W, 0.8), (0, 1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    assert any(widened)


def test_the_text_is_that_of_one_iteration_at_a_time(widened):
    gradient = zg.gradient(scratch, mode="reverse")
    found = gradient(X, W, 0.8)
    assert any(widened)
    text = gradient.source(X, W, 0.8)
    assert "lanes(" not in text
    for ours, alone in zip(found, plain(text)(X, W, 0.8), strict=True):
        np.testing.assert_allclose(ours, alone, rtol=1e-12, atol=1e-13)


def test_values_are_added_up_in_order(widened):
    def total(x, s):
        found = s
        for i in range(x.shape[0]):
            term = x[i, 0]
            for j in range(x.shape[1]):
                term = term * 0.5 + x[i, j]
            found += term * s
        return found

    def total_of_all(x, s):
        found = s
        for i in range(x.shape[0]):
            term = 0.2
            for j in range(x.shape[1]):
                term = term * 0.5 + x[i, j] * s
                found -= term
                found += term * term
        return found

    x = RNG.normal(size=(1003, 4)) * 10.0 ** RNG.integers(-9, 9, size=(1003, 1))
    for f in (total, total_of_all):
        value, _ = zg.value_and_gradient(f, mode="reverse")(x, 0.7)
        assert value == numba.njit(f)(x, 0.7)
    assert widened == [True, True]


def doubled(x, w):
    found = 0.0
    for i in range(x.shape[0]):
        term = 1.0
        for j in range(x.shape[1]):
            term = term * 0.5 + np.sin(x[i, j] * w[j])
        found += term * term
    return found


def test_several_terms_in_an_iteration_and_lengths_below_zero(widened):
    def several_terms(x, w, m, p):
        total = 0.0
        for i in range(x.shape[0]):
            y = 0.3
            for j in range(x.shape[1]):
                y = y * w[j] / (1.5 + y * y) + x[i, j]
            total += y
            total += y * y
        return total

    def nested_terms(x, w, m, p):
        total = 0.0
        for i in range(x.shape[0]):
            y = 0.3
            for _ in range(m):
                for j in range(p):
                    y = y * w[j] / (1.5 + y * y) + x[i, j]
                    total += y
        return total

    for f in (several_terms, nested_terms):
        gradient, compiled = zg.value_and_gradient(f, wrt=(0, 1), mode="reverse"), numba.njit(f)
        for m, p in ((2, 4), (-1, 4), (-5, 4), (4, -1), (-(10**9), 4), (0, 10**12)):
            args = (X, W, m, p)
            value, found = gradient(*args)
            assert value == compiled(*args)
            by_difference = slopes(f, args, (0, 1), np.random.default_rng(1))
            assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    assert all(widened)


def test_booleans_of_an_iteration(widened):
    def f(b, x, w):
        total = 0.0
        for i in range(x.shape[0]):
            y = 0.3
            for j in range(w.shape[0]):
                y = y * w[j] / (1.5 + y * y) + x[i, j] * b[i, j]
            total += y
        return total

    args = (X > 0.1, X, W)
    found = zg.gradient(f, wrt=(1, 2), mode="reverse")(*args)
    by_difference = slopes(f, args, (1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    assert all(widened)


def test_single_precision(widened):
    def total(x, w):
        found = np.float32(0.0)
        for i in range(x.shape[0]):
            term = np.float32(1.0)
            for j in range(x.shape[1]):
                term = term * np.float32(0.5) + np.sin(x[i, j] * w[j])
            found += term * term
        return found

    x, w = X.astype(np.float32), W.astype(np.float32)
    dx, dw = zg.gradient(total, mode="reverse")(x, w)
    assert dx.dtype == dw.dtype == np.float32
    (expected,) = slopes(doubled, (X, W), (0, 1)).products
    np.testing.assert_allclose(np.concatenate([dx.ravel(), dw]), expected, rtol=2e-4, atol=2e-4)
    assert any(widened)


def test_functions_of_vectors(monkeypatch):
    found = watched(monkeypatch)
    dx, dw = zg.gradient(numba.njit(fastmath=True)(doubled), mode="reverse")(X, W)
    (expected,) = slopes(doubled, (X, W), (0, 1)).products
    np.testing.assert_allclose(np.concatenate([dx.ravel(), dw]), expected, rtol=1e-9, atol=1e-9)
    assert found == [True]


def test_division_by_zero(widened):
    def quotients(x, w):
        total = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                total += w[j] / x[i, j]
        return total

    by_one, x = zg.gradient(quotients, mode="reverse"), X.copy()
    x[WIDE + 2, 1] = 0.0
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        by_one(x, W)
    x[WIDE + 2, 1] = 2.0
    np.testing.assert_allclose(by_one(x, W)[1], np.sum(1.0 / x, axis=0), rtol=1e-12)
    assert any(widened)


def branches(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        y = 0.0
        for j in range(x.shape[1]):
            y += x[i, j] * w[j]
        if y > 0.1:
            for j in range(x.shape[1]):
                total += math.exp(y * x[i, j])
    return total


def counts(x, w):
    total, used = 0.0, 0
    for i in range(x.shape[0]):
        y = 0.3
        for j in range(x.shape[1]):
            y = y * w[j] + x[i, j]
        used += i % 3
        total += y * y
    return total * used


def lengths(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        y = 0.3
        for j in range(i % 4):
            y = y * w[j] + x[i, j]
        total += y * y
    return total


def chained(x, w):
    y = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y = math.sin(y * w[j]) + x[i, j]
    return y


def kept(x, w):
    total, a = 0.0, np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            a[j] = 0.5 * a[j] + x[i, j] * w[j]
            total += a[j] * a[j]
    return total


def counted_in_memory(x, w):
    """Memory without a shadow hands on from iteration to iteration."""
    total, c = 0.0, np.zeros(1, np.int64)
    for i in range(x.shape[0]):
        c[0] += 1
        y = 0.3
        for j in range(x.shape[1]):
            y = math.sin(y * w[j]) + x[i, j] * c[0]
        total += y
    return total


def filtered(w):
    total, mean = 0.0, np.zeros(4)
    for i in range(X.shape[0]):
        y = 0.3
        for j in range(4):
            mean[j] = 0.9 * mean[j] + 0.1 * X[i, j]
            y = y * w[j] / (1.5 + y * y) + mean[j]
        total += y
    return total


def kept_from_run_to_run(x, w):
    total, a = 0.0, np.empty(4)
    for t in range(3):
        for i in range(x.shape[0]):
            y = 0.3
            for j in range(4):
                if t == 0:
                    a[j] = X[j, j]
                y = y * w[j] / (1.5 + y * y) + x[i, j] * a[j]
            total += y
    return total


def drawn(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        y = 0.3
        for j in range(x.shape[1]):
            y = y * w[j] + x[i, j] * np.random.random()
        total += y
    return total


def stopped(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        y = 0.3
        for j in range(x.shape[1]):
            y = y * w[j] + x[i, j]
            if y > 2.0:
                break
        total += y
    return total


def rows(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        total += math.sin(np.dot(x[i], w)) * np.sum(np.cos(x[i] * w))
    return total


def by_place(x, w):
    total = 0.0
    for i in range(x.shape[0]):
        y = 0.3
        for j in range(x.shape[1]):
            y = y * w[(i + j) % 4] + math.exp(x[i, j])
        total += y
    return total


APART = [branches, counts, lengths, chained, kept, counted_in_memory, kept_from_run_to_run, drawn, stopped, rows]


@pytest.mark.interpreted
@pytest.mark.parametrize("f", [*APART, by_place])
def test_others_run_one_at_a_time(f, widened):
    gradient = zg.gradient(f, mode="reverse")
    gradient.source(X, W)
    assert any(widened) == (f is by_place)
    if f is drawn:
        return
    args = (X, W)
    by_difference = slopes(f, args, (0, 1), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(gradient(*args))) < 1e-7


def test_memory_without_a_shadow(widened):
    gradient = zg.value_and_gradient(filtered, mode="reverse")
    value, found = gradient(W)
    assert value == numba.njit(filtered)(W)
    assert slopes(filtered, (W,), (0,)).off(np.ones(1), real_parts((found,))) < 1e-7
    assert not any(widened)


def test_conditions_and_largest_of_three(widened):
    def f(x, w):
        total = 0.0
        for i in range(x.shape[0]):
            y = 0.3
            for j in range(x.shape[1]):
                y = y * w[j] / (1.5 + y * y) + max(x[i, j], y, w[j]) + x[i, j] * ((x[i, j] > 0.0) != (y > 0.2))
            total += y
        return total

    gradient, x = zg.value_and_gradient(f, mode="reverse"), X[: WIDE + NARROW + 3]
    value, found = gradient(x, W)
    assert value == numba.njit(f)(x, W)
    by_difference = slopes(f, (x, W), (0, 1), np.random.default_rng(1))
    assert by_difference.doubt is None
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    assert any(widened)


@pytest.mark.parametrize("by_setting", [False, True])
def test_bounds_are_checked(by_setting, widened, monkeypatch):
    def f(w, x, n):
        total = 0.0
        for i in range(n):
            y = 0.3
            for j in range(w.shape[0]):
                y = y * w[j] / (1.5 + y * y) + x[i, j]
            total += y
        return total

    if by_setting:
        monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    gradient = zg.gradient(f if by_setting else numba.njit(boundscheck=True)(f), wrt=0, mode="reverse")
    gradient(W, X, len(X))
    with pytest.raises(IndexError):
        gradient(W, X[:WIDE].copy(), 2 * WIDE)
    assert any(widened) == by_setting  # whose functions run as their text says


def test_rows_that_are_longer_than_what_is_read(widened):
    def f(x, w):
        total = 0.0
        for i in range(x.shape[0]):
            y = 0.3
            for j in range(w.shape[0]):
                y = y * w[j] / (1.5 + y * y) + x[i, j]
            total += y
        return total

    gradient = zg.gradient(f, mode="reverse")
    for columns in (4, 8, 9, 100):
        x = np.zeros((len(X), columns))
        x[:, :4] = X
        dx, dw = gradient(x, W)
        expected = slopes(f, (x, W), (0, 1), np.random.default_rng(1))
        assert expected.off(np.ones(1), real_parts((dx, dw))) < 1e-7
    assert any(widened)


def test_which_error_comes_first(widened):
    def f(x, w):
        total = 0.0
        for i in range(x.shape[0]):
            y = 0.3
            for j in range(x.shape[1]):
                y = y * w[j] + 1.0 / x[i, j]
            if w[0] > 5.0:
                raise ValueError("too large")
            total += y
        return total

    gradient, x = zg.gradient(f, mode="reverse"), X.copy()
    x[3, 1] = 0.0
    with pytest.raises(ValueError, match="too large"):
        gradient(x, W + 9.0)
    with pytest.raises(ZeroDivisionError):
        gradient(x, W - 9.0)
    assert not any(widened)


def test_places_that_differ_by_iteration(widened):
    gradient = zg.gradient(by_place, mode="reverse")
    by_difference = slopes(by_place, (X, W), (0, 1), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(gradient(X, W))) < 1e-7
    assert any(widened)
