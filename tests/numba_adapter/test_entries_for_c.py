"""Derivatives where compiled code takes functions as values: by their addresses, and by those for C code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import float64, int64, njit, types

import zygote_py as zg
from zygote_py.numba_adapter.base.internals import CPUDispatcher

pytestmark = pytest.mark.filterwarnings("ignore:First-class function")

OF_NUMBERS = types.FunctionType(float64(float64))
MATRIX = float64[:, ::1]


def square(x):
    return x * x


def root(x):
    if x < 0.0:
        raise ValueError("negative")
    return x**1.5


def test_parameter():
    @njit(float64(OF_NUMBERS, float64))
    def apply(function, x):
        return function(x) + 1.0

    assert (apply(zg.gradient(square), 3.0), apply(zg.gradient(root), 4.0)) == (7.0, 4.0)
    with pytest.raises(ValueError, match="negative"):
        apply(zg.gradient(root), -1.0)


def test_tuple():
    @njit(float64(types.UniTuple(OF_NUMBERS, 2), int64, float64))
    def apply(functions, number, x):
        return functions[number](x)

    pair = zg.gradient(square), zg.derivative(root)
    assert [apply(pair, number, 4.0) for number in (0, 1)] == [8.0, 3.0]
    with pytest.raises(ValueError, match="negative"):
        apply(pair, 1, -1.0)


def test_one_of_two():
    double, slope = zg.gradient(square), zg.gradient(root)

    @njit
    def apply(is_first, x):
        chosen = double
        if not is_first:
            chosen = slope
        return chosen(x)

    assert (apply(True, 4.0), apply(False, 4.0)) == (8.0, 3.0)


def test_address_for_c():
    names = ", ".join(f"m_{k}" for k in range(16))
    scope: dict[str, object] = {}
    exec(f"def f({names}):\n    return {' + '.join(f'm_{k}[{k}, 0] * m_{15 - k}[0, 0]' for k in range(16))}", scope)
    matrices = [np.arange(32.0).reshape(16, 2) + k for k in range(16)]
    slope = zg.gradient(scope["f"])
    given = types.UniTuple(MATRIX, 16)(*[MATRIX] * 16)  # 144 words

    @njit(types.UniTuple(float64, 2)(types.FunctionType(given), types.UniTuple(MATRIX, 16)))
    def apply(function, arrays):
        found = function(*arrays)
        return found[3][3, 0], found[12][0, 0]

    assert apply(slope, tuple(matrices)) == (12.0, 3.0 + 6.0)


def test_asked_for_again():
    slope: CPUDispatcher = zg.gradient(square)._entry_dispatcher()  # type: ignore[attr-defined]
    first, second = (slope.get_compile_result(float64(float64)) for _ in range(2))
    assert first is second
    name = first.fndesc.llvm_cfunc_wrapper_name
    enter = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(first.library.get_pointer_to_function(name))
    assert enter(3.0) == 6.0
