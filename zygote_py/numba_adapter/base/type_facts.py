"""Numba's types of values, and its contexts, which look at what they have been told when they are refreshed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from numba import types

from zygote_py.base import Capture, content_of_default, defaults_of, is_default_read
from zygote_py.ir import Type
from zygote_py.numba_adapter.base.internals import (
    CPU,
    CPUDispatcher,
    CPUTarget,
    cpu_target,
    dispatcher_registry,
    imputils,
    numba_typeof,
    target_override,
    target_registry,
    to_ctypes,
)

_REFRESHED = "zygote_py.refreshed"


class _Refreshed(CPU):
    """The CPU, while the implementations in all modules of Numba's have been installed."""


class _Context:
    """The target context as attributes and methods ask for it when they are made: it need not be refreshed."""

    @property
    def _registries(self) -> Any:
        return cpu_target.target_context._registries

    def refresh(self) -> None:
        """Numba asks for this each time."""


class _Target(CPUTarget):
    target_context = _Context()


class _Dispatcher(CPUDispatcher):
    targetdescr = _Target(_REFRESHED)  # type: ignore[no-untyped-call]


target_registry[_REFRESHED] = _Refreshed
dispatcher_registry[_Refreshed] = _Dispatcher


def refresh() -> None:
    """Let Numba look at what it has been told: it may be compiling just now a function that asks for it.

    Each attribute and method that has an implementation in Python, and there are 250, refreshes all contexts when it is
    made (0.68.1): a sixth of the time for the first refreshing of a process. Another target stands in for that time.
    """
    context = cpu_target.target_context
    context.load_additional_registries()
    context.install_registry(imputils.builtin_registry)
    with target_override(_REFRESHED):
        context.typing_context.refresh()
    context.refresh()  # what was told in the meantime


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
