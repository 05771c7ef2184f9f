"""Tuples of tuples as the numbers and arrays in them: how values are taken apart, put together, named and returned.

    split(%p: (f64, (i64, f64)))        getitem %p, 0     %t = getitem %p, 1     getitem %t, 0     getitem %t, 1
    join(%x, %n, %y)                    %t = pack %n, %y                         pack %x, %t
    flatten(%x, %n, %y)                 pack %x, %n, %y                          what a routine returns

The numbers and arrays in a type are listed by `zygote_py.frontend.values.bundles.leaves_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from numba import types

from zygote_py.frontend.values.bundles import Bundle, components, is_tuple, leaves_of, plain
from zygote_py.ir import (
    NONE,
    Builder,
    Const,
    Instr,
    Loc,
    Operand,
    Param,
    Type,
    components_of,
    names_of,
    ops,
    result_type,
)


def split(b: Builder, value: Operand, kind: Type) -> Bundle:
    """Take a value of a type apart; a value known by its type alone has no operand."""
    if not is_tuple(kind):
        return Bundle(kind, (value,) if leaves_of(kind) else ())
    leaves: list[Operand] = []
    for number, part in enumerate(components_of(kind)):
        if leaves_of(part):
            leaves += split(b, _item(b, value, number, part), part).leaves
    return Bundle(kind, tuple(leaves))


def join(b: Builder, value: Bundle, leaf: Callable[[Bundle], Operand]) -> Operand:
    """Put the tuples of a value together again; `leaf` returns the operand of a component that is not a tuple."""
    if not is_tuple(value.type):
        return leaf(value)
    return b.call(ops.pack, *[join(b, part, leaf) for part in components(value)], type=plain(value.type))


def flatten(b: Builder, value: Bundle) -> Operand:
    """Return what a routine returns: nothing, the one number or array of a result, or a tuple of them."""
    if len(value.leaves) > 1:
        return b.call(ops.pack, *value.leaves, type=flat_type(leaves_of(value.type)))
    return value.leaves[0] if value.leaves else NONE


def unflatten(b: Builder, value: Operand, kind: Type) -> Bundle:
    """Return the value of a type from the result of a routine, which is in the form of `flatten`."""
    leaves = leaves_of(kind)
    if len(leaves) < 2:
        return Bundle(kind, (value,) if leaves else ())
    parts = (NONE if plain(leaf) == types.none else _item(b, value, number, leaf) for number, leaf in enumerate(leaves))
    return Bundle(kind, tuple(parts))


def flat_type(leaves: Iterable[Type]) -> Type:
    """Return the type of a routine's flat result, for a result of these parts."""
    return result_type(tuple(map(plain, leaves)))


def parameters_of(name: str, type: Type, loc: Loc) -> list[Param]:
    """Return the parameters of a routine for one of a function: one for each number or array in it."""
    names = _names(name, type)
    leaves = leaves_of(type)
    if len(names) != len(leaves):  # a range, an object: known by the type alone
        names = [name] * len(leaves) if len(leaves) == 1 else [f"{name}_{number}" for number in range(len(leaves))]
    return [Param(plain(leaf), each, loc) for each, leaf in zip(names, leaves, strict=True)]


def _names(name: str, type: Type) -> list[str]:
    if isinstance(type, types.Optional):
        return [f"has_{name}", *_names(name, type.type)]
    if not is_tuple(type):
        return [name]
    parts = zip(names_of(type), components_of(type), strict=True)
    return [each for part, kind in parts for each in _names(f"{name}_{part}", kind) if leaves_of(kind)]


def _item(b: Builder, value: Operand, number: int, kind: Type) -> Operand:
    """Return an item of a tuple: what was packed, if that is known."""
    if isinstance(value, Instr) and value.op is ops.pack:
        return value.args[number]
    return b.call(ops.getitem, value, Const(number, types.int64), type=plain(kind))
