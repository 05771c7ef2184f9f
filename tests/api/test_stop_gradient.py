"""`stop_gradient`, `ignore` and `hook`."""

import numba
import numpy as np
import pytest
from numba import njit, objmode

import zygote_py as zg
from tests.api.custom_adjoints import X
from tests.checking.derivatives import check_derivatives
from tests.checking.reference import central
from tests.plain import plain
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted


def test_stop_gradient():
    assert zg.stop_gradient(X) is X
    check_derivatives(lambda x: np.sum(x * zg.stop_gradient(x)), X, reference=lambda x: np.sum(x * X))
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

    check_derivatives(lambda x: np.sum(x[:2] * half(x)), X, reference=lambda x: np.sum(x[:2] * X[:2]))

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


def test_called_in_what_numba_compiles():
    @njit
    def f(x):
        return zg.hook(zg.stop_gradient(x) * x, len)

    assert f(3.0) == 9.0
    assert numba.njit(lambda x: zg.stop_gradient(x))(X) is not None
