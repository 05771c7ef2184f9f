"""Store or recompute: the minimum cut between the values available to the reverse sweep and those it needs.

An alpha is a `Demand`: a value of the forward sweep, as seen from inside a certain loop (or from outside of all). In
the reverse of an iteration, each node is obtained in one of four ways:

    SLOT        not in a loop, or not changed by it: a local variable of the joint function (but slices are recomputed);
                or a variable of the reverse sweep (see `late_shadows.py`)
    INDEX       a counter of the loop: from the iteration number
    RECOMPUTE   from other nodes, by the instruction of the forward sweep
    STORE       from the record of the iteration

A node that must be stored or recomputed is split in two, connected by an edge with the cost of storing it; an
instruction's operands lead to it, so that it can be recomputed only if they are available; nodes that cannot be
recomputed are connected to the source, demanded nodes to the sink. The minimum cut is then the cheapest choice. For a
step of the Runge-Kutta method it stores the state, not the thirty intermediate values.

Overwritten memory can be read again if it is rewound (see `rewinding.py`): then the old values of all writes must
be stored, which in the network is one more node, available to all those reads or to none.

W. Moses et al., "Reverse-mode automatic differentiation and optimization of GPU kernels via Enzyme", SC 2021.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from types import MappingProxyType

from numba import types

from zygote_py.adjoints.reverse.stored.late_shadows import LateShadow
from zygote_py.adjoints.reverse.stored.rewinding import Rewinding
from zygote_py.ir import (
    Block,
    Const,
    Instr,
    Loop,
    LoopNest,
    Memory,
    Operand,
    Phi,
    Value,
    effect,
    grouped,
    is_view,
    ops,
    step_of,
)
from zygote_py.ir.analysis import source_side
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Cost


class Strategy(enum.Enum):
    """The way a node is obtained in the reverse sweep."""

    SLOT = "slot"
    INDEX = "index"
    RECOMPUTE = "recompute"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Demand:
    """A value as seen from the blocks of `loop` (None: from outside of all loops), where it does not change."""

    value: Value
    loop: Loop | None


# Costs are in hundredths of that of storing and loading a float64 in the innermost loop.
_STORE = 100
_REFERENCE = 900  # to an array, which stays alive
_PER_DEPTH = 10
_INFINITE = 2**30
_LARGEST = 2**24


class Plan:
    """The way of every node that is demanded, directly or to recompute another."""

    def __init__(
        self,
        nest: LoopNest,
        home: dict[Value, Block],
        free: Collection[Value],
        memory: Memory,
        immediate: Collection[Loop],
        rewinding: Rewinding,
        late: Mapping[Value, LateShadow] = MappingProxyType({}),
    ) -> None:
        """Prepare the plan; `home` is the block of each value; `free` are values computed once anyway, in either sweep.

        `memory` is that of the forward sweep. The iterations of the `immediate` loops, which are not in the nest, are
        reversed before the next one begins. `late` are shadows that the reverse sweep makes.
        """
        self._nest = nest
        self._home = home
        self._free = free
        self._memory = memory
        self._immediate = immediate
        self._rewinding = rewinding
        self._late = late
        self.given: dict[Value, Operand] = {each.made: each.taken for each in late.values()}  # in the reverse sweep
        self._decided = False  # whether the choice of what to rewind is final
        self.olds: set[Value] = set()  # values overwritten by writes, which must be stored
        self._repeatable: dict[Instr, bool] = {}
        self._anew: set[Value] = set()
        self.strategies: dict[Demand, Strategy] = {}

    def node(self, value: Value, block: Block) -> Demand:
        """Return the node of a value as seen from `block`."""
        if value in self._late:
            value = self._late[value].as_seen_from(block)
        loop = self._nest.innermost(self._home[value]) if value in self._home else None
        while loop is not None and block not in loop:
            loop = loop.parent
        return Demand(value, loop)

    def inputs(self, node: Demand) -> list[Operand | Demand]:
        """Return the inputs from which a node is recomputed: nodes, and operands that are the same everywhere."""
        value = node.value
        if isinstance(value, Phi):
            start, _ = self._counter(value)
            return [self._input(start, node.loop.entering[0])] if node.loop is not None else []
        assert isinstance(value, Instr)
        return [self._input(arg, self._home[value]) for arg in value.args]

    def step(self, phi: Phi) -> int:
        """Return the increment of a counter phi in each iteration."""
        return self._counter(phi)[1]

    def decide_what_to_rewind(self, needed: Iterable[Demand]) -> set[Value]:
        """Choose the roots to rewind and return them."""
        if self._rewinding.writes:
            self.decide(needed)
            self.strategies.clear()
        self._decided = True
        return self._rewinding.chosen

    def decide(self, needed: Iterable[Demand]) -> None:
        """Choose the way of each demanded node and of those that they are recomputed from."""
        wanted = list(dict.fromkeys(needed))
        self._anew = self._made_anew(wanted)
        graph = _Graph()
        seen: dict[Demand, None] = {}
        roots: set[Value] = set()
        pending = list(wanted)
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen[node] = None
            if node.loop is None or node.value in self.given:
                self.strategies[node] = Strategy.RECOMPUTE if _is_slice(node.value) else Strategy.SLOT
                if _is_slice(node.value):
                    pending += [arg for arg in self.inputs(node) if isinstance(arg, Demand)]
                continue
            graph.add(node, self._cost_of_storing(node), self._cost_of_recomputing(node))
            if self.can_recompute(node):
                for arg in self.inputs(node):
                    if isinstance(arg, Demand):
                        pending.append(arg)
                        if arg.loop is not None and arg.value not in self.given:
                            graph.depend(node, arg)
                if (root := self._rewound_for(node)) is not None and not self._decided:
                    if root not in roots:
                        roots.add(root)
                        graph.add(root, self._cost_of_rewinding(root), _INFINITE)
                    graph.depend(node, root)
        stored = graph.cut([node for node in wanted if node.loop is not None and node.value not in self.given])
        self._rewinding.chosen |= roots & stored
        for node in seen:
            if node.loop is not None and node.value not in self.given:
                again = Strategy.INDEX if isinstance(node.value, Phi) else Strategy.RECOMPUTE
                self.strategies[node] = Strategy.STORE if node in stored else again

    def _made_anew(self, wanted: Iterable[Demand]) -> set[Value]:
        """Return the arrays of zeros the reverse sweep can create itself: shadows that do not outlive an iteration.

        The forward sweep does not access such an array, except for views of it, and the reverse sweep needs it only in
        the reverse of the iteration that creates it.
        """
        read_by = ((block.phis, block.instrs, (block.terminator,)) for block in self._nest.tree.order)
        users = grouped((operand, user) for users in read_by for user in chain(*users) for operand in user.args)
        away = {node.value for node in wanted if node.loop is not self._nest.innermost(self._home[node.value])}

        def stays(value: Value) -> bool:
            return value not in away and all(
                isinstance(user, Instr) and is_view(user) and user.args[0] is value and stays(user)
                for user in users.get(value, ())
            )

        found: set[Value] = set()
        for loop in self._nest.loops:
            (latch,) = loop.latches
            for block in loop.order:
                if self._nest.innermost(block) is loop and self._nest.tree.dominates(block, latch):
                    found.update(instr for instr in block.instrs if _makes_zeros(instr) and stays(instr))
        return found

    def _input(self, operand: Operand, block: Block) -> Operand | Demand:
        return self.node(operand, block) if isinstance(operand, Value) and operand in self._home else operand

    def _counter(self, phi: Phi) -> tuple[Operand, int]:
        """Return the start and the increment of a header's phi; the increment is 0 if it is not a counter."""
        loop = self._nest.innermost(self._home[phi])
        if loop is None or self._home[phi] is not loop.header or not isinstance(phi.type, types.Integer):
            return phi, 0
        step = step_of(phi.incoming[loop.latches[0]], phi)
        return (phi.incoming[loop.entering[0]], step) if step else (phi, 0)

    def is_of_its_loop(self, node: Demand) -> bool:
        """Return whether a value is computed in its loop, and not in one within."""
        return node.loop is self._nest.innermost(self._home[node.value])

    def can_recompute(self, node: Demand) -> bool:
        """Return whether a node can be obtained without storing it."""
        value = node.value
        if not self.is_of_its_loop(node):
            return False  # the result of an inner loop
        if value in self._anew:
            return True
        if isinstance(value, Phi):
            return value.type == types.int64 and self._counter(value)[1] != 0
        if not isinstance(value, Instr) or value in self.olds:
            return False
        return self.is_repeatable(value) or self._rewound_for(node) is not None

    def _rewound_for(self, node: Demand) -> Value | None:
        """Return the root that is, or may be, rewound so that a node can be read again."""
        if not isinstance(node.value, Instr) or node.value in self.olds or self.is_repeatable(node.value):
            return None
        root = self._rewinding.root_of(node.value, self._home[node.value])
        return None if self._decided and root not in self._rewinding.chosen else root

    def _cost_of_rewinding(self, root: Value) -> int:
        depths = self._rewinding.depths(root)
        return int(min(sum(_STORE * _PER_DEPTH ** min(depth - 1, 4) for depth in depths if depth > 0), _LARGEST))

    def is_repeatable(self, instr: Instr) -> bool:
        """Return whether an instruction has the same result in the reverse sweep: its inputs are not overwritten."""
        if instr not in self._repeatable:
            what = effect(instr)
            before = [loop.header for loop in self._immediate if self._home[instr] in loop]
            self._repeatable[instr] = what is ops.Effect.PURE or (
                what is ops.Effect.READ and not self._memory.may_be_written_after(instr, None, before)
            )
        return self._repeatable[instr]

    def _cost_of_storing(self, node: Demand) -> int:
        type = node.value.type
        if isinstance(type, types.BaseTuple) and not self.can_recompute(node):  # rather the items that are needed
            return min((len(type) + 1) * _LARGEST, _INFINITE // 2)
        if not isinstance(type, types.Number | types.Boolean):
            if self.can_recompute(node) and not self._is_of_kept_tuple(node):
                return _INFINITE
            return _weighed(_REFERENCE, node) if isinstance(type, types.Array) else _LARGEST
        return _weighed(_STORE if isinstance(type, types.Number) else _STORE // 4, node)

    def _is_of_kept_tuple(self, node: Demand) -> bool:
        """Return whether this is an item of a tuple that would have to be stored."""
        match node.value:
            case Instr(op=ops.getitem, args=(Instr(type=types.BaseTuple()), _)):
                (whole, *_) = self.inputs(node)
                return isinstance(whole, Demand) and whole.loop is not None and not self.can_recompute(whole)
        return False

    def _cost_of_recomputing(self, node: Demand) -> int:
        if not self.can_recompute(node):
            return _INFINITE
        value = node.value
        if isinstance(value, Phi):
            return 0
        assert isinstance(value, Instr)
        if value in self._free:
            return 0
        # The back end hoists loop invariants out of the loop.
        changes = any(isinstance(arg, Demand) and arg.loop is node.loop for arg in self.inputs(node))
        return _weighed(_cost_of(value) if changes else Cost.CHEAP, node)


def _is_slice(value: Value) -> bool:
    """Return whether a value is a slice built from numbers, which is never stored: slices have no placeholder."""
    return isinstance(value, Instr) and value.op is slice


def _makes_zeros(value: Value) -> bool:
    return isinstance(value, Instr) and ops.of(value.op).contents == "zero"


def _weighed(cost: int, node: Demand) -> int:
    """Return a cost in the units of the outermost loop: inner loops run more often."""
    depth = 1 if node.loop is None else node.loop.depth
    return int(min(cost * _PER_DEPTH ** min(depth - 1, 4), _LARGEST))


def _cost_of(instr: Instr) -> int:
    cost = ops.of(instr.op).cost
    if cost is Cost.READ:
        return cost
    if isinstance(instr.type, types.Integer) and all(isinstance(arg, Const) for arg in instr.args[1:]):
        return 2 * Cost.CHEAP  # also a division, by a constant
    match instr.op, instr.args:
        case operator.pow, (_, Const(int(exponent))) if 0 <= exponent <= 4:
            return 2 * Cost.CHEAP
    return cost


class _Graph:
    """A flow network over nodes, each split in an inner and an outer half."""

    _SOURCE, _SINK = 0, 1

    def __init__(self) -> None:
        self._numbers: dict[Demand | Value, int] = {}
        self._edges: dict[tuple[int, int], int] = {}
        self._dependencies: list[tuple[Demand, Demand | Value]] = []

    def add(self, node: Demand | Value, store: int, recompute: int) -> None:
        """Add a node, or a root to rewind, with the costs of storing and of recomputing it."""
        number = self._numbers[node] = 2 + 2 * len(self._numbers)
        self._edges[number, number + 1] = store
        if recompute:
            self._edges[self._SOURCE, number] = recompute

    def depend(self, node: Demand, arg: Demand | Value) -> None:
        """Add the dependency that `node` can be recomputed only where `arg` is available."""
        self._dependencies.append((node, arg))

    def cut(self, needed: list[Demand]) -> set[Demand | Value]:
        """Return the nodes to store."""
        if not needed:
            return set()
        for node, arg in self._dependencies:
            self._edges[self._numbers[arg] + 1, self._numbers[node]] = _INFINITE
        for node in needed:
            self._edges[self._numbers[node] + 1, self._SINK] = _INFINITE
        reached = source_side(self._edges, self._SOURCE, self._SINK)
        return {node for node, number in self._numbers.items() if number in reached and number + 1 not in reached}
