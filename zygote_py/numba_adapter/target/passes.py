"""How Numba compiles emitted functions: its own passes, with some of this package.

`dx += dot_left(w, dy)`, of whole arrays, becomes the call of one function: Numba writes out a loop for each such
statement, with all that it takes for arrays that broadcast, which LLVM takes a tenth of a second to optimise.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np
from numba import types

from zygote_py.numba_adapter.base import IRPass, fresh, link_only
from zygote_py.numba_adapter.base.internals import (
    CPUDispatcher,
    InlineClosureLikes,
    IRProcessing,
    NopythonTypeInference,
    PassManager,
    ReconstructSSA,
    compiler,
    ir,
    register_pass,
)
from zygote_py.numba_adapter.target.conditional_expressions import JoinBranches
from zygote_py.numba_adapter.target.linear_ssa import LinearSSA
from zygote_py.numba_adapter.target.shared_values import ShareValues


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

NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class CalledFromCode(CPUDispatcher):
    """A function that runs in the interpreter if Python calls it: what is compiled has no entry for that."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        link_only(self)

    def add_overload(self, cres: Any) -> None:
        """Keep what was compiled for compiled code alone."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: Any, **keywords: Any) -> Any:
        return self.py_func


def _added_vector(x: Any, y: Any) -> Any:
    n = len(y)
    if n not in (1, len(x)):
        raise ValueError("an array is added to one of another shape")
    for i in range(len(x)):
        x[i] += y[i if n > 1 else 0]
    return x


def _added_rows(x: Any, y: Any) -> Any:
    n, m = y.shape
    if n not in (1, x.shape[0]) or m not in (1, x.shape[1]):
        raise ValueError("an array is added to one of another shape")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += y[i if n > 1 else 0, j if m > 1 else 0]
    return x


def _added_columns(x: Any, y: Any) -> Any:
    n, m = y.shape
    if n not in (1, x.shape[0]) or m not in (1, x.shape[1]):
        raise ValueError("an array is added to one of another shape")
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            x[i, j] += y[i if n > 1 else 0, j if m > 1 else 0]
    return x


def _called(function: Callable[..., Any]) -> CalledFromCode:
    return CalledFromCode(function, {}, {"nopython": True, **NO_WRAPPERS})


# By the layout and number of axes of the array that is added to.
_ADDED = {("C", 1): _called(_added_vector), ("C", 2): _called(_added_rows), ("F", 2): _called(_added_columns)}


class CallSums(IRPass):
    """Lets the additions to whole arrays be calls of a function; types are known."""

    def change(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        is_changed = False
        for block in state.func_ir.blocks.values():
            body: list[Any] = []
            for statement in block.body:
                if self._is_sum(statement, state.typemap):
                    body += self._call(state, statement, block.scope)
                    is_changed = True
                body.append(statement)
            block.body = body
        return is_changed

    def _is_sum(self, statement: Any, kinds: Any) -> bool:
        value = statement.value if isinstance(statement, ir.Assign) else None
        if not isinstance(value, ir.Expr) or value.op != "inplace_binop" or value.immutable_fn is not operator.add:
            return False
        into, added = kinds[value.lhs.name], kinds[value.rhs.name]
        if type(into) is not types.Array or type(added) is not types.Array or (into.layout, into.ndim) not in _ADDED:
            return False
        is_alike = (into.dtype, into.ndim) == (added.dtype, added.ndim)
        return is_alike and bool(kinds[statement.target.name] == into)

    def _call(self, state: Any, statement: Any, scope: Any) -> list[Any]:
        """Let a statement call the function; return the one that loads this."""
        given, loc = statement.value, statement.loc
        arguments = tuple(state.typemap[each.name] for each in (given.lhs, given.rhs))
        function = _ADDED[arguments[0].layout, arguments[0].ndim]
        load = fresh(state.func_ir, scope, ir.Global(function.py_func.__name__, function, loc), loc)
        kind = state.typemap[load.target.name] = types.Dispatcher(function)
        statement.value = ir.Expr.call(load.target, (given.lhs, given.rhs), (), loc)
        del state.calltypes[given]
        state.calltypes[statement.value] = state.typingctx.resolve_function_type(kind, arguments, {})
        return [load]


_OURS = {
    ReconstructSSA: LinearSSA,
    NopythonTypeInference: _TypeInference,
    InlineClosureLikes: _InlineClosures,
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
            if step is NopythonTypeInference:
                made.add_pass(CallSums, "sums of whole arrays to calls")
            if step is IRProcessing:
                made.add_pass(JoinBranches, "conditional expressions to selects")
        made.finalize()
        return made  # type: ignore[no-any-return]
