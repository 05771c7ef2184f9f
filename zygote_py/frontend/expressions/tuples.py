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
        return LoweredValue(own, (Const(holds(at, first), own),))
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


def holds(at: Emitter, value: LoweredValue) -> bool:
    """Return the truth value of a tuple, an inner function, or a dataclass that does not define it."""
    own = value.type
    if isinstance(own, numba_adapter.DataclassType):
        defined = next((name for name in ("__bool__", "__len__") if hasattr(own.instance_class, name)), None)
        if defined is not None:
            message = f"the truth value of `{own.instance_class.__name__}`, which defines `{defined}`, is not supported"
            raise at.refuse(message, "write the condition with its fields")
    return isinstance(own, numba_adapter.FieldsType) or bool(components(value))


def are_of_one_class(a: LoweredValue, b: LoweredValue) -> bool:
    """Return whether two values are of one dataclass, and equal if their fields are."""
    own, other = a.type, b.type
    if not (isinstance(own, numba_adapter.DataclassType) and isinstance(other, numba_adapter.DataclassType)):
        return False
    return own.instance_class is other.instance_class and own.instance_class.__dataclass_params__.eq


def refuse_sequence(at: Emitter, value: LoweredValue) -> None:
    """Refuse a dataclass or a function used as a sequence: Numba treats it as a tuple, Python does not."""
    if isinstance(value.type, numba_adapter.DataclassType):
        name = value.type.instance_class.__name__
        raise at.refuse(f"`{name}` is a dataclass and no tuple", "read its fields by their names")
    if numba_adapter.is_closure(value.type):
        raise at.refuse("this operation on a function is not supported", "call it, and use what it returns")
