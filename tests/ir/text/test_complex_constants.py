"""Complex numbers in the IR: constants in text, what is folded and what is not, the interpreter."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from numba import types

from zygote_py.ir import (
    Block,
    Const,
    Function,
    Instr,
    Operand,
    Param,
    Return,
    Type,
    fold_constants,
    interpret,
    parse,
    zero,
)
from zygote_py.ir.ops import Effect, name_of, named, of
from zygote_py.ir.text.printer import text

c128, c64, f64, f32 = types.complex128, types.complex64, types.float64, types.float32
FLOATS = (0.0, -0.0, 1.5, -2.0, 1e300, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("type", [c128, c64], ids=str)
def test_constants_in_text(type: Type) -> None:
    for real, imag in itertools.product(FLOATS, FLOATS):
        block = Block()
        block.terminator = Return((Const(complex(real, imag), type),))
        function = Function("f", [], [block])
        (read,) = parse(text(function))
        (back,) = read.entry.terminator.args  # type: ignore[union-attr]
        assert repr(back.value) == repr(complex(real, imag))
        assert text(read) == text(function)


def test_their_form() -> None:
    block = Block()
    block.terminator = Return((Const(1 - 2j, c128), Const(0.5 + 0j, c64)))
    assert text(Function("f", [], [block])).splitlines()[-1] == "  return c128(1-2j), c64(0.5+0j)"


def test_zero() -> None:
    assert zero(c128) == Const(0j, c128)
    assert zero(c64) != Const(complex(0.0, -0.0), c64)


def folded(op: Callable[..., object], args: tuple[Operand, ...], type: Type) -> Operand:
    """Return the result, after folding, of a function that returns `op(*args)`."""
    block = Block()
    instr = Instr(op, args, type)
    block.instrs.append(instr)
    block.terminator = Return((instr,))
    function = Function("f", [arg for arg in args if isinstance(arg, Param)], [block])
    fold_constants(function)
    (result,) = block.terminator.args
    return result


z, w = Const(1 - 2j, c128), Const(complex(-0.0, 3.0), c128)


@pytest.mark.parametrize(
    ("op", "args", "result"),
    [
        (operator.add, (z, w), Const(1 + 1j, c128)),
        (operator.sub, (z, w), Const(1 - 5j, c128)),
        (operator.neg, (w,), Const(complex(0.0, -3.0), c128)),
        (np.conjugate, (w,), Const(complex(-0.0, -3.0), c128)),
        (np.real, (w,), Const(-0.0, f64)),
        (np.imag, (z,), Const(-2.0, f64)),
        (complex, (Const(1.0, f64), Const(-0.0, f64)), Const(complex(1.0, -0.0), c128)),
        (np.complex128, (Const(2.0, f64),), Const(2 + 0j, c128)),
        (np.complex64, (Const(0.1 + 0j, c128),), Const(complex(np.complex64(0.1)), c64)),
    ],
    ids=lambda part: name_of(part) if callable(part) else "",
)
def test_what_is_folded(op: Callable[..., object], args: tuple[Operand, ...], result: Const) -> None:
    assert folded(op, args, result.type) == result


def test_what_is_not_folded() -> None:
    assert isinstance(folded(operator.mul, (z, w), c128), Instr), "its rounding depends on the machine"
    x = Param(c128, "x")
    one = Const(1 + 0j, c128)
    assert isinstance(folded(operator.mul, (x, one), c128), Instr), "inf * (1 + 0j) has a nan"
    assert isinstance(folded(operator.pow, (x, one), c128), Instr), "through polar form"


def test_a_power_of_a_real_number() -> None:
    x = Param(f64, "x")
    assert folded(operator.pow, (x, Const(1.0, f64)), f64) is x


def test_callables() -> None:
    for name in ("cmath.exp", "cmath.phase", "complex", "np.complex64", "np.conjugate"):
        assert name_of(named(name)) == name
        assert of(named(name)).effect is Effect.PURE


def test_interpreted() -> None:
    source = """\
function f(%z: c128, %w: c64) -> c128
b0:
  %a = add %z, c128(1-2j) : c128
  %b = mul %w, c64(0.5+0j) : c64
  %c = np.complex128 %b : c128
  %d = mul %a, %c : c128
  %e = cmath.exp %d : c128
  return %e"""
    (function,) = parse(source)
    assert interpret(function, 1j, np.complex64(2 - 1j)) == np.exp((1 - 1j) * (1 - 0.5j))
