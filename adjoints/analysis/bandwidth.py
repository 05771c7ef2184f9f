"""Bandwidth of a Hessian, from the loops of the function: which pairs of elements of a vector occur in one term.

    for i in range(len(x) - 1):
        s += (x[i + 1] - x[i] ** 2) ** 2        1: each term depends on two elements that are next to each other

    for i in range(len(x)):
        s += x[i] * np.sum(x)                   None: each term depends on all elements

Second derivatives with respect to two elements are zero, wherever they are taken, if no term depends on both. A value
depends on a window of the vector, whose ends have constant distances from one position; or it is a sum of such values,
which only linear operations may follow; or it may depend on anything. The states are computed by iteration to a
fixpoint, the dependence of an array for all of its elements at once. Branches and indices may depend on the vector:
almost everywhere they change no derivative, and where they do the rules do not follow them either.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

import numpy as np
from numba import types

from zygote_py.adjoints.analysis.kinds import carries_adjoint, is_number
from zygote_py.ir import (
    Block,
    Const,
    Distances,
    Function,
    Instr,
    Loop,
    Operand,
    Param,
    Phi,
    Routine,
    Value,
    counted,
    invariant,
    is_fresh,
    loop_nest,
    may_write,
    ops,
    reach,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Role

_WIDEST = 32  # a window that grows beyond this may grow forever
_Terms = frozenset[tuple[object, int]]


@dataclass(frozen=True, slots=True)
class _Window:
    """Dependence on the elements from `low` to `high`, counted from a position: the sum of multiples of `terms`.

    Of an array, the dependence of its element k, with no terms: counted from k.
    """

    terms: _Terms
    low: int
    high: int

    @property
    def width(self) -> int:
        return self.high - self.low

    def shifted(self, by: int) -> _Window:
        return _Window(self.terms, self.low + by, self.high + by)


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum of values that each depend on a window no wider than this."""

    width: int


class _Any:
    """Dependence on anything."""


_ANY = _Any()
_State = _Window | _Sum | _Any | None  # None: no dependence
_LINEAR = (operator.add, operator.sub, operator.neg, operator.pos, np.add, np.subtract, np.negative, np.positive)
_CASTS = (float, np.float64, np.float32, ops.const, ops.copied)
_PRODUCTS = (operator.mul, np.multiply)
_QUOTIENTS = (operator.truediv, np.divide)
_OF_SHAPE = (np.zeros_like, np.empty_like, np.ones_like)
_OF_VECTORS = (np.dot, np.vdot, operator.matmul)


def hessian_bandwidth(function: Function, vector: Param) -> int | None:
    """Return the largest distance of two elements of a vector whose second derivative may not be zero.

    Parameters
    ----------
    function : Function
        A primal in canonical form, which returns a number.
    vector : Param
        A parameter of the function: an array of one dimension.

    Returns
    -------
    int or None
        None if it may be as large as the vector.
    """
    return _Analysis(function, vector).run()


