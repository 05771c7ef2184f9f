"""Which variables of a function are values of LLVM's, and need no memory on the stack.

Numba keeps a variable on the stack if it is used in another block than the one that assigns it, and LLVM makes values
of these variables again. For arrays, each a structure of ten words, this is the larger part of its work, and grows
faster than the function. In SSA form most variables are assigned once, before all their uses, and can be such values
from the start.

An array also counts its references. Numba drops one where a variable is assigned again or deleted, if the variable has
been assigned and not deleted since; the zeros on the stack say whether it has. So such a variable is a value only where
that is known for each of these statements. Some need no reference of their own: arguments, which the caller keeps, and
views of an array and methods of a list that another variable holds for longer.
"""

from __future__ import annotations

from collections import Counter
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


def returned_only(blocks: Mapping[int, Any], kept: set[str], kind: Any, typeof: Callable[[str], Any]) -> set[str]:
    """Return the variables among those `kept` that are tuples of the type `kind`, made of items to be returned."""
    uses = Counter(used.name for block in blocks.values() for each in block.body for used in used_by(each))
    found = set()
    for block in blocks.values():
        if isinstance(block.terminator, ir.Return):
            made = {each.target.name: each.value for each in block.find_insts(ir.Assign)}
            name = block.terminator.value.name
            while name in kept and uses[name] == 1 and typeof(name) == kind:
                value: Any = made.get(name)
                if getattr(value, "op", "") == "build_tuple":
                    found.add(name)
                if getattr(value, "op", "") != "cast":
                    break
                name = value.value.name
    return found


def uncounted(blocks: Mapping[int, Any], kept: set[str], typeof: Callable[[str], Any]) -> set[str]:
    """Return the variables among those `kept` that need no reference of their own.

    They are arguments that are arrays, and views, copies and methods of what another variable holds until after they
    are deleted. Whatever takes one of them counts a reference for itself, but for `return`, which passes on that of the
    variable.
    """
    passed = {
        used.name
        for block in blocks.values()
        for statement in block.body
        if isinstance(statement, ir.Return) or isinstance(getattr(statement, "value", None), ir.Yield)
        for used in used_by(statement)
    }
    counted = set(passed)
    while True:
        holders = _holders(blocks, kept, counted, typeof)
        outliving = _outliving(blocks, holders) if any(holders.values()) else set()
        if not outliving:
            return set(holders)
        counted |= outliving


def _holders(
    blocks: Mapping[int, Any], kept: set[str], counted: set[str], typeof: Callable[[str], Any]
) -> dict[str, str | None]:
    """Return the variables that may be held by another, with the one that counts; None for an argument's array."""
    found: dict[str, str | None] = {}
    for block in blocks.values():
        for statement in block.find_insts(ir.Assign):
            name, value = statement.target.name, statement.value
            if name not in kept or name in counted:
                continue
            if isinstance(value, ir.Arg):
                if type(typeof(name)) is types.Array and typeof(f"arg.{value.name}") == typeof(name):
                    found[name] = None
            elif (owner := _owner(typeof(name), value, typeof)) is not None:
                if owner in found:
                    found[name] = found[owner]
                elif owner in kept and not isinstance(value, ir.Var):  # whose copy is deleted later, mostly
                    found[name] = owner
    return found


def _outliving(blocks: Mapping[int, Any], holders: Mapping[str, str | None]) -> set[str]:
    """Return the variables that may not be deleted yet when those are that hold what they need."""
    bits = {name: 1 << number for number, name in enumerate(holders)}
    held = dict.fromkeys(filter(None, holders.values()), 0)
    for name, holder in holders.items():
        if holder is not None:
            held[holder] |= bits[name]
    flow, found = _Flow(blocks, bits), 0
    for label, block in blocks.items():
        perhaps = flow.perhaps[label]
        for statement in block.body:
            if isinstance(statement, ir.Del):
                perhaps &= ~bits.get(statement.value, 0)
                found |= perhaps & held.get(statement.value, 0)
            elif isinstance(statement, ir.Assign):
                perhaps |= bits.get(statement.target.name, 0)
    return {name for name, bit in bits.items() if bit & found}


def _owner(kind: Any, value: Any, typeof: Callable[[str], Any]) -> Any:
    """Return the variable that holds what is assigned: of `a` in `a[0]`, in `a` itself, and in `a.append`."""
    if isinstance(kind, types.BoundFunction):
        is_method = type(kind.this) is types.List and getattr(value, "op", None) == "getattr"
        return value.value.name if is_method else None
    if type(kind) is not types.Array:
        return None
    if isinstance(value, ir.Var):
        return value.name if typeof(value.name) == kind else None
    index = index_of(value)
    is_view = index is not None and type(typeof(value.value.name)) is types.Array and _is_of_views(typeof(index.name))
    return value.value.name if is_view else None


def copies_of_arrays(blocks: Mapping[int, Any], kept: set[str]) -> dict[str, str]:
    """Return the variables that hold copies, `b = a.copy()`, each with the variable of the array.

    Both are variables that are values, and so hold the same arrays wherever they are used.
    """
    assigned = {
        statement.target.name: statement.value
        for block in blocks.values()
        for statement in block.find_insts(ir.Assign)
        if statement.target.name in kept
    }

    def value_of(name: str) -> Any:
        value = assigned.get(name)
        return value_of(value.name) if isinstance(value, ir.Var) else value

    found = {}
    for name in assigned:
        call = value_of(name)
        method: Any = value_of(call.func.name) if getattr(call, "op", None) == "call" and not call.args else None
        if getattr(method, "op", None) == "getattr" and method.attr == "copy" and method.value.name in kept:
            found[name] = method.value.name
    return found


def index_of(value: Any) -> Any:
    """Return the variable of the index in `a[index]`; None for other expressions."""
    match getattr(value, "op", None):
        case "getitem":
            return value.index
        case "static_getitem":
            return value.index_var
    return None


def _is_of_views(index: Any) -> bool:
    """Return whether an index of a type gives a view if it gives an array: it has numbers and slices alone."""
    parts: Any = index if isinstance(index, types.BaseTuple) else [index]
    return all(isinstance(each, types.Integer | types.SliceType) for each in parts)


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
