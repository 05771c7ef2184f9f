"""Forms: which derivative something is, as plain data.

    GradientForm(wrt=None, with_value=False, closure=False)

A form says which arguments a derivative takes and how messages name them. What it makes of a function, for the types of
the arguments of a call, `zygote_py.compiler.pipeline.derive` says.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from zygote_py import base, numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.base import define
from zygote_py.compiler.request import Request, Wrt, make_request, names_of
from zygote_py.ir import Type, components_of
from zygote_py.ir.lazy_dataclass import dataclass


def hashable(wrt: Any) -> Any:
    """Return `wrt`, with a list converted to a tuple."""
    return tuple(wrt) if isinstance(wrt, list) else wrt


def signature_of(*names: str) -> inspect.Signature:
    """Return a signature with these parameters."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


class Form:
    """Which derivative something is: frozen data, compared and hashed by its fields.

    Attributes
    ----------
    has_own_entry : bool
        Whether compiled code calls another dispatcher than Python does.
    entry_options : Mapping
        The options of Numba that this dispatcher has besides those of the function.
    kernel : callable or None
        How it is compiled; None for `zygote_py.cache.find`.
    gives_gradients : bool
        Whether the result is that of `gradient`, of the same parameters.
    """

    has_own_entry = False
    entry_options: Mapping[str, object] = MappingProxyType({})
    kernel: Callable[..., Any] | None = None
    gives_gradients = False

    def request(self, primal: Any, captured_count: int, inner: Request | None) -> Request:
        """Return the request for a call from Python."""
        raise NotImplementedError

    def count(self, args: Sequence[Any]) -> int:
        """Return the number of arguments that the function gets if the derivative is called with these."""
        return len(args)

    def expanded(self, primal: Any, count: int) -> Form:
        """Return the form for this number of arguments of a function of `*args`."""
        return self

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return the signature of the derivative, given that of the function."""
        return of

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return the derivative for the types of a call: unless it is made in another way, what `written` returns."""
        return call.written(self.written(call), call.argument_types)

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a Python function of the arguments, followed by the differentiated function."""
        raise NotImplementedError

    def argument_text(self, request: Request, text: str) -> str:
        """Return the name of an argument, or a part of one, in messages: `x`, `x.layers[0]`."""
        return f"the argument `{text}`"

    def kinds(self, argument_types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the types of the arguments of the differentiated function."""
        return argument_types

    def each_value(self, convert: Callable[[Any], Any], result: Any) -> Any:
        """Return the result with what `convert` makes of each part of it that is like a value of the function."""
        return result

    def finishing(self, function: Callable[..., Any], count: int, kernels: Callable[[int], Any]) -> Callable[..., Any]:
        """Return the function that calls from Python run, given the compiled function of `count` arguments."""
        return function


@dataclass(frozen=True, slots=True)
class GradientForm(Form):
    """`gradient` and `value_and_gradient`, with their options."""

    gives_gradients = True
    wrt: Wrt = None
    with_value: bool = False
    closure: bool = False
    has_aux: bool = False
    mode: str = "auto"

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "forward", "reverse"):
            raise DifferentiationError(f"mode={self.mode!r}", hint="it is 'auto', 'forward' or 'reverse'")

    def __str__(self) -> str:
        return "value_and_gradient" if self.with_value else "gradient"

    def request(self, primal: Any, captured_count: int = 0, inner: Request | None = None) -> Request:
        """Return the request."""
        with_value, closure, has_aux = self.with_value, self.closure, self.has_aux
        return make_request(
            primal,
            self.wrt,
            with_value=with_value,
            closure=closure,
            captured_count=captured_count,
            inner=inner,
            has_aux=has_aux,
            mode=self.mode,
        )

    def expanded(self, primal: Any, count: int) -> GradientForm:
        """Return the form for this number of arguments of a function of `*args`."""
        return replace(self, wrt=hashable(names_of(self.wrt, primal, count)))

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """The gradient of a function that takes `*args`: that of one which passes as many on as there are."""
        rest = components_of(call.argument_types[-1])
        *own, star = inspect.signature(call.func).parameters
        names = [*own, *(f"{star}_{number}" for number in range(len(rest)))]
        given = [*own, *(f"{star}[{number}]" for number in range(len(rest)))]
        wrt = names_of(self.wrt, call.func, len(names))
        text = (
            f"def {call.name}_{self}({', '.join((*own, star))}, closure_):\n"
            f"    def {call.name}({', '.join(names)}):\n"
            f"        return closure_({', '.join(names)})\n"
            f"    return derived_({call.name})({', '.join(given)})\n"
        )
        name, values = f"{call.name}_{self}", {"derived_": applying(replace(self, wrt=hashable(wrt)))}
        return define(text, name, values, filename=f"<zygote_py {name}>")


@dataclass(frozen=True, slots=True)
class PushForm(Form):
    """The pushforward that derivatives in forward mode are made of (see `zygote_py.compiler.jvp`).

    It returns the value and a tuple of tangents; without `with_value`, these alone. Where it is called `again`, for
    other directions of what shall be the same run of the function, that must not draw random numbers.
    """

    with_value: bool = True
    again: bool = False

    def __str__(self) -> str:
        return "pushforward"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the arguments as a tuple, and a tuple of tangents for each direction."""
        return signature_of("args", "tangents")


@dataclass(frozen=True, slots=True)
class TraceForm(Form):
    """The form of the function that detects sparsity (see `zygote_py.compiler.jvp`)."""

    def __str__(self) -> str:
        return "dependence"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the arguments as a tuple, and a tuple with a tuple of sets."""
        return signature_of("args", "indices")


@dataclass(frozen=True, slots=True)
class CheckedForm(Form):
    """The form of the function itself, which refuses arrays that share memory and that it writes to."""

    def __str__(self) -> str:
        return "checked"


@functools.cache
def applying(form: Form) -> Callable[..., Any]:
    """Stand for a form, in functions that this package compiles: `applying(form)(f)`; it cannot be called."""

    def made(f: Any) -> Any:
        raise NotImplementedError

    made.__name__ = str(form)
    made.__qualname__ = repr(form)  # by which the cache tells forms apart
    numba_adapter.embed(made, _is_internal, form=lambda options: form)
    return made


def _is_internal(f: Any, options: Any) -> Any:
    raise NotImplementedError