class _Analysis:
    def __init__(self, function: Function, vector: Param) -> None:
        self._function = function
        self._vector = vector
        self._nest = loop_nest(function)
        self._home: dict[object, Block] = {value: block for block in function.blocks for value in block.values}
        self._distances = Distances(function, self._nest, {v: block for block in function.blocks for v in block.values})
        self._states: dict[Value, _State] = {vector: _Window(frozenset(), 0, 0)}
        self._stored: dict[Value, _State] = {}  # in arrays that the function makes
        self._changed = False
        self._round = 0

    def run(self) -> int | None:
        while self._round < 2 or self._changed:
            self._changed = False
            for block in self._nest.tree.order:
                for phi in block.phis:
                    self._set(phi, self._merged(phi, block))
                for instr in block.instrs:
                    if not self._follow(instr, block):
                        return None
            self._round += 1
        ends = [self._at(end.args[0], block) for block, end in self._function.returns()]
        widths = [_width(state) for state in ends]
        return None if None in widths else max((each for each in widths if each is not None), default=0)

    def _set(self, value: Value, state: _State) -> None:
        before = self._states.get(value)
        state = _either(before, state) if before is not None else state
        if isinstance(state, _Window | _Sum) and state.width > _WIDEST:
            state = _ANY
        if state != before:
            self._states[value] = state
            self._changed = True

    def _at(self, operand: Operand, block: Block) -> _State:
        """Return the state of an operand where it is used: a position is that of the round it was computed in."""
        state = self._states.get(operand) if isinstance(operand, Value) else None
        if isinstance(state, _Window) and any(block not in loop for loop in self._loops_of(state.terms)):
            return _Sum(state.width)
        return state

    def _loops_of(self, terms: _Terms) -> Iterable[Loop]:
        for term, _ in terms:
            home = self._home.get(term[1] if isinstance(term, tuple) else term)
            loop = None if home is None else self._nest.innermost(home)
            if loop is not None:
                yield loop

    def _merged(self, phi: Phi, block: Block) -> _State:
        found = [self._at(operand, block) for operand in phi.incoming.values()]
        if not is_number(phi.type):
            return _ANY if any(state is not None for state in found) else None
        loop = self._nest.innermost(block)
        if loop is not None and loop.header is block:
            if self._is_of_round_before(phi, loop):
                if self._round == 0:
                    return None  # until it is known what that makes
                if (carried := self._carried(phi, loop)) is not None:
                    return carried
            # the positions are those of other rounds
            found = [_Sum(state.width) if isinstance(state, _Window) else state for state in found]
        return functools.reduce(_either, found)

    def _is_of_round_before(self, phi: Phi, loop: Loop) -> bool:
        """Return whether a value that a loop carries is computed anew in each round, not from itself."""
        if len(loop.latches) != 1 or len(loop.entering) != 1:
            return False

        def operands(each: Operand) -> tuple[Operand, ...]:
            return each.args if isinstance(each, Phi | Instr) and not invariant(each, loop) else ()

        return phi not in reach([phi.incoming[loop.latches[0]]], operands)

    def _carried(self, phi: Phi, loop: Loop) -> _State:
        """Return the state of a value of the round before, such as `x[i - 1]`; None if that has no position in this."""
        (latch,), (entering,) = loop.latches, loop.entering
        first, before = self._at(phi.incoming[entering], loop.header), self._at(phi.incoming[latch], latch)
        how = counted(loop, self._function)
        factor = 1
        if isinstance(before, _Window) and loop in self._loops_of(before.terms):
            factor = 0 if how is None else dict(before.terms).get(how.phi, 0)
            if how is None or factor == 0 or loop in self._loops_of(before.terms - {(how.phi, factor)}):
                return None
            before = before.shifted(-factor * how.step)
        if isinstance(first, _Window) and how is not None and isinstance(how.start, Const):
            start = how.start.value
            assert isinstance(start, int)
            first = _Window(first.terms | {(how.phi, factor)}, first.low, first.high).shifted(-factor * start)
        state = _joined(first, before)
        return state if isinstance(state, _Window) else None

    def _follow(self, instr: Instr, block: Block) -> bool:
        """Note what an instruction makes; return whether that is known."""
        states = [self._at(arg, block) for arg in instr.args]
        record = None if isinstance(instr.op, Routine) else ops.of(instr.op)
        if record is not None and record.role is Role.STORE:
            return self._store(instr, block, states[1])
        depends = any(state is not None for state in states)
        if not depends:
            if is_fresh(instr):
                self._set(instr, self._stored.get(instr))
            return True
        if record is None or (may_write(instr) and record.role not in (Role.CHECK, Role.RELEASE)):
            return False
        self._set(instr, self._made(instr, block, states))
        return True

    def _made(self, instr: Instr, block: Block, states: list[_State]) -> _State:
        """Return the state of what an instruction makes of operands of which some depend on the vector."""
        if not carries_adjoint(instr.type):
            return None
        if isinstance(instr.type, types.Array):
            own = None if instr.op in _OF_SHAPE else self._array(instr, states)
            return _joined(own, self._stored.get(instr))
        if not is_number(instr.type):
            return _ANY
        op, args = instr.op, instr.args
        if op is ops.getitem:
            return self._element(instr, block, states[0])
        if op in _OF_VECTORS:
            state = _joined(*states)
            return _Sum(state.width) if isinstance(state, _Window) else _ANY
        if any(isinstance(arg.type, types.Array) for arg in args):
            return _ANY
        if ops.of(op).role is Role.CHOOSE:
            return functools.reduce(_either, states[1:])
        if op in _LINEAR or op in _CASTS:
            return _either(*states)
        if op in _PRODUCTS and None in states:
            return _either(*states)
        if op in _QUOTIENTS and states[1] is None:
            return states[0]
        state = functools.reduce(_joined, states)
        return state if isinstance(state, _Window) else _ANY

    def _element(self, instr: Instr, block: Block, state: _State) -> _State:
        """Return the state of an element that is read."""
        if not isinstance(state, _Window):
            return _ANY if state is not None else None
        array, *index = instr.args
        if len(index) != 1 or not isinstance(index[0].type, types.Integer):
            return _ANY
        if array is not self._vector and not self._distances.is_natural(index[0], block):
            return _ANY  # it may count from the end, which is another one
        terms, constant = self._position(index[0], block)
        return _Window(terms, constant + state.low, constant + state.high)

    def _position(self, index: Operand, block: Block) -> tuple[_Terms, int]:
        """Return an index of the vector as a sum of multiples of values, and of a constant.

        If it may count from the end it is a term by itself.
        """
        if not self._distances.is_natural(index, block):
            return frozenset({(("as it is", index), 1)}), 0
        found: dict[object, int] = {}
        constant = _add(found, index, 1)
        return frozenset((term, factor) for term, factor in found.items() if factor), constant

    def _array(self, instr: Instr, states: list[_State]) -> _State:
        """Return the state of an array that is made of others, or a view."""
        state = states[0]
        if not isinstance(state, _Window) or any(each is not None for each in states[1:]):
            return _ANY
        kind = instr.type
        assert isinstance(kind, types.Array)
        if kind.ndim != 1:
            return _ANY
        if instr.op is ops.getitem:
            start = _start(instr.args[1:])
            return _ANY if start is None else state.shifted(start)
        return state if ops.of(instr.op).role is Role.COPY and len(instr.args) == 1 else _ANY

    def _store(self, instr: Instr, block: Block, state: _State) -> bool:
        """Note that the elements of an array depend on what is stored in one."""
        array, value, *index = instr.args
        if state is None:
            return True
        if not isinstance(array, Instr) or not is_fresh(array) or not isinstance(array.type, types.Array):
            return False
        made: _State = _ANY
        is_element = len(index) == 1 and isinstance(index[0].type, types.Integer) and is_number(value.type)
        if isinstance(state, _Window) and is_element and self._distances.is_natural(index[0], block):
            terms, constant = self._position(index[0], block)
            if terms == state.terms:
                made = _Window(frozenset(), state.low, state.high).shifted(-constant)
        before = self._stored.get(array)
        self._stored[array] = made = made if before is None else _joined(before, made)
        self._set(array, made)
        return True


