"""Notes to LLVM on loops: which indices may be repeated, and which branches are to stay branches.

    for j in range(m):                                  s = 1 if c else 0
        y[i, j] = q[t, j if c else 0] + 1.0     ->      for j in range(m): y[i, j] = q[t, j * s] + 1.0

Of an index that is zero unless a condition holds, which the loop does not change, LLVM makes a loop for either value of
`c`, thus four for two arrays, 16 for those of two axes, and unrolls each for its vectors. Of a product with a number
that it knows nothing of it makes one loop with vectors, for `s` being 1, and one without. That the number is `c` is
hidden from LLVM, which would write the product as a selection again. The one without vectors is not unrolled: it is
eight times as long then, and takes a tenth of the time for machine code where arrays are added up in a dozen places.

    for i in range(n):
        if x[i] > 1.0:
            t = math.exp(-x[i])         LLVM takes this to cost as little as an addition, and to make vectors of the
        else:                           loop it would compute both sides in all rounds: an exponential in each
            t = 1.0 - x[i]
        dx[i] = t * dy

A loop with a function of `math` in a branch does not become one of vectors, unless the function itself is one of
vectors (`fastmath`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

import llvmlite.ir as llvm
import numpy as np
from numba import types

from zygote_py.numba_adapter.base.internals import compute_cfg_from_blocks, ir
from zygote_py.numba_adapter.emitted.lowering.elements import Node

_NOT_UNROLLED, _NOT_IN_VECTORS = "unroll.runtime.disable", "vectorize.enable"
# Those that LLVM has operations of its own for, and that it computes where their result may not be needed.
_COSTLY: frozenset[Any] = frozenset(
    {math.exp, math.log, math.log2, math.log10, math.sin, math.cos, math.tan, math.pow, operator.pow}
    | {np.exp, np.exp2, np.log, np.log2, np.log10, np.sin, np.cos, np.tan, np.power}
)


class LoopHints:
    """Notes to LLVM on the loops of a function, at the jumps that close these."""

    def __init__(self, blocks: Mapping[int, Any]) -> None:
        self._blocks = blocks
        self._graph: Any = None
        self._hints: dict[int, dict[str, None]] = {}  # by the label of the block that begins a loop
        self._bodies: dict[int, Collection[int]] = {}

    def innermost(self, label: int) -> Any:
        """Return the innermost loop around a block; None if it is in none."""
        if self._graph is None:
            self._graph = compute_cfg_from_blocks(self._blocks)
        around = self._graph.in_loops(label)
        return around[0] if around else None

    def leave_rolled(self, loop: Any) -> None:
        """Tell LLVM not to unroll a loop."""
        self._add(loop, _NOT_UNROLLED)

    def keep_branches(self, typeof: Callable[[str], Any]) -> None:
        """Tell LLVM to make no vectors of the loops that call costly functions in a branch."""
        for label, block in self._blocks.items():
            loop = self.innermost(label) if any(_is_costly(each, typeof) for each in block.body) else None
            if loop is None:
                continue
            above = self._graph.dominators()
            ends = (end for end, _ in self._graph.predecessors(loop.header) if end in loop.body)
            if not all(label in above[end] for end in ends):
                self._add(loop, _NOT_IN_VECTORS)

    def tell(self, module: Any, jump: Any, label: int, target: int) -> None:
        """Tell LLVM what there is to say of a loop, if this jump from one block to another goes around it."""
        if target not in self._hints or label not in self._bodies[target]:
            return
        hints = []
        for each in self._hints[target]:
            off = [llvm.Constant(llvm.IntType(1), 0)] if each is _NOT_IN_VECTORS else []
            hints.append(Node(module, [llvm.MetaDataString(module, f"llvm.loop.{each}"), *off]))
        loop = Node(module)
        loop.operands = loop, *hints
        jump.set_metadata("llvm.loop", loop)

    def _add(self, loop: Any, hint: str) -> None:
        self._hints.setdefault(loop.header, {})[hint] = None
        self._bodies[loop.header] = loop.body


def _is_costly(statement: Any, typeof: Callable[[str], Any]) -> bool:
    """Return whether a statement computes a function that costs far more than LLVM takes it to."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(value, ir.Expr):
        return False
    if value.op == "binop":
        return value.fn is operator.pow and isinstance(typeof(value.rhs.name), types.Float)
    function = typeof(value.func.name) if value.op == "call" else None
    return isinstance(function, types.Function) and function.typing_key in _COSTLY


