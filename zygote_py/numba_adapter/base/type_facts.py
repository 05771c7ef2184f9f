"""Numba's types of values."""

from __future__ import annotations

import ctypes
from typing import Any

from numba import types

from zygote_py.ir import Type
from zygote_py.numba_adapter.base.internals import cpu_target, numba_typeof, to_ctypes


def refreshed_context() -> Any:
    """Return what Numba types calls with; it has looked at what it was told a moment ago."""
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context


def known_type(value: object) -> Any:
    """Return the type that Numba has for a value, functions with registered overloads included; None for others."""
    try:
        return refreshed_context().resolve_value_type(value)
    except Exception:  # Numba raises errors of several kinds for what it does not know
        return None


def runtime_type(type: Type) -> Type:
    """Return the type of an argument in the running program: of a default that was not given, and of a constant."""
    return numba_typeof(type.value) if isinstance(type, types.Omitted) else types.unliteral(type)  # type: ignore[no-any-return]


def as_pointer(value: Any) -> Any:
    """Return the pointer of `ctypes` that a value stands for; the value itself if there is none.

    Numba knows some functions by an address and a signature alone, which an object with `__wrapper_address__` gives.
    What is known of pointers then holds for them too: rules for the functions of SciPy, no source for any other.
    """
    if not isinstance(value, types.WrapperAddressProtocol):
        return value
    own: Any = value
    signature = own.signature()
    try:
        kinds = [to_ctypes(each) for each in (signature.return_type, *signature.args)]
    except TypeError:  # arrays and other structures have no C type
        return value
    return ctypes.CFUNCTYPE(*kinds)(own.__wrapper_address__())
