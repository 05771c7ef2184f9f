"""Functions of NumPy are typed without being compiled; what Numba compiles itself is compiled as ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import literally, njit, types
from numba.core import event
from numba.extending import overload

from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError, gradient

X = np.array([0.3, 2.0, -1.0, 0.7, 1.5])


def order_statistics(x):
    return np.median(x) * np.sum(np.sort(x) * np.cumsum(x)) + np.var(x) + x.std()


def test_a_primal_is_lowered_without_compiling_any_library_function():
    compiled = event.RecordingListener()
    with event.install_listener("numba:compile", compiled):
        text = str(gradient(order_statistics).primal_ir(X))
    assert "sort" in text
    assert [data.data["dispatcher"] for _, data in compiled.buffer if data.is_start] == []


@pytest.mark.compiled
def test_what_was_only_typed_is_compiled_where_it_is_called():
    gradient(order_statistics).primal_ir(X)
    np.testing.assert_allclose(njit(order_statistics)(X), order_statistics(X))
    check_derivatives(order_statistics, X)
    np.testing.assert_allclose(njit(order_statistics)(X), order_statistics(X))


@pytest.mark.compiled
def test_intrinsics_that_resolve_other_functions_are_compiled_afterwards():
    """`str` of a tuple, in a message of Numba's own sum, asks for `__str__`."""
    cube = np.arange(24.0).reshape(2, 3, 4)

    def f(x):
        return np.sum(np.sum(x * x, axis=(0, 2)))

    gradient(f).primal_ir(cube)
    assert njit(f)(cube) == np.sum(cube * cube)


@njit
def _halved(n):
    return n // 2


@njit
def _middle(x):
    return np.median(x)


def _half_of(x: Any) -> Any:
    raise NotImplementedError


@overload(_half_of)
def _overload_half_of(x: Any) -> Any:
    """A template that runs compiled code itself, and that calls a function of Numba's own which has to be compiled."""
    count = _halved(types.float64.bitwidth + 4) + int(_middle(np.arange(9.0))) - 4

    def implementation(x):
        return np.median(x) / count

    return implementation


@pytest.mark.compiled
def test_a_template_may_run_compiled_code():
    def f(x):
        return x[0] * _half_of(x)

    check_derivatives(f, X, reference=lambda x: x[0] * np.median(x) / 34)


@pytest.mark.interpreted
def test_the_type_of_what_is_rounded_into_an_array_is_known_with_numba_disabled():
    def f(x):
        rounded = np.empty_like(x)
        np.around(x, 1, rounded)
        return np.sum(rounded * x)

    np.testing.assert_allclose(gradient(f)(X), np.around(X, 1))


@njit
def _times_a_constant(x, n):
    n = literally(n)
    return x * n


def test_a_function_that_asks_for_a_constant_is_refused_and_stays_as_it_was():
    for _ in range(2):
        with pytest.raises(DifferentiationError, match=r"`numba.literally`"):
            gradient(lambda x: _times_a_constant(x, 3))(2.0)
    assert njit(lambda x: _times_a_constant(x, 3))(2.0) == 6.0


def test_what_cannot_be_typed_is_refused_each_time():
    def f(x):
        return np.median(x, 0)

    for _ in range(2):
        with pytest.raises(DifferentiationError, match="median"):
            gradient(f)(X)
