"""The IR builder for straight-line code: appends instructions to a block, packs and unpacks tuples.

    b = Builder(block, loc)
    t = b.call(operator.mul, x, y, type=x.type)         # %t = mul %x, %y : f64
    b.return_packed([t, *rest])                         # %r = pack %t, ...    return %r

Many values become one tuple, a tuple of tuples if there are more than `LARGEST`: see `Builder.pack_all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Block, Const, Function, Instr, InternalError, Loc, Operand, Return, Type, Value
from zygote_py.ir.types import components_of, copied_type, with_components, writable
from zygote_py.ir.walks import grouped, replace_uses

# The maximum number of items in one tuple. Python builds a longer literal (more than thirty items) from a list first,
# which Numba compiles incorrectly.
LARGEST = 16

NONE = Const(None, types.none)


class Builder:
    """Appends instructions to `block`, with the current `loc` and `origin` of the builder."""

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
        """Append a different operation with the type, hint, location and origin of `instr`."""
        return self.add(Instr(op, args, instr.type, instr.hint, instr.loc, (), instr.origin))

    def copy(self, array: Operand, hint: str = "") -> Instr:
        """Append a copy of an array, in Fortran order if the array has it."""
        return self.call(np.copy, array, type=copied_type(array.type), hint=hint)

    def zeros_like(self, array: Operand, hint: str = "") -> Instr:
        """Append an array of zeros with the type of another, but writable."""
        return self.call(np.zeros_like, array, type=writable(array.type), hint=hint)

    def accumulate(self, array: Operand, value: Operand) -> Instr:
        """Append the addition of `value` to an array of the same shape, or of its element if it has no axes."""
        if isinstance(value.type, types.Array) and value.type.ndim == 0:
            value = self.call(ops.getitem, value, type=value.type.dtype)
        return self.call(ops.accumulate, array, value, type=types.none)

    def refuse_if(self, condition: Operand, message: str) -> Instr:
        """Append a check that raises ValueError with the message if the condition holds."""
        return self.call(ops.refuse, condition, Const(message, types.unicode_type), type=types.none)

    def item(self, whole: Operand, number: int, hint: str = "") -> Operand:
        """Return an item of a tuple: the operand that was packed, if it is known."""
        if isinstance(whole, Instr) and whole.op is ops.pack:
            return whole.args[number]
        kind = components_of(whole.type)[number]
        return self.call(ops.getitem, whole, Const(number, types.int64), type=kind, hint=hint)

    def items(self, whole: Operand) -> tuple[Operand, ...]:
        """Return all items of a tuple."""
        return tuple(self.item(whole, number) for number in range(len(components_of(whole.type))))

    def leaves(self, value: Operand) -> Iterator[Operand]:
        """Yield the leaves of a value: the items of nested tuples that are not tuples themselves."""
        if not isinstance(value.type, types.BaseTuple):
            yield value
            return
        for number in range(len(components_of(value.type))):
            yield from self.leaves(self.item(value, number))

    def join(self, leaves: Iterator[Operand], type: Type) -> Operand:
        """Return the value of a type that has these leaves."""
        if not isinstance(type, types.BaseTuple):
            return next(leaves)
        return self.call(ops.pack, *[self.join(leaves, each) for each in components_of(type)], type=type)

    def pack(self, items: Sequence[Operand], like: Type | None = None, hint: str = "") -> Instr:
        """Pack the items into a tuple, or into a NamedTuple or structure if `like` is the type of one."""
        kinds = tuple(item.type for item in items)
        kind = _tuple_of(kinds) if like is None else with_components(like, kinds)
        return self.add(Instr(ops.pack, tuple(items), kind, hint, origin=self.origin))

    def pack_all(self, items: Sequence[Operand]) -> Instr:
        """Pack many items into one value: a tuple, or a tuple of tuples if there are more than `LARGEST`."""
        if len(items) > LARGEST:
            return self.pack_all([self.pack_all(items[at : at + LARGEST]) for at in range(0, len(items), LARGEST)])
        return self.pack(items)

    def unpack_all(self, whole: Operand, count: int) -> list[Instr]:
        """Return the items that `pack_all` packed: an instruction for each, even where the item is known."""
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
        """Call a routine that returns values of these types by `return_packed`, and return the individual results."""
        return self.unpack_all(self.call(op, *args, type=packed_type(kinds)), len(kinds))

    def call_all(self, op: ops.Op, args: Sequence[Operand], kinds: Sequence[Type]) -> list[Instr]:
        """Call a routine that returns None, a bare value or a tuple of these types; return the individual results."""
        whole = self.call(op, *args, type=result_type(kinds))
        if len(kinds) < 2:
            return [whole] if kinds else []
        return [
            self.call(ops.getitem, whole, Const(number, types.int64), type=kind) for number, kind in enumerate(kinds)
        ]

    def return_packed(self, values: Sequence[Operand]) -> None:
        """Return values as one: the result of `pack_all`, or None if there are none."""
        self.block.terminator = Return((self.pack_all(values) if values else NONE,))


def item_reads(function: Function) -> dict[Operand, list[Instr]]:
    """Return the instructions that read an item of each tuple, `getitem %tuple, 0`, and of each array."""
    return grouped((instr.args[0], instr) for instr in function.instrs() if instr.op is ops.getitem)


def items_read(function: Function, whole: Value) -> dict[int, Instr]:
    """Return the instructions that read the items of a tuple, by their numbers."""
    found: dict[int, Instr] = {}
    for instr in function.instrs():
        match instr:
            case Instr(op=ops.getitem, args=(read, Const(value=int(number)))) if read is whole:
                found[number] = instr
    return found


def items_of(value: Operand) -> tuple[Operand, ...]:
    """Return the individual results of a routine: the items of a packed tuple, nothing for None, else the value."""
    if isinstance(value, Instr) and value.op is ops.pack:
        return value.args
    if isinstance(value.type, types.BaseTuple):
        raise InternalError(f"a returned tuple of type {value.type}, of which the items are not known")
    return () if isinstance(value.type, types.NoneType) else (value,)


def packed_type(kinds: Sequence[Type]) -> Type:
    """Return the type of the value that `Builder.return_packed` returns for values of these types."""
    if not kinds:
        return types.none
    if len(kinds) > LARGEST:
        return packed_type([packed_type(kinds[at : at + LARGEST]) for at in range(0, len(kinds), LARGEST)])
    return _tuple_of(kinds)


def result_type(kinds: Sequence[Type]) -> Type:
    """Return the return type of a routine with these results."""
    return (_tuple_of(kinds) if len(kinds) > 1 else kinds[0]) if kinds else types.none


def _tuple_of(kinds: Sequence[Type]) -> Type:
    made: Type = types.Tuple(tuple(kinds))
    return made


def rewrite(function: Function, change: Callable[[Builder, Instr], Operand | None]) -> dict[Value, Operand]:
    """Rewrite a function instruction by instruction: `change` adds the replacement, or the instruction itself.

    It returns the operand that replaces the result, or None. Instructions keep their old operands until all of them
    have been visited. Returns the replaced results.
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
    """Return a builder whose instructions are inserted at a position of `block` when the context exits."""
    b = Builder(Block(block.loc), loc, origin)
    yield b
    block.instrs[at:at] = b.block.instrs


def at_exit(function: Function) -> tuple[Builder, Return]:
    """Return a builder at the end of the only block that returns, and the terminator of this block."""
    block, end = function.exit()
    return Builder(block), end
