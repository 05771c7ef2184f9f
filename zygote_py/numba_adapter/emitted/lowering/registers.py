"""Which variables of a function are values of LLVM's, and need no memory on the stack.

Numba keeps a variable on the stack if it is used in another block than the one that assigns it, and LLVM makes values
of these variables again. For arrays, each a structure of ten words, this is the larger part of its work, and grows
faster than the function. In SSA form most variables are assigned once, before all their uses, and can be such values
from the start.

An array also counts its references. Numba drops one where a variable is assigned again or deleted, if the variable has
been assigned and not deleted since; the zeros on the stack say whether it has. So such a variable is a value only where
that is known for each of these statements. Some need no reference of their own: the array is an argument, which the
caller keeps, or a view of one, or the list of a method lives longer than the variable that holds the method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numba import types

from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.base.ir_walks import used_by


def kept_in_registers(blocks: Mapping[int, Any], counts_references: Callable[[str], bool]) -> set[str]:
    """Return the variables that can be values, where blocks are lowered in the order of their labels."""
    homes: dict[str, int] = {}
    several: set[str] = set()
    for label, block in blocks.items():
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                name = statement.target.name
                if name in homes:
                    several.add(name)
                homes[name] = label
    bits: dict[str, int] = {}
    for name in homes:
        if name not in several:
            bits[name] = 1 << len(bits)
    counted = sum(bit for name, bit in bits.items() if counts_references(name))
    flow = _Flow(blocks, bits)
    refused = 0
    for label, block in blocks.items():
        surely, perhaps = flow.surely[label], flow.perhaps[label]
        assigned = flow.assigned[label]
        for statement in block.body:
            if isinstance(statement, ir.Del):
                bit = bits.get(statement.value, 0)
                if bit & counted & ~surely or (bit & counted and homes[statement.value] > label):
                    refused |= bit
                surely, perhaps = surely & ~bit, perhaps & ~bit
                continue
            for used in used_by(statement):
                bit = bits.get(used.name, 0)
                if bit & ~assigned or (bit and homes[used.name] > label):
                    refused |= bit
            if isinstance(statement, ir.Assign):
                bit = bits.get(statement.target.name, 0)
                if bit & counted & perhaps:
                    refused |= bit
                surely, perhaps, assigned = surely | bit, perhaps | bit, assigned | bit
    return {name for name, bit in bits.items() if not bit & refused}


def uncounted(blocks: Mapping[int, Any], kept: set[str], typeof: Callable[[str], Any]) -> set[str]:
    """Return the variables among those `kept` that need no reference of their own.

    They are arguments that are arrays, views of these, copies of such variables, and methods of lists. Whatever takes
    one of them counts a reference for itself, but for `return`, which passes on that of the variable.
    """
    found: set[str] = set()
    passed = {
        used.name
        for block in blocks.values()
        for statement in block.body
        if isinstance(statement, ir.Return) or isinstance(getattr(statement, "value", None), ir.Yield)
        for used in used_by(statement)
    }
    for block in blocks.values():
        methods: dict[str, str] = {}  # of which lists, for those that are not deleted yet
        for statement in block.body:
            name = statement.value if isinstance(statement, ir.Del) else getattr(statement, "target", statement)
            if isinstance(statement, ir.Del):
                if methods.pop(name, None) is not None:
                    found.add(name)
            elif isinstance(statement, ir.Assign):
                name, value = statement.target.name, statement.value
                if name in kept - passed:
                    if _is_of_argument(typeof(name), value, found, typeof):
                        found.add(name)
                    elif _is_method_of_list(typeof(name), value):
                        methods[name] = value.value.name
                        continue
            methods = {method: owner for method, owner in methods.items() if owner != name}
    return found


def _is_of_argument(kind: Any, value: Any, found: set[str], typeof: Callable[[str], Any]) -> bool:
    """Return whether what is assigned is an array that is an argument, or that is made of a variable found before."""
    if type(kind) is not types.Array:
        return False
    if isinstance(value, ir.Var):
        return value.name in found and typeof(value.name) == kind
    if isinstance(value, ir.Arg):
        return typeof(f"arg.{value.name}") == kind
    return isinstance(value, ir.Expr) and value.op in _VIEWS and value.value.name in found and is_view(value, typeof)


_VIEWS = ("getitem", "static_getitem")


def is_view(value: Any, typeof: Callable[[str], Any]) -> bool:
    """Return whether an expression `a[index]` takes numbers and slices alone, so that an array is a view."""
    index = index_of(value)
    if index is None:
        return False
    kind = typeof(index.name)
    parts = kind.types if isinstance(kind, types.BaseTuple) else (kind,)
    return all(isinstance(each, types.Integer | types.SliceType) for each in parts)


def index_of(value: Any) -> Any:
    """Return the variable of the index in `a[index]`."""
    return value.index if value.op == "getitem" else value.index_var


def _is_method_of_list(kind: Any, value: Any) -> bool:
    is_attribute = isinstance(value, ir.Expr) and value.op == "getattr"
    return is_attribute and isinstance(kind, types.BoundFunction) and type(kind.this) is types.List


class _Flow:
    """The facts known of variables at the start of each block, as ints with a bit for each.

    Attributes
    ----------
    assigned : dict[int, int]
        Those that have been assigned, whichever way led to the block.
    surely, perhaps : dict[int, int]
        Those that have been assigned and not deleted since, on all ways and on some way.
    """

    def __init__(self, blocks: Mapping[int, Any], bits: Mapping[str, int]) -> None:
        every = (1 << len(bits)) - 1
        effects = {label: self._effect(block, bits) for label, block in blocks.items()}
        start = min(blocks)
        self.assigned = dict.fromkeys(blocks, every)
        self.surely = dict.fromkeys(blocks, every)
        self.perhaps = dict.fromkeys(blocks, 0)
        self.assigned[start] = self.surely[start] = 0
        work = sorted(blocks, reverse=True)
        while work:
            label = work.pop()
            touched, held, given = effects[label]
            assigned = self.assigned[label] | given
            surely = self.surely[label] & ~touched | held
            perhaps = self.perhaps[label] & ~touched | held
            for after in blocks[label].terminator.get_targets():
                before = self.assigned[after], self.surely[after], self.perhaps[after]
                now = before[0] & assigned, before[1] & surely, before[2] | perhaps
                if now != before:
                    self.assigned[after], self.surely[after], self.perhaps[after] = now
                    work.append(after)

    def _effect(self, block: Any, bits: Mapping[str, int]) -> tuple[int, int, int]:
        """Return what a block assigns or deletes, what it assigns last, and what it assigns."""
        touched = held = given = 0
        for statement in block.body:
            if isinstance(statement, ir.Del):
                bit = bits.get(statement.value, 0)
                touched, held = touched | bit, held & ~bit
            elif isinstance(statement, ir.Assign):
                bit = bits.get(statement.target.name, 0)
                touched, held, given = touched | bit, held | bit, given | bit
        return touched, held, given
