"""Derivatives of routines that several calls share, and second derivatives through their records."""

import numba
import numpy as np
import pytest

from tests.adjoints.routines.test_recursion import BY_ROUTES, normal
from tests.checking.derivatives import check_derivatives
from zygote_py import gradient, hvp, value_and_gradient
from zygote_py.adjoints.routines import shared_cases
from zygote_py.frontend import program


@pytest.fixture
def nothing_is_inlined(monkeypatch):
    """But what is called in one place only."""
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)


@pytest.fixture(autouse=True)
def a_few_operations_are_many(monkeypatch):
    monkeypatch.setattr(shared_cases, "_LARGE", 5)


@numba.njit
def chain(a, b, w):
    r = a * w[0]
    for_both = np.sin(r) * 0.1 + a * b
    for_both = np.sin(for_both) * 0.2 + a * b * r
    return for_both + w[1] * b


def mixed(x, y, w, v):
    r = chain(x, 2.0, w) + chain(3.0, y, w) * chain(x, y, w)
    return r + chain(0.1 * x, 0.4, w) - chain(0.3, 0.2, v)


def mixed_again(x, y, w, v):
    r = 0.0
    for i in range(3):
        r += chain(x, 1.0 * i, w)
    return r + chain(1.0, y, w) + chain(r, y, w) + chain(0.3, 0.2, v)


@numba.njit
def chain_again(a, b, w, n):
    if n == 0:
        return chain(a, 0.2, w)
    if n == 1:
        return chain_again(0.3, b, w, 0) * a
    return chain_again(a, b, w, n - 1) + chain_again(b, 0.1, w, n - 2) * chain(0.1, b, w)


def mixed_recursions(x, y, w, v):
    r = chain_again(x, 0.3, w, 3) + chain_again(0.5, 0.2, v, 2)
    return r * chain_again(0.2, y, w, 2) + chain_again(x, y, w, 1)


@pytest.mark.usefixtures("nothing_is_inlined")
def test_large_functions_that_call_themselves():
    args = 0.7, 0.3, normal(2), normal(2)
    check_derivatives(mixed_recursions, *args, **BY_ROUTES)
    for wrt in (("x", "y"), ("x", "w"), ("y", "v")):
        check_derivatives(mixed_recursions, *args, wrt=wrt, **BY_ROUTES)


@pytest.mark.usefixtures("nothing_is_inlined")
def test_small_functions_have_a_derivative_for_each_kind_of_call(monkeypatch):
    monkeypatch.setattr(shared_cases, "_LARGE", 100)
    source = gradient(mixed, wrt=("x", "y"), mode="reverse").source(0.7, 0.3, normal(2), normal(2))
    assert source.count("def chain_forward") > 1


@pytest.mark.usefixtures("nothing_is_inlined")
@pytest.mark.parametrize("function", [mixed, mixed_again])
def test_calls_of_a_large_function_that_differ_in_numbers_share_a_derivative(function):
    args = 0.7, 0.3, normal(2), normal(2)
    for wrt in (("x", "y"), ("x",), ("x", "y", "w")):
        source = gradient(function, wrt=wrt, mode="reverse").source(*args)
        assert source.count("def chain_forward") == source.count("def chain_reverse") == 1
    assert gradient(function, wrt=("x", "y"), mode="forward").source(*args).count("def chain_pushforward") == 1
    check_derivatives(function, *args, **BY_ROUTES)


@pytest.mark.usefixtures("nothing_is_inlined")
def test_arrays_without_a_derivative_are_not_given_one():
    source = gradient(mixed, wrt=("x", "v"), mode="reverse").source(0.7, 0.3, normal(2), normal(2))
    assert source.count("def chain_forward") == 2  # with an adjoint of the array, and without
    assert source.count("def chain_reverse") == 2


def level(p, k):
    s, t = 0.1, 1.0
    if k > 0.5:
        for i in range(len(p)):
            s += np.sin(p[i] * k) * t + p[i]
            t = np.cos(s) * p[i]
    else:
        for i in range(len(p)):
            s = s * p[i] ** 2 * k + t
            t += np.exp(-s * s) * k
    u = s / (1.0 + t * t)
    v = np.sin(u) * s + np.cos(t) * u
    w = np.exp(-v * v) * t + u * v
    return w * u + s * np.sin(w) + t


