"""Building straight-line code: instructions at the end of a block, and tuples that are packed and taken apart.

    b = Builder(block, loc)
    t = b.call(operator.mul, x, y, type=x.type)         # %t = mul %x, %y : f64
    b.return_packed([t, *rest])                         # %r = pack %t, ...    return %r

Many values are one tuple, of tuples if they are more than `LARGEST`: see `Builder.pack_all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Block, Const, Function, Instr, Loc, Operand, Return, Type, Value
from zygote_py.ir.types import components_of, copied_type, with_components, writable
from zygote_py.ir.walks import replace_uses

# The most items in one tuple. Python writes a tuple of more than thirty as a list first, which Numba gets wrong.
LARGEST = 16

NONE = Const(None, types.none)


class Builder:
    """Appends instructions to `block`. They get the `loc` and the `origin` that it has when they are made."""

    def __init__(self, block: Block, loc: Loc | None = None, origin: Value | None = None) -> None:
        self.block = block
        self.loc = loc
        self.origin = origin

    def add(self, instr: Instr) -> Instr:
        """Append an instruction."""
        self.block.instrs.append(instr)
        return instr

    def call(self, op: ops.Op, *args: Operand, type: Type, hint: str = "", keywords: tuple[str, ...] = ()) -> Instr:
        """Append `op(*args)`."""
        return self.add(Instr(op, args, type, hint, self.loc, keywords, self.origin))

    def like(self, instr: Instr, op: ops.Op, *args: Operand) -> Instr:
        """Append another operation with the type, the hint, the location and the origin of `instr`."""
        return self.add(Instr(op, args, instr.type, instr.hint, instr.loc, (), instr.origin))

    def copy(self, array: Operand, hint: str = "") -> Instr:
        """A copy of an array, in its own order if that is Fortran's."""
        return self.call(np.copy, array, type=copied_type(array.type), hint=hint)

    def zeros_like(self, array: Operand, hint: str = "") -> Instr:
        """An array of zeros that has the type of another, but may be written to."""
        return self.call(np.zeros_like, array, type=writable(array.type), hint=hint)

    def accumulate(self, array: Operand, value: Operand) -> Instr:
        """Add a value of the same shape to an array; to one without axes, the element of the other."""
        if isinstance(value.type, types.Array) and value.type.ndim == 0:
            value = self.call(ops.getitem, value, type=value.type.dtype)
        return self.call(ops.accumulate, array, value, type=types.none)

    def refuse_if(self, condition: Operand, message: str) -> Instr:
        """Raise ValueError with the message if the condition holds."""
        return self.call(ops.refuse, condition, Const(message, types.unicode_type), type=types.none)

    def item(self, whole: Operand, number: int, hint: str = "") -> Operand:
        """An item of a tuple: what was packed, if that is known."""
        if isinstance(whole, Instr) and whole.op is ops.pack:
            return whole.args[number]
        kind = components_of(whole.type)[number]
        return self.call(ops.getitem, whole, Const(number, types.int64), type=kind, hint=hint)

    def items(self, whole: Operand) -> tuple[Operand, ...]:
        """All items of a tuple."""
        return tuple(self.item(whole, number) for number in range(len(components_of(whole.type))))

    def leaves(self, value: Operand) -> Iterator[Operand]:
        """What is in a value, and in the tuples in it, and is not a tuple itself."""
        if not isinstance(value.type, types.BaseTuple):
            yield value
            return
        for number in range(len(components_of(value.type))):
            yield from self.leaves(self.item(value, number))

    def join(self, leaves: Iterator[Operand], type: Type) -> Operand:
        """The value of a type that has these leaves."""
        if not isinstance(type, types.BaseTuple):
            return next(leaves)
        return self.call(ops.pack, *[self.join(leaves, each) for each in components_of(type)], type=type)

    def pack(self, items: Sequence[Operand], like: Type | None = None, hint: str = "") -> Instr:
        """A tuple of these items, a NamedTuple or a structure if `like` is the type of one."""
        kinds = tuple(item.type for item in items)
        kind = _tuple_of(kinds) if like is None else with_components(like, kinds)
        return self.add(Instr(ops.pack, tuple(items), kind, hint, origin=self.origin))

    def pack_all(self, items: Sequence[Operand]) -> Instr:
        """One value of many: a tuple, of tuples if there are more than `LARGEST`."""
        if len(items) > LARGEST:
            return self.pack_all([self.pack_all(items[at : at + LARGEST]) for at in range(0, len(items), LARGEST)])
        return self.pack(items)

    def unpack_all(self, whole: Operand, count: int) -> list[Instr]:
        """The items of which `pack_all` made one value: an instruction for each, even for what is known."""
        parts = -(-count // LARGEST)
        if parts <= 1:
            return [
                self.add(Instr(ops.getitem, (whole, Const(number, types.int64)), kind, origin=self.origin))
                for number, kind in enumerate(components_of(whole.type) if count else ())
            ]
        sizes = [min(LARGEST, count - at) for at in range(0, count, LARGEST)]
        found = zip(self.unpack_all(whole, parts), sizes, strict=True)
        return [item for part, size in found for item in self.unpack_all(part, size)]

    def call_packed(self, op: ops.Op, args: Sequence[Operand], kinds: Sequence[Type]) -> list[Instr]:
        """Call what returns values of these types by `return_packed`; gives them one by one."""
        return self.unpack_all(self.call(op, *args, type=packed_type(kinds)), len(kinds))

    def call_all(self, op: ops.Op, args: Sequence[Operand], kinds: Sequence[Type]) -> list[Instr]:
        """Call what returns values of these types: None, the only one by itself, or a tuple; gives them one by one."""
        whole = self.call(op, *args, type=result_type(kinds))
        if len(kinds) < 2:
            return [whole] if kinds else []
        return [
            self.call(ops.getitem, whole, Const(number, types.int64), type=kind) for number, kind in enumerate(kinds)
        ]

    def return_packed(self, values: Sequence[Operand]) -> None:
        """Return values as one: that of `pack_all`, or None if there are none."""
        self.block.terminator = Return((self.pack_all(values) if values else NONE,))


def items_of(value: Operand) -> tuple[Operand, ...]:
    """What a routine returns, one by one: the items of a tuple that is packed, nothing for None, or else the value."""
    if isinstance(value, Instr) and value.op is ops.pack:
        return value.args
    return () if isinstance(value.type, types.NoneType) else (value,)


def packed_type(kinds: Sequence[Type]) -> Type:
    """The type of what `Builder.return_packed` returns for values of these types."""
    if not kinds:
        return types.none
    if len(kinds) > LARGEST:
        return packed_type([packed_type(kinds[at : at + LARGEST]) for at in range(0, len(kinds), LARGEST)])
    return _tuple_of(kinds)


def result_type(kinds: Sequence[Type]) -> Type:
    """The type of what a routine returns that has these results."""
    return (_tuple_of(kinds) if len(kinds) > 1 else kinds[0]) if kinds else types.none


def _tuple_of(kinds: Sequence[Type]) -> Type:
    made: Type = types.Tuple(tuple(kinds))
    return made


def rewrite(function: Function, change: Callable[[Builder, Instr], Operand | None]) -> dict[Value, Operand]:
    """Let `change` add what is to stand in the place of each instruction: the instruction itself, where it stays.

    It returns what takes the place of the result, or None. The instructions have their old operands until all of them
    have been looked at. Gives the results that were replaced.
    """
    replaced: dict[Value, Operand] = {}
    for block in function.blocks:
        b = Builder(Block(block.loc))
        for instr in block.instrs:
            if (result := change(b, instr)) is not None:
                replaced[instr] = result
        block.instrs = b.block.instrs
    replace_uses(function, replaced)
    return replaced


@contextmanager
def inserting(block: Block, at: int = 0, loc: Loc | None = None, origin: Value | None = None) -> Iterator[Builder]:
    """A builder whose instructions stand before the one that is now at a place of `block`, once this is left."""
    b = Builder(Block(block.loc), loc, origin)
    yield b
    block.instrs[at:at] = b.block.instrs


def at_exit(function: Function) -> tuple[Builder, Return]:
    """A builder at the end of the only block that returns, and its terminator."""
    block, end = function.exit()
    return Builder(block), end
