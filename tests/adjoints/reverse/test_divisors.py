"""Quotients by a power of one value, which contribute to that value directly."""

import math

import numpy as np
import pytest

from tests.adjoints.stages import stages
from tests.checking.left_out import check_not_made
from tests.modes import one_in
from zygote_py import gradient, hessian, value_and_gradient

pytestmark = pytest.mark.interpreted


def by_itself_and_its_root(x, k):
    return 2.0 / (x * math.sqrt(x))


def by_its_root_and_itself(x, k):
    r = math.sqrt(x)
    return k / (r * x)


def by_three_roots(x, k):
    r = math.sqrt(x)
    return 1.0 / (r * r * r)


def by_a_square(x, k):
    return k / (x * x)


def by_a_multiple(x, k):
    return 2.0 / (k * x)


def by_a_multiple_of_a_square(x, k):
    return 3.0 / (2.0 * x * x * k)


def the_inverse_of_a_multiple(x, k):
    return 1.0 / (k * x)


def the_inverse_of_a_power(x, k):
    return 1.0 / (x**3 * x * k)


def by_a_root(x, k):
    return k / math.sqrt(x)


def by_the_root_of_a_multiple(x, k):
    return 1.0 / math.sqrt(x * 3.0)


def by_a_power(x, k):
    return 3.0 / x**1.5


def by_a_square_and_a_root(x, k):
    r = math.sqrt(x)
    return 3.0 / (x * x * r) + r


def by_a_power_of_a_product(x, k):
    return 3.0 / (x * math.sin(x)) ** 2


def by_a_negative_power(x, k):
    return k / (x * x**-3.0)


def by_a_power_that_is_used_otherwise(x, k):
    p = x * x * x
    return k / p + p * k


def by_a_root_that_is_used_otherwise(x, k):
    r = math.sqrt(x)
    return k / (r * r * r) + math.sin(r)


def by_a_product_of_two(x, k):
    return k / (x * math.sin(x))


def with_a_numerator(x, k):
    return math.sin(x) / (x * math.sqrt(x))


def by_a_sum(x, k):
    return k / (x * x + x)


def by_a_power_of_a_number(x, k):
    return 3.0 / (x**k * k)


def by_the_magnitude_of_a_complex_number(x, k):
    return k / abs(complex(x, k) * complex(x, k))


def in_a_loop(x, k):
    s = 0.0
    p = x * x
    for i in range(3):
        s += i * k / p
    return s


def under_a_condition(x, k):
    y = x * x
    s = 1.0 / (y * y)
    if x > 1.0:
        s += k / (y * x * k)
    return s


DIRECT = [by_itself_and_its_root, by_its_root_and_itself, by_three_roots, by_a_square, by_a_multiple]
DIRECT += [by_a_multiple_of_a_square, by_a_root, by_the_root_of_a_multiple, by_a_power, by_a_square_and_a_root]
DIRECT += [by_a_power_of_a_product, by_a_negative_power, by_a_root_that_is_used_otherwise]
NONE = [by_a_sum, by_a_power_of_a_number, by_the_magnitude_of_a_complex_number]
INVERSES = [the_inverse_of_a_multiple, the_inverse_of_a_power]
OTHERS = [by_a_power_that_is_used_otherwise, by_a_product_of_two, with_a_numerator, in_a_loop, under_a_condition]
X, K = 1.7, 0.9


class _Complex:
    """The functions that the programs call, of complex numbers."""

    sqrt, sin = staticmethod(np.sqrt), staticmethod(np.sin)


def slope(f, x):
    """Return the derivative by a step along the imaginary axis, which has no error but that of arithmetic."""

    def of(x):
        found = type(f)(f.__code__, {"math": _Complex, "range": range})(x, K)
        return found.imag / 1e-30

    return of(x + 1e-30j)


@pytest.mark.parametrize(
    "f", [f for f in DIRECT + INVERSES + OTHERS if f is not under_a_condition], ids=lambda f: f.__name__
)
def test_derivatives(f):
    for x in (1e-3, 0.4, X, 300.0):
        assert gradient(f, wrt=0)(x, K) == pytest.approx(slope(f, x), rel=1e-13)
        step = 1e-5 * min(x, 1.0)
        second = (slope(f, x + step) - slope(f, x - step)) / (2.0 * step)
        assert hessian(f, wrt=0)(x, K) == pytest.approx(second, rel=1e-6)
        twice = gradient(lambda x: gradient(f, wrt=0, mode="reverse")(x, K), mode="reverse")
        assert twice(x) == pytest.approx(second, rel=1e-6)


def test_under_a_condition():
    assert gradient(under_a_condition, wrt=0)(0.5, K) == pytest.approx(-4.0 * 0.5**-5.0, rel=1e-14)
    assert gradient(under_a_condition, wrt=0)(2.0, K) == pytest.approx(-4.0 * 2.0**-5.0 - 3.0 / 16.0, rel=1e-14)


