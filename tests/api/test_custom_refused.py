"""Rules that do not fit are refused, when they are registered, compiled or run; what `check_adjoint` finds."""

import math

import numpy as np
import pytest
from numba import njit

import zygote_py as zg
from tests.api import custom_adjoints as functions
from tests.api.custom_adjoints import X, without_rule
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted


def square(x):
    return x * x


def total(x):
    return np.sum(x)


def no_inner(x):
    return x


def two_parameters(x, y):
    def back(dy):
        return dy, dy

    return x, back


def pullback_of_two(x):
    def back(dy, e):
        return (dy,)

    return x, back


def triple(x):
    def back(dy):
        return (dy,)

    return x, 2, back


def two_gradients(x):
    def back(dy):
        return dy, dy

    return x * x, back


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (no_inner, "no inner function"),
        (two_parameters, "has 2 parameters, and `square` has 1"),
        (pullback_of_two, "pullback of the rule .* has 2 parameters"),
        (triple, "returns 3 values"),
        (two_gradients, "returns 2 gradients, and `square` has 1 parameter"),
        (len, "is not a Python function"),
    ],
)
def test_refused_when_registered(rule, says):
    with pytest.raises(DifferentiationError, match=says):
        zg.adjoint(square)(rule)
    assert gradient(lambda x: square(x))(3.0) == 6.0


def value_alone(x):
    def back(dy):
        return (dy,)

    back(1.0)
    return x


def bare_gradient(x):
    def back(dy):
        return dy

    return x * x, back


def gradients_of_two(x):
    def back(dy):
        both = (dy, dy)
        return (*both,)

    return x * x, back


def array_for_number(x):
    def back(dy):
        return (np.array([dy]),)

    return x * x, back


def complex_for_number(x):
    def back(dy):
        return (dy * 1j,)

    return x * x, back


def whole_value(x):
    def back(dy):
        return (dy,)

    return 3, back


def number_for_array(x):
    def back(dy):
        return (dy,)

    return np.sum(x), back


def another_rank(x):
    def back(dy):
        return (np.array([[dy]]),)

    return np.sum(x), back


def writes_to_kept(x):
    def back(dy):
        x[0] = dy
        return (x,)

    return np.sum(x), back


def writes_to_argument(x):
    def back(dy):
        return (x,)

    x[0] = 1.0
    return np.sum(x), back


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("function", "rule", "says"),
    [
        (square, value_alone, "not a pair of a value and a function"),
        (square, bare_gradient, "not a tuple"),
        (square, gradients_of_two, "returns 2 gradients"),
        (square, array_for_number, r"array\(float64, 1d, C\) for `x`, which is of type float64"),
        (square, complex_for_number, "complex128 for `x`, which is of type float64"),
        (square, whole_value, "a value of type int64, and `square` one of type float64"),
        (total, number_for_array, r"float64 for `x`, which is of type array\(float64, 1d, C\)"),
        (total, another_rank, r"array\(float64, 2d, C\) for `x`"),
        (total, writes_to_kept, "writes to an array that it captures"),
        (total, writes_to_argument, "writes to its argument `x`"),
    ],
)
def test_refused_when_compiled(function, rule, says):
    own = without_rule(function)
    zg.adjoint(own)(rule)
    argument = X if function is total else 0.5
    with pytest.raises(DifferentiationError, match=says) as caught:
        gradient(lambda x: own(x))(argument)
    assert rule.__name__ in str(caught.value)


def test_a_gradient_of_another_shape():
    own = without_rule(total)

    @zg.adjoint(own)
    def rule(x):
        def back(dy):
            return (np.array([dy]),)

        return np.sum(x), back

    derivative = gradient(lambda x: own(x))
    with pytest.raises(
        ValueError, match="rule `rule` of `total` gives a gradient for `x` that does not have its shape"
    ):
        derivative(X)
    assert derivative(X[:1]) == np.array([1.0])


def test_a_second_rule():
    own = without_rule(square)

    @zg.adjoint(own)
    def rule(x):
        def back(dy):
            return (dy,)

        return x * x, back

    derivative = gradient(lambda x: own(x))
    assert derivative(3.0) == zg.pullback(own, 3.0)[1](1.0)[0] == 1.0
    with pytest.raises(DifferentiationError, match=r"`square` has a rule already, `rule`"):
        zg.adjoint(own)(bare_gradient)
    with pytest.raises(DifferentiationError, match="has a rule already"):
        zg.adjoint(njit(own))(bare_gradient)
    assert derivative(3.0) == 1.0

    @zg.adjoint(own, replace=True)
    def other(x):
        def back(dy):
            return (dy * 2.0,)

        return x * x, back

    assert derivative(3.0) == 2.0
    assert zg.pullback(own, 3.0)[1](1.0) == (2.0,)


@pytest.mark.compiled
def test_a_rule_after_the_first_call():
    own = without_rule(square)
    derivative = gradient(lambda x: own(x) + 1.0)

    @njit
    def caller(x):
        return derivative(x)

    assert derivative(3.0) == caller(3.0) == 6.0

    @zg.adjoint(own)
    def rule(x):
        def back(dy):
            return (dy * 50.0,)

        return x * x, back

    assert derivative(3.0) == 50.0
    assert caller(3.0) == 6.0  # compiled already


def test_a_result_that_shares_memory():
    def same(x):
        return x

    @zg.adjoint(same)
    def rule(x):
        def back(dy):
            return (-dy,)

        return x, back

    np.testing.assert_array_equal(gradient(lambda x: np.sum(same(x) * 3.0))(X), np.full(4, -3.0))

    def writes(x):
        z = x * 1.0
        y = same(z)
        y[0] = 5.0
        return np.sum(y * z)

    with pytest.raises(ValueError, match="shares memory with its argument `x`"):
        gradient(writes)(X)


def test_what_the_rule_captures_is_read_at_each_call():
    namespace = {"K": 3.0, "zg": zg}
    exec(
        "def f(x): return x * K\n"
        "def rule(x):\n"
        "    def back(dy): return (dy * K,)\n"
        "    return x * K, back\n"
        "def program(x): return f(x) + f(x)\n",
        namespace,
    )
    zg.adjoint(namespace["f"])(namespace["rule"])
    derivative = zg.value_and_gradient(namespace["program"])
    assert derivative(2.0) == (12.0, 6.0)
    namespace["K"] = 4.0
    assert derivative(2.0) == (16.0, 8.0)


# --------------------------------------------------------------------------------------------------- check_adjoint


def test_check_adjoint():
    own = without_rule(functions.mul_sum)

    @zg.adjoint(own)
    def rule(x, w):
        def back(dy):
            dz, dv = dy
            dw = dz * x + dv * x
            dw[2] += 0.01
            return dz * np.sum(w) + np.sum(dv * w), dw

        return (x * np.sum(w), w * x), back

    with pytest.raises(DifferentiationError, match=r"rule `rule` of `mul_sum`.*`w\[2\]`.*off by 0.01; 1 of 4"):
        zg.check_adjoint(own, 0.7, X)
    zg.check_adjoint(own, 0.7, X, atol=0.1)
    assert zg.check_adjoint(functions.mul_sum, 0.7, X) is None
    with pytest.raises(DifferentiationError, match="has no rule"):
        zg.check_adjoint(math.sin, 0.5)


def test_check_adjoint_of_a_wrong_value():
    own = without_rule(square)

    @zg.adjoint(own)
    def rule(x):
        def back(dy):
            return (2.0 * dy * x,)

        return x * x + 1e-3, back

    with pytest.raises(DifferentiationError, match="gives the value"):
        zg.check_adjoint(own, 3.0)
