"""Values of reductions, sums, sorting, interpolation and statistics: those of Numba's own functions, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numpy_functions.primals import agree

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(5)
ROW = RNG.normal(size=7)
TABLE = RNG.normal(size=(3, 4))
SHAPES = {
    "row": ROW,
    "row32": ROW.astype(np.float32),
    "strided": RNG.normal(size=14)[::2],
    "table": TABLE,
    "fortran": np.asfortranarray(TABLE),
    "part": RNG.normal(size=(6, 8))[::2, ::2],
    "table32": TABLE.astype(np.float32),
    "cube": RNG.normal(size=(2, 3, 4)),
}
TABLES = {name: array for name, array in SHAPES.items() if array.ndim > 1}
TIES = np.array([3.0, 1.0, 3.0, -0.0, 2.0, 0.0, 1.0])
INFINITE = np.array([1.0, -np.inf, np.inf, 2.0, np.inf])
EMPTY = np.empty(0)
COMPLEX = ROW + 1j * RNG.normal(size=7)


def with_nan(array):
    array = array.copy("K")
    array[(1,) * array.ndim] = np.nan
    return array


def each(arrays, *often):
    """The arrays by name, each of which is compiled for; those that are not named here run for long."""
    params = [pytest.param(x, id=name, marks=() if name in often else pytest.mark.long) for name, x in arrays.items()]
    return pytest.mark.parametrize("x", params)


# --------------------------------------------------------------------------------------------------------- reductions


def reductions(x):
    return np.mean(x), x.var(), np.std(x), np.max(x), x.min(), np.amax(x), np.ptp(x), np.average(x)


def nan_reductions(x):
    return np.nansum(x), np.nanmean(x), np.nanvar(x, ddof=1), np.nanstd(x), np.nanmax(x), np.nanmin(x), np.nanmedian(x)


def builtins_of(x):
    return max(x), min(x), sum(x), sum(x, 2.5)


@each(SHAPES, "row", "part")
def test_reductions(x):
    agree(reductions, x)


@each(SHAPES, "row32", "table")
def test_reductions_without_nan(x):
    agree(nan_reductions, with_nan(x))


@pytest.mark.parametrize("x", [ROW, ROW.astype(np.float32), TIES, with_nan(ROW), SHAPES["strided"]])
def test_builtins(x):
    agree(builtins_of, x)


def test_reductions_of_nan():
    agree(reductions, with_nan(ROW))
    agree(lambda x: (np.nanmax(x), np.nanmean(x), np.nanvar(x), np.nanmedian(x)), ROW * np.nan)


def test_reductions_of_complex_numbers():
    agree(lambda x: (np.mean(x), np.var(x), np.std(x), np.max(x), np.min(x), np.cumsum(x), np.cumprod(x)), COMPLEX)


def test_reductions_of_numbers():
    agree(lambda x: (np.mean(x), np.std(x), np.max(x), np.min(x), np.sum(x)), 1.5)
    agree(lambda x: (np.std(x), np.mean(x)), np.inf)


@pytest.mark.parametrize("f", [np.mean, np.var, np.max, np.amin, np.ptp, np.median, np.nanmean, np.nanmax])
def test_reductions_of_nothing(f):
    agree(lambda x: f(x), EMPTY)


@pytest.mark.compiled
def test_average_with_weights():
    agree(lambda x, w: np.average(x, weights=w), ROW, ROW**2)
    agree(lambda x, w: np.average(x, weights=w), TABLE, TABLE[0] ** 2)
    agree(lambda x, w: np.average(x, weights=w), ROW, 0.0 * ROW)


# --------------------------------------------------------------------------------------------------------- running


def running(x):
    return np.cumsum(x), np.cumprod(x), np.nancumsum(x), np.nancumprod(x)


def along_last(x):
    return np.cumsum(x, axis=-1), x.cumsum(axis=0), np.trapezoid(x), np.trapezoid(x, dx=0.5)


def differences(x):
    return np.diff(x), np.diff(x, 2), np.diff(x, n=9)


@each(SHAPES, "row", "fortran")
def test_running(x):
    agree(running, with_nan(x))
    agree(along_last, x)


COMPACT = {name: array for name, array in SHAPES.items() if name not in ("strided", "part")}  # Numba has C and F only


@each(COMPACT, "row32", "cube")
def test_differences(x):
    agree(differences, x)


def test_differences_in_number():
    for n in (0, 1, 3, -1):
        agree(lambda x, n: np.diff(x, n), ROW, n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_quotients_with_remainders(dtype):
    tens = np.arange(-9, 10).astype(dtype)
    agree(lambda x, y: (np.divmod(x, y), np.divmod(x[2], y)[1], np.divmod(x, y[3])[0]), tens / 10, tens[::-1] / 10)
    agree(lambda x, y: (np.divmod(x, y), np.divmod(x[3], y[4])), 3 * tens, tens)


def test_running_of_nothing():
    agree(lambda x: (np.cumsum(x), np.cumprod(x), np.diff(x)), EMPTY)


def test_running_in_another_type():
    agree(lambda x: (np.cumsum(x, dtype=np.float64), x.sum(dtype=np.float64)), SHAPES["row32"])


def test_axes_at_run_time():
    for axis in (0, -1, 2):
        agree(lambda x, k: np.sum(x, axis=k), TABLE, axis)
        agree(lambda x, k: np.cumsum(x, axis=k), TABLE, axis)
    agree(lambda x: (np.sum(x, axis=(0, 2)), x.sum(axis=(-1,)), np.sum(x, (0, 1, 2))), SHAPES["cube"])
    agree(lambda x: np.sum(x, axis=(1, 1)), TABLE)


def test_trapezoid_with_points():
    agree(lambda y, x: np.trapezoid(y, x), ROW, ROW**2)
    agree(lambda y, x: np.trapezoid(y, x), TABLE, TABLE[0])
    agree(lambda y, x: np.trapezoid(y, x), TABLE, TABLE**2)


# --------------------------------------------------------------------------------------------------------- sorting


def middle(x):
    return np.median(x), np.percentile(x, 30), np.quantile(x, 0.3), np.nanpercentile(x, 70), np.nanquantile(x, (0.1, 1))


def in_order(x):
    return np.sort(x), np.partition(x, 2), np.partition(x, (0, -1))


def sorted_in_place(x):
    x.sort()
    return x * 2.0


@each(SHAPES, "strided", "table32")
def test_sorting(x):
    agree(in_order, x)
    agree(sorted_in_place, x)


@each(SHAPES, "row", "part")
def test_middle(x):
    agree(middle, x)


@pytest.mark.parametrize("x", [TIES, ROW[:1], ROW[:2]], ids=str)
def test_middle_of_special_rows_in_plain_python(x):
    agree(middle, x)


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize("x", [TIES, with_nan(ROW), ROW[:1], ROW[:2], INFINITE], ids=str)
def test_middle_of_special_rows(x):
    agree(middle, x)


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize("x", [TIES, with_nan(TIES), with_nan(with_nan(TABLE))], ids=str)
def test_sorting_of_special_rows(x):
    agree(in_order, x)
    agree(sorted_in_place, x)


@pytest.mark.compiled
def test_median_of_many_orders():
    tried = np.random.default_rng(0)
    for size in range(1, 30):
        x = tried.integers(0, 8, size).astype(float)
        x[tried.random(size) < 0.1] = np.nan
        agree(lambda x: np.median(x), x)


def test_sorting_one_row_of_a_table():
    def row_sorted(x):
        y = x[1]
        y.sort()

    agree(row_sorted, TABLE)
    agree(lambda x: x.sort(kind="mergesort"), TABLE)


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize("q", [101.0, -1.0, np.array([0, 12.5, 99.9, 100]), np.nan, np.array([[5.0], [50.0]])], ids=str)
def test_percentiles_in_number(q):
    agree(lambda x, q: np.percentile(x, q), ROW, q)
    agree(lambda x, q: np.percentile(x, q), INFINITE, q)


# --------------------------------------------------------------------------------------------------------- gathering


PLACES = np.array([0, 2, -1, 5])


def test_take():
    agree(lambda x: (np.take(x, 3), x.take(-1), np.take(x, (0, 2))), TABLE)
    agree(lambda x, k: np.take(x, k), SHAPES["fortran"], PLACES)
    agree(lambda x, k: np.take(x, k), SHAPES["part"], np.array([[0, 2], [-3, 1]]).T)
    agree(lambda x, k: np.take(x, k), ROW, PLACES + 20)
    agree(lambda x, k: np.take(x, k), ROW, 7)


def test_take_along_an_axis():
    agree(lambda x, k: (np.take(x, 2, axis=1), np.take(x, k, axis=1), np.take(x, k, -2)), TABLE, PLACES[:3] % 3)
    agree(lambda x, k: (np.take(x, 1, axis=0), np.take(x, k, axis=2)), SHAPES["cube"], PLACES[:3])
    for axis in (0, -1, 4):
        agree(lambda x, k, axis: np.take(x, k, axis=axis), TABLE, np.array([0, 1]), axis)
        agree(lambda x, k, axis: np.take(x, k, axis=axis), TABLE, 2, axis)


@each({name: SHAPES[name] for name in ("row", "row32", "table")}, "row32", "table")
def test_select(x):
    agree(lambda x: (np.select((x > 0, x > -1), (x, x * 2), 7.0), np.select((x > 0,), (x,))), x)


SPECIAL = np.array([1.0, np.nan, np.inf, -np.inf, -2.0])


def test_nan_to_num():
    for x in (SPECIAL, SPECIAL.astype(np.float32), np.asfortranarray(np.outer(SPECIAL, SPECIAL))):
        agree(lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=2.0, posinf=1e3, neginf=-3.0)), x)
    agree(lambda x: np.nan_to_num(x, copy=False), SPECIAL)


# ------------------------------------------------------------------------------------------------- signals, statistics


GRID = np.sort(RNG.normal(size=6))
HEIGHTS = RNG.normal(size=6)


@pytest.mark.parametrize(
    "heights", [HEIGHTS, np.array([1.0, np.inf, 2.0, 3.0, -np.inf, 1.0])], ids=["plain", "infinite"]
)
def test_interp(heights):
    x = np.concatenate((RNG.normal(size=9) * 2, GRID, np.array([np.nan, 50.0, -50.0, np.inf])))
    agree(lambda x, xp, fp: (np.interp(x, xp, fp), np.interp(x[2], xp, fp)), x, GRID, heights)
    agree(lambda x, xp, fp: np.interp(x, xp, fp), TABLE, GRID, heights)


def test_interp_with_few_points():
    for size in (0, 1, 2):
        agree(lambda x, xp, fp: np.interp(x, xp, fp), ROW, GRID[:size], HEIGHTS[:size])
    agree(lambda x, xp, fp: np.interp(x, xp, fp), ROW, GRID, HEIGHTS[:2])
    agree(lambda x, xp, fp: np.interp(x, xp, fp), SHAPES["row32"], GRID.astype(np.float32), HEIGHTS)


def sliding(a, v):
    return (
        *(np.correlate(a, v), np.correlate(a, v, "same"), np.correlate(a, v, mode="full")),
        *(np.convolve(a, v), np.convolve(a, v, "same"), np.convolve(a, v, "valid")),
    )


@pytest.mark.parametrize(("size", "width"), [(7, 3), (7, 4), (3, 7), (4, 4), (1, 1), (0, 3), (3, 0)])
def test_sliding(size, width):
    def whole(n):  # so that the order of summation does not matter
        return RNG.integers(-9, 9, n).astype(float)

    agree(sliding, whole(size), whole(width))


@pytest.mark.parametrize("kinds", ["complex", *(pytest.param(k, marks=pytest.mark.long) for k in ("single", "real"))])
def test_sliding_of_complex_numbers(kinds):
    a, v = np.array([1 + 2j, 3j, -1.0]), np.array([2.0, -1.0, 1j, 4.0])
    arguments = {"complex": (a, v), "single": (a, v.real.astype(np.float32)), "real": (a.imag, v)}
    agree(sliding, *arguments[kinds])


@each({name: SHAPES[name] * 9 for name in ("row", "row32", "table", "strided")}, "row", "table")
def test_unwrap(x):
    agree(lambda x: (np.unwrap(x), np.unwrap(x, 4.0), np.unwrap(x, period=3.0)), x)


@each({"c": TABLE, "f": SHAPES["fortran"], "f32": SHAPES["table32"], "complex": TABLE * 1j}, "c")
def test_cov(x):
    agree(lambda x: (np.cov(x), np.cov(x, rowvar=False), np.cov(x, bias=True), np.cov(x, ddof=2)), x, ulps=4)
    agree(lambda x: (np.cov(x, x * x), np.cov(x, x[0]), np.cov(x[1]), np.cov(x[0], x[1])), x, ulps=4)


@pytest.mark.long
@pytest.mark.compiled
def test_cov_that_is_refused():
    agree(lambda x: np.cov(x), TABLE[:1])
    agree(lambda x, d: np.cov(x, ddof=d), TABLE, 1.5)
    agree(lambda x, y: np.cov(x, y), TABLE, ROW)


def test_corrcoef():
    agree(
        lambda x: (np.corrcoef(x), np.corrcoef(x, rowvar=False), np.corrcoef(x[0], x[1]), np.corrcoef(x[0])),
        TABLE,
        ulps=4,
    )


def test_counts():
    bins = np.array([0, 3, 3, 1, 0, 2, 2])
    agree(lambda k, w: (np.bincount(k, w), np.bincount(k, weights=w, minlength=9)), bins, ROW)
    agree(lambda k, w: np.bincount(k, w), bins, ROW[:3])
    agree(lambda x: (np.histogram(x), np.histogram(x, 4, (-1.0, 1.0))), TABLE)
    agree(lambda x, edges: np.histogram(x, edges), ROW, GRID)
    agree(lambda x: np.histogram(x, 4, (1.0, -1.0)), TABLE)
