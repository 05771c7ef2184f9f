"""Rules of all forms: with several pullbacks, for any number of arguments, of methods, structures and views."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, vectorize

import zygote_py as zg
from tests.api.custom_adjoints import X, without_rule
from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted

# ------------------------------------------------------------------------------------------------ several pullbacks


def step(x, i):
    return 0.5 * x * x if i % 2 == 1 else math.sin(x)


@zg.adjoint(step)
def rule_of_step(x, i):
    if i % 2 == 1:

        def back(dy):
            return dy * x, None

        y = 0.5 * x * x
    else:
        c = math.cos(x)

        def back(dy):
            return dy * c, None

        y = math.sin(x)
    return y, back


def kinked(x):
    return x * x * x if x > 0.0 else -x


@zg.adjoint(kinked)
def rule_of_kinked(x):
    if x > 0.0:
        c = x * x
        return x * c, lambda dy: (3.0 * c * dy,)
    return -x, lambda dy: (-dy,)


def in_three_ways(x, w):
    if x[0] > 0.0:
        return np.sum(x * w)
    return np.sum(np.sin(x)[::2]) if x[1] > 0.0 else np.sum(x[0] * w) + np.sum(w)


@zg.adjoint(in_three_ways)
def rule_of_three_ways(x, w):
    if x[0] > 0.0:

        def products(dy):
            return dy * w, dy * x

        return np.sum(x * w), products
    if x[1] > 0.0:
        c = np.cos(x)[::2]

        def cosines(dy):
            dx = np.zeros_like(x)
            dx[::2] = dy * c
            return dx, np.zeros_like(w)

        return np.sum(np.sin(x)[::2]), cosines
    s, first = np.sum(w), x[0]

    def sums(dy):
        dx = np.zeros_like(x)
        dx[0] = dy * s
        return dx, np.full(len(w), dy * (first + 1.0))

    return s * (first + 1.0), sums


def steps(step):
    def program(x, n):
        s = 0.0
        for i in range(n):
            x = step(x * 1.1, i)
            s += x * x
        return s

    return program


def along(in_three_ways):
    def program(x, w):
        s = 0.0
        y = x.copy()
        for i in range(3):
            s += in_three_ways(y, w) ** 2
            y[i] = -y[i]  # what the pullback captured is written to
        return s

    return program


def test_a_pullback_for_each_path():
    check_derivatives(steps(step), 0.7, 5, reference=steps(without_rule(step)))
    check_derivatives(along(in_three_ways), abs(X), X * 2.0, reference=along(without_rule(in_three_ways)))
    assert gradient(lambda x: kinked(x))(2.0) == 12.0
    assert gradient(lambda x: kinked(x))(-2.0) == -1.0
    assert zg.pullback(kinked, -2.0)[1](3.0) == (-3.0,)
    for signs in ([1, 1, 1, 1], [-1, 1, 1, 1], [-1, -1, 1, 1]):
        zg.check_adjoint(in_three_ways, abs(X) * signs, X)
    zg.check_adjoint(kinked, 2.0)
    zg.check_adjoint(kinked, -2.0)


def rungs(x, n):
    return x * n if n < 3 else math.sin(x) if n == 3 else x * x


@zg.adjoint(rungs)
def rule_of_rungs(x, n):
    if n == 3:
        back = (lambda dy: (dy * math.cos(x), None)) if x > 0.0 else (lambda dy: (math.cos(x) * dy, None))
        return math.sin(x), back
    if n > 3:
        return x * x, lambda dy: (2.0 * dy * x, None)

    def back_of_product(dy):
        return dy * n, None

    return x * n, back_of_product


def in_order(x, n):
    return rungs(x, n)


@zg.adjoint(in_order)
def rule_in_order(x, n):
    if n == 3:
        c = math.cos(x)
        back = lambda dy: (dy * c, None)
    elif n > 3:
        back = (lambda dy: (2.0 * dy * x, None)) if n > 4 else (lambda dy: (dy * x * 2.0, None))
    elif n > 1:
        back = lambda dy: (dy * n, None)
    else:
        back = lambda dy: (n * dy, None)
    return rungs(x, n), back


@pytest.mark.parametrize("n", one_in(2, range(6)))
@pytest.mark.parametrize("function", one_in(2, [in_order, rungs]))
def test_many_pullbacks(function, n):
    own = without_rule(rungs)
    check_derivatives(lambda x, n: function(x * x, n) * x, 0.7, n, reference=lambda x, n: own(x * x, n) * x)
    zg.check_adjoint(function, -0.7, n)


def test_a_rule_calls_functions_with_rules():
    def f(x):
        return kinked(x) * x

    @zg.adjoint(f)
    def rule(x):
        y = kinked(x)
        if x > 1.0:
            return y * x, lambda dy: (dy * (y + 3.0 * x**3),)
        return y * x, lambda dy: (dy * 4.0 * kinked(x) if x > 0.0 else -2.0 * dy * x,)

    for x in (2.0, 0.5, -2.0):
        zg.check_adjoint(f, x)
        check_derivatives(lambda x: f(x) * x, x, reference=lambda x: (x**4 if x > 0.0 else -x * x) * x)


def test_a_recursive_rule():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    @zg.adjoint(power)
    def rule(x, n):
        if n == 0:
            value, slope = 1.0, 0.0
        else:
            value, back_of_last = rule(x, n - 1)
            slope = back_of_last(1.0)[0] * x + value
            value = value * x

        def back(dy):
            return dy * slope, None

        return value, back

    assert gradient(lambda x, n: power(x, n), wrt="x")(2.0, 3) == 12.0
    zg.check_adjoint(power, 1.3, 4)


# -------------------------------------------------------------------------------------------------------- arguments


def weighted(first, *rest):
    return first * rest[0] * rest[0] + math.sin(rest[1])


@zg.adjoint(weighted)
def rule_of_weighted(first, *rest):
    a, b = rest

    def back(dy):
        return dy * a * a, 2.0 * dy * first * a, dy * math.cos(b)

    return first * a * a + math.sin(b), back


def test_any_number_of_arguments():
    own = without_rule(weighted)
    check_derivatives(lambda x, y: weighted(x, y, x * y), 0.7, 1.3, reference=lambda x, y: own(x, y, x * y))
    check_derivatives(lambda x, y: weighted(x, *(y, x)), 0.7, 1.3, reference=lambda x, y: own(x, y, x))
    assert gradient(weighted)(0.5, 2.0, 0.0) == (4.0, 2.0, 1.0)
    zg.check_adjoint(weighted, 0.7, 1.3, -0.4)


def test_a_rule_for_any_number_of_arguments_of_a_function_for_two():
    def f(x, y):
        return x * y * y

    @zg.adjoint(f)
    def rule(*both):
        def back(dy):
            return dy * both[1] * both[1], 2.0 * dy * both[0] * both[1]

        return both[0] * both[1] * both[1], back

    check_derivatives(lambda x: f(x, math.sin(x)), 0.7, reference=lambda x: x * math.sin(x) ** 2)
    zg.check_adjoint(f, 0.7, 1.3)


def scaled(x, k=2.0, *, shift=1.0):
    return x * x * k + shift


@zg.adjoint(scaled)
def rule_of_scaled(x, k, shift):
    def back(dy):
        return 2.0 * dy * x * k, dy * x * x, dy

    return x * x * k + shift, back


def test_defaults_and_keywords():
    own = without_rule(scaled)
    own.__kwdefaults__ = scaled.__kwdefaults__
    for program in (
        lambda f: lambda x: f(x) * x,
        lambda f: lambda x: f(k=x, x=math.sin(x)),
        lambda f: lambda x: f(x, shift=x * x),
        lambda f: lambda x: f(x, x * x, shift=math.sin(x)),
    ):
        check_derivatives(program(scaled), 0.7, reference=program(own))
    zg.check_adjoint(scaled, 0.7)
    zg.check_adjoint(scaled, 0.7, 1.5)


@dataclass(frozen=True)
class Layer:
    w: np.ndarray
    b: float
    n: int

    def apply(self, x):
        return np.sum(self.w * x) * self.n + self.b


@zg.adjoint(Layer.apply)
def rule_of_apply(layer, x):
    def back(dy):
        return Layer(dy * layer.n * x, dy, 0), dy * layer.n * layer.w

    return np.sum(layer.w * x) * layer.n + layer.b, back


class Both(NamedTuple):
    s: float
    v: np.ndarray


def split(pair, k):
    x, (a, n) = pair
    return Both(np.sum(x) * a, x * k * n)


@zg.adjoint(split)
def rule_of_split(pair, k):
    x, (a, n) = pair
    total = np.sum(x)

    def back(dy):
        return (dy.s * a + dy.v * k * n, (dy.s * total, None)), np.sum(dy.v * x) * n

    return Both(total * a, x * k * n), back


def whole(layer, x):
    return Layer(layer.w * np.sum(x), layer.b * 2.0, layer.n)


@zg.adjoint(whole)
def rule_of_whole(layer, x):
    s = np.sum(x)

    def back(dy):
        return (dy.w * s, dy.b * 2.0, None), np.full(len(x), np.sum(dy.w * layer.w))

    return Layer(layer.w * s, layer.b * 2.0, layer.n), back


def test_a_method():
    def program(w, b, x):
        layer = Layer(w, b, 3)
        return layer.apply(x) ** 2 * layer.apply(x * x)

    def reference(w, b, x):
        return (np.sum(w * x) * 3 + b) ** 2 * (np.sum(w * x * x) * 3 + b)

    check_derivatives(program, X, 0.5, X * 2.0, reference=reference)
    zg.check_adjoint(Layer.apply, Layer(X, 0.5, 3), X * 2.0)


def test_structures_as_arguments_and_results():
    def program(x, a, k):
        found = split((x, (a, 3)), k)
        made = whole(Layer(found.v, found.s, 2), x)
        return np.sum(made.w * x) + made.b * a

    def reference(x, a, k):
        return np.sum(x * k * 3 * np.sum(x) * x) + np.sum(x) * a * 2.0 * a

    check_derivatives(program, X, 0.7, 1.3, reference=reference)
    zg.check_adjoint(split, (X, (0.7, 3)), 1.3)
    zg.check_adjoint(whole, Layer(X, 0.5, 2), X * 2.0)


def test_views_that_are_not_contiguous():
    def cut(a, b):
        return (a * b)[::2, 1:]

    @zg.adjoint(cut)
    def rule(a, b):
        kept = b[::2, 1:]

        def back(dy):
            da, db = np.zeros(a.shape), np.zeros(b.shape)
            da[::2, 1:] = dy * kept
            db[::2, 1:] = dy * a[::2, 1:]
            return da, db

        return (a * b)[::2, 1:], back

    own = without_rule(cut)
    a = np.linspace(-1.0, 2.0, 12).reshape(3, 4)

    def program(cut):
        def run(a):
            part = cut(a.T[:, ::2], a.T[:, 1:]) if a.shape[0] == 2 else cut(a[:, ::-1], a)
            return np.sum(part * part) + np.sum(cut(a.T, a.T * 2.0))

        return run

    check_derivatives(program(cut), a, reference=program(own))
    zg.check_adjoint(cut, a, a[:, ::-1])
    zg.check_adjoint(cut, a.T, np.asfortranarray(a.T))


# ---------------------------------------------------------------------------------------- callables of other packages


def test_vectorized_functions():
    @vectorize
    def product(x, y):
        return x * y

    @zg.adjoint(product)
    def rule(x, y):
        def back(dy):
            return dy * y, dy * x

        return product(x, y), back

    assert gradient(lambda x: product(x, x * x))(2.0) == 12.0
    np.testing.assert_allclose(gradient(lambda x: np.sum(product(x, x * x)))(X), 3.0 * X * X)
    zg.check_adjoint(product, 2.0, 0.5)
    zg.check_adjoint(product, X, X * 2.0)


def test_gradients():
    slope = gradient(lambda x: x**3)

    @zg.adjoint(slope)
    def rule(x):
        def back(dy):
            return (6.0 * x * dy,)

        return slope(x), back

    assert gradient(lambda x: slope(x) * x)(2.0) == 36.0


def test_decorated_functions_that_cannot_be_differentiated():
    @njit
    def through_a_dict(x, n):
        found = {0: 0.0}
        for i in range(n):
            found[i + 1] = found[i] + x * i
        return found[n]

    @zg.adjoint(through_a_dict)
    def rule(x, n):
        slope = 0.5 * n * (n - 1)

        def back(dy):
            return dy * slope, None

        return through_a_dict(x, n), back

    assert gradient(lambda x, n: through_a_dict(x, n) * x, wrt="x")(2.0, 5) == 40.0
    zg.check_adjoint(through_a_dict, 2.0, 5)


# ------------------------------------------------------------------------------------------------------ what is refused


def test_pullbacks_that_do_not_agree():
    def f(x, w):
        return x * w

    @zg.adjoint(f)
    def rule(x, w):
        if w > 0.0:
            return x * w, lambda dy: (dy * w, None)
        return x * w, lambda dy: (dy * w, dy * x)

    with pytest.raises(DifferentiationError, match="one pullback of the rule `rule` of `f` returns values of type"):
        gradient(lambda x, w: f(x, w))(2.0, 3.0)


def test_a_wrong_number_of_arguments_for_the_rule():
    def f(*xs):
        return xs[0]

    def one(x):
        return x, lambda dy: (dy,)

    with pytest.raises(DifferentiationError, match=r"`f` takes any number of arguments, and .* does not"):
        zg.adjoint(f)(one)

    @zg.adjoint(f)
    def rule(x, y, *others):
        def back(dy):
            return (dy,)

        return x, back

    with pytest.raises(DifferentiationError, match="rule `rule` of `f` does not take 1 argument"):
        gradient(lambda x: f(x))(2.0)
    with pytest.raises(DifferentiationError, match=r"returns 1 gradient, and `f` has 3 parameters"):
        gradient(lambda x: f(x, x, x))(2.0)
