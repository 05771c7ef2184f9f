"""Complex numbers from end to end: gradients compared with differences in the real and the imaginary direction."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from tests.checking.derivatives import ARRAYS, check_derivatives
from tests.plain import plain
from zygote_py import gradient, value_and_gradient
from zygote_py.adjoints import DifferentiationError

pytestmark = pytest.mark.interpreted

rng = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


# In z and w, complex, x, real, and the integer n; each group is compiled once.
EXPRESSIONS = {
    "operators": """
        z * w; z / w; z + x; x - z; x * z; z / x; x / z; z - 1; 2 * z; z / 2; -z; +z; 2j * z - 1; n * z
        z ** w; z ** x; x ** z; z ** 2; z ** 1; z ** -3; z ** 0.5; z ** 2.5; 2 ** z; z ** n; z ** (1 + 2j); pow(z, w)
        (-x) ** z; z ** -x; cmath.log(z, -x); cmath.log(-x, z); (-2) ** z; np.power(z, -2); z * -x
        (z + x) * (1 - z * x)
    """,
    "parts": """
        abs(z) + 0j; complex(x, 2 * x * x); complex(x); complex(z.real, x) * z.imag
        z.real + 1j * z.imag ** 2
        np.real(z) * z; np.imag(z) * w; np.conj(z) * w; np.conjugate(z); z.conjugate() * z
        x.conjugate() * z; x.imag * z
        np.angle(z) * w; np.angle(z, True) * w; cmath.phase(z) * w; np.abs(z) * 1j; np.real(x) * z
        cmath.polar(z)[0] * cmath.polar(w)[1] * z; cmath.rect(x, x * x); np.complex128(z) * z; np.complex128(x)
        np.complex64(1.5) * z; z if x > 0 else w; (z if z == w else w) * z; (z if z != w else w) * z
        (z if z else w) * z
        np.where(x > 0, z, w) * z; np.maximum(z, w); np.minimum(z, w); np.fmax(z, w); np.fmin(z, w)
        (z if cmath.isfinite(z) and not cmath.isnan(z) else w) * z; np.nan_to_num(z) * z
        max(z.real, w.real) * z
    """,
    "cmath": """
        cmath.exp(z); cmath.log(z); cmath.log(z, w); cmath.log10(z); cmath.sqrt(z); cmath.sin(z); cmath.cos(z)
        cmath.tan(z); cmath.sinh(z); cmath.cosh(z); cmath.tanh(z); cmath.asin(z); cmath.acos(z); cmath.atan(z)
        cmath.asinh(z); cmath.acosh(z); cmath.atanh(z); cmath.sqrt(-x); cmath.log(-x); cmath.exp(x); cmath.acos(x + 2.0)
        cmath.asin(x - 3.0); cmath.acosh(complex(x - 3.0, 0.0)); cmath.atanh(x + 2.0)
    """,
    "numpy": """
        np.exp(z); np.exp2(z); np.expm1(z); np.log(z); np.log2(z); np.log10(z); np.log1p(z); np.sqrt(z); np.square(z)
        np.reciprocal(z); np.sin(z); np.cos(z); np.tan(z); np.sinh(z); np.cosh(z); np.tanh(z); np.sinc(z)
        np.arcsin(z); np.arccos(z); np.arctan(z); np.arcsinh(z); np.arccosh(z); np.arctanh(z)
        np.power(z, w); np.power(z, x); np.power(x, w); np.float_power(z, w); np.multiply(z, x); np.divide(x, z)
        np.divide(z, x); np.add(z, x); np.subtract(x, z); np.negative(z); np.positive(z); np.true_divide(z, w)
    """,
}
POINT = (0.7 - 0.45j, -0.3 + 0.8j, 0.6, 3)


def slopes(function: Callable[..., float], point: tuple[Any, ...], index: int) -> complex:
    """The gradient with respect to one argument by differences of sixth order in each of its directions."""
    step = 2e-3

    def along(direction: complex) -> float:
        def at(t: float) -> float:
            return function(*(x + t * direction if k == index else x for k, x in enumerate(point)))

        differences = [at(k * step) - at(-k * step) for k in (1, 2, 3)]
        return (45 * differences[0] - 9 * differences[1] + differences[2]) / (60 * step)

    if isinstance(point[index], complex):
        return along(1) + 1j * along(1j)
    return along(1.0)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "group", [pytest.param(each, marks=pytest.mark.long if each in ("cmath", "numpy") else ()) for each in EXPRESSIONS]
)
def test_expressions(group: str) -> None:
    expressions = [each.strip() for line in EXPRESSIONS[group].splitlines() for each in line.split(";") if each.strip()]
    lines = [f"total += weights[{k}] * (({each}) * (0.7 - 0.4j)).real" for k, each in enumerate(expressions)]
    namespace: dict[str, Any] = {"np": np, "cmath": cmath}
    exec("\n    ".join(["def f(z, w, x, n, weights):", "total = 0.0", *lines, "return total"]), namespace)
    function = namespace["f"]
    compiled = numba.njit(function)
    differentiated = value_and_gradient(function, wrt=("z", "w", "x"))
    for k, each in enumerate(expressions):
        weights = np.zeros(len(expressions))
        weights[k] = 1.0
        value, found = differentiated(*POINT, weights)
        assert value == compiled(*POINT, weights), each
        assert [type(part) for part in found] == [complex, complex, float]
        for index, got in enumerate(found):
            want = slopes(lambda *point: compiled(*point, weights), POINT, index)
            assert abs(got - want) <= 3e-11 * (1 + abs(want)), (each, index, got, want)


def julia(z: complex, c: complex, n: int) -> complex:
    w = z
    for _ in range(n):
        w = w * w * 0.3 + c
        if abs(w) > 1.2:
            w = w / abs(w)
    return w


def newton(z: complex, a: complex) -> complex:
    steps = 0
    while abs(z * z * z - a) > 1e-3 and steps < 30:
        z -= (z * z * z - a) / (3 * z * z)
        steps += 1
    return z


def horner(a: np.ndarray, z: complex) -> complex:
    r = a[0]
    for k in range(1, len(a)):
        r = r * z + a[k]
    return r


def mandelbrot_escape(c: complex) -> float:
    z = 0j
    for k in range(50):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag > 100.0:
            return k + 1 - math.log(math.log(abs(z)))
    return abs(z)


def fourier(x: np.ndarray) -> np.ndarray:
    n = len(x)
    out = np.zeros(n, np.complex128)
    for k in range(n):
        for j in range(n):
            out[k] += x[j] * cmath.exp(-2j * math.pi * j * k / n)
    return out


def recurrence(x: np.ndarray, s: complex) -> complex:
    for k in range(1, len(x)):
        x[k] *= x[k - 1].conjugate() + s
    return x[-1]


def energy(x: np.ndarray) -> float:
    total = x[0].real
    for v in x:
        total += abs(v) ** 2 + v.real * v.imag + cmath.phase(v)
    return total


def mixed(x: np.ndarray, y: np.ndarray) -> complex:
    total = y[0]
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


def pair(p: tuple[complex, complex]) -> tuple[complex, float]:
    a, b = p
    return a * b.conjugate(), abs(a)


def elementwise(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.exp(x) * y + np.conj(x)


def power_spectrum(x: np.ndarray) -> float:
    return np.sum(np.abs(x) ** 2)


def parts(x: np.ndarray) -> np.ndarray:
    return x.real * x.imag


def broadcast(a: np.ndarray, v: np.ndarray) -> np.ndarray:
    return a * v + a.T


def rows(a: np.ndarray, v: np.ndarray) -> complex:
    a[1] = v
    a[:, 0] *= v[1]
    return np.sum(a * a)


def write_parts(x: np.ndarray, r: np.ndarray) -> complex:
    x.real[:] = r
    x.imag[0] = r[1]
    return np.sum(x * x)


def ping_pong(a: np.ndarray, b: np.ndarray, n: int) -> complex:
    for _ in range(n):
        for k in range(len(a)):
            b[k] = a[k] * a[(k + 1) % len(a)] + a[k].conjugate()
        a, b = b, a
    return a[0]


C3, C4, C23 = numbers(3), numbers(4), numbers(2, 3)
DOUBLE = {"float32": False, "layouts": ("C",)}
PROGRAMS: dict[Callable[..., Any], tuple[tuple[Any, ...], dict[str, Any]]] = {
    julia: ((0.3 + 0.2j, 0.4 - 0.3j, 5), DOUBLE),
    newton: ((0.8 + 0.3j, 1.2 - 0.5j), {**DOUBLE, "tolerance": 1e-6}),
    horner: ((C4, 0.5 - 0.6j), {"layouts": ("C",)}),
    mandelbrot_escape: ((0.4 + 0.45j,), DOUBLE),
    fourier: ((C3,), DOUBLE),
    recurrence: ((C4, 0.3 + 0.1j), {"mutated": ("x",), "layouts": ("C",)}),
    energy: ((C4,), {"layouts": ("A",), "float32": False}),
    mixed: ((C3.real.copy(), C3), DOUBLE),
    pair: (((0.3 + 0.2j, 1.0 - 2.0j),), DOUBLE),
    elementwise: ((C3, numbers(3)), {"empty": [(C3[:0], C3[:0])], "layouts": ("C",)}),
    power_spectrum: ((C4,), {**DOUBLE, "empty": [(C4[:0],)]}),
    parts: ((C3,), {"empty": [(C3[:0],)], "layouts": ("A",), "float32": False}),
    broadcast: ((numbers(2, 2), numbers(2)), DOUBLE),
    rows: ((C23, C3), {"mutated": ("a",), "layouts": ("F",), "float32": False}),
    write_parts: ((C3, rng.normal(size=3)), {**DOUBLE, "mutated": ("x",)}),
    ping_pong: ((C3, numbers(3), 2), {**DOUBLE, "mutated": ("a", "b")}),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program: Callable[..., Any]) -> None:
    args, options = PROGRAMS[program]
    check_derivatives(program, *args, **ARRAYS | options)


def test_the_direction_of_steepest_ascent() -> None:
    assert gradient(lambda z: abs(z) ** 2)(3.0 - 4.0j) == 6.0 - 8.0j
    assert gradient(lambda z: (z * 1j).real)(2.0 + 0j) == -1j
    assert gradient(lambda z: z.imag)(2.0 + 0j) == 1j
    assert gradient(lambda z: (z.conjugate() * (1 + 2j)).real)(0.5j) == 1 + 2j


def test_zero_is_a_kink_with_gradient_zero() -> None:
    assert gradient(lambda z: abs(z))(0j) == 0
    assert gradient(lambda z: cmath.phase(z))(0j) == 0


def test_a_real_parameter_has_a_real_gradient() -> None:
    df = gradient(lambda x: abs(cmath.exp(1j * x) + x))
    found = df(0.7)
    assert isinstance(found, float)
    assert found == pytest.approx((0.7 + math.cos(0.7) - 0.7 * math.sin(0.7)) / abs(cmath.exp(0.7j) + 0.7))


SCALE = 2.0 - 1.0j


def test_captured_and_constant() -> None:
    turn = 0.6 + 0.8j

    def f(z: complex) -> float:
        return (z * z * SCALE * turn * (1 - 3j)).imag

    z = 0.25 + 0.5j
    want = (2 * z * SCALE * turn * (1 - 3j)).conjugate() * 1j
    assert gradient(f)(z) == pytest.approx(want)


@pytest.mark.compiled
def test_single_precision_stays() -> None:
    def f(z: np.complex64, x: np.float32) -> np.float32:
        w = z
        for _ in range(3):
            w = w * z + np.exp(w) * x
            if abs(w) > np.float32(2.0):
                w /= abs(w)
        return abs(w) + np.angle(w) * np.float32(0.0) + np.sqrt(w).imag

    z, x = np.complex64(0.25 + 0.5j), np.float32(0.75)
    df = gradient(f)
    signature = df._entry_dispatcher()
    df(z, x)
    ((dz, dx),) = (each.signature.return_type for each in signature.overloads.values())
    assert (str(dz), str(dx)) == ("complex64", "float32")
    compiled = numba.njit(f)
    found = df(z, x)
    for index, got in enumerate(found):
        want = slopes(compiled, (complex(z), float(x)), index)
        assert abs(got - want) < 1e-5 * abs(want)


def test_plain_python() -> None:
    def f(z: complex, x: float) -> float:
        w = cmath.log(z, 2 - 1j) + x * z**3 - 1j / z
        return abs(w) + w.real * cmath.phase(z)

    df = gradient(f)
    emitted = plain(df.source(POINT[0], POINT[2]))
    np.testing.assert_allclose(emitted(POINT[0], POINT[2]), df(POINT[0], POINT[2]), rtol=1e-13)


def test_a_complex_result_is_refused() -> None:
    with pytest.raises(DifferentiationError, match="complex128, not a real number"):
        gradient(lambda z: z * z)(1j)


def test_signs_are_refused() -> None:
    with pytest.raises(DifferentiationError, match=r"there is no rule for np\.sign\(complex128\)"):
        gradient(lambda z: (np.sign(z) * z).real)(1j)


def test_comparisons_need_no_derivative() -> None:
    def f(z: complex, w: complex) -> float:
        return (z if z == w else w).real + (2.0 if z != w else 3.0)

    assert gradient(f)(1j, 1j) == (1, 0)
    assert gradient(f)(1j, 2j) == (0, 1)
