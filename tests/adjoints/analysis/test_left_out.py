"""Values that a selection discards have the gradient 0, whatever was computed before: NaN, infinities, poles.

All of `tests.adjoints.analysis.left_out_programs` run as the emitted source in plain Python; some are compiled as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zygote_py as zg
from tests.adjoints.analysis.left_out_programs import (
    PROGRAMS,
    Program,
    a_nan_that_counts,
    a_zero_factor,
    a_zero_factor_in_memory,
    nan,
    nansum_of_squares,
)
from tests.plain import plain

pytestmark = pytest.mark.interpreted


def results(gradient: Any) -> list[np.ndarray]:
    if isinstance(gradient, tuple):
        return [leaf for item in gradient if item is not None for leaf in results(item)]
    return [np.asarray(gradient)]


def check(found: Any, expected: Any) -> None:
    found = results(found)
    wanted = results(expected) if isinstance(expected, tuple) else [np.asarray(expected)]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6 if one.dtype == np.float32 else 1e-12)


def copies(arguments: Any) -> Any:
    if isinstance(arguments, tuple):
        return tuple(map(copies, arguments))
    return arguments.copy() if isinstance(arguments, np.ndarray) else arguments


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.function.__name__)
def test_emitted_source(case: Program) -> None:
    source = zg.gradient(case.function).source(*case.arguments)
    with np.errstate(all="ignore"):
        check(plain(source)(*copies(case.arguments)), case.expected)


@pytest.mark.compiled
@pytest.mark.parametrize("case", [each for each in PROGRAMS if each.compiled], ids=lambda case: case.function.__name__)
def test_compiled(case: Program) -> None:
    check(zg.gradient(case.function)(*copies(case.arguments)), case.expected)


def cubes(x):
    return np.nansum(x * x * x)


def cubes_of_products(x):
    y = x @ np.array([[1.0, 2.0], [3.0, 4.0]])
    return np.nansum(y * y * y)


def logarithms(x):
    return np.sum(np.where(x > 0.0, np.log(x), 0.0))


SECOND = [
    (cubes, np.array([1.0, nan, 2.0]), np.array([6.0, 0.0, 12.0])),
    (logarithms, np.array([0.0, 2.0]), np.array([0.0, -0.25])),
]


@pytest.mark.parametrize(("function", "x", "diagonal"), SECOND)
def test_second_derivatives(function: Any, x: np.ndarray, diagonal: np.ndarray) -> None:
    gradient = zg.gradient(function)

    def along(x, v):
        return np.sum(gradient(x) * v)

    v = np.arange(1.0, x.size + 1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(plain(zg.hessian(function).source(x))(x.copy()), np.diag(diagonal), rtol=1e-12)
        found = plain(zg.gradient(along, wrt="x").source(x, v))(x.copy(), v)
    np.testing.assert_allclose(found, diagonal * v, rtol=1e-12)


def test_second_derivatives_through_a_product_of_matrices() -> None:
    x = np.array([[1.0, 2.0], [nan, 1.0]])
    expected = np.zeros((2, 2, 2, 2))
    expected[0, :, 0, :] = [[282.0, 606.0], [606.0, 1338.0]]  # 6 w diag(y) w^T of y = (7, 10)
    with np.errstate(all="ignore"):
        found = plain(zg.hessian(cubes_of_products).source(x))(x.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("function", [a_nan_that_counts, a_zero_factor, a_zero_factor_in_memory])
def test_a_program_without_a_selection_has_no_guards(function: Any) -> None:
    (arguments,) = (each.arguments for each in PROGRAMS if each.function is function)
    assert "!= 0.0" not in zg.gradient(function).source(*arguments)


@pytest.mark.compiled
def test_a_pullback_in_two_halves() -> None:
    value, back = zg.pullback(nansum_of_squares, np.array([1.0, nan, 2.0]))
    assert value == 5.0
    np.testing.assert_array_equal(back(3.0)[0], [6.0, 0.0, 12.0])


def elements_by_a_counter(x, a):
    y = np.empty(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = np.log(x[i, j])
    total = 0.0
    for i in range(x.shape[0]):
        if i != 1:
            total += y[i, 0] * a + np.sum(y[i])
    return total


def test_what_a_counter_leaves_out():
    dx, da = zg.gradient(elements_by_a_counter)(np.array([[2.0, 1.0], [0.0, 0.0], [4.0, 5.0]]), 3.0)
    np.testing.assert_allclose(dx, [[2.0, 1.0], [0.0, 0.0], [1.0, 0.2]])
    np.testing.assert_allclose(da, np.log(8.0))
