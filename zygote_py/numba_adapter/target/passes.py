"""How Numba compiles emitted functions: its own passes, with some of this package."""

from __future__ import annotations

from typing import Any

from zygote_py.numba_adapter.base.internals import IRProcessing, PassManager, ReconstructSSA, compiler
from zygote_py.numba_adapter.target.conditional_expressions import JoinBranches
from zygote_py.numba_adapter.target.linear_ssa import LinearSSA


class EmittedPipeline(compiler.Compiler):
    """The pipeline of emitted functions."""

    def define_pipelines(self) -> list[PassManager]:
        """Return Numba's passes with those of this package."""
        return [self._changed(each) for each in super().define_pipelines()]  # type: ignore[no-untyped-call]

    def _changed(self, given: Any) -> PassManager:
        made: Any = PassManager(given.pipeline_name)
        for step, description in given.passes:
            made.add_pass(LinearSSA if step is ReconstructSSA else step, description)
            if step is IRProcessing:
                made.add_pass(JoinBranches, "conditional expressions to selects")
        made.finalize()
        return made  # type: ignore[no-any-return]
