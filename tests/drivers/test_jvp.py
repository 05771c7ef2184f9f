"""Derivatives in given directions: `jvp`, `pushforward`, `derivative`, `hvp`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pytest
from scipy.optimize import rosen_hess_prod

import zygote_py as zg
from tests.checking.slopes import differences
from tests.plain import plain
from zygote_py import DifferentiationError, derivative, gradient, hvp, jvp, pushforward

pytestmark = pytest.mark.interpreted


class Spring(NamedTuple):
    stiffness: float
    ends: np.ndarray
    count: int


@dataclass(frozen=True)
class Step:
    size: float
    weights: np.ndarray


def powers(x, n):
    y = np.zeros(n)
    for i in range(n):
        y[i] = x**i
    return y, x * n


def chain(x):
    for i in range(1, len(x)):
        x[i] *= x[i - 1]
    return x * 2.0


def stretched(spring, y):
    longer = spring.stiffness * spring.ends * y
    return Spring(spring.stiffness**2, longer, spring.count), y * np.sum(longer)


def scaled(step, x):
    return step.size * np.sum(step.weights * x)


def rosenbrock(x):
    s = 0.0
    for i in range(len(x) - 1):
        s += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return s


def test_numbers():
    value, tangent = jvp(lambda x, y: math.sin(x) * y, (0.5, 3.0), (2.0, -1.0))
    assert value == math.sin(0.5) * 3.0
    assert tangent == pytest.approx(math.cos(0.5) * 3.0 * 2.0 - math.sin(0.5), rel=1e-15)


def test_arrays_tuples_and_integers():
    (value, times), (change, rate) = jvp(powers, (2.0, 4), (1.5, None))
    np.testing.assert_array_equal(value, [1.0, 2.0, 4.0, 8.0])
    np.testing.assert_allclose(change, np.array([0.0, 1.0, 4.0, 12.0]) * 1.5, rtol=1e-15)
    assert (times, rate) == (8.0, 6.0)
    assert jvp(powers, (2.0, 4), (1.5, 0))[1][1] == 6.0


def test_one_argument_may_stand_alone():
    def f(x):
        return math.sin(x)

    assert jvp(f, 0.0, 2.0) == jvp(f, (0.0,), (2.0,)) == jvp(f, [0.0], [2.0]) == (0.0, 2.0)
    assert jvp(lambda x: x * x, 3, 1) == (9.0, 6.0)  # an integer that is the only argument


def test_what_the_function_writes_to_is_left_as_it_is():
    x, v = np.array([1.1, 1.2, 1.3]), np.array([1.0, -1.0, 0.5])
    before, direction = x.copy(), v.copy()
    value, tangent = jvp(chain, (x,), (v,))
    np.testing.assert_array_equal(value, chain(x.copy()))
    np.testing.assert_allclose(tangent, differences(chain, x) @ v, rtol=1e-8)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(v, direction)


def overwriting(a, b):
    b[0] = a[1] * a[0]
    return a * b


def overwriting_loss(a, b):
    return np.sum(overwriting(a, b))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: jvp(overwriting, (x, x), (x, x)),
        lambda x: jvp(overwriting, (x[1:], x[:-1]), (x[1:], x[1:])),
        lambda x: jvp(lambda pair: overwriting(pair[0], pair[1]), ((x, x),), ((x, x),)),
        lambda x: zg.jacobian(overwriting)(x, x),
        lambda x: zg.jacobian(overwriting, mode="reverse")(x, x),
        lambda x: zg.jacobian(overwriting, sparsity="detect")(x, x),
        lambda x: zg.hessian(overwriting_loss)(x, x),
        lambda x: hvp(overwriting_loss)(x, x, x),
        lambda x: gradient(lambda y: jvp(overwriting_loss, (y, y), (y, None))[1])(x),
    ],
)
def test_arguments_that_share_memory_are_refused(call):
    x = np.array([0.7, -0.3, 0.5])
    with pytest.raises(ValueError, match="share memory, and one is written to"):
        call(x)
    np.testing.assert_array_equal(x, [0.7, -0.3, 0.5])


def test_the_same_values_in_other_memory():
    x = np.array([0.7, -0.3, 0.5])
    value, tangent = jvp(overwriting, (x, x.copy()), (np.ones(3), np.ones(3)))
    np.testing.assert_allclose(value, [0.7 * -0.21, 0.09, 0.25], rtol=1e-15)
    np.testing.assert_allclose(tangent, [-0.21 + 0.7 * 0.4, -0.6, 1.0], rtol=1e-14)


def test_structures():
    spring = Spring(2.0, np.array([1.0, 2.0]), 3)
    change = Spring(0.5, np.array([0.0, 1.0]), None)
    (stretched_, total), (moved, rate) = jvp(stretched, (spring, 3.0), (change, None))
    assert isinstance(stretched_, Spring)
    assert isinstance(moved, Spring)
    np.testing.assert_allclose(moved.ends, 3.0 * (0.5 * spring.ends + 2.0 * change.ends))
    assert (moved.stiffness, moved.count, stretched_.count) == (2.0, None, 3)
    assert (total, rate) == (3.0 * np.sum(stretched_.ends), 3.0 * np.sum(moved.ends))
    step = Step(0.1, np.ones(3))
    assert jvp(scaled, (step, np.arange(3.0)), ((1.0, None), None)) == (pytest.approx(0.3), 3.0)


def test_single_precision_and_complex():
    x = np.arange(3, dtype=np.float32)
    value, tangent = jvp(lambda x: x * x, (x,), (np.ones(3),))  # the tangent is taken as float32
    assert value.dtype == tangent.dtype == np.float32
    np.testing.assert_array_equal(tangent, 2 * x)
    value, tangent = jvp(lambda z: z * z, (1.0 + 2.0j,), (1.0j,))
    assert tangent == 2.0j * (1.0 + 2.0j)
    value, tangent = jvp(lambda t: np.exp(1j * t), (0.5,), (1.0,))
    assert tangent == pytest.approx(1j * np.exp(0.5j))


def test_views_and_layouts():
    matrix = np.arange(12.0).reshape(3, 4)
    _, tangent = jvp(lambda x: np.sum(x * x, axis=0), (matrix[:, ::2],), (np.asfortranarray(matrix)[:, 1::2],))
    np.testing.assert_allclose(tangent, np.sum(2 * matrix[:, ::2] * matrix[:, 1::2], axis=0))


def test_in_plain_python():
    x, v = np.array([1.1, 1.2, 1.3]), np.array([1.0, -1.0, 0.5])
    push = pushforward(chain)
    _, tangent = plain(push.source((x,), (v,)))((x,), (v,))
    np.testing.assert_allclose(tangent, push((x,), (v,))[1], rtol=1e-15)


def test_any_number_of_arguments():
    def total(*xs):
        s = 1.0
        for x in xs:
            s *= x
        return s

    assert jvp(total, (2.0, 3.0, 4.0), (1.0, 0.0, 0.0)) == (24.0, 12.0)
    assert pushforward(total)((2.0, 3.0), (1.0, 0.0)) == (6.0, 3.0)
    assert hvp(total, wrt=(0, 1))(2.0, 3.0, 4.0, (1.0, 0.0)) == (0.0, 4.0)
    assert hvp(total, wrt="xs")(2.0, 3.0, (0.0, 1.0)) == (1.0, 0.0)


def test_derivative():
    np.testing.assert_array_equal(derivative(lambda t: np.array([t, t**2]))(3.0), [1.0, 6.0])
    assert derivative(lambda t: (t**3, 2))(2) == (12.0, None)
    assert derivative(lambda x, y: x * y**2, wrt=("x", "y"))(2.0, 3.0) == (9.0, 12.0)
    assert derivative(wrt="y")(lambda x, y: x * y**2)(2.0, 3.0) == 12.0
    third = derivative(derivative(derivative(lambda t: math.sin(t) * math.exp(t))))(0.5)
    assert third == pytest.approx(2 * math.exp(0.5) * (math.cos(0.5) - math.sin(0.5)), rel=1e-14)


def test_captured_variables_are_read_at_each_call():
    scale = 2.0
    df = derivative(lambda t: scale * t**2)
    assert df(1.0) == 4.0
    scale = 3.0
    assert df(1.0) == 6.0


@pytest.mark.parametrize("n", [2, 9])
def test_hvp(n):
    x, v = np.linspace(0.1, 1.0, n), np.arange(float(n))
    np.testing.assert_allclose(hvp(rosenbrock)(x, v), rosen_hess_prod(x, v), rtol=1e-12)


def test_hvp_of_several():
    def f(a, x, b):
        return a * a * b * np.sum(x * x)

    x = np.array([1.0, 2.0])
    a, b = 3.0, 0.5
    da, dx, db = hvp(f, wrt=None)(a, x, b, (1.0, None, 0.0))
    assert (da, db) == (2 * b * 5.0, 2 * a * 5.0)
    np.testing.assert_array_equal(dx, 4 * a * b * x)
    np.testing.assert_array_equal(hvp(f, wrt="x")(a, x, b, x), 2 * a * a * b * x)


def test_in_compiled_code():
    @numba.njit
    def use(x):
        value, change = jvp(lambda y: y * y * x, (x,), (1.0,))
        return value, change, derivative(rates)(x), hvp(energy)(np.array([x, 1.0]), np.array([1.0, 0.0]))

    value, change, rate, product = use(2.0)
    assert (value, change) == (8.0, 8.0)
    np.testing.assert_array_equal(rate, [1.0, 4.0])
    np.testing.assert_array_equal(product, [2.0, 4.0])


@numba.njit
def rates(t):
    return np.array([t, t * t])


@numba.njit
def energy(x):
    return x[0] ** 2 * x[1]


@pytest.mark.parametrize(
    ("args", "tangents", "said"),
    [
        ((1.0, np.ones(2)), (1.0, 1.0), "the tangent of `y`"),
        ((1.0, np.ones(2)), (1.0, np.ones((2, 2))), "the tangent of `y`"),
        ((1.0, np.ones(2)), (1j, None), "the tangent of `x`"),
        ((1.0, "text"), (1.0, None), "sum"),
    ],
)
def test_what_does_not_fit_is_refused(args, tangents, said):
    def f(x, y):
        return x * np.sum(y)

    with pytest.raises(DifferentiationError) as caught:
        jvp(f, args, tangents)
    assert said in str(caught.value)
    assert jvp(f, (1.0, np.ones(2)), (1.0, None)) == (2.0, 2.0)  # the next good call works


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="the tangent of `x` must have the shape of `x`"):
        jvp(lambda x: np.sum(x), (np.ones(3),), (np.ones(2),))
    with pytest.raises(ValueError, match="`n` has no tangent but 0 or None"):
        jvp(powers, (1.0, 2), (1.0, 1))
    with pytest.raises(ValueError, match="shape of `x`"):
        hvp(rosenbrock)(np.ones(3), np.ones(4))


def test_refusals_name_the_parameter():
    with pytest.raises(DifferentiationError, match=r"`derivative` with respect to `x`, which is of type array"):
        derivative(lambda x: x)(np.ones(3))
    with pytest.raises(DifferentiationError, match="`derivative` with respect to `z`, which is complex"):
        derivative(lambda z: z * z)(1j)
    with pytest.raises(DifferentiationError, match="no derivative with respect to `s`"):
        derivative(lambda s: len(s))("abc")


def filled_by_constants(x):
    a, b = np.eye(2), np.bartlett(5)
    a[0, 1], b[3] = x[0], x[1]
    return a[0] * b[2:4] ** 2


def test_arrays_of_constants_may_be_written_to():
    x = np.array([1.5, 0.7])
    expected = [[0.0, 0.0], [x[1] ** 2, 2.0 * x[0] * x[1]]]  # the results are 1 and x[0] * x[1] ** 2
    np.testing.assert_allclose(zg.jacobian(filled_by_constants)(x), expected, rtol=1e-14)


def test_forward_and_reverse_agree():
    x, v = np.linspace(0.5, 1.5, 5), np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    _, forward = jvp(rosenbrock, (x,), (v,))
    assert forward == pytest.approx(float(gradient(rosenbrock)(x) @ v), rel=1e-13)


def test_ir_and_source():
    push = pushforward(rosenbrock)
    x = np.ones(3)
    assert push.primal_ir((x,), (x,)).startswith("primal rosenbrock(%x: f64[:]) -> f64")
    assert "primal rosenbrock_pushforward(%x: f64[:], %tx: f64[:])" in push.adjoint_ir((x,), (x,))
    source = push.source((x,), (x,))
    assert "def rosenbrock_pushforward(x, tx):" in source
    assert "tx[i]" in source
    assert repr(push) == "<jvp of rosenbrock>"
    assert zg.hvp(rosenbrock).source(x, x).count("def ") == 2


def test_new_arrays_of_numbers_that_are_written_to_later():
    def written(x):
        a, b, c = np.eye(2), np.tri(2), np.hanning(3)
        a[0, 1] = x * x
        b[1] *= x
        c[1] += x**3
        return np.sum(a @ b) + c[1]

    # the sum of ((1, x^2), (0, 1)) @ ((1, 0), (x, x)) is 1 + 2 x^3 + 2 x
    value, tangent = jvp(written, (1.5,), (1.0,))
    assert value == pytest.approx(2.0 + 3.0 * 1.5**3 + 2.0 * 1.5, rel=1e-15)
    assert tangent == pytest.approx(9.0 * 1.5**2 + 2.0, rel=1e-15)


def test_what_a_constant_overwrites_has_no_tangent():
    def f(x):
        y = x * 1.0
        y[0] = 2.0
        y[1:2] = 0.5
        return np.sum(y * y * x)  # 4 x0 + x1 / 4 + x2^3

    x, v = np.array([0.3, 0.7, 1.1]), np.array([1.0, -2.0, 0.5])
    expected = 4 * v[0] + v[1] / 4 + 3 * x[2] ** 2 * v[2]
    np.testing.assert_allclose(jvp(f, x, v)[1], expected, rtol=1e-14)


def with_defaults(x, rate=2.0, power=3, offset=None):
    return rate * x**power if offset is None else rate * x**power + offset


def test_defaults_need_not_be_given():
    assert zg.jvp(with_defaults, (3.0,), (1.0,)) == (54.0, 54.0)
    assert zg.jvp(with_defaults, (3.0, 1.5), (1.0, 2.0)) == (40.5, 40.5 + 2.0 * 27.0)
    assert zg.jvp(with_defaults, (3.0, 1.5, 2, 1.0), (1.0, 0.0, None, 5.0)) == (14.5, 14.0)
    assert zg.gradient(lambda x: zg.jvp(with_defaults, (x,), (1.0,))[1])(3.0) == 36.0


def test_a_default_does_not_take_the_place_of_a_tangent():
    with pytest.raises(TypeError, match="takes 2 tangents but 1 was given"):
        zg.jvp(with_defaults, (3.0, 2.0), (1.0,))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        zg.jvp(with_defaults, (), ())


@numba.njit
def named(ry, ef, el, n):
    """Parameters that are keywords after `t` or `d`."""
    total = 0.0
    for i in range(n):
        ef[i] *= ry * el
        total += ef[i] * math.sin(ry)
    return total + named(0.5 * ry, ef, el, n - 1) if n > 1 else total


def test_parameters_whose_tangents_or_shadows_would_be_keywords():
    def f(ry, el):
        ef = np.array([el, ry, 2.0])
        return named(ry, ef, el, 3)

    def along(h):
        return zg.gradient(f)(0.7 + h, 1.3)[0]

    assert math.isclose(zg.jvp(f, (0.7, 1.3), (1.0, 0.0))[1], along(0.0), rel_tol=1e-13)
    assert math.isclose(along(0.0), (f(0.7 + 1e-6, 1.3) - f(0.7 - 1e-6, 1.3)) / 2e-6, rel_tol=1e-8)
    assert math.isclose(zg.hessian(f, wrt="ry")(0.7, 1.3), (along(1e-6) - along(-1e-6)) / 2e-6, rel_tol=1e-7)
    assert zg.jvp(lambda ry: ry * ry, (3.0,), (1.0,)) == (9.0, 6.0)
