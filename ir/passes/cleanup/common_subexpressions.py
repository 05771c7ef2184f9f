"""Eliminate common subexpressions: reuse the first result where it is available.

    %a = mul %x, %y : f64
    %b = mul %y, %x : f64           ->      %a = mul %x, %y : f64
    %c = add %a, %b : f64                   %c = add %a, %a : f64

Merged are pure operations, and reads of memory without a possible write in between: of memory that is never written to,
and within one block of memory that no instruction between the two writes to. A read of an element just stored is
replaced by the stored value. The operands of `add` and `mul` of numbers may be exchanged, and what a function of `math`
has computed is not computed again by NumPy's, which unlike it raises nothing in plain Python. Named constants are not
merged, since they have the names of different variables. Nothing is moved: the first result must dominate the second.

Scoped value numbering over the dominator tree, as in Briggs, Cooper and Simpson, "Value Numbering", 1997.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Memory, dominator_tree, effect, reads, writes
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Phi, Value
from zygote_py.ir.ops import Effect
from zygote_py.ir.walks import replace

_SCALARS = (types.Number, types.Boolean, types.UnicodeType, types.NoneType)
_NAMES = ("sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "cosh", "tanh")
_IN_MATH = {getattr(np, name): getattr(math, name) for name in _NAMES}  # of a float, both are the same in Numba


def merge_common_subexpressions(function: Function) -> None:
    """Replace instructions, and phis, by equal ones that dominate them."""
    table = _Table(Memory(function))
    tree = dominator_tree(function)
    entered: list[tuple[Block, int]] = [(function.entry, 0)]
    while entered:
        block, known = entered.pop()
        table.forget(known)
        table.number(block)
        entered += [(child, len(table.added)) for child in reversed(tree.children[block])]
    replace(function, table.replaced)


class _Table:
    """The computations available in a block; those of a subtree are removed after it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.known: dict[Hashable, Value] = {}
        self.added: list[Hashable] = []
        self.replaced: dict[Value, Operand] = {}
        self.order: dict[Hashable, int] = {}

    def forget(self, size: int) -> None:
        while len(self.added) > size:
            del self.known[self.added.pop()]

    def number(self, block: Block) -> None:
        for phi in block.phis:
            incoming = frozenset((pred, self.key(operand)) for pred, operand in phi.incoming.items())
            self.look_up(phi, (block, phi.type, incoming))
        written: Counter[Value] = Counter()  # number of writes to each root in this block
        for instr in block.instrs:
            if instr.op is ops.const:
                continue
            written.update(root for target in writes(instr) if (root := self.memory.root(target)) is not None)
            if instr.op is not ops.accumulate and ops.of(instr.op).role is ops.Role.STORE:
                self.note_stored(instr, block, written)
            if (what := effect(instr)) in (Effect.PURE, Effect.READ):
                args = [self.key(operand) for operand in instr.args]
                if ops.of(instr.op).commutative and isinstance(instr.type, types.Number):
                    args.sort(key=lambda arg: self.order.setdefault(arg, len(self.order)))
                state = self.state(instr, block, written) if what is Effect.READ else ()
                rest = instr.type, instr.keywords, tuple(args), state
                in_math = (_IN_MATH.get(instr.op), *rest)
                self.look_up(instr, in_math if in_math in self.known else (instr.op, *rest))

    def state(self, instr: Instr, block: Block, written: Mapping[Value, int]) -> Hashable:
        """Return a key for the contents of the memory that `instr` reads, which differs where these may differ."""
        roots = [self.memory.root(arg) for arg in reads(instr)]
        if None in roots:
            return instr
        return tuple(self.version(root, block, written) for root in roots if root is not None)

    def version(self, root: Value, block: Block, written: Mapping[Value, int]) -> Hashable:
        return (block, written.get(root, 0)) if self.memory.is_written(root) else None

    def note_stored(self, store: Instr, block: Block, written: Mapping[Value, int]) -> None:
        """Record that a read of the element just stored yields the stored value, until the next write."""
        array, value, *index = store.args
        root = self.memory.root(array)
        if root is None or not isinstance(value, Value) or not isinstance(array.type, types.Array):
            return
        if value.type == array.type.dtype and len(index) == array.type.ndim:
            args = tuple(self.key(operand) for operand in (array, *index))
            key = (ops.getitem, value.type, (), args, (self.version(root, block, written),))
            stored = self.key(value)
            assert isinstance(stored, Value)
            if self.known.setdefault(key, stored) is stored:
                self.added.append(key)

    def look_up(self, value: Phi | Instr, key: Hashable) -> None:
        first = self.known.setdefault(key, value)
        if first is value:
            self.added.append(key)
            return
        self.replaced[value] = first
        if not first.hint:
            first.hint = value.hint

    def key(self, operand: Operand) -> Hashable:
        if isinstance(operand, Value):
            return self.replaced.get(operand, operand)
        if isinstance(operand, Const) and not isinstance(operand.type, _SCALARS):
            return id(operand.value)  # objects with equal text need not be equal
        return operand
