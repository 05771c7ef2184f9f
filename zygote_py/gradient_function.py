"""`GradientFunction`: what `gradient` and `value_and_gradient` give.

df = GradientFunction(lambda x: x * x, None, with_value=False)
df(3.0)                                 # 6.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

from zygote_py.derivative_function import DerivativeFunction
from zygote_py.forms import GradientForm, hashable
from zygote_py.requests import Wrt

P = ParamSpec("P")
R = TypeVar("R")


class GradientFunction(DerivativeFunction[P, R]):
    """The gradient of a function of real numbers and arrays, compiled for each signature that it is called with.

    It takes the arguments of the function. What it returns, `gradient` and `value_and_gradient` say. It is a function
    like any other: it can be called from compiled code and by several threads at once, copied and pickled.
    """

    def __init__(
        self,
        primal: Callable[..., Any],
        wrt: Wrt,
        *,
        with_value: bool,
        closure: bool = False,
        has_aux: bool = False,
        held: int = 0,
    ) -> None:
        super().__init__(primal, GradientForm(hashable(wrt), with_value, closure, has_aux), held)

    @classmethod
    def _made(cls, primal: Callable[..., Any], form: Any, held: int) -> Self:
        options = {"with_value": form.with_value, "closure": form.closure, "has_aux": form.has_aux}
        return cls(primal, form.wrt, held=held, **options)
