"""What the implementations of library functions ask of the types of their arguments.

    known_int(types.literal(1))                 1: a constant
    known_int(types.int64)                      None: known at run time only
    common_dtype([f32_array, i64_array])        dtype("float64")

An argument that was not given comes as its default or as `types.Omitted`, a constant as `types.Literal`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of

# A type of Numba's, or a default's value. Numba's stubs do not say what parts its types have.
Given = Any


class Unknown(enum.Enum):
    """Stands for a value that is not known before the function runs."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


def known(given: object) -> object:
    """What an argument is, if it is known while compiling; otherwise UNKNOWN."""
    match given:
        case types.Literal():
            return given.literal_value
        case types.NoneType():
            return None
        case types.Omitted():
            return given.value
        case types.Type():
            return UNKNOWN
        case _:
            return given


def is_none(given: object) -> bool:
    """Whether an argument is None, given or by default."""
    return known(given) is None


def known_int(given: object) -> int | None:
    """The value of an integer that is known when compiling, else None."""
    value = known(given)
    return int(value) if isinstance(value, int | np.integer) else None


def is_integer(given: object) -> bool:
    """Whether an argument is an integer, known or not."""
    return isinstance(given, types.Integer) or known_int(given) is not None


def is_number(given: object) -> bool:
    """Whether an argument, as a type, is a number or a boolean."""
    return isinstance(given, types.Number | types.Boolean)


_OF_PYTHON: dict[type, Type] = {
    bool: types.boolean,
    int: types.int64,
    float: types.float64,
    complex: types.complex128,
}


def type_of(given: object) -> Type:
    """The type of a number that may have come as itself, as defaults do."""
    if isinstance(given, types.Type):
        plain: Type = types.unliteral(given)
        return plain
    return _OF_PYTHON[type(given)]


def dtype_of(given: Given) -> np.dtype[np.generic]:
    """The NumPy dtype of a number or of the elements of an array, of a list or of a tuple of numbers."""
    if isinstance(given, types.BaseTuple):
        return common_dtype(components_of(given))
    return np.dtype(str(types.unliteral(given))) if is_number(given) else dtype_of(given.dtype)


def common_dtype(parts: Iterable[Given]) -> np.dtype[np.generic]:
    """The dtype that these arrays or numbers have in common."""
    return np.result_type(*map(dtype_of, parts))


def layout_of_all(arrays: Iterable[types.Array]) -> str:
    """The layout of what several arrays are joined into: Fortran's if all have it."""
    return "F" if all(array.layout == "F" for array in arrays) else "C"
