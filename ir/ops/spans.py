"""Where contiguous arrays lie: helpers for the checks that arguments share no memory.

    overlap((span_of(a), span_of(b), span_of(c)), 1)        whether `a` overlaps `b` or `c`

Numba compiles loops over tuples slowly, so `zygote_py.numba_adapter.target.native_helpers` has these in LLVM's terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir.ops.helpers import helper


def span_of(x: Any) -> Any:
    """Return from where to where the memory of a contiguous array lies; zeros for an array without elements."""
    start = np.int64(x.ctypes.data) if x.size > 0 else np.int64(0)
    return start, start + x.nbytes


def overlap(spans: Any, count: Any) -> Any:
    """Return whether one of the first `count` spans of memory overlaps any other."""
    for i in range(count):
        for j in range(i + 1, len(spans)):
            if spans[i][0] < spans[j][1] and spans[j][0] < spans[i][1]:
                return True
    return False


helper(span_of)
helper(overlap)