@pytest.mark.parametrize("f", DIRECT, ids=lambda f: f.__name__)
def test_there_is_one_division_by_the_base(f):
    found = stages(f, X, K, wrt=(0,))
    divisions = [instr for instr in found.adjoint.instrs() if instr.op is np.divide]
    others = 1 if f in (by_a_square_and_a_root, by_a_root_that_is_used_otherwise) else 0  # of the root itself
    assert len(divisions) == 1 + others


@pytest.mark.parametrize("f", INVERSES, ids=lambda f: f.__name__)
def test_inverses_need_no_division(f):
    found = stages(f, X, K, wrt=(0,))
    assert not [instr for instr in found.adjoint.instrs() if instr.op is np.divide]


@pytest.mark.parametrize("f", OTHERS[:2], ids=lambda f: f.__name__)
def test_others_divide_by_the_divisor(f):
    found = stages(f, X, K, wrt=(0,))
    (quotient,) = (instr for instr in found.primal.instrs() if instr.op.__name__ == "truediv")
    (division,) = (instr for instr in found.adjoint.instrs() if instr.op is np.divide)
    assert division.args[1].value is quotient.args[1]


@pytest.mark.parametrize("f", one_in(3, [*NONE, *INVERSES, *OTHERS]), ids=lambda f: f.__name__)
def test_others_are_as_without_it(f):
    check_not_made("direct-divisors", f, X, K)


def test_long_products_and_high_powers():
    text = "def f(x, k):\n    p = x\n" + "    p = p * {}\n" * 400 + "    return k / p\n"
    for factor, expected in (("x", -401 * K), ("p", -(2.0**400) * K)):
        made: dict = {}
        exec(text.replace("{}", factor), made)
        assert gradient(made["f"], wrt=0, mode="reverse")(1.0, K) == pytest.approx(expected, rel=1e-12)


def test_exponents_that_overflow():
    def f(x, k):
        return k / (x**1e200) ** 1e200

    assert gradient(f, wrt=0, mode="reverse")(1.0, K) == -np.inf


def test_quotients_that_do_not_count():
    def f(x):
        return np.sum(np.sin(2.0 / (3.0 * x)) * np.where(x > 1.0, 1.0, 0.0))

    np.testing.assert_array_equal(gradient(f)(np.array([1e-200])), [0.0])


def test_both_arguments():
    found = gradient(by_its_root_and_itself)(X, K)
    assert found == pytest.approx((-1.5 * K * X**-2.5, X**-1.5), rel=1e-14)
    found = gradient(by_a_multiple_of_a_square)(X, K)
    assert found == pytest.approx((-3.0 / (K * X**3), -1.5 / (K * X) ** 2), rel=1e-14)


@pytest.mark.compiled
@pytest.mark.parametrize("f", one_in(6, DIRECT), ids=lambda f: f.__name__)
def test_compiled(f):
    value, found = value_and_gradient(f, wrt=0)(X, K)
    assert value == f(X, K)
    assert found == pytest.approx(slope(f, X), rel=1e-13)


def test_single_precision():
    x = np.float32(X)
    found = gradient(by_itself_and_its_root, wrt=0)(x, K)
    assert found == pytest.approx(-3.0 * X**-2.5, rel=1e-6)


def test_poles_that_are_not_selected():
    def f(x):
        return np.sum(np.where(x > 0.0, 1.0 / (x * np.sqrt(x)), 0.0))

    x = np.array([0.0, 0.25, -1.0, 4.0])
    with np.errstate(all="ignore"):
        found = gradient(f)(x)
    np.testing.assert_allclose(found, [0.0, -1.5 * 0.25**-2.5, 0.0, -1.5 * 4.0**-2.5], rtol=1e-14)


def test_poles_have_their_sign():
    def f(x):
        return np.sum(np.divide(1.0, x * np.sqrt(x)))

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gradient(f)(np.array([0.0, np.inf])), [-np.inf, 0.0])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_both_modes_are_the_same(mode):
    def f(x, k):
        return np.divide(2.0, k * x * x)

    with np.errstate(all="ignore"):
        assert gradient(f, mode=mode, wrt=0)(0.0, K) == -np.inf
    for each in (*DIRECT, *INVERSES, *OTHERS[:-1]):
        assert gradient(each, mode=mode, wrt=0)(X, K) == pytest.approx(slope(each, X), rel=1e-13)


def test_elements_of_arrays():
    def f(q, w):
        s = 0.0
        for i in range(len(q)):
            for j in range(i):
                d = q[i] - q[j]
                r = math.sqrt(d * d + 0.1)
                s += w[i] * w[j] / (r * r * r)
        return s

    q, w = np.array([0.3, -0.2, 0.9]), np.array([1.0, 2.0, 0.5])
    found = gradient(f)(q, w)
    d = q[:, None] - q
    cubes = (d * d + 0.1) ** 1.5
    off = 1.0 - np.eye(3)
    np.testing.assert_allclose(found[0], np.sum(-3.0 * off * d / (d * d + 0.1) ** 2.5 * w * w[:, None], axis=1), 1e-13)
    np.testing.assert_allclose(found[1], (off / cubes) @ w, 1e-13)
