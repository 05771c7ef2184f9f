"""How Numba compiles emitted functions: its own passes, with some of this package."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from numba import types

from zygote_py.ir import Lanes
from zygote_py.numba_adapter.base import propagating_changes
from zygote_py.numba_adapter.base.internals import (
    ConfigStack,
    IRLegalization,
    IRProcessing,
    NativeLowering,
    NativeParforLowering,
    NopythonTypeInference,
    PassManager,
    ReconstructSSA,
    register_pass,
    signature,
)
from zygote_py.numba_adapter.emitted.conditional_expressions import JoinBranches
from zygote_py.numba_adapter.emitted.entries import EmittedLowering
from zygote_py.numba_adapter.emitted.lean_passes import LEAN
from zygote_py.numba_adapter.emitted.linear_ssa import LinearSSA
from zygote_py.numba_adapter.emitted.lowering.native_calls import native_call
from zygote_py.numba_adapter.emitted.never_negative import NeverNegative
from zygote_py.numba_adapter.emitted.recurrences import PredictGuards
from zygote_py.numba_adapter.emitted.shared_values import ShareValues
from zygote_py.numba_adapter.emitted.typed_rewrites import AddArrays, EmptyLists
from zygote_py.numba_adapter.types import LowerParforsWithClasses


class _TypeInference(NopythonTypeInference):
    """Numba's type inference, with the signature of each operation on values of some types found once.

    Numba tries all that an operator may be for each statement, and adds the same two numbers a hundred times. Calls
    that are lowered here need no function of Numba's.
    """

    _name = "zygote_py_TypeInference"

    def run_pass(self, state: Any) -> bool:
        """Infer the types of `state`."""
        context = state.typingctx
        outer = vars(context).get("resolve_function_type")  # not None if this is within another
        resolution = outer if isinstance(outer, _Resolution) else _Resolution(context)
        is_lowered_here = not state.flags.auto_parallel.enabled
        resolution.emitted.append(state.func_ir.func_id if is_lowered_here else None)
        context.resolve_function_type = resolution
        context.resolve_setitem = resolution.of_setitem
        try:
            with propagating_changes():
                return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]
        finally:
            resolution.emitted.pop()
            if not resolution.emitted:
                del context.resolve_function_type, context.resolve_setitem


register_pass(mutates_CFG=True, analysis_only=False)(_TypeInference)


class _Resolution:
    """Finds the signatures of calls, each once, in an emitted function and in what is typed for it."""

    def __init__(self, context: Any) -> None:
        self.emitted: list[Any] = []  # the emitted functions that are being typed, one within the other
        self._stack = context.callstack
        self._resolve = context.resolve_function_type
        self._resolve_setitem = context.resolve_setitem
        self._known: dict[Any, Any] = {}

    def __call__(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call."""
        if kws or not isinstance(func, BuiltinFunctionType | types.Function):
            return self._resolve(func, args, kws)
        is_emitted = self._stack[0].func_id is self.emitted[-1]
        flags: Any = ConfigStack.top_or_none()  # what is lowered here may depend on `fastmath`
        key = id(func), tuple(args), is_emitted, flags is None or bool(flags.fastmath)
        found = self._known.get(key)
        if found is None:
            native = native_call(func, tuple(args)) if is_emitted else None
            typed = native.signature if native is not None else self._resolve(func, args, kws)
            found = self._known[key] = func, typed  # the function stays alive, and so its identity
        return found[1]

    def of_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Return the signature of `target[index] = value`."""
        key = target, index, value
        if key not in self._known:
            is_of_lanes = type(value) is Lanes and isinstance(target, types.Array)
            found = signature(types.none, target, index, value) if is_of_lanes else None
            self._known[key] = found or self._resolve_setitem(target, index, value)
        return self._known[key]


_OURS: dict[Any, Any] = {
    **LEAN,
    ReconstructSSA: LinearSSA,
    NopythonTypeInference: _TypeInference,
    NativeLowering: EmittedLowering,
    NativeParforLowering: LowerParforsWithClasses,
}


def with_ours(given: Any) -> PassManager:
    """Return Numba's passes with those of this package."""
    made: Any = PassManager(given.pipeline_name)
    for step, description in given.passes:
        if step is IRLegalization:
            made.add_pass(NeverNegative, "integers that are never negative")
        made.add_pass(_OURS.get(step, step), description)
        if step is ReconstructSSA:
            made.add_pass(ShareValues, "constants, functions and tuples once")
            made.add_pass(PredictGuards, "guards of recurrences to branches")
        if step is NopythonTypeInference:
            made.add_pass(AddArrays, "additions to arrays to calls")
            made.add_pass(EmptyLists, "lists of a type without the item that tells it")
        if step is IRProcessing:
            made.add_pass(JoinBranches, "conditional expressions to selects")
    made.finalize()
    return made  # type: ignore[no-any-return]
