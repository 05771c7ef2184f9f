"""The form in which functions are differentiated: array operations as loops, control flow in canonical form."""

from __future__ import annotations

from zygote_py.ir import passes
from zygote_py.ir.arrays.expand import expand_arrays
from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import Function

_PASSES = (*passes.CLEAN_UP, expand_arrays, *passes.CLEAN_UP, *passes.CANONICAL)


def make_canonical(function: Function) -> None:
    """Bring a function into canonical form, in place."""
    passes.run(function, _PASSES)
    if passes.fuse_loops(function):
        check_after("fuse_loops", function)
        passes.run(function, passes.CLEAN_UP)
    passes.run(function, [passes.recognise_accumulations])
