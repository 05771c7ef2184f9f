"""What is made of functions inside functions: the forms of derivatives, as `gradient(f)` in what is differentiated.

    GradientForm(wrt=None, with_value=False, closure=False)

A form makes a typed function for the types of the arguments of a call (see `zygote_py.numba_adapter.derived`).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zygote_py.requests import Wrt, make_request

if TYPE_CHECKING:
    from zygote_py.numba_adapter import DerivedCall
    from zygote_py.statements import TypedFunction


@dataclass(frozen=True, slots=True)
class GradientForm:
    """`gradient` and `value_and_gradient`, with their options."""

    wrt: Wrt
    with_value: bool
    closure: bool

    def __str__(self) -> str:
        return "value_and_gradient" if self.with_value else "gradient"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """The parameters are those of the function."""
        return of

    def typed(self, call: DerivedCall) -> TypedFunction:
        """The gradient for these types."""
        from zygote_py.compile import typed_gradient

        wrt = tuple(self.wrt) if isinstance(self.wrt, list) else self.wrt
        request = make_request(call.func, wrt, with_value=self.with_value, closure=self.closure)
        return typed_gradient(replace(request, options=call.options, name=f"{call.name}_{self}"), call)
