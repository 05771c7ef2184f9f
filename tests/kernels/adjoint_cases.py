"""Kernels with the functions of NumPy that they compute, and the check of their adjoints against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

import zygote_py as zg


def adjoint_by_differences(model, arrays, weights, h=1e-4):
    """Return the gradient of the weighted sum of what `model` makes of the arrays, in each float array.

    Central differences of fourth order; `model` takes and returns a list of arrays.
    """

    def total(changed):
        return sum(np.sum(w * final) for w, final in zip(weights, model(changed), strict=True) if w is not None)

    found = []
    for number, array in enumerate(arrays):
        if weights[number] is None:
            found.append(None)
            continue
        gradient = np.empty(array.shape)
        for place in np.ndindex(array.shape):

            def at(step, number=number, place=place):
                changed = [each.copy() if isinstance(each, np.ndarray) else each for each in arrays]
                changed[number][place] += step
                return total(changed)

            gradient[place] = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        found.append(gradient)
    return found


def check(kernel: Any, grid: Any, arrays: Any, model: Any, *, active=None, rtol=1e-7, seed=0, adjoint=None) -> Any:
    """Check what the adjoint of a kernel leaves in arrays and shadows. `model` takes and returns a list of arrays."""
    rng = np.random.default_rng(seed)
    is_active = [
        isinstance(each, np.ndarray) and each.dtype.kind == "f" and (active is None or number in active)
        for number, each in enumerate(arrays)
    ]
    seeds = [rng.normal(size=each.shape) if on else None for each, on in zip(arrays, is_active, strict=True)]
    wide = [
        each.astype(np.float64) if isinstance(each, np.ndarray) and each.dtype.kind == "f" else each for each in arrays
    ]
    expected = adjoint_by_differences(model, wide, seeds)
    finals = model([each.copy() if isinstance(each, np.ndarray) else each for each in wide])
    on_device = [cuda.to_device(each.copy()) if isinstance(each, np.ndarray) else each for each in arrays]
    args, shadows = [], []
    for array, each, given in zip(arrays, on_device, seeds, strict=True):
        args.append(each)
        shadows.append(None if given is None else cuda.to_device(given.astype(array.dtype)))
        if given is not None:
            args.append(shadows[-1])
    adjoint = adjoint or zg.adjoint_kernel(kernel)
    adjoint[grid](*args)
    for each, final in zip(on_device, finals, strict=True):
        if isinstance(final, np.ndarray):
            np.testing.assert_allclose(each.copy_to_host(), final, rtol=rtol, atol=rtol)
    for shadow, gradient in zip(shadows, expected, strict=True):
        if shadow is not None:
            np.testing.assert_allclose(shadow.copy_to_host(), gradient, rtol=rtol, atol=10 * rtol)
    return adjoint
