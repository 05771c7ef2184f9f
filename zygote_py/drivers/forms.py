"""Forms of derivatives that are written in Python, on top of gradients and pushforwards: `Jacobian(wrt=0)`, ...

`Driver.written` returns the function for given argument types; its last parameter is the differentiated function (see
`zygote_py.numba_adapter.embedding.transforms`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, element_of
from zygote_py.compiler import Form, Leaf, Request, Script, Wrt, hashable, leaves, make_request, names_of
from zygote_py.frontend.values import is_whole, leaves_of
from zygote_py.ir import Type, leaf_types
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SelectedParameter:
    """A selected parameter: its name, the text of its value, its number, and the type of the argument."""

    name: str
    text: str
    number: int
    type: Type

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The numbers and arrays in it. Raises DifferentiationError for lists and the like."""
        return tuple(leaves(self.text, self.type))


def _is_complex(kind: Type) -> bool:
    """Return whether there are complex numbers in an array, a list, a dict or an object, or this is one."""
    if isinstance(kind, types.Array | types.List) and not isinstance(kind.dtype, types.Record):
        return any(map(_is_complex, leaf_types(element_of(kind))))
    return any(map(_is_complex, leaves_of(kind))) if is_whole(kind) else isinstance(kind, types.Complex)


@dataclass(frozen=True)
class Driver(Form):
    """A derivative with respect to `wrt`; the first `captured_count` parameters are captured variables."""

    wrt: Wrt = 0
    captured_count: int = 0

    def __str__(self) -> str:
        return type(self).__name__.lower()

    def request(self, primal: Any, captured_count: int, inner: Request | None) -> Request:
        """Return the request for a call from Python."""
        made = make_request(primal, self.wrt, with_value=False, captured_count=captured_count, inner=inner)
        signature = self.signature(made.signature)
        name = f"{made.name.removesuffix('_gradient')}_{self}"
        return replace(made, form=self, primal=primal, signature=signature, name=name, keyword_only=0)

    def expanded(self, primal: Any, count: int) -> Driver:
        """Return the form for a function of `*args` that is called with `count` arguments."""
        return replace(self, wrt=hashable(names_of(self.wrt, primal, count)))

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a Python function of the arguments, followed by the differentiated function."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- to write them

    def script(self, call: numba_adapter.DerivedCall, parameters: Sequence[str]) -> Script:
        """Return the script that a driver is written to."""
        return Script(f"{call.name}_{self}", parameters, namespace={"np": np})

    def start(self, call: numba_adapter.DerivedCall) -> tuple[Script, list[str], list[SelectedParameter], bool]:
        """Return a new script, its parameters, the selected ones, and whether one was asked for by itself."""
        script = self.script(call, call.parameters)
        return script, script.parameters, *self.asked(call, script)

    def asked(self, call: numba_adapter.DerivedCall, script: Script) -> tuple[list[SelectedParameter], bool]:
        """Return the selected parameters, integers converted to floats, and whether `wrt` is not a tuple.

        Raises DifferentiationError for a parameter that has no derivative.
        """
        request = make_request(call.func, self.wrt, with_value=False, captured_count=self.captured_count)
        names, called = call.parameters, script.parameters
        numbers = range(self.captured_count, len(names)) if request.wrt is None else request.wrt
        found = []
        for number in numbers:
            if isinstance(number, str):
                raise refuse(
                    f"`{self}` with respect to `{number}`, which is not a parameter",
                    request.loc,
                    f"make it a parameter, or name one of {', '.join(names)}",
                )
            name, kind = names[number], call.argument_types[number]
            if isinstance(kind, types.Integer):
                script.add(f"{called[number]} = float({called[number]})")
                kind = types.float64
            if not carries_adjoint(kind):
                raise refuse(
                    f"no {self} with respect to `{name}`, which is of type {kind}",
                    request.loc,
                    hint=f"pass floats for `{name}`, or leave it out of wrt",
                )
            if any(map(_is_complex, leaf_types(kind))):
                raise refuse(
                    f"`{self}` with respect to `{name}`, which is complex",
                    request.loc,
                    hint="let the function take the real and the imaginary part",
                )
            found.append(SelectedParameter(name, called[number], number, kind))
        return found, request.unwrap_single
