"""The builder with which the handlers of expressions, calls, lists and the like make instructions.

    t = at.emit(operator.add, (x, at.cast(i, types.float64)), types.float64)        %t0 = float %i : f64
                                                                                    %t1 = add %x, %t0 : f64

An `Emitter` knows the statement at hand and, where there are variables, what they hold there. The class that lowers a
function is in `zygote_py.frontend.lowering`, and the one that writes functions without statements in
`zygote_py.frontend.writer`; the handlers depend on this interface only.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence

from numba import types

from zygote_py.adjoints import refuse
from zygote_py.base import statements as st
from zygote_py.frontend.values.bundles import LoweredValue, cast_op, constant, leaves_of, plain
from zygote_py.ir import Block, Builder, Const, Instr, Loc, Operand, Type, Undef, Value, is_scalar, ops
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A loop's counter goes from `start` by `step` while it is less than `stop` (greater, for a negative step)."""

    start: Operand
    stop: Operand
    step: int
    type: Type


class Iteration:
    """The elements of something, by number."""

    def begin(self, emit: Emitter) -> Iteration:
        """Return the iteration of a loop that begins now."""
        return self

    @abstractmethod
    def length(self, emit: Emitter) -> Operand:
        """Return the number of elements."""

    @abstractmethod
    def at(self, k: Operand, emit: Emitter) -> LoweredValue:
        """Return element number `k`."""


class Emitter(Builder):
    """Adds instructions to the block that is being filled, for the statement at hand."""

    loc: Loc
    types: dict[st.Variable, Type]
    iterations: dict[st.Variable, tuple[Iteration, Counter | None]]
    copied_if_needed: list[tuple[Operand, Loc]]  # copies that Numba makes unless the array is contiguous

    def __init__(self, block: Block, loc: Loc) -> None:
        super().__init__(block, loc)
        self.homes: dict[Operand, Block] = {}  # of the named constants
        self._recast: dict[tuple[Value, Type], Value] = {}  # named constants of another type

    def read(self, variable: st.Variable) -> LoweredValue:
        """Return the value of a variable here; if it may be `None`, there must be a value."""
        raise NotImplementedError

    def read_whole(self, variable: st.Variable) -> LoweredValue:
        """Return the value of a variable here."""
        raise NotImplementedError

    @abstractmethod
    def cast_bundle(self, bundle: LoweredValue, type: Type) -> LoweredValue:
        """Convert a value to another type: numbers are converted, also those in tuples."""

    def make_iterator(self, target: st.Variable, over: Iteration) -> None:
        """Record a variable that holds an iterator over which no loop has begun."""
        raise NotImplementedError

    def use_up(self, over: Iteration) -> None:
        """Refuse a second loop over an iterator, which the first one has exhausted."""
        raise NotImplementedError

    def refuse(self, message: str, hint: str, token: str = "") -> Exception:
        """Return the error to raise for the statement at hand."""
        return refuse(message, self.loc, hint, token)

    def emit(
        self, op: ops.Op, args: Sequence[Operand], type: Type, hint: str = "", keywords: tuple[str, ...] = ()
    ) -> Instr:
        """Add `op(*args)` to the block that is being filled."""
        return self.call(op, *args, type=type, hint=hint, keywords=keywords)

    def emit_each(self, op: ops.Op, parts: Sequence[Operand], type: Type, *args: Operand) -> LoweredValue:
        """Add `op(part, *args)` for each of the parts over which a value of this type is spread; return the value."""
        leaves = (self.emit(op, (part, *args), leaf) for part, leaf in zip(parts, leaves_of(type), strict=True))
        return LoweredValue(type, tuple(leaves))

    def cast(self, operand: Operand, type: Type) -> Operand:
        """Convert a number to another type; anything else stays as it is."""
        type, own = plain(type), plain(operand.type)
        if own == type or not is_scalar(type) or not is_scalar(own):
            return operand
        match operand:
            case Const(value, _):
                return constant(value, type)
            case Undef():
                return Undef(type)
            case Instr(op=ops.const):
                return self._cast_named(operand, type)
        if isinstance(type, types.Boolean):
            return self.emit(operator.ne, (operand, constant(0, own)), type)
        if isinstance(own, types.Boolean):  # Numba has no `float(bool)`
            return self.emit(ops.select, (operand, constant(1, type), constant(0, type)), type)
        return self.emit(cast_op(own, type), (operand,), type)

    def _cast_named(self, named: Instr, type: Type) -> Operand:
        """Return the named constant as one of another type, defined next to it."""
        key = named, type
        if key not in self._recast:
            (literal,) = named.args
            assert isinstance(literal, Const)
            made = Instr(ops.const, (constant(literal.value, type),), type, named.hint, named.loc)
            block = self.homes[named]
            block.instrs.insert(block.instrs.index(named) + 1, made)
            self._recast[key] = made
            self.homes[made] = block
        return self._recast[key]
