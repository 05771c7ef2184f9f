"""The forms of derivatives that are written in Python, on top of gradients and pushforwards: `Jacobian(wrt=0)`, ...

`Driver.written` gives the function for the types of a call's arguments; its last parameter is the function to be
differentiated (see `zygote_py.numba_adapter.derived`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from zygote_py.adjoints.errors import refuse
from zygote_py.drivers.writing import Leaf, Script, leaves
from zygote_py.forms import Form, hashable
from zygote_py.ir.core import Type
from zygote_py.requests import Request, Wrt, make_request
from zygote_py.starred import names_of

if TYPE_CHECKING:
    from zygote_py.numba_adapter import DerivedCall
    from zygote_py.statements import TypedFunction


@dataclass(frozen=True, slots=True)
class Asked:
    """A parameter that is asked for: its name, what it is called, its number, the argument's type, and its leaves."""

    name: str
    text: str
    number: int
    type: Type
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Driver(Form):
    """A derivative with respect to `wrt`; the first `held` parameters are captured variables."""

    wrt: Wrt = 0
    held: int = 0

    def __str__(self) -> str:
        return type(self).__name__.lower()

    def request(self, primal: Any, held: int, inner: Request | None) -> Request:
        """What is asked for."""
        made = make_request(primal, self.wrt, with_value=False, held=held, inner=inner)
        signature = self.signature(made.signature)
        name = f"{made.name.removesuffix('_gradient')}_{self}"
        return replace(made, form=self, primal=primal, signature=signature, name=name, keyword_only=0)

    def expanded(self, primal: Any, count: int) -> Driver:
        """The same for so many arguments of a function that takes `*args`."""
        return replace(self, wrt=hashable(names_of(self.wrt, primal, count)))

    def typed(self, call: DerivedCall) -> TypedFunction:
        """The function for these types."""
        return call.written(self.written(call), call.argument_types)

    def written(self, call: DerivedCall) -> Callable[..., Any]:
        """A Python function of the arguments, and of the function to be differentiated behind them."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- to write them

    def script(self, call: DerivedCall, parameters: Sequence[str]) -> Script:
        """What a driver is written into."""
        from zygote_py.api import gradient, value_and_gradient
        from zygote_py.forms import push

        known = {"np": np, "push": push, "gradient": gradient, "value_and_gradient": value_and_gradient}
        return Script(f"{call.name}_{self}", parameters, namespace=known)

    def asked(self, call: DerivedCall, script: Script) -> tuple[list[Asked], bool]:
        """The parameters that are asked for, an integer made a float first, and whether that is one without a tuple.

        Raises DifferentiationError for what has no derivative.
        """
        request = make_request(call.func, self.wrt, with_value=False, held=self.held)
        names, called = call.parameters, script.parameters
        numbers = range(self.held, len(names)) if request.wrt is None else request.wrt
        found = []
        for number in numbers:
            if isinstance(number, str):
                raise refuse(
                    f"`{self}` with respect to `{number}`, which is no parameter",
                    request.loc,
                    f"make it a parameter, or name one of {', '.join(names)}",
                )
            name, kind = names[number], call.argument_types[number]
            if isinstance(kind, types.Integer):
                script.add(f"{called[number]} = float({called[number]})")
                kind = types.float64
            own = tuple(leaves(called[number], kind))
            if not own:
                raise refuse(
                    f"no {self} with respect to `{name}`, which is of type {kind}",
                    request.loc,
                    hint=f"pass floats for `{name}`, or leave it out of wrt",
                )
            if any(leaf.is_complex for leaf in own):
                raise refuse(
                    f"`{self}` with respect to `{name}`, which is complex",
                    request.loc,
                    hint="let the function take the real and the imaginary part",
                )
            found.append(Asked(name, called[number], number, kind, own))
        return found, request.bare
