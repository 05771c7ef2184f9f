"""`pullback` inside functions that Numba compiles; each program runs in plain Python, too."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import zygote_py as zg
from tests.api.test_pullback_again import CALLED_AGAIN
from tests.checking.reference import central
from tests.counts import allocations
from zygote_py import DifferentiationError, Pullback

X, OUT, SEED = np.array([0.5, 1.5]), np.array([3.0, 4.0]), np.array([1.0, -2.0])
W = np.array([1.0, 2.0, 3.0])


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class State:
    x: np.ndarray
    rate: float


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


both = pytest.mark.parametrize(
    "decorate", [pytest.param(plain, marks=pytest.mark.interpreted), njit], ids=["plain", "compiled"]
)


def close(found: Any, *expected: Any) -> None:
    assert isinstance(found, tuple)
    for one, other in zip(found, expected, strict=True):
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=1e-12)


def product(x, w):
    return x * x * w


compiled_product = njit(product)


def square(x, out):
    for i in range(len(x)):
        out[i] = x[i] * x[i] + 2.0 * out[i]


@pytest.mark.parametrize("of", [product, compiled_product], ids=["plain", "njit"])
@both
def test_numbers(decorate, of):
    @decorate
    def step(x, w):
        value, back = zg.pullback(of, x, w)
        return value, back(1.0), back(2), back(None), back()

    value, *found = step(3.0, 2.0)
    assert value == 18.0
    for each, factor in zip(found, (1.0, 2.0, 0.0, 1.0), strict=True):
        close(each, 12.0 * factor, 9.0 * factor)


@both
def test_arrays_that_change_before_back_is_called(decorate):
    @decorate
    def step(x, w, seed):
        value, back = zg.pullback(product, x, w)
        result = value.copy()
        x[:] = 7.0
        value[:] = 3.0
        first = back(seed)
        first[0][:] = 5.0
        return result, back(seed), back(2.0 * seed), seed

    value, once, twice, seed = step(X.copy(), 2.0, SEED.copy())
    np.testing.assert_allclose(value, 2 * X * X)
    close(once, 4 * X * SEED, np.sum(X * X * SEED))
    close(twice, 8 * X * SEED, 2 * np.sum(X * X * SEED))
    np.testing.assert_array_equal(seed, SEED)


@pytest.mark.parametrize(("function", "args"), CALLED_AGAIN, ids=[function.__name__ for function, _ in CALLED_AGAIN])
def test_what_is_kept_is_not_used_up(function, args):
    def copied(args):
        return tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)

    value = function(*copied(args))
    seed = SEED if isinstance(value, np.ndarray) else 1.5

    @njit
    def called(*args):
        _, back = zg.pullback(function, *args)
        _, other = zg.pullback(function, *args)
        return back(seed), other(seed), back(seed)

    def weighed(*args):
        return float(np.sum(function(*copied(args)) * seed))

    expected = central(weighed, *args, wrt=[0]).gradients[0]
    first, other, again = called(*copied(args))
    np.testing.assert_allclose(first[0], expected, rtol=1e-8)
    np.testing.assert_array_equal(first[0], again[0])
    if function.__name__ != "written_to":  # the second call gets what the first has written
        np.testing.assert_array_equal(first[0], other[0])


def structured(x, n):
    return x * n, (np.array([x, x * x]), n)


@both
def test_tuples(decorate):
    @decorate
    def step(x):
        value, back = zg.pullback(structured, x, 3)
        seed = np.array([1.0, 2.0])
        return value, back((1.0, (seed, None))), back((1.0, None)), back((None, (seed, 4))), back(None)

    value, all_of_it, number, array, nothing = step(2.0)
    assert value[0] == 6.0
    close(all_of_it, 3.0 + 1.0 + 8.0, None)
    close(number, 3.0, None)
    close(array, 9.0, None)
    close(nothing, 0.0, None)


@both
def test_named_tuples_and_dataclasses(decorate):
    def pair(x):
        return Pair(x * x, 2.0 * x)

    def scaled(state):
        return State(state.x * state.rate, state.rate * 2.0)

    @decorate
    def step(x, state, seed):
        value, back = zg.pullback(pair, x)
        moved, back_of_state = zg.pullback(scaled, state)
        return value, back(Pair(1.0, 3.0)), moved, back_of_state(seed), back_of_state(None)

    value, dx, moved, dstate, zero = step(2.0, State(X, 3.0), State(SEED, 1.0))
    assert value == Pair(4.0, 4.0)
    close(dx, 4.0 + 6.0)
    np.testing.assert_allclose(moved.x, 3 * X)
    assert type(dstate[0]) is State
    close((dstate[0].x, dstate[0].rate), 3 * SEED, np.sum(X * SEED) + 2.0)
    close((zero[0].x, zero[0].rate), [0.0, 0.0], 0.0)


@both
def test_results_that_are_written(decorate):
    @decorate
    def step(x, out, seed):
        value, back = zg.pullback(square, x, out)
        left = out.copy()
        x[:] = 0.0
        out[:] = 0.0
        return value, left, back(out=seed), back(out=None)

    value, left, found, zero = step(X.copy(), OUT.copy(), SEED)
    assert value is None
    np.testing.assert_allclose(left, X * X + 2 * OUT)
    close(found, 2 * X * SEED, 2 * SEED)
    close(zero, [0.0, 0.0], [0.0, 0.0])


@both
def test_a_value_and_what_is_written_together(decorate):
    def both_results(seed, kept):  # names that stand in the generated code as well
        kept[:] = kept * seed
        return seed * seed

    @decorate
    def step(x, out, seed):
        value, back = zg.pullback(both_results, x, out)
        return value, back(1.0, kept=seed), back(1.0), back(kept=seed), back()

    value, together, first, second, nothing_given = step(3.0, OUT.copy(), SEED)
    assert value == 9.0
    close(together, 6.0 + np.sum(OUT * SEED), 3 * SEED)
    close(first, 6.0, [0.0, 0.0])
    close(second, np.sum(OUT * SEED), 3 * SEED)
    close(nothing_given, 6.0, [0.0, 0.0])


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (structured, r"no seed for a result of type .*back\(seed\)"),
        (lambda x, n: 1j * x, r"no seed for a result of type complex128.*back\(seed\)"),
        (lambda x, n: n, "no seed for a result of type int64.*return a number"),
    ],
    ids=["tuple", "complex", "int"],
)
@both
def test_a_seed_that_was_forgotten(decorate, of, said):
    @decorate
    def step(x):
        _, back = zg.pullback(of, x, 3)
        return back()

    with pytest.raises((DifferentiationError, TypingError), match=f"(?s){said}"):
        step(2.0)


@both
def test_a_seed_that_was_forgotten_for_what_is_written(decorate):
    @decorate
    def step(x, out):
        _, back = zg.pullback(square, x, out)
        return back()

    with pytest.raises((DifferentiationError, TypingError), match=r"(?s)returns nothing.*back\(out=\.\.\.\)"):
        step(X.copy(), OUT.copy())


@both
def test_back_is_a_value(decorate):
    @decorate
    def call(back, seed):
        return back(seed)

    @decorate
    def made(x, w):
        _, back = zg.pullback(product, x, w)
        return back

    @decorate
    def step(x, w):
        one, other = made(x, w), made(2.0 * x, w)
        backs = (one, other)
        found = [other, one]
        total = 0.0
        for each in backs:
            total += each(1.0)[0]
        return call(one, 1.0), backs[1](1.0), total, call(found[0], 3.0), len(found)

    one, other, total, from_list, count = step(2.0, 3.0)
    close(one, 12.0, 4.0)
    close(other, 24.0, 16.0)
    assert (total, count) == (36.0, 2)
    close(from_list, 72.0, 48.0)


def test_given_to_python_it_is_a_pullback():
    @njit
    def made(x, w, out):
        return zg.pullback(product, x, w), zg.pullback(square, x, out)[1], zg.pullback(structured, w, 3)[1]

    (value, back), of_square, of_structure = made(X.copy(), 2.0, OUT.copy())
    assert all(isinstance(each, Pullback) for each in (back, of_square, of_structure))
    np.testing.assert_allclose(value, 2 * X * X)
    for each in (back, pickle.loads(pickle.dumps(back))):
        for _ in range(2):
            close(each(SEED), 4 * X * SEED, np.sum(X * X * SEED))
    close(of_square(out=SEED), 2 * X * SEED, 2 * SEED)
    close(of_structure((1.0, None)), 3.0, None)
    with pytest.raises(DifferentiationError, match=r"array of shape \(3,\).*needs an array of shape \(2,\)"):
        back(np.ones(3))


# Which function


@both
def test_functions_that_are_passed(decorate):
    def apply(f, x):
        return f(x) * 2.0

    def cube(x):
        return x * x * x

    @decorate
    def slope(f, x):
        value, back = zg.pullback(f, x, 3.0)
        return value, back(1.0)

    @decorate
    def step(x):
        through = zg.pullback(apply, cube, x)[1](1.0)
        inner = zg.pullback(apply, lambda t: t * t, x)[1](1.0)
        return slope(lambda x, w: x * w * w, x), through, inner

    close(slope(compiled_product, 2.0)[1], 12.0, 4.0)
    (value, found), through, inner = step(2.0)
    assert value == 18.0
    close(found, 9.0, 12.0)
    close(through, None, 24.0)
    close(inner, None, 8.0)


@both
def test_inner_functions_that_capture_locals(decorate):
    @decorate
    def step(x, weights, n):
        scale = x * 2.0

        def model(v):
            return np.sum(weights * v) * scale

        def loss(v, m):
            return model(v) ** m

        _, back = zg.pullback(loss, x, n)
        found = back(1.0)
        weights[0] += 1.0
        return found, back(1.0), zg.pullback(loss, x, n)[1](1.0)

    before, kept, after = step(1.5, W.copy(), 2)
    close(before, 2 * (6 * 3.0) ** 2 * 1.5, None)
    close(kept, 2 * (6 * 3.0) ** 2 * 1.5, None)
    close(after, 2 * (7 * 3.0) ** 2 * 1.5, None)


@both
def test_captured_globals_defaults_and_any_number_of_arguments(decorate):
    def weighed(x, n=2):
        return np.sum(W * x) ** n

    def chain(first, *others):
        for other in others:
            first = first * other
        return first

    @decorate
    def step(x):
        default = zg.pullback(weighed, x)[1](1.0)
        named = zg.pullback(weighed, x, n=1)[1](1.0)
        return default, named, zg.pullback(chain, x, 3.0, 4.0)[1](1.0), zg.pullback(chain, x, x)[1](1.0)

    default, named, several, two = step(2.0)
    close(default, 2 * 36.0 * 2.0, None)
    close(named, 6.0, None)
    close(several, 12.0, 8.0, 6.0)
    close(two, 2.0, 2.0)


@both
def test_recursive_functions(decorate):
    @decorate
    def step(x, n):
        _, back = zg.pullback(power, x, n)
        return back(1.0), back(2.0)

    once, twice = step(1.5, 4)
    close(once, 5 * 1.5**4, None)
    close(twice, 10 * 1.5**4, None)


def power(x, n):
    return x if n == 0 else x * power(x, n - 1)


# Bad input


def refused(program: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(DifferentiationError) as caught:
        njit(program)(*args)
    return str(caught.value)


def test_seeds_that_do_not_fit():
    def shape(x):
        return zg.pullback(product, x, 2.0)[1](np.ones(3))

    def dtype(x):
        return zg.pullback(product, x, 2.0)[1](np.ones(2, np.int64))

    def kind(x):
        return zg.pullback(product, x, 2.0)[1]("a")

    def form(x):
        return zg.pullback(structured, x, 2)[1]((1.0, 2.0, 3.0))

    def several(x):
        return zg.pullback(product, x, 2.0)[1](1.0, 2.0)

    def named(x):
        return zg.pullback(square, x, x + 1.0)[1](x=x)

    def none(x):
        return zg.pullback(square, x, x + 1.0)[1](x)

    assert "the seed for the returned value has another shape" in refused(shape, X)
    assert "an array of 1 dimensions and dtype int64; it needs" in refused(dtype, X)
    assert "the seed for the returned value is of type unicode_type" in refused(kind, 2.0)
    assert "is a tuple of 3 items; it needs a tuple of 2 items" in refused(form, 2.0)
    assert "2 seeds for one returned value" in refused(several, 2.0)
    assert "a seed for `x`, which the function does not write to" in refused(named, X)
    assert "name the seed: back(out=...)" in refused(none, X)


def test_functions_that_are_not_differentiated():
    def printed(x):
        return open(x)

    def of_bad(x):
        return zg.pullback(printed, x)[0]

    def chosen(x):
        f = product if x > 1.0 else compiled_product
        return zg.pullback(f, x, x)[0]

    message = refused(of_bad, 2.0)
    assert "`open` is not supported" in message
    assert f"{os.path.basename(__file__)}:{printed.__code__.co_firstlineno + 1}" in message
    assert "is not known while compiling" in refused(chosen, 2.0)


def test_a_good_call_after_a_bad_one():
    @njit
    def step(x, seed):
        return zg.pullback(product, x, 2.0)[1](seed)

    for _ in range(2):
        with pytest.raises(DifferentiationError):
            step(X, np.ones(3))
        with pytest.raises(DifferentiationError):
            step(X, "a")
        close(step(X, SEED), 4 * X * SEED, np.sum(X * X * SEED))


# The other mode, and what it costs


def test_with_the_compiler_disabled():
    program = """
        import zygote_py as zg
        from numba import njit

        def product(x, w):
            return x * x * w

        @njit
        def step(x, w):
            value, back = zg.pullback(product, x, w)
            inner = zg.pullback(lambda y: y * x, w)[1]
            return value, back(1.0), back(2.0), inner(1.0), zg.gradient(lambda y: y * x)(w)

        print(step(3.0, 2.0))
    """
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "(18.0, (12.0, 9.0), (24.0, 18.0), (3.0,), 3.0)\n", done.stderr


def steps(x, n):
    for _ in range(n):
        x = math.sin(x) * x + 0.5
    return x


def test_it_costs_what_a_gradient_costs():
    @njit
    def by_gradient(x, n, count):
        total = 0.0
        for _ in range(count):
            value, found = zg.value_and_gradient(steps, wrt="x", mode="reverse")(x, n)
            total += value + found
        return total

    @njit
    def by_pullback(x, n, count):
        total = 0.0
        for _ in range(count):
            value, back = zg.pullback(steps, x, n)
            total += value + back(1.0)[0]
        return total

    assert by_pullback(0.7, 1000, 50) == pytest.approx(by_gradient(0.7, 1000, 50), rel=1e-12)
    counts = [allocations(lambda: function(0.7, 1000, 50)) for function in (by_pullback, by_gradient)]
    assert 50 <= counts[0] <= counts[1] + 50
