"""Numba's passes over emitted functions, where there is something for them to do.

After most of its passes Numba computes where each variable is used for the last time, seven times for a function. Only
the last one counts, before lowering; the others are computed where something asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zygote_py.numba_adapter.base import internals, quick_liveness
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
    canonicalize_cfg,
    postproc,
    register_pass,
    rewrite_registry,
)

_ONLY_LOOK = {RewriteArrayExprs, RewriteStringLiteralGetitems, RewriteStringLiteralSetitems}


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


class _StripPhis(PreLowerStripPhis):
    _name = "zygote_py_StripPhis"

    def run_pass(self, state: Any) -> bool:
        """Make assignments of the phis of `state`."""
        with _lifetimes_later(state.func_ir):
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]


class _Legalization(IRLegalization):
    _name = "zygote_py_Legalization"

    def run_pass(self, state: Any) -> bool:
        """Delete the variables of `state` after their last uses."""
        with quick_liveness():
            return super().run_pass(state)  # type: ignore[no-any-return,no-untyped-call]


class _Rewrites(NopythonRewrites):
    """Numba's rewriting of typed IR, which it prepares and cleans up after, if there is something to rewrite."""

    _name = "zygote_py_Rewrites"

    def run_pass(self, state: Any) -> bool:
        """Rewrite the IR of `state`."""
        return _may_match(state) and super().run_pass(state)  # type: ignore[no-untyped-call]


def _may_match(state: Any) -> bool:
    blocks = state.func_ir.blocks
    for kind in rewrite_registry.rewrites["after-inference"]:
        if kind is internals.RewriteArrayOfConsts:
            if any(each.op == "build_list" for block in blocks.values() for each in block.find_exprs()):
                return True
        elif kind in _ONLY_LOOK:
            rewrite = kind(state)
            if any(rewrite.match(state.func_ir, each, state.typemap, state.calltypes) for each in blocks.values()):
                return True
        else:
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
    NopythonRewrites: _Rewrites,
    InlineClosureLikes: _InlineClosures,
}
for _pass in LEAN.values():
    register_pass(mutates_CFG=True, analysis_only=False)(_pass)