class RepeatedAxes:
    """The indices in a function that are zero, unless a condition holds that their loop does not change.

    Parameters
    ----------
    blocks : dict[int, ir.Block]
        The function.
    kept : set[str]
        The variables that are assigned once, and lowered before their uses.
    select : object
        The function whose call selects one of two values.
    hints : LoopHints
        Notes to LLVM on loops.
    """

    def __init__(self, blocks: Mapping[int, Any], kept: set[str], select: object, hints: LoopHints) -> None:
        self._hints = hints
        self._select = select
        self._assigned = {
            statement.target.name: (label, statement.value)
            for label, block in blocks.items()
            for statement in block.find_insts(ir.Assign)
            if statement.target.name in kept
        }
        self._steps: dict[int, tuple[Any, Any]] = {}

    def items(self, index: str, count: int) -> list[str]:
        """Return the variables of the items of an index."""
        if count > 1 and (found := self._value(index)) is not None and found.op == "build_tuple":
            return [each.name for each in found.items]
        return [index] if count == 1 else []

    def condition(self, item: str, label: int) -> tuple[str, str] | None:
        """Return the condition and the index that an item of an index in a block is, if it is one of these."""
        call = self._value(item)
        if call is None or call.op != "call" or call.kws or call.vararg is not None or len(call.args) != 3:
            return None
        condition, index, other = (self._source(each.name) for each in call.args)
        test = self._value(condition)
        if test is not None and test.op == "call" and self._loaded(test.func.name) is bool:
            condition = self._source(test.args[0].name)
        zero = self._assigned.get(other, (0, None))[1]
        is_zero = isinstance(zero, ir.Const) and type(zero.value) is int and zero.value == 0
        if not is_zero or self._loaded(call.func.name) is not self._select or condition not in self._assigned:
            return None
        if index not in self._assigned:  # it may be another by now
            return None
        loop = self._hints.innermost(label)
        if loop is None or self._assigned[condition][0] in loop.body:
            return None
        self._hints.leave_rolled(loop)
        return condition, index

    def step(self, builder: Any, condition: Any) -> Any:
        """Return 1 where a condition holds and 0 elsewhere, as a number that LLVM knows nothing of."""
        known = self._steps.get(id(condition))
        if known is not None:
            return known[1]
        word = llvm.IntType(64)
        with builder.goto_block(condition.parent):
            builder.position_after(condition)
            hidden = llvm.InlineAsm(llvm.FunctionType(word, [word]), "", "=r,0")
            step = builder.call(hidden, [builder.zext(condition, word)])
        self._steps[id(condition)] = condition, step
        return step

    def _source(self, name: str) -> str:
        """Return the variable that a variable is a copy of."""
        while isinstance(value := self._assigned.get(name, (0, None))[1], ir.Var) and value.name in self._assigned:
            name = value.name
        return name

    def _value(self, name: str) -> Any:
        """Return the expression that a variable is assigned; None if it is assigned something else."""
        value = self._assigned.get(self._source(name), (0, None))[1]
        return value if isinstance(value, ir.Expr) else None

    def _loaded(self, name: str) -> object:
        """Return the object outside the function that a variable is assigned."""
        value = self._assigned.get(self._source(name), (0, None))[1]
        return value.value if isinstance(value, ir.Global | ir.FreeVar) else None
