"""What is made of functions inside functions: the forms of derivatives, as `gradient(f)` in what is differentiated.

    GradientForm(wrt=None, with_value=False, closure=False)

A form makes a typed function for the types of the arguments of a call (see `zygote_py.numba_adapter.derived`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from zygote_py import numba_adapter
from zygote_py.base.python_text import define
from zygote_py.cache import Kernel, find
from zygote_py.capture import Capture
from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of
from zygote_py.requests import Request, Wrt, make_request
from zygote_py.starred import names_of, star_of

if TYPE_CHECKING:
    from zygote_py.numba_adapter import DerivedCall
    from zygote_py.statements import TypedFunction


def hashable(wrt: Any) -> Any:
    """What to differentiate with respect to, a list as a tuple."""
    return tuple(wrt) if isinstance(wrt, list) else wrt


def signature_of(*names: str) -> inspect.Signature:
    """The signature of these parameters."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


class Form:
    """Which derivative something is: frozen data, compared and hashed by what it says.

    Attributes:
        has_own_entry: whether compiled code calls another dispatcher than Python does.
        entry_options: the options of Numba that this dispatcher has besides those of the function.
    """

    has_own_entry = False
    entry_options: Mapping[str, object] = MappingProxyType({})

    def request(self, primal: Any, held: int, inner: Request | None) -> Request:
        """What is asked for where it is called from Python."""
        raise NotImplementedError

    def typed(self, call: DerivedCall) -> TypedFunction:
        """It as a function that is called in one that is differentiated, for the types of the call's arguments."""
        raise NotImplementedError

    def count(self, args: Sequence[Any]) -> int:
        """How many arguments the function gets where it is called with these."""
        return len(args)

    def expanded(self, primal: Any, count: int) -> Form:
        """The same for so many arguments of a function that takes `*args`."""
        return self

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Its parameters, for those of the function."""
        return of

    def argument_text(self, request: Request, text: str) -> str:
        """How messages call an argument, or a part of one: `x`, `x.layers[0]`."""
        return f"the argument `{text}`"

    def kinds(self, argument_types: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of the arguments of the function to be differentiated."""
        return argument_types

    def kernel(
        self, request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
    ) -> tuple[Kernel, tuple[Capture, ...]]:
        """What is compiled for a signature; see `zygote_py.cache.find`."""
        return find(request, argument_types, hidden)

    def finishing(self, function: Callable[..., Any], count: int) -> Callable[..., Any]:
        """What calls from Python run, for the compiled function of `count` arguments."""
        return function


@dataclass(frozen=True, slots=True)
class GradientForm(Form):
    """`gradient` and `value_and_gradient`, with their options."""

    wrt: Wrt
    with_value: bool
    closure: bool
    has_aux: bool = False

    def __str__(self) -> str:
        return "value_and_gradient" if self.with_value else "gradient"

    def request(self, primal: Any, held: int = 0, inner: Request | None = None) -> Request:
        """What is asked for."""
        with_value, closure, has_aux = self.with_value, self.closure, self.has_aux
        return make_request(
            primal, self.wrt, with_value=with_value, closure=closure, held=held, inner=inner, has_aux=has_aux
        )

    def expanded(self, primal: Any, count: int) -> GradientForm:
        """The same for so many arguments of a function that takes `*args`."""
        return replace(self, wrt=hashable(names_of(self.wrt, primal, count)))

    def typed(self, call: DerivedCall) -> TypedFunction:
        """The gradient for these types."""
        from zygote_py.compile import typed_gradient

        if star_of(call.func) and not self.closure:
            return call.written(self._of_all(call), call.argument_types)
        request = self.request(call.func)
        return typed_gradient(replace(request, options=call.options, name=f"{call.name}_{self}"), call)

    def _of_all(self, call: DerivedCall) -> Callable[..., Any]:
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
        made: Callable[..., Any] = define(text, name, values, filename=f"<zygote_py {name}>")
        return made


@dataclass(frozen=True, slots=True)
class PushForm(Form):
    """The pushforward that derivatives in forward mode are made of (see `zygote_py.pushed`).

    It gives the value too if `with_value`. `again` says that it is called several times for what shall be the same run.
    """

    with_value: bool = True
    again: bool = False

    def __str__(self) -> str:
        return "pushforward"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """The arguments as a tuple, and a tuple of tangents for each direction."""
        return signature_of("args", "tangents")

    def typed(self, call: DerivedCall) -> TypedFunction:
        """The pushforward for these types."""
        from zygote_py.pushed import typed_pushforward

        return typed_pushforward(call, push, with_value=self.with_value, again=self.again)


@dataclass(frozen=True, slots=True)
class TraceForm(Form):
    """The form of what finds out what depends on what (see `zygote_py.traced`)."""

    def __str__(self) -> str:
        return "dependence"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """The arguments as a tuple, and a tuple with a tuple of sets."""
        return signature_of("args", "indices")

    def typed(self, call: DerivedCall) -> TypedFunction:
        """What finds out, for these types."""
        from zygote_py.traced import typed_trace

        return typed_trace(call)


def push(f: Any, *, with_value: bool = True, again: bool = False) -> Any:
    """The pushforward of a function, in functions that are compiled here; no function to call.

    It returns the value and a tuple of tangents, or these alone. Where it is called `again`, for other directions of
    what shall be the same run of the function, that must not draw random numbers.
    """
    raise NotImplementedError


@functools.cache
def applying(form: Form) -> Callable[..., Any]:
    """What stands for a form in functions that are compiled here, `applying(form)(f)`; no function to call."""

    def made(f: Any) -> Any:
        raise NotImplementedError

    made.__name__ = str(form)
    numba_adapter.embed(made, _is_internal, form=lambda options: form)
    return made


def _is_internal(f: Any, options: Any) -> Any:
    raise NotImplementedError


numba_adapter.embed(
    push,
    _is_internal,
    ("with_value", "again"),
    form=lambda options: PushForm(options.get("with_value", True), options.get("again", False)),
)
