"""Lists, dicts, objects and structured arrays: products with Hessians, derivatives of gradients, pullbacks, results.

The references are differences of the functions themselves, as Numba compiles them or in plain Python.
"""

from __future__ import annotations

import functools
import math
import pickle
from contextlib import nullcontext

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaPendingDeprecationWarning
from numba.typed import Dict, List

import zygote_py as zg
from tests.api.test_containers import (
    Spring,
    of_arrays,
    of_dict,
    of_edges,
    of_object,
    plain,
    typed,
    typed_dict,
    weighted,
)
from tests.api.test_structured_arrays import bodies, cells
from tests.modes import compiler, interpreter, one_in
from zygote_py import DifferentiationError, derivative, gradient, hvp, jvp, pullback

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{NumbaPendingDeprecationWarning.__module__}.NumbaPendingDeprecationWarning"
)


def of_cells(a, x):  # a product, so that its derivatives are functions of all fields
    total = 0.0
    for r in a:
        total += (r["p"] * r["p"]).sum() * r["m"] * x
    return total * a[0]["p"][1]


def of_bodies(a, x):
    total = 0.0
    for i in range(len(a)):
        total += a[i]["x"] * a["y"][i] * a["n"][i] * x * x + a[0]["x"] ** 2 * x
    return total


def of_record(r, x):
    return r["x"] * r["x"] * r["n"] * x + r["y"] * r["y"] * r["x"]


def of_lists(s, x):
    total = 0.0
    for row in s:
        for n, v in row:
            total += n * v * v * x
    return total * s[0][0][1]


def of_keys(d, x):
    total = 0.0
    for (a, n), v in d.items():
        total += a * n * v**3 * x
    return total


def of_lists_in_a_dict(d, x):
    total = 0.0
    for v in d.values():
        for u in v:
            total += u**3 * x
    return total


def of_lists_in_tuples(s, x):
    total = 0.0
    for numbers, v in s:
        total += len(numbers) * v**3 * x
    return total


def in_a_branch(d, x):
    v = 0.0
    if x > 0.0:
        v = d["a"][1] ** 3
    return v * x


def cubed(v, x):
    return (v**3).sum() * x


def chosen(d, x):
    total = 0.0
    for i in range(2):
        if x > 0.0:
            v = d["a"] if i == 0 else d["b"]
            total += zg.checkpoint(cubed)(v, x)
    return total


def of_pairs(d, x):
    total = 0.0
    for key, (n, v) in d.items():
        total += key * n * v * v * x
    return total


def of_mixed(t, x):
    return t[0] * t[1][0] * t[1][0] * x + t[2][1] ** 3 * t[1][1]


def like(value, random):
    """Return a random value of the form of a gradient."""
    if isinstance(value, List):
        made = [like(each, random) for each in value]
        return None if any(each is None for each in made) else typed(*made)
    if isinstance(value, list | tuple):
        return type(value)(like(each, random) for each in value)
    if isinstance(value, Dict):
        return typed_dict({key: like(each, random) for key, each in value.items()})
    if isinstance(value, Spring):
        return (random.normal(), None, random.normal(size=value.v.shape))
    if isinstance(value, np.ndarray | np.void) and value.dtype.names:
        made = np.zeros(value.shape, value.dtype)
        for name in value.dtype.names:
            if value.dtype[name].base.kind == "f":
                made[name] = random.normal(size=made[name].shape)
        return made if isinstance(value, np.ndarray) else made[()]
    if isinstance(value, np.ndarray):
        return random.normal(size=value.shape)
    return random.normal() if isinstance(value, float) else None


def moved(value, *steps):
    """Return a value plus multiples of tangents: `steps` are pairs of a factor and a tangent."""
    if isinstance(value, List):
        if any(t is None for _, t in steps):
            return value
        return typed(*(moved(each, *((h, t[i]) for h, t in steps)) for i, each in enumerate(value)))
    if isinstance(value, list | tuple):
        return type(value)(moved(each, *((h, t[i]) for h, t in steps)) for i, each in enumerate(value))
    if isinstance(value, Dict):
        return typed_dict({key: moved(each, *((h, t[key]) for h, t in steps)) for key, each in value.items()})
    if isinstance(value, Spring):
        a, v = value.a, value.v.copy()
        for h, (of_a, _, of_v) in steps:
            a, v = a + h * of_a, v + h * of_v
        return Spring(a, value.n, v)
    if isinstance(value, np.ndarray | np.void) and value.dtype.names:
        made = np.zeros(value.shape, value.dtype)
        made[...] = value
        for name in value.dtype.names:
            for h, tangent in steps:
                if value.dtype[name].base.kind == "f":
                    made[name] += h * tangent[name]
        return made if isinstance(value, np.ndarray) else made.reshape(1)[0]
    return value if isinstance(value, int | np.integer) else value + sum(h * t for h, t in steps)


