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
from zygote_py import DifferentiationError, gradient, pullback


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


PROGRAMS = [counts, methods_call_methods, two_names, in_each_iteration, passed_to_a_function, never_set]


@pytest.mark.parametrize("program", [*PROGRAMS, in_lists_and_tuples], ids=lambda program: program.__name__)
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


def test_a_field_that_is_a_typed_dict():
    kind = numba.types.DictType(int64, float64)

    @jitclass([("held", kind)])
    class Table:
        def __init__(self, x):
            self.held = numba.typed.Dict.empty(int64, float64)
            self.held[1] = x

    refused(lambda x: Table(x).held[1], 2.0, says="field of type|not supported|dict", hint="")


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
