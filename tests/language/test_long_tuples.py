"""Loops over long tuples of numbers, which read an array of the items."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import gradient, hessian, value_and_gradient

T = tuple(0.3 + 0.1 * k for k in range(12))
PAIRS = tuple((0.3 + 0.1 * k, k) for k in range(10))
WEIGHTS = tuple(1.0 + k for k in range(12))


def summed(t, x):
    s = 0.0
    for v in t:
        s = s * x + math.sin(v)
    return s


def in_several_ways(t, x):
    s = 0.0
    for k, v in enumerate(t):
        for u, w in zip(t, WEIGHTS):  # noqa: B905
            if u > v:
                break
            s += u * v * w * k
        if k == 7:
            continue
        s += x * v
    return s


def made_in_a_loop(x, n):
    s = x
    for _ in range(n):
        for v in (s, x, s * x, 1.0, x, 2.0, s, x, x, s):
            s += 0.01 * v * v
    return s


def of_constants(x):
    s = 0.0
    for c in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        s = s * x + c
    return s


def of_pairs(pairs, x):
    s = 0.0
    for v, k in pairs:
        s += v**2 * x * k
    return s


def assigned_in_the_loop(x, y):
    v = 1
    s = 0.0
    for q in (x, v, y, v):
        v = x * 0.5
        s += q * y
    return s + v


def integers_in_between(x, y):
    v = 1
    s = 0.0
    for q in (x, v, y, v, y, v, x, x, v):
        v = 2.0
        s += q
    return s * v


@pytest.mark.parametrize(
    ("f", "args"),
    [(summed, (T, 0.9)), (in_several_ways, (T, 0.9)), (made_in_a_loop, (0.4, 3)), (of_constants, (0.7,))],
    ids=["summed", "in_several_ways", "made_in_a_loop", "of_constants"],
)
def test_loops(f, args):
    check_derivatives(f, *args)


@pytest.mark.parametrize("f", [assigned_in_the_loop, integers_in_between])
def test_a_variable_in_the_tuple_is_assigned_in_the_loop(f):
    x, y = 0.7, 0.3
    value, slopes = value_and_gradient(f)(x, y)
    assert value == pytest.approx(f(x, y), rel=1e-14)
    for number, slope in enumerate(slopes):
        step = np.eye(2)[number] * 1e-6
        expected = (f(x + step[0], y + step[1]) - f(x - step[0], y - step[1])) / 2e-6
        assert slope == pytest.approx(expected, rel=1e-7)


def test_integers_have_no_gradient():
    found, dx = gradient(of_pairs)(PAIRS, 2.0)
    assert dx == pytest.approx(sum(v * v * k for v, k in PAIRS))
    for (v, k), (dv, dk) in zip(PAIRS, found, strict=True):
        assert dv == pytest.approx(4.0 * v * k)
        assert dk is None


def test_second_derivatives():
    rows = hessian(summed, wrt="t")(T, 0.9)
    np.testing.assert_allclose(rows, np.diag([-math.sin(v) * 0.9 ** (11 - k) for k, v in enumerate(T)]), rtol=1e-13)


def test_what_is_emitted():
    df = gradient(summed)
    source = df.source(T, 0.9)
    assert "np.array(t)" in source
    assert source.count(" if ") == 0
    short = df.source(T[:3], 0.9)
    assert "np.array" not in short


def test_the_items_may_be_of_other_types():
    items = tuple(np.float32(v) for v in T)
    found, dx = gradient(summed)(items, 0.9)
    plain, expected = gradient(summed)(T, 0.9)
    assert dx == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(found, plain, rtol=1e-6)
