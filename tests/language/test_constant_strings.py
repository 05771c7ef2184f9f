"""Branches on strings that are known while compiling: the other way is not compiled."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import zygote_py as zg

pytestmark = pytest.mark.compiled


@numba.njit
def price(x, q, kind):
    if kind == "call":
        v = np.maximum(np.full(5, 2.0) - x, 0)
        for j in range(4, 0, -1):
            v = q * v[0:j] + v[1 : j + 1]
        result = v[0]
    else:
        result = x * q
    return result


def test_the_way_of_a_constant():
    assert zg.gradient(lambda x, q: price(x, q, "put"))(1.5, 0.7) == (0.7, 1.5)
    dx, dq = zg.gradient(lambda x, q: price(x, q, "call"))(1.5, 0.7)
    assert dx == pytest.approx(-((1.0 + 0.7) ** 4))  # (2 - x) (1 + q)**4
    assert dq == pytest.approx(0.5 * 4.0 * (1.0 + 0.7) ** 3)


def test_the_way_of_an_argument():
    for kind in ("put", "call", ""):
        own = zg.gradient(price, wrt=(0, 1))(1.5, 0.7, kind)
        fixed = zg.gradient(lambda x, q, kind=kind: price(x, q, kind))(1.5, 0.7)
        np.testing.assert_allclose(own, fixed[:2])


def test_the_source_has_one_way():
    def f(x, q):
        kind = "put"
        if (kind == "put") & (kind != "call") & (q > 0.0):
            return x * q
        return x

    source = zg.gradient(f).source(1.0, 2.0)
    assert "put" not in source
    assert zg.gradient(f)(3.0, 2.0) == (2.0, 3.0)
