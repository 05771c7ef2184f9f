"""Gradients of reductions, sums, sorting, interpolation and statistics, against differences; and what holds at ties."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checking.derivatives import ARRAYS, check_derivatives
from tests.modes import one_in

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(3)
ROW = RNG.normal(size=6)
TABLE = RNG.normal(size=(3, 4))
GRID = np.sort(RNG.normal(size=5))
HEIGHTS = RNG.normal(size=5)
NANS = np.array([0.3, np.nan, -1.2, 2.0])
QUICK = {"layouts": "C", "float32": False}


def reductions(x):
    return np.mean(x), x.var(), np.std(x), np.max(x), x.min(), np.ptp(x)


def builtins_of(x):
    return max(x), min(x), sum(x), sum(x, 2.5) * x[0]


def weighted(x, w):
    return np.average(x, weights=w), np.average(x)


def running(x):
    return np.cumsum(x), np.cumprod(x), np.nancumsum(x), np.nancumprod(x)


def along_axes(x):
    return np.cumsum(x, axis=0), x.cumsum(axis=-1), np.sum(x, axis=(1,)), np.trapezoid(x), np.trapezoid(x, dx=0.5)


def differences(x):
    return np.diff(x), np.diff(x, 2)


def quotients(x, y):
    parts = np.divmod(x[0], y[1])
    return np.divmod(x, 0.3)[1] * x, np.divmod(x, y)[0] * y, np.divmod(2.0, x)[1], parts[0] * x + parts[1]


def integral(y, x):
    return np.trapezoid(y, x)


def without_nan(x):
    # the NaN itself has the derivative 0, which differences do not see
    x = np.concatenate((x, np.array([np.nan])))
    return np.nansum(x), np.nanprod(x), np.nanmean(x), np.nanvar(x, ddof=1), np.nanstd(x), np.nanmax(x), np.nanmin(x)


def in_order(x):
    return np.sort(x), np.partition(x, 2)


def sorted_in_place(x):
    y = x * x
    y.sort()
    return y * x


def sorts_its_argument(x):
    x.sort()


def middle(x):
    return np.median(x), np.percentile(x, 30), np.nanmedian(x), np.nanquantile(x, (0.1, 0.75))


def fraction(x, q):
    return np.quantile(x, q), np.nanpercentile(x, q[0] * 100)


def taken(x):
    k = np.array([0, 2, -1, 2])
    return np.take(x, 3), np.take(x, k), np.take(x, k, axis=1), np.take(x, 1, axis=0), np.take(x, (0, 1), axis=0)


def selected(x, y):
    return np.select((x > 0, x > -1), (x * y, y - x), 7.0)


def finite(x):
    return np.nan_to_num(x, nan=2.0) * x


def interpolated(x, xp, fp):
    return np.interp(x, xp, fp)


def slid(a, v):
    return np.correlate(a, v), np.correlate(a, v, "same"), np.convolve(a, v), np.convolve(v, a, "valid")


def unwrapped(x):
    return np.unwrap(x), np.unwrap(x, period=3.0)


def covariances(x):
    return np.cov(x), np.cov(x, rowvar=False), np.cov(x, x[0] * x[0], ddof=2)


def correlations(x):
    return np.corrcoef(x), np.corrcoef(x[0], x[1])


def counted(w):
    return np.bincount(np.array([0, 3, 3, 1, 0, 2]), w), np.bincount(np.array([1, 1, 0, 1, 0, 0]), w, 4)


def edges(x):
    return np.histogram(x, 4)[1]


IN_SINGLE = {reductions, interpolated}  # which are tested in float32 each time
CASES = [
    (reductions, (ROW,), {}),
    (reductions, (TABLE,), QUICK | {"layouts": "FA"}),
    (builtins_of, (ROW,), QUICK | {"layouts": "A"}),
    (weighted, (ROW, ROW * ROW), QUICK),
    pytest.param(weighted, (TABLE, TABLE[0] * TABLE[0]), QUICK, marks=pytest.mark.compiled),  # NumPy refuses it
    (running, (ROW,), {"layouts": "C", "empty": [(np.zeros(0),)]}),
    (running, (TABLE,), {"layouts": "FA", "float32": False}),
    (along_axes, (TABLE,), QUICK | {"layouts": "CF"}),
    (differences, (ROW,), QUICK | {"empty": [(np.zeros(0),)]}),
    (differences, (TABLE,), QUICK | {"layouts": "CF"}),
    (quotients, (ROW, ROW * ROW + 0.5), QUICK),
    (integral, (ROW, np.sort(ROW * ROW)), QUICK),
    pytest.param(integral, (TABLE, TABLE[0]), QUICK, marks=pytest.mark.long),
    (without_nan, (ROW,), {"layouts": "C"}),
    (in_order, (ROW,), QUICK | {"layouts": "CA"}),
    (in_order, (TABLE,), QUICK | {"layouts": "CF"}),
    pytest.param(sorted_in_place, (ROW,), QUICK, marks=pytest.mark.long),
    (sorted_in_place, (TABLE,), QUICK),
    (sorts_its_argument, (TABLE,), QUICK | {"mutated": ("x",), "layouts": "CFA"}),
    (middle, (ROW,), {"layouts": "C"}),
    (middle, (TABLE[:, :3],), QUICK | {"layouts": "F"}),
    (fraction, (ROW, np.array([0.27, 0.77])), QUICK),
    (taken, (TABLE,), QUICK | {"layouts": "CF"}),
    (selected, (TABLE, TABLE[::-1].copy()), QUICK),
    (finite, (ROW,), {"layouts": "C"}),
    (interpolated, (ROW, GRID, HEIGHTS), {"layouts": "C"}),
    pytest.param(interpolated, (0.1, GRID, HEIGHTS), QUICK, marks=pytest.mark.long),
    (interpolated, (TABLE, GRID, HEIGHTS), QUICK | {"layouts": "F"}),
    (slid, (ROW, HEIGHTS[:3]), QUICK),
    pytest.param(slid, (HEIGHTS[:3], ROW), QUICK, marks=pytest.mark.long),
    (slid, (ROW + 1j * ROW[::-1], HEIGHTS[:3] * 1j), QUICK),
    pytest.param(unwrapped, (ROW * 9,), QUICK, marks=pytest.mark.long),
    (unwrapped, (TABLE * 9,), QUICK),
    (covariances, (TABLE,), QUICK),
    (correlations, (TABLE,), QUICK),
    (counted, (ROW,), {"layouts": "C"}),
    (edges, (ROW,), QUICK),
]


def _name(case):
    return getattr(case, "values", case)[0].__name__


NAMES = [f"{k}-{_name(case)}" for k, case in enumerate(CASES)]
each_case = pytest.mark.parametrize(("function", "args", "options"), CASES, ids=NAMES)


@pytest.mark.parametrize(("function", "args", "options"), one_in(3, CASES), ids=NAMES)
def test_gradient(function, args, options):
    first = options.get("layouts", "C")[0]
    single = function in IN_SINGLE and options.get("float32", True)
    routes = ("call", "pullback") if single else ("pullback",)  # the source of the other runs in plain Python
    check_derivatives(function, *args, **options | {"routes": routes, "layouts": first, "float32": single})


@pytest.mark.long
@each_case
def test_gradient_in_all_layouts_and_dtypes(function, args, options):
    check_derivatives(function, *args, thorough=True, **ARRAYS | {"reference": None} | options)
