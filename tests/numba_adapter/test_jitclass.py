"""Objects of a jitclass that a function makes and uses are differentiated through."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba import float64, int64
from numba.experimental import jitclass

from tests.checking.derivatives import ALL_ROUTES, check_derivatives
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient, pullback

PAIR = numba.types.Tuple((int64, float64))
NUMBERS, PAIRS = numba.types.ListType(float64), numba.types.ListType(PAIR)
BY_NAME = numba.types.DictType(numba.types.unicode_type, float64)


@jitclass([("total", float64), ("count", int64), ("past", float64[:]), ("table", float64[:, ::1])])
class Account:
    def __init__(self, start, size):
        self.total = start
        self.count = 0
        self.past = np.zeros(size)
        self.table = np.ones((size, 2))

    def add(self, v):
        self.past[self.count] = self.total
        self.total += v
        self.count += 1
        return self.total * self.count

    def twice(self, v, factor=2.0):
        return factor * self.add(v) + self.add(v * self.total)

    @property
    def mean(self):
        return self.total / self.count


@jitclass([("value", float64)])
class Cell:
    def __init__(self, value):
        self.value = value


@jitclass([("unset", float64), ("other", float64)])
class Lazy:
    def __init__(self, x):
        self.other = x


def counts(x, n):
    account = Account(x, 2 * n + 1)
    total = 0.0
    for i in range(n):
        total += account.add(x * i)
    account.total = total * x
    return account.total * account.mean + account.past[n - 1]


def methods_call_methods(x, n):
    account = Account(x, 4 * n)
    total = 1.0
    for _ in range(n):
        total *= account.twice(x, 0.5) * 0.1
        account.table[0, 1] *= account.total
    account.past = account.past * x
    return total + account.past[1] * account.table[0, 1]


def two_names(x, n):
    a = Cell(x)
    b = a
    b.value *= x
    c = Cell(a.value * 2.0)
    for i in range(n):
        chosen = a if i % 2 == 0 else c
        chosen.value = chosen.value * x + c.value
    return a.value * b.value + c.value


def in_each_iteration(x, n):
    total = 0.0
    for i in range(n):
        cell = Cell(x * i)
        cell.value *= cell.value + x
        total += cell.value * x
        if cell.value > 10.0:
            break
    return total


def passed_to_a_function(x, n):
    def raised(cell, by):
        cell.value *= by
        return cell

    cell = Cell(x)
    other = raised(cell, x * n)
    return cell.value * other.value


def in_lists_and_tuples(x, n):
    cells = [Cell(x * i) for i in range(n)]
    cells[0].value = x * x
    pair = cells[-1], Cell(x)
    pair[0].value *= 3.0
    total = 0.0
    for cell in cells:
        total += cell.value * pair[1].value
    return total


def never_set(x, n):
    lazy = Lazy(x)
    return (lazy.unset + 1.0) * lazy.other * n


@jitclass([("held", NUMBERS), ("by_name", BY_NAME), ("pairs", PAIRS), ("name", numba.types.unicode_type)])
class Ledger:
    def __init__(self, name):
        self.held = numba.typed.List.empty_list(float64)
        self.by_name = numba.typed.Dict.empty(numba.types.unicode_type, float64)
        self.pairs = numba.typed.List.empty_list(PAIR)
        self.name = name

    def add(self, key, x):
        self.held.append(x * x)
        self.by_name[key] = self.by_name.get(key, 1.0) * x
        self.pairs.append((len(self.held), x))

    def scale(self, place, x):
        self.held[place] *= x

    def total(self):
        total = 0.0
        for number, x in self.pairs:
            total += number * x * self.held[number - 1]
        return total * (self.by_name["a"] if self.name == "first" else 2.0)


@jitclass([("items", NUMBERS), ("scale", float64)])
class Holder:
    def __init__(self, x, scale):
        self.items = numba.typed.List.empty_list(float64)
        self.items.append(x)
        self.items.append(x * x)
        self.scale = scale

    def share(self, other):
        self.items = other.items

    def step(self, other, x):
        self.items[0] *= x
        self.scale += other.items[1]

    def end(self, x):
        self.items.append(self.items.pop() + x)
        return self.items[1] * self.items[0]

    def swap(self, other):
        mine = self.items
        self.items = other.items
        other.items = mine


@jitclass([("inner", Ledger.class_type.instance_type), ("columns", float64[::1, :])])  # type: ignore[attr-defined]
class Owner:
    def __init__(self, x):
        self.inner = Ledger("first")
        self.columns = np.asfortranarray(np.ones((2, 3)) * x)


def lists_dicts_and_strings(x, n):
    ledgers = [Ledger("first"), Ledger("second")]
    for i in range(2 * n):
        ledgers[i % 2].add("ab"[i % 3 // 2], x + i)
    ledgers[0].scale(1, x)
    return ledgers[0].total() * ledgers[1].total() * 1e-6


def a_shared_list(x, n):
    a, b, c = Holder(x, x), Holder(x * 1.5, 2.0), Holder(x, 3.0)
    c.share(a)
    for i in range(n):
        a.swap(b)
        a.step(b, x)
        c.step(a, a.scale)
        if i == 1:
            b.scale *= b.end(x)
    return a.scale * c.end(x) + a.end(x) + b.end(x) * b.scale + c.end(x)


def objects_in_objects(x, n):
    owner = Owner(x)
    ledger = owner.inner
    for i in range(n):
        ledger.add("a", x * i)
        owner.columns[1, i % 3] *= x
    owner.columns = np.asfortranarray(owner.columns * x)
    return owner.inner.total() + owner.columns.sum()


PROGRAMS = [counts, methods_call_methods, two_names, in_each_iteration, passed_to_a_function, never_set]
OF_CONTAINERS = [a_shared_list, lists_dicts_and_strings, objects_in_objects]


@pytest.mark.parametrize(
    "program", one_in(2, [*PROGRAMS, *OF_CONTAINERS, in_lists_and_tuples]), ids=lambda program: program.__name__
)
def test_programs(program):
    check_derivatives(program, 1.25, 3, routes=ALL_ROUTES)


# ------------------------------------------------------------------------------------------------------ refusals


def refused(function: Callable[..., Any], *args: Any, says: str, hint: str) -> None:
    with pytest.raises(DifferentiationError, match=f"(?is){says}") as caught:
        gradient(function)(*args)
    assert re.search(hint, caught.value.hint or "", re.IGNORECASE), caught.value.hint
    assert caught.value.file == __file__


def test_an_object_as_argument():
    found, dx = gradient(lambda cell, x: cell.value * x)(Cell(1.0), 2.0)
    assert (found.value, dx) == (2.0, 1.0)


def test_a_captured_object():
    cell = Cell(2.0)
    refused(lambda x: cell.value * x, 2.0, says="not supported", hint="")


def test_an_object_as_result():
    refused(lambda x: Cell(x), 2.0, says="Cell", hint="")


def test_the_setter_of_a_property():
    @jitclass([("held", float64)])
    class Guarded:
        def __init__(self, x):
            self.held = x

        @property
        def value(self):
            return self.held

        @value.setter
        def value(self, v):
            self.held = 2.0 * v

    def f(x):
        guarded = Guarded(x)
        guarded.value = x * x
        return guarded.value

    refused(f, 2.0, says="setting an attribute", hint="")


@pytest.mark.parametrize("made", [list, numba.typed.List], ids=["reflected", "typed"])
def test_a_list_of_objects_has_no_gradient(made):
    def f(cells, x):
        return cells[0].value * x + cells[1].value ** 2

    cells = made([Cell(2.0), Cell(3.0)])
    assert gradient(f, wrt="x")(cells, 5.0) == 2.0
    message = "the gradient of a list or a dict that holds objects"
    with pytest.raises(DifferentiationError, match=message):
        gradient(f)(cells, 5.0)
    with pytest.raises(DifferentiationError, match=message):
        pullback(f, cells, 5.0)


@jitclass([("values", float64[:])])
class Grid:
    def __init__(self, values):
        self.values = values


@numba.njit(error_model="numpy", fastmath=True)
def ratios(grid):
    total = 0.0
    for i in range(1, len(grid.values)):
        total += grid.values[i - 1] / grid.values[i]
    return total


def test_passed_to_a_function_with_other_options():
    dx = gradient(lambda x: ratios(Grid(x)))(np.array([3.0, 2.0]))
    np.testing.assert_allclose(dx, [0.5, -0.75])


@jitclass([("share", float64)])
class Layer:
    def __init__(self, share):
        if share is None:
            self.share = 2.0
        else:
            self.share = share


def with_an_optional_share(x, given):
    share = None
    if given:
        share = x
    return Layer(share).share * x


@pytest.mark.interpreted
def test_an_object_is_made_of_what_may_be_none():
    assert gradient(with_an_optional_share, wrt="x")(3.0, False) == 2.0
    assert gradient(with_an_optional_share, wrt="x")(3.0, True) == 6.0
