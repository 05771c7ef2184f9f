"""Lists, dicts and objects of a jitclass as arguments: gradients in the form of the argument, in every mode."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import NumbaPendingDeprecationWarning
from numba.experimental import jitclass
from numba.typed import Dict, List

import zygote_py as zg
from tests.modes import compiler, one_in
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{NumbaPendingDeprecationWarning.__module__}.NumbaPendingDeprecationWarning"
)


def typed(*items):
    with compiler():  # else Numba makes a list of Python's
        made = List()
        for item in items:
            made.append(item)
    return made


def typed_dict(items):
    with compiler():
        made = Dict()
        for key, value in items.items():
            made[key] = value
    return made


def plain(value):
    """Return lists, dicts and arrays as Python's own."""
    if isinstance(value, List | list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, Dict):
        return {key: plain(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def weighted(s, x):
    total = len(s) * x
    for i, v in enumerate(s):
        total += (i + 1) * v * v * x
    return total


def of_arrays(s, x):
    total = 0.0
    for a in s:
        total += (a * a).sum() * x
    return total * s[0][0]


def of_edges(s, x):
    total = 0.0
    for i, j, w in s:
        total += (i - j) * w * w * x
    return total


def of_dict(d, x):
    total = d[1] * x
    for k, v in d.items():
        total += k * v * v
    if 7 in d:
        total += d[7] ** 3
    return total + d.get(99, x)


@jitclass([("a", types.float64), ("n", types.int64), ("v", types.float64[:])])
class Spring:
    def __init__(self, a, n, v):
        self.a = a
        self.n = n
        self.v = v

    def energy(self, x):
        return self.a * self.n * x * x

    def move(self, x):
        self.a += x
        return self.a


def of_object(o, x):
    return o.energy(x) + (o.v * o.v).sum() * o.a


# By name: a function, its argument, the gradients by that and by the number 3.0, and a tangent of the argument.
CASES = {
    "list": lambda: (weighted, [1.0, 2.0], [6.0, 24.0], 11.0, [1.0, 0.5]),
    "typed list": lambda: (weighted, typed(1.0, 2.0), [6.0, 24.0], 11.0, typed(1.0, 0.5)),
    "typed list of arrays": lambda: (
        *(of_arrays, typed(np.ones(2), np.arange(3.0)), [[27.0, 6.0], [0.0, 6.0, 12.0]], 7.0),
        typed(np.array([1.0, 0.5]), np.array([3.0, 1.0, 0.0])),
    ),
    "list of arrays": lambda: (
        *(of_arrays, [np.ones(2), np.arange(3.0)], [[27.0, 6.0], [0.0, 6.0, 12.0]], 7.0),
        [np.array([1.0, 0.5]), np.array([3.0, 1.0, 0.0])],
    ),
    "list of tuples": lambda: (
        *(of_edges, [(1, 0, 2.0), (3, 4, 5.0)], [(None, None, 12.0), (None, None, -30.0)], -21.0),
        [(None, None, 1.0), (None, None, 2.0)],
    ),
    "typed list of tuples": lambda: (
        *(of_edges, typed((1, 0, 2.0), (3, 4, 5.0)), [(None, None, 12.0), (None, None, -30.0)], -21.0),
        typed((0, 0, 1.0), (0, 0, 2.0)),
    ),
    "typed dict": lambda: (
        *(of_dict, typed_dict({7: 2.0, 1: 0.5}), {7: 40.0, 1: 4.0}, 1.5),
        typed_dict({1: 1.0, 7: 0.5}),
    ),
    "object": lambda: (
        of_object,
        Spring(2.0, 3, np.array([1.0, 2.0])),
        (32.0, None, [4.0, 8.0]),
        36.0,
        (0.5, None, np.ones(2)),
    ),
}


def dot(gradient, tangent):
    """Return the sum of products of the numbers in two values of one form."""
    if gradient is None:
        return 0.0
    if isinstance(gradient, dict):
        return sum(dot(each, tangent[key]) for key, each in gradient.items())
    if isinstance(gradient, list | tuple):
        return sum(map(dot, gradient, tangent))
    return gradient * tangent


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_gradients_have_the_form_of_the_argument(name):
    function, given, expected, of_x, _ = CASES[name]()
    df = gradient(function)
    found, found_x = df(given, 3.0)
    assert plain(found) == expected
    assert found_x == of_x
    form = {List: List, Dict: Dict, list: list}.get(type(given), tuple)
    assert isinstance(found, form)

    @njit
    def inside(given, x):
        return df(given, x)

    assert plain(inside(given, 3.0)) == (expected, of_x)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", one_in(4, CASES, "compiled"))
def test_other_derivatives_of_containers(name):
    function, given, expected, of_x, tangent = CASES[name]()
    assert plain(pickle.loads(pickle.dumps(gradient(function)))(given, 3.0)) == (expected, of_x)
    assert plain(gradient(function, wrt=0)(given, 3.0)) == expected
    assert gradient(function, wrt=1)(given, 3.0) == of_x
    value, (again, _) = value_and_gradient(function)(given, 3.0)
    assert math.isclose(value, njit(function)(given, 3.0), rel_tol=1e-14)
    assert plain(again) == expected

    def other(s, x):  # the tangents of the function itself stay as they are first made
        return function(s, x)

    value, dy = zg.jvp(other, (given, 3.0), (tangent, 0.25))
    assert math.isclose(dy, dot(expected, plain(tangent)) + 0.25 * of_x, rel_tol=1e-14)
    assert zg.jvp(other, (given, 3.0), (None, 1.0))[1] == of_x


def second(function, given, x, h=1e-4):
    f = njit(function)
    return (f(given, x + h) - 2.0 * f(given, x) + f(given, x - h)) / h**2


@pytest.mark.interpreted
@pytest.mark.parametrize("name", one_in(3, CASES, "compiled"))
def test_second_derivatives_by_the_other_argument(name):
    function, given, *_ = CASES[name]()
    compiled = njit(function)
    found = zg.hessian(lambda s, x: compiled(s, x * x), wrt=1)(given, 1.5)
    assert math.isclose(found, second(lambda s, x: compiled(s, x * x), given, 1.5), rel_tol=1e-5, abs_tol=1e-5)


def test_an_object_gives_a_named_tuple_of_its_class():
    found, _ = gradient(of_object)(Spring(2.0, 3, np.ones(2)), 1.0)
    assert type(found).__name__ == "Spring"
    assert found._fields == ("a", "n", "v")


@jitclass([("s", Spring.class_type.instance_type), ("w", types.float64), ("flag", types.boolean)])
class Chain:
    def __init__(self, s, w, flag):
        self.s = s
        self.w = w
        self.flag = flag


@jitclass([("values", types.ListType(types.float64)), ("w", types.float64)])
class Listed:
    def __init__(self, values, w):
        self.values = values
        self.w = w


def test_objects_in_objects():
    def f(o, x):
        return o.s.energy(x) * o.w * (x if o.flag else 1.0) + o.s.v[1]

    found, dx = gradient(f)(Chain(Spring(2.0, 3, np.array([1.0, 2.0])), 4.0, True), 2.0)
    assert plain(found) == ((96.0, None, [0.0, 1.0]), 48.0, None)
    assert dx == 3 * 2.0 * 3 * 4.0 * 4.0
    assert found.s._fields == ("a", "n", "v")
    listed, _ = gradient(lambda o, x: o.values[1] * o.w * x)(Listed(typed(1.0, 2.0), 3.0), 5.0)
    assert plain(listed) == ([0.0, 15.0], 10.0)
    for given, tangent in [(Chain(Spring(2.0, 3, np.ones(2)), 4.0, True), ((1.0, None, None), 1.0, None))]:
        refused(lambda given=given, tangent=tangent: zg.jvp(f, (given, 2.0), (tangent, 1.0)), "objects or lists in it")
        assert zg.jvp(f, (given, 2.0), (None, 1.0))[1] == 288.0


def test_other_keys_and_lists_of_lists():
    pairs = typed_dict({(0, 1): np.array([1.0, 2.0]), (1, 1): np.array([3.0])})
    found = gradient(lambda d, x: d[0, 1][1] * d[1, 1][0] * x)(pairs, 2.0)
    assert plain(found) == ({(0, 1): [0.0, 6.0], (1, 1): [4.0]}, 6.0)
    assert plain(gradient(lambda s, x: s[0][1] * s[1][0] * x)(typed(typed(1.0, 2.0), typed(3.0)), 2.0)) == (
        [[0.0, 6.0], [4.0]],
        6.0,
    )
    assert plain(gradient(lambda s, x: len(s) * x)(List.empty_list(types.float64), 2.0)) == ([], 0.0)


@pytest.mark.interpreted
def test_other_values_and_texts():
    texts = typed_dict({"b": 2.0, "a": 3.0})
    assert plain(gradient(lambda d, x: d["a"] * d["b"] ** 2 * x)(texts, 2.0)) == ({"b": 24.0, "a": 8.0}, 12.0)
    counts = typed_dict({1: 2, 5: 7})
    assert gradient(lambda d, x: d[5] * x)(counts, 2.0) == (None, 7.0)
    assert gradient(lambda s, x: s[1] * x)([4, 5], 2.0) == (None, 5.0)
    single = gradient(lambda s, x: s[0] * s[1] * x)([np.float32(1.5), np.float32(2.0)], 2.0)
    assert plain(single) == ([4.0, 3.0], 3.0)


class Held(NamedTuple):
    s: object
    w: float


@dataclass(frozen=True)
class Model:
    d: object
    b: float


def test_in_structures():
    held = Held(typed(1.0, 2.0), 3.0)
    assert plain(gradient(lambda t, x: t.s[1] * t.w * x)(held, 2.0)) == (([0.0, 6.0], 4.0), 6.0)
    assert plain(gradient(lambda t, x: t[0][1] * t[1] * x)(([1.0, 2.0], 3.0), 2.0)) == (([0.0, 6.0], 4.0), 6.0)
    found, _ = gradient(lambda m, x: m.d["w"] * x + m.b)(Model(typed_dict({"w": 2.0, "v": 1.0}), 0.5), 3.0)
    assert isinstance(found, Model)
    assert (plain(found.d), found.b) == ({"w": 3.0, "v": 0.0}, 1.0)


def test_with_auxiliary_output():
    found, aux = gradient(lambda s, x: (s[0] * x, s[1] * 2.0), has_aux=True)(typed(1.0, 2.0), 3.0)
    assert (plain(found), aux) == (([3.0, 0.0], 1.0), 4.0)


# ------------------------------------------------------------------------------------------ derivatives inside


def test_gradients_of_lists_are_lists_inside():
    def f(s, x):
        ds, dx = gradient(weighted)(s, x)
        return ds[0] * ds[1] * x + dx

    # ds = (2 s0 x, 4 s1 x), dx = 2 + s0^2 + 2 s1^2
    found = gradient(f)(typed(1.0, 2.0), 3.0)
    assert plain(found) == ([8 * 2 * 27.0 + 2.0, 8 * 27.0 + 8.0], 8 * 2 * 27.0)


def test_gradients_of_dicts_are_dicts_inside():
    def f(d, x):
        dd, dx = gradient(of_dict)(d, x)
        total = dx
        for k, v in dd.items():
            total += k * v * x
        return total

    # dd[1] = 2 v1 + x, dd[7] = 14 v7 + 3 v7^2, dx = v1 + 1
    found = gradient(f)(typed_dict({7: 2.0, 1: 0.5}), 3.0)
    assert plain(found) == ({7: 7.0 * (14.0 + 12.0) * 3.0, 1: 2.0 * 3.0 + 1.0}, (1.0 + 3.0) + 7.0 * 40.0 + 3.0)


def test_gradients_of_objects_are_named_tuples_inside():
    def f(o, x):
        do, dx = gradient(of_object)(o, x)
        return do.a * x + do.v[0] * dx

    # do.a = 3 x^2 + v.v, do.v = 2 v a, dx = 6 a x
    found, dx = gradient(f)(Spring(2.0, 3, np.array([1.0, 2.0])), 1.0)
    a, v = 2.0, 1.0
    assert plain(found) == (2 * v * 6 * a + 2 * v * a * 6, None, [2 * v + 2 * a * 6 * a, 4.0])
    assert dx == 9.0 + 5.0 + 2 * v * a * 6 * a


def test_inner_functions_capture_lists_and_dicts():
    def lists(x):
        s = [x, 2.0 * x]
        return gradient(lambda y: s[0] * y * y + s[1] * y)(x) + zg.derivative(lambda y: s[1] * y**3)(x)

    def dicts(x):
        d = {"a": x, "b": 2.0 * x}
        return gradient(lambda y: d["a"] * y * y + d["b"] * y)(x)

    def argument(s, x):
        return gradient(lambda y: s[0] * y * y)(x)

    assert gradient(lists)(3.0) == 4 * 3.0 + 2.0 + 18 * 9.0  # of 2 x^2 + 2 x + 6 x^3
    assert gradient(dicts)(3.0) == 14.0
    assert plain(gradient(argument)(typed(5.0, 1.0), 3.0)) == ([6.0, 0.0], 10.0)


# ------------------------------------------------------------------------------------------------------ refusals


def refused(call, says):
    with pytest.raises(DifferentiationError, match=f"(?s){says}"):
        call()


def test_writing_to_what_is_given_is_refused():
    def stores(s, x):
        s[0] = x
        return s[0] * s[1]

    def appends(s, x):
        s.append(x)
        return s[-1]

    def into_an_array(s, x):
        for a in s:
            a *= x
        return s[0][0]

    def through_another_list(s, x):
        others = [s[0]]
        for a in others:
            a *= x
        return s[0][0]

    def to_a_dict(d, x):
        d[1] = x
        return d[1]

    def of_an_object(o, x):
        return o.move(x)

    arrays = typed(np.ones(2), np.ones(3))
    for function, given in [
        (stores, typed(1.0, 2.0)),
        (stores, [1.0, 2.0]),
        (appends, typed(1.0)),
        (into_an_array, arrays),
        (through_another_list, arrays),
        (to_a_dict, typed_dict({1: 1.0})),
        (of_an_object, Spring(1.0, 1, np.ones(1))),
    ]:
        refused(lambda function=function, given=given: gradient(function)(given, 3.0), "is written to")
        if function is not of_an_object:  # forward mode writes to copies of arrays and objects
            refused(lambda function=function, given=given: zg.derivative(function, wrt=1)(given, 3.0), "is written to")
    assert plain(arrays) == [[1.0, 1.0], [1.0, 1.0, 1.0]]


def test_a_copy_may_be_written_to():
    def f(s, x):
        t = [v for v in s]  # noqa: C416 (not every list has `copy`)
        t[0] = x
        t.append(t[1] * x)
        return t[0] * t[2]

    assert plain(gradient(f)(typed(1.0, 2.0), 3.0)) == ([0.0, 9.0], 12.0)


def test_an_array_that_is_written_to_and_stands_in_a_list():
    def f(s, out):
        out[0] = 2.0 * s[0][0]
        return out[0] * s[0][0]

    arrays = typed(np.ones(2), np.ones(3))
    assert plain(gradient(f, wrt=0)(arrays, np.ones(2))) == [[4.0, 0.0], [0.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="shares memory with an array in `s`"):
        gradient(f, wrt=0)(arrays, arrays[1])


def test_tangents_of_another_form():
    with pytest.raises(ValueError, match="the tangent of `s` must have the length of `s`"):
        zg.jvp(weighted, ([1.0, 2.0], 3.0), ([1.0], 1.0))
    with pytest.raises(ValueError, match="the tangent of `d` must have the keys of `d`"):
        zg.jvp(of_dict, (typed_dict({1: 1.0, 7: 1.0}), 3.0), (typed_dict({1: 1.0, 8: 1.0}), 1.0))
    with pytest.raises(ValueError, match="shape"):
        zg.jvp(of_arrays, (typed(np.ones(2)), 3.0), (typed(np.ones(3)), 1.0))
    refused(lambda: zg.jvp(weighted, ([1.0], 3.0), (1.0, 1.0)), "the tangent of `s`")


def test_other_kinds_of_derivatives():
    s = typed(1.0, 2.0)
    for call in (
        lambda: zg.hessian(weighted, wrt=0)(s, 3.0),
        lambda: zg.jacobian(weighted, wrt=0)(s, 3.0),
        lambda: zg.check_gradient(weighted, s, 3.0),
        lambda: zg.check_gradient(of_object, Spring(2.0, 3, np.ones(2)), 3.0),
    ):
        refused(call, "not supported|does not take")


def test_lists_that_numba_does_not_take():
    refused(lambda: gradient(of_arrays)([[1.0, 2.0]], 3.0), "a list of lists")
    refused(lambda: gradient(weighted)([1.0, 2], 3.0), "a list of `float` and `int`")
    refused(lambda: gradient(weighted)([], 3.0), "a list")
    df = gradient(lambda x, y: np.sum(x * y))
    refused(lambda: df(np.ones(2), [1.0, 2.0]), "the argument `y` is a list")
    assert plain(df(np.ones(2), np.ones(2))) == ([1.0, 1.0], [1.0, 1.0])


def in_turn(functions, q):
    for function in functions:
        q = function(q)
    return q


def chosen_arrays(s, a, b):
    def first(q):
        return a[0] * q

    def second(q):
        return b[1] * q * q

    return in_turn((first, second, first), s[0])


def test_adjoints_of_arrays_that_a_tuple_holds_beside_a_list():
    """Numba drops writes to such arrays in a function with a comprehension."""
    a, b = np.array([3.0, 1.0]), np.array([2.0, 0.5])
    found = gradient(chosen_arrays)(typed(2.0), a, b)  # a**3 * b * s**2
    assert list(found[0]) == [54.0]
    assert found[1].tolist() == [54.0, 0.0]
    assert found[2].tolist() == [0.0, 108.0]
    keyed = gradient(lambda s, a, b: chosen_arrays([s["x"]], a, b))(typed_dict({"x": 2.0}), a, b)
    assert keyed[1].tolist() == [54.0, 0.0]
    assert keyed[2].tolist() == [0.0, 108.0]
