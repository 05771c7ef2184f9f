"""Custom rules on all kinds of callables, and non-differentiable functions."""

import ctypes
import ctypes.util
import math

import numpy as np
import pytest
from numba import cfunc, njit, objmode, types
from numba.extending import intrinsic, overload

import zygote_py as zg
from tests.api import custom_adjoints as functions
from tests.api.custom_adjoints import X, without_rule
from tests.checking.derivatives import check_derivatives
from zygote_py import gradient

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(
    ("program", "function", "args"),
    [
        (functions.overwritten, functions.mul, (X,)),
        (functions.in_loop_and_branch, functions.mul, (0.9, 7)),
        (functions.recursive, functions.mul, (0.9, 6)),
        (functions.views, functions.mul, (X,)),
        (functions.tuples, functions.mul_sum, (0.7, X)),
        (functions.squares, functions.norm, (X,)),
    ],
)
def test_programs(program, function, args):
    check_derivatives(program(function), *args, reference=program(without_rule(function)))


def test_the_rule_is_what_is_used():
    def f(x):
        return x * x

    @zg.adjoint(f)
    def rule(x):
        def back(dy):
            return (dy * 100.0,)

        return x * x + 1.0, back

    assert zg.value_and_gradient(lambda x: f(x) * 2.0)(3.0) == (20.0, 200.0)
    assert gradient(f)(3.0) == 100.0
    assert gradient(njit(f))(3.0) == 100.0
    assert gradient(lambda x, c: x * f(c), wrt="x")(2.0, 3.0) == 9.0  # no derivative of it is needed
    assert zg.pullback(lambda x: f(x), 3.0)[1](2.0) == (200.0,)
    assert rule(3.0)[0] == 10.0


def test_rule_and_pullback_are_functions_of_the_emitted_source():
    source = gradient(lambda x: functions.norm(x)).source(X)
    assert "def rule_of_norm(x)" in source
    assert "def back(dy, " in source


def test_a_recursive_function():
    check_derivatives(
        lambda x, n: functions.power(x, n) * functions.power(math.sin(x), 2),
        1.3,
        5,
        reference=lambda x, n: x**n * math.sin(x) ** 2,
    )


def test_structures():
    line = functions.Line(X, 0.5)
    found, dx = gradient(lambda line, x: functions.at(line, x) ** 2)(line, X * 2.0)
    slope = 2.0 * functions.at(line, X * 2.0)
    np.testing.assert_allclose(found.w, slope * X * 2.0)
    assert found.b == pytest.approx(slope)
    np.testing.assert_allclose(dx, slope * X)
    zg.check_adjoint(functions.at, line, X * 2.0)


def test_no_gradient_for_an_argument():
    def f(x, k, n):
        return x * k * n

    @zg.adjoint(f)
    def rule(x, k, n):
        def back(dy):
            return dy * k * n, None, dy * x * k

        return x * k * n, back

    assert gradient(lambda x, k, n: f(x, k, n))(2.0, 5.0, 3) == (15.0, 0.0, None)
    assert gradient(lambda x, k, n: f(x, k, n))(2.0, 5.0, 3.0) == (15.0, 0.0, 10.0)
    zg.check_adjoint(f, 2.0, 5.0, 3.0)  # what is None is not compared


# ------------------------------------------------------------------------------------ callables of other packages


def test_object_mode():
    @njit
    def sinh(x):
        with objmode(y="float64"):
            y = float(np.sinh(x))
        return y  # noqa: RET504 (Numba wants it so)

    @zg.adjoint(sinh)
    def rule(x):
        def back(dy):
            return (dy * math.cosh(x),)

        return sinh(x), back

    assert gradient(lambda x: sinh(x * x))(0.5) == pytest.approx(math.cosh(0.25))
    zg.check_adjoint(sinh, 0.5)


def test_cfunc():
    @cfunc("float64(float64)")
    def square(x):
        return x * x

    @zg.adjoint(square)
    def rule(x):
        def back(dy):
            return (dy * 2.0 * x,)

        return square(x), back

    assert gradient(lambda x: square(x * x))(0.5) == pytest.approx(0.5)
    assert gradient(lambda x, k: x * square(k), wrt="x")(0.5, 3.0) == 9.0
    zg.check_adjoint(square, 0.5)


