"""Pullbacks of many parameters, and of one function under several names, from Python and in compiled code."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import zygote_py as zg


def sum_of_squares(count, item=""):
    names = [f"a{number}" for number in range(count)]
    made: dict[str, object] = {"zg": zg}
    total = " + ".join(f"{name}{item} * {name}{item}" for name in names)
    exec(f"def f({', '.join(names)}):\n    return {total}\n", made)
    exec(f"def back_of({', '.join(names)}):\n    return zg.pullback(f, {', '.join(names)})[1](2.0)\n", made)
    return made["f"], made["back_of"]


@pytest.mark.interpreted
@pytest.mark.parametrize("count", [16, 17, 33])
def test_gradients_are_one_tuple(count):
    f, _ = sum_of_squares(count)
    args = [1.0 + number for number in range(count)]
    value, back = zg.pullback(f, *args)
    assert value == sum(each * each for each in args)
    assert back() == tuple(2.0 * each for each in args)
    of_arrays, _ = sum_of_squares(count, "[0]")
    found = zg.pullback(of_arrays, *(np.array([each]) for each in args))[1](1.0)
    np.testing.assert_array_equal(np.concatenate(found), 2.0 * np.array(args))


@pytest.mark.compiled
def test_in_compiled_code():
    _, back_of = sum_of_squares(17)
    args = [1.0 + number for number in range(17)]
    assert njit(back_of)(*args) == tuple(4.0 * each for each in args)


@pytest.mark.compiled
def test_from_python_and_then_of_a_decorated_function_in_compiled_code():
    def f(a, b):
        return a * a * b

    assert zg.pullback(f, 3.0, 2.0)[1]() == (12.0, 9.0)
    decorated = njit(f)

    @njit
    def caller(a, b):
        value, back = zg.pullback(decorated, a, b)
        return value, back(2.0)

    assert caller(3.0, 2.0) == (18.0, (24.0, 18.0))
