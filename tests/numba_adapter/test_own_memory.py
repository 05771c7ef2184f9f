"""Which memory the arrays of a function may be in; what is computed with this known is what Python computes."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest

from zygote_py.numba_adapter.base import own_memory
from zygote_py.numba_adapter.emitted.lowering import lower
from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline

pytestmark = pytest.mark.compiled


@pytest.fixture
def memory(monkeypatch):
    """Compile a function for arguments and call it; the bits of the memory of each variable of its text."""

    def found(function, *args):
        seen: dict[str, set[int]] = {}

        def analysed(blocks, typeof):
            made = own_memory.memory_of_arrays(blocks, typeof)
            names = {each.target.name for block in blocks.values() for each in block.find_insts(numba.core.ir.Assign)}
            for name in names:
                seen.setdefault(name.split(".")[0], set()).add(made.get(name, own_memory.UNKNOWN))
            return made

        monkeypatch.setattr(lower, "memory_of_arrays", analysed)
        emitted(function)(*args)
        return seen

    return found


def emitted(function):
    return numba.njit(function, pipeline_class=EmittedPipeline)


@numba.njit
def same(x):
    return x


def of_all_kinds(x, n):
    a = np.zeros(n)
    b = a[1:]
    c = x.reshape(2, 2)
    d = c.T
    e = x
    if n > 3:
        e = a
        a[2] += 1.0
    f = same(a)
    g = a + x
    h = np.empty_like(c)
    h[0] = 1.0
    k = h[1]
    i = x[x > 1.0]
    b[0] = d[1, 0] + e[1] + f[2] + k.sum() + i[0]
    return a.sum() + g.sum()


def test_where_arrays_are(memory):
    found = memory(of_all_kinds, np.arange(4.0), 4)
    (a,), (h,), e = found["a"], found["h"], max(found["e"])
    assert found["x"] == found["c"] == found["d"] == {own_memory.GIVEN}
    assert found["b"] == {a}
    assert e == a | own_memory.GIVEN
    assert found["f"] == found["i"] == {own_memory.UNKNOWN}
    assert found["k"] == {h}
    (g,) = found["g"]
    assert a.bit_count() == h.bit_count() == g.bit_count() == 1
    assert len({a, h, g, own_memory.GIVEN}) == 4


def exchanged(x):
    a, b = x.copy(), np.zeros_like(x)
    for k in range(5):
        for i in range(len(a)):
            b[i] = 0.5 * a[i] + a[i - 1] + k
            a[i] += b[i]
        a, b = b, a
    return a - b


def made_in_each_round(x):
    before = x.copy()
    for k in range(4):
        now = np.zeros_like(x)
        for i in range(len(x)):
            now[i] = before[i] * 2.0 + before[i - k]
            before[i] = now[i - 1]
        if k != 2:
            before = now
    return before


def shifted_along(x):
    a = x.copy()
    b = a[1:]
    for i in range(len(b)):
        b[i] += a[i]  # each depends on the one before
        a[i] *= 0.5
    return a


def through_a_call(x):
    a = x.copy()
    b = same(a)
    for i in range(1, len(a)):
        a[i] += b[i - 1]
    return a


def through_a_list(x):
    a, made = x.copy(), [x.copy()]
    made.append(a)
    b = made[1]
    for i in range(1, len(a)):
        a[i] = 2.0 * b[i - 1] - a[i]
    return a


def one_or_the_other(x):
    a, b = x.copy(), np.zeros_like(x)
    c = a if x[0] > 0.0 else b
    for i in range(1, len(a)):
        c[i] = a[i - 1] + b[i - 1] + 1.0
        b[i] += 0.25 * c[i - 1]
    return a + b + c


def given_twice(x, y):
    for i in range(1, len(x)):
        x[i] += 0.5 * y[i - 1]
    return y


def product_into(x):
    a, b = np.zeros_like(x), np.eye(len(x))
    c = np.dot(b, x, out=a)
    for i in range(1, len(a)):
        c[i] = a[i - 1] * 1.5
    return a


def views_of_all_kinds(x):
    a = np.zeros((2, len(x)))
    flat, turned, b = a.ravel(), a.transpose(), a.reshape(len(x), 2)
    for i in range(len(x)):
        flat[i] = x[i]
        turned[i, 1] = flat[i - 1] + a[0, i]
        b[i, 0] += turned[len(x) - 1 - i, 0]
    return flat + b.ravel()


def rows(x):
    m = np.zeros((4, len(x)))
    m[0] = x
    for k in range(1, 4):
        above, here = m[k - 1], m[k]
        for i in range(1, len(x)):
            here[i] = above[i] + 0.5 * here[i - 1]
            above[i - 1] = here[i]
    return m.ravel()


ONE = [
    exchanged,
    made_in_each_round,
    shifted_along,
    through_a_call,
    through_a_list,
    one_or_the_other,
    product_into,
    rows,
]


@pytest.mark.optimised
@pytest.mark.parametrize("function", ONE)
def test_values(function):
    compiled, by_numba = emitted(function), numba.njit(function)
    for length, sign in itertools.product((4, 7, 64), (1.0, -1.0)):
        x = sign * np.linspace(0.5, 2.0, length)
        np.testing.assert_array_equal(compiled(x.copy()), by_numba(x.copy()))
        np.testing.assert_allclose(compiled(x.copy()), function(x.copy()), rtol=1e-13)


@emitted
def smoothed(a, n):
    if n == 0:
        return a.sum()
    b = np.empty_like(a)
    b[0] = a[0]
    for i in range(1, len(a)):
        b[i] = 0.5 * a[i] + 0.25 * b[i - 1]
        a[i - 1] = b[i]
    return smoothed(b, n - 1)


def smoothed_in_a_loop(a, n):
    for _ in range(n):
        b = np.empty_like(a)
        b[0] = a[0]
        for i in range(1, len(a)):
            b[i] = 0.5 * a[i] + 0.25 * b[i - 1]
            a[i - 1] = b[i]
        a = b
    return a.sum()


@pytest.mark.optimised
@pytest.mark.parametrize("length", [4, 64])
def test_an_array_that_is_handed_on(length):
    x = np.linspace(0.5, 2.0, length)
    assert smoothed(x.copy(), 5) == pytest.approx(smoothed_in_a_loop(x.copy(), 5), rel=1e-13)


@pytest.mark.optimised
def test_arguments_that_are_one_array():
    x, y = np.linspace(0.5, 2.0, 70), np.linspace(0.5, 2.0, 70)
    emitted(given_twice)(x, x)
    given_twice(y, y)
    np.testing.assert_array_equal(x, y)


def test_it_can_be_left_out(monkeypatch):
    x = np.arange(4.0)

    def scopes():
        compiled = emitted(exchanged)
        compiled(x)
        return compiled.inspect_llvm(compiled.signatures[0]).count("!alias.scope")

    found = scopes()
    monkeypatch.setenv("ZYGOTE_PY_WITHOUT", "memory-apart")
    assert scopes() < found  # some are LLVM's own, of what it has inlined


def through_a_tuple(x):
    a = x.copy()
    kept = (a, 1.0)
    b = kept[0]
    for i in range(1, len(a)):
        a[i] += b[i - 1]
    return b


def made_contiguous(x):
    """An array that is contiguous is returned itself."""
    a = x.copy()
    b = np.ascontiguousarray(a)
    for i in range(1, len(a)):
        a[i] += b[i - 1]
    return b


def of_real_parts(x):
    a = x.copy()
    b = a.real
    for i in range(1, len(a)):
        a[i] += b[i - 1]
    return b


@pytest.mark.parametrize("function", [views_of_all_kinds, through_a_tuple, made_contiguous, of_real_parts])
def test_arrays_that_are_not_told_apart(function, memory):
    x = np.linspace(0.5, 2.0, 7)
    found = memory(function, x)
    assert any(a & b for a in found["a"] for b in found["b"])
    np.testing.assert_allclose(emitted(function)(x), function(x), rtol=1e-14)
