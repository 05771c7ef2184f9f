"""How Numba compiles emitted functions: its own passes, with some of this package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np
from numba import types

from zygote_py.numba_adapter.base.internals import (
    InlineClosureLikes,
    IRProcessing,
    NativeLowering,
    NativeParforLowering,
    NopythonTypeInference,
    PassManager,
    ReconstructSSA,
    compiler,
    register_pass,
)
from zygote_py.numba_adapter.target.conditional_expressions import JoinBranches
from zygote_py.numba_adapter.target.linear_ssa import LinearSSA
from zygote_py.numba_adapter.target.shared_values import ShareValues
from zygote_py.numba_adapter.types import LowerParforsWithClasses, LowerWithClasses


class _TypeInference(NopythonTypeInference):
    """Numba's type inference, with the signature of each operation on values of some types found once.

    Numba tries all that an operator may be for each statement, and adds the same two numbers a hundred times.
    """

    _name = "zygote_py_TypeInference"

    def run_pass(self, state: Any) -> bool:
        """Infer the types of `state`."""
        context = state.typingctx
        if "resolve_function_type" in vars(context):  # this is within another
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]
        context.resolve_function_type = functools.partial(_resolved, context.resolve_function_type, {})
        try:
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]
        finally:
            del context.resolve_function_type


register_pass(mutates_CFG=True, analysis_only=False)(_TypeInference)


def _resolved(resolve: Callable[..., Any], known: dict[Any, Any], func: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call."""
    is_known = isinstance(func, BuiltinFunctionType) or (
        isinstance(func, types.Function) and isinstance(func.typing_key, np.ufunc)
    )
    if kws or not is_known:
        return resolve(func, args, kws)
    key = id(func), tuple(args)
    found = known.get(key)
    if found is None:
        signature = resolve(func, args, kws)
        found = known[key] = func, signature  # the function stays alive, and so its identity
    return found[1]


class _InlineClosures(InlineClosureLikes):
    """Numba's pass, for functions with comprehensions: others it only goes through."""

    _name = "zygote_py_InlineClosures"

    def run_pass(self, state: Any) -> bool:
        """Inline the closures of `state`."""
        blocks = state.func_ir.blocks.values()
        if any(each.op == "make_function" for block in blocks for each in block.find_exprs()):
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]
        return False


register_pass(mutates_CFG=True, analysis_only=False)(_InlineClosures)

_OURS = {
    ReconstructSSA: LinearSSA,
    NopythonTypeInference: _TypeInference,
    InlineClosureLikes: _InlineClosures,
    NativeLowering: LowerWithClasses,
    NativeParforLowering: LowerParforsWithClasses,
}


class EmittedPipeline(compiler.Compiler):
    """The pipeline of emitted functions."""

    def define_pipelines(self) -> list[PassManager]:
        """Return Numba's passes with those of this package."""
        return [self._changed(each) for each in super().define_pipelines()]  # type: ignore[no-untyped-call]

    def _changed(self, given: Any) -> PassManager:
        made: Any = PassManager(given.pipeline_name)
        for step, description in given.passes:
            made.add_pass(_OURS.get(step, step), description)
            if step is ReconstructSSA:
                made.add_pass(ShareValues, "constants, functions and tuples once")
            if step is IRProcessing:
                made.add_pass(JoinBranches, "conditional expressions to selects")
        made.finalize()
        return made  # type: ignore[no-any-return]
