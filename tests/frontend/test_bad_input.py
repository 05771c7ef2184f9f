"""Every refusal: raised at the first call, with file, line, caret, reason and hint; the next good call works."""

from __future__ import annotations

import inspect
import math
import re
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from zygote_py import DifferentiationError, gradient, value_and_gradient


def refused(
    function: Callable[..., Any], *args: Any, says: str, hint: str = "", line: str = "", **options: Any
) -> DifferentiationError:
    """The error at the first call. It names this file, the function's lines, a reason and a hint.

    `says` and `hint` are patterns for the message and the hint; `line` is a piece of the source line that it must show.
    """
    derivative = gradient(function, **options)  # making it refuses nothing yet
    with pytest.raises(DifferentiationError, match=f"(?is){says}") as caught:
        derivative(*args)
    error = caught.value
    text = str(error)
    assert error.hint, f"no hint in: {text}"
    assert re.search(hint, error.hint, re.IGNORECASE | re.DOTALL), f"the hint is: {error.hint}"
    assert error.file == __file__, text
    assert f"{__file__}:{error.line}" in text
    first = function.__code__.co_firstlineno
    count = len(inspect.getsourcelines(function)[0])
    assert first <= error.line < first + count, f"line {error.line} is not in {first}..{first + count - 1}: {text}"
    shown, caret = text.splitlines()[1:3]
    assert shown.strip() == inspect.getsourcelines(inspect.getmodule(refused))[0][error.line - 1].strip()
    assert caret.strip() == "^"
    assert caret.index("^") < len(shown)
    assert line in shown, f"the line shown is: {shown}"
    assert len(text.splitlines()) < 15, f"too long:\n{text}"
    with pytest.raises(DifferentiationError) as again:
        derivative(*args)
    assert str(again.value) == text, "the second call says something else"
    return error


# The result


def test_a_tuple_as_result():
    refused(lambda x: (x, x * x), 2.0, says="result|return", hint="one")


def test_an_array_as_result():
    refused(lambda a: a, np.zeros(3), says="result|return", hint="sum|add|one number")


def test_no_result():
    def f(x):
        y = x * x  # noqa: F841

    refused(f, 2.0, says="result|return", hint="return")


def test_a_truth_value_as_result():
    refused(lambda x: x > 1.0, 2.0, says="result|return")


def test_a_complex_result():
    refused(lambda x: complex(x, 1.0), 2.0, says="complex", hint="real")


def test_a_string_as_result():
    refused(lambda x: "yes" if x > 0 else "no", 2.0, says="result|return|str")


# Parameters and arguments


@pytest.mark.parametrize("wrt", ["z", 2, -3, ("x", "w"), 1.5, True])
def test_an_unknown_wrt(wrt):
    refused(lambda x, y: x * y, 2.0, 3.0, wrt=wrt, says="wrt", hint="x, y")


def test_wrt_of_a_truth_value():
    refused(lambda x, flag: x if flag else -x, 2.0, True, wrt="flag", says="flag")


@pytest.mark.parametrize("args", [(), (1.0,), (1.0, 2.0, 3.0)])
def test_a_wrong_number_of_arguments(args):
    df = gradient(lambda x, y: x * y)
    with pytest.raises(TypeError, match="argument"):
        df(*args)
    assert df(2.0, 3.0) == (3.0, 2.0)


def test_an_unknown_keyword():
    df = gradient(lambda x, y: x * y)
    with pytest.raises(TypeError, match="'z'"):
        df(1.0, 2.0, z=2.0)
    assert df(1.0, y=2.0) == (2.0, 1.0)


class Thing:
    pass


THINGS = [Thing(), [1.0, "a"], [[1.0]], {"a": 1.0}, {1.0}, None, np.array(["a"]), print, b"bytes"]


@pytest.mark.parametrize("thing", THINGS)
def test_an_argument_that_is_no_number(thing):
    def f(x, thing):
        return x

    if thing is None or isinstance(thing, bytes) or callable(thing):
        pytest.skip("an argument that does not matter may be of any type that Numba knows")
    refused(f, 2.0, thing, says="thing", hint="array|tuple|NamedTuple|number")


@pytest.mark.parametrize("thing", [{"a": 1.0}, Thing()])
def test_the_hint_names_what_to_use_instead(thing):
    error = refused(lambda x, thing: x, 2.0, thing, says="thing")
    for word in ("array", "tuple", "NamedTuple"):
        assert word in error.hint


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, ">f8", object])
def test_an_array_of_another_dtype(dtype):
    refused(lambda x, y: x * y[0], 2.0, np.ones(2, dtype), says="`y`.*not supported", hint=r"y\.astype\(")