def levels(p, k):
    a = level(p, k)
    b = level(p, 0.4 * k + a)
    return a * b + np.sin(a) * k


def smile(p):
    r = 0.0
    for i in range(3):
        r += levels(p, 0.3 * i)
    if r > 0.1:
        r += levels(p, p[0]) * level(p, r)
    return r


@pytest.mark.usefixtures("nothing_is_inlined")
def test_second_derivatives_go_through_routines_with_records_of_arrays():
    p = normal(3)
    check_derivatives(smile, p, **BY_ROUTES)
    source = hvp(smile).source(p, p)
    for name in ("level_forward", "level_reverse", "levels_forward", "levels_reverse"):
        assert f"def {name}_pushforward" in source


def looped(x, y):
    for _ in range(3):
        y = np.sin(y) * x
    return y


def straight(x, y):
    a = np.sin(x) * y + np.cos(y) * x
    return a * np.exp(-a * a) + np.sin(a * x) * y


STRAIGHT = "    r = r + called(x, r + {k}.5)\n"
IN_A_LOOP = "    for i in range(2):\n        r = r + called(x, r + {k}.5) * i\n"


@pytest.mark.parametrize(
    ("called", "places", "line", "is_called"),
    [
        (looped, 7, STRAIGHT, False),
        (looped, 9, STRAIGHT, True),
        (straight, 9, STRAIGHT, False),
        (looped, 9, IN_A_LOOP, False),
    ],
)
def test_functions_with_loops_are_called_if_there_are_many_calls(called, places, line, is_called):
    """In no loop: there a call is slower than a copy."""
    namespace = {"called": numba.njit(called)}
    lines = "".join(line.format(k=k) for k in range(places))
    exec(f"def many(x, r):\n{lines}    return r", namespace)
    source = gradient(namespace["many"], mode="reverse").source(0.3, 0.4)
    assert (f"def {called.__name__}_forward" in source) is is_called


def update(a, b, v, n):
    w = np.sin(b[0]) * v
    lists = ([a], [a.copy()])
    lists[n][0][0] = v * v
    return w + b[0] * b[0] * v


def updated(x, v):
    y = x * 2.0
    return update(y, y, v, 0) + update(y, x * 3.0, v, 0)


@pytest.mark.usefixtures("nothing_is_inlined")
def test_an_array_that_is_written_to_in_one_of_several_lists():
    """It was not seen that the call writes to an array that it gets twice."""
    x, v = np.array([0.3, 0.5, -0.2]), 0.4
    y, b = 2.0 * x, 3.0 * x
    value = np.sin(y[0]) * v + v**4 * v
    value += np.sin(b[0]) * v + b[0] ** 2 * v
    assert value_and_gradient(updated)(x, v)[0] == pytest.approx(value)
    check_derivatives(updated, x, v, **BY_ROUTES)


@numba.njit
def simulated(w, t, n):
    s, z = 0.0, t
    for _ in range(n):
        z = np.sin(z * 1.01) * np.cos(z) + z * np.exp(-z * z)
        s += z
    return chain(s / n, w[0], w)


@numba.njit
def simulated_within(w, t, n):
    return chain(t, simulated(w, t, n), w)


def simulations(w, t):
    r = simulated(w, t, 3)
    for k in range(4):
        r = np.sin(r + simulated(w * r, 0.3 + k, 50))
    return r


def simulations_within(w, t):
    return simulated_within(w, t, 3) + np.sin(simulated_within(w, 0.3, 50)) * simulated(w, 0.2, 7)


@pytest.mark.usefixtures("nothing_is_inlined")
@pytest.mark.parametrize("function", [simulations, simulations_within])
def test_loops_that_matter_to_one_call_only_are_not_recorded_for_others(function):
    w = normal(2)
    check_derivatives(function, w, 0.4, **BY_ROUTES)
    assert gradient(function, wrt=("w", "t"), mode="reverse").source(w, 0.4).count("def simulated_forward") == 2
