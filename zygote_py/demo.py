"""The demonstration: fit the Lotka-Volterra equations to a century-old record of hare and lynx pelts.

    u' = (alpha - beta v) u        u: hares, v: lynxes, in thousands of pelts
    v' = (delta u - gamma) v

`loss` is an ordinary Python function that contains a Runge-Kutta loop. `value_and_gradient` derives its gradient, and
SciPy's L-BFGS-B determines the four rates and the initial state:

    zygote-py demo

Not included are the choice of an integrator and uncertainties: the step is fixed and the result is a point estimate.
The model is that of B. Carpenter, "Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan" (2018), whose
posterior means of the rates are 0.55, 0.028, 0.80 and 0.024.
"""

from __future__ import annotations

import csv
import importlib.resources
import math
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numba
import numpy as np
from numpy.typing import NDArray

from zygote_py.api import value_and_gradient

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

Array = NDArray[np.float64]

RATES = ("alpha", "beta", "gamma", "delta")
START = (1.0, 0.03, 1.0, 0.03)  # rates from which the fit converges: far from the solution, but with the right period


def loss(theta: Array, hare: Array, lynx: Array, steps: int = 25, sigma: float = 0.25) -> float:
    """Return the squared misfit of the logarithms of the counts, divided by 2 sigma**2.

    This is the negative Gaussian log-likelihood, up to a constant.

    Parameters
    ----------
    theta : ndarray, shape (6,)
        Logarithms of alpha, beta, gamma, delta and the initial numbers of hares and lynxes.
    hare : ndarray, shape (n,)
        Counts of hares, one per year.
    lynx : ndarray, shape (n,)
        Counts of lynxes in the same years.
    steps : int
        Steps per year of the classical fourth-order Runge-Kutta method.
    sigma : float
        Standard deviation of the logarithm of a count.

    Returns
    -------
    float
        The loss.
    """
    alpha, beta, gamma, delta = math.exp(theta[0]), math.exp(theta[1]), math.exp(theta[2]), math.exp(theta[3])
    u, v = math.exp(theta[4]), math.exp(theta[5])
    h = 1.0 / steps
    misfit: float = (theta[4] - math.log(hare[0])) ** 2 + (theta[5] - math.log(lynx[0])) ** 2
    for year in range(1, len(hare)):
        for _ in range(steps):
            du1, dv1 = (alpha - beta * v) * u, (delta * u - gamma) * v
            u2, v2 = u + 0.5 * h * du1, v + 0.5 * h * dv1
            du2, dv2 = (alpha - beta * v2) * u2, (delta * u2 - gamma) * v2
            u3, v3 = u + 0.5 * h * du2, v + 0.5 * h * dv2
            du3, dv3 = (alpha - beta * v3) * u3, (delta * u3 - gamma) * v3
            u4, v4 = u + h * du3, v + h * dv3
            du4, dv4 = (alpha - beta * v4) * u4, (delta * u4 - gamma) * v4
            u += h / 6.0 * (du1 + 2.0 * du2 + 2.0 * du3 + du4)
            v += h / 6.0 * (dv1 + 2.0 * dv2 + 2.0 * dv3 + dv4)
        misfit += (math.log(u) - math.log(hare[year])) ** 2 + (math.log(v) - math.log(lynx[year])) ** 2
    return misfit / (2.0 * sigma**2)


def read_pelts() -> tuple[Array, Array, Array]:
    """Return the years and the pelts of hares and lynxes, in thousands, from the table shipped with the package."""
    table = importlib.resources.files("zygote_py.data").joinpath("hudson_bay_lynx_hare.csv").read_text("utf-8")
    rows = list(csv.DictReader(line for line in table.splitlines() if not line.startswith("#")))
    years, hare, lynx = (np.array([float(row[name]) for row in rows]) for name in ("year", "hare", "lynx"))
    return years, hare, lynx


def start_of(hare: Array, lynx: Array) -> Array:
    """Return the starting point of the fit: fixed rates, and the first record as the initial state."""
    return np.log([*START, hare[0], lynx[0]])


