"""Loops with costly functions in branches: LLVM makes no vectors of them, which would compute both sides each time."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import gradient

pytestmark = pytest.mark.optimised

X = np.linspace(0.1, 2.0, 40)


def in_a_branch(x):
    s = 0.0
    for i in range(len(x)):
        t = math.exp(-x[i]) if x[i] > 1.0 else 1.0 - x[i] * x[i]
        s += (t - x[i]) ** 2
    return s


def as_a_power(x):
    s = 0.0
    for i in range(len(x)):
        t = x[i] ** (x[i] - 0.5) if x[i] > 1.0 else x[i]
        s += t * t
    return s


def in_each_round(x):
    s = 0.0
    for i in range(len(x)):
        t = math.exp(-x[i])
        if t < 0.5:
            t = t * x[i]
        s += t * t
    return s


def cheap(x):
    s = 0.0
    for i in range(len(x)):
        t = x[i] * 0.5 if x[i] > 1.0 else 1.0 - x[i] * x[i]
        s += (t - x[i]) ** 2
    return s


def has_vectors(function):
    llvm = gradient(function, mode="reverse").inspect_llvm(X)
    return any(" x double>" in line and " = f" in line for line in llvm.splitlines())


@pytest.mark.parametrize("function", [in_a_branch, as_a_power])
def test_branches_stay(function):
    check_derivatives(function, X)
    assert not has_vectors(function)


@pytest.mark.parametrize("function", [cheap, in_each_round])
def test_others_become_vectors(function):
    check_derivatives(function, X)
    assert has_vectors(function)


def test_functions_of_vectors_are_computed_on_both_sides():
    assert has_vectors(numba.njit(fastmath=True)(in_a_branch))
