"""Calls with tuples, and what is a tuple for Numba alone: dataclasses and inner functions."""

from __future__ import annotations

import builtins
import operator
from functools import reduce

from zygote_py import numba_adapter
from zygote_py.frontend.values import INT, Emitter, LoweredValue, components, plain
from zygote_py.ir import Const, Type


def call(at: Emitter, callee: object, args: list[LoweredValue], type_: Type) -> LoweredValue | None:
    """Lower the call of a function of Python's with a tuple; None for any other function."""
    if callee not in (builtins.len, builtins.bool, builtins.tuple, builtins.min, builtins.max, builtins.sum):
        return None
    first, own = args[0], plain(type_)
    parts = components(first)
    if callee is builtins.bool:
        return LoweredValue(own, (Const(holds(first), own),))
    refuse_sequence(at, first)
    match callee:
        case builtins.len:
            return LoweredValue(own, (Const(len(parts), INT),))
        case builtins.tuple:
            return first
        case builtins.min | builtins.max if len(args) == 1 and parts:
            items = [at.cast(part.leaves[0], own) for part in parts]
            return LoweredValue(own, (items[0] if len(items) == 1 else at.emit(callee, items, own),))
        case builtins.sum if parts:
            items = [at.cast(part.leaves[0], own) for part in (*args[1:], *parts)]
            return LoweredValue(own, (reduce(lambda a, b: at.emit(operator.add, (a, b), own), items),))
    return None


def holds(value: LoweredValue) -> bool:
    """Return the truth value of a tuple, a dataclass or an inner function."""
    return isinstance(value.type, numba_adapter.FieldsType) or bool(components(value))


def refuse_sequence(at: Emitter, value: LoweredValue) -> None:
    """Refuse a dataclass or a function used as a sequence: Numba treats it as a tuple, Python does not."""
    if isinstance(value.type, numba_adapter.DataclassType):
        name = value.type.instance_class.__name__
        raise at.refuse(f"`{name}` is a dataclass and no tuple", "read its fields by their names")
    if numba_adapter.is_closure(value.type):
        raise at.refuse("this operation on a function is not supported", "call it, and use what it returns")