def inner(a, b):
    """Return the inner product of two values of the form of a gradient."""
    if a is None or b is None:
        return 0.0
    if isinstance(a, Dict | dict):
        return sum(inner(a[key], b[key]) for key in a)
    if isinstance(a, List | list | tuple):
        return sum(map(inner, a, b))
    if isinstance(a, np.ndarray | np.void) and a.dtype.names:
        return sum(np.sum(a[name] * b[name]) for name in a.dtype.names if a.dtype[name].base.kind == "f")
    return float(np.sum(a * b))


CASES = {
    "list": (weighted, lambda: [1.0, 2.0]),
    "typed list": (weighted, lambda: typed(1.0, 2.0, 0.5)),
    "typed list of arrays": (of_arrays, lambda: typed(np.ones(2), np.arange(3.0))),
    "list of arrays": (of_arrays, lambda: [np.ones(2), np.arange(3.0)]),
    "list of tuples": (of_edges, lambda: [(1, 0, 2.0), (3, 4, 5.0)]),
    "typed list of tuples": (of_edges, lambda: typed((1, 0, 2.0), (3, 4, 5.0))),
    "typed list of lists": (of_lists, lambda: typed(typed((1, 2.0)), typed((2, 3.0), (3, 1.0)))),
    "typed dict": (of_dict, lambda: typed_dict({7: 2.0, 1: 0.5})),
    "typed dict of arrays, in a branch": (in_a_branch, lambda: typed_dict({"a": np.arange(3.0), "b": np.ones(2)})),
    "typed dict of arrays, chosen": (chosen, lambda: typed_dict({"a": np.arange(3.0), "b": np.ones(2)})),
    "floats in keys": (of_keys, lambda: typed_dict({(1.5, 1): 2.0, (2.5, 3): 3.0})),
    "typed dict of lists": (of_lists_in_a_dict, lambda: typed_dict({"a": typed(1.0, 2.0), "b": typed(3.0)})),
    "lists of integers": (of_lists_in_tuples, lambda: typed((typed(1, 2), 3.0), (typed(3), 2.0))),
    "typed dict of tuples": (of_pairs, lambda: typed_dict({7: (1, 2.0), 1: (3, 0.5)})),
    "object": (of_object, lambda: Spring(2.0, 3, np.array([1.0, 2.0]))),
    "structured array": (of_bodies, bodies),
    "fields that are arrays": (of_cells, cells),
    "record": (of_record, lambda: bodies()[1]),
    "tuple": (of_mixed, lambda: (2.0, [1.0, 3.0], np.array([1.0, 2.0]))),
}
# Where nothing is compiled, typed lists in typed lists and dicts are empty: a fault of Numba.
INTERPRETED = [name for name in CASES if "lists" not in name]
COMPILED = [name for name in CASES if "lists" in name] + ["typed list of tuples", "typed dict", "record"]


@functools.cache
def case(name):
    """Return the function, its argument, and two tangents of this."""
    function, made = CASES[name]
    random = np.random.default_rng(4 + [*CASES].index(name))
    with compiler():  # typed lists of the interpreter are others
        given = made()
        return function, given, like(given, random), like(given, random)


def form(value):
    return type(value)._fields if hasattr(value, "_fields") else {np.void: np.void}.get(type(value), type(value))


