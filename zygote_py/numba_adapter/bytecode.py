"""Numba's translation of bytecode, without a fault of it: a variable that is read where it was not assigned.

    while True:
        k += 1
        if k > 3:
            y = 2.0 * s       # Numba gives this `y` a name of its own, and every `y` below it in the bytecode, although
            break             # control does not come to the last line from here
        s -= y

`numba.njit` computes a wrong result for this loop (seen in 0.68.1): a name of its own is right only if what follows in
the bytecode follows in time, too. Where it does not, the variable keeps its name here, and Numba's reconstruction of
SSA form, which knows the graph, tells the assignments apart.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.interpreter import Interpreter

from zygote_py.numba_adapter.closures import Undefined


class _Interpreter(Interpreter):
    """Numba's interpreter of bytecode, with care in giving variables new names."""

    _in_order: dict[int, bool]

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

    def _is_in_order(self, block: Any) -> bool:
        """Whether all that stands behind a block runs only after it, and nothing that stands before it does."""
        known = self.__dict__.setdefault("_in_order", {})
        if block not in known:
            graph = self.cfa.graph
            dominators = graph.dominators()
            after = {block}
            pending = [block]
            while pending:
                new = [successor for successor, _ in graph.successors(pending.pop()) if successor not in after]
                after.update(new)
                pending += new
            known[block] = all(
                block in dominators[other] if other > block else other not in after
                for other in dominators
                if other != block
            )
        return bool(known[block])


@register_pass(mutates_CFG=True, analysis_only=False)
class TranslateInOrder(FunctionPass):
    """Stands for Numba's `TranslateByteCode`."""

    _name = "zygote_py_translate_bytecode"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Make the IR of `state` out of its bytecode."""
        interpreter: Any = _Interpreter
        state["func_ir"] = interpreter(state["func_id"]).interpret(state["bc"])
        return True
