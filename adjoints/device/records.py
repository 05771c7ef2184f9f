"""Records of a derivative in a workspace that the caller gives, since the threads of a device allocate nothing.

    %r = record %n : f64[::1]                       (%r: f64[::1] is a parameter, as are %lane and %lanes)
    setitem %r, %v, %k                  ->          setitem %r, %v, %k * %lanes + %lane

    %s = stack                                      %s_top = record 1 : i64[::1]
    push %s, %v                         ->          setitem %s, %v, %s_top[0] * %lanes + %lane
                                                    setitem %s_top, %s_top[0] + 1, 0

Each record is one array for all threads, which are `lanes` in number: an element of the record is `lanes` neighbouring
elements of that array, one for each thread, so that threads that run alike read and write whole lines of memory. Arrays
of a few elements, if their number is a constant, stay: a thread has them to itself.

How long the records are is computed before by a function of the same arguments, made of the part of the derivative
that determines it (`Placed.lengths`).
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from numba import types

from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.adjoints.reverse.fused.stepwise import is_nonnegative
from zygote_py.ir import (
    CLEAN_UP,
    Block,
    Builder,
    Const,
    Function,
    Instr,
    Loc,
    Memory,
    Operand,
    Param,
    Phi,
    Type,
    Undef,
    Value,
    clone,
    components_of,
    ops,
    reach,
    reads,
    replace_uses,
    run,
    uses,
    writes,
)
from zygote_py.ir.lazy_dataclass import dataclass

_INDEX = types.int64
_COUNTERS = types.Array(_INDEX, 1, "C")
_MOST_BYTES = 512  # of an array that a thread has to itself


@dataclass(frozen=True, slots=True)
class Record:
    """An array of the workspace: its name, and the type of its elements."""

    name: str
    dtype: Type


@dataclass(frozen=True, eq=False)
class Placed:
    """A function whose records are in a workspace.

    Attributes
    ----------
    function : Function
        Takes the arguments, then the arrays of the workspace, the number of the thread, and the number of threads.
    records : tuple of Record
        The arrays. A record that some inputs do not need is of length 0 for these.
    lengths : Function or None
        Returns, for the arguments, the length of each record for one thread; None if there are no records.
    starts : dict
        For each instruction that made a record, the number of the first of its arrays.
    """

    function: Function
    records: tuple[Record, ...]
    lengths: Function | None
    starts: dict[Instr, int]


def place_records(function: Function, written: Collection[Param] = ()) -> Placed:
    """Move the records of a function to parameters, in place. Raises DifferentiationError.

    The lengths are computed while the `written` arrays are as before the call.
    """
    found = found_records(function)
    if not found:
        return Placed(function, (), None, {})
    _flatten(function, found)
    for each in found:
        _check(each, function)
    lengths = _lengths(function, found, written)
    return _Placing(function).place(found, lengths)


def found_records(function: Function) -> list[Instr]:
    """Return the instructions that allocate what a thread cannot have to itself."""
    return [
        instr
        for instr in function.instrs()
        if instr.op is ops.stack or (instr.op is ops.record and not is_small(instr))
    ]


def is_small(record: Instr) -> bool:
    """Return whether an array is of a few elements, whose number is a constant."""
    lengths = [length.value for length in record.args if isinstance(length, Const)]
    number = math.prod(length for length in lengths if isinstance(length, int))
    kind: Any = record.type
    size = getattr(kind.dtype, "bitwidth", 64) // 8
    return len(lengths) == len(record.args) and number * size <= _MOST_BYTES


def _check(record: Instr, function: Function) -> None:
    """Refuse a record that is passed on, or holds more than numbers."""
    items = _items(record)
    if any(isinstance(each, types.Array) for each in items):
        raise refuse(
            "a loop that hands arrays on to its next round, as by swapping them, cannot be reversed in a CUDA kernel",
            record.loc or function.loc,
            "let the loop choose between the two in each round, or write two rounds out",
        )
    if not all(isinstance(each, types.Number | types.Boolean) for each in items):
        raise refuse(
            f"a record of values of type {record.type} cannot be kept in a CUDA kernel",
            record.loc or function.loc,
            "let the loops that append to lists, or that make arrays, be loops over ranges",
        )
    accesses = (ops.push, ops.pop) if record.op is ops.stack else ACCESSES
    for use in uses(function).get(record, ()):
        user = use.user
        is_access = isinstance(user, Instr) and user.op in accesses and not isinstance(user.type, types.Array)
        if not (is_access and user.args[0] is record):
            raise _passed_on(getattr(user, "loc", None) or record.loc or function.loc)


def _passed_on(loc: Loc | None) -> DifferentiationError:
    return refuse(
        "a list, or an array, of a length that is not known when it is compiled cannot be passed on, returned, or "
        "divided in a CUDA kernel",
        loc,
        "ask for derivatives of numbers, such as `jvp`, `hvp`, or the Hessian with respect to numbers",
    )


ACCESSES = (ops.getitem, ops.setitem, ops.accumulate, ops.initialize)


def _flatten(function: Function, records: list[Instr]) -> None:
    """Let records have one axis, and all that access one name it, in place.

    Where one path makes a record and another does not, a phi of it and of a stand-in follows: no longer, though what
    makes the record need not dominate its uses then.
    """
    empty = _stand_ins(function, records)
    phis = [phi for block in function.blocks for phi in block.phis if isinstance(phi.type, types.Array | types.List)]
    of: dict[Operand, set[Value]] = {record: {record} for record in records}
    of |= {each: set[Value]() for each in empty}
    changed = True
    while changed:
        changed = False
        for phi in phis:
            known = [of.get(each, set() if isinstance(each, Undef) else {each}) for each in phi.args if each is not phi]
            joined: set[Any] = set().union(*known)
            changed |= of.get(phi) != joined
            of[phi] = joined
    handles: dict[Value, Operand] = {
        phi: next(iter(of[phi])) for phi in phis if len(of[phi]) == 1 and of[phi] <= set(records)
    }
    lengths: dict[Operand, Sequence[Operand]] = {each: each.args for each in records if each.op is ops.record}
    of_phis: dict[Operand, Sequence[Phi]] = {
        phi: [Phi(_INDEX, "n") for _ in lengths[each]] for phi, each in handles.items() if each in lengths
    }
    lengths.update(of_phis)
    for block in function.blocks:
        for phi in [each for each in block.phis if each in handles]:
            block.phis.remove(phi)
            for axis, length in enumerate(of_phis.get(phi, ())):
                zero_length = Const(0, _INDEX)
                length.incoming = {
                    pred: lengths[each][axis] if each in lengths else zero_length for pred, each in phi.incoming.items()
                }
                block.phis.append(length)
    replaced: dict[Value, Operand] = {}
    made_here = {each for each in records if each.loc is None and each.hint.endswith("_record")}
    for block in function.blocks:
        b = Builder(Block())
        for instr in block.instrs:
            b.loc, b.origin = instr.loc, instr.origin
            handle = instr.args[0] if instr.args else None
            if instr in lengths:
                total = _product_of(b, instr.args)
                instr.args = (total,)
                instr.type = types.Array(instr.type.dtype, 1, "C")  # type: ignore[attr-defined,call-overload]
            elif instr.op is ops.dim and handle in lengths:
                along = instr.args[1]
                assert isinstance(along, Const)
                assert isinstance(along.value, int)
                replaced[instr] = lengths[handle][along.value]
                continue
            elif handle in lengths and instr.op in ACCESSES:
                count = 1 if instr.op is ops.getitem else 2
                if len(instr.args) - count != len(lengths[handle]) or isinstance(instr.type, types.Array):
                    raise _passed_on(instr.loc or function.loc)
                from_start = of.get(handle, {handle}) <= made_here
                index = [
                    each if from_start else _from_start(b, each, length)
                    for each, length in zip(instr.args[count:], lengths[handle], strict=True)
                ]
                flat: Operand = index[0]
                for number, inner in zip(index[1:], lengths[handle][1:], strict=True):
                    flat = b.call(operator.mul, flat, inner, type=_INDEX)
                    flat = b.call(operator.add, flat, number, type=_INDEX)
                instr.args = (*instr.args[:count], flat)
            b.add(instr)
        block.instrs = b.block.instrs
    replaced.update(handles)
    replace_uses(function, replaced)


def _stand_ins(function: Function, records: list[Instr]) -> set[Value]:
    """Return the arrays and lists of no elements that stand for records, without what is done with the lists.

    These lists are no longer among the `records`.
    """
    used = uses(function)
    found: set[Value] = {
        instr for instr in function.instrs() if instr.op is ops.record and Const(0, _INDEX) in instr.args
    }
    for record in [each for each in records if each.op is ops.stack]:
        users = [use.user for use in used.get(record, ())]
        own = [user for user in users if isinstance(user, Instr)]
        if any(isinstance(user, Phi) for user in users) and [user.op for user in own] in ([ops.push, ops.pop], []):
            pushed = own[0].args[1] if own else None
            if pushed is not None and isinstance(pushed, Value) and not _is_nothing(pushed):
                continue
            found.add(record)
            records.remove(record)
            for block in function.blocks:
                block.instrs = [instr for instr in block.instrs if instr not in own and instr is not record]
    return found


def _is_nothing(value: Value) -> bool:
    return (
        isinstance(value, Instr)
        and value.op is ops.pack
        and all(not isinstance(arg, Value) or _is_nothing(arg) for arg in value.args)
    )


def _from_start(b: Builder, index: Operand, length: Operand) -> Operand:
    """Return an index of the user's as counted from the first element: a negative one counts from the end."""
    if is_nonnegative(index) or not getattr(index.type, "signed", True):
        return index
    negative = b.call(operator.lt, index, Const(0, _INDEX), type=types.boolean)
    return b.call(ops.select, negative, b.call(operator.add, index, length, type=_INDEX), index, type=_INDEX)


