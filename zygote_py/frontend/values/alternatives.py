"""Variables that hold different kinds of values on different paths: `None` or a value, one of several inner functions.

    prev = None                         prev = (False, 0.0)
    for i in range(n):
        if prev is not None:            branch on the first component
            s += prev * x               check_present %flag; the second component
        prev = x                        prev = (True, x)

Reading a variable that may be `None`, other than to copy it or to test whether it is `None`, yields the value, which
must exist. Of several functions there are a number, the captured values, and placeholders for those of the others:

    if x > 0.0: back = lambda dy: (c * dy,)             back = (0, c, empty array)
    else:       back = lambda dy: (w[0] * dy,)          back = (1, 0.0, w)

Only the pullback of a rule may be such a function; see `zygote_py.numba_adapter.choices`.
"""

from __future__ import annotations

import builtins
import operator
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.frontend.values.bundles import LoweredValue, components, is_list, is_tuple, leaves_of, plain
from zygote_py.frontend.values.emitter import Emitter
from zygote_py.frontend.values.iteration import INT
from zygote_py.frontend.values.run_time_checks import check_present
from zygote_py.ir import Const, Operand, Type, components_of, is_scalar, ops, zero


def is_optional(type: Type) -> bool:
    """Return whether values of this type may be `None`."""
    return isinstance(type, types.Optional)


def held(at: Emitter, value: LoweredValue, type_: types.Optional) -> LoweredValue:
    """Return a value, or `None`, as one that may be `None`."""
    if isinstance(value.type, types.NoneType):
        return LoweredValue(type_, (_flag(False), *(nothing(at, leaf) for leaf in leaves_of(type_.type))))
    own: Any = value.type
    if is_optional(own):
        flag, *leaves = value.leaves
        value = LoweredValue(own.type, tuple(leaves), value.static)
    else:
        flag = _flag(True)
    return LoweredValue(type_, (flag, *at.cast_bundle(value, type_.type).leaves))


def cast(at: Emitter, bundle: LoweredValue, type: Type) -> LoweredValue:
    """Return a value as one of another type: numbers are converted, also those in tuples."""
    if bundle.type == type:
        return bundle
    if isinstance(type, types.Optional):
        return held(at, bundle, type)
    if is_optional(bundle.type):
        return at.cast_bundle(present(at, bundle), type)
    if is_list(type) and is_list(bundle.type) and (had := _items(bundle.type)) != (asked := _items(type)):
        raise at.refuse(
            f"a list of `{had}` in one place is one of `{asked}` in another", "give the elements of both one type"
        )
    if isinstance(type, numba_adapter.ChoiceType):
        return chosen(at, bundle, type)
    if is_tuple(type) and is_tuple(bundle.type):
        parts = zip(components(bundle), components_of(type), strict=True)
        made = [at.cast_bundle(part, to) for part, to in parts]
        return LoweredValue(type, tuple(leaf for part in made for leaf in part.leaves), bundle.static)
    if len(bundle.leaves) == 1 and len(leaves_of(type)) == 1:
        return replace(bundle, type=type, leaves=(at.cast(bundle.leaves[0], type),))
    return replace(bundle, type=type)


def _items(type: Type) -> Type:
    own: Any = plain(type)
    return own.dtype  # type: ignore[no-any-return]


def _flag(value: bool) -> Const:
    return Const(value, types.boolean)


def present(at: Emitter, value: LoweredValue) -> LoweredValue:
    """Return the value of an optional, which must not be `None` at this point."""
    own: Any = value.type
    kind = own.type
    flag, *leaves = value.leaves
    at.emit(check_present, (flag, Const(str(kind), types.unicode_type)), types.none)
    return LoweredValue(kind, tuple(leaves))


def is_none(at: Emitter, op: ops.Op, args: list[LoweredValue]) -> Operand | None:
    """Return a comparison of what may be `None` with `None`; None if this is another operation."""
    if op not in (operator.is_, operator.is_not, operator.eq, operator.ne):
        return None
    may_be = [arg for arg in args if is_optional(arg.type)]
    if may_be and op in (operator.is_, operator.is_not) and not any(_is_none_type(arg.type) for arg in args):
        raise at.refuse("`is` with a value that may be `None` is not supported", "compare it with `None`, or use `==`")
    if len(may_be) != 1 or not any(_is_none_type(arg.type) for arg in args):
        return None
    flag = may_be[0].leaves[0]
    return flag if op in (operator.is_not, operator.ne) else at.emit(operator.not_, (flag,), types.boolean, "c")


def _is_none_type(type: Type) -> bool:
    return isinstance(type, types.NoneType)


def result(at: Emitter, blocks: Collection[st.TypedBlock], type_: Any) -> Any:
    """Return the type of the result, which may be of a variable that may be `None`, but that is not returned itself."""
    assigned = [each for block in blocks for each in block.statements if isinstance(each, st.Assign)]
    times = Counter(each.target for each in assigned)
    sources = {
        each.target: each.value.source
        for each in assigned
        if isinstance(each.value, st.Copy) and times[each.target] == 1
    }
    endings = [block.ending for block in blocks if isinstance(block.ending, st.Return)]
    for ending in endings:
        value = ending.value
        while value in sources:
            value = sources[value]
        if isinstance(at.types[value], types.NoneType):
            at.loc = endings[0].loc
            raise at.refuse(
                "a function that returns a value on one path and `None` on another is not supported",
                "return a value everywhere, or raise an exception",
                "return",
            )
    return type_.type


# --------------------------------------------------------------------------------------------- one of several functions


def chosen(at: Emitter, value: LoweredValue, type_: Type) -> LoweredValue:
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
    return LoweredValue(type_, tuple(leaves))


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
