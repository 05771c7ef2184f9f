"""Captured variables: read at each call from Python, constants in compiled code."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba import njit

from tests.api import captured_modules
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

SCALE = 2.5
WEIGHTS = np.array([1.0, 2.0, 3.0])
POWER = 2


def weighed(x):
    return SCALE * x * x + WEIGHTS[1] * x


def powered(x):
    return x**POWER


def test_globals_are_read_at_each_call(monkeypatch):
    df = gradient(weighed)
    assert df(2.0) == 12.0
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    assert df(2.0) == 42.0
    monkeypatch.setitem(globals(), "WEIGHTS", np.zeros(5))
    assert df(2.0) == 40.0
    monkeypatch.setitem(globals(), "SCALE", 3)  # another type
    assert df(2.0) == 12.0
    monkeypatch.setitem(globals(), "WEIGHTS", np.full(3, 0.5, np.float32))
    assert df(2.0) == 12.5


def test_an_array_is_seen_as_it_is_now():
    weights = np.ones(3)
    df = value_and_gradient(lambda x: x * weights[0])
    assert df(2.0) == (2.0, 1.0)
    weights[0] = 5.0
    assert df(2.0) == (10.0, 5.0)


def test_an_integer_that_changes_is_compiled_anew(monkeypatch):
    df = gradient(powered)
    assert df(2.0) == 4.0
    monkeypatch.setitem(globals(), "POWER", 3)
    assert df(2.0) == 12.0
    assert df(x=1.0) == 3.0


@pytest.mark.compiled
def test_in_compiled_code_they_are_constants(monkeypatch):
    df = gradient(weighed)

    @njit
    def twice(x):
        return 2.0 * df(x)

    assert twice(2.0) == 24.0
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    assert twice(2.0) == 24.0
    assert df(2.0) == 42.0
    assert df(2) == 42.0  # an integer, another signature


@pytest.mark.compiled
def test_the_native_code_of_a_function_with_captured_values_can_be_read():
    text = gradient(weighed).inspect_llvm(2.0)
    assert text.startswith("define")


SETTINGS = captured_modules.module("settings", 2.0)
THE_SAME = SETTINGS


def through_a_name(x):
    module = SETTINGS
    return x * module.bias


def through_a_choice(x, n):
    module = SETTINGS if n > 0 else THE_SAME
    return x * module.bias


def test_modules_by_another_name(monkeypatch):
    df = gradient(through_a_name)
    assert df(1.0) == 2.0
    monkeypatch.setattr(SETTINGS, "bias", 7.0)
    assert df(1.0) == 7.0
    with pytest.raises(DifferentiationError, match=r"`bias` of the module `settings` is read through"):
        gradient(through_a_choice)(1.0, 1)  # Numba has frozen it, and zygote-py does not detect that


def test_stages_run_once_for_a_function_that_captures(monkeypatch):
    from zygote_py.compiler import pipeline as compile

    joined = []
    stages = compile.join

    def counted(*args, **how):
        joined.append(args)
        return stages(*args, **how)

    monkeypatch.setattr(compile, "join", counted)
    factor, shift = 2.0, np.array([1.0, 2.0])

    def f(x):
        return factor * x * shift[0] + shift[1]

    df = gradient(f)
    assert df(3.0) == 2.0
    assert len(joined) == 1
    factor = 5.0
    assert df(3.0) == 5.0
    assert len(joined) == 1
    assert df(np.float32(3.0)) == 5.0
    assert len(joined) == 2


SETTING = None


def with_a_setting(x):
    if SETTING is not None:
        return SETTING * x
    return x


def of_names_of_pythons_own(x):
    return abs(x) * max(x, 1.0)


def twice(x):
    return 2.0 * x


def is_set(x):
    return x if SETTING is None else 2.0 * x


@pytest.mark.parametrize(
    ("f", "later", "expected"),
    [
        *((with_a_setting, 4.0, 4.0), (with_a_setting, 3, 3.0), (with_a_setting, np.array(3.0), 3.0)),
        *((is_set, True, 2.0), (is_set, "two", 2.0), (is_set, (2.0, 3.0), 2.0), (is_set, twice, 2.0)),
    ],
)
def test_a_variable_that_was_none(monkeypatch, f, later, expected):
    df = gradient(f)
    assert [df(3.0) for _ in range(3)] == [1.0] * 3
    monkeypatch.setitem(globals(), "SETTING", later)
    assert [df(3.0) for _ in range(3)] == [expected] * 3
    monkeypatch.setitem(globals(), "SETTING", None)
    assert [df(3.0) for _ in range(3)] == [1.0] * 3


def test_a_variable_takes_the_name_of_one_of_pythons_own(monkeypatch):
    df = gradient(of_names_of_pythons_own)
    assert [df(3.0) for _ in range(3)] == [6.0] * 3
    monkeypatch.setitem(globals(), "abs", twice)
    assert [df(3.0) for _ in range(3)] == [12.0] * 3
    monkeypatch.setitem(globals(), "max", min)
    assert [df(3.0) for _ in range(3)] == [2.0] * 3
    monkeypatch.delitem(globals(), "abs")
    assert [df(3.0) for _ in range(3)] == [1.0] * 3
    monkeypatch.delitem(globals(), "max")
    assert [df(3.0) for _ in range(3)] == [6.0] * 3


def test_names_that_numba_itself_refers_to(tmp_path):
    """Numba tests each branch with `bool`, and slices with `slice`, whatever these names are in the module."""
    program = """
        from numpy import *  # with its `bool`
        slice = str = 3
        from zygote_py import gradient, value_and_gradient

        k = 3.0

        def f(x, n):
            if n:
                x[1:] = x[:-1] * k
            s = 0.0
            while s < 5.0 and x[0] > 0.0:
                s += x[0] * k + x[2]
            return s

        df = value_and_gradient(f)
        print(df(numpy.array([1.0, 2.0, 4.0]), True))
        k = 2.0
        print(df(numpy.array([1.0, 2.0, 4.0]), True))
        now = df._now
        df(numpy.array([1.0, 2.0, 4.0]), False)
        print(df._now is now)
    """
    path = tmp_path / "program.py"
    path.write_text("import numpy\n" + textwrap.dedent(program))
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_DISABLE_JIT"}
    command = [sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.stdout == "(9.0, (array([3., 3., 0.]), None))\n(6.0, (array([2., 2., 0.]), None))\nTrue\n", done.stderr
