"""Placeholders for values that were not computed, where a value of their type must be saved in any case.

Numbers need none: an undefined number that is saved is zero once the function is emitted.
"""

from __future__ import annotations

from collections.abc import Iterable

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import reach
from zygote_py.ir.core import Block, Const, Instr, InternalError, Operand, Phi, Type, Undef, zero, zero_key
from zygote_py.ir.types import components_of


def nothing(type: Type, hint: str, block: Block) -> Operand:
    """Return zero, or an empty array or list, or a tuple of these, created at the end of a block."""
    if isinstance(type, types.Number | types.Boolean):
        return zero(type)
    match type:
        case types.List():
            made = Instr(ops.stack, (), type, f"no_{hint or 'list'}")
        case types.DictType():
            key = zero_key(type.key_type)
            assert key is not None  # the dict could not have been made
            made = Instr(ops.no_slots, (key,), type, f"no_{hint or 'slots'}")
        case types.Array(ndim=ndim):
            made = Instr(ops.record, (Const(0, types.int64),) * ndim, type, f"no_{hint or 'array'}")
        case types.BaseTuple():
            items = tuple(nothing(item, "", block) for item in components_of(type))
            made = Instr(ops.pack, items, type)
        case _:
            raise InternalError(
                f"joint: a value of type {type} that has to be kept where it may not have been computed"
            )
    block.instrs.append(made)
    return made


def define(values: Iterable[Operand], block: Block, *, numbers: bool = True) -> None:
    """Replace undefined operands, also `numbers`, by placeholders, which are created at the end of `block`.

    The values of a type share one, but for lists, which may be taken for the same list then.
    """
    given = list(values)
    for value in given:
        if isinstance(value.type, types.List):
            _define([value], block, numbers)
    _define(given, block, numbers)


def _define(values: Iterable[Operand], block: Block, numbers: bool) -> None:
    made: dict[Type, Operand] = {}
    for phi in reach(values, lambda each: each.args if isinstance(each, Phi) else ()):
        if not isinstance(phi, Phi) or (isinstance(phi.type, types.Number | types.Boolean) and not numbers):
            continue
        for pred, operand in phi.incoming.items():
            if isinstance(operand, Undef):
                if phi.type not in made:
                    made[phi.type] = nothing(phi.type, phi.hint, block)
                phi.incoming[pred] = made[phi.type]
