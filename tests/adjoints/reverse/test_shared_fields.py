"""Values of which a run computes one share a field of a routine's record: which phis become one, and gradients."""

from __future__ import annotations

import math
import re

import numba
import pytest
from numba import types

from tests.checking.derivatives import check_derivatives
from tests.checking.left_out import check_not_made
from tests.modes import one_in
from zygote_py import gradient, value_and_gradient
from zygote_py.adjoints.reverse.stored.shared_fields import share_fields
from zygote_py.frontend import program
from zygote_py.ir import Block, Const, Instr, Param, Phi, Undef

NUMBER = types.float64
X = (0.7, 1.3)
STEP = 1e-5

# ------------------------------------------------------------------------------------------------------- phis


class Merge:
    """A block with two predecessors, and values that one of them computes."""

    def __init__(self):
        self.then, self.orelse, self.block = Block(), Block(), Block()
        self.x = Param(NUMBER, "x")

    def value(self, op=math.sin, kind=NUMBER):
        return Instr(op, (self.x,), kind)

    def phi(self, first, second, kind=NUMBER):
        made = Phi(kind, "t", None, {self.then: first or Undef(kind), self.orelse: second or Undef(kind)})
        self.block.phis.append(made)
        return made

    def shared(self, *values):
        found = share_fields(values, [self.then, self.orelse, self.block])
        return [found[value] for value in values]


def test_values_of_the_two_ways_become_one():
    m = Merge()
    s, c = m.value(), m.value(math.cos)
    first, second = m.shared(m.phi(s, None), m.phi(None, c))
    assert first is second
    assert first.incoming == {m.then: s, m.orelse: c}
    assert first in m.block.phis


def test_one_that_has_both_stands_for_the_other():
    m = Merge()
    s = m.value()
    both = m.phi(s, Const(0.0, NUMBER))
    assert m.shared(both, m.phi(s, None)) == [both, both]
    assert len(m.block.phis) == 2


def test_values_that_a_run_computes_both_stay_two():
    m = Merge()
    values = [m.phi(m.value(), m.value()), m.phi(m.value(), None), m.phi(m.value(), None), m.value()]
    assert m.shared(*values) == values
    assert len(m.block.phis) == 3


def test_three_of_which_two_fit():
    m = Merge()
    values = [m.phi(m.value(), None), m.phi(m.value(), None), m.phi(None, m.value()), m.phi(None, m.value())]
    first, second, third, fourth = m.shared(*values)
    assert first is not second
    assert {third, fourth} == {first, second}


def test_types_and_blocks_are_the_same():
    m = Merge()
    single = m.phi(None, m.value(kind=types.float32), types.float32)
    array = types.Array(NUMBER, 1, "C")
    arrays = [m.phi(m.value(kind=array), None, array), m.phi(None, m.value(kind=array), array)]
    values = [m.phi(m.value(), None), single, *arrays]
    assert m.shared(*values) == values
    other = Block()
    elsewhere = Phi(NUMBER, "t", None, {m.then: Undef(NUMBER), m.orelse: m.value()})
    other.phis.append(elsewhere)
    values = [values[0], elsewhere]
    assert [*share_fields(values, [m.block, other]).values()] == values


def test_phis_of_phis():
    m = Merge()
    inner = Merge()
    first, second = inner.phi(s := m.value(), None), inner.phi(None, c := m.value())
    outer = Block()
    phis = [
        Phi(NUMBER, "t", None, {inner.block: first, m.then: Undef(NUMBER)}),
        Phi(NUMBER, "t", None, {inner.block: second, m.then: Undef(NUMBER)}),
        Phi(NUMBER, "t", None, {inner.block: Undef(NUMBER), m.then: m.x}),
    ]
    outer.phis += phis
    (one,) = set(share_fields(phis, [inner.block, outer]).values())
    assert one.incoming[m.then] is m.x
    assert one.incoming[inner.block].incoming == {inner.then: s, inner.orelse: c}
    assert one.incoming[inner.block] in inner.block.phis


def test_phis_of_a_loop():
    start, loop = Block(), Block()
    first, second = Phi(NUMBER), Phi(NUMBER)
    x = Param(NUMBER, "x")
    first.incoming = {start: x, loop: second}
    second.incoming = {start: Undef(NUMBER), loop: first}
    loop.phis += [first, second]
    assert [*share_fields([first, second], [start, loop]).values()] == [first, second]


# -------------------------------------------------------------------------------------------------- gradients


def of_steps(*steps, count=20):
    """Return a function whose ways, chosen by n, have these steps, often enough for its calls to stay calls."""
    lines = ["def g(x, n):", "    y = x"]
    for number, step in enumerate(steps):
        lines.append(f"    {'if' if number == 0 else 'elif'} n == {number}:")
        lines += [f"        y = {step}", "        y = 0.3 * y + 0.2 * math.sin(x * y)"] * count
    lines.append("    return y * y")
    scope = {"math": math}
    exec("\n".join(lines), scope)
    return scope["g"]


