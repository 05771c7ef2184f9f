"""Defaults that are arrays, of functions that a differentiated function calls: read at each call, as Python does."""

# ruff: noqa: B008 (arrays as defaults are the subject)

from __future__ import annotations

import os
import subprocess
import sys
from types import FunctionType

import numba
import numpy as np
import pytest

import zygote_py as zg

X = np.array([0.5, 0.75])


def fresh():
    return np.array([1.0, 2.0])


def in_place(x, w=fresh()):
    return np.sum(x * w)


def by_keyword(x, *, w=fresh()):
    return np.sum(x * w)


@numba.njit
def decorated(x, w=fresh()):
    return np.sum(x * w)


def in_a_tuple(x, w=(2.0, fresh())):
    return 0.5 * w[0] * np.sum(x * w[1])


def many(x, w=np.concatenate((fresh(), np.zeros(1000)))):
    return np.sum(x * w[:2])


def after_none(x, given=None, w=fresh()):
    if given is None:
        return np.sum(x * w)
    return np.sum(x * given)


def of_another(x, w=fresh()):
    return in_place(x) + 0.0 * np.sum(w)


def with_a_rule(x, w=fresh()):
    return np.sum(x * w)


@zg.adjoint(with_a_rule)
def _(x, w):
    def back(dy):
        return dy * w, dy * x

    return np.sum(x * w), back


def in_a_gradient(x, w=fresh()):
    return 0.5 * np.sum(x * x * w)


def array_in(function: FunctionType) -> np.ndarray:
    given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    flat = [part for each in given for part in (each if isinstance(each, tuple) else (each,))]
    return next(each for each in flat if isinstance(each, np.ndarray))


@pytest.fixture
def interpreted(monkeypatch):
    """Run emitted functions in the interpreter: there is nothing to compile."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "called", [in_place, by_keyword, decorated, in_a_tuple, many, after_none, with_a_rule], ids=lambda f: f.__name__
)
def test_changed_in_place(called, interpreted):
    def f(x):
        return called(x) * called(x)

    df, dv, product = zg.gradient(f), zg.value_and_gradient(f), zg.hvp(f)
    array = array_in(getattr(called, "py_func", called))
    kept = array.copy()
    try:
        for first in (1.0, 9.0, -3.0):
            array[0] = first
            w = np.array([first, 2.0])
            np.testing.assert_allclose(df(X), 2.0 * (X @ w) * w, rtol=1e-14)
            value, slope = dv(X)
            np.testing.assert_allclose((value, *slope), ((X @ w) ** 2, *(2.0 * (X @ w) * w)), rtol=1e-14)
            np.testing.assert_allclose(product(X, X), 2.0 * w * (w @ X), rtol=1e-14)
            np.testing.assert_allclose(zg.pullback(f, X)[1](1.0)[0], 2.0 * (X @ w) * w, rtol=1e-14)
            np.testing.assert_allclose(zg.jvp(f, (X,), (X,))[1], 2.0 * (X @ w) ** 2, rtol=1e-14)
        assert zg.gradient(f, closure=True)(X)[1] == ()  # defaults do not count as captured variables
    finally:
        array[:] = kept


@pytest.mark.compiled
@pytest.mark.parametrize("called", [in_place, by_keyword], ids=lambda f: f.__name__)
def test_direct_calls(called):
    def f(x):
        return called(x)

    df, array = zg.gradient(f), array_in(called)
    try:
        for first in (1.0, 9.0, -3.0):
            array[0] = first
            for _ in range(4):
                np.testing.assert_array_equal(df(X), [first, 2.0])
    finally:
        array[:] = fresh()


@pytest.mark.interpreted
def test_of_what_a_called_function_calls(interpreted):
    def f(x):
        return of_another(x)

    df = zg.gradient(f)
    np.testing.assert_array_equal(df(X), fresh())
    array_in(in_place)[:] = 5.0
    try:
        np.testing.assert_array_equal(df(X), [5.0, 5.0])
    finally:
        array_in(in_place)[:] = fresh()


@pytest.mark.interpreted
def test_of_a_function_whose_gradient_is_taken_inside(interpreted):
    def f(x):
        return np.sum(zg.gradient(in_a_gradient)(x)[0])  # the sum of x * w

    df = zg.gradient(f)
    np.testing.assert_array_equal(df(X), fresh())
    array_in(in_a_gradient)[1] = 7.0
    try:
        np.testing.assert_array_equal(df(X), [1.0, 7.0])
    finally:
        array_in(in_a_gradient)[:] = fresh()


@pytest.mark.compiled
def test_another_array():
    def called(x, w=fresh()):
        return np.sum(x * w)

    def f(x):
        return called(x)

    df = zg.gradient(f)
    for _ in range(4):
        np.testing.assert_array_equal(df(X), fresh())
    called.__defaults__ = (np.array([3.0, 4.0]),)
    np.testing.assert_array_equal(df(X), [3.0, 4.0])
    called.__defaults__ = (np.array([[3.0, 4.0], [1.0, 1.0]]),)  # of another type
    np.testing.assert_array_equal(df(X), [4.0, 5.0])


@pytest.mark.interpreted
def test_written_to_is_refused(interpreted):
    def called(x, buffer=fresh()):
        buffer[0] += x
        return buffer[0]

    with pytest.raises(zg.DifferentiationError, match="read-only"):
        zg.gradient(lambda x: called(x))(1.0)


_PROGRAM = """
import numpy as np
import zygote_py as zg

def called(x, w=np.array([{first}, 2.0])):
    return np.sum(x * w)

def f(x):
    return called(x)

df = zg.gradient(f)
print(df(np.ones(2)))
called.__defaults__[0][1] = 8.0
print(df(np.ones(2)))
"""


@pytest.mark.compiled
def test_kept_on_disk(tmp_path):
    file, cache = tmp_path / "program.py", tmp_path / "cache"
    environment = {**os.environ, "ZYGOTE_PY_CACHE": "1", "ZYGOTE_PY_CACHE_DIR": str(cache)}
    kept = set()
    for first in (1.0, 1.0, 5.0):
        file.write_text(_PROGRAM.format(first=first))
        done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [f"[{first:.0f}. 2.]", f"[{first:.0f}. 8.]"]
        kept.add(len([each for each in cache.rglob("*") if each.is_file()]))
    assert len(kept) <= 2  # nothing is compiled again for the same program
