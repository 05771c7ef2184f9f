"""The cost of saving residuals for a reverse sweep that runs later.

    times = split_times("rk4", rounds=15, seconds=0.02)         # {"joint": [...], "split": [...]}

"joint" is one call of the gradient with its value; "split" is `pullback` and one call of the pullback. Both are called
from Python, so for a small function the difference is the overhead that `pullback` adds to a call.
"""

from __future__ import annotations

import numpy as np

from benchmarks.cases import CASES
from benchmarks.measure import Times, interleaved
from zygote_py import pullback, value_and_gradient


def split_times(name: str, rounds: int, seconds: float) -> Times:
    """Return the seconds per call of both forms for one case, alternating. Raises AssertionError if their gradients
    differ.
    """
    case = CASES[name](False)
    function = getattr(case.gradients["gradient"], "primal")  # noqa: B009 (a GradientFunction, seen as a callable)
    args = case.arguments
    joint = value_and_gradient(function)

    def split() -> object:
        return pullback(function, *args)[1](1.0)

    expected = joint(*args)[1]
    for one, other in zip(split(), expected if len(args) > 1 else (expected,), strict=True):  # type: ignore[call-overload]
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    return interleaved({"joint": lambda: joint(*args), "split": split}, rounds, seconds)
