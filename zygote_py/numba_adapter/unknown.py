"""What to say of a value that Numba has no type for, and what to use instead.

unknown(Open(1.0))      ("`Open`, a dataclass that is not frozen,", "declare it with @dataclass(frozen=True)")
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import errors

from zygote_py import structures

HINT = "use a number, an array, a tuple, a NamedTuple or a frozen dataclass"
STRUCTURE = "pass a tuple, a NamedTuple, a dataclass or an array"


def has_type(value: object) -> bool:
    """Whether Numba has a type for a value."""
    try:
        numba.typeof(value)
    except (ValueError, errors.NumbaError):
        return False
    return True


def unknown(value: Any) -> tuple[str, str]:
    """What a value is called, and a hint."""
    cls = value if isinstance(value, type) else type(value)
    if structures.is_open(cls):
        return f"`{cls.__name__}`, a dataclass that is not frozen,", "declare it with @dataclass(frozen=True)"
    if type(value) is np.ndarray:
        return f"an array of dtype {value.dtype}", "pass an array of float64, float32, complex128 or complex64"
    if isinstance(value, list | dict | set):
        return f"a {type(value).__name__}", STRUCTURE
    if isinstance(value, tuple) or structures.is_structure(type(value)):
        names = getattr(value, "_fields", ()) or (() if isinstance(value, tuple) else structures.field_names(cls))
        items = [getattr(value, name) for name in names] if names else list(value)
        for name, item in zip(names or range(len(items)), items, strict=True):
            if not (callable(item) or has_type(item)):
                what, hint = unknown(item)
                where = f"the field `{name}` of `{cls.__name__}`" if names else f"component {name} of a tuple"
                return f"{where}, {what.removesuffix(',')},", hint
    return f"a value of type `{cls.__name__ if cls is not value else 'type'}`", HINT
