"""The pipeline of emitted functions, of which nothing more is imported where their code is read from disk."""

from __future__ import annotations

from typing import Any

from zygote_py.numba_adapter.base.internals import PassManager, compiler


class EmittedPipeline(compiler.Compiler):
    """Numba's pipeline with the passes of this package."""

    def __init__(self, *state: Any) -> None:
        # The import registers what compiled code calls, and so comes before Numba looks for what has been registered.
        from zygote_py.numba_adapter.emitted.passes import with_ours

        self._with_ours = with_ours
        super().__init__(*state)  # type: ignore[no-untyped-call]

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes."""
        return [self._with_ours(each) for each in super().define_pipelines()]  # type: ignore[no-untyped-call]
