"""Calls from Python that go to the compiled function without the method `__call__`, and when they do not."""

from __future__ import annotations

import builtins
import gc
import math
import sys
import threading
import traceback
import weakref
from contextlib import suppress
from types import ModuleType

import numba
import numpy as np
import pytest

from zygote_py import gradient
from zygote_py.numba_adapter import DirectCalls, make_direct

pytestmark = pytest.mark.compiled


def square(x):
    if x < 0.0:
        raise ValueError("negative")
    return x * x


def called_often(f=square, *args):
    df = gradient(f)
    for _ in range(3):
        df(*args or (1.5,))
    return df


def frames_of(function):
    """Return the names of the Python functions that a call goes through."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names[1:]


def test_there_are_no_frames_between():
    df = called_often()
    assert "__call__" not in frames_of(lambda: df(2.0))
    assert df(2.0) == 4.0
    assert "__call__" in frames_of(lambda: df(x=2.0))
    assert df(x=2.0) == 4.0


def test_other_types_are_compiled_for():
    df = called_often()
    assert df(np.float32(3.0)) == 6.0
    assert df(3) == 6.0


def test_errors_are_those_of_the_function():
    df = called_often()
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^negative$") as raised:
            df(-1.0)
        assert raised.value.__cause__ is None
        assert "square_gradient" in "".join(traceback.format_exception(raised.value))
    assert df(2.0) == 4.0


def test_errors_in_the_use_are_explained():
    df = called_often()
    with pytest.raises(TypeError, match=r"square\(\) takes 1 positional argument but 2 were given"):
        df(1.0, 2.0)
    with pytest.raises(Exception, match="Numba has no"):
        df("text")
    assert df(2.0) == 4.0


def test_a_function_that_writes_runs_once():
    def f(x):
        x[0] += 1.0
        if x[0] > 5.0:
            raise ValueError("too large")
        return x[0] * x[0]

    x = np.array([0.0])
    df = called_often(f, x)
    assert x[0] == 3.0
    x[0] = 5.0
    with pytest.raises(ValueError, match="too large"):
        df(x)
    assert x[0] == 6.0


def test_a_function_that_is_changed_in_place():
    def f(x):
        return x * x

    def other(x):
        return x * x * x

    df = called_often(f)
    f.__code__ = other.__code__
    assert df(2.0) == 12.0
    assert "__call__" in frames_of(lambda: df(2.0))
    assert df(2.0) == 12.0
    assert "__call__" not in frames_of(lambda: df(2.0))


factor, power = 2.0, 2


def scaled(x):
    return factor * x * x


def test_captured_values_are_looked_at(monkeypatch):
    df = called_often(scaled)
    assert df(1.0) == 4.0
    monkeypatch.setitem(globals(), "factor", 3.0)
    assert df(1.0) == 6.0


def test_captured_values_are_passed(monkeypatch):
    df = called_often(scaled)
    assert is_direct(df, 1.0)
    for number in range(40):  # after some changes, the values are read at each call
        monkeypatch.setitem(globals(), "factor", number / 7)
        assert [df(1.5) for _ in range(3)] == [3.0 * factor] * 3
        assert is_direct(df, 1.0)
    monkeypatch.setitem(globals(), "factor", 0.1)
    assert is_direct(df, 1.0)
    assert df(1.5) == 3.0 * 0.1
    monkeypatch.setitem(globals(), "factor", 1)  # another type
    assert [df(1.5) for _ in range(3)] == [3.0] * 3
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        df(1.0, 2.0)
    with pytest.raises(TypeError, match="missing"):
        df()
    assert df(x=1.5) == 3.0


table = np.array([1.0, 2.0])


def tabled(x, k=1):
    return table[k] * x * x * factor


def test_captured_arrays_are_passed(monkeypatch):
    df = gradient(tabled, wrt="x")
    assert [df(1.5) for _ in range(3)] == [12.0] * 3
    assert [df(1.5, 0) for _ in range(3)] == [6.0] * 3
    assert is_direct(df, 1.5, 0)
    assert not is_direct(df, 1.5)  # the captured values follow all of the arguments
    table[1] = 3.0
    try:
        assert df(1.5) == 18.0
        assert df(1.5, 1) == 18.0
    finally:
        table[1] = 2.0
    monkeypatch.setitem(globals(), "table", np.array([5.0, 7.0]))
    assert [df(1.5, 1) for _ in range(4)] == [42.0] * 4
    monkeypatch.setitem(globals(), "table", np.array([5, 7]))
    assert [df(1.5, 1) for _ in range(4)] == [42.0] * 4


def bent(x, scale=1.0, *, shift=1):
    return scale * x**power + shift * x


def of_bent(x):
    return 2.0 * bent(x)


def is_direct(df, *args):
    return "__call__" not in frames_of(lambda: df(*args))


def check_after_a_change(df, expected):
    """Check the derivative at 1 at once, and when calls are direct again."""
    assert [df(1.0) for _ in range(4)] == [expected] * 4
    assert is_direct(df, 1.0)


def test_variables_in_sight_are_compared(monkeypatch):
    df = called_often(of_bent)
    check_after_a_change(df, 6.0)
    monkeypatch.setitem(globals(), "power", 3)
    check_after_a_change(df, 8.0)
    monkeypatch.setattr(bent, "__defaults__", (2.0,))
    check_after_a_change(df, 14.0)
    monkeypatch.setattr(bent, "__kwdefaults__", {"shift": 5})
    check_after_a_change(df, 22.0)
    monkeypatch.setitem(bent.__kwdefaults__, "shift", 6)
    check_after_a_change(df, 24.0)
    monkeypatch.setattr(bent, "__code__", (lambda x, scale=1.0, *, shift=1: scale * shift * x).__code__)
    check_after_a_change(df, 24.0)
    monkeypatch.setitem(globals(), "bent", lambda x: 4.0 * x)
    check_after_a_change(df, 8.0)
    monkeypatch.setitem(globals(), "bent", numba.njit(lambda x: 5.0 * x * x))
    check_after_a_change(df, 20.0)
    monkeypatch.delitem(globals(), "bent")
    with pytest.raises(Exception, match="bent"):
        df(1.0)
    monkeypatch.undo()
    check_after_a_change(df, 6.0)


def test_variables_of_enclosing_functions_and_modules_are_compared(monkeypatch):
    count, tools = 2, ModuleType("tools")
    tools.twice = lambda x: 2.0 * x
    namespace = {"tools": tools}
    exec("def of_module(x): return tools.twice(x * x)", namespace)
    of_module = namespace["of_module"]

    def counted(x):
        return x**count * of_module(x)

    def change(number):
        nonlocal count
        count = number

    df = called_often(counted)
    check_after_a_change(df, 8.0)
    change(3)
    check_after_a_change(df, 10.0)
    tools.twice = lambda x: 3.0 * x
    check_after_a_change(df, 15.0)
    namespace["tools"] = ModuleType("others")
    namespace["tools"].twice = lambda x: x
    check_after_a_change(df, 5.0)


def test_modules_are_compared():
    namespace = {"m": math}
    exec("def f(x): return m.sin(x) * x", namespace)
    df = called_often(namespace["f"])
    assert is_direct(df, 1.0)
    assert df(0.0) == 0.0
    namespace["m"] = ModuleType("other")
    namespace["m"].sin = lambda x: x * x
    check_after_a_change(df, 3.0)


def test_values_that_have_changed_are_not_kept():
    namespace, count = {}, 40
    exec("def f(x): return table[0] * x * x", namespace)
    known = []
    df = gradient(namespace["f"])
    for number in range(count):
        namespace["table"] = np.full(1, float(number))
        known.append(weakref.ref(namespace["table"]))
        assert [df(1.0) for _ in range(3)] == [2.0 * number] * 3
    gc.collect()
    assert sum(each() is not None for each in known) <= 2  # the first, and that of now


def test_variables_that_are_computed_are_read_by_the_method():
    class Settings:
        def __init__(self):
            self.count = 2

    settings = Settings()

    def f(x):
        return x**settings.count

    df = called_often(f)
    assert not is_direct(df, 1.0)
    assert df(1.0) == 2.0
    settings.count = 3
    assert df(1.0) == 3.0
    settings.rate = 0.5

    def g(x):
        return x * x * settings.rate

    dg = called_often(g)
    for rate in (0.5, 0.75, 1.0):
        settings.rate = rate
        assert is_direct(dg, 2.0)  # it is read at each call
        assert dg(2.0) == 4.0 * rate


def test_values_in_sight_stay_alive():
    namespace = {}
    exec("def inner(x): return x * x\ndef f(x): return inner(x) + x", namespace)
    df = called_often(namespace["f"])
    assert is_direct(df, 1.0)
    for _ in range(100):
        exec("def inner(x): return 3.0 * x * x", namespace)
        gc.collect(0)
    check_after_a_change(df, 7.0)


def test_nothing_is_leaked():
    df, good, bad = called_often(), float("1.5"), float("-1.5")

    def counted():
        gc.collect()
        errors = sum(type(each) is ValueError for each in gc.get_objects())
        return [errors, *map(sys.getrefcount, (df, df._called, good, bad, "failed"))]

    before = counted()
    for _ in range(200):
        df(good)
        with pytest.raises(ValueError, match="negative"):
            df(bad)
    assert max(abs(a - b) for a, b in zip(counted(), before, strict=True)) < 20


def test_threads():
    df, found = called_often(), []
    threads = [threading.Thread(target=lambda: found.extend(df(float(n)) for n in range(500))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == sorted([2.0 * n for n in range(500)] * 4)


def test_a_derivative_that_is_made_anew_during_a_call():
    made = []

    @numba.njit
    def f(x):
        with numba.objmode():
            made[0].rules_have_changed()
        return x * x

    class Called(DirectCalls):
        def __call__(self, *args, **kwargs):
            return "by the method"

        def failed(self, args, error):
            return args, error

    assert make_direct(Called)
    called = Called()
    assert called() == "by the method"

    def replaced(n):
        called.directly(None, None, None)
        return n

    called.directly(replaced, f.py_func, f.py_func.__code__)
    assert called(3) == 3
    assert called(3) == "by the method"
    error = KeyError("k")

    def failing(n):
        raise error

    called.directly(failing, f.py_func, f.py_func.__code__)
    assert called(4) == ((4,), error)
    assert called(4, n=1) == "by the method"
    called.directly(failing, print, None)  # which has no code to look at
    assert called(5) == "by the method"


def test_interrupts_are_not_caught():
    def interrupted(*_):
        raise KeyboardInterrupt

    df = called_often()
    df.directly(interrupted, square, square.__code__)
    with pytest.raises(KeyboardInterrupt):
        df(1.0)


def test_types_that_are_not_as_expected_keep_their_method():
    class Callable(DirectCalls):
        __call__ = print

    assert not make_direct(Callable)


def test_a_function_that_is_changed_during_the_call_that_makes_it_direct():
    def f(x):
        return x * x

    def other(x):
        return x * x * x

    df = gradient(f)
    assert df(2.0) == 4.0

    def change(frame, event, _):
        if event == "return" and frame.f_code.co_name == "f_gradient":
            sys.setprofile(None)
            f.__code__ = other.__code__

    sys.setprofile(change)
    try:
        df(2.0)
    finally:
        sys.setprofile(None)
    assert f.__code__ is other.__code__
    assert df(2.0) == 12.0
    assert df(2.0) == 12.0


def test_arguments_are_free_after_an_error():
    def f(x):
        if x[0] < 0.0:
            raise ValueError("negative")
        return x[0] * x[0]

    df = called_often(f, np.array([1.0]))
    gc.disable()
    try:
        bad = np.array([-1.0])
        left = weakref.ref(bad)
        with suppress(ValueError):
            df(bad)
        del bad
        assert left() is None
    finally:
        gc.enable()


def test_an_error_has_its_own_context():
    def failing(_):
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer")  # noqa: B904

    df = called_often()
    df.directly(failing, square, square.__code__)
    try:
        raise IndexError("handled by the caller")
    except IndexError:
        with pytest.raises(ValueError, match="outer") as raised:
            df(1.0)
    assert isinstance(raised.value.__context__, KeyError)


SETTING = None


def of_names_that_change(x):
    factor = 1.0 if SETTING is None else SETTING
    return abs(x) * x * factor * scale_of_all  # type: ignore[name-defined]  # noqa: F821 (see below)


def test_names_of_pythons_own_and_variables_without_a_value(monkeypatch):
    monkeypatch.setattr(builtins, "scale_of_all", 2.0, raising=False)
    df = called_often(of_names_that_change)

    def changed(holder, name, value):
        before = called_directly(df)
        monkeypatch.setitem(vars(holder), name, value)
        return before, df(1.5), df(1.5), called_directly(df)

    here = sys.modules[__name__]
    assert changed(here, "SETTING", 4.0) == (6.0, 24.0, 24.0, 24.0)
    assert changed(here, "abs", square) == (24.0, 54.0, 54.0, 54.0)
    assert changed(builtins, "scale_of_all", 1.0) == (54.0, 27.0, 27.0, 27.0)
    assert changed(here, "SETTING", None) == (27.0, 6.75, 6.75, 6.75)
    monkeypatch.delitem(vars(here), "abs")
    assert df(1.5) == 3.0


def called_directly(df):
    """Return the derivative at 1.5, by a call without frames of Python's."""
    found = []
    assert "__call__" not in frames_of(lambda: found.append(df(1.5)))
    return found[0]
