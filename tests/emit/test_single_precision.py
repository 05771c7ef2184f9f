"""Single precision in, single precision throughout: no value of double precision in the loops of a gradient.

Two views of the compiled gradient: the types that Numba infers for every variable and operation of the emitted source,
and the machine's instructions. The second is for real numbers only: Numba's own complex square root computes in double.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from zygote_py import gradient

pytestmark = pytest.mark.optimised

x, y = np.float32(0.5), np.float32(1.5)
z = np.complex64(0.5 - 0.25j)
a = np.linspace(0.5, 1.5, 4, dtype=np.float32)
c = (a + 1j * a[::-1]).astype(np.complex64)


def loop(x: np.float32, n: int) -> np.float32:
    r = x
    for _ in range(n):
        r = r * math.sin(x) + math.exp(-r * r)
        if r > x:
            r = math.sqrt(abs(r)) / (x + r)
    return r


def elementary(x: np.float32, y: np.float32) -> np.float32:
    t = math.tanh(x) * math.atan2(y, x) + math.hypot(x, y) * np.log1p(x) + np.arctan(x) * np.cosh(y) + math.erf(x)
    t += np.arcsin(x) + np.arccosh(y) + np.arcsinh(x) + np.expm1(x) + np.exp2(x) + np.log2(x) + np.log10(y)
    return t + np.logaddexp(x, y) + np.deg2rad(x) + np.square(x) + np.reciprocal(y)


def selected(x: np.float32, y: np.float32) -> np.float32:
    t = max(x, y) * np.minimum(x, y) + np.fmax(x, y) + math.copysign(x, y) * math.fabs(x) + (x if x > y else y)
    return t + x % y + np.where(x > y, x, y)


def powers(x: np.float32, y: np.float32) -> np.float32:
    return x**y + np.power(x, y) + x**3 + y**-2


def elements(a: np.ndarray, b: np.ndarray) -> np.float32:
    t = a[0]
    for k in range(len(a)):
        t += a[k] * b[k] / (a[k] + b[k])
    return t


def whole(a: np.ndarray, b: np.ndarray) -> np.float32:
    return np.sum(np.exp(a) * b + np.sqrt(b))


def written(a: np.ndarray) -> np.float32:
    for k in range(1, len(a)):
        a[k] *= a[k - 1]
    return a[-1]


def turned(z: np.complex64, x: np.float32) -> np.float32:
    w = z
    for _ in range(3):
        w = w * z + np.exp(w) * x / z
    return abs(w) + np.sin(w).imag + cmath.phase(w) + (w * w.conjugate()).real + np.arctan(w).real


def complex_elements(c: np.ndarray, a: np.ndarray) -> np.float32:
    t = c[0]
    for k in range(len(c)):
        t += c[k].conjugate() * a[k] / c[k]
    return np.real(t) + np.sum(np.abs(c))


REAL: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (loop, (x, 3)),
    (elementary, (x, y)),
    (selected, (x, y)),
    (powers, (x, y)),
    (elements, (a, a)),
    (whole, (a, a)),
    (written, (a,)),
]
COMPLEX: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [(turned, (z, x)), (complex_elements, (c, a))]
DOUBLE = ("float64", "complex128")


def by_name(found: object) -> str:
    return getattr(found, "__name__", "")


@pytest.mark.parametrize(("function", "args"), REAL + COMPLEX, ids=by_name)
def test_no_double_is_inferred(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    df = gradient(function)
    source = df.source(*args)
    df(*(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args))
    (compiled,) = df._entry_dispatcher().overloads.values()
    annotation = compiled.type_annotation
    # Names with a dollar sign are Numba's own; among them are the literals, which are made single at once.
    inferred = {name: str(kind) for name, kind in annotation.typemap.items() if "$" not in name}
    assert any(kind in ("float32", "complex64") for kind in inferred.values())
    wide = {name: kind for name, kind in inferred.items() if any(double in kind for double in DOUBLE)}
    for expression, signature in annotation.calltypes.items():
        if getattr(expression, "op", "") in ("binop", "inplace_binop", "unary") and signature is not None:
            wide |= {str(expression): str(signature) for kind in DOUBLE if kind in str(signature)}
    assert not wide, source


@pytest.mark.parametrize(("function", "args"), REAL + COMPLEX, ids=by_name)
def test_the_function_itself_is_of_single_precision(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    compiled = njit(function)
    compiled(*(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args))
    (overload,) = compiled.overloads.values()
    assert str(overload.signature.return_type) == "float32"


@pytest.mark.parametrize(("function", "args"), REAL, ids=by_name)
def test_no_instruction_computes_in_double(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    lines = gradient(function).inspect_llvm(*args).splitlines()
    wide = [line for line in lines if " double " in line and not line.startswith(("declare", "@", "attributes"))]
    assert any(" float " in line for line in lines)
    assert not wide


def test_the_gradient_is_of_single_precision() -> None:
    for function, args in REAL[4:] + COMPLEX[1:]:
        found = gradient(function)(*(arg.copy() for arg in args))
        for part, arg in zip(found if isinstance(found, tuple) else (found,), args, strict=True):
            assert part.dtype == arg.dtype


def test_a_constant_is_rounded() -> None:
    assert gradient(lambda x: x * float(np.float32(0.1)))(2.0) == float(np.float32(0.1))
