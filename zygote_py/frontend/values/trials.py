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

from zygote_py.ir import helper


def fails_cholesky(a: Any) -> bool:
    """Return whether `np.linalg.cholesky(a)` raises."""
    try:
        np.linalg.cholesky(a)
    except Exception:
        return True
    return False


def fails_det(a: Any) -> bool:
    """Return whether `np.linalg.det(a)` raises."""
    try:
        np.linalg.det(a)
    except Exception:
        return True
    return False


def fails_eigh(a: Any) -> bool:
    """Return whether `np.linalg.eigh(a)` raises."""
    try:
        np.linalg.eigh(a)
    except Exception:
        return True
    return False


def fails_eigvalsh(a: Any) -> bool:
    """Return whether `np.linalg.eigvalsh(a)` raises."""
    try:
        np.linalg.eigvalsh(a)
    except Exception:
        return True
    return False


def fails_inv(a: Any) -> bool:
    """Return whether `np.linalg.inv(a)` raises."""
    try:
        np.linalg.inv(a)
    except Exception:
        return True
    return False


def fails_lstsq(a: Any, b: Any) -> bool:
    """Return whether `np.linalg.lstsq(a, b)` raises."""
    try:
        np.linalg.lstsq(a, b)
    except Exception:
        return True
    return False


def fails_pinv(a: Any) -> bool:
    """Return whether `np.linalg.pinv(a)` raises."""
    try:
        np.linalg.pinv(a)
    except Exception:
        return True
    return False


def fails_solve(a: Any, b: Any) -> bool:
    """Return whether `np.linalg.solve(a, b)` raises."""
    try:
        np.linalg.solve(a, b)
    except Exception:
        return True
    return False


def fails_svd(a: Any) -> bool:
    """Return whether `np.linalg.svd(a)` raises."""
    try:
        np.linalg.svd(a)
    except Exception:
        return True
    return False


# By the function that is called: the trial, and how many of the arguments it takes.
TRIALS: dict[Any, tuple[Callable[..., bool], int]] = {
    np.linalg.cholesky: (fails_cholesky, 1),
    np.linalg.det: (fails_det, 1),
    np.linalg.eigh: (fails_eigh, 1),
    np.linalg.eigvalsh: (fails_eigvalsh, 1),
    np.linalg.inv: (fails_inv, 1),
    np.linalg.lstsq: (fails_lstsq, 2),
    np.linalg.pinv: (fails_pinv, 1),
    np.linalg.solve: (fails_solve, 2),
    np.linalg.svd: (fails_svd, 1),
}
for trial, _ in TRIALS.values():
    helper(trial)