def _start(index: Iterable[Operand]) -> int | None:
    """Return where a slice with steps of one begins, if that is a constant which does not count from the end."""
    slices = [each for each in index if not isinstance(each.type, types.EllipsisType)]
    if len(slices) != 1 or not isinstance(slices[0], Instr) or slices[0].op is not slice:
        return None
    first, *_ = args = slices[0].args
    if len(args) not in (2, 3):
        return None
    if len(args) == 3:
        step = args[2]
        if not isinstance(step.type, types.NoneType) and not (isinstance(step, Const) and step.value == 1):
            return None
    if isinstance(first.type, types.NoneType):
        return 0
    found = first.value if isinstance(first, Const) else None
    return found if isinstance(found, int) and found >= 0 else None


def _add(found: dict[object, int], operand: Operand, times: int) -> int:
    """Add a multiple of an integer to a sum; return the constant part of what was added."""
    if isinstance(operand, Const):
        assert isinstance(operand.value, int)
        return times * operand.value
    match operand:
        case Instr(op=operator.add, args=(a, b)):
            return _add(found, a, times) + _add(found, b, times)
        case Instr(op=operator.sub, args=(a, b)):
            return _add(found, a, times) + _add(found, b, -times)
        case Instr(op=ops.const, args=(a,)):
            return _add(found, a, times)
    found[operand] = found.get(operand, 0) + times
    return 0


def _width(state: _State) -> int | None:
    """Return the largest distance of elements in one term; None if there is no limit."""
    if state is None:
        return 0
    return None if isinstance(state, _Any) else state.width


def _joined(first: _State, second: _State) -> _State:
    """Return the state of an operation on two values, which may be any."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, _Window) and isinstance(second, _Window) and first.terms == second.terms:
        return _Window(first.terms, min(first.low, second.low), max(first.high, second.high))
    return _ANY


def _either(first: _State, second: _State = None) -> _State:
    """Return the state of a sum of two values, or of one of them."""
    joined = _joined(first, second)
    if joined is not _ANY or first is _ANY or second is _ANY:
        return joined
    assert isinstance(first, _Window | _Sum)
    assert isinstance(second, _Window | _Sum)
    return _Sum(max(first.width, second.width))
