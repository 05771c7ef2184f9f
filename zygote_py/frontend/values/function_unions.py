"""One of several inner functions: its number, its captured values, and placeholders for those of the others.

    if x > 0.0: back = lambda dy: (c * dy,)             back = (0, c, empty array)
    else:       back = lambda dy: (w[0] * dy,)          back = (1, 0.0, w)

Only the pullback of a rule may be such a value; see `zygote_py.numba_adapter.choices`.
"""

from __future__ import annotations

import builtins
import operator

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.frontend.values.bundles import Bundle, components, leaves_of, plain
from zygote_py.frontend.values.emitter import Emitter
from zygote_py.frontend.values.iteration import INT
from zygote_py.ir import Const, Operand, Type, components_of, is_scalar, ops, zero


def chosen(at: Emitter, value: Bundle, type_: Type) -> Bundle:
    """Return a function as one of several, among which it is; or one of several as one of more."""
    _, *functions = components_of(type_)
    if not isinstance(value.type, numba_adapter.ChoiceType):
        which: Operand = Const(functions.index(value.type), INT)
        held = {value.type: value.leaves}
    else:
        number, *parts = components(value)
        held = {part.type: part.leaves for part in parts}
        which = old = number.leaves[0]
        numbers = [functions.index(part.type) for part in parts]
        if numbers != list(range(len(parts))):  # they are in another order
            which = Const(numbers[-1], INT)
            for place, new in enumerate(numbers[:-1]):
                is_it = at.emit(operator.eq, (old, Const(place, INT)), types.boolean)
                which = at.emit(ops.select, (is_it, Const(new, INT), which), INT)
    leaves = [which]
    for function in functions:
        leaves += held.get(function) or [nothing(at, leaf) for leaf in leaves_of(function)]
    return Bundle(type_, tuple(leaves))


def nothing(at: Emitter, leaf: Type) -> Operand:
    """Return a placeholder for a value of this type."""
    own = plain(leaf)
    if isinstance(own, types.NoneType):
        return Const(None, types.none)
    if is_scalar(own):
        return zero(own)
    if isinstance(own, types.Array) and is_scalar(own.dtype):
        return empty_array(at, own)
    raise at.refuse(
        f"a value of type {leaf} that there is on one path only is not supported",
        "let there be one on all paths; or use numbers, arrays and tuples",
    )


def empty_array(at: Emitter, type_: types.Array) -> Operand:
    """Return an array without elements."""
    empty = at.emit(ops.zeros, (Const(0, INT),) * type_.ndim, types.Array(type_.dtype, type_.ndim, "C"))
    if type_.layout == "C":
        return empty
    if type_.layout == "F":
        return at.emit(np.transpose, (empty,), types.Array(type_.dtype, type_.ndim, "F"))
    bounds = Const(None, types.none), Const(None, types.none), Const(2, INT)
    every_other = [at.emit(builtins.slice, bounds, types.slice3_type) for _ in range(type_.ndim)]
    return at.emit(ops.getitem, (empty, *every_other), types.Array(type_.dtype, type_.ndim, "A"))
