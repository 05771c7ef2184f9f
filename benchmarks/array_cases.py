"""The cases on arrays, which `benchmarks.cases` includes with the others.

    case = ARRAY_CASES["mixture"](fastmath=True)

Their memory is measured too (`benchmarks.memory`), so a hand-written gradient allocates its own buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numba
import numpy as np

from benchmarks import array_programs, programs
from benchmarks.case import Case
from zygote_py import gradient


def array_case(
    name: str, function: Callable[..., float], by_hand: Callable[..., object], arguments: tuple[object, ...], wrt: int
) -> Case:
    """Return a case whose first `wrt` arguments get a gradient."""
    names = function.py_func.__code__.co_varnames[:wrt]  # type: ignore[attr-defined]
    gradients = {"gradient": gradient(function, wrt=names if wrt > 1 else names[0]), "hand-written": by_hand}
    runs = {variant: partial(f, *arguments) for variant, f in (("primal", function), *gradients.items())}
    return Case(name, function, arguments, tuple(range(wrt)), gradients, runs)


def logsumexp_numpy(fastmath: bool) -> Case:
    """LogSumExp of 10,000 elements by NumPy calls."""
    jit = numba.njit(fastmath=fastmath)
    x = np.random.default_rng(0).normal(size=10_000)
    return array_case("logsumexp_numpy", jit(array_programs.logsumexp), jit(programs.logsumexp_by_hand), (x,), 1)


def logistic(fastmath: bool) -> Case:
    """The loss of a logistic regression with 1000 samples of 100 features, with respect to the weights."""
    jit = numba.njit(fastmath=fastmath)
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(1000, 100)), rng.normal(size=100)
    y = np.where(x @ w + rng.normal(size=1000) > 0.0, 1.0, -1.0)
    return array_case(
        "logistic", jit(array_programs.logistic), jit(array_programs.logistic_by_hand), (0.5 * w, x, y), 1
    )


def perceptron(fastmath: bool) -> Case:
    """The cross-entropy of a perceptron with 784, 32 and 10 units for a batch of 128, with respect to its weights."""
    jit = numba.njit(fastmath=fastmath)
    rng = np.random.default_rng(2)
    w1, b1 = rng.normal(size=(784, 32)) / 28.0, 0.1 * rng.normal(size=32)
    w2, b2 = rng.normal(size=(32, 10)) / 6.0, 0.1 * rng.normal(size=10)
    arguments = (w1, b1, w2, b2, rng.uniform(size=(128, 784)), rng.integers(0, 10, 128))
    return array_case(
        "perceptron", jit(array_programs.perceptron), jit(array_programs.perceptron_by_hand), arguments, 4
    )


def nbody(fastmath: bool) -> Case:
    """100 leapfrog steps of 8 bodies attracting each other, with respect to their positions, velocities and masses."""
    jit = numba.njit(fastmath=fastmath)
    function = jit(array_programs.nbody_with(jit(array_programs.accelerate)))
    keep, back = jit(array_programs.accelerate_and_keep), jit(array_programs.accelerate_back)
    by_hand = jit(array_programs.nbody_by_hand_with(keep, back))
    rng = np.random.default_rng(3)
    arguments = (rng.normal(size=(8, 3)), rng.normal(size=(8, 3)), rng.uniform(0.5, 1.5, 8), 100)
    return array_case("nbody", function, by_hand, arguments, 3)


def pairs(fastmath: bool) -> Case:
    """100 steps of 8 bodies attracting each other, pair by pair, with respect to their positions."""
    jit = numba.njit(fastmath=fastmath)
    rng = np.random.default_rng(3)
    arguments = (rng.normal(size=(8, 3)), rng.normal(size=(8, 3)), rng.uniform(0.5, 1.5, 8), 100)
    return array_case("pairs", jit(array_programs.pairs), jit(array_programs.pairs_by_hand), arguments, 1)


def mixture(fastmath: bool) -> Case:
    """ADBench's mixture of 25 Gaussians over 1000 points in 10 dimensions, with respect to all its parameters."""
    jit = numba.njit(fastmath=fastmath)
    rng = np.random.default_rng(4)
    d, components, n = 10, 25, 1000
    factors = rng.normal(size=(components, d * (d + 1) // 2))
    parameters = rng.normal(size=components), rng.uniform(size=(components, d)), factors
    arguments = (*parameters, rng.normal(size=(n, d)), 1.0, 0)
    return array_case("mixture", jit(array_programs.mixture), jit(array_programs.mixture_by_hand), arguments, 3)


ARRAY_CASES: Mapping[str, Callable[[bool], Case]] = {
    "logsumexp_numpy": logsumexp_numpy,
    "logistic": logistic,
    "perceptron": perceptron,
    "nbody": nbody,
    "pairs": pairs,
    "mixture": mixture,
}
