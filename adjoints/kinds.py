"""Which types carry derivatives.

is_number(f64), is_number(c128)          can have an adjoint of its own
is_array(f64[:])                         has a shadow
carries_adjoint((i64, f64[:]))           has a part that does
"""

from __future__ import annotations

from typing import Any

from numba import types

from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of


def is_float(type: Type) -> bool:
    """Whether a value of this type is a real floating-point number."""
    return isinstance(type, types.Float)


def is_number(type: Type) -> bool:
    """Whether a value of this type is a real or complex floating-point number."""
    return isinstance(type, types.Float | types.Complex)


def is_array(type: Type) -> bool:
    """Whether a value of this type is an array of real or complex floating-point numbers."""
    return isinstance(type, types.Array) and is_number(type.dtype)


def is_list(type: Type) -> bool:
    """Whether a value of this type is a list of such numbers, arrays or lists."""
    return isinstance(type, types.List) and (is_number(type.dtype) or has_shadow(type.dtype))


def element_of(type: Any) -> Type:
    """The type of the elements of an array or a list."""
    found: Type = type.dtype
    return found


def rank_of(type: Any) -> int:
    """The number of axes of an array."""
    found: int = type.ndim
    return found


def has_shadow(type: Type) -> bool:
    """Whether the adjoint of a value of this type is in a shadow of it."""
    return is_array(type) or is_list(type)


# What has no derivative by nature. A type that is not listed may carry one: a list of floats, say.
_DISCRETE = (
    types.Integer,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.Literal,
    types.SliceType,
    types.EllipsisType,
    types.DType,
    types.NumberClass,
    types.EnumMember,
    types.Callable,
    types.Module,
)


def carries_adjoint(type: Type) -> bool:
    """Whether values of this type may have an adjoint: everything but integers, truth values, strings and the like."""
    match type:
        case types.BaseTuple():
            return any(carries_adjoint(item) for item in components_of(type))
        case types.Array():
            return carries_adjoint(type.dtype)
        case types.List() | types.ListType():
            return carries_adjoint(type.dtype)
        case _:
            return not isinstance(type, _DISCRETE)


def can_have_adjoint(type: Type) -> bool:
    """Whether values of this type can be given an adjoint."""
    if isinstance(type, types.BaseTuple):
        return all(can_have_adjoint(item) for item in components_of(type) if carries_adjoint(item))
    return is_number(type) or has_shadow(type)
