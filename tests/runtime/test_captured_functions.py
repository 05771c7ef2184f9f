"""Functions that are captured: a call compiles nothing that was compiled before."""

import math

import numpy as np
import pytest
from numba import njit

from zygote_py import gradient

pytestmark = pytest.mark.interpreted

SCALE = 0.5


def pull(x, out):
    for i in range(len(x)):
        out[i] = math.sin(x[i]) * SCALE


def test_a_function_with_the_name_of_another():
    pull_ = njit(pull)

    def made(pull):
        def f(x):
            out = np.zeros(len(x))
            pull(x, out)
            pull(out, out)
            return np.sum(out)

        return f

    df = gradient(made(pull_))
    x = np.array([0.3, 1.0])
    inner = 0.5 * np.sin(x)
    expected = 0.5 * np.cos(inner) * 0.5 * np.cos(x)
    np.testing.assert_allclose(df(x), expected, rtol=1e-14)
    compiled = df._now.compiled
    np.testing.assert_allclose(df(x), expected, rtol=1e-14)
    assert df._now.compiled is compiled
    assert len(compiled) == 1