@pytest.mark.parametrize("y", [np.array([2, 3]), np.array([True, False]), (2, np.array([1]))])
def test_integers_have_no_gradient(y):
    def f(x, y):
        return x * y[0]

    assert gradient(f)(2.0, y) == (float(y[0]), None)
    assert gradient(f, wrt="x")(2.0, y) == float(y[0])
    refused(f, 2.0, y, wrt="y", says="no gradient with respect to `y`.*(int64|bool)", hint="pass floats for `y`")
    refused(f, 2.0, y, wrt=("x", "y"), says="no gradient with respect to `y`", hint="pass floats for `y`")


def test_a_string_where_a_number_is_needed():
    refused(lambda x, y: x * y, 2.0, "three", says="")


def test_the_only_argument_is_a_string():
    refused(lambda x: x, "three", says="")


def test_star_parameters():
    def g(x, **options):
        return x

    refused(g, 2.0, says="options", hint="")


# Statements


def test_a_generator():
    def f(x):
        yield x

    refused(f, 2.0, says="yield|generator")


def test_a_generator_expression():
    def f(a):
        return sum(v * v for v in a)

    refused(f, np.zeros(3), says="generator|yield|sum")


def test_with():
    def f(x):
        with open("file") as _:
            return x * x

    refused(f, 2.0, says="with")


def test_try():
    def f(x):
        try:
            r = np.linalg.inv(np.eye(2) * x)[0, 0]
        except Exception:
            r = x
        return r

    refused(f, 2.0, says="try")


# Operations


def test_an_operation_without_a_rule():
    def f(x):
        y = x * x
        return y + np.nextafter(x, 1.0)

    refused(f, 2.0, says="nextafter", line="nextafter")


def test_a_function_that_numba_cannot_type():
    def f(x):
        y = x * 2
        return undefined_name(y)  # noqa: F821

    refused(f, 2.0, says="undefined_name", line="undefined_name")


def test_a_method_that_does_not_exist():
    def f(a):
        return a.no_such_method()

    refused(f, np.zeros(3), says="no_such_method", line="no_such_method")


def test_an_unsupported_function():
    def f(x):
        return math.fsum((x, x))

    refused(f, 2.0, says="fsum", line="fsum")


def test_types_that_do_not_unify():
    def f(x):
        return x if x > 0 else "text"

    refused(f, 2.0, says="unif|type")


def test_no_python_function():
    with pytest.raises(DifferentiationError) as caught:
        gradient("sin")(2.0)
    assert caught.value.hint
    assert "sin" in str(caught.value)
    with pytest.raises(DifferentiationError):
        gradient(3)(2.0)
    with pytest.raises(DifferentiationError):
        gradient(Thing)(2.0)


# A refused call has no effects


def test_the_next_good_call_works():
    def f(x, y):
        return x * y

    df = gradient(f)
    vg = value_and_gradient(f)
    for bad in ("three", [1.0], Thing(), np.zeros((2, 2))):
        for derivative in (df, vg):
            with pytest.raises(DifferentiationError):
                derivative(2.0, bad)
        assert df(2.0, 3.0) == (3.0, 2.0)
        assert vg(2.0, 3.0) == (6.0, (3.0, 2.0))
    with pytest.raises(TypeError):
        df(2.0)
    assert df(2.0, 3) == (3.0, None)


def test_refused_inspection():
    df = gradient(lambda x: (x, x))
    for show in (df.primal_ir, df.adjoint_ir, df.source, df.inspect_llvm, df.inspect_asm):
        with pytest.raises(DifferentiationError):
            show(2.0)


def test_refused_from_compiled_code():
    import numba

    df = gradient(lambda x: (x, x))

    @numba.njit
    def outer(x):
        return df(x)

    with pytest.raises(Exception, match=r"result|return"):
        outer(2.0)


def test_a_function_without_source():
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return (x, x)\n", scope)
    with pytest.raises(DifferentiationError, match="<string>"):
        gradient(scope["f"])(2.0)


def test_a_named_tuple_is_no_mistake():
    point = namedtuple("point", ["x", "y"])
    try:
        got = gradient(lambda p: p.x * p.y)(point(2.0, 3.0))
    except DifferentiationError as error:
        assert error.hint  # noqa: PT017
    else:
        assert tuple(got) == (3.0, 2.0)
