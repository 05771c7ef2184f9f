"""Variables that are `None` on one path and hold a value on another: whether there is a value, and the value.

    prev = None                         prev = (False, 0.0)
    for i in range(n):
        if prev is not None:            branch on the first component
            s += prev * x               check_present %flag; the second component
        prev = x                        prev = (True, x)

Reading such a variable, other than to copy it or to test whether it is `None`, yields the value, which must exist.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Collection
from typing import Any

from numba import types

from zygote_py.base import statements as st
from zygote_py.frontend.values.bundles import Bundle, leaves_of
from zygote_py.frontend.values.emitter import Emitter
from zygote_py.frontend.values.function_unions import nothing
from zygote_py.frontend.values.run_time_checks import check_present
from zygote_py.ir import Const, Operand, Type, ops


def is_optional(type: Type) -> bool:
    """Return whether values of this type may be `None`."""
    return isinstance(type, types.Optional)


def held(at: Emitter, value: Bundle, type_: types.Optional) -> Bundle:
    """Return a value, or `None`, as one that may be `None`."""
    if isinstance(value.type, types.NoneType):
        return Bundle(type_, (_flag(False), *(nothing(at, leaf) for leaf in leaves_of(type_.type))))
    own: Any = value.type
    if is_optional(own):
        flag, *leaves = value.leaves
        value = Bundle(own.type, tuple(leaves), value.static)
    else:
        flag = _flag(True)
    return Bundle(type_, (flag, *at.cast_bundle(value, type_.type).leaves))


def _flag(value: bool) -> Const:
    return Const(value, types.boolean)


def present(at: Emitter, value: Bundle) -> Bundle:
    """Return the value of an optional, which must not be `None` at this point."""
    own: Any = value.type
    kind = own.type
    flag, *leaves = value.leaves
    at.emit(check_present, (flag, Const(str(kind), types.unicode_type)), types.none)
    return Bundle(kind, tuple(leaves))


def is_none(at: Emitter, op: ops.Op, args: list[Bundle]) -> Operand | None:
    """Return a comparison of what may be `None` with `None`; None if this is another operation."""
    if op not in (operator.is_, operator.is_not, operator.eq, operator.ne):
        return None
    may_be = [arg for arg in args if is_optional(arg.type)]
    if len(may_be) != 1 or not any(isinstance(arg.type, types.NoneType) for arg in args):
        return None
    flag = may_be[0].leaves[0]
    if op in (operator.is_not, operator.ne):
        return flag
    return at.emit(operator.not_, (flag,), types.boolean, "c")


def result(at: Emitter, blocks: Collection[st.TypedBlock], type_: Any) -> Any:
    """Return the type of the result, which may be of a variable that may be `None`, but that is not returned itself."""
    assigned = [each for block in blocks for each in block.statements if isinstance(each, st.Assign)]
    times = Counter(each.target for each in assigned)
    sources = {
        each.target: each.value.source
        for each in assigned
        if isinstance(each.value, st.Copy) and times[each.target] == 1
    }
    endings = [block.ending for block in blocks if isinstance(block.ending, st.Leave)]
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
