"""Numba's passes over emitted functions, where there is something for them to do.

After most of its passes Numba computes where each variable is used for the last time, seven times for a function. Only
the last one counts, before lowering; the others are computed where something asks for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import types

from zygote_py.numba_adapter.base import Labels, internals, quick_liveness
from zygote_py.numba_adapter.base.internals import (
    GenericRewrites,
    InlineClosureLikes,
    IRLegalization,
    IRProcessing,
    NopythonRewrites,
    PreLowerStripPhis,
    RewriteArrayExprs,
    RewriteStringLiteralGetitems,
    RewriteStringLiteralSetitems,
    TranslateByteCode,
    canonicalize_cfg,
    ir,
    postproc,
    register_pass,
    rewrite_registry,
)
from zygote_py.numba_adapter.emitted.edges import block_between, separate_deaths

_OF_STRINGS = {RewriteStringLiteralGetitems, RewriteStringLiteralSetitems}
_ONLY_LOOK = {RewriteArrayExprs, *_OF_STRINGS}


def find_lifetimes_later(func_ir: Any) -> None:
    """Do what Numba does after a pass, but for the lifetimes of variables."""
    if func_ir.is_generator:
        postproc.PostProcessor(func_ir).run()
        return
    func_ir.blocks = canonicalize_cfg(func_ir.blocks)
    func_ir.variable_lifetime = postproc.VariableLifetime(func_ir.blocks)  # computes what is asked for
    func_ir.generator_info = None


@contextmanager
def _lifetimes_later(func_ir: Any) -> Iterator[None]:
    """Within this, Numba's passes do not compute the lifetimes of a function's variables."""
    processor: Any = postproc.PostProcessor
    run = processor.run

    def lean(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        if emit_dels or self.func_ir is not func_ir or func_ir.is_generator:
            run(self, emit_dels, extend_lifetimes)
        else:
            find_lifetimes_later(func_ir)

    processor.run = lean
    try:
        yield
    finally:
        processor.run = run


class _IRProcessing(IRProcessing):
    _name = "zygote_py_IRProcessing"

    def run_pass(self, state: Any) -> bool:
        """Prepare the IR of `state`."""
        with _lifetimes_later(state.func_ir):
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]


class _GenericRewrites(GenericRewrites):
    _name = "zygote_py_GenericRewrites"

    def run_pass(self, state: Any) -> bool:
        """Rewrite the IR of `state` before its types are inferred."""
        with _lifetimes_later(state.func_ir):
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]


class _Translation(TranslateByteCode):
    _name = "zygote_py_Translation"

    def run_pass(self, state: Any) -> bool:
        """Make the IR of `state` out of its bytecode."""
        state["bc"].labels = Labels(state["bc"].labels)
        return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]


def _counting(state: Any) -> Callable[[str], bool]:
    """Return a function that tells whether values of a variable count references."""
    models: Any = state.targetctx.data_model_manager

    @functools.cache
    def counts(kind: Any) -> bool:
        return models[kind].contains_nrt_meminfo()  # type: ignore[no-any-return]

    return lambda name: counts(state.typemap[name])


class _StripPhis(PreLowerStripPhis):
    _name = "zygote_py_StripPhis"

    def run_pass(self, state: Any) -> bool:
        """Make assignments of the phis of `state`."""
        self._counts = _counting(state)
        with _lifetimes_later(state.func_ir):
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]

    def _strip_phi_nodes(self, func_ir: Any) -> Any:
        """Assign the values of phis at the ends of edges, each as early as it is known, in one walk over each block.

        Where a block that ends with a branch gives an array to one of the ways, that way gets a block for it. Otherwise
        a loop would, for a phi that follows it, count the references to that array anew in each iteration.
        """
        coming: dict[tuple[int, int], list[Any]] = {}
        for label, block in func_ir.blocks.items():
            kept = []
            for each in block.body:
                phi = each.value if type(each) is ir.Assign else None
                if type(phi) is not ir.Expr or phi.op != "phi":
                    kept.append(each)
                    continue
                for before, value in zip(phi.incoming_blocks, phi.incoming_values, strict=True):
                    given = ir.Expr.null(loc=func_ir.loc) if value is ir.UNDEFINED else value
                    made = ir.Assign(value=given, target=each.target, loc=given.loc)
                    coming.setdefault((before, label), []).append(made)
            block.body = kept
        added: dict[int, list[Any]] = {}
        for (before, label), copies in coming.items():
            if func_ir.is_generator or not self._put_between(func_ir.blocks, before, label, copies):
                added.setdefault(before, []).extend(copies)
        for label, copies in added.items():
            func_ir.blocks[label].body = _placed(func_ir.blocks[label].body, copies)
        return func_ir

    def _put_between(self, blocks: dict[int, Any], before: int, after: int, copies: list[Any]) -> bool:
        """Put copies of arrays into a block of their own, if they would be made on other ways, too."""
        if not any(self._counts(each.target.name) for each in copies):
            return False
        block = block_between(blocks, before, after)
        if block is not None:
            block.body[:0] = _placed([], copies)
        return block is not None


def _placed(body: list[Any], added: Iterable[Any]) -> list[Any]:
    """Return statements with others, each after the last that assigns the variable it copies, else at the start."""
    last = {each.target.name: each for each in body if type(each) is ir.Assign}
    following: dict[Any, list[Any]] = {}
    for each in added:
        before = last.get(each.value.name) if isinstance(each.value, ir.Var) else None
        following.setdefault(before and id(before), []).append(each)
        last[each.target.name] = each
    result: list[Any] = []
    waiting = [*reversed(body), *following.get(None, ())]
    while waiting:
        result.append(waiting.pop())
        waiting += following.pop(id(result[-1]), ())
    return result


class _Legalization(IRLegalization):
    _name = "zygote_py_Legalization"

    def run_pass(self, state: Any) -> bool:
        """Delete the variables of `state` after their last uses."""
        with quick_liveness():
            separate_deaths(state.func_ir, _counting(state))
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]


class _Rewrites(NopythonRewrites):
    """Numba's rewriting of typed IR, which it prepares and cleans up after, if there is something to rewrite."""

    _name = "zygote_py_Rewrites"

    def run_pass(self, state: Any) -> bool:
        """Rewrite the IR of `state`."""
        return _may_match(state) and super().run_pass(state)  # type: ignore[no-untyped-call]


