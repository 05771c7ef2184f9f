"""Checks that the lengths of the factors of products fit, since products that only adjoints ask for are not computed.

    %y = matmul %a, %b : f64[:, :]      ->      %n = dim %a, 1 : i64
                                                %m = dim %b, 0 : i64
                                                check_lengths %n, %m
                                                %y = matmul %a, %b : f64[:, :]

Where the lengths are equal in every execution nothing is checked.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.arrays.classify import ndim
from zygote_py.ir.arrays.shapes import INDEX, Length, Shapes
from zygote_py.ir.arrays.writer import Writer
from zygote_py.ir.core import Const, Function, Instr
from zygote_py.ir.types import is_scalar


def check_products(function: Function) -> None:
    """Add checks of the lengths of factors before products, in place."""
    shapes = Shapes()
    for block in function.blocks:
        instrs, block.instrs = block.instrs, []
        writer = Writer(block, [], python_errors=False)
        for instr in instrs:
            found = _lengths(instr, shapes)
            if found is not None and found[0].key != found[1].key:
                writer.loc = instr.loc
                axes = zip(instr.args, _axes(instr), strict=False)
                lengths = [writer.add(ops.dim, arg, Const(axis, INDEX), type=INDEX, hint="n") for arg, axis in axes]
                writer.add(ops.check_lengths, *lengths, type=types.none)
            block.instrs.append(instr)


def drop_product_checks(function: Function) -> bool:
    """Remove checks that others make as well, in place. Return whether there were any.

    A scalar product that is computed compares the lengths itself. Numba's product of a matrix does so only if there is
    anything to add up. The function has no products whose results are not used.
    """
    shapes, count = Shapes(), 0
    for block in function.blocks:
        compared = {
            _keys(lengths) for instr in block.instrs if (lengths := _lengths(instr, shapes)) and is_scalar(instr.type)
        }
        kept: list[Instr] = []
        for instr in block.instrs:
            if instr.op is ops.check_lengths:
                keys = _keys(map(shapes.length, instr.args))
                if keys[0] == keys[1] or keys in compared:
                    count += 1
                    continue
                compared.add(keys)
            kept.append(instr)
        block.instrs = kept
    return count > 0


def _keys(lengths: Iterable[Length]) -> tuple[Hashable, ...]:
    return tuple(length.key for length in lengths)


def _lengths(instr: Instr, shapes: Shapes) -> tuple[Length, Length] | None:
    """Return the lengths that must be equal for a product."""
    axes = _axes(instr)
    if not axes:
        return None
    first, second = (shapes.of(arg)[axis] for arg, axis in zip(instr.args, axes, strict=False))
    return first, second


def _axes(instr: Instr) -> tuple[int, ...]:
    """Return the axes of its two factors along which a product sums; none of another operation."""
    if len(instr.args) != 2:
        return ()
    ranks = tuple(map(ndim, instr.args))
    if ranks == (1, 1) and ops.of(instr.op).scalar_product and is_scalar(instr.type):
        return 0, 0
    if instr.op in (np.dot, operator.matmul) and min(ranks) >= 1 and max(ranks) == 2:
        return ranks[0] - 1, 0
    return ()
