"""The output of the front end for a function, emitted and compiled again, compared with the function compiled by Numba.

    agree(lambda x: np.median(x), x)        # the same value, type, dtype, shape; or the same error

Where nothing is compiled (see `tests.modes`) the emitted source is compared with NumPy itself, up to rounding.
"""

from __future__ import annotations

import copy
import inspect
import sys
from typing import Any

import numba
import numpy as np

from tests.checking import trees
from tests.modes import is_interpreted
from zygote_py import numba_adapter
from zygote_py.emit import NJIT, emit
from zygote_py.frontend import lower
from zygote_py.frontend.values import implemented, is_differentiable
from zygote_py.ir import Instr, passes
from zygote_py.numpy_functions.indexing import selecting
from zygote_py.numpy_functions.mathematics import reductions, signals, sums
from zygote_py.numpy_functions.sorting import sorting
from zygote_py.numpy_functions.statistics import statistics

PARTS = {reductions, sums, sorting, selecting, signals, statistics}
REPLACED = {op for op, (template, *_) in implemented().items() if sys.modules[template.__module__] in PARTS}
REPLACED -= {np.sum, np.prod, max, min}  # of which the compiler knows some forms itself


def primal(f: Any, *args: Any) -> Any:
    """`f` as the front end has it for these arguments, compiled."""
    lowered = lower(f, tuple(numba_adapter.typeof(arg) for arg in args))
    function = lowered.function
    passes.run(function, passes.CLEAN_UP)
    for block in function.blocks:
        for each in block.instrs:
            if isinstance(each, Instr) and is_differentiable(each.type):
                assert each.op not in REPLACED, each.op
    return numba_adapter.load(emit(function, name="primal", target=NJIT, defaults={}))


def outcome(f: Any, *args: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the result or the exception of a call, and its arguments afterwards."""
    args = tuple(map(_copied, args))
    try:
        return f(*args), args
    except Exception as error:  # whatever it is: the other function has to raise it too
        return error, args


def _copied(arg: Any) -> Any:
    """A copy of the same layout."""
    if not isinstance(arg, np.ndarray):
        return copy.deepcopy(arg)
    return np.lib.stride_tricks.as_strided(arg.base.copy(), arg.shape, arg.strides) if _strided(arg) else arg.copy("K")


def _strided(arg: np.ndarray) -> bool:
    return not arg.flags.c_contiguous and not arg.flags.f_contiguous


_COMPILED: dict[Any, tuple[Any, Any]] = {}


def _both(f: Any, *args: Any) -> tuple[Any, Any]:
    """The function as the front end has it and as it is, both compiled, once for the same code and types."""
    captured = tuple(cell.cell_contents for cell in f.__closure__ or ())
    key = (f.__code__, captured, tuple(map(numba_adapter.typeof, args)), is_interpreted())
    if key not in _COMPILED:
        _COMPILED[key] = primal(f, *args), numba.njit(f)
    return _COMPILED[key]


def agree(f: Any, *args: Any, ulps: int = 0) -> None:
    """Both do the same to these arguments."""
    ours, theirs = _both(f, *args)
    found, left = outcome(ours, *args)
    expected, left_by_numba = outcome(theirs, *args)
    what = f"{inspect.getsource(f).strip()}\n{args}"
    if is_interpreted() and isinstance(expected, Exception):  # NumPy's errors are others
        assert isinstance(found, Exception), (what, found, expected)
        return
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), (what, found, expected)
        return
    if isinstance(found, Exception):
        raise AssertionError(what) from found
    if is_interpreted():
        trees.same((found, left), (expected, left_by_numba), what, exact=False)
        return
    same(found, expected, what, ulps)
    same(left, left_by_numba, what, 0)


def same(found: Any, expected: Any, what: str, ulps: int) -> None:
    """The same values, types, dtypes and shapes."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected), what
        for one, other in zip(found, expected, strict=True):
            same(one, other, what, ulps)
        return
    assert type(found) is type(expected), (what, found, expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (what, found, expected)
    if ulps and np.asarray(expected).dtype.kind in "fc":
        tolerance = ulps * np.finfo(np.asarray(expected).dtype).eps
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=what)
