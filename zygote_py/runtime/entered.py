"""The code that calls of a derivative from Python run, for compiled callers that pass captured values likewise.

found = entered(df, (types.float64, types.int64))
found.dispatcher(x, n, *found.captured)     # df(x, n), while found.is_current
"""

from __future__ import annotations

from typing import Any

from zygote_py import numba_adapter
from zygote_py.base import are_unchanged
from zygote_py.cache import as_captured
from zygote_py.compiler import DeviceCode, compile_for_device
from zygote_py.ir import Type
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.runtime.compiled_function import DerivativeFunction
from zygote_py.runtime.state import Generation


@dataclass(frozen=True, slots=True)
class Entered:
    """The code of a derivative for some types: a dispatcher that takes the arguments, then the captured values."""

    derivative: DerivativeFunction[..., Any]
    generation: Generation
    dispatcher: Any
    result: Type

    @property
    def captured(self) -> tuple[object, ...]:
        """The present values of captured variables."""
        return self.generation.captured()

    @property
    def is_current(self) -> bool:
        """Whether it computes what the function does now."""
        return self.derivative._now is self.generation and not self.derivative._is_outdated()


def entered(df: DerivativeFunction[..., Any], argument_types: tuple[Type, ...]) -> Entered:
    """Return the code of a derivative for these types of all its arguments. Raises DifferentiationError."""
    of = _for_count(df, len(argument_types))
    if of._is_outdated():
        of.rules_have_changed()
    _, dispatcher, signature = of._ready(argument_types)
    return Entered(of, of._now, dispatcher, dispatcher.overloads[signature].signature.return_type)


@dataclass(frozen=True, slots=True)
class DeviceEntered:
    """The code of a derivative for some types, for a device."""

    derivative: DerivativeFunction[..., Any]
    generation: Generation
    code: DeviceCode

    @property
    def result(self) -> Type:
        """The type of the result."""
        return self.code.result

    @property
    def captured(self) -> tuple[object, ...]:
        """The present values of captured variables."""
        return tuple(capture.read() for capture in self.code.hidden)

    @property
    def is_current(self) -> bool:
        """Whether it computes what the function does now."""
        df, frozen = self.derivative, self.code.frozen
        return (
            df._now is self.generation
            and not df._is_outdated()
            and are_unchanged([each.read for each in frozen], [each.value for each in frozen])
            and all(
                as_captured(numba_adapter.typeof(value)) == capture.type
                for value, capture in zip(self.captured, self.code.hidden, strict=True)
            )
        )


def device_entered(df: DerivativeFunction[..., Any], argument_types: tuple[Type, ...]) -> DeviceEntered:
    """Return the code of a derivative for a device, for these types of all arguments. Raises DifferentiationError."""
    of = _for_count(df, len(argument_types))
    if of._is_outdated():
        of.rules_have_changed()
    with numba_adapter.COMPILER_LOCK:
        return DeviceEntered(of, of._now, compile_for_device(of._request, argument_types))


def bound(
    df: DerivativeFunction[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names and the values of all arguments, defaults among them. Raises TypeError if they do not fit."""
    of = _for_count(df, len(args))
    values = of._bind(args, kwargs)
    return tuple(of._request.signature.parameters), values


def _for_count(df: DerivativeFunction[..., Any], count: int) -> DerivativeFunction[..., Any]:
    found: DerivativeFunction[..., Any] = df._of(df.form.count(range(count))) if df._star else df
    return found
