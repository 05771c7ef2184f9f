"""Emitted source does what the interpreter does, on random reducible graphs."""

from __future__ import annotations

import math
import warnings
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.emit.random_graphs import random_function
from zygote_py import numba_adapter
from zygote_py.emit import NJIT, emit
from zygote_py.ir import Function, interpret, verify

CASES = [(0.5, 0), (-1.5, 2), (2.0, 4)]


def outcome(call, a: float, n: int) -> object:
    x = np.array([0.5, -1.0, 2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(a, n, x)
        except ValueError:
            return "ValueError", plain(x)
    return tuple(map(plain, result)), plain(x)


def plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return "nan" if math.isnan(value) else (type(value) is np.float32, float(value), math.copysign(1.0, value))
    return bool(value) if isinstance(value, bool | np.bool_) else int(value)


def check(function: Function) -> None:
    verify(function)
    emitted = emit(function, name="emitted")
    call = numba_adapter.load(emitted)
    for a, n in CASES:
        assert outcome(call, a, n) == outcome(lambda *args: interpret(function, *args), a, n), emitted.source
    assert emit(function, name="emitted") == emitted


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_canonical_loops(choices, size):
    check(random_function(choices, True, size))


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_any_loops(choices, size):
    check(random_function(choices, False, size))


@pytest.mark.parametrize("seed", range(6))
def test_compiled(seed):
    function = random_function(Random(seed), seed % 2 == 0, 6)
    emitted = emit(function, name="emitted", target=NJIT)
    call = numba_adapter.load(emitted)
    for a, n in CASES:
        want = outcome(lambda *args: interpret(function, *args), a, n)
        got = outcome(call, a, n)
        assert repr(strip(got)) == repr(strip(want)), emitted.source


def strip(result: object) -> object:
    """Without the differences between the scalars of NumPy and of Numba."""
    match result:
        case tuple((bool(), float() as number, sign)):
            return float(np.float32(number)), sign
        case tuple() | list():
            return [strip(item) for item in result]
        case _:
            return result


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 20_000, 200))
def test_many(first):
    for seed in range(first, first + 200):
        check(random_function(Random(seed), seed % 2 == 0, 3 + seed % 10))