@pytest.mark.compiled
def test_intrinsic():
    @intrinsic
    def square(context, x):
        def generate(context, builder, signature, args):
            return builder.fmul(args[0], args[0])

        return types.float64(types.float64), generate

    @zg.adjoint(square)
    def rule(x):
        y = square(x)

        def back(dy):
            return (dy * 2.0 * x,)

        return y, back

    assert gradient(lambda x: square(x * x))(0.5) == pytest.approx(0.5)
    zg.check_adjoint(square, 0.5)


@pytest.mark.compiled
def test_overloaded_stub():
    def square(x):
        raise NotImplementedError

    @overload(square)
    def implementation(x):
        return lambda x: x * x

    @zg.adjoint(square)
    def rule(x):
        def back(dy):
            return (dy * 2.0 * x,)

        return square(x), back

    assert gradient(lambda x: square(x * x))(0.5) == pytest.approx(0.5)
    zg.check_adjoint(square, 0.5)


@pytest.mark.skipif(ctypes.util.find_library("m") is None, reason="no C library of mathematics")
def test_ctypes():
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    erf = library.erf
    erf.restype, erf.argtypes = ctypes.c_double, [ctypes.c_double]

    @zg.adjoint(erf)
    def rule(x):
        def back(dy):
            return (dy * 2.0 / math.sqrt(math.pi) * math.exp(-x * x),)

        return erf(x), back

    assert gradient(lambda x: erf(x) * x)(0.5) == pytest.approx(
        math.erf(0.5) + 0.5 * 2.0 / math.sqrt(math.pi) * math.exp(-0.25)
    )
    zg.check_adjoint(erf, 0.5)


@pytest.fixture
def _numpy_rules():
    """Rules for functions of NumPy, for one test only."""
    from zygote_py.base import custom_rules as given

    before = dict(given._given)
    yield
    given._given.clear()
    given._given.update(before)


@pytest.mark.usefixtures("_numpy_rules")
def test_functions_of_numpy():
    @zg.adjoint(np.tanh)
    def rule_of_tanh(x):
        y = np.tanh(x)

        def back(dy):
            return (dy * (1.0 - y * y) * 2.0,)

        return y, back

    @zg.adjoint(np.linalg.solve)
    def rule_of_solve(a, b):
        y = np.linalg.solve(a, b)

        def back(dy):
            db = np.linalg.solve(a.T.copy(), dy)
            return -np.outer(db, y), db

        return y, back

    @zg.adjoint(abs)
    def rule_of_abs(x):
        def back(dy):
            return (dy * 7.0,)

        return abs(x), back

    twice = 2.0 * X * (1.0 - np.tanh(X) ** 2)
    np.testing.assert_allclose(gradient(lambda x: np.sum(np.tanh(x) * x))(X), np.tanh(X) + twice)
    assert gradient(lambda x: np.tanh(x))(0.5) == pytest.approx(2.0 * (1.0 - np.tanh(0.5) ** 2))
    assert gradient(lambda x: abs(x))(-2.0) == 7.0
    zg.check_adjoint(np.linalg.solve, np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([1.0, 2.0]))


def test_complex_and_single_precision():
    def f(z):
        return z * z * 1j

    @zg.adjoint(f)
    def rule(z):
        def back(dy):
            return (dy * np.conj(2j * z),)

        return z * z * 1j, back

    zg.check_adjoint(f, 0.3 + 0.7j)
    zg.check_adjoint(f, np.array([0.3 + 0.7j, 1.0 - 2.0j]))

    def single(x):
        return x * x

    @zg.adjoint(single)
    def rule_of_single(x):
        def back(dy):
            return (2.0 * dy * x,)  # in double precision, and taken as single

        return x * x, back

    assert gradient(lambda x: single(x))(np.float32(3.0)) == 6.0
    assert gradient(lambda x: np.sum(single(x)))(X.astype(np.float32)).dtype == np.float32
    zg.check_adjoint(single, X.astype(np.float32))


def test_layouts():
    def twice(a):
        return a * 2.0

    @zg.adjoint(twice)
    def rule(a):
        def back(dy):
            return (dy * 2.0,)

        return a * 2.0, back

    a = np.arange(6.0).reshape(2, 3)
    check_derivatives(lambda a: np.sum(twice(a.T) * a.T), a, reference=lambda a: np.sum(a * 2.0 * a))
    check_derivatives(lambda x: np.sum(twice(x[::2]) * x[::2]), X, reference=lambda x: np.sum(x[::2] * 2.0 * x[::2]))


HOOKS = __file__.replace("test_custom", "test_stop_gradient")
