"""Dicts built and read inside of a function: displays, `{}` and `numba.typed.Dict`; values of every kind."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba import njit, types
from numba.typed import Dict, List

from tests.checking.derivatives import ALL_ROUTES, check_derivatives
from tests.modes import one_in, unless_native
from zygote_py import DifferentiationError, gradient

pytestmark = pytest.mark.interpreted


def display(x, n):
    d = {"a": x * x, "b": 2.0 * x, "c": 3}
    return d["a"] * d["b"] + d["c"] * n


def of_several_types(x, n):
    d = {"a": x, "b": np.full(2, x * x), "n": n, "t": (x, 2.0 * x)}
    return d["a"] * d["b"].sum() * d["n"] + len(d) * d["t"][1] + ("a" in d)


def overwritten(x, n):
    d = {1: x, 2: x * x}
    for i in range(n):
        d[1] += d[2] * x
        d[2] = d[1] + i
        if i > 1:
            d[1] = 0.5
    return d[1] * d[2]


def deleted(x, n):
    d = {}
    for i in range(n + 3):
        d[i] = x**i
    del d[1]
    d[0] = d.pop(2) * x
    d[1] = 3.0 * x
    total = 0.0
    for k, v in d.items():
        total = total * x + k * v
    return total + len(d)


def computed_keys(x, n):
    d = Dict.empty(types.int64, types.float64)
    for i in range(3 * n):
        key = int(x * i * 1.37) % 4
        d[key] = d.get(key, 0.5) * x + i
    total = 1.0
    for key in d:
        total *= d[key] + key
    return total


def read_in_other_ways(x, n):
    d = {1: x, 2: x * x}
    total = d.get(1, 7.0) * d.get(5, x) + d.setdefault(2, 9.0) * d.setdefault(3, x**3) + d.pop(9, x)
    found = d.get(2)
    if found is not None:
        total += found * x
    missing = d.get(17)
    if missing is not None:
        total += 1e6
    if 3 in d and 4 not in d:
        total += d[3]
    return total * n + len(d) + bool(d)


def loops(x, n):
    d = {3: x, 1: x * x, 2: 3.0 * x}
    total = 0.0
    for k, v in d.items():
        total = total * x + k * v
    for i, k in enumerate(d):
        total = total * x + i * k
    for i, (k, v) in enumerate(d.items()):
        total += i * k * v * x
    for v in list(d.values()):
        total *= v
    keys = sorted(list(d.keys()))  # noqa: C414 (Numba sorts lists)
    return total + keys[0] * x + len(d.values()) * n


def other_methods(x, n):
    d = {1: x, 2: 2.0 * x}
    d.update({3: x * x, 1: x**3})
    e = d.copy()
    d[1] = x
    d.clear()
    last, value = e.popitem()
    d[n] = value
    same = e == {1: x**3, 2: 2.0 * x}
    return len(e) * d[n] + last * value * e[1] + same * x + (e != d) * x * x


def stored_while_it_is_read(x, n):
    d = {1: x, 2: x, 3: x * x}
    total = 0.0
    for v in d.values():
        d[2] = 3.0 * x
        d[1] = v * x
        total = total * x + v
    for i, (k, v) in enumerate(d.items()):
        d[3] = d[k] + i * n
        total += k * v
    return total + d[1]


def never_stored(x, n):
    d = Dict.empty(types.int64, types.float64)
    e = Dict.empty(types.unicode_type, types.float64)
    total = x
    for k, v in d.items():
        total += k * v
    for name in e:
        total += len(name) * x
    return d[4] * x if 4 in d else total * n


def comprehension(x, n):
    d = {k: x * k for k in range(n + 1)}
    total = 1.0
    for v in d.values():
        total += total * v
    return total


def keys_of_tuples(x, n):
    d = {(0, 1): x, (1, 0): x * x}
    for i in range(n):
        for j in range(i):
            d[i, j] = d.get((j, i), x) * x
    total = 0.0
    for (i, j), v in d.items():
        total += (i + 2 * j) * v
    return total


def keys_of_strings(x, n):
    d = Dict.empty(types.unicode_type, types.float64)
    for name in ("alpha", "beta", "alpha", "gamma"):
        d[name] = d.get(name, x) * x + n
    total = 0.0
    for name, v in d.items():
        total += len(name) * v
    return total + ("beta" in d) * x


def keys_that_are_floats(x, n):
    d = {x: 1.0, 2.0 * x: x * n}
    d[x] = x
    total = 0.0
    for k, v in d.items():
        total += k * v
    return total * d[x]


def of_arrays(x, n):
    d = {1: np.full(3, x)}
    for i in range(n):
        d[i + 1][0] += x * i
        d[i + 2] = d[i + 1] * x
    d[1] *= 2.0
    same = d[1]
    same[1] = x * x
    total = 0.0
    for v in d.values():
        total += v.sum() * v[0]
    return total


def of_tuples(x, n):
    d = {0: (x, 1)}
    for i in range(n):
        v, k = d[i]
        d[i + 1] = (v * x, k + i)
    v, k = d[n]
    return v * k


def of_lists(x, n):
    s = List()
    s.append(x)
    d = {0: s}
    for i in range(n):
        d[0].append(d[0][i] * x)
    t = List()
    t.append(x * x)
    d[1] = t
    total = 0.0
    for v in d.values():
        total += v[-1] * v[0]
    return total


def one_of_two(x, n):
    d = {1: x}
    e = {1: 2.0 * x, 2: x}
    f = d if n > 2 else e
    f[3] = x * x
    total = 0.0
    for v in f.values():
        total += v * v
    return total + e.get(3, x) * d.get(3, 0.0)


def passed_to_functions(x, n):
    def put(d, key, value):
        d[key] = value
        if key > 4:
            return
        d[key + 1] = value * value

    def product(d):
        p = 1.0
        for v in d.values():
            p *= v
        return p

    d = {0: x}
    for i in range(n):
        put(d, 2 * i, d[0] * x)
    return product(d) + d[0]


@njit
def _most(d):
    best, most = -1, 0.0
    for k, v in d.items():
        if v > most:
            best, most = k, v
    return best


def made_in_each_iteration(x, n):
    total = x
    for i in range(n):
        d = {}
        d[i] = total * x
        if i % 2 == 0:
            d[i] = d[i] + total
        total = d[i]
    return total


def left_by_break(x, n):
    d = {0: x}
    for i in range(n):
        d[i + 1] = d[i] * x
        if d[i + 1] > 2.0:
            d[0] = d[i + 1] * x
            break
    return d[0] * len(d)


def assigned_in_a_branch(x, n):
    total = x
    for i in range(n):
        if i == 0:
            d = {(1, 2.0): x}
        else:
            d[i, 1.0] = total * x
            total += d[1, 2.0] if (1, 2.0) in d else d[i, 1.0]
    return total


def missing_keys_are_caught(x, n):
    d = {1: x, 2: x * x}
    total = 0.0
    for i in range(n + 2):
        try:
            total += d[i] * x
            d[i + 10] = total
            total += d[i - 1]
        except Exception:
            total += i * x
    try:
        d.pop(11)
        del d[11]
        total *= 100.0
    except Exception:
        total *= x
    return total * len(d)


PROGRAMS = [
    *(display, of_several_types, deleted, overwritten, computed_keys, read_in_other_ways, loops, other_methods),
    *(stored_while_it_is_read, never_stored),
    *(comprehension, keys_of_tuples, keys_of_strings, keys_that_are_floats, of_arrays, of_tuples),
    *(
        missing_keys_are_caught,
        of_lists,
        assigned_in_a_branch,
        one_of_two,
        passed_to_functions,
        made_in_each_iteration,
        left_by_break,
    ),
]


@pytest.mark.parametrize("program", one_in(2, PROGRAMS), ids=lambda program: program.__name__)
@pytest.mark.parametrize("n", one_in(2, [4, 1]))
def test_programs(program, n):
    check_derivatives(program, 1.25, n, routes=ALL_ROUTES)


def test_in_a_compiled_function():
    def f(x, n):
        d = {k: x * (k % 3) for k in range(n)}
        d[7] = 0.5 * x
        return d[_most(d)] * x

    with unless_native():
        assert gradient(f)(1.25, 4)[0] == 5.0  # of x * (2 x)


def test_of_equal_keys_the_first_one_stays():
    def f(x, y):
        d = {x: 1.0}
        d[y] = 5.0
        total = 0.0
        for k, v in d.items():
            total += k * v
        return total

    assert gradient(f)(2.0, 2.0) == (5.0, 0.0)
    assert gradient(f)(2.0, 3.0) == (1.0, 5.0)


def test_the_order_of_keys_is_that_of_python():
    def f(x):
        d = {1: x, 2: x, 3: x}
        del d[2]
        d[1] = x
        d[2] = x
        order = 0
        for k in d:
            order = 10 * order + k
        return x * order

    assert gradient(f)(1.0) == 132.0


def test_loops_that_change_nothing_check_nothing():
    def reads(x):
        d = {1: x, 2: x * x}
        total = 0.0
        for v in d.values():
            total += v
        return total

    assert "check_same_size" not in gradient(reads).source(1.0)


def test_errors_of_dicts():
    def missing(x, key):
        d = {1: x}
        return d[key] * x

    def missing_to_delete(x, key):
        d = {1: x}
        del d[key]
        return x

    def popped(x, key):
        d = {1: x}
        return d.pop(key) * x

    def grows(x, n):
        d = {1: x, 2: x}
        for k in d:
            d[k + n] = x
        return d[1]

    for function in (missing, missing_to_delete, popped):
        df = gradient(function)
        with pytest.raises(KeyError):
            df(1.5, 2)
        assert df(1.5, 1)[0] == {missing: 3.0, missing_to_delete: 1.0, popped: 3.0}[function]
    with pytest.raises(RuntimeError, match="changed size"):
        gradient(grows)(1.0, 2)
    assert gradient(grows)(1.0, 0)[0] == 1.0


# ------------------------------------------------------------------------------------------------------ refusals


def refused(function, *args, says, hint):
    with pytest.raises(DifferentiationError, match=f"(?is){says}") as caught:
        gradient(function)(*args)
    assert re.search(hint, caught.value.hint or "", re.IGNORECASE), caught.value.hint
    assert caught.value.file == __file__


def test_a_dict_as_result():
    refused(lambda x: {1: x}, 2.0, says="the result is of type DictType", hint="`jvp` and `derivative`")


def test_mixed_types():
    def keys(x):
        d = {1: x}
        d["b"] = x
        return d[1]

    def values(x):
        d = {1: x, 2: "b"}
        return d[1]

    def pairs(x):
        d = {1: x, 2: (x, x)}
        return d[1]

    def a_number_after_a_pair(x):
        d = {1: (x, 1.0), 2: x}
        return d[1][0]

    def a_number_after_an_array(x):
        d = {1: np.ones(2) * x, 2: x}
        return d[1][0]

    refused(keys, 2.0, says="Numba", hint="")
    for function in (values, pairs, a_number_after_a_pair):
        refused(function, 2.0, says="mixed types", hint="NamedTuple")
    refused(a_number_after_an_array, 2.0, says="cannot be stored among those of type", hint="convert it")


@pytest.mark.parametrize("other", [np.ones(3, np.float32), np.ones((3, 2))], ids=["float32", "matrix"])
def test_arrays_of_another_type(other):
    def in_a_dict(x):
        d = Dict.empty(types.int64, types.float64[:])
        d[1] = x
        return np.sum(d[1])

    def in_a_list(x):
        s = List.empty_list(types.float64[:])
        s.append(x)
        return np.sum(s[0])

    def in_the_place_of_another(x):
        s = List.empty_list(types.float64[:])
        s.append(np.zeros(2))
        s[0] = x
        return np.sum(s[0])

    for function in (in_a_dict, in_a_list, in_the_place_of_another):
        np.testing.assert_array_equal(gradient(function)(np.ones(3)), np.ones(3))
        refused(function, other, says="cannot be stored among those of type", hint="convert it")
