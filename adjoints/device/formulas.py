"""Functions of NumPy that a device does not have, in terms of those that it has.

    %y = np.ceil %x : f64           ->      %t = neg %x : f64
                                            %f = np.floor %t : f64          (written out in turn)
                                            %y = neg %f : f64

All are exact where the function is, and follow it at infinity, at NaN, and at halves; a zero may have another sign.
"""

from __future__ import annotations

import builtins
import math
import operator

import numpy as np
from numba import types

from zygote_py.adjoints.rules.formulas.expand import evaluated
from zygote_py.ir import Block, Builder, Const, Instr, Operand, Type, ops

# Names of the arguments, and the expression, as rules write it.
_FORMULAS: dict[ops.Op, tuple[tuple[str, ...], str]] = {
    np.ceil: (("x",), "-floor(-x)"),
    np.trunc: (("x",), "-floor(-x) if x < 0.0 else floor(x)"),
    np.rint: (
        ("x",),
        "floor(x) if (x - floor(x) < 0.5) | (not (x - floor(x) > 0.5)) & (2.0 * floor(0.5 * floor(x)) == floor(x)) "
        "else floor(x) + 1.0",
    ),
    np.fmin: (("a", "b"), "b if a != a else (a if (b != b) | (a <= b) else b)"),
    np.fmax: (("a", "b"), "b if a != a else (a if (b != b) | (a >= b) else b)"),
    np.sinc: (("x",), f"1.0 if x == 0.0 else sin({math.pi} * x) / ({math.pi} * (1.0 if x == 0.0 else x))"),
    np.logaddexp: (
        ("a", "b"),
        f"a + {math.log(2.0)} if a == b else (a if a > b else b) + log1p(exp(-absolute(a - b)))",
    ),
    np.logaddexp2: (
        ("a", "b"),
        f"a + 1.0 if a == b else (a if a > b else b) + {1.0 / math.log(2.0)} * log1p(exp2(-absolute(a - b)))",
    ),
}
_EXACT = {types.float32: 2.0**23, types.float64: 2.0**52}  # floats from here on are whole


def written_out(instr: Instr) -> list[Instr] | None:
    """Return instructions in the place of one on numbers, the last of them with its value; None if there are none.

    The last one is `instr` itself, changed.
    """
    if instr.op is np.floor:
        b = Builder(Block(), instr.loc, instr.origin)
        _floor(b, instr)
        return [*b.block.instrs, instr]
    if instr.op is np.cbrt:
        b = Builder(Block(), instr.loc, instr.origin)
        (value,) = instr.args
        root = b.call(ops.cube_root, b.call(builtins.abs, value, type=instr.type), type=instr.type)
        instr.op, instr.args = math.copysign, (root, value)
        return [*b.block.instrs, instr]
    if instr.op not in _FORMULAS:
        return None
    names, expression = _FORMULAS[instr.op]
    made: list[Instr] = []

    def emit(op: ops.Op, args: tuple[Operand, ...], type: Type) -> Instr:
        made.append(Instr(op, args, type, "", instr.loc, (), instr.origin))
        return made[-1]

    value = evaluated(expression, names, instr, emit)
    assert value is made[-1]
    last = made.pop()
    instr.op, instr.args, instr.keywords = last.op, last.args, ()
    return [*made, instr]


def _floor(b: Builder, instr: Instr) -> None:
    """Round through an integer, where that is exact: elsewhere a number is whole, or none."""
    (value,) = instr.args
    kind = instr.type
    has_part = b.call(
        operator.lt, b.call(builtins.abs, value, type=kind), Const(_EXACT[kind], kind), type=types.boolean
    )
    small = b.call(ops.select, has_part, value, Const(0.0, kind), type=kind)
    whole = b.call(math.floor, small, type=types.int64)
    rounded = b.call(np.float32 if kind == types.float32 else float, whole, type=kind)
    instr.op, instr.args = ops.select, (has_part, rounded, value)
