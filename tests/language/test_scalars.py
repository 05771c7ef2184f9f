"""Every real scalar operation that Numba compiles, through the whole path; integers, casts, float32, kinks.

Each operation is checked in plain Python at several points; a compiled function has many of them at once, as compiling
is what takes time.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from tests.checking.derivatives import PRECISELY, check_derivatives
from tests.random_programs.generator import load
from zygote_py import DifferentiationError, gradient, hessian, value_and_gradient

pytestmark = pytest.mark.interpreted

REAL = (-1.7, -0.3, 0.4, 2.2)
POSITIVE = (0.2, 0.9, 1.6, 3.1)
UNIT = (-0.8, -0.1, 0.3, 0.7)
ABOVE_ONE = (1.1, 1.9, 4.0)

OF_ONE = {
    REAL: """
        -x, +x, abs(x), float(x), x * x, x + x, x - x, 3 - x, x / 3, 2 / (1 + x * x), x ** 2, x ** 3, x ** -1,
        x ** -2, x ** 0, x ** 1, x ** 2.0, x ** -3.0, 2.0 ** x, 3 ** x, x // 0.7, x % 0.7, x // -0.7, x % -0.7,
        5.3 % (1 + x * x), 5.3 // (1 + x * x), x * True, x * (x > 0), x * int(x), x * round(x), round(x, 1),
        x * math.floor(x), x * math.ceil(x), x * math.trunc(x), x * bool(x), max(x, 0.1), min(x, 0.1),
        max(x, 0.1, -x), min(0.2, x, -x), math.sin(x), math.cos(x), math.tan(x), math.atan(x), math.sinh(x),
        math.cosh(x), math.tanh(x), math.asinh(x), math.exp(x), math.expm1(x), math.erf(x), math.erfc(x),
        math.fabs(x), math.copysign(2.0, x), math.copysign(x, -1.0), math.degrees(x), math.radians(x),
        math.atan2(x, 0.7), math.atan2(0.7, x), math.hypot(x, 0.7), math.hypot(0.7, x), math.pow(x, 3),
        math.pow(1.7, x), np.sin(x), np.cos(x), np.tan(x), np.arctan(x), np.sinh(x), np.cosh(x), np.tanh(x),
        np.arcsinh(x), np.exp(x), np.exp2(x), np.expm1(x), np.abs(x), np.absolute(x), np.fabs(x),
        np.negative(x), np.positive(x), np.square(x), np.reciprocal(x), np.sign(x) * x, np.sinc(x),
        np.floor(x) * x, np.ceil(x) * x, np.trunc(x) * x, np.rint(x) * x, np.deg2rad(x), np.rad2deg(x),
        np.degrees(x), np.radians(x), np.arctan2(x, 0.7), np.arctan2(0.7, x), np.hypot(x, 0.7),
        np.logaddexp(x, 0.7), np.logaddexp(0.7, x), np.logaddexp2(x, 0.7), np.maximum(x, 0.1),
        np.minimum(x, 0.1), np.fmax(x, 0.1), np.fmin(x, 0.1), np.copysign(x, 0.7), np.copysign(0.7, x),
        np.add(x, x), np.subtract(x, 2.0), np.multiply(x, x), np.divide(2.0, x), np.true_divide(x, 2.0),
        np.power(x, 2), np.power(1.7, x), np.fmod(x, 0.7), np.mod(x, 0.7), np.remainder(x, 0.7),
        np.floor_divide(x, 0.7) * x, np.cbrt(x), np.float64(x), np.where(x > 0, x, x * x) + 0.0, pow(x, 3),
        divmod(x, 0.7)[1], divmod(x, 0.7)[0] * x, np.where(x > 0, 1, 2) * x, (0.5 - np.where(x > 0, 1, 2)) * x,
        (np.where(x > 0, True, 2) + 0.5 + x) * x, np.add(np.where(x > 0, 1, 2), x)
    """,
    POSITIVE: """
        math.sqrt(x), math.log(x), math.log2(x), math.log10(x), math.log1p(x), math.gamma(x), math.lgamma(x),
        x ** 0.5, x ** 1.7, x ** x, x ** -0.5, math.pow(x, 1.7), np.sqrt(x), np.log(x), np.log2(x),
        np.log10(x), np.log1p(x), np.power(x, 1.7), np.power(x, x), np.float_power(x, 1.7), 7.7 % x
    """,
    UNIT: """
        math.asin(x), math.acos(x), math.atanh(x), np.arcsin(x), np.arccos(x), np.arctanh(x), math.log1p(x),
        np.log1p(x)
    """,
    ABOVE_ONE: """
        math.acosh(x), np.arccosh(x)
    """,
}
OF_TWO = """
    x + y, x - y, x * y, x / y, x // y * x, x % y, y ** x, np.power(y, x), math.pow(y, x), math.atan2(x, y),
    np.arctan2(x, y), math.hypot(x, y), np.hypot(x, y), max(x, y), min(x, y), np.maximum(x, y),
    np.minimum(x, y), np.fmax(x, y), np.fmin(x, y), np.copysign(x, -y), math.copysign(y, x), np.fmod(x, y),
    np.mod(x, y), np.logaddexp(x, y), np.logaddexp2(x, y), np.divide(x, y), divmod(x, y)[1] * y,
    x if x > y else y * y
