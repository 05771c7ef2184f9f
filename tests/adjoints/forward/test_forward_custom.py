"""Custom rules in forward mode, and under second derivatives."""

import math

import numpy as np
import pytest
from numba import cfunc

import zygote_py as zg
from tests.api.custom_adjoints import X, in_loop_and_branch, mul, recursive, without_rule
from tests.checking.derivatives import check_derivatives
from tests.checking.second import push
from zygote_py.adjoints import DifferentiationError
from zygote_py.api.directions import hvp, jvp

pytestmark = pytest.mark.interpreted

V = np.array([1.0, -0.5, 0.3, 2.0])


def ruled(f, rule):
    """A function with a rule."""
    zg.adjoint(f)(rule)
    return f


def test_the_rule_is_what_is_used():
    """Compiled: the value and the tangent are those of the rule, also of the function itself."""

    def f(x):
        return x * x

    @zg.adjoint(f)
    def rule(x):
        def back(dy):
            return (dy * 100.0 * x,)

        return x * x + 1.0, back

    assert jvp(f, 3.0, 1.0) == (10.0, 300.0)
    assert jvp(lambda x: f(x) * 2.0, 3.0, 1.0) == (20.0, 600.0)
    assert push(lambda x, c: x * f(c), (2.0, 3.0), (1.0, None)) == (18.0, 9.0)  # no derivative of it is needed

    def nested(x):
        return zg.gradient(f)(x) * x

    assert zg.gradient(nested)(3.0) == 600.0


def test_what_a_pullback_gives_in_one_program():
    """A loop over an array, None, 0, several pullbacks, any number of arguments, tuples, a hook: in both modes."""

    def running(x, w):
        return np.sum(np.cumsum(x) * w)

    @zg.adjoint(running)
    def of_running(x, w):
        def back(dy):
            dx, dw = np.zeros_like(x), np.empty_like(w)
            s = t = 0.0
            for i in range(len(x)):
                s += w[len(x) - 1 - i] * dy
                dx[len(x) - 1 - i] = s
                t += x[i]
                dw[i] = t * dy
            return dx, dw

        return np.sum(np.cumsum(x) * w), back

    half = ruled(lambda x, y, n: x * y, _rule_of_half)
    side = ruled(lambda x: abs(x), _rule_of_side)
    several = ruled(_several, _rule_of_several)
    pair = ruled(lambda p, n: (p[0] * p[1], p[1] + n, n), _rule_of_pair)

    def f(x, w, a):
        y = running(x, w) + half(a, x[0], 3) + side(a) * side(-2.0 * a) + several(a, x[1], w[0])
        u, v, n = pair((x, a), 2)
        return y + np.sum(u) * v * n + zg.hook(a * a, lambda g: -2.0 * g)

    args, tangents = (X, V, 0.7), (V * V, X, -1.5)
    gradients = zg.gradient(f)(*args)
    expected = sum(np.sum(g * t) for g, t in zip(gradients, tangents, strict=True))
    assert push(f, args, tangents)[1] == pytest.approx(expected, rel=1e-12)
    assert jvp(f, args, tangents)[1] == pytest.approx(expected, rel=1e-12)


def _rule_of_half(x, y, n):
    def back(dy):
        return dy * y, None, 0

    return x * y, back


def _rule_of_side(x):
    if x > 0:

        def right(dy):
            return (2.0 * dy,)

        return x, right
    c = 3.0 * x

    def left(dy):
        return (-dy * c,)

    return -x, left


def _several(*xs):
    return xs[0] * xs[1] + xs[2]


def _rule_of_several(*xs):
    a, b, c = xs

    def back(dy):
        return dy * b, dy * a, 5.0 * dy

    return a * b + c, back


def _rule_of_pair(p, n):
    x, a = p

    def back(dy):
        du, dv, _ = dy
        return (du * a, np.sum(du * x) + dv), None

    return (x * a, a + n, n), back


def test_rules_without_a_body_and_of_linear_algebra():
    @cfunc("float64(float64)")
    def sine(x):
        return math.sin(x)

    @zg.adjoint(sine)
    def rule(x):
        c = math.cos(x)

        def back(dy):
            return (dy * c,)

        return sine(x), back

    assert jvp(lambda x: sine(x) ** 2, 0.5, 1.0) == pytest.approx((math.sin(0.5) ** 2, math.sin(1.0)), rel=1e-14)

    def solve(a, b):
        return np.linalg.solve(a, b)

    @zg.adjoint(solve)
    def of_solve(a, b):
        x = np.linalg.solve(a, b)

        def back(dx):
            db = np.linalg.solve(a.T.copy(), dx)
            return -np.outer(db, x), db

        return x, back

    a = np.diag(X) + 0.3
    _, tangent = push(lambda a, b: solve(a, b), (a, V), (a * a, X))
    x = np.linalg.solve(a, V)
    np.testing.assert_allclose(tangent, np.linalg.solve(a, X - (a * a) @ x), rtol=1e-11)


def test_types_of_gradients():
    """A gradient of another precision, the gradient of a complex number, and a real number's among complex ones."""
    double = ruled(lambda x: x * x, _rule_of_double)
    x, v = X.astype(np.float32), V.astype(np.float32)
    tangent = push(lambda x: double(x), (x,), (v,))[1]
    assert tangent.dtype == np.float32
    np.testing.assert_allclose(tangent, 2 * x * v, rtol=1e-6)

    square = ruled(lambda z: z * z, _rule_of_square)
    size = ruled(lambda z: z.real * z.real + z.imag * z.imag, _rule_of_size)
    real = ruled(lambda z: z.real.copy(), _rule_of_real)

    def f(z, zs):
        return square(z) * size(z), real(zs)

    z, t, zs, ts = 1 + 2j, 3 - 1j, X + 1j * V, V - 2j * X
    found = push(f, (z, zs), (t, ts))[1]
    assert found[0] == pytest.approx(2 * z * t * 5 + z * z * 2 * (z.conjugate() * t).real, rel=1e-14)
    np.testing.assert_array_equal(found[1], ts.real)


