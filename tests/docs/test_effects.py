"""The statements of docs/effects.md on printing, captured variables and exceptions."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import zygote_py as zg
from zygote_py import DifferentiationError, gradient, pullback, value_and_gradient

COUNT = 0
TABLE = np.zeros(3)


def square(x):
    print("square", x)
    return x * x


def in_a_loop(x, n):
    for i in range(n):
        x = math.sin(x)
        print("step", i)
    return x


def over_an_array(a):
    s = 0.0
    for i in range(len(a)):
        print("element", i)
        s += a[i] ** 2
    return s


def recursive(x, n):
    print("level", n)
    return x if n == 0 else recursive(x * x, n - 1) * x


def with_a_checkpoint(x):
    return zg.checkpoint(square)(x) * x


def with_a_hook(x):
    y = zg.hook(x * x, lambda g: print("gradient", g))
    print("after")
    return y * 3.0


def ruled(x):
    print("itself")
    return x * x


@zg.adjoint(ruled)
def rule(x):
    print("rule")

    def back(dy):
        print("back", dy)
        return (2.0 * x * dy,)

    return x * x, back


@pytest.mark.parametrize(
    ("function", "args", "forward", "reverse"),
    [
        (square, (2.0,), ["square 2.0"], []),
        pytest.param(in_a_loop, (0.5, 3), ["step 0", "step 1", "step 2"], [], marks=pytest.mark.interpreted),
        pytest.param(over_an_array, (np.ones(2),), ["element 0", "element 1"], [], marks=pytest.mark.interpreted),
        (recursive, (1.1, 2), ["level 2", "level 1", "level 0"], []),
        pytest.param(with_a_checkpoint, (2.0,), ["square 2.0"], ["square 2.0"], marks=pytest.mark.interpreted),
        (with_a_hook, (2.0,), ["after"], ["gradient 3.0"]),
        (lambda x: ruled(x) * 2.0, (2.0,), ["rule"], ["back 2.0"]),
    ],
)
def test_what_is_printed(function, args, forward, reverse, capsys):
    for derivative in (gradient(function, wrt=0), value_and_gradient(function, wrt=0)):
        derivative(*args)
        assert capsys.readouterr().out.splitlines() == forward + reverse
    _, back = pullback(function, *args)
    assert capsys.readouterr().out.splitlines() == forward
    for _ in range(2):
        back(1.0)  # which runs a recursive function again
        assert capsys.readouterr().out.splitlines() == (forward if function is recursive else []) + reverse


def assigns_to_a_global(x):
    global COUNT
    COUNT += 1
    return x * x


def writes_to_a_global_array(x):
    TABLE[0] = x
    return x * x


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (assigns_to_a_global, "assigning to a global variable is not supported"),
        (writes_to_a_global_array, "cannot be written to: it is captured"),
    ],
)
def test_what_is_outside_is_not_changed(function, says):
    with pytest.raises(DifferentiationError, match=says):
        gradient(function)(2.0)
    assert COUNT == 0
    assert not TABLE.any()


def test_variables_of_the_function_around():
    def f(x):
        total = 0.0

        def add(v):
            nonlocal total
            total += v
            return v * v

        return add(x) + add(2.0 * x) * total

    h = 1e-6
    assert gradient(f)(1.5) == pytest.approx((f(1.5 + h) - f(1.5 - h)) / (2.0 * h), rel=1e-8)


def raises(x, n):
    s = x
    for i in range(n):
        if i == 3:
            raise ValueError("three")
        s *= x
    return s


def raises_through_finally(x, n):
    s = x
    try:
        s = raises(x, n)
    finally:
        print("finally")
    return s


def test_exceptions(capsys):
    derivative = gradient(raises, wrt="x")
    assert derivative(2.0, 2) == 12.0
    with pytest.raises(ValueError, match="three"):
        derivative(2.0, 5)
    assert derivative(2.0, 3) == 32.0
    derivative = gradient(raises_through_finally, wrt="x")
    assert derivative(2.0, 2) == 12.0
    with pytest.raises(RuntimeError, match="an exception left `try`"):
        derivative(2.0, 5)
    assert capsys.readouterr().out == "finally\nfinally\n"


def as_a_name(x):
    try:
        y = 1.0 / x
    except Exception as error:  # noqa: F841
        y = x
    return y


def of_several_kinds(x):
    try:
        y = 1.0 / x
    except (ValueError, ZeroDivisionError):
        y = x
    return y


def raised_again(x):
    try:
        y = 1.0 / x
    except Exception:
        raise
    return y


@pytest.mark.parametrize(
    ("function", "says", "hint", "line"),
    [
        (as_a_name, "`except ... as e` is not supported", "leave out `as e`", 3),
        (of_several_kinds, "`except` of several kinds of exceptions is not supported", "`except Exception:`", 3),
        (raised_again, "`raise` without an exception is not supported", "raise one", 4),
    ],
)
def test_exceptions_that_are_refused(function, says, hint, line):
    with pytest.raises(DifferentiationError) as caught:
        gradient(function)(2.0)
    assert says in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.line == function.__code__.co_firstlineno + line


def test_without_compilation():
    """The same with Numba disabled, where the gradients run in plain Python."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("it is disabled")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout
