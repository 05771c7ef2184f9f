"""Draws of random numbers whose parameters are differentiated, against differences with the same random numbers."""

from __future__ import annotations

import functools
import random

import numba
import numpy as np
import pytest
from numba import njit

from zygote_py import (
    DifferentiationError,
    checkpoint,
    gradient,
    hessian,
    jvp,
    pullback,
    stop_gradient,
    value_and_gradient,
)

pytestmark = pytest.mark.interpreted

PARAMETERS = {
    "normal": (1.5, 0.7),
    "uniform": (0.3, 2.0),
    "exponential": (1.7,),
    "lognormal": (0.2, 0.4),
    "gumbel": (0.2, 1.3),
    "logistic": (0.1, 1.2),
    "laplace": (0.1, 1.2),
    "rayleigh": (1.4,),
    "weibull": (1.6,),
    "pareto": (2.5,),
    "power": (1.7,),
    "triangular": (0.1, 0.4, 1.2),
    "gauss": (1.5, 0.7),
    "normalvariate": (1.5, 0.7),
    "lognormvariate": (0.2, 0.4),
    "expovariate": (1.7,),
    "paretovariate": (2.5,),
    "weibullvariate": (1.6, 1.2),
}
OF_NUMPY = list(PARAMETERS)[:12]
OF_PYTHON = ["uniform", *list(PARAMETERS)[12:]]
OF_GENERATOR = [name for name in OF_NUMPY if name != "gumbel"]


def seed(n):
    np.random.seed(n)
    random.seed(n)


def state():
    return np.random.random(), random.random()


@functools.cache
def decorated(interpreted):
    """Numba's generators are others than those of the interpreter."""
    return njit(seed), njit(state)


def seeded(n, f, *args):
    """The value of a function after `seed(n)`, and what is drawn afterwards."""
    seed, state = decorated(numba.config.DISABLE_JIT)
    seed(n)
    return f(*args), state()


def programs(owner, names, size=""):
    """Functions that draw once, by name, with as many parameters as the distribution has."""
    made = {}
    for name in names:
        given = ", ".join("abc"[: len(PARAMETERS[name])])
        scope = {"np": np, "random": random}
        first = "rng, " if owner == "rng" else ""
        total = ".sum()" if size else ""
        exec(f"def {name}({first}{given}): return {owner}.{name}({given}{size}){total} ** 2", scope)
        made[name] = scope[name]
    return made


def check(name, f, before=lambda n: ()):
    """Compare value, state and slopes for several states of the generator."""
    parameters, function = PARAMETERS[name], njit(f)
    df = value_and_gradient(f, wrt=tuple("abc"[: len(parameters)]))
    for n in range(4):
        value, after = seeded(n, function, *before(n), *parameters)
        (found, slopes), after_gradient = seeded(n, df, *before(n), *parameters)
        assert found == pytest.approx(value, rel=1e-13)
        assert after_gradient == after
        for number, slope in enumerate(slopes):
            step = 1e-5
            moved = [
                [each + sign * step * (place == number) for place, each in enumerate(parameters)] for sign in (1, -1)
            ]
            up, down = (seeded(n, function, *before(n), *each)[0] for each in moved)
            assert slope == pytest.approx((up - down) / (2 * step), rel=1e-7, abs=1e-8), (name, n, number)


@pytest.mark.parametrize("name", OF_NUMPY)
def test_numpy(name):
    check(name, programs("np.random", [name])[name])


@pytest.mark.parametrize("name", OF_PYTHON)
def test_random(name):
    check(name, programs("random", [name])[name])


@pytest.mark.parametrize("name", OF_GENERATOR)
def test_generator(name):
    check(name, programs("rng", [name])[name], lambda n: (np.random.default_rng(n),))


@pytest.mark.parametrize("size", [", 3", ", (2, 3)"])
def test_arrays(size):
    check("normal", programs("np.random", ["normal"], size)["normal"])
    check("logistic", programs("rng", ["logistic"], size)["logistic"], lambda n: (np.random.default_rng(n),))


@pytest.mark.compiled
def test_compiled():
    """In compiled code the numbers are those that Numba draws, bit by bit."""
    for owner, name in (("np.random", "uniform"), ("random", "gauss"), ("np.random", "gumbel")):
        f = programs(owner, [name])[name]
        check(name, f)
        (value, _), after = seeded(7, value_and_gradient(f), *PARAMETERS[name])
        assert (value, after) == seeded(7, njit(f), *PARAMETERS[name])
    f = programs("rng", ["laplace"])["laplace"]
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    assert value_and_gradient(f)(one, 0.1, 1.2)[0] == njit(f)(two, 0.1, 1.2)
    assert one.random() == two.random()


def walk(rng, start, n):
    """A random walk whose steps depend on where it is, in an array that is overwritten."""
    x = np.full(3, start)
    for i in range(n):
        k = i % 3
        x[k] = rng.normal(x[k], 0.1 + 0.1 * x[k] * x[k])
        if x[k] > 1.0:
            x[k] = rng.exponential(x[k])
    return np.sum(x)


