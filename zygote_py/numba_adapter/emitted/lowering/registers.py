"""Which variables of a function are values of LLVM's, and need no memory on the stack.

Numba keeps a variable on the stack if it is used in another block than the one that assigns it, and LLVM makes values
of these variables again. For arrays, each a structure of ten words, this is the larger part of its work, and grows
faster than the function. In SSA form most variables are assigned once, before all their uses, and can be such values
from the start.

An array also counts its references. Numba drops one where a variable is assigned again or deleted, if the variable has
been assigned and not deleted since; the zeros on the stack say whether it has. So such a variable is a value only where
that is known for each of these statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
