"""Independent loops of functions with `parallel=True`, in threads: against differences, and bit for bit in values.

Most programs run in plain Python, divided into as many chunks as a test says; some are compiled and run in threads.
"""

from __future__ import annotations

import ast
import linecache
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit, prange

import zygote_py as zg
from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.modes import one_in
from tests.plain import plain
from zygote_py.compiler import pipeline
from zygote_py.emit import Emitted
from zygote_py.frontend import program
from zygote_py.numba_adapter.target import in_threads

RNG = np.random.default_rng(3)
X = RNG.normal(size=(11, 4))
W = RNG.normal(size=4)


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[Emitted]:
    """The modules that are emitted."""
    found: list[Emitted] = []
    emit = pipeline.emit_and_widen

    def spy(*args: Any) -> Emitted:
        found.append(emit(*args))
        return found[-1]

    monkeypatch.setattr(pipeline, "emit_and_widen", spy)
    return found


@pytest.fixture
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every loop that can be divided run in threads, whatever that costs."""
    monkeypatch.setattr(in_threads, "_LEAST_WORK", 1)


def chunked(module: Emitted, count: int) -> Callable[..., Any]:
    """The module that Numba gets, in plain Python, divided into at most so many chunks."""
    assert module.compiled is not None
    text = module.compiled.source
    head = re.search(r"def threads_for\((\w+), \w+, \w+\):\n.*?return 1\n", text, re.DOTALL)
    assert head is not None
    run = plain(text.replace(head[0], head[0].replace("return 1", f"return max(1, min({count}, {head[1]}))")))
    run.__globals__["in_threads"] = at_the_same_time
    return run


def at_the_same_time(function: Callable[..., None], count: int, seams: int, *args: Any) -> None:
    """Call chunks as if none saw what another one writes, and check that no two write to the same element."""
    arrays = [each for each in args if isinstance(each, np.ndarray)]
    before = [each.copy() for each in arrays]
    after = [each.copy() for each in arrays]
    written = [np.zeros(each.shape, bool) for each in arrays]
    for number in reversed(range(count)):
        for array, old in zip(arrays, before, strict=True):
            if array.flags.writeable:
                array[...] = old
        function(number, seams, *args)
        for array, old, new, seen in zip(arrays, before, after, written, strict=True):
            changed = ~((array == old) | ((array != array) & (old != old)))
            assert not np.any(changed & seen)
            new[changed] = array[changed]
            seen |= changed
    for array, new in zip(arrays, after, strict=True):
        if array.flags.writeable:
            array[...] = new
    for number in range(count, count + seams):
        function(number, seams, *args)


# Each iteration has elements of its own, or adds to what all of them add to.


def rows(x, w, s):
    """Each has a row of its own, all add to `dw` and `ds`."""
    y = np.empty(x.shape[0])
    for i in prange(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += math.sin(x[i, j] * w[j])
        y[i] = total * s
    return np.sum(y * y)


def reversed_one_by_one(x, w, s):
    """A sum of terms, an array for each iteration and a list of values kept in a loop without a count."""
    total = 0.0
    for i in prange(x.shape[0]):
        y = np.empty(x.shape[1])
        for j in range(x.shape[1]):
            y[j] = x[i, j] * w[j]
        a = 1.0 + s * s
        while a < 3.0:
            a *= 1.0 + 0.3 * np.sum(y * y)
            a += 0.1
        total += a * y[0]
    return total


def neighbours(x, w, s):
    """Neighbours add to the same rows of `dx`."""
    y = np.zeros(x.shape)
    for i in prange(1, x.shape[0] - 2):
        for j in range(x.shape[1]):
            y[i, j] = x[i - 1, j] * x[i + 2, j] + s * x[i, j] ** 2 * w[j]
    return np.sum(np.sin(y))


def skipped(x, w, s):
    """Terms that some iterations leave out, and two of one sum."""
    total = s
    for i in prange(x.shape[0]):
        y = x[i, 0] * w[1]
        if y > 0.0:
            total += y * s
        elif x[i, 1] > 0.0:
            total -= x[i, 1] * w[0]
        total += math.cos(y)
    return total


def places(x, w, s):
    """Sums at places that are computed."""
    total = 0.0
    for i in prange(x.shape[0]):
        total += x[(3 * i) % 7, i % 4] * w[(i * i) % 4] ** 2 * s
    return total


def matrices(x, w, s):
    """Views and products of matrices."""
    total = 0.0
    m = np.outer(w, w)
    for i in prange(x.shape[0]):
        total += np.sum(np.tanh(x[i] @ m + s * w))
    return total


def steps(x, w, s):
    """Loops in a loop that is not independent, with new arrays for each step."""
    u = x * s
    for _ in range(3):
        v = np.zeros_like(u)
        for i in prange(1, u.shape[0] - 1):
            for j in range(u.shape[1]):
                v[i, j] = u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] - 2.0 * u[i, j]) * w[j]
        u = v
    return np.sum(u * u)


def pairs(x, w, s):
    """Sums over pairs, whose loop counts down in reverse."""
    e = np.zeros(x.shape[0])
    for i in prange(x.shape[0]):
        for j in range(x.shape[0]):
            if i != j:
                d = x[i, 0] - x[j, 1]
                e[i] += w[0] / math.sqrt(d * d + s * s)
    return e.sum()


def both_ways(x, w, s):
    """A condition that the body of a loop asks as well."""
    n = x.shape[0]
    a = np.zeros(n)
    for i in prange(n):
        ok = i < n
        a[i] = math.sin(x[i, 0] * w[1]) if ok and s > 0.0 else math.cos(x[i, 1])
    return np.sum(a * a)


PROGRAMS = [both_ways, rows, reversed_one_by_one, neighbours, skipped, places, matrices, steps, pairs]


@pytest.mark.parametrize("f", PROGRAMS)
def test_in_chunks(f, emitted):
    zg.value_and_gradient(njit(parallel=True)(f), mode="reverse").source(X, W, 0.8)
    (module,) = emitted
    in_order = plain(module.source)
    for count in (1, 2, 3, 20):
        run = chunked(module, count)
        for length in (11, 5, 4, 0) if f not in (neighbours, places) else (11, 9):
            args = (X[:length], W, 0.8)
            value, found = run(*args)
            assert value == in_order(*args)[0] == pytest.approx(f(*args), rel=1e-12)
            by_difference = slopes(f, args, (0, 1, 2), np.random.default_rng(1))
            assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("f", one_in(2, [neighbours, reversed_one_by_one, skipped, matrices]))
def test_in_threads(f, emitted):
    gradient, compiled = zg.value_and_gradient(njit(parallel=True)(f), mode="reverse"), njit(f)
    args = (X, W, 0.8)
    value, found = gradient(*args)
    assert "in_threads(" in emitted[0].compiled.source
    assert value == compiled(*args)
    by_difference = slopes(f, args, (0, 1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7
    for _ in range(20):
        again = gradient(*args)
        assert again[0] == value
        for one, other in zip(again[1], found, strict=True):
            np.testing.assert_array_equal(one, other)


# Loops whose iterations depend on each other, or on their order.


def chained(x, w, s):
    y = s
    for i in prange(x.shape[0]):
        y = math.sin(y * w[0]) + x[i, 0]
    return y


def overwritten(x, w, s):
    a = np.zeros(x.shape[0])
    a[0] = s
    for i in prange(1, x.shape[0]):
        a[i] = 0.5 * a[i - 1] + x[i, 0] * w[1]
    return np.sum(a * a)


def read_before(x, w, s):
    """From its neighbour's element, before that changes."""
    a = x[:, 0] * s
    for i in range(x.shape[0] - 1):
        a[i] = a[i + 1] * w[0]
    return np.sum(a * a)


