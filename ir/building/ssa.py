"""On-the-fly construction of SSA form, after Braun et al.

Variables are any hashable keys. A client declares them, writes and reads them block by block, and seals each block once
all its predecessors are known and filled; phis appear where two values meet, and only there.

    ssa = SSABuilder(function)
    ssa.declare("r", types.float64, "r")
    ssa.seal(b0, [])
    ssa.write("r", b0, Const(1.0, types.float64))     # b0: r = 1.0
    r = ssa.read("r", b1)                             # b1, not sealed yet: a phi without operands
    ssa.write("r", b1, product)                       # b1: r = r * x
    ssa.seal(b1, [b0, b1])                            # b1:  %r1 = phi b0: 1.0, b1: %r2
    ssa.finish()

It neither reads nor sets terminators, and does not touch phis that it has not created.

Matthias Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", CC 2013.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from zygote_py.ir.core import Block, Function, InternalError, Operand, Phi, Type, Undef, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.walks import replace_uses


@dataclass(frozen=True, slots=True)
class _Variable:
    type: Type
    hint: str
    start: Operand
    current: dict[Block, Operand]  # the value at the end of a block, where known


class SSABuilder:
    """Tracks the current value of every variable in every block of `function` and inserts the phis required."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._variables: dict[Hashable, _Variable] = {}
        self._preds: dict[Block, tuple[Block, ...]] = {}  # of the sealed blocks
        self._incomplete: dict[Block, list[tuple[Phi, _Variable]]] = {}
        self._filled: set[Phi] = set()  # phis that have all their operands
        self._users: dict[Phi, list[Phi]] = {}  # of each phi created here, the users among these phis
        self._replaced: dict[Value, Operand] = {}  # trivial phis

    def declare(self, variable: Hashable, type: Type, hint: str = "", start: Operand | None = None) -> None:
        """Declare `variable`; `start` is its value at the entry of the function (by default, `Undef`)."""
        self._variables[variable] = _Variable(type, hint, Undef(type) if start is None else start, {})

    def write(self, variable: Hashable, block: Block, operand: Operand) -> None:
        """Set the value of `variable` from here on in `block`."""
        self._variables[variable].current[block] = operand

    def read(self, variable: Hashable, block: Block) -> Operand:
        """Return the value of `variable` at the current end of `block`."""
        made: list[tuple[Phi, _Variable, Block]] = []
        operand = self._look_up(self._variables[variable], block, made)
        self._fill(made)
        return self._resolve(operand)

    def seal(self, block: Block, predecessors: Sequence[Block]) -> None:
        """Set the predecessors of `block`: once per block, when no more writes to them will follow."""
        if block in self._preds:
            raise InternalError("ssa: a block is sealed twice")
        self._preds[block] = tuple(dict.fromkeys(predecessors))
        self._fill([(phi, variable, block) for phi, variable in self._incomplete.pop(block, ())])

    def finish(self) -> None:
        """Remove the trivial phis and replace their uses in the function."""
        if self._incomplete:
            raise InternalError("ssa: a block that is read was never sealed")
        for block in self._function.blocks:
            if block not in self._preds:
                raise InternalError("ssa: a block was never sealed")
            block.phis = [phi for phi in block.phis if phi not in self._replaced]
        replace_uses(self._function, {phi: self._resolve(phi) for phi in self._replaced})

    def _look_up(self, variable: _Variable, block: Block, made: list[tuple[Phi, _Variable, Block]]) -> Operand:
        """Return the value at the end of `block`; a phi this requires is added to `made`, without operands yet."""
        current = variable.current
        passed: list[Block] = []
        while True:
            if block in current:
                operand = self._resolve(current[block])
                break
            passed.append(block)
            preds = self._preds.get(block)
            if preds is not None and len(preds) == 1:
                if len(passed) > len(self._preds):
                    raise InternalError("ssa: a loop that cannot be reached")
                block = preds[0]
                continue
            if preds == ():
                operand = variable.start
                break
            operand = phi = Phi(variable.type, variable.hint)
            block.phis.append(phi)
            self._users[phi] = []
            if preds is None:
                self._incomplete.setdefault(block, []).append((phi, variable))
            else:
                made.append((phi, variable, block))
            break
        for block in passed:
            current[block] = operand
        return operand

    def _fill(self, made: list[tuple[Phi, _Variable, Block]]) -> None:
        """Set the operands of phis of sealed blocks, and of the phis that these require."""
        index = 0
        while index < len(made):  # grows meanwhile
            phi, variable, block = made[index]
            index += 1
            preds = self._preds[block]
            if not preds:  # read before the entry was sealed
                self._replaced[phi] = variable.start
                continue
            for pred in preds:
                operand = self._look_up(variable, pred, made)
                phi.incoming[pred] = operand
                if isinstance(operand, Phi) and operand in self._users:
                    self._users[operand].append(phi)
            self._filled.add(phi)
        # The phis created last are the furthest from the first reader: in this order, one visit to each usually
        # suffices.
        self._remove_trivial(phi for phi, _, _ in reversed(made))

    def _remove_trivial(self, phis: Iterable[Phi]) -> None:
        """Replace the phis with one operand other than themselves, then the users that this makes trivial."""
        pending = list(phis)[::-1]
        while pending:
            phi = pending.pop()
            if phi in self._replaced:
                pending += [user for user in self._users.pop(phi, ()) if user not in self._replaced]
                continue
            if phi not in self._filled:
                continue
            same: Operand | None = None
            for operand in map(self._resolve, phi.incoming.values()):
                if operand is phi or operand == same:
                    continue
                if same is not None:
                    break
                same = operand
            else:
                # A phi with no operand but itself is never executed: an unreachable loop.
                replacement = Undef(phi.type) if same is None else same
                self._replaced[phi] = replacement
                users = self._users.pop(phi)
                if isinstance(replacement, Phi) and replacement in self._users:
                    self._users[replacement] += users
                pending += [user for user in users if user not in self._replaced]

    def _resolve(self, operand: Operand) -> Operand:
        """Return the operand that a trivial phi represents; other operands represent themselves."""
        if not isinstance(operand, Value) or operand not in self._replaced:
            return operand
        passed: list[Value] = []
        while isinstance(operand, Value) and operand in self._replaced:
            passed.append(operand)
            operand = self._replaced[operand]
        for value in passed:  # path compression
            self._replaced[value] = operand
        return operand