def loops(x, n):
    y = x
    if n == 0:
        for i in range(3 * n + 4):
            y = math.sin(y * i) + x
    elif n == 1:
        for i in range(n + 5):
            y = math.cos(y + i) * x
    return y


def called_often(f):
    g = numba.njit(f)

    def h(x, y, n):
        return g(x, n) * g(y, n) * g(x + y, n) + g(x * y, 1) * g(x - y, 0)

    return h


FUNCTIONS = {
    "two": of_steps("math.cos(y) * x", "math.exp(-y * y)"),
    "three": of_steps("math.sqrt(y * y + 1.0)", "math.atan(y) + x", "y / (1.0 + y * y)"),
    "loops": loops,
}


@pytest.mark.parametrize("name", one_in(2, sorted(FUNCTIONS)))
def test_gradients(name):
    h = called_often(FUNCTIONS[name])
    for n in range(4):
        check_derivatives(h, *X, n, routes=("source",))


@pytest.mark.compiled
def test_gradients_compiled(monkeypatch):
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)
    h = called_often(of_steps("math.cos(y) * x", "math.exp(-y * y)", count=4))
    df, compiled = value_and_gradient(h, wrt=("x", "y")), numba.njit(h)
    for n in range(3):
        value, (dx, _) = df(*X, n)
        assert value == compiled(*X, n)
        assert dx == pytest.approx((h(X[0] + STEP, X[1], n) - h(X[0] - STEP, X[1], n)) / (2 * STEP), rel=1e-6)


@pytest.mark.interpreted
def test_second_derivatives():
    h = called_often(of_steps("math.cos(y) * x", "math.exp(-y * y)", count=8))
    df = gradient(h, wrt=("x", "y"))
    ddf = gradient(lambda x, y, n: df(x, y, n)[0], wrt=("x", "y"))
    assert ddf.source(*X, 0).count("def g_reverse_reverse(") == 1  # its calls have stayed calls
    for n in range(3):
        up, down = df(X[0] + STEP, X[1], n), df(X[0] - STEP, X[1], n)
        expected = [(a - b) / (2 * STEP) for a, b in zip(up, down, strict=True)]
        assert ddf(*X, n) == pytest.approx(expected, rel=1e-6)


def test_how_many_values_are_kept():
    def kept(f):
        text = gradient(called_often(f), mode="reverse").source(*X, 2)
        (reverse,) = (part for part in text.split("@njit") if "def g_reverse(records, " in part)
        return len(re.findall(r"^    \w+ = \w+\[\d+\]$", reverse, re.MULTILINE))

    one, two = of_steps("math.cos(y) * x"), of_steps("math.cos(y) * x", "math.sin(y) * x")
    assert 60 < kept(one) <= kept(two) <= kept(one) + 3


# ------------------------------------------------------------------------------------- fields of their own


def of_one_way(x, y):
    s = x
    if x < 0.8:
        s = math.sin(x)
        s = s * math.cos(s * y)
    return s * s


def of_each_run(x, y):
    s, t = math.sin(x), math.exp(y)
    return s * t * t if x < 0.8 else t * s * s


def of_two_branches(x, y):
    """A run may go through both."""
    s, t = x, y
    if x < 0.8:
        s = math.sin(x)
        s = s * s
    if y < 0.95:
        t = math.exp(y)
        t = t * t
    return s * t


def of_two_types(x, y):
    """A number, and an integer that multiplies."""
    if x < 0.8:
        s = math.sin(x)
        return s * s * y
    k = int(7.0 * y + 0.4)
    return k * x * k * y


def one_after_the_other(x, y):
    s = x
    if x < 0.8:
        s = math.sin(x)
        s = s * s
    t = math.cos(s)
    return t * t * s


def of_rounds(x, y):
    """A record of its own holds what the rounds compute, in either way."""
    s = y
    for _ in range(3):
        s = math.sin(x * s) if s < 0.8 else math.exp(-s * x)
    return s


def until(x, y):
    s = x
    while s < 2.0:
        s = s * s + 1.0 + math.sin(y)
    return s * s


OF_THEIR_OWN = [of_one_way, of_each_run, of_two_branches, of_two_types, one_after_the_other]
OF_THEIR_OWN += [of_rounds, until]


@pytest.mark.interpreted
@pytest.mark.parametrize("g", one_in(3, OF_THEIR_OWN), ids=lambda g: g.__name__)
def test_fields_that_are_not_shared(g, monkeypatch):
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)

    def f(x, y):
        return 1.5 * g(x, y) + g(y, x) * g(x + y, y)

    check_not_made("shared-fields", f, 0.7, 0.9)
