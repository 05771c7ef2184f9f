"""Calls that functions of the library replace: which, how arguments are bound, where in the source they are."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numba import types

import zygote_py as zg
from zygote_py.adjoints import DifferentiationError
from zygote_py.frontend import lower
from zygote_py.frontend.values import implementation_of, implemented
from zygote_py.numba_adapter.reading import pipeline as inference

pytestmark = pytest.mark.interpreted

VECTOR = types.float64[::1]
ROW = np.array([3.0, 1.0, 2.0])


def ops_of(f, *argument_types):
    return [instr.op for block in lower(f, argument_types).function.blocks for instr in block.instrs]


def test_what_gives_integers_stays():
    assert np.argmax in ops_of(lambda x: x[np.argmax(x)], VECTOR)
    assert np.cumsum in ops_of(lambda k: np.cumsum(k)[0], types.int64[::1])
    assert np.cumsum not in ops_of(lambda x: np.cumsum(x)[0], VECTOR)


def test_a_method_is_bound_when_it_is_looked_up():
    def f(x):
        mean = x.mean
        x = x * 2.0
        return mean() + x[0]

    assert zg.gradient(f)(ROW) == pytest.approx([1 / 3 + 2, 1 / 3, 1 / 3])


def test_arguments_by_name_by_star_and_by_default():
    def up_to(x, axis=None):
        return np.cumsum(x, axis=axis)

    def f(x):
        arguments = (x, 0)
        return np.sum(np.cumsum(*arguments)) + np.sum(up_to(x)) + np.sum(np.cumsum(axis=0, a=x))

    assert zg.gradient(f)(ROW) == pytest.approx([9, 6, 3])


def test_everything_is_at_the_line_of_the_call():
    def f(x):
        y = x * x
        return np.var(y)

    line = inspect.getsourcelines(f)[1]
    lowered = lower(f, (VECTOR,))
    locs = {instr.loc for block in lowered.function.blocks for instr in block.instrs}
    assert {(loc.file, loc.line) for loc in locs} == {(__file__, line + 1), (__file__, line + 2)}


def test_what_is_refused_is_refused_at_the_line_of_the_call():
    def f(x):
        y = x * 2.0
        return np.intersect1d(x, y)[0]

    with pytest.raises(DifferentiationError) as caught:
        zg.gradient(f)(np.array([0.0, 1.0]))
    assert f"{__file__}:{inspect.getsourcelines(f)[1] + 2}: " in str(caught.value)


def test_a_function_is_typed_once():
    def f(x):
        return np.median(x)

    lower(f, (VECTOR,))
    before = len(inference._library)
    lower(lambda x: np.median(x) + 1.0, (VECTOR,))
    assert len(inference._library) == before
    lower(f, (types.Array(types.float32, 4, "F"),))
    assert len(inference._library) > before


def test_constants_that_are_equal_are_told_apart():
    def made(constant):
        return lambda: constant

    keys = [inference.constant_key(made(value)) for value in (1, 1.0, True, 0.0, -0.0, np.float32(1))]
    assert len(set(keys)) == len(keys)
    assert inference.constant_key(made(np.nan)) == inference.constant_key(made(np.nan))


def test_parameters_have_the_names_and_defaults_of_numpy():
    for function, (template, *_) in implemented().items():
        if function in (max, min, sum, np.ndarray.sort) or template.__module__.split(".")[-1] not in (
            *("reductions", "sums", "nans", "sorting", "gathering", "signals", "statistics"),
        ):
            continue
        own = inspect.signature(template).parameters
        theirs = inspect.signature(function).parameters
        assert set(own) <= {*theirs, "a"}, function


def test_a_template_sees_types_and_constants():
    assert implementation_of(np.diff, (VECTOR, types.literal(0)), {}) is not None
    assert implementation_of(np.sum, (VECTOR,), {}) is None
    assert implementation_of(np.sum, (VECTOR,), {"dtype": types.DType(types.float32)}) is not None
    assert implementation_of(np.argmax, (VECTOR,), {}) is None