def _product_of(b: Builder, factors: Sequence[Operand]) -> Operand:
    product: Operand = Const(1, _INDEX)
    for number, factor in enumerate(factors):
        product = b.call(operator.mul, product, factor, type=_INDEX) if number else factor
    return product


def _items(record: Instr) -> list[Type]:
    """Return the types of the numbers that an item of a record consists of."""
    kind: Type = record.type.dtype  # type: ignore[attr-defined]
    return _leaves(kind)


def _leaves(kind: Type) -> list[Type]:
    if isinstance(kind, types.BaseTuple):
        return [leaf for each in components_of(kind) for leaf in _leaves(each)]
    return [kind]


class _Placing:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.lane = Param(_INDEX, "lane", function.loc)
        self.lanes = Param(_INDEX, "lanes", function.loc)
        self.arrays: dict[Value, list[Param]] = {}
        self.tops: dict[Value, Instr] = {}

    def place(self, found: Sequence[Instr], lengths: Function) -> Placed:
        records: list[Record] = []
        starts: dict[Instr, int] = {}
        for record in found:
            starts[record] = len(records)
            own = []
            for kind in _items(record):
                name = record.hint or "record"
                own.append(Param(types.Array(kind, 1, "C"), name, record.loc))
                records.append(Record(name, kind))
            self.arrays[record] = own
        replaced: dict[Value, Operand] = {}
        for block in self.function.blocks:
            self.b = Builder(Block())
            for instr in block.instrs:
                self.b.loc, self.b.origin = instr.loc, instr.origin
                if (value := self.instead(instr)) is not instr:
                    if isinstance(value, Value):
                        replaced[instr] = value
                else:
                    self.b.add(instr)
            block.instrs = self.b.block.instrs
        self.function.entry.instrs[:0] = self.tops.values()
        replace_uses(self.function, replaced)
        self.function.params += [*(each for own in self.arrays.values() for each in own), self.lane, self.lanes]
        return Placed(self.function, tuple(records), lengths, starts)

    def instead(self, instr: Instr) -> Operand | None:
        """Add what takes the place of an instruction. Return its value, or the instruction if nothing does."""
        if instr in self.arrays:
            if instr.op is ops.stack:
                self.tops[instr] = Instr(ops.record, (Const(1, _INDEX),), _COUNTERS, f"{instr.hint}_top", instr.loc)
                self.set_top(instr, Const(0, _INDEX))
            return None
        record = instr.args[0] if instr.args else None
        if not isinstance(record, Instr) or record not in self.arrays:
            return instr
        if instr.op is ops.push:
            top = self.top(record)
            for array, value in zip(self.arrays[record], self.parts(instr.args[1]), strict=True):
                self.b.call(ops.setitem, array, value, self.place_of(top), type=types.none)
            self.set_top(record, self.sum(top, Const(1, _INDEX)))
            return None
        if instr.op is ops.pop:
            top = self.b.call(operator.sub, self.top(record), Const(1, _INDEX), type=_INDEX)
            self.set_top(record, top)
            place = self.place_of(top)
            kinds = _items(record)
            arrays = zip(self.arrays[record], kinds, strict=True)
            values = iter([self.b.call(ops.getitem, each, place, type=kind) for each, kind in arrays])
            return self.packed(instr.type, values)
        (array,) = self.arrays[record]
        values_, index = (instr.args[1:2], instr.args[2:]) if instr.op is not ops.getitem else ((), instr.args[1:])
        op = ops.setitem if instr.op is ops.initialize else instr.op
        made = self.b.call(op, array, *values_, self.place_of(*index), type=instr.type, hint=instr.hint)
        return made if instr.op is ops.getitem else None

    def sum(self, a: Operand, b: Operand) -> Instr:
        return self.b.call(operator.add, a, b, type=_INDEX)

    def place_of(self, index: Operand) -> Operand:
        if index.type != _INDEX:
            index = self.b.call(builtins.int, index, type=_INDEX)
        return self.sum(self.b.call(operator.mul, index, self.lanes, type=_INDEX), self.lane)

    def top(self, stack: Value) -> Operand:
        return self.b.call(ops.getitem, self.tops[stack], Const(0, _INDEX), type=_INDEX)

    def set_top(self, stack: Value, value: Operand) -> None:
        self.b.call(ops.setitem, self.tops[stack], value, Const(0, _INDEX), type=types.none)

    def parts(self, value: Operand) -> list[Operand]:
        if isinstance(value.type, types.BaseTuple):
            return [leaf for item in self.b.items(value) for leaf in self.parts(item)]
        return [value]

    def packed(self, kind: Type, values: object) -> Operand:
        if isinstance(kind, types.BaseTuple):
            return self.b.call(ops.pack, *(self.packed(each, values) for each in components_of(kind)), type=kind)
        return next(values)  # type: ignore[call-overload, no-any-return]


