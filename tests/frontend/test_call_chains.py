"""Functions that cannot be compiled in a called function are refused with the calls that lead to them."""

import os
import pickle
import re
import sys
import threading
from dataclasses import dataclass

import numba
import pytest

from zygote_py import DifferentiationError, gradient
from zygote_py.numba_adapter.types.handles import _ROOM_FOR_CALLS as ROOM

pytestmark = pytest.mark.interpreted

HERE = os.path.basename(__file__)


def unknown(x):
    return x.nothing


def third(x):
    return unknown(x) * 2.0


def second(x):
    return third(x) + 1.0


def first(x):
    return second(x) * x


@numba.njit
def compiled_third(x):
    with open(x):
        return 1.0


@numba.njit
def compiled_second(x):
    return compiled_third(x)


@numba.njit
def compiled_first(x):
    return compiled_second(x)


@dataclass(frozen=True)
class Model:
    w: float

    def inner(self, x):
        return undefined_name(x * self.w)  # noqa: F821

    def outer(self, x):
        return self.inner(x)

    def __call__(self, x):
        return self.outer(x)


def of_model(x):
    return Model(2.0)(x)


def of_lambda(x):
    def inner(v):
        return {v: 1.0}[x] if v > 0 else sorted({x: v}.items(), key=repr, reverse=[v])

    return (lambda v: inner(v))(x)


def recursive(x, n):
    return recursive(x, n - 1) if n > 0 else unknown(x)


def chain(*functions):
    lines = [f.__code__.co_firstlineno + (f.__code__.co_name.startswith("compiled")) for f in functions]
    named = [
        f"{f.__qualname__.rpartition('<locals>.')[2]} ({HERE}:{at})" for f, at in zip(functions, lines, strict=True)
    ]
    return f"{named[0]} calls {named[1]}" + "".join(f", which calls {each}" for each in named[2:])


@pytest.mark.parametrize(
    ("f", "calls", "message"),
    [
        (first, (first, second, third, unknown), "has no attribute `nothing`"),
        (
            compiled_first,
            (compiled_first.py_func, compiled_second.py_func, compiled_third.py_func),
            "`open` is not supported",
        ),
        (
            of_model,
            (of_model, Model.__call__, Model.outer, Model.inner),
            "the name `undefined_name` is not defined",
        ),
    ],
)
def test_three_levels_deep(f, calls, message):
    with pytest.raises(DifferentiationError) as caught:
        gradient(f)(1.5)
    assert message in str(caught.value)
    assert str(caught.value).endswith(chain(*calls)), str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    last = calls[-1].__code__
    assert caught.value.line in {line for _, _, line in last.co_lines()}


def test_of_inner_functions_and_recursive_ones():
    with pytest.raises(DifferentiationError, match=r"of_lambda .* calls <lambda> .*, which calls inner "):
        gradient(of_lambda)(1.5)
    with pytest.raises(DifferentiationError, match=re.escape(chain(recursive, unknown))):
        gradient(recursive)(1.5, 2)


def test_no_chain_without_calls():
    with pytest.raises(DifferentiationError) as caught:
        gradient(unknown)(1.5)
    assert " calls " not in str(caught.value)


def test_threads_leave_the_limit_of_recursion_as_it_was():
    before = sys.getrecursionlimit()
    second_is_in, first_is_out = threading.Event(), threading.Event()

    def second():
        with ROOM:
            second_is_in.set()
            first_is_out.wait(10.0)

    thread = threading.Thread(target=second)
    with ROOM:
        thread.start()
        assert second_is_in.wait(10.0)
        assert sys.getrecursionlimit() > before
    first_is_out.set()
    thread.join()
    assert sys.getrecursionlimit() == before