def wrapped(x, w, s):
    """From the end, by a negative index."""
    a = np.zeros(x.shape[0])
    for i in prange(-1, x.shape[0] - 1):
        a[i] = a[i] * s + x[i, 0] * w[0]
    return np.sum(a * a)


def at_computed_places(x, w, s):
    a = np.zeros(3)
    for i in prange(x.shape[0]):
        a[i % 3] = a[(i + 1) % 3] + x[i, 0] * s
    return np.sum(a * w[:3])


def largest(x, w, s):
    found = s
    for i in prange(x.shape[0]):
        found = max(found, x[i, 0] * w[0])
    return found


def product(x, w, s):
    found = s
    for i in prange(x.shape[0]):
        found *= 1.0 + 0.1 * x[i, 0] * w[0]
    return found


def discarded(x, w, s):
    """A sum that is computed in every iteration, and used in some."""
    total = s
    for i in prange(x.shape[0]):
        t = total + math.exp(math.sin(x[i, 0])) * w[0]
        if x[i, 1] > 0.0:
            total = t
    return total


def begun_again(x, w, s):
    total = s
    for i in prange(x.shape[0]):
        before = total
        total = total - math.exp(x[i, 0]) * w[1]
        if x[i, 1] > 0.0:
            total = before + math.sin(x[i, 2])
    return total


