"""Objects of a `jitclass` that a function makes: memory for each field, shared by all references to the object.

    acc = Counter(x)        %acc_total = zeros 1 : f64[:]          a number is the element of an array of one
    acc.total += y          %t0 = getitem %acc_total, 0            anything else the element of a list of one
                            %t1 = add %t0, %y
                            setitem %acc_total, %t1, 0

`__init__` and the methods are inlined like functions, the object first. A number that `__init__` does not set is zero,
as with Numba. An object cannot be an argument, a result or a captured value.
"""

from __future__ import annotations

from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.frontend.values.alternatives import empty_array
from zygote_py.frontend.values.bundles import Bundle, cells_of, leaves_of
from zygote_py.frontend.values.emitter import Emitter
from zygote_py.frontend.values.iteration import INT
from zygote_py.ir import ops
from zygote_py.ir.core import Const, Operand, Type

_FIRST = Const(0, INT)


def make(at: Emitter, type_: Type) -> Bundle:
    """Return a new object; its fields are zeros and empty arrays."""
    made: list[Operand] = []
    for field in numba_adapter.fields_of_object(type_).values():
        for leaf, cell in zip(leaves_of(field), cells_of(field), strict=True):
            if isinstance(cell, types.Array):
                made.append(at.emit(ops.zeros, (Const(1, INT),), cell))
            else:
                made.append(at.emit(ops.stack, (), cell))
                at.emit(ops.push, (made[-1], _of_field(at, leaf)), types.none)
    return Bundle(type_, tuple(made))


def _of_field(at: Emitter, leaf: Type) -> Operand:
    """Return the value of a field before anything is assigned to it."""
    if isinstance(leaf, types.List):
        raise at.refuse("a list in a field of a jitclass object is not supported", "use an array")
    if not isinstance(leaf, types.Array) or leaf.layout == "F":
        raise at.refuse(f"a field of type `{leaf}` of a jitclass object is not supported", "use numbers and arrays")
    return empty_array(at, leaf)


def read(at: Emitter, value: Bundle, name: str) -> Bundle:
    """`value.name`"""
    field, cells = _cells(value, name)
    return at.emit_each(ops.getitem, cells, field, _FIRST)


def assign(at: Emitter, statement: st.SetAttribute) -> None:
    """`target.name = value`"""
    target = at.read(statement.target)
    if not numba_adapter.is_object(target.type) or statement.name not in numba_adapter.fields_of_object(target.type):
        raise at.refuse("setting an attribute is not supported", "use local variables, or make a new object", "=")
    field, cells = _cells(target, statement.name)
    given = at.cast_bundle(at.read(statement.value), field)
    for cell, leaf in zip(cells, given.leaves, strict=True):
        at.emit(ops.setitem, (cell, leaf, _FIRST), types.none)


def _cells(value: Bundle, name: str) -> tuple[Type, tuple[Operand, ...]]:
    start = 0
    for each, field in numba_adapter.fields_of_object(value.type).items():
        count = len(leaves_of(field))
        if each == name:
            return field, value.leaves[start : start + count]
        start += count
    raise KeyError(name)
