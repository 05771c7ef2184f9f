"""The library as type checkers see it in a user's code; checked by mypy and pyright, never run.

Every error that they must find is ignored, and an ignored error that they do not find is an error.
"""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import zygote_py as zg
from zygote_py import DerivativeFunction, GradientFunction, Pullback

Vector = NDArray[np.float64]


def energy(x: Vector, scale: float, steps: int = 10) -> float:
    return float(np.sum(x)) * scale * steps


def with_more(x: Vector, scale: float) -> tuple[float, Vector]:
    return scale, x


def flow(x: Vector) -> Vector:
    return x * 2.0


x = np.ones(3)
df = zg.gradient(energy)
df(x, 2.0)
df(x, scale=2.0, steps=3)
df(x, "two")  # type: ignore[arg-type]
df(x)  # type: ignore[call-arg]
df(x, 2.0, step=1)  # type: ignore[call-arg]
assert_type(zg.value_and_gradient(energy)(x, 2.0), tuple[float, Any])
assert_type(zg.gradient(with_more, has_aux=True)(x, 2.0), tuple[Any, Vector])
assert_type(zg.value_and_gradient(with_more, has_aux=True)(x, 2.0), tuple[tuple[float, Vector], Any])


@zg.gradient
def decorated(x: float, y: float) -> float:
    return x * y


@zg.gradient(wrt="x")
def with_options(x: float, y: float) -> float:
    return x * y


@zg.value_and_gradient(wrt="x")
def valued(x: float, y: float) -> float:
    return x * y


@zg.value_and_gradient(has_aux=True)
def valued_with_more(x: float) -> tuple[float, str]:
    return x, "more"


@zg.hessian(wrt=(0, 1))
def curved(x: float, y: float) -> float:
    return x * y


decorated(1.0, 2.0)
decorated(1.0)  # type: ignore[call-arg]
with_options(1.0, y=2.0)
with_options("a", 2.0)  # type: ignore[arg-type]
assert_type(valued(1.0, 2.0), tuple[float, Any])
assert_type(valued_with_more(1.0), tuple[tuple[float, str], Any])
curved(1.0, 2.0)
curved(1.0, 2.0, 3.0)  # type: ignore[call-arg]

hessian = zg.hessian(energy)
hessian(x, 2.0)
hessian(x, scale=[2.0])  # type: ignore[arg-type]
jacobian = zg.jacobian(flow)
jacobian(x)
jacobian()  # type: ignore[call-arg]
assert_type(zg.jvp(flow, (x,), (x,)), tuple[Vector, Vector])
assert_type(zg.pushforward(flow)((x,), (x,)), tuple[Vector, Vector])
assert_type(zg.pullback(energy, x, 2.0), tuple[float, Pullback])
value, back = zg.pullback(flow, x)
assert_type(value, Vector)
assert_type(back(x), tuple[Any, ...])
zg.pullback(energy, x)  # type: ignore[call-arg]
assert_type(zg.value_gradient_hessian(energy)(x, 2.0), tuple[float, Any, Any])
sparse = zg.hessian(energy, sparsity="detect")
assert_type(sparse, zg.SparseHessian)
kept: GradientFunction[[Vector, float], Any] = zg.gradient(with_more)
more: DerivativeFunction[[Vector], Any] = zg.jacobian(flow)
hessian.no_such_attribute  # type: ignore[attr-defined]
jacobian.no_such_attribute  # type: ignore[attr-defined]
zg.hvp(energy).no_such_attribute  # type: ignore[attr-defined]
back.no_such_attribute  # type: ignore[attr-defined]
zg.derivative(energy).no_such_attribute  # type: ignore[attr-defined]