def fit(
    value_and_slope: Callable[[Array, Array, Array], tuple[float, Array]],
    hare: Array,
    lynx: Array,
    progress: Callable[[int, float, Array], None] = lambda iteration, value, theta: None,
) -> OptimizeResult:
    """Minimize the loss by L-BFGS-B; `progress` is called with the number, the loss and the parameters of each
    iteration.
    """
    from scipy.optimize import minimize  # here, since importing it takes longer than loading a gradient from the cache

    iterations = 0

    def report(intermediate_result: OptimizeResult) -> None:
        nonlocal iterations
        iterations += 1
        progress(iterations, intermediate_result.fun, intermediate_result.x)

    start = start_of(hare, lynx)
    return minimize(value_and_slope, start, args=(hare, lynx), jac=True, method="L-BFGS-B", callback=report)


def run(output: Path | None = Path("lotka_volterra.png")) -> bool:
    """Run the fit, print its progress and write a plot to `output` unless that is None; return whether it converged."""
    years, hare, lynx = read_pelts()
    theta = start_of(hare, lynx)
    print(f"fitting the Lotka-Volterra equations to the pelts of {years[0]:.0f} to {years[-1]:.0f}")

    began = time.perf_counter()
    value_and_slope = value_and_gradient(loss, wrt="theta")
    before, _ = value_and_slope(theta, hare, lynx)
    print(f"first gradient after {time.perf_counter() - began:.1f} s\n")

    print(f"{'iteration':>9} {'loss':>12} " + " ".join(f"{name:>8}" for name in RATES))
    print_iteration(0, before, theta)
    result = fit(value_and_slope, hare, lynx, print_iteration)

    *rates, u, v = np.exp(result.x)
    print(f"\n{'converged' if result.success else 'not converged'} after {result.nit} iterations: {result.message}")
    print("fitted rates: " + ", ".join(f"{name} = {rate:.4f}" for name, rate in zip(RATES, rates, strict=True)))
    print(f"initial state: {u:.1f} hares, {v:.1f} lynxes (thousands)")
    print(f"loss: {before:.4f} before, {result.fun:.4f} after")
    print_times(value_and_slope, result.x, hare, lynx)
    if output is not None:
        draw(years, hare, lynx, result.x, output)
    return bool(result.success)


def print_iteration(iteration: int, value: float, theta: Array) -> None:
    """Print one line of progress."""
    print(f"{iteration:>9} {value:>12.4f} " + " ".join(f"{rate:>8.4f}" for rate in np.exp(theta[:4])), flush=True)


def print_times(value_and_slope: Callable[..., object], theta: Array, hare: Array, lynx: Array) -> None:
    """Print the median times of a call of the gradient and of the function alone, both compiled."""
    function = numba.njit()(loss)
    timers = [timeit.Timer(partial(call, theta, hare, lynx)) for call in (function, value_and_slope)]
    for timer in timers:
        timer.timeit(100)
    # Alternate, so that a change in the speed of the machine affects both.
    samples = [[timer.timeit(200) / 200 for timer in timers] for _ in range(30)]
    of_function, of_gradient = (statistics.median(column) * 1e6 for column in zip(*samples, strict=True))
    print(
        f"time of a call (median): function {of_function:.1f} us, value and gradient {of_gradient:.1f} us, "
        f"ratio {of_gradient / of_function:.2f}"
    )


def draw(years: Array, hare: Array, lynx: Array, theta: Array, output: Path) -> None:
    """Write a plot of the record and the fitted curves; without matplotlib, print how to install it."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        print('no plot: matplotlib is missing (pip install "zygote-py[plot]")', file=sys.stderr)
        return
    from scipy.integrate import solve_ivp

    alpha, beta, gamma, delta = np.exp(theta[:4])
    # Use SciPy's adaptive integrator rather than the loop of `loss`, so that the plot also checks that loop.
    times = np.linspace(0.0, years[-1] - years[0], 400)
    curve = solve_ivp(
        lambda _, state: [(alpha - beta * state[1]) * state[0], (delta * state[0] - gamma) * state[1]],
        (times[0], times[-1]),
        np.exp(theta[4:]),
        t_eval=times,
        rtol=1e-8,
    )
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, counts, fitted, colour in (("hare", hare, curve.y[0], "C0"), ("lynx", lynx, curve.y[1], "C3")):
        axes.plot(years, counts, "o", color=colour, label=f"{name}, recorded")
        axes.plot(years[0] + times, fitted, "-", color=colour, label=f"{name}, fitted")
    axes.set(xlabel="year", ylabel="pelts (thousands)", title="Hudson's Bay record and Lotka-Volterra equations")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
    print(f"plot written to {output}")
