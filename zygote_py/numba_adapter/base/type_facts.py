"""Numba's types of values."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from numba import types

from zygote_py.base import Capture, content_of_default, defaults_of, is_default_read
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


def with_changing_default(type: Type) -> Type:
    """Return the type of an argument; of a default that was not given and may change, as an array does, its own."""
    return runtime_type(type) if _is_changing(type) else type


def contents_of_defaults(func: Any, given: Iterable[Type]) -> tuple[Capture, ...]:
    """Return captures of the defaults among arguments of these types that may change, where they become constants."""
    taken: list[Any] = [each for each in given if _is_changing(each)]
    changing = [each.value for each in taken]
    held = defaults_of(func).items() if changing else ()
    return tuple(content_of_default(func, name) for name, value in held if any(value is each for each in changing))


def _is_changing(type: Type) -> bool:
    return isinstance(type, types.Omitted) and is_default_read(type.value)


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
