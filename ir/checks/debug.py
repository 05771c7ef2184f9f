"""Dumps and checks of the IR after each step of the compiler, and steps left out, by environment variables.

    check_after("expand_arrays", function)
    if is_left_out("lanes"): return

With `ZYGOTE_PY_VERIFY=1` the functions are verified after every transform, and after every pass that has changed one.
`ZYGOTE_PY_DUMP=all`, or the names of steps (`ZYGOTE_PY_DUMP=unrotate_loops,join`), prints their text to stderr after
these.

`ZYGOTE_PY_WITHOUT=lanes,threads` leaves out transformations that only save time or memory, by the names in `OPTIONAL`:
to find the one that a fault or a gain comes from.
"""

from __future__ import annotations

import os
import sys

from zygote_py.ir.checks.verify import verify
from zygote_py.ir.core import Function
from zygote_py.ir.text.printer import text


def check_after(step: str, *functions: Function, is_changed: bool = True) -> None:
    """Dump functions after a step, and verify what it has created or changed.

    Raises InternalError if one is not well formed.
    """
    dumped = os.environ.get("ZYGOTE_PY_DUMP")
    if dumped and (dumped == "all" or step in dumped.split(",")):
        for function in functions:
            print(f"--- {function.name} after {step}", text(function), sep="\n", file=sys.stderr)
    if is_changed and os.environ.get("ZYGOTE_PY_VERIFY") == "1":
        for function in functions:
            verify(function, step)


OPTIONAL = (
    "accumulated-products",  # dw += np.outer(a, b) without an array for the product
    "direct-divisors",  # a quotient by a power contributes to the base
    "elements-in-variables",  # an element that a loop adds to again and again
    "extremes",  # m = max(m, x[i]) keeps one index
    "flat-loops",  # over the elements of matrices, one in the place of two
    "first-contributions",  # assigned, not added to zeros
    "fused-loops",  # which hand elements on to each other, without the array for these
    "gathered-products",  # the products of a loop as one product of matrices
    "immediate-reversal",  # of loops whose rounds only add to sums, as they run
    "invariant-elements",  # that all rounds of a loop access, beside others of the array, in variables
    "joined-records",  # of a called function, those of one length
    "lanes",  # several iterations at a time
    "late-shadows",  # of arrays handed from round to round, made by the reverse sweep
    "memory-apart",  # LLVM is told which arrays a function has made
    "predicted-guards",  # branches in recurrences
    "recomputed-branches",  # cheap values of a branch are computed anew where a function has two halves
    "returned-copies",  # the array itself is returned
    "reused-records",  # the gradient is stored where the record was
    "rewinding",  # values are put back where they were overwritten
    "shared-fields",  # values of which a run computes one
    "slices-of-rounds",  # of shadows, made by the round that uses them
    "sums-in-any-order",  # of the adjoint
    "threads",  # with parallel=True
    "triangular-records",  # arrays, not lists, for loops over the elements below a diagonal
    "undone-once",  # of two writes to the same elements that are put back, the first
    "values-from-arrays",  # read where the function stored them
    "vector-functions",  # under fastmath
)


def is_left_out(step: str) -> bool:
    """Return whether a transformation is not to be made. Raises ValueError if the variable names an unknown one."""
    named = os.environ.get("ZYGOTE_PY_WITHOUT")
    if not named:
        return False
    names = named.split(",")
    if unknown := sorted(set(names) - set(OPTIONAL)):
        raise ValueError(f"ZYGOTE_PY_WITHOUT: {unknown[0]!r} is unknown; known: {', '.join(OPTIONAL)}")
    return step in names
