"""Error messages: each refusal of the front end with its line, its caret and its hint."""

from __future__ import annotations

import linecache
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba import types

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.frontend import lower
from zygote_py.ir import Loc

F8, I8 = types.float64, types.int64
VECTOR = types.float64[::1]
TABLE = {"a": 1.0}
GLOBAL = 0.0


class Thing:
    value = 1.0


THING = Thing()

# Each function with the types it is lowered for, what the message and the hint say, and what stands over the caret.
CASES: list[tuple[Callable[..., Any], tuple[types.Type, ...], str, str, str]] = []


def refused(*argument_types: types.Type, says: str, hint: str, at: str) -> Callable[..., Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, argument_types, says, hint, at))
        return function

    return register


@refused(F8, says="generator", hint="loop", at="def generator")
def generator(x):
    yield x


@refused(F8, says="generator expression", hint="loop", at="for i in")
def generator_expression(x):
    return sum(x * i for i in range(3))


@refused(F8, says="`async`", hint="ordinary", at="async def")
async def coroutine(x):
    return x


@refused(F8, says="`with`", hint="outside", at="with open")
def with_as(x):
    y = x
    with open("f") as f:
        return y if f else x


@refused(F8, says="interpreter", hint="zg.adjoint", at="with numba")
def with_objmode(x):
    with numba.objmode(y="float64"):
        y = x
    return y + 1.0