def spread(x, w, s):
    """Elements that share memory."""
    total = 0.0
    y = np.broadcast_to(w, (x.shape[0], 4))
    r = np.zeros(x.shape[0])
    for i in prange(x.shape[0]):
        for j in range(4):
            r[i] += math.sin(y[i, j] * x[i, j]) * s
    return total + np.sum(r * r)


def ended(x, w, s):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i, 0] < -2.0:
            break
        total += x[i, 0] * w[0] * s
    return total


def in_a_histogram(x, w, s):
    """Sums of the function itself, which keep their order."""
    a = np.zeros(4)
    for i in range(x.shape[0]):
        a[i % 4] += x[i, 0] * s
    return np.sum(a * a * w)


def swapped(x, w, s):
    a, b = x[:, 0] * s, x[:, 1] * w[0]
    for i in range(4):
        c = a if i % 2 == 0 else b
        for j in prange(x.shape[0]):
            c[j] += a[j] * b[x.shape[0] - 1 - j]
    return np.sum(a * b)


ORDERED = [
    *(chained, overwritten, read_before, wrapped, at_computed_places),
    *(largest, product, ended, in_a_histogram, swapped),
    *(discarded, begun_again, spread),
]


@pytest.mark.parametrize("f", ORDERED)
def test_iterations_that_stay_in_order(f, emitted):
    zg.value_and_gradient(njit(parallel=True)(f), mode="reverse").source(X, W, 0.8)
    (module,) = emitted
    has_threads = module.compiled is not None and "threads_for(" in module.compiled.source
    run = chunked(module, 3) if has_threads else plain(module.source)
    args = (X, W, 0.8)
    value, found = run(*args)
    assert value == plain(module.source)(*args)[0] == pytest.approx(f(*args), rel=1e-12)
    by_difference = slopes(f, args, (0, 1, 2), np.random.default_rng(1))
    assert by_difference.off(np.ones(1), real_parts(found)) < 1e-7


@njit(parallel=True)
def quotients(x, w):
    total = 0.0
    for i in prange(x.shape[0]):
        if w[i] > 100.0:
            raise ValueError("the weight is too large", w[i])
        total += x[i] / w[i]
    return total


@pytest.mark.usefixtures("_always")
def test_the_first_exception_is_raised():
    gradient = zg.gradient(quotients, wrt=(0, 1))
    x, w = np.linspace(1.0, 2.0, 100), np.linspace(1.0, 3.0, 100)
    w[20], w[80] = 0.0, 200.0
    with pytest.raises(ZeroDivisionError):
        gradient(x, w)
    w[20], w[70] = 1.0, 300.0
    for _ in range(5):
        with pytest.raises(ValueError, match="the weight is too large") as caught:
            gradient(x, w)
        assert caught.value.args == ("the weight is too large", 300.0)
    w[70] = w[80] = 2.0
    np.testing.assert_allclose(gradient(x, w)[0], 1.0 / w)


@njit(parallel=True)
def validated(x, w):
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            raise ValueError("negative")
    return np.sum(x * w)


def test_a_loop_that_only_raises():
    gradient = zg.value_and_gradient(validated, wrt=0)
    with pytest.raises(ValueError, match="negative"):
        gradient(np.array([1.0, -1.0, 2.0]), np.ones(3))
    assert gradient(np.array([1.0, 1.0, 2.0]), np.ones(3))[0] == 4.0


@njit(parallel=True)
def beside_seams(x, w):
    total = 0.0
    for i in prange(1, x.shape[0] - 1):
        y = math.sin(x[i - 1] * x[i + 1]) * w[0]
        if x[i] > 50.0:
            raise ValueError("too large", i)
        a = 1.0
        while a < 3.0:
            a *= 1.0 + 0.3 * y * y
            a += 0.1
        total += y * y * a
    return total


