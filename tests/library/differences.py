"""Gradients of functions of arrays against central differences of the function as Numba compiles it.

differentiates(lambda x: np.roll(x, 1), x)
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from zygote_py import gradient

STEP = 1e-5


def differentiates(function: Any, *args: Any) -> None:
    """Hold the gradient of `sum(r * r) + 0.3 * sum(r)`, `r` the function's result, against differences."""
    names = ", ".join(f"a{k}" for k in range(len(args)))
    text = f"def loss({names}):\n    r = function({names})\n    return np.sum(r * r) + 0.3 * np.sum(r)"
    namespace: dict[str, Any] = {"np": np, "function": function}
    exec(text, namespace)
    compiled = numba.njit(function)

    def loss(*args: Any) -> float:
        result = compiled(*args)
        return float(np.sum(result * result) + 0.3 * np.sum(result))

    holds(namespace["loss"], loss, *args)


def holds(loss: Any, compiled: Any, *args: Any) -> None:
    """Hold the gradient of a real function against differences of the same function, in which Numba compiles all."""
    given = [_copied(arg) for arg in args]
    found = gradient(loss)(*given)
    left = [_copied(arg) for arg in args]
    compiled(*left)
    for one, other in zip(given, left, strict=True):
        assert np.array_equal(one, other), "the arguments are not left as the function leaves them"
    for k, (arg, own) in enumerate(zip(args, found if isinstance(found, tuple) else (found,), strict=True)):
        if np.asarray(arg).dtype.kind != "f":
            assert own is None
            continue
        assert np.shape(own) == np.shape(arg)
        expected = np.zeros(np.shape(arg))
        for place in np.ndindex(np.shape(arg)):
            up, down = ([_copied(each) for each in args] for _ in range(2))
            for moved, sign in ((up, 1), (down, -1)):
                if isinstance(arg, np.ndarray):
                    moved[k][place] += sign * STEP
                else:
                    moved[k] += sign * STEP
            expected[place] = (compiled(*up) - compiled(*down)) / (2 * STEP)
        assert np.allclose(own, expected, rtol=1e-6, atol=1e-7 * max(1.0, np.abs(expected).max(initial=0.0)))


def _copied(arg: Any) -> Any:
    return arg.copy(order="K") if isinstance(arg, np.ndarray) else arg
