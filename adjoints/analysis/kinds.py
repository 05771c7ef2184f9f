"""Classification of types by differentiability.

is_number(f64), is_number(c128)          can have its own adjoint
is_array(f64[:])                         has a shadow
carries_adjoint((i64, f64[:]))           has a part that does
"""

from __future__ import annotations

from typing import Any

from numba import types

from zygote_py.ir import Type, components_of


def is_float(type: Type) -> bool:
    """Return whether this is the type of a real floating-point number."""
    return isinstance(type, types.Float)


def is_number(type: Type) -> bool:
    """Return whether this is the type of a real or complex floating-point number."""
    return isinstance(type, types.Float | types.Complex)


def is_array(type: Type) -> bool:
    """Return whether this is the type of an array of real or complex floating-point numbers."""
    return isinstance(type, types.Array) and is_number(type.dtype)


def is_list(type: Type) -> bool:
    """Return whether this is the type of a list of such numbers, arrays or lists."""
    return isinstance(type, types.List) and (is_number(type.dtype) or has_shadow(type.dtype))


def element_of(type: Any) -> Type:
    """Return the type of the elements of an array or a list."""
    found: Type = type.dtype
    return found


def rank_of(type: Any) -> int:
    """Return the number of axes of an array."""
    found: int = type.ndim
    return found


def has_shadow(type: Type) -> bool:
    """Return whether the adjoint of a value of this type is stored in a shadow."""
    return is_array(type) or is_list(type)


# Types without derivatives. A type that is not listed may be differentiable, such as a list of floats.
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
    types.NumPyRandomGeneratorType,
)


def carries_adjoint(type: Type) -> bool:
    """Return whether values of this type may have adjoints: all but integers, booleans, strings and the like."""
    match type:
        case types.BaseTuple():
            return any(carries_adjoint(item) for item in components_of(type))
        case types.Array() | types.List() | types.ListType():
            return carries_adjoint(type.dtype)
        case types.DictType():
            return carries_adjoint(type.value_type)
        case types.Record():
            return any(carries_adjoint(field.type) for field in type.fields.values())
        case types.ClassInstanceType():
            return any(map(carries_adjoint, type.class_type.struct.values()))
        case _:
            return not isinstance(type, _DISCRETE)


def can_have_adjoint(type: Type) -> bool:
    """Return whether the compiler supports adjoints for values of this type."""
    if isinstance(type, types.BaseTuple):
        return all(can_have_adjoint(item) for item in components_of(type) if carries_adjoint(item))
    return is_number(type) or has_shadow(type)