@refused(F8, says="`except` of one kind", hint="except Exception", at="except")
def try_except(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


@refused(F8, says="`dot` in `try` may raise", hint="outside of `try`", at="dot")
def try_dot(x):
    y = np.array([x])
    try:
        y[0] = np.dot(y, y)
    except Exception:
        y[0] = 0.0
    return y[0]


@refused(F8, says="a set", hint="tuple", at="{1.0")
def set_display(x):
    values = {1.0, x}
    return x * len(values)


@refused(F8, says="`split` gives a list", hint="arrays", at="split")
def result_that_is_a_list(x):
    text = "one two"
    return x * len(text.split(" "))


@refused(F8, says="`TABLE`, a dict, is not supported", hint="NamedTuple", at='TABLE["a"]')
def captured_dict(x):
    return x * TABLE["a"]


@refused(F8, says="Numba has no `mul", hint="attributes and methods", at="return")
def captured_object(x):
    return x * THING


@refused(F8, says=r"`\*\*kwargs`", hint="every parameter", at="**rest")
def keyword_parameters(x, **rest):
    return x


@refused(F8, VECTOR, says="Numba has no `delitem", hint="Numba", at="del values")
def deletion(x, values):
    del values[0]
    return x


@refused(F8, says="`float64` has no attribute `size`", hint="Numba", at="size")
def attribute(x):
    return x.size


@refused(F8, says="`nowhere` is not defined", hint="define", at="nowhere + 1")
def undefined(x):
    return x + nowhere + 1  # noqa: F821


@refused(F8, says="no attribute 'nothing'", hint="", at="nothing(x)")
def no_such_function(x):
    y = x
    return np.linalg.nothing(x) + y


@refused(F8, says=r"Numba has no `sin\(str\)`", hint="Numba", at='sin("a")')
def wrong_argument(x):
    return x + math.sin("a")


@refused(F8, says="different types", hint="same type", at='return "a"')
def different_results(x):
    if x > 0:
        return x
    return "a"


@refused(F8, says="on one path and `None` on another", hint="value everywhere", at="return x")  # noqa: RET503
def no_result_on_a_path(x):
    if x > 0:
        return x


@refused(F8, says="`import`", hint="top of the module", at="import cmath")
def import_inside(x):
    import cmath

    return x + cmath.pi


@refused(F8, says="a class", hint="outside", at="class Inner")
def class_inside(x):
    class Inner:
        pass

    return x


@refused(F8, says="global variable", hint="return", at="GLOBAL = x")
def global_assignment(x):
    global GLOBAL
    GLOBAL = x
    return x


@refused(F8, says=r"unpacking a value of type `list\(float64\).*` with `\*`", hint="write `a, b", at="*rest, last")
def starred_target(x):
    first, *rest, last = [x, x, x, x]
    return first + last + len(rest)


@refused(F8, says="`eval`", hint="Numba", at='eval("x")')
def evaluation(x):
    return eval("x")


@refused(F8, says="`iter`", hint="tuples", at="iter((")
def explicit_iterator(x):
    it = iter((x, 1.0))
    return next(it)


@refused(F8, I8, says="Numba has no `getitem", hint="Numba", at="")
def dynamic_index_of_different_things(x, i):
    return (x, "a")[i]


@refused(F8, says="a tuple of several types in another one", hint="one type", at="in (x")
def loop_over_mixed_tuples(x):
    s = 0.0
    for v in (1, x):
        for w in (x, 2):
            s += v * w
    return s


@refused(F8, says="a set", hint="tuple", at="{a}")
def in_a_callee(x):
    return x * makes_a_set(x)


def makes_a_set(a):
    return len({a})


@refused(F8, F8, says="does not take 2 arguments", hint=r"\(x\)", at="def too_many")
def too_many(x):
    return x


@refused(says="does not take 0 arguments", hint=r"\(x, y, z\)", at="def too_few")
def too_few(x, y, z=1.0):
    return x * y * z


def error_of(function: Callable[..., Any], argument_types: tuple[types.Type, ...]) -> DifferentiationError:
    with pytest.raises(DifferentiationError) as caught:
        lower(function, argument_types)
    return caught.value


@pytest.mark.parametrize(
    ("function", "argument_types", "says", "hint", "at"), CASES, ids=[c[0].__name__ for c in CASES]
)
def test_refusal(function, argument_types, says, hint, at):
    error = error_of(function, argument_types)
    assert re.search(says, error.message), str(error)
    assert error.hint, str(error)
    assert hint == "" or re.search(hint, error.hint)
    assert error.file == __file__
    assert error.source_line == linecache.getline(__file__, error.line).rstrip("\n")
    if at:
        assert error.source_line[error.column - 1 :].startswith(at), str(error)
    else:
        assert error.source_line[error.column - 1].strip()


def test_the_text():
    error = error_of(set_display, (F8,))
    line = set_display.__code__.co_firstlineno + 2
    assert str(error) == (
        f"{__file__}:{line}: a set is not supported\n    values = {{1.0, x}}\n             ^\nuse a tuple or an array"
    )


def test_no_source():
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return len({x})", namespace)
    error = error_of(namespace["f"], (F8,))
    assert str(error) == "<string>:2: a set is not supported\nuse a tuple or an array"
    assert error.source_line is None
    assert str(refuse("no", hint="do")) == "no\ndo"


def test_tabs_and_tokens():
    linecache.cache["tabs.py"] = (1, None, ["def f(x):\n", "\tr = sine(x) + sin(x)\n"], "tabs.py")
    error = refuse("no", Loc("tabs.py", 2), hint="do", token="sin")
    assert str(error) == "tabs.py:2: no\n    r = sine(x) + sin(x)\n                  ^\ndo"
    assert refuse("no", Loc("tabs.py", 2)).column == 2
    assert refuse("no", Loc("tabs.py", 2, 6), token="absent").column == 6
    assert refuse("no", Loc("tabs.py", 2, 9), token="x").column == 11
    assert refuse("no", Loc("tabs.py", 99)).source_line is None


def test_fields_and_pickling():
    error = error_of(try_except, (F8,))
    again = pickle.loads(pickle.dumps(error))
    for name in ("message", "file", "line", "source_line", "column", "hint"):
        assert getattr(again, name) == getattr(error, name)
    assert str(again) == str(error)


def test_numbas_errors_do_not_show_their_inside():
    for function, argument_types, *_ in CASES:
        message = error_of(function, argument_types).message
        assert "\n" not in message
        assert "nopython" not in message
        assert "Literal[" not in message
        assert "numba/core" not in message
