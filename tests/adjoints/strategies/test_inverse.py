"""`inverse`: captured variables, pullbacks, memory, `check_inverse`, and refusals."""

import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.adjoints.strategies.reversible_programs import (
    half,
    integrated,
    normal,
    passed_on,
    shear,
    turn,
    unturn,
    walks_back,
    with_rule,
)
from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError

pytestmark = pytest.mark.interpreted


def model(stiffness, weights):
    """A function whose step and inverse capture variables, one of them only the inverse."""
    same = stiffness * 1.0

    def inner(state, h):
        x, v = state
        v = v - h * stiffness * math.sin(x) * weights[1]
        return x + h * v, v

    @zg.inverse(inner)
    def back(state, h):
        x, v = state
        x = x - h * v
        return x, v + h * same * math.sin(x) * weights[1]

    def trajectory(x, n):
        v = 0.5
        for i in range(n):
            x, v = inner((x, v), 0.1 * weights[i % 3])
        return x * v

    return trajectory


def test_gradients_of_what_is_captured():
    weights = np.array([1.0, 1.2, 0.7])
    (dx, _), captured = zg.gradient(model(0.8, weights), closure=True)(0.3, 9)
    h = 1e-5
    assert dx == pytest.approx((model(0.8, weights)(0.3 + h, 9) - model(0.8, weights)(0.3 - h, 9)) / (2 * h), rel=1e-7)
    by_stiffness = (model(0.8 + h, weights)(0.3, 9) - model(0.8 - h, weights)(0.3, 9)) / (2 * h)
    assert captured.stiffness == pytest.approx(by_stiffness, rel=1e-7)
    for place in range(3):
        moved = h * np.eye(3)[place]
        slope = (model(0.8, weights + moved)(0.3, 9) - model(0.8, weights - moved)(0.3, 9)) / (2 * h)
        assert captured.weights[place] == pytest.approx(slope, rel=1e-6)
    assert "_step_back(" in zg.gradient(model(0.8, weights)).source(0.3, 9)