def test_a_loop_that_overwrites():
    def rng():
        return np.random.default_rng(5)

    slope = gradient(walk, wrt="start")(rng(), 0.5, 20)
    f = njit(walk)
    assert slope == pytest.approx((f(rng(), 0.5 + 1e-6, 20) - f(rng(), 0.5 - 1e-6, 20)) / 2e-6, rel=1e-7)
    assert pullback(walk, rng(), 0.5, 20)[1](1.0) == (None, pytest.approx(slope), None)
    assert jvp(walk, (rng(), 0.5, 20), (None, 1.0, None))[1] == pytest.approx(slope)


def test_second_derivatives():
    def f(rng, m, s):
        return rng.normal(m, s) ** 3

    z = np.random.default_rng(1).standard_normal()
    assert gradient(gradient(f, wrt="s"), wrt="s")(np.random.default_rng(1), 1.0, 2.0) == pytest.approx(
        6.0 * (1.0 + 2.0 * z) * z * z
    )
    assert hessian(f, wrt="m")(np.random.default_rng(1), 1.0, 2.0) == pytest.approx(6.0 * (1.0 + 2.0 * z))


def test_a_captured_generator():
    class Model:
        def __init__(self):
            self.rng = np.random.default_rng(1)
            self.mu = 2.0

        def loss(self, s):
            return self.rng.normal(self.mu, s)

    model, own = Model(), np.random.default_rng(1)
    df = gradient(model.loss, closure=True)
    for _ in range(2):
        assert df(3.0) == (own.standard_normal(), (1.0,))


def test_a_zero_scale():
    assert gradient(lambda rng, s: rng.normal(1.0, s), wrt="s")(np.random.default_rng(1), 0.0) == (
        np.random.default_rng(1).standard_normal()
    )


def test_random_orders():
    weights = np.array([1.0, 2.0, 4.0])

    def f(rng, x):
        y = rng.permutation(x * x)
        rng.shuffle(y)
        return np.sum(weights * y)

    order = np.random.default_rng(2)
    expected = np.array([1.0, 2.0, 3.0])
    places = order.permutation(np.arange(3))
    order.shuffle(places)
    gradient_at = np.zeros(3)
    gradient_at[places] = weights
    found = gradient(f, wrt="x")(np.random.default_rng(2), expected)
    np.testing.assert_allclose(found, 2.0 * expected * gradient_at)


def in_a_list(x):
    s = [x]
    for i in range(4):
        s.append(np.random.normal(s[i], x))
    s[2] = s[2] * s[1]
    return s[2] * s[3]


@pytest.mark.parametrize(
    ("f", "says", "hint"),
    [
        (lambda x: np.random.poisson(x) * 1.0, "np.random.poisson is not differentiated", "score function"),
        (lambda x: np.random.beta(x, 1.0), "np.random.beta is not differentiated", "score function"),
        (lambda x: random.vonmisesvariate(x, 1.0), "random.vonmisesvariate is not diff", "score function"),
        (lambda x: np.random.gamma(x, 2.0), "np.random.standard_gamma is not diff", "stop_gradient"),
        (lambda x: checkpoint(in_a_list)(x), "draws random numbers", "draw them beforehand"),
    ],
)
def test_refused(f, says, hint):
    with pytest.raises(DifferentiationError, match=says) as raised:
        gradient(f)(2.0)
    assert hint in raised.value.hint


def counted(lam, n):
    return np.random.poisson(lam) if n == 0 else counted(lam, n - 1)


def summed(x, lam, n):
    return x * np.random.poisson(lam) if n == 0 else summed(x, lam, n - 1)


def test_counts_in_functions_that_are_called():
    """No derivative flows through an integer, so that the function which draws was not looked at."""
    for f in (lambda x: counted(x, 2) * 1.0, lambda x: summed(x, x, 2)):
        with pytest.raises(DifferentiationError, match=r"np\.random\.poisson is not differentiated"):
            gradient(f)(3.0)
    found, after = seeded(3, gradient(summed, wrt="x"), 2.0, 4.0, 1)
    assert (found, after) == seeded(3, njit(lambda: np.random.poisson(4.0)))


def test_counts_of_constant_parameters():
    df = gradient(lambda x: x * np.random.poisson(stop_gradient(x)))
    found, after = seeded(3, df, 4.0)
    assert (found, after) == seeded(3, njit(lambda: np.random.poisson(4.0)))


def test_a_pullback_never_draws_again():
    """The pullback ran such a function again, with other random numbers."""
    with pytest.raises(DifferentiationError, match="cannot run it again"):
        pullback(in_a_list, 2.0)[1](1.0)
    (_, slope), _ = seeded(1, value_and_gradient(in_a_list), 2.0)
    up, down = (seeded(1, njit(in_a_list), 2.0 + step)[0] for step in (1e-6, -1e-6))
    assert slope == pytest.approx((up - down) / 2e-6, rel=1e-7)
