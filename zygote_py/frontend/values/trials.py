"""Calls of linear algebra in `try`, which raise or not: that is found out by a trial before the call itself.

try:
    y = np.linalg.inv(a)          %t = fails_inv %a
except Exception:                 choose %t, handler, next
    return 0.0                    next: %y = np.linalg.inv %a
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zygote_py.base import execute
from zygote_py.ir import helper

_TEXT = '''def fails_{name}({parameters}):
    """Return whether `np.linalg.{name}` raises."""
    try:
        np.linalg.{name}({parameters})
    except Exception:
        return True
    return False
'''


def _trial(name: str, count: int) -> Callable[..., bool]:
    """Return the helper that tells whether a function of `np.linalg` raises for its first arguments."""
    scope: dict[str, Any] = {"np": np, "__name__": __name__}
    execute(_TEXT.format(name=name, parameters=", ".join("ab"[:count])), f"<zygote_py fails_{name}>", scope)
    made: Callable[..., bool] = scope[f"fails_{name}"]
    return helper(made)


_ARGUMENTS = {"lstsq": 2, "solve": 2}  # that decide it; of the others one
# By the function that is called: the trial, and how many of the arguments it takes.
TRIALS: dict[Any, tuple[Callable[..., bool], int]] = {
    getattr(np.linalg, name): (_trial(name, count := _ARGUMENTS.get(name, 1)), count)
    for name in ("cholesky", "det", "eigh", "eigvalsh", "inv", "lstsq", "pinv", "solve", "svd")
}