def _rule_of_double(x):
    w = np.full(len(x), 2.0)

    def back(dy):
        return (w * x * dy,)

    return x * x, back


def _rule_of_square(z):
    def back(dy):
        return (2 * np.conj(z) * dy,)

    return z * z, back


def _rule_of_size(z):
    def back(dy):
        return (2 * z * dy,)

    return z.real**2 + z.imag**2, back


def _rule_of_real(z):
    def back(dy):
        return (dy,)

    return z.real.copy(), back


def test_hooks():
    def look(g):
        print("nobody calls this", g)

    assert push(lambda x: zg.hook(x * x, look) * 5.0, (3.0,), (1.0,)) == (45.0, 30.0)
    assert push(lambda x: zg.hook(x * x, lambda g: g * 0.5) * 5.0, (3.0,), (1.0,)) == (45.0, 15.0)
    np.testing.assert_array_equal(push(lambda x: zg.hook(x, lambda g: np.zeros_like(g)), (X,), (V,))[1], 0.0 * X)


@pytest.mark.parametrize(
    "fn",
    [
        lambda g: min(g, 1.0),
        lambda g: g if g > 0.0 else 0.0,
        lambda g: 0.0 if g == 0.0 else 2.0 * g,
        lambda g: g * g,
        lambda g: g + 1.0,
        lambda g: 1.0,
        lambda g: zg.stop_gradient(g),
        lambda g: g / abs(g),
        lambda g: g * round(g),
    ],
)
def test_what_is_not_linear_has_no_tangent(fn):
    with pytest.raises(DifferentiationError, match="not linear in the gradient") as caught:
        push(lambda x: zg.hook(x * x, fn), (3.0,), (1.0,))
    assert caught.value.line == fn.__code__.co_firstlineno


def test_a_pullback_that_is_not_linear_is_refused():
    clipped = ruled(lambda x: x * x, _rule_of_clipped)
    with pytest.raises(DifferentiationError, match=r"the pullback of the rule `_rule_of_clipped` .*not linear in its"):
        push(lambda x: clipped(x), (X,), (V,))


def _rule_of_clipped(x):
    def back(dy):
        n = np.sqrt(np.sum(dy * dy))
        return (2 * x * dy / n,)

    return x * x, back


def test_shapes_and_shared_memory():
    short = ruled(lambda x: np.sum(x), _rule_of_short)
    with pytest.raises(ValueError, match="does not have its shape"):
        push(lambda x: short(x), (X,), (V,))

    same = ruled(lambda x: x, _rule_of_same)
    np.testing.assert_array_equal(push(lambda x: same(x) * 2.0, (X,), (V,))[1], 2.0 * V)

    def late(x):
        y = x * 1.0
        z = same(y)
        y[0] = 5.0
        return z * 2.0

    with pytest.raises(ValueError, match="shares memory"):
        push(late, (X,), (V,))

    double = ruled(lambda x: x * x, _rule_of_double)

    def overwritten(x):  # what the pullback captured is copied
        y = x * 1.0
        z = double(y)
        y[:] = 5.0
        return z * 2.0

    np.testing.assert_allclose(push(overwritten, (X,), (V,))[1], 4.0 * X * V, rtol=1e-15)


def _rule_of_short(x):
    def back(dy):
        return (np.ones(2) * dy,)

    return np.sum(x), back


def _rule_of_same(x):
    def back(dy):
        return (dy,)

    return x, back


@pytest.mark.parametrize(
    ("program", "args"), [(in_loop_and_branch, (5,)), (recursive, (3,))], ids=["in_loop_and_branch", "recursive"]
)
def test_second_derivatives_of_programs(program, args):
    f, plainly = program(mul), program(without_rule(mul))
    check_derivatives(lambda x: f(x, *args), 0.7, direction=1.0, reference=lambda x: plainly(x, *args))


def test_second_derivatives_of_rules_by_rules():
    @cfunc("float64(float64)")
    def sine(x):
        return math.sin(x)

    @cfunc("float64(float64)")
    def cosine(x):
        return math.cos(x)

    @zg.adjoint(sine)
    def rule(x):
        def back(dy):
            return (dy * cosine(x),)

        return sine(x), back

    @zg.adjoint(cosine)
    def other(x):
        def back(dy):
            return (-dy * sine(x),)

        return cosine(x), back

    def f(x):
        return sine(x) ** 2 * x

    x = 0.5
    expected = 2 * math.sin(2 * x) + 2 * x * math.cos(2 * x)
    assert zg.gradient(zg.gradient(f))(x) == pytest.approx(expected, rel=1e-14)
    assert hvp(f)(x, 1.0) == pytest.approx(expected, rel=1e-14)
    third = zg.gradient(zg.gradient(zg.gradient(f)))(x)
    assert third == pytest.approx(6 * math.cos(2 * x) - 4 * x * math.sin(2 * x), rel=1e-13)


def test_second_derivatives_through_a_hook():
    """The gradient that a hook changed is differentiated; the hook is not asked about the adjoints of that."""

    def f(x):
        return zg.hook(x * x, lambda g: min(g, 0.5)) * x**3

    second = zg.gradient(zg.gradient(f))
    assert second(0.7) == pytest.approx(20 * 0.7**3, rel=1e-14)
    assert second(1.0) == pytest.approx(13.0, rel=1e-14)
