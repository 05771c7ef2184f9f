"""Complex constants in emitted source are what they were to the bit, compiled and in plain Python."""

from __future__ import annotations

import itertools
import math
import operator

import numba
import numpy as np
import pytest
from numba import types

from tests.plain import plain
from zygote_py.emit import emit
from zygote_py.ir import Block, Const, Function, Instr, Operand, Param, Return, Type

c128, c64 = types.complex128, types.complex64
FLOATS = (0.0, -0.0, 1.5, -2.0, 1e-310, math.inf, -math.inf, math.nan)


def source(result: Operand, *params: Param) -> str:
    block = Block()
    if isinstance(result, Instr):
        block.instrs.append(result)
    block.terminator = Return((result,))
    return emit(Function("f", list(params), [block], kind="joint"), name="f").source


def body(text: str) -> str:
    return text.splitlines()[-1].strip()


@pytest.mark.parametrize("type", [c128, c64], ids=str)
def test_constants(type: Type) -> None:
    number = np.complex64 if type == c64 else complex
    for real, imag in itertools.product(FLOATS, FLOATS):
        value = complex(number(complex(real, imag)))
        run = plain(source(Const(value, type)))
        assert repr(complex(run())) == repr(value)
        if real in (0.0, 1.5) and imag in (0.0, -2.0):
            compiled = numba.njit(run)
            assert repr(complex(compiled())) == repr(value)
            assert compiled.overloads[()].signature.return_type == type


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (2j, "return 2.0j"),
        (-2j, "return -0.0 - 2.0j"),
        (1 + 2j, "return 1.0 + 2.0j"),
        (-1 - 2j, "return -1.0 - 2.0j"),
        (1 + 0j, "return complex(1.0, 0.0)"),
        (0j, "return 0.0j"),
    ],
)
def test_their_form(value: complex, written: str) -> None:
    assert body(source(Const(value, c128))) == written


def test_a_real_constant_beside_a_complex_number() -> None:
    z = Param(c128, "z")
    two = Const(2 + 0j, c128)
    assert body(source(Instr(operator.mul, (two, z), c128), z)) == "return 2.0 * z"
    assert body(source(Instr(operator.pow, (z, two), c128), z)) == "return z ** 2.0"
    turned = Instr(operator.mul, (z, Const(complex(2.0, -0.0), c128)), c128)
    assert body(source(turned, z)) == "return z * complex(2.0, -0.0)"


def test_parts() -> None:
    z = Param(c128, "z")
    assert body(source(Instr(np.real, (z,), types.float64), z)) == "return z.real"
    assert body(source(Instr(np.imag, (z,), types.float64), z)) == "return z.imag"
    assert body(source(Instr(np.conjugate, (z,), c128), z)) == "return z.conjugate()"
