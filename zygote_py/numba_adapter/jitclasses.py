"""Objects of a `jitclass`: their fields, and the Python functions behind their methods.

    fields_of_object(instance type of Counter)      {"total": float64, "count": int64}
    made_by(type of the class Counter)              the type of its objects

Static methods and the setters of properties are not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numba import types

from zygote_py.ir.core import Type
from zygote_py.numba_adapter.callees import Session, callee_type


def is_object(type: Type) -> bool:
    """Whether values of this type are objects of a jitclass."""
    return isinstance(type, types.ClassInstanceType)


def fields_of_object(type: Any) -> Mapping[str, Type]:
    """The types of the fields of an object, by name."""
    found: Mapping[str, Type] = type.class_type.struct
    return found


def made_by(type: Type) -> Type | None:
    """The type of the objects that a call of a value of this type makes; None if it is no jitclass."""
    return type.instance_type if isinstance(type, types.ClassType) else None


def object_member(type: Any, name: str, session: Session, accessor: bool = False) -> Type | None:
    """The type of the function behind a method of an object, or of an accessor behind a property."""
    if not is_object(type):
        return None
    cls = type.class_type
    found = cls.jit_props.get(name, {}).get("get") if accessor else cls.jit_methods.get(name)
    return None if found is None else callee_type(found.py_func, session)
