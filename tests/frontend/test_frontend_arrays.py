"""Functions that write to arrays: the front end, the passes and emission keep what they compute.

Each program of `tests.frontend.frontend_arrays` and `tests.frontend.frontend_new_arrays` is compiled by Numba as it is.
What is emitted for it must give the same when Numba compiles it, to the bit, and so must the interpreter and plain
Python, up to rounding: there NumPy computes.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit

from tests.frontend.frontend_new_arrays import CASES
from tests.modes import is_interpreted
from zygote_py import gradient, numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.emit import NJIT, emit
from zygote_py.frontend import lower
from zygote_py.ir import Function, interpret, passes, verify
from zygote_py.ir.text.printer import text
from zygote_py.numba_adapter import typeof

IN_ALL_TYPES = ("arithmetic", "stores_are_cast", "converted")


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the result of a call, or the kind of its exception, and the final contents of its arguments."""
    args = copies(args)
    with np.errstate(all="ignore"):
        try:
            result = function(*args)
        except Exception as error:  # any, as Numba's and NumPy's differ in their messages
            result = type(error)
    return result, args


def copies(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        np.copy(arg, order="K") if isinstance(arg, np.ndarray) and arg.flags.forc else copy.deepcopy(arg)
        for arg in args
    )


def same(found: Any, expected: Any, exact: bool) -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, exact)
    elif isinstance(expected, np.ndarray | np.generic | float | complex):
        assert np.shape(found) == np.shape(expected)
        if exact:
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            np.testing.assert_array_equal(found, expected)
            assert np.array_equal(np.signbit(np.real(found)), np.signbit(np.real(expected)))
        else:
            tolerance = 1e-5 if np.asarray(expected).dtype.itemsize <= 4 else 1e-12
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        assert found == expected


@functools.cache
def stages(function: Callable[..., Any], signature: tuple[Any, ...]) -> tuple[Any, Function, Function, Any]:
    """Return the function for Numba, the IR of the front end and that after the passes, and the emitted function."""
    first, ir = (lower(function, signature).function for _ in range(2))
    verify(first)
    for step in (*passes.CLEAN_UP, *passes.CANONICAL):
        step(ir)
        verify(ir, step.__name__)
    return njit(function), first, ir, numba_adapter.load(emit(ir, name="emitted", target=NJIT))


def marked() -> Iterator[Any]:
    """All cases; those of a function's further types run for long, unless it is about types, and so do two thirds.

    What is emitted for every fifteenth function is compiled, for the others it is interpreted.
    """
    first: dict[Callable[..., Any], tuple[Any, ...]] = {}
    for function, args in CASES:
        types = tuple(map(typeof, args))
        often = types == first.setdefault(function, types) or function.__name__ in IN_ALL_TYPES
        number = list(first).index(function)
        often = often and number % 3 == 0
        mode = pytest.mark.interpreted if number % 15 else pytest.mark.compiled
        yield pytest.param(function, args, marks=mode if often else (mode, pytest.mark.long))


@pytest.mark.parametrize(("function", "args"), list(marked()), ids=lambda each: getattr(each, "__name__", ""))
def test_round_trip(function, args):
    compiled, first, ir, emitted = stages(function, tuple(typeof(arg) for arg in args))
    expected = outcome(compiled, args)
    assert not isinstance(expected[0], type) or issubclass(expected[0], ValueError)
    same(outcome(lambda *args: interpret(first, *args), args), expected, False)
    same(outcome(lambda *args: interpret(ir, *args), args), expected, False)
    same(outcome(emitted, args), expected, not is_interpreted())
    same(outcome(getattr(emitted, "py_func", emitted), args), expected, False)


def lowered(function: Callable[..., Any], *args: Any) -> str:
    return text(lower(function, [typeof(arg) for arg in args]).function)


def refusal(function: Callable[..., Any], *args: Any) -> DifferentiationError:
    with pytest.raises(DifferentiationError) as caught:
        lowered(function, *args)
    return caught.value


def test_parts_that_overlap_are_not_read_while_they_are_written():
    def rows(x):
        x -= x[0]

    def shifted(x):
        x[1:] += x[:-1]

    def transposed(x):
        x += x.T

    def given(x):
        np.add(x[:-1], 1.0, x[1:])

    for function in (rows, shifted, transposed, given):
        error = refusal(function, np.ones((3, 3)))
        assert "another part" in error.message
        assert "copy" in error.hint


def test_what_may_be_a_copy_is_not_written():
    def written(x):
        y = np.ascontiguousarray(x)
        y[0] = 1.0
        return x[0]

    def read(x):
        return np.ascontiguousarray(x)[0]

    def between(x):
        y = np.ascontiguousarray(x)
        x[0] = 1.0
        return y[0]

    def in_a_loop(x):
        y = np.ascontiguousarray(x)
        s = 0.0
        for _ in range(3):
            s += y[0]
            x[0] *= 2.0
        return s

    def before(x):
        s = 0.0
        for i in range(3):
            x[i] *= 2.0
            y = np.ascontiguousarray(x)
            s += y[0] * y[i]
        return s

    strided = np.arange(6.0)[::2]
    for function in (written, between, in_a_loop):
        assert "run time" in refusal(function, strided).message
    assert "np.copy" in lowered(before, strided)
    assert "np.copy" in lowered(read, strided)
    assert "np.copy" not in lowered(written, np.arange(3.0))


@njit(fastmath=True)
def first_column(a):
    return np.ascontiguousarray(a[:, 0])


def test_what_may_be_the_array_itself_is_not_returned_to_a_caller_that_has_both():
    def escaping(x):
        r = x.reshape(4, 1).copy()
        y = first_column(r)
        r[0, 0] = 7.0
        return y[0] * y[1]

    assert njit(escaping)(np.arange(1.0, 5.0)) == 14.0  # a column of one is contiguous
    with pytest.raises(DifferentiationError, match="the caller has both"):
        gradient(escaping).source(np.arange(1.0, 5.0))


def test_a_slice_is_a_view_and_is_stored_to_once():
    def slices(x, y):
        x[1:3] = y
        x[2:] *= 2.0
        x[:] = 0
        x[0] += 1.0

    assert lowered(slices, np.ones(4), np.ones(2)).partition("b0:")[2].split("\n")[1:] == [
        "  %t0 = slice 1, 3 : slice",
        "  %t1 = getitem %x, %t0 : f64[:]",
        "  setitem %t1, %y",
        "  %t2 = slice 2, none : slice",
        "  %t3 = getitem %x, %t2 : f64[:]",
        "  %t4 = mul %t3, 2.0 : f64[:]",
        "  setitem %t3, %t4",
        "  setitem %x, 0.0",
        "  %t5 = getitem %x, 0 : f64",
        "  %t6 = add %t5, 1.0 : f64",
        "  setitem %x, %t6, 0",
        "  return none",
    ]