def test_a_pullback_can_be_called_again():
    x1, x2, w = normal(3), normal(2, 3)[0], normal(4)

    def outputs(x1, x2, w):
        for i in range(len(w)):
            x1, x2 = half((x1, x2), w[i])
            x2 = shear(x2, x1, w[i])
        return x1, x2

    first, last = normal(3), normal(4)[:3]
    _, back = zg.pullback(outputs, x1, x2, w)
    given = [x1.copy(), x2.copy(), w.copy()]
    for each in (x1, x2, w):
        each[:] = 9.0
    for factor in (1.0, -2.0, 1.0):
        found = back((factor * first, factor * last))
        for number, (gradient, argument) in enumerate(zip(found, given, strict=True)):
            expected = np.zeros_like(argument)
            for index in np.ndindex(argument.shape):
                slopes = []
                for sign in (1.0, -1.0):
                    moved = [each.copy() for each in given]
                    moved[number][index] += sign * 1e-5
                    y1, y2 = outputs(*moved)
                    slopes.append(np.sum(first * y1) + np.sum(last * y2))
                expected[index] = factor * (slopes[0] - slopes[1]) / 2e-5
            np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_the_arguments_stay_and_a_result_may_be_changed():
    def outputs(x1, x2, w):
        for i in range(len(w)):
            x1 = shear(x1, x2, w[i])
            x2 = shear(x2, x1, w[i])
        return x1, x2

    given = [normal(3), normal(2, 3)[0], normal(4)]
    (y1, y2), back = zg.pullback(outputs, *given)
    before = back((np.ones(3), np.ones(3)))
    y1[:] = 7.0
    y2[:] = 7.0
    after = back((np.ones(3), np.ones(3)))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_single_precision():
    x1, x2, w = (normal(size).astype(np.float32) for size in (3, 3, 6))
    assert walks_back(passed_on, x1, x2, w)
    single = zg.gradient(passed_on)(x1, x2, w)
    double = zg.gradient(passed_on)(*(each.astype(np.float64) for each in (x1, x2, w)))
    for one, other in zip(single, double, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_from_compiled_code():
    derivative = zg.gradient(integrated)

    @numba.njit
    def sums(n):
        total = 0.0
        for i in range(n):
            total += derivative(0.1 * i, 0.2, 1.2, 0.1, 10)[0]
        return total

    expected = sum(derivative(0.1 * i, 0.2, 1.2, 0.1, 10)[0] for i in range(4))
    assert sums(4) == pytest.approx(expected, rel=1e-14)


def test_a_recursion_through_the_loop():
    check_derivatives(nested_runs, 0.3, 0.4, 2, tolerance=1e-6)


def nested_runs(x, w, depth):
    if depth == 0:
        return x * w
    for i in range(3):
        x = turn(x, nested_runs(w, w * i, depth - 1), i)
    return x


def test_the_step_itself_is_differentiated_with_respect_to_all():
    check_derivatives(lambda x, w: turn(x, w, 2) * w, 0.3, 0.4)
    check_derivatives(with_rule, 0.3, 0.4)


def test_an_integer_where_the_state_is_a_float_is_a_call_like_any_other():
    check_derivatives(lambda w: turn(1, w, 2), 0.4)


def test_an_inverse_given_later_is_used():
    def grow(x, w):
        return x * w

    def f(x, w, n):
        for _ in range(n):
            x = grow(x, w)
        return x

    derivative = zg.gradient(f, wrt="w")
    before = derivative(1.5, 1.1, 4)
    assert "_step_back(" not in derivative.source(1.5, 1.1, 4)
    zg.inverse(grow)(lambda y, w: y / w)
    assert "_step_back(" in derivative.source(1.5, 1.1, 4)
    assert derivative(1.5, 1.1, 4) == pytest.approx(before, rel=1e-12)


def test_states_are_those_that_are_walked_back():
    """A wrong inverse is believed: what it gives is where the derivative is taken."""

    def square(x):
        return x * x

    def f(x):
        for _ in range(1):
            x = square(x)
        return x

    zg.inverse(square)(lambda y: 5.0 + 0.0 * y)
    assert zg.gradient(f)(3.0) == 10.0
    with pytest.raises(DifferentiationError, match=r"`<lambda>` of `square` does not undo it: `x` is off by 2"):
        zg.check_inverse(square, 3.0)


def test_a_million_steps_take_no_memory(tmp_path):
    """In a process of its own, as the peak of a process never goes down."""
    program = """
import math, resource, numpy as np, zygote_py as zg

def leap(state, w, h):
    x, v = state
    v = v - 0.5 * h * w * np.sin(x)
    x = x + h * v
    return x, v - 0.5 * h * w * np.sin(x)

@zg.inverse(leap)
def back(state, w, h):
    x, v = state
    v = v + 0.5 * h * w * np.sin(x)
    x = x - h * v
    return x, v + 0.5 * h * w * np.sin(x)

def of_numbers(x, v, w, n, h):
    for _ in range(n):
        x, v = leap((x, v), w, h)
    return x * v

def of_arrays(x, v, w, n, h):
    for _ in range(n):
        x, v = leap((x, v), w, h)
    return np.sum(x * v)

x = np.full(50, 0.1)
numbers, arrays = zg.gradient(of_numbers), zg.gradient(of_arrays)
numbers(0.1, 0.0, 1.0, 10, 1e-5)
arrays(x, 0.0 * x, x, 10, 1e-5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
numbers(0.1, 0.0, 1.0, 10**6, 1e-5)
arrays(x, 0.0 * x, x, 10**5, 1e-5)  # 80 MB, if they were kept
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    pytest.importorskip("resource")
    script = tmp_path / "leap.py"
    script.write_text(program)
    optimised = {**os.environ, "NUMBA_OPT": "3"}
    done = subprocess.run([sys.executable, str(script)], env=optimised, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000  # in kilobytes


# ------------------------------------------------------------------------------------------------------ what is refused


def fresh():
    def step(x, w):
        return x + w

    return step


def varied(x, *rest):
    return x


def no_state():
    return 1.0


@zg.ignore
def ignored(x):
    return x


def of_one(y):
    return y


def of_two(y, w):
    return y - w


@pytest.mark.parametrize(
    ("step", "unstep", "message"),
    [
        (fresh(), of_one, r"the inverse `of_one` of `step` has 1 parameter, and `step` has 2"),
        (fresh(), lambda *x: x, r"the inverse `<lambda>` of `step` has the parameter `\*x`"),
        (fresh(), lambda y, *, w: y, r"the inverse `<lambda>` of `step` has the parameter `w`"),
        (fresh(), lambda y, w=2.0: y, r"the inverse `<lambda>` of `step` has another default for `w` than `step`"),
        (fresh(), math.sin, r"the inverse of `step`, .*, is not a Python function"),
        (fresh(), 3, r"the inverse of `step`, 3, is not a Python function"),
        (varied, of_one, r"`varied` takes any number of arguments"),
        (no_state, no_state, r"`no_state` takes no state"),
        (zg.stop_gradient, of_one, r"`stop_gradient` is a function of the library"),
        (turn, unturn, r"`turn` has an inverse already, `unturn` \(.*reversible_programs.py:\d+\)"),
    ],
)
def test_bad_registrations_are_refused(step, unstep, message):
    with pytest.raises(DifferentiationError, match=message):
        zg.inverse(step)(unstep)
    check_derivatives(integrated, 0.4, 0.2, 1.2, 0.1, 3, tolerance=1e-6)


def test_what_cannot_have_an_inverse_is_refused():
    with pytest.raises(DifferentiationError, match="`ignored` is ignored"):
        zg.inverse(ignored)
    with pytest.raises(DifferentiationError, match="3 cannot be called"):
        zg.inverse(3)
    with pytest.raises(DifferentiationError, match="`of_one` has no inverse"):
        zg.check_inverse(of_one, 3.0)


def test_a_rule_with_a_bad_inverse_registers_neither():
    step = fresh()

    def rule(x, w):
        def back(dy):
            return dy, dy

        return x + w, back

    with pytest.raises(DifferentiationError, match=r"the inverse `of_one` of `step` has 1 parameter"):
        zg.adjoint(step, inverse=of_one)(rule)
    zg.adjoint(step)(rule)
    zg.inverse(step)(of_two)
    with pytest.raises(DifferentiationError, match=r"`step` has a rule already, `rule`"):
        zg.adjoint(step)(rule)
    with pytest.raises(DifferentiationError, match=r"`step` has an inverse already, `of_two`"):
        zg.inverse(step)(of_two)
    zg.inverse(step, replace=True)(of_two)
    zg.adjoint(step, replace=True)(rule)  # which leaves the inverse
    zg.check_inverse(step, 1.0, 2.0)


def writes_to_it(x, w):
    x[0] = w
    return x * w


def draws(x, w):
    return x * w + np.random.normal()


def another_type(x, w):
    return x * w * 1j


def of_a_list(x, w):
    return x * w[0]


@pytest.mark.parametrize(
    ("step", "unstep", "message"),
    [
        (writes_to_it, lambda y, w: y / w, r"`writes_to_it` has an inverse, and writes to its argument `x`"),
        (lambda x, w: x * w, writes_to_it, r"the inverse `writes_to_it` of `<lambda>` writes to its argument `x`"),
        (draws, lambda y, w: y / w, r"`draws` has an inverse, and draws random numbers"),
        (another_type, lambda y, w: y / w, r"`another_type` takes a state of type array\(float64, .*complex128"),
        (
            lambda x, w: x * w,
            lambda y, w: (y, w),
            r"`<lambda>` of `<lambda>` returns a value of type Tuple",
        ),
        (lambda x, w: x * w, lambda y, w: undefined(y), r"the inverse .* cannot be compiled for \(array"),  # noqa: F821
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_compiled(step, unstep, message):
    zg.inverse(step)(unstep)

    def f(x, w):
        return np.sum(np.abs(step(x, w)))

    with pytest.raises(DifferentiationError, match=message) as info:
        zg.gradient(f)(normal(3), 0.5)
    assert "test_inverse.py" in str(info.value)


def test_of_a_list_the_inverse_is_not_used():
    zg.inverse(of_a_list)(lambda y, w: y / w[0])

    def f(x, w):
        for _ in range(3):
            x = of_a_list(x, [w])
        return x

    check_derivatives(f, 0.3, 0.5)