@pytest.mark.usefixtures("_always")
def test_the_exception_of_an_iteration_at_a_seam():
    gradient = zg.gradient(beside_seams, wrt=(0, 1))
    for first in range(1, 10):
        x = np.linspace(0.1, 0.9, 11)
        x[first:] = 60.0
        with pytest.raises(ValueError, match="too large") as caught:
            gradient(x, np.ones(1))
        assert caught.value.args[1] == first


@pytest.mark.usefixtures("_always")
def test_several_threads_of_python_at_once():
    gradient = zg.gradient(njit(parallel=True, nogil=True)(rows), wrt=(0, 1))
    expected = gradient(X, W, 0.8)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: gradient(X, W, 0.8), range(40)):
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


@pytest.mark.usefixtures("_always")
def test_a_hessian():
    @njit(parallel=True)
    def f(w):
        total = 0.0
        for i in prange(X.shape[0]):
            y = 0.0
            for j in range(4):
                y += X[i, j] * w[j]
            total += math.exp(0.3 * y)
        return total

    expected = sum(0.09 * np.exp(0.3 * row @ W) * np.outer(row, row) for row in X)
    np.testing.assert_allclose(zg.hessian(f)(W), expected, rtol=1e-12)


@pytest.mark.usefixtures("_always")
def test_a_pullback_and_a_pushforward():
    @njit(parallel=True)
    def f(x, w):
        y = np.empty(x.shape)
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = math.sin(x[i, j] * w[j])
        return y

    y, back = zg.pullback(f, X, W)
    np.testing.assert_array_equal(y, np.sin(X * W))
    dx, dw = back(np.ones_like(y))
    np.testing.assert_allclose(dx, np.cos(X * W) * W, rtol=1e-13)
    np.testing.assert_allclose(dw, np.sum(np.cos(X * W) * X, axis=0), rtol=1e-12)
    _, ty = zg.jvp(f, (X, W), (X, W))
    np.testing.assert_allclose(ty, 2.0 * np.cos(X * W) * X * W, rtol=1e-13)


@pytest.mark.usefixtures("_always")
def test_called_from_another_parallel_loop():
    gradient = zg.gradient(njit(parallel=True)(rows), wrt=1)

    @njit(parallel=True)
    def several(x, w):
        found = np.zeros((3, 4))
        for k in prange(3):
            found[k] = gradient(x, w, 0.5 + k)
        return found

    expected = [gradient(X, W, 0.5 + k) for k in range(3)]
    if numba.threading_layer() != "workqueue":  # which ends the process where loops in threads nest
        np.testing.assert_allclose(several(X, W), expected, rtol=1e-13)


def test_threads_start_none(emitted, monkeypatch):
    """Called functions, of which one calls the other in its loop."""
    monkeypatch.setattr(program, "_MOST_STATEMENTS", -1)
    steps = "\n".join(
        f"        a = math.sin(a + {0.01 * k} * u[(i + {k}) % 11]) + w[{k % 4}] * math.cos(a)" for k in range(4)
    )
    text = f"""
@njit(parallel=True)
def inner(u, w):
    r = np.zeros(11)
    for i in prange(11):
        a = u[i]
{steps}
        r[i] = a
    return r

@njit(parallel=True)
def outer(u, w):
    r = np.zeros(11)
    for i in prange(11):
        q, a = inner(u * i, w), u[i]
{steps}
        r[i] = q[3] + a
    return r

@njit(parallel=True)
def f(x):
    c, d = np.arange(11.0), np.ones(4)
    k = inner(c, d)
    z = outer(c, d) + outer(d.repeat(3), d)[2]
    return np.sum(x * k * z)
"""
    scope = {"np": np, "math": math, "njit": njit, "prange": prange}
    filename = "<functions that call each other>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), scope)
    zg.gradient(scope["f"]).source(X[:, 0])
    assert emitted[0].compiled is not None
    functions = {
        node.name: {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        for node in ast.parse(emitted[0].compiled.source).body
        if isinstance(node, ast.FunctionDef)
    }
    chunks = [name for name in functions if "_chunk_" in name]
    assert chunks
    for chunk in chunks:
        reached, pending = set(), [chunk]
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending += functions[name] & set(functions)
        assert "in_threads" not in reached