"""
PAIRS = ((-1.7, 0.3), (0.4, 1.2), (2.2, 0.7))


def split(expressions: str) -> list[str]:
    """Split at the commas outside parentheses."""
    parts, depth = [""], 0
    for character in expressions:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def function(parameters: str, expression: str):
    return load(f"import math\nimport numpy as np\ndef f({parameters}):\n    return {expression}\n", f"<{expression}>")


CASES = [(e, points) for points, expressions in OF_ONE.items() for e in split(expressions)]


@pytest.mark.parametrize(("expression", "points"), CASES, ids=[e for e, _ in CASES])
def test_operation_of_one_number(expression, points):
    x, *further = points
    check_derivatives(function("x", expression), x, at=[(x,) for x in further], routes=("source",), **PRECISELY)


@pytest.mark.parametrize("expression", split(OF_TWO))
def test_operation_of_two_numbers(expression):
    check_derivatives(function("x, y", expression), *PAIRS[0], at=PAIRS[1:], routes=("source",), **PRECISELY)


@pytest.mark.compiled
@pytest.mark.parametrize("points", OF_ONE, ids=["real", "positive", "unit", "above one"])
def test_all_operations_of_one_number_compiled(points):
    terms = [f"{1 + k % 7} * ({e})" for k, e in enumerate(split(OF_ONE[points]))]
    for start in range(0, len(terms), 40):
        body = "\n    r += ".join(terms[start : start + 40])
        f = load(f"import math\nimport numpy as np\ndef f(x):\n    r = 0.0\n    r += {body}\n    return r\n")
        x, *further = points
        check_derivatives(f, x, at=[(x,) for x in further], tolerance=1e-9, **PRECISELY)


@pytest.mark.compiled
def test_all_operations_of_two_numbers_compiled():
    terms = " + ".join(f"{1 + k % 7} * ({e})" for k, e in enumerate(split(OF_TWO)))
    check_derivatives(function("x, y", terms), *PAIRS[0], at=PAIRS[1:], tolerance=1e-9, **PRECISELY)


@pytest.mark.parametrize("body", ["x += y", "x -= y", "x *= y", "x /= y", "x //= y", "x %= y", "x **= 2", "x **= y"])
def test_in_place_operator(body):
    f = load(f"def f(x, y):\n    z = x\n    {body}\n    return x * z * y\n")
    check_derivatives(f, 2.2, 0.7, at=[(0.4, 1.3)], routes=("source",), **PRECISELY)


# Powers: all cases of the exponent


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 3, 7])
def test_power_by_an_int_variable(n):
    check_derivatives(
        lambda x, n: x**n, -1.7, n, at=[(0.4, n), (2.2, n)], routes=("call",) if n == 7 else ("source",), **PRECISELY
    )


def test_power_at_zero():
    df = gradient(lambda x, n: x**n, wrt="x")
    assert [df(0.0, n) for n in (0, 1, 2, 3)] == [0.0, 1.0, 0.0, 0.0]
    assert gradient(lambda x: x**0)(0.0) == 0.0
    assert gradient(lambda x: x**1)(0.0) == 1.0
    assert gradient(lambda x: x**2.0)(0.0) == 0.0
    # The base does not move where the exponent has no say: 0**y is 0 for every y > 0.
    assert gradient(lambda x, y: x**y, wrt="y")(0.0, 2.0) == 0.0


def test_negative_base_to_a_float_power():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dx = gradient(lambda x, y: x**y, wrt="x")
        assert dx(-2.0, 3.0) == 12.0


# Kinks and ties: a finite one-sided or central choice, never a NaN


@pytest.mark.parametrize(
    ("expression", "x", "allowed"),
    [
        ("abs(x)", 0.0, (-1.0, 1.0)),
        ("math.fabs(x)", 0.0, (-1.0, 1.0)),
        ("max(x, 1.0)", 1.0, (0.0, 1.0)),
        ("min(x, 1.0)", 1.0, (0.0, 1.0)),
        ("np.maximum(x, 1.0)", 1.0, (0.0, 1.0)),
        ("np.minimum(1.0, x)", 1.0, (0.0, 1.0)),
        ("max(x, x)", 1.0, (1.0, 1.0)),
        ("np.sinc(x)", 0.0, (0.0, 0.0)),
        ("np.floor(x)", 1.0, (0.0, 0.0)),
        ("np.sign(x)", 0.0, (0.0, 0.0)),
        ("math.hypot(x, 0.0)", 0.0, (-1.0, 1.0)),
    ],
)
def test_at_a_kink(expression, x, allowed):
    df = gradient(function("x", expression))
    low, high = allowed
    assert low <= df(x) <= high


def test_the_slope_of_the_square_root_at_zero_is_infinite():
    assert gradient(lambda x: math.sqrt(x))(0.0) in (math.inf, 0.0)  # whichever the table of the docs says


# Integers, truth values, strings


def test_an_int_has_no_gradient():
    assert gradient(lambda x, n: x * n)(2.0, 3) == (3.0, None)
    assert gradient(lambda n, x, flag: x * n if flag else x)(3, 2.0, True) == (None, 3.0, None)


def test_an_int_that_is_the_only_parameter_is_a_float():
    df = gradient(lambda x: x * x * x)
    assert df(2) == 12.0
    assert type(df(2)) is float
    value, slope = value_and_gradient(lambda x: x * x)(3)
    assert (value, slope) == (9.0, 6.0)


def test_an_int_named_in_wrt_is_a_float():
    assert gradient(lambda x, n: x * n, wrt="n")(2.0, 3) == 2.0
    assert gradient(lambda x, n: x * n, wrt=(0, 1))(2, 3) == (3.0, 2.0)
    assert gradient(lambda n, x: n**3 * x, wrt=["n"])(2, 5.0) == (60.0,)


def test_all_ints_have_none():
    assert gradient(lambda n, m: n * m)(2, 3) == (None, None)


def test_int_arithmetic_only_steers():
    def f(x, n, m):
        k = (n * 3 - m // 2) % 5 + (n ^ m) + (n << 1) - abs(m) + min(n, m) * (n & 3) + ~n
        r = x
        for _ in range(k % 7):
            r = r * x
        return r * k + n**2

    check_derivatives(f, 1.3, 4, -3, at=[(0.7, 2, 9)], **PRECISELY)


def test_what_rounding_gives_is_constant():
    check_derivatives(lambda x: x * (int(x) + round(x) + math.floor(x) + math.ceil(x)), 2.3, at=[(-1.6,)], **PRECISELY)
    assert gradient(lambda x: float(int(x)))(2.3) == 0.0


def test_a_string_that_steers():
    def f(x, mode):
        return x * x if mode == "square" else x

    df = gradient(f)
    assert df(3.0, "square") == (6.0, None)
    assert df(3.0, "line") == (1.0, None)


# What does not matter


def test_a_float_that_does_not_matter_has_zero():
    assert gradient(lambda x, y: x * x)(3.0, 5.0) == (6.0, 0.0)
    assert gradient(lambda x: 5.0)(3.0) == 0.0
    assert gradient(lambda x: math.floor(x))(3.5) == 0.0
    assert gradient(lambda x, y: x)(3.0, 5.0) == (1.0, 0.0)


def test_a_sum_with_itself():
    assert gradient(lambda x: x + x + x * x)(3.0) == 8.0


# float32


def test_the_gradient_of_a_float32_is_a_float32():
    f = lambda x, y: x * math.sin(y) + y
    source = gradient(f).source(np.float32(1.5), np.float32(0.5))
    assert isinstance(source, str)
    df = gradient(f)
    dx, dy = df(np.float32(1.5), np.float32(0.5))
    np.testing.assert_allclose([dx, dy], [math.sin(0.5), 1.5 * math.cos(0.5) + 1.0], rtol=1e-6)


def test_casts_between_widths():
    def f(x, y):
        a = np.float32(x) * np.float32(2.0)
        return float(a) * y + np.float64(np.float32(y)) + np.int64(x) * y + np.int32(y) * x

    dx, dy = gradient(f)(1.5, 2.25)
    np.testing.assert_allclose([dx, dy], [2.0 * 2.25 + 2.0, 3.0 + 1.0 + 1.0], rtol=1e-6)


def test_mixed_widths():
    dx, dy = gradient(lambda x, y: x * y)(np.float32(1.5), 2.25)
    np.testing.assert_allclose([dx, dy], [2.25, 1.5], rtol=1e-6)


# NaN and infinity


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_data(x):
    value, slope = value_and_gradient(lambda x: x * x + x)(x)
    assert math.isnan(slope) if math.isnan(x) else slope == 2 * x
    np.testing.assert_equal(value, x * x + x)


def test_zero_times_infinity_is_not_zero():
    assert math.isnan(gradient(lambda x, y: x * y * 0.0)(math.inf, math.inf)[0])


def test_a_nan_on_the_path_not_taken_does_no_harm():
    f = lambda x: math.sqrt(x) if x > 0.0 else x * 2.0
    assert gradient(f)(-1.0) == 2.0
    assert gradient(f)(0.0) == 2.0


def test_a_result_that_is_an_int_has_gradient_zero():
    assert gradient(lambda x: round(x))(2.2) == 0.0


def test_an_operation_without_a_rule_is_refused():
    with pytest.raises(DifferentiationError):
        gradient(lambda x: np.nextafter(x, 1.0))(0.5)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.uint64])
def test_integer_powers(dtype):
    def f(x, n):
        return x**n

    derivative, second = gradient(f, wrt=0), hessian(f, wrt=0)
    for n in (-3, -1, 0, 1, 2, 3, 20):
        for x in (1.5, -2.0, 0.0, math.nan, math.inf):
            if (n < 0 and x == 0.0) or (n < 0 and dtype in (np.uint8, np.uint64)):
                continue
            np.testing.assert_allclose(derivative(x, dtype(n)), n * x ** float(n - 1) if n else 0.0, rtol=1e-14)
            if math.isfinite(x):
                expected = n * (n - 1) * x ** float(n - 2) if n not in (0, 1) else 0.0
                np.testing.assert_allclose(second(x, dtype(n)), expected, rtol=1e-14)


@pytest.mark.compiled
def test_the_slope_of_an_integer_power_that_is_infinite():
    assert gradient(lambda x, n: x**n, wrt=0)(1e-110, -2) == -math.inf
    assert gradient(lambda x, n: x**n if x > 1e-50 else 2.0 * x, wrt=0)(1e-110, -2) == 2.0