def second(function, given, v, w, h=2e-4):
    """Return the second derivative in two directions."""

    def at(i, j):
        return function(moved(given, (i * h, v), (j * h, w)), 1.5)

    return (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h * h)


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", one_in(3, INTERPRETED))
def test_products_with_the_hessian(name):
    function, given, v, w = case(name)
    expected = second(function, given, v, w)
    found = hvp(function)(given, 1.5, v)
    assert form(found) == form(gradient(function, wrt=0)(given, 1.5))
    assert close(inner(found, w), expected)
    slopes, of_x = hvp(function, wrt=None)(given, 1.5, (v, 0.25))
    assert close(inner(slopes, w), expected + 0.25 * mixed(function, given, w))
    of_of_x = (function(given, 1.5 + 1e-4) - 2 * function(given, 1.5) + function(given, 1.5 - 1e-4)) / 1e-8
    assert close(of_x, mixed(function, given, v) + 0.25 * of_of_x)
    value, tangent = jvp(gradient(function, wrt=0), (given, 1.5), (v, None))
    assert close(inner(value, w), (slope_in(function, given, w)))
    assert close(inner(tangent, w), expected)
    assert form(value) == form(tangent) == form(found)


def slope_in(function, given, w, x=1.5, h=1e-5):
    """Return the first derivative in a direction."""
    return (function(moved(given, (h, w)), x) - function(moved(given, (-h, w)), x)) / (2 * h)


def mixed(function, given, w, h=2e-4):
    """Return the second derivative in a direction and by the other argument."""
    return (slope_in(function, given, w, 1.5 + h, h) - slope_in(function, given, w, 1.5 - h, h)) / (2 * h)


def slope_by_x(function, given, h=1e-5):
    return (function(given, 1.5 + h) - function(given, 1.5 - h)) / (2 * h)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", one_in(2, INTERPRETED))
def test_derivatives_of_gradients_by_the_other_argument(name):
    function, given, _, w = case(name)
    found = derivative(gradient(function, wrt=0), wrt=1)(given, 1.5)
    assert form(found) == form(gradient(function, wrt=0)(given, 1.5))

    assert close(inner(found, w), mixed(function, given, w))
    by_way_of_x = gradient(lambda s, x: gradient(function, wrt=1)(s, x), wrt=0)(given, 1.5)
    assert close(inner(by_way_of_x, w), inner(found, w))


@pytest.mark.parametrize("name", one_in(6, COMPILED))
def test_in_compiled_code(name):
    function, given, v, w = case(name)
    compiled = njit(function)
    expected = second(compiled, given, v, w)
    product = hvp(function)
    assert close(inner(product(given, 1.5, v), w), expected)
    if name == "typed list of tuples":
        assert close(inner(pickle.loads(pickle.dumps(product))(given, 1.5, v), w), expected)

    @njit
    def inside(s, x, v):
        _, back = pullback(function, s, x)
        return product(s, x, v), back()

    found, (of_s, of_x) = inside(given, 1.5, v)
    if isinstance(given, np.void):  # an array of one record
        found, of_s = found[0], of_s[0]
    assert close(inner(found, w), expected)
    assert close(inner(of_s, w), slope_in(compiled, given, w))
    assert close(of_x, slope_by_x(compiled, given))


# ------------------------------------------------------------------------------------------------------ pullbacks


@pytest.mark.interpreted
@pytest.mark.parametrize("name", one_in(2, INTERPRETED[::-1]))
def test_pullbacks(name):
    function, given, _, w = case(name)

    def both(s, x):
        return np.array([function(s, x), x * x])

    value, back = pullback(both, given, 1.5)
    assert value.tolist() == [function(given, 1.5), 1.5 * 1.5]
    for _ in range(2):
        found, of_x = back(np.array([2.0, 1.0]))
        assert form(found) == form(gradient(function, wrt=0)(given, 1.5))
        assert close(inner(found, w), 2.0 * slope_in(function, given, w))
        assert close(of_x, 2.0 * slope_by_x(function, given) + 2.0 * 1.5)
    again, _ = pickle.loads(pickle.dumps(pullback(function, given, 1.5)[1]))()
    assert close(inner(again, w), slope_in(function, given, w))


def changed_since(given, function, change):
    back = pullback(lambda s, x: function(s, x), given, 1.5)[1]  # not one that was interpreted
    change(given)
    return plain(back()[0])