def _may_match(state: Any) -> bool:
    kinds = set(rewrite_registry.rewrites["after-inference"])
    if kinds - _ONLY_LOOK - {internals.RewriteArrayOfConsts}:
        return True
    if not any(isinstance(kind, types.StringLiteral) for kind in state.typemap.values()):
        kinds -= _OF_STRINGS
    looking = [kind(state) for kind in kinds & _ONLY_LOOK]
    for block in state.func_ir.blocks.values():
        for each in block.body:
            value = each.value if type(each) is ir.Assign else None
            if type(value) is ir.Expr and value.op == "build_list" and value.items:
                return True
        if any(each.match(state.func_ir, block, state.typemap, state.calltypes) for each in looking):
            return True
    return False


class _InlineClosures(InlineClosureLikes):
    """Numba's pass, for functions with comprehensions: others it only goes through."""

    _name = "zygote_py_InlineClosures"

    def run_pass(self, state: Any) -> bool:
        """Inline the closures of `state`."""
        blocks = state.func_ir.blocks.values()
        if any(each.op == "make_function" for block in blocks for each in block.find_exprs()):
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]
        return False


LEAN: dict[Any, Any] = {
    IRLegalization: _Legalization,
    IRProcessing: _IRProcessing,
    GenericRewrites: _GenericRewrites,
    PreLowerStripPhis: _StripPhis,
    TranslateByteCode: _Translation,
    NopythonRewrites: _Rewrites,
    InlineClosureLikes: _InlineClosures,
}
for _pass in LEAN.values():
    register_pass(mutates_CFG=True, analysis_only=False)(_pass)
