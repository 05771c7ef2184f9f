"""Rewrite the accumulation into a whole array as the assignment of a sum, which `ir.arrays` expands into a loop.

accumulate %x, %v           ->      %t = add %x, %v : f64[:]
                                    setitem %x, %t
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.building.builder import Builder, rewrite
from zygote_py.ir.core import Function, Instr


def write_out_whole_accumulations(function: Function) -> None:
    """Replace the accumulations without an index."""
    rewrite(function, _write_out)


def _write_out(b: Builder, instr: Instr) -> None:
    array, *rest = instr.args or (instr,)
    kind = array.type
    if instr.op is not ops.accumulate or len(rest) != 1 or not isinstance(kind, types.Array):
        b.add(instr)
        return
    b.loc = instr.loc
    if kind.ndim:
        total = b.call(operator.add, array, *rest, type=kind.copy(layout="C"))
    else:
        both = [
            b.call(ops.getitem, each, type=kind.dtype) if isinstance(each.type, types.Array) else each
            for each in (array, *rest)
        ]
        total = b.call(operator.add, *both, type=kind.dtype)
    b.call(ops.setitem, array, total, type=types.none)