def test_pullbacks_do_not_see_what_happens_later():
    arrays = typed(np.ones(2), np.arange(3.0))
    assert changed_since(arrays, of_arrays, lambda s: s[1].fill(7.0)) == [[13.5, 3.0], [0.0, 3.0, 6.0]]

    def replace(d):
        d[7] = 5.0
        del d[1]

    found = changed_since(typed_dict({7: 2.0, 1: 0.5}), of_dict, replace)
    assert found == {7: 40.0, 1: 2.5}
    assert changed_since([1.0, 2.0], weighted, lambda s: s.__setitem__(0, 9.0)) == [3.0, 12.0]
    mixed = (2.0, [1.0, 3.0], np.array([1.0, 2.0]))

    def in_tuple(t):
        t[1].pop()
        t[2][1] = 0.0

    assert changed_since(mixed, of_mixed, in_tuple) == (1.5, [6.0, 8.0], [0.0, 36.0])
    array = bodies()
    x, y, n = (array[name].copy() for name in ("x", "y", "n"))
    back = pullback(lambda a, x: of_bodies(a, x), array, 1.5)[1]
    array["x"], array["n"] = 0.0, 1
    found = back()[0]
    assert np.allclose(found["x"], y * n * 1.5**2 + np.array([len(x) * 3.0 * x[0], *[0.0] * (len(x) - 1)]), rtol=1e-13)
    assert np.allclose(found["y"], x * n * 1.5**2, rtol=1e-13)


def test_pullbacks_that_are_refused():
    def writes(a, x):
        a["x"][0] = x
        return a["x"].sum()

    with pytest.raises(DifferentiationError, match="writes to a structured array"):
        pullback(writes, bodies(), 1.5)
    for function in (lambda s, x: [s[0] * x], lambda s, x: {1: s[0] * x}):
        with pytest.raises(DifferentiationError, match="as the result of a pullback's function"):
            pullback(function, [1.0, 2.0], 1.5)


# -------------------------------------------------------------------------------------------------------- results


def of_powers(x):
    d = {}
    for i in range(5):
        d[i] = x**i
    del d[2]
    d[7] = d.pop(3) * x
    return d


def of_several(x):
    made = []
    for i in range(3):
        d = {}
        for j in range(i + 2):
            d[j] = (i, x ** (j + i))
        if i > 0:
            d.pop(0)
        made.append(d)
    return made


def of_float_keys(x):
    d = {1.5: x, 2.5: x * x}
    del d[1.5]
    d[1.5] = 5.0 * x
    return d


@pytest.mark.parametrize("native", [False, True])
def test_dicts_from_which_entries_were_removed(native):
    with nullcontext() if native else interpreter():
        functions = [of_powers, of_several, of_float_keys]
        powers, several, keyed = (derivative(function) for function in functions)
        found = powers(2.0)
        assert list(found.items()) == [(0, 0.0), (1, 1.0), (4, 32.0), (7, 32.0)]
        assert plain(jvp(lambda x: of_powers(x), (2.0,), (1.0,))[0]) == of_powers(2.0)
        assert plain(several(2.0)) == [
            {0: (None, 0.0), 1: (None, 1.0)},
            {1: (None, 4.0), 2: (None, 12.0)},
            {1: (None, 12.0), 2: (None, 32.0), 3: (None, 80.0)},
        ]
        assert list(keyed(2.0).items()) == [(2.5, 4.0), (1.5, 5.0)]


@pytest.mark.interpreted
def test_lists_and_dicts_as_results_of_tangents():
    assert jvp(lambda x: [x * x, x], (3.0,), (1.0,)) == ([9.0, 3.0], [6.0, 1.0])
    assert jvp(lambda x: [(1, x * x), (2, x)], (3.0,), (2.0,)) == ([(1, 9.0), (2, 3.0)], [(None, 12.0), (None, 2.0)])
    assert jvp(lambda x: [1, 2], (3.0,), (1.0,)) == ([1, 2], None)
    assert plain(derivative(lambda x: {1: x * x, 4: x})(3.0)) == {1: 6.0, 4: 1.0}
    assert plain(derivative(lambda x: (x, [x * np.ones(2)], "a"))(3.0)) == (1.0, [[1.0, 1.0]], None)
    assert plain(derivative(derivative(lambda x: [x**3, 1.0]))(2.0)) == [12.0, 0.0]
    assert plain(jvp(lambda s, x: s, ([1.0, 2.0], 3.0), ([0.5, 0.25], 1.0))) == ([1.0, 2.0], [0.5, 0.25])

    def collatz(x, n):
        s = [x]
        while n > 1:
            n = 3 * n + 1 if n % 2 else n // 2
            s.append(s[-1] * x + n)
        return s

    found = derivative(collatz)(1.5, 3)

    def alone(x):
        return collatz(x, 3)

    for slope, up, down in zip(found, alone(1.5 + 1e-6), alone(1.5 - 1e-6), strict=True):
        assert math.isclose(slope, (up - down) / 2e-6, rel_tol=1e-6)


