"""Numba's translation of bytecode, without a fault of it: a variable that is read where it was not assigned.

    while True:
        k += 1
        if k > 3:
            y = 2.0 * s       # Numba gives this `y` a name of its own, and every `y` below it in the bytecode, although
            break             # control does not reach the last line from here
        s -= y

`numba.njit` computes a wrong result for this loop (seen in 0.68.1): a name of its own is right only if what follows in
the bytecode follows in time, too. Where it does not, the variable keeps its name here, and Numba's reconstruction of
SSA form, which knows the graph, tells the assignments apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from zygote_py.numba_adapter.base import IRPass, Labels
from zygote_py.numba_adapter.base.internals import Interpreter, TraceRunner, ir
from zygote_py.numba_adapter.types import Undefined


class _Interpreter(Interpreter):
    """Numba's interpreter of bytecode, with care in giving variables new names."""

    _in_order: dict[int, bool]
    dfainfo: Any

    def store(self, value: Any, name: str, redefine: bool = False) -> Any:
        """Assign to a variable; gives the variable."""
        if redefine or self._is_in_order(self.current_block_offset):
            return super().store(value, name, redefine)  # type: ignore[no-untyped-call]
        target = self.current_scope.get_or_define(name, loc=self.loc)
        if isinstance(value, ir.Var):
            value = self.assigner.assign(value, target)
        current: Any = self.current_block
        current.append(ir.Assign(value=value, target=target, loc=self.loc))
        self.definitions[target.name].append(value)
        return target

    def op_LOAD_CLOSURE(self, inst: Any, res: Any) -> None:
        """Take a variable for an inner function; one that is not assigned yet is told by what it holds."""
        try:
            super().op_LOAD_CLOSURE(inst, res)  # type: ignore[no-untyped-call]
        except NotImplementedError:
            self.store(ir.Const(Undefined(), self.loc), res)

    def op_UNPACK_EX(self, inst: Any, iterable: str, stores: list[str]) -> None:
        """Unpack with a star: `a, *b, c = t` as `t = tuple(t); a = t[0]; b = t[1:-1]; c = t[-1]`."""
        before, after = inst.arg & 0xFF, inst.arg >> 8
        function = self.store(ir.Global("tuple", tuple, self.loc), f"$unpacked_function.{inst.offset}")
        call = ir.Expr.call(function, [self.get(iterable)], (), loc=self.loc)  # type: ignore[no-untyped-call]
        whole = self.store(call, f"$unpacked_tuple.{inst.offset}")
        indices = [*range(before), slice(before, -after or None), *range(-after, 0)]
        for index, name in zip(indices, stores, strict=True):
            self.store(ir.Expr.static_getitem(whole, index=index, index_var=None, loc=self.loc), name)

    def _remove_unused_temporaries(self) -> None:
        """Assign results to variables directly, except where they are used again, as in `(y := x) > 0`."""
        block: Any = self.current_block
        used = {var.name for each in block.body for var in _read(each)} | set(self.dfainfo.outgoing_phis.values())
        body: list[Any] = []
        for statement in block.body:
            value: Any = getattr(statement, "value", None)
            is_copy = isinstance(value, ir.Var) and isinstance(statement, ir.Assign) and value.name in used
            if is_copy and body and isinstance(body[-1], ir.Assign) and body[-1].target.name == value.name:
                kept = ir.Var(self.current_scope, f"{value.name}.kept", self.loc)
                body.append(ir.Assign(ir.Const(None, self.loc), kept, self.loc))
                self.definitions[kept.name].append(body[-1].value)
            body.append(statement)
        block.body = body
        super()._remove_unused_temporaries()  # type: ignore[no-untyped-call]

    def _is_in_order(self, block: Any) -> bool:
        """Return whether the blocks after a block in the bytecode run only after it, and those before it do not."""
        if "_in_order" not in self.__dict__:
            self._in_order = dict(_in_order(self.cfa.graph))
        return self._in_order.get(block, False)


def _in_order(graph: Any) -> Iterator[tuple[int, bool]]:
    """Yield the blocks of a graph, and whether each dominates those that follow, from which nothing leads before it."""
    dominators = graph.dominators()
    common: set[int] | None = None  # the dominators of all blocks that follow
    first: float = math.inf  # of those to which the blocks from here on lead
    for block in sorted(dominators, reverse=True):
        first = min((first, *(successor for successor, _ in graph.successors(block))))
        yield block, (common is None or block in common) and first >= block
        common = set(dominators[block]) if common is None else common & dominators[block]


def _read(statement: Any) -> list[Any]:
    """The variables that a statement reads, but for what it copies or stores: Numba sees to those."""
    match statement:
        case ir.Assign(value=ir.Expr(op=op) as value) if op != "exhaust_iter":
            return list(value.list_vars())
        case ir.Assign():
            return []
        case ir.SetItem(value=value) | ir.SetAttr(value=value):
            return [var for var in statement.list_vars() if var is not value]  # type: ignore[no-untyped-call]
        case _:
            return list(statement.list_vars())


class TranslateInOrder(IRPass):
    """Stands for Numba's `TranslateByteCode`."""

    def run_pass(self, state: Any) -> bool:
        """Make the IR of `state` out of its bytecode."""
        interpreter: Any = _Interpreter(state["func_id"])  # type: ignore[no-untyped-call]
        walk: Any = TraceRunner
        walk.op_UNPACK_EX = _walk_unpacking  # which it does not know: while Numba's lock is held
        state["bc"].labels = Labels(state["bc"].labels)
        try:
            state["func_ir"] = interpreter.interpret(state["bc"])
        finally:
            del walk.op_UNPACK_EX
        return True


def _walk_unpacking(runner: Any, state: Any, inst: Any) -> None:
    iterable = state.pop()
    stores = [state.make_temp() for _ in range((inst.arg & 0xFF) + 1 + (inst.arg >> 8))]
    state.append(inst, iterable=iterable, stores=stores)
    for name in reversed(stores):
        state.push(name)
