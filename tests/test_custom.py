"""Rules of the user's own, on all kinds of callables, and what is not differentiated."""

import ctypes
import ctypes.util
import math
import os
import subprocess
import sys
from types import FunctionType

import numba
import numpy as np
import pytest
from numba import cfunc, njit, objmode, types
from numba.extending import intrinsic, overload

import zygote_py as zg
from tests import custom_adjoints as functions
from tests.plain import plain
from tests.reference import central, distance
from zygote_py import DifferentiationError, gradient

X = np.array([0.5, 1.2, -0.3, 0.8])


def without_rule(function):
    """The same function as another one, which has no rule."""
    namespace = dict(function.__globals__)
    made = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    namespace[function.__name__] = made
    return made


def copies(args):
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


def check(function, reference, *args):
    """Compare a gradient, compiled and in plain Python, with differences of a function without rules."""
    expected = central(reference, *args)
    assert expected.doubt is None
    derivative = gradient(function)
    for run in (derivative, derivative, plain(derivative.source(*args))):
        given = copies(args)
        found = run(*given)
        found = found if len(args) > 1 else (found,)
        assert distance(found, expected.gradients) < 1e-8, (found, expected.gradients)
        for before, after in zip(args, given, strict=True):
            np.testing.assert_array_equal(before, after)


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
    check(program(function), program(without_rule(function)), *args)


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
    check(
        lambda x, n: functions.power(x, n) * functions.power(math.sin(x), 2),
        lambda x, n: x**n * math.sin(x) ** 2,
        1.3,
        5,
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


# ------------------------------------------------------------------------------------- callables that are not ours


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
    from zygote_py import given

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
    check(lambda a: np.sum(twice(a.T) * a.T), lambda a: np.sum(a * 2.0 * a), a)
    check(lambda x: np.sum(twice(x[::2]) * x[::2]), lambda x: np.sum(x[::2] * 2.0 * x[::2]), X)


# --------------------------------------------------------------------------------------------------- what is refused


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
        (len, "is no Python function"),
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
        return both + ()

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


# -------------------------------------------------------------------------------------- stop_gradient, ignore, hook


def test_stop_gradient():
    assert zg.stop_gradient(X) is X
    check(lambda x: np.sum(x * zg.stop_gradient(x)), lambda x: np.sum(x * X), X)
    assert gradient(lambda x: x * zg.stop_gradient(x))(3.0) == 3.0
    assert gradient(lambda x: zg.stop_gradient(x * x))(3.0) == 0.0
    pair = gradient(lambda p: p[0] * zg.stop_gradient(p)[0] * np.sum(zg.stop_gradient(p)[1]))((2.0, X))
    assert pair[0] == pytest.approx(2.0 * np.sum(X))
    np.testing.assert_array_equal(pair[1], np.zeros(4))


def test_straight_through():
    def soft(logits, u):
        g = logits - np.log(-np.log(u))
        e = np.exp(g - np.max(g))
        return e / np.sum(e)

    def gumbel(logits, u):
        y = soft(logits, u)
        hard = np.zeros_like(y)
        hard[np.argmax(y)] = 1.0
        return np.sum((zg.stop_gradient(hard - y) + y) * np.arange(len(y)) ** 2)

    u = np.array([0.3, 0.6, 0.2, 0.9])
    value, found = zg.value_and_gradient(gumbel, wrt="logits")(X, u)
    assert value == pytest.approx(float(np.argmax(soft(X, u)) ** 2))
    expected = central(lambda x: np.sum(soft(x, u) * np.arange(4) ** 2), X).gradients[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_stop_gradient_and_writes():
    def to_the_copy(x):
        y = zg.stop_gradient(x)
        y[0] = 1.0
        return np.sum(x * y)

    def to_the_original(x):
        z = x.copy()
        y = zg.stop_gradient(z)
        z[0] = 1.0
        return np.sum(x * y)

    def made_anew(x):
        z = x.copy()
        s = 0.0
        for _ in range(3):
            s += np.sum(x * zg.stop_gradient(z))
            z[0] += 1.0
        return s

    with pytest.raises(DifferentiationError, match="`stop_gradient` has given is written to"):
        gradient(to_the_copy)(X)
    with pytest.raises(DifferentiationError, match="given to `stop_gradient` is written to while"):
        gradient(to_the_original)(X)
    np.testing.assert_allclose(gradient(made_anew)(X), 3.0 * X + np.array([3.0, 0.0, 0.0, 0.0]))


def test_hook():
    assert zg.hook(X, abs) is X
    clipped = gradient(lambda x: zg.hook(x * x, lambda g: min(g, 1.0)) * 5.0)
    assert clipped(3.0) == plain(clipped.source(3.0))(3.0) == 6.0

    def captured(x, limit):
        return zg.hook(x * x, lambda g: min(g, limit)) * 5.0

    assert gradient(captured)(3.0, 2.0) == (12.0, 0.0)
    weights = np.array([5.0, 0.5, 0.1, -7.0])
    found = gradient(lambda x: np.sum(zg.hook(x * x, lambda g: np.minimum(g, 1.0)) * weights))(X)
    np.testing.assert_allclose(found, 2.0 * X * np.minimum(weights, 1.0))

    def in_loop(x):
        s = 0.0
        for i in range(len(x)):
            s += zg.hook(x[i] * x[i], lambda g: g * 2.0) * i
        return s

    np.testing.assert_allclose(gradient(in_loop)(X), 4.0 * X * np.arange(4))


def test_hook_that_only_looks(capfd):
    def look(g):
        print("seen", g)

    assert gradient(lambda x: zg.hook(x * x, look) * 5.0)(3.0) == 30.0
    assert capfd.readouterr().out.split() == ["seen", "5.0"]

    def check_finite(g):
        if not np.isfinite(g):
            raise ValueError("not finite")

    derivative = gradient(lambda x: zg.hook(x, check_finite) ** 0.5)
    assert derivative(4.0) == 0.25
    with pytest.raises(ValueError, match="not finite"):
        derivative(0.0)


@pytest.mark.parametrize("hook", [lambda g: (g, g), lambda g: np.array([g]), lambda g, h: g])
def test_hooks_that_are_refused(hook):
    with pytest.raises(DifferentiationError, match="hook"):
        gradient(lambda x: zg.hook(x * x, hook))(3.0)


@zg.ignore
def smaller(x):
    return sorted([x, 1.0])[0]


def test_ignore():
    assert smaller(3.0) == 1.0
    assert gradient(lambda x: x * smaller(x))(0.5) == 0.5

    @njit
    def compiled(x):
        return smaller(x) * x

    assert compiled(0.5) == 0.25
    assert gradient(compiled)(0.5) == 0.5

    @zg.ignore
    def half(x):
        return x[:2]

    check(lambda x: np.sum(x[:2] * half(x)), lambda x: np.sum(x[:2] * X[:2]), X)

    @zg.ignore
    @njit
    def log(x):
        with objmode():
            str(x)

    def logs(x):
        y = x * x
        log(y)
        return np.sum(y)

    np.testing.assert_allclose(gradient(logs)(X), 2.0 * X)


def test_ignore_and_writes():
    @zg.ignore
    def fill(x, out):
        for i in range(len(x)):
            out[i] = x[i]

    def into_zeros(x):
        out = np.zeros_like(x)
        fill(x, out)
        return np.sum(out * x)

    def into_active(x):
        out = x * x
        fill(x, out)
        return np.sum(out * x)

    np.testing.assert_allclose(gradient(into_zeros)(X), X)
    with pytest.raises(DifferentiationError, match="`fill` is not differentiated, and writes to an array"):
        gradient(into_active)(X)


def test_without_compilation():
    """The same with Numba disabled, where the gradients run in plain Python."""
    names = ["programs", "the_rule_is", "structures", "object_mode", "test_hook", "test_ignore", "check_adjoint"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", " or ".join(names)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("it is disabled")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_called_in_what_numba_compiles():
    @njit
    def f(x):
        return zg.hook(zg.stop_gradient(x) * x, len)

    assert f(3.0) == 9.0
    assert numba.njit(lambda x: zg.stop_gradient(x))(X) is not None