def test_a_structured_array_as_the_result_of_a_tangent():
    def f(a, x):
        made = np.zeros(2, cells_dtype)
        made[0]["p"][1] = a[0]["p"][2] * x
        made[1]["m"] = 3.0 * x
        return made

    def same(a, x):
        return a

    cells_dtype = cells().dtype
    a = cells()
    value, tangent = jvp(f, (a, 1.5), (None, 1.0))
    assert value.dtype == tangent.dtype == a.dtype
    assert value["p"].tolist() == [[0.0, a["p"][0, 2] * 1.5, 0.0], [0.0] * 3]
    assert (tangent["p"][0, 1], tangent["m"][1]) == (a["p"][0, 2], 3.0)
    value, tangent = jvp(same, (bodies(), 1.5), (bodies(), 1.0))
    assert value.tolist() == bodies().tolist()  # with its integers
    assert tangent["x"].tolist() == bodies()["x"].tolist()
    assert not tangent["n"].any()
    with pytest.raises(DifferentiationError, match="a record as the result"):
        jvp(lambda a, x: a[0], (bodies(), 1.5), (None, 1.0))
    with pytest.raises(DifferentiationError, match="an object as the result"):
        jvp(lambda o, x: o, (Spring(1.0, 1, np.ones(1)), 1.5), (None, 1.0))
    for function, args in [
        (lambda a, x: [a], (bodies(), 1.5)),
        (lambda a, x: {1: (x, a)}, (bodies(), 1.5)),
        (lambda o, x: (x, [o]), (Spring(1.0, 1, np.ones(1)), 1.5)),
        (lambda o, x: {0: o}, (Spring(1.0, 1, np.ones(1)), 1.5)),
    ]:
        with pytest.raises(DifferentiationError, match="in a list or a dict as the result is not supported"):
            jvp(function, args, (None, 1.0))
    with pytest.raises(DifferentiationError, match="derivatives of this kind"):
        zg.jacobian(lambda x: [x[0], x[1]])(np.ones(2))


# ------------------------------------------------------------- what is changed after a derivative in a function


def of_the_dict(d, x):
    total = 0.0
    for key, value in d.items():
        total += key * value**2 * x
    return total


def summed(d):
    total = 0.0
    for value in d.values():
        total += value
    return total


def adds_to_the_argument(x):
    d = {1: x, 2: 2.0 * x}
    g, _ = gradient(of_the_dict)(d, x)
    d[3] = x
    return summed(g) + len(g) * x


def removes_from_the_argument(x):
    d = {1: x, 2: 2.0 * x}
    g, _ = gradient(of_the_dict)(d, x)
    del d[1]
    return summed(g)


def changes_the_gradient(x):
    d = {1: x, 2: 2.0 * x}
    g, _ = gradient(of_the_dict)(d, x)
    del g[1]
    g[7] = x
    return summed(d) + len(d) * x


def overwrites_both(x):
    d = {1: x, 2: 2.0 * x}
    g, _ = gradient(of_the_dict)(d, x)
    d[1] = 5.0
    g[2] = 0.0
    return d[1] + d[2] + g[1] * x + g[2]


def made_dict(x):
    return {1: x, 2: x * x}


def changes_the_value(x):
    value, tangent = jvp(made_dict, (x,), (1.0,))
    del value[1]
    value[5] = x
    return summed(tangent) + len(tangent) * x


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (adds_to_the_argument, 20 * 1.5 + 2.0),
        (removes_from_the_argument, 20 * 1.5),
        (changes_the_gradient, 5.0),
        (overwrites_both, 2.0 + 6.0 * 1.5**2),
        (changes_the_value, 4.0),
    ],
)
def test_dicts_of_derivatives_have_keys_of_their_own(function, expected):
    assert math.isclose(gradient(function)(1.5), expected, rel_tol=1e-13)
    assert math.isclose(derivative(function)(1.5), expected, rel_tol=1e-13)