def _lengths(function: Function, found: Sequence[Instr], written: Collection[Param]) -> Function:
    """Return the function of the lengths: the derivative without what is kept, and without its results."""
    copied = clone(function)
    made = copied.function
    own = [param for param, old in zip(made.params, function.params, strict=True) if old in written]
    forgotten = _writes_to(made, own)
    records = {copied.values[each]: number for number, each in enumerate(found)}
    unknown: dict[Type, Param] = {}
    needed = Instr(ops.record, (Const(len(found), _INDEX),), _COUNTERS, "lengths", function.loc)
    replaced: dict[Value, Operand] = {}
    tops: dict[Value, Instr] = {}
    filled_again = _filled_again(made)
    for block in made.blocks:
        b = Builder(Block())

        def grow(number: int, length: Operand, b: Builder = b) -> None:
            place = Const(number, _INDEX)
            before = b.call(ops.getitem, needed, place, type=_INDEX)
            b.call(ops.setitem, needed, b.call(max, before, length, type=_INDEX), place, type=types.none)

        def read(kind: Type, b: Builder = b) -> Operand:
            """Return a value that is not known when lengths are computed."""
            if isinstance(kind, types.BaseTuple):
                return b.call(ops.pack, *map(read, components_of(kind)), type=kind)
            param = unknown.setdefault(kind, Param(types.Array(kind, 1, "C"), "unknown", function.loc))
            return b.call(ops.getitem, param, Const(0, _INDEX), type=kind)

        for instr in block.instrs:
            b.loc = instr.loc
            record = instr.args[0] if instr.args else None
            if instr in records:
                if instr.op is ops.stack:
                    top = tops[instr] = Instr(ops.record, (Const(1, _INDEX),), _COUNTERS)
                    b.call(ops.setitem, top, Const(0, _INDEX), Const(0, _INDEX), type=types.none)
                else:
                    grow(records[instr], instr.args[0])
            elif instr in forgotten:
                if instr.type != types.none:
                    replaced[instr] = read(instr.type)
            elif not isinstance(record, Instr) or record not in records:
                b.add(instr)
            elif instr.op is ops.push:
                top = tops[record]
                before = b.call(ops.getitem, top, Const(0, _INDEX), type=_INDEX)
                after = b.call(operator.add, before, Const(1, _INDEX), type=_INDEX)
                b.call(ops.setitem, top, after, Const(0, _INDEX), type=types.none)
                grow(records[record], after)
            elif instr.op is ops.pop:
                if record in filled_again:
                    top = tops[record]
                    before = b.call(ops.getitem, top, Const(0, _INDEX), type=_INDEX)
                    after = b.call(operator.sub, before, Const(1, _INDEX), type=_INDEX)
                    b.call(ops.setitem, top, after, Const(0, _INDEX), type=types.none)
                replaced[instr] = read(instr.type)
            elif instr.op is ops.getitem:
                replaced[instr] = read(instr.type)
        block.instrs = b.block.instrs
    start = [needed, *tops.values()]
    for number in range(len(found)):
        place = Const(number, _INDEX)
        start.append(Instr(ops.setitem, (needed, Const(0, _INDEX), place), types.none))
    made.entry.instrs[:0] = start
    replace_uses(made, replaced)
    for block, end in made.returns():
        b = Builder(block)
        counts = [
            b.call(ops.getitem, needed, Const(number, _INDEX), type=_INDEX)
            for number, each in enumerate(found)
            for _ in _items(each)
        ]
        end.args = (b.call(ops.pack, *counts, type=types.UniTuple(_INDEX, len(counts))),)
    made.params += unknown.values()
    made.name = f"{function.name}_lengths"
    run(made, CLEAN_UP)
    used = uses(made)
    for param in unknown.values():
        if param in used:
            raise refuse(
                "how much a thread records depends on what it has recorded, so that it is not known before",
                function.loc,
                "leave out checkpoints, or let loops count to what is known before them",
            )
        made.params.remove(param)
    memory = Memory(made)
    roots = {memory.root(param) for param in own}
    for instr in made.instrs():
        if any(memory.root(arg) in roots for arg in reads(instr)):
            raise refuse(
                "how much a thread records depends on what the kernel has written, so that it is not known before",
                instr.loc or function.loc,
                "let loops count to what is known before the launch",
            )
    return made


def _writes_to(function: Function, arrays: Sequence[Param]) -> set[Instr]:
    """Return the instructions that write to some arrays, and the barriers."""
    memory = Memory(function)
    roots = {memory.root(param) for param in arrays}
    return {
        instr
        for instr in function.instrs()
        if instr.op is ops.barrier or any(memory.root(each) in roots for each in writes(instr))
    }


def _reached(blocks: Sequence[Block]) -> Iterator[Block]:
    def following(block: Block) -> tuple[Block, ...]:
        return block.successors

    return reach(blocks, following)


def _filled_again(function: Function) -> set[Value]:
    """Return the lists to which something may be appended after something was taken from them."""
    pops: dict[Value, list[Block]] = {}
    pushes: dict[Value, set[Block]] = {}
    for block in function.blocks:
        for instr in block.instrs:
            if instr.op is ops.pop:
                pops.setdefault(instr.args[0], []).append(block)  # type: ignore[arg-type]
            elif instr.op is ops.push:
                pushes.setdefault(instr.args[0], set()).add(block)  # type: ignore[arg-type]
    return {stack for stack, blocks in pops.items() if not pushes.get(stack, set()).isdisjoint(_reached(blocks))}
