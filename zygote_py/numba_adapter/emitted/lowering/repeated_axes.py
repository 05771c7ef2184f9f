"""Indices of arrays that may be repeated along an axis: `x[i if c else 0]`, where a loop does not change `c`.

    for j in range(m):                                  s = 1 if c else 0
        y[i, j] = q[t, j if c else 0] + 1.0     ->      for j in range(m): y[i, j] = q[t, j * s] + 1.0

LLVM makes a loop for either value of `c`, thus four for two arrays, 16 for those of two axes, and unrolls each for its
vectors. Of a product with a number that it knows nothing of it makes one loop with vectors, for `s` being 1, and one
without. That the number is `c` is hidden from LLVM, which would write the product as a selection again. The one without
vectors is not unrolled: it is eight times as long then, and takes a tenth of the time for machine code where arrays are
added up in a dozen places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import llvmlite.ir as llvm

from zygote_py.numba_adapter.base.internals import compute_cfg_from_blocks, ir
from zygote_py.numba_adapter.emitted.lowering.elements import Node


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
    """

    def __init__(self, blocks: Mapping[int, Any], kept: set[str], select: object) -> None:
        self._blocks = blocks
        self._select = select
        self._assigned = {
            statement.target.name: (label, statement.value)
            for label, block in blocks.items()
            for statement in block.find_insts(ir.Assign)
            if statement.target.name in kept
        }
        self._graph: Any = None
        self._steps: dict[int, tuple[Any, Any]] = {}
        self._loops: dict[int, Any] = {}  # those with such an index, by the label of the block that begins them

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
        loop = self._innermost(label)
        if loop is None or self._assigned[condition][0] in loop.body:
            return None
        self._loops[loop.header] = loop
        return condition, index

    def leave_rolled(self, module: Any, jump: Any, label: int, target: int) -> None:
        """Tell LLVM not to unroll a loop with such an index, if this jump from one block to another goes around it."""
        if target in self._loops and label in self._loops[target].body:
            loop = Node(module)
            loop.operands = loop, Node(module, [llvm.MetaDataString(module, "llvm.loop.unroll.runtime.disable")])
            jump.set_metadata("llvm.loop", loop)

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

    def _innermost(self, label: int) -> Any:
        """Return the innermost loop around a block; None if it is in none."""
        if self._graph is None:
            self._graph = compute_cfg_from_blocks(self._blocks)
        around = self._graph.in_loops(label)
        return around[0] if around else None
