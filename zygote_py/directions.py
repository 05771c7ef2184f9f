"""The public functions of derivatives in given directions: `jvp`, `pushforward`, `derivative`, `hvp`.

value, tangent = jvp(math.sin, (0.5,), (1.0,))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from zygote_py import numba_adapter
from zygote_py.derivative_function import DerivativeFunction
from zygote_py.drivers.directional import Derivative, Hvp, Pushforward
from zygote_py.drivers.forms import Driver
from zygote_py.drivers.matrices import Diagonal, Hessian, Jacobian
from zygote_py.forms import hashable
from zygote_py.requests import Wrt


def pushforward(f: Callable[..., Any]) -> DerivativeFunction:
    """pushforward."""
    return DerivativeFunction(f, Pushforward())


def jvp(f: Callable[..., Any], args: Any, tangents: Any) -> Any:
    """jvp."""
    return _pushforward_of(f, 0)(args, tangents)


def derivative(f: Callable[..., Any], wrt: Wrt = 0) -> DerivativeFunction:
    """derivative."""
    return DerivativeFunction(f, Derivative(hashable(wrt)))


def hvp(f: Callable[..., Any], wrt: Wrt = None) -> DerivativeFunction:
    """hvp."""
    return DerivativeFunction(f, Hvp(hashable(wrt)))


def hessian(f: Callable[..., Any], wrt: Wrt = 0) -> DerivativeFunction:
    """hessian."""
    return DerivativeFunction(f, Hessian(hashable(wrt)))


def hessian_diagonal(f: Callable[..., Any], wrt: Wrt = 0) -> DerivativeFunction:
    """hessian_diagonal."""
    return DerivativeFunction(f, Diagonal(hashable(wrt)))


def jacobian(f: Callable[..., Any], wrt: Wrt = 0, *, mode: str = "auto") -> DerivativeFunction:
    """jacobian."""
    return DerivativeFunction(f, Jacobian(hashable(wrt), mode=mode))


def value_gradient_hessian(f: Callable[..., Any], wrt: Wrt = 0) -> DerivativeFunction:
    """value_gradient_hessian."""
    return DerivativeFunction(f, Hessian(hashable(wrt), with_gradient=True))


@functools.lru_cache(maxsize=512)
def _pushforward_of(f: Callable[..., Any], held: int) -> DerivativeFunction:
    return DerivativeFunction(f, Pushforward(held=held), held)


def embed(function: Callable[..., Any], cls: Callable[..., Driver], options: tuple[str, ...] = ("wrt",)) -> None:
    """Let a function that makes derivatives be called in compiled code."""

    @functools.cache
    def made(f: Any, form: Driver) -> DerivativeFunction:
        return DerivativeFunction(f, form, form.held)

    def form(options: Mapping[str, Any]) -> Driver:
        given = dict(options)
        if "wrt" in given:
            given["wrt"] = hashable(given["wrt"])
        return cls(**given)

    numba_adapter.embed(function, lambda f, given: made(f, form(given)), options, form=form)


for _function in (jvp, pushforward):
    numba_adapter.embed(
        _function,
        lambda f, options: _pushforward_of(f, options.get("held", 0)),
        applied=_function is jvp,
        form=lambda options: Pushforward(),
    )
embed(derivative, Derivative)
embed(hvp, Hvp)
embed(hessian, Hessian)
embed(hessian_diagonal, Diagonal)
embed(jacobian, Jacobian, ("wrt", "mode"))
embed(value_gradient_hessian, functools.partial(Hessian, with_gradient=True))
