"""Implementations of the library compiled by Numba, as they stand, to be compared with the functions of NumPy.

Where nothing is compiled (see `tests.modes`) they are compared with NumPy itself, to rounding.

compiled(implementation_of(np.roll, (typeof(x), typeof(2)), {}))(x, 2)        # against numba.njit(np.roll)
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

import numba
import numpy as np
import pytest
from numba import typeof, types

from tests.checking import trees
from tests.modes import is_interpreted
from zygote_py.frontend.values import implementation_of, implemented


def compiled(function: Any) -> Any:
    """A plain function compiled by Numba together with the plain functions that it captures."""
    return numba.njit(_with_compiled(function))


def _with_compiled(function: FunctionType) -> FunctionType:
    known = set(implemented())
    instructions = (each for code in _codes(function.__code__) for each in dis.get_instructions(code))
    used = {str(each.argval) for each in instructions if each.opname == "LOAD_GLOBAL"}
    names = {name: function.__globals__[name] for name in used if name in function.__globals__}
    ours = {name: compiled(value) for name, value in names.items() if _is_ours(value) and value not in known}
    cells = tuple(
        CellType(compiled(cell.cell_contents) if _is_ours(cell.cell_contents) else cell.cell_contents)
        for cell in function.__closure__ or ()
    )
    made = FunctionType(
        function.__code__, {**function.__globals__, **ours}, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _codes(constant)


def _is_ours(value: object) -> bool:
    return isinstance(value, FunctionType) and not (value.__module__ or "numpy").startswith("numpy")


def type_of(value: Any) -> Any:
    """The type that a template gets for an argument: that of a constant for integers, strings and None."""
    if isinstance(value, bool | int | str):
        return types.literal(value)
    if value is None:
        return types.none
    if isinstance(value, tuple) and value and all(type(item) is int for item in value):
        return types.Tuple([types.literal(item) for item in value])
    return typeof(value)


def outcome(function: Any, *args: Any) -> tuple[str, Any]:
    """Return the result of a call, or the type and the text of its exception."""
    try:
        return "value", function(*args)
    except Exception as error:
        return "error", (type(error), str(error))


def same(found: Any, expected: Any) -> None:
    """Assert that two results are equal to the bit, in type, dtype and shape."""
    if isinstance(expected, tuple | list):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    assert type(found) is type(expected), (type(found), type(expected))
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fc"), f"{found}\n{expected}"
    else:
        assert found == expected or (found != found and expected != expected), (found, expected)


_OURS: dict[Any, Any] = {}
_THEIRS: dict[Any, Any] = {}


def check(call: Any, function: Any, *args: Any, runtime: bool = False, constants: tuple[Any, ...] = ()) -> None:
    """Hold the implementation for these arguments against Numba's own function: result, result type, views, errors.

    `call` is a call of the function with the arguments as its own, and then with `constants`; `runtime` hides that
    integers are known. What was compiled for the same types is used again.
    """
    given_types = tuple(typeof(arg) if runtime else type_of(arg) for arg in args) + tuple(map(type_of, constants))
    key = function, given_types, tuple(map(typeof, args)), is_interpreted()
    if key not in _OURS:
        implementation = implementation_of(function, given_types, {})
        assert implementation is not None, "no implementation"
        _OURS[key] = _with_constants(compiled(implementation), len(args), constants)
    ours = _OURS[key]
    theirs = _THEIRS.setdefault((call.__code__, is_interpreted()), numba.njit(call))
    mine, given = _copies(args), _copies(args)
    found, expected = outcome(ours, *mine), outcome(theirs, *given)
    if expected[0] == "error":
        assert found[0] == "error", (found, expected)
        if is_interpreted():  # NumPy's errors are others
            return
        (kind, text), (own_kind, own_text) = expected[1], found[1]
        assert own_kind is kind, (found, expected)
        # What Numba says of shapes that do not fit names places in its own source.
        assert own_text == text or (text.startswith("unable to broadcast") and "unable to broadcast" in own_text)
        return
    if is_interpreted():
        trees.same((found[1], mine), (expected[1], given), repr(args), exact=False)
    else:
        same(found[1], expected[1])
        same(list(mine), list(given))
        one, two = (_result_type(dispatcher, args) for dispatcher in (ours, theirs))
        assert one == two, (one, two)
    for one, two in zip(_arrays(found[1]), _arrays(expected[1]), strict=True):
        shares = [np.shares_memory(one, arg) for arg in _arrays(list(mine))]
        assert shares == [np.shares_memory(two, arg) for arg in _arrays(list(given))], "a view, or no view"
        if one.size and any(shares):
            strides = zip(one.strides, two.strides, one.shape, strict=True)
            assert all(length == 1 or own == other for own, other, length in strides)


def _with_constants(function: Any, count: int, constants: tuple[Any, ...]) -> Any:
    """The compiled function of so many arguments, then the constants, with defaults for the rest."""
    if not constants and len(inspect.signature(getattr(function, "py_func", function)).parameters) == count:
        return function
    names = ", ".join(f"a{k}" for k in range(count))
    namespace: dict[str, Any] = {"function": function}
    passed = ", ".join([names, *map(repr, constants)])
    exec(f"def via({names}):\n    return function({passed})", namespace)
    return numba.njit(namespace["via"])


def _result_type(dispatcher: Any, args: Any) -> Any:
    return dispatcher.overloads[tuple(map(typeof, args))].signature.return_type


def _arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    return [array for item in value for array in _arrays(item)] if isinstance(value, list | tuple) else []


def _copies(args: Any) -> tuple[Any, ...]:
    return tuple(_copied(arg) for arg in args)


def _copied(arg: Any) -> Any:
    if isinstance(arg, tuple):
        return tuple(_copied(item) for item in arg)
    if isinstance(arg, np.ndarray):
        if arg.ndim and arg.size and not (arg.flags.c_contiguous or arg.flags.f_contiguous):
            padded = np.zeros([2 * n for n in arg.shape], arg.dtype)
            view = padded[tuple(slice(None, None, 2) for _ in arg.shape)]
            view[...] = arg
            return view
        return arg.copy(order="K")
    return arg


def samples(ndim: int, dtype: Any = np.float64, lengths: tuple[int, ...] = (3, 4, 2, 3)) -> list[np.ndarray]:
    """Arrays of this many axes: in C order, in Fortran's, strided, and one of zero length."""
    shape = lengths[:ndim]
    rng = np.random.default_rng(ndim)
    values = rng.integers(-9, 10, shape) if np.dtype(dtype).kind in "iu" else rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.normal(size=shape)
    plain = np.asarray(values, dtype)
    if not ndim:
        return [plain]
    wide = np.zeros([2 * n for n in shape], dtype)
    strided = wide[tuple(slice(None, None, 2) for _ in shape)]
    strided[...] = plain
    found = [plain, strided, np.zeros((0, *shape[1:]), dtype)]
    return found if ndim == 1 else [*found, np.asfortranarray(plain)]


def few_samples(ndim: int, dtype: Any = np.float64, lengths: tuple[int, ...] = (3, 4, 2, 3)) -> list[np.ndarray]:
    """Those samples of one type: the strided one of 2 or 4 axes, else the one in C order and that of zero length."""
    found = samples(ndim, dtype, lengths)
    return found[1:2] if ndim in (2, 4) else found[::2][:2]


# A test that loops over `samples` takes them as a parameter: each layout is compiled for anew.
with_samples = pytest.mark.parametrize(
    "samples", [few_samples, pytest.param(samples, marks=pytest.mark.long)], ids=["few", "all"]
)
