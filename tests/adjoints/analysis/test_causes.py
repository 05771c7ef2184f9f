"""Why an operation has no derivative: each cause has its own sentence, and ends with the rule that helps."""

from __future__ import annotations

import ctypes
import functools
import operator

import numba
import numpy as np
import pytest
from numba import cfunc, njit, objmode, types
from numba.extending import intrinsic, overload

import zygote_py as zg
from tests.plain import plain
from zygote_py import DifferentiationError
from zygote_py.adjoints.analysis import cause

F8 = types.float64


@intrinsic
def halved(typingctx, x):
    def code(context, builder, signature, args):
        return builder.fmul(args[0], args[0].type(0.5))

    return types.float64(types.float64), code


def in_the_interpreter(x):
    with objmode(y="float64"):
        y = float(x)
    return y * x


def c_function():
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x)


def from_an_extension(x):
    raise NotImplementedError


@overload(from_an_extension)
def _from_an_extension(x):
    return lambda x: halved(x)


@pytest.mark.parametrize(
    ("op", "kinds", "said", "hint"),
    [
        (c_function(), (F8,), "is a C function: there is no Python source", "@zg.adjoint("),
        (types.ExternalFunction("erf", F8(F8)), (F8,), "`erf` is an external function", "@zg.adjoint(erf)"),
        (halved, (F8,), "`halved` is an intrinsic of Numba", "lambda dy: (dy * ...,)"),
        (cfunc("f8(f8)")(lambda x: x), (F8,), "is a C callback (`cfunc`)", "@zg.adjoint(f)"),
        (np.frompyfunc(abs, 1, 1), (F8,), "is a ufunc of machine code", "def rule(x): return"),
        (numba.vectorize(lambda a, b: a), (F8, F8), "is a ufunc of machine code", "def rule(x1, x2): return f(x1, x2)"),
        (from_an_extension, (F8,), "`from_an_extension` is given to Numba by an extension", "@zg.adjoint(from_an_"),
        (np.sign, (types.complex128,), "there is no rule for np.sign(complex128)", "docs/numpy.md"),
        (operator.matmul, (F8, F8), "there is no rule for ", "@zg.adjoint(f)"),
        (ctypes.sizeof, (F8,), "is a function of a C extension", "@zg.adjoint(sizeof)"),
    ],
)
def test_each_cause_has_its_own_sentence(op, kinds, said, hint):
    message, instead = cause(op, kinds)
    assert said in message
    assert hint in instead
    assert "zg.adjoint" in instead


@pytest.mark.parametrize(
    ("f", "said", "rule"),
    [
        (lambda x: halved(x) * x, "`halved` is an intrinsic of Numba", "@zg.adjoint(halved)"),
        (lambda x: abs(np.sign(x + 1j)), "there is no rule for np.sign(complex128)", "@zg.adjoint(np.sign)"),
        (njit(in_the_interpreter), "runs in the interpreter (`objmode`)", "@zg.adjoint(f)"),
    ],
)
def test_it_is_said_of_what_is_called(f, said, rule):
    with pytest.raises(DifferentiationError) as caught:
        zg.gradient(f).source(F8)
    assert said in caught.value.message
    assert rule in caught.value.hint
    assert caught.value.file == __file__


def test_the_rule_that_is_proposed_helps():
    @intrinsic
    def doubled(typingctx, x):
        return types.float64(types.float64), lambda context, builder, signature, args: builder.fadd(args[0], args[0])

    def f(x):
        return doubled(x) * x

    with pytest.raises(DifferentiationError, match=r"@zg\.adjoint"):
        zg.gradient(f)(3.0)

    @zg.adjoint(doubled)
    def rule(x):
        return doubled(x), lambda dy: (dy * 2.0,)

    assert zg.gradient(f)(3.0) == 12.0


def test_a_captured_partial_of_captured_numbers():
    scaled = functools.partial(lambda a, x: a * x, 2.5)
    assert plain(zg.gradient(lambda x: scaled(x) * x).source(F8))(2.0, 2.5) == 10.0
