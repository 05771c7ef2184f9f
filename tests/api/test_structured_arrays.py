"""Structured arrays, and the records in them: as arguments and inside of functions, read and written to."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from numba import njit
from numba.typed import List

import zygote_py as zg
from tests.modes import is_interpreted, one_in
from zygote_py import DifferentiationError, gradient, value_and_gradient

BODY = np.dtype([("x", np.float64), ("n", np.int32), ("y", np.float64)])
CELL = np.dtype([("p", np.float64, (3,)), ("m", np.float64)])
NESTED = np.dtype([("a", BODY), ("m", np.float64)])


def bodies(n=4):
    random = np.random.default_rng(1)
    made = np.zeros(n, BODY)
    made["x"], made["y"], made["n"] = random.normal(size=n), random.normal(size=n), np.arange(n) + 1
    return made


def cells():
    random = np.random.default_rng(2)
    made = np.zeros(3, CELL)
    made["p"], made["m"] = random.normal(size=(3, 3)), random.normal(size=3)
    return made


def nested():
    made = np.zeros(2, NESTED)
    made["a"]["x"], made["a"]["y"], made["a"]["n"], made["m"] = [1.0, 2.0], [0.5, 2.0], [2, 3], [3.0, 1.0]
    return made


def reads(a, x):
    total = 0.0
    for r in a:
        total += r.x * r.n * x + r.y**2
    for i in range(len(a)):
        total += a[i].x * a["y"][i] * a.n[i] * x
    for i, r in enumerate(a[1:]):
        total += i * r["x"] * x * x
    return total + a[-1].x * x


def writes(a, x):
    for r in a:
        r.x = r.x * x + r.y
    a[1] = a[0]
    a[0].x += 1.0
    a["x"][2] = x * x
    a[3]["y"] = a[1]["x"] * x
    total = 0.0
    for i in range(a.size):
        total += a[i].x * a[i].y + a.shape[0] * x * x
    return total


def with_arrays(a, x):
    total = 0.0
    for r in a:
        total += (r.p * r.p).sum() * r.m * x + r.p[1] * x * x
    a[0].p[1] = x
    a[1] = a[0]
    return total + a[1].p[1] * a[1].m + a["p"][0, 2]


def records_in_records(a, x):
    total = 0.0
    for r in a:
        total += r.a.x * r.m * x + r.a.n * x * x
        r.a.y *= x
    return total + a["a"]["y"].sum() * a[0].a.y


def of_two_axes(a, x):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j].x * x
            a[i, j].y = total * x
    return total + a[1, 1].y * a[0]["x"][1] + a[:, 1]["y"].sum()


def one_of_two(a, x):
    r = a[0]
    if a[1].n > 1:
        r = a[2]
    r.x = r.x * x * x

    def weighted(r, s):
        return r.x * s + r.y

    return weighted(r, x) + a[2].x


PROGRAMS = {
    "reads": (reads, bodies()),
    "writes": (writes, bodies()),
    "with_arrays": (with_arrays, cells()),
    "records_in_records": (records_in_records, nested()),
    "of_two_axes": (of_two_axes, bodies(6).reshape(2, 3)),
    "one_of_two": (one_of_two, bodies()),
}


def float_fields(array, path=()):
    """Yield the paths of the fields that are floats."""
    for name in array.dtype.names:
        if array[name].dtype.names:
            yield from float_fields(array[name], (*path, name))
        elif array[name].dtype.kind == "f":
            yield (*path, name)


def at(array, path):
    for name in path:
        array = array[name]
    return array


def as_numba_runs(function):
    """Return the function as Numba compiles it; where nothing is compiled, on arrays whose fields are attributes."""
    if is_interpreted():
        return lambda array, x: function(array.view(np.recarray), x)
    return njit(function)


def differences(function, array, x, h=1e-6):
    """Return the gradients by central differences, of the function as Numba compiles it."""
    compiled = as_numba_runs(function)
    found = np.zeros_like(array)
    for path in float_fields(array):
        for index in np.ndindex(at(array, path).shape):
            values = []
            for step in (h, -h):
                given = array.copy()
                at(given, path)[index] += step
                values.append(compiled(given, x))
            at(found, path)[index] = (values[0] - values[1]) / (2 * h)
    of_x = (compiled(array.copy(), x + h) - compiled(array.copy(), x - h)) / (2 * h)
    return found, of_x


def assert_close(found, expected):
    assert found.dtype == expected.dtype
    for path in float_fields(expected):
        np.testing.assert_allclose(at(found, path), at(expected, path), rtol=1e-6, atol=1e-7, err_msg=str(path))


@pytest.mark.parametrize("name", one_in(2, PROGRAMS))
def test_gradients_are_structured_arrays(name):
    function, given = PROGRAMS[name]
    expected, of_x = differences(function, given, 1.5)
    df = gradient(function)
    found, found_x = df(given.copy(), 1.5)
    assert_close(found, expected)
    assert math.isclose(found_x, of_x, rel_tol=1e-6)
    if "n" in given.dtype.names:
        assert not found["n"].any()

    @njit
    def inside(a, x):
        return df(a, x)

    assert_close(inside(given.copy(), 1.5)[0], expected)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", one_in(3, PROGRAMS, "compiled"))
def test_other_derivatives_of_structured_arrays(name):
    function, given = PROGRAMS[name]
    expected, of_x = differences(function, given, 1.5)
    left, same = given.copy(), given.copy()
    value, _ = value_and_gradient(function)(left, 1.5)
    assert math.isclose(value, as_numba_runs(function)(same, 1.5), rel_tol=1e-13)
    assert_close(pickle.loads(pickle.dumps(gradient(function)))(given.copy(), 1.5)[0], expected)

    tangent = np.zeros_like(given)
    random = np.random.default_rng(3)
    total = 0.5 * of_x
    for path in float_fields(given):
        at(tangent, path)[...] = random.normal(size=at(tangent, path).shape)
        total += (at(tangent, path) * at(expected, path)).sum()

    def other(a, x):  # the tangents of the function itself stay as they are first made
        return function(a, x)

    kept = given.copy()
    assert math.isclose(zg.jvp(other, (kept, 1.5), (tangent, 0.5))[1], total, rel_tol=1e-6)
    assert (kept == given).all()  # forward mode writes to copies
    assert math.isclose(zg.jvp(other, (given.copy(), 1.5), (None, 1.0))[1], of_x, rel_tol=1e-6)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", one_in(3, PROGRAMS, "compiled"))
def test_second_derivatives(name):
    function, given = PROGRAMS[name]
    f, h = as_numba_runs(function), 1e-4
    expected = (f(given.copy(), 1.5 + h) - 2 * f(given.copy(), 1.5) + f(given.copy(), 1.5 - h)) / h**2
    assert math.isclose(zg.hessian(function, wrt=1)(given.copy(), 1.5), expected, rel_tol=1e-5, abs_tol=1e-5)

    def mixed(a, x):
        return gradient(function, wrt=1)(a, x)

    def slope(a, x, step=1e-5):
        return (f(a.copy(), x + step) - f(a.copy(), x - step)) / (2 * step)

    found, _ = gradient(mixed)(given.copy(), 1.5)
    path = next(float_fields(given))
    given_up, given_down = given.copy(), given.copy()
    first = (0,) * at(given, path).ndim
    at(given_up, path)[first] += 1e-4
    at(given_down, path)[first] -= 1e-4
    expected = (slope(given_up, 1.5) - slope(given_down, 1.5)) / 2e-4
    assert math.isclose(at(found, path)[first], expected, rel_tol=1e-4, abs_tol=1e-4)


def test_made_inside():
    def f(x):
        made = np.zeros(3, BODY)
        for i in range(3):
            made[i].x = x * i
            made[i].n = i
        kept = made.copy()
        made[0].x = x**3
        other = np.zeros_like(made)
        other[1] = made[2]
        return (made["x"] * kept.x).sum() + made[0].x + other[1].x * other[1].n

    # x^2 + 4 x^2 + x^3 + 4 x
    assert math.isclose(gradient(f)(1.5), 10 * 1.5 + 3 * 1.5**2 + 4.0, rel_tol=1e-14)
    assert math.isclose(zg.derivative(f)(1.5), 10 * 1.5 + 3 * 1.5**2 + 4.0, rel_tol=1e-14)
    assert math.isclose(zg.hessian(f)(1.5), 10 + 6 * 1.5, rel_tol=1e-14)


def test_the_argument_ends_as_the_function_leaves_it():
    left, expected = bodies(), bodies()
    gradient(writes)(left, 1.5)
    njit(writes)(expected, 1.5)
    np.testing.assert_allclose(left["x"], expected["x"], rtol=1e-14)
    np.testing.assert_allclose(left["y"], expected["y"], rtol=1e-14)


def doubled(array):
    made = array.copy()
    for path in float_fields(array):
        at(made, path)[...] *= 2.0
    return made


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "given", one_in(3, [bodies()[1], cells()[0], nested()[1]], "compiled"), ids=["scalars", "arrays", "records"]
)
def test_gradients_of_records_are_records(given):
    def of_scalars(r, x):
        return r.x * r.n * x * x + r.y**3

    def of_arrays(r, x):
        return (r.p * r.p).sum() * r.m * x * x + r.p[1]

    def of_records(r, x):
        s = r.a
        return s.x * s.y * r.m * x * x + s.n

    function = {BODY: of_scalars, CELL: of_arrays, NESTED: of_records}[given.dtype]
    one = np.zeros(1, given.dtype)
    one[0] = given
    compiled = njit(function)
    expected, of_x = differences(lambda a, x: compiled(a[0], x), one, 1.5)
    df = gradient(function)
    found, found_x = df(given, 1.5)
    assert isinstance(found, np.void)
    assert_close(np.array([found], given.dtype), expected)
    assert math.isclose(found_x, of_x, rel_tol=1e-6)

    @njit
    def inside(r, x):
        first, _ = df(r, x)
        other, _ = df(r, 2.0 * x)
        return first, other

    first, other = inside(given, 1.5)  # arrays of one record where they are compiled
    assert_close(np.array(first, given.dtype).reshape(1), expected)
    assert_close(np.array(other, given.dtype).reshape(1), np.array([df(given, 3.0)[0]], given.dtype))

    tangent = expected[0]
    total = sum((at(expected, path) ** 2).sum() for path in float_fields(expected))
    assert math.isclose(zg.jvp(function, (given, 1.5), (tangent, 0.5))[1], total + 0.5 * of_x, rel_tol=1e-6)

    def twice(r, x):
        return gradient(function, wrt=1)(r, x)

    mixed, _ = gradient(twice)(given, 1.5)
    path = next(float_fields(expected))
    up, down = one.copy(), one.copy()
    first = (0,) * at(one, path).ndim
    at(up, path)[first] += 1e-4
    at(down, path)[first] -= 1e-4
    slope = (df(up[0], 1.5)[1] - df(down[0], 1.5)[1]) / 2e-4
    assert math.isclose(at(np.array([mixed], given.dtype), path)[first], slope, rel_tol=1e-6, abs_tol=1e-7)
    assert_close(np.array([gradient(function, wrt=0)(given, 1.5)], given.dtype), expected)
    assert_close(np.array([value_and_gradient(function)(given, 1.5)[1][0]], given.dtype), expected)
    held = gradient(lambda pair, x: function(pair[1], x) * pair[0])((2.0, given), 1.5)[0]
    assert_close(np.array([held[1]], given.dtype), doubled(expected))


def test_records_of_the_caller():
    record = bodies()[1]
    found = gradient(lambda r, x: r.x * r.n * x * x, wrt=1)(record, 2.0)
    assert math.isclose(found, record["x"] * 2 * 4.0, rel_tol=1e-14)
    assert math.isclose(zg.derivative(lambda r, x: r.x * r.n * x * x, wrt=1)(record, 2.0), found, rel_tol=1e-14)


def test_parts_of_what_is_made_inside():
    def f(x):
        made = np.zeros(4, CELL)
        turned, some, table = made[::-1], made, np.zeros((2, 3), CELL)
        turned[1].p[0] = x
        if x > 0.0:
            some = made[::2]
        some[0].m = x * x
        table[:, 1:][1, 0].p[2] = x
        while len(turned) > 3:
            turned = turned[1:]
        return made[2].p[0] ** 2 * made[0].m + table[1]["p"][1, 2] * turned[0].p[0] + turned["p"].sum()

    for x in (1.5, -1.5):  # x^4 + x^2 + x
        assert math.isclose(gradient(f)(x), 4 * x**3 + 2 * x + 1, rel_tol=1e-14)
        assert math.isclose(zg.derivative(f)(x), 4 * x**3 + 2 * x + 1, rel_tol=1e-14)


def refused(call, says):
    with pytest.raises(DifferentiationError, match=f"(?s){says}"):
        call()


def test_refusals():
    def written(a, x):
        a[0].x = x
        return a[0].x

    def in_a_list(a, x):
        held = [a[0], a[1]]
        a[0].x = x * x
        return held[0].x * x

    def in_a_dict(a, x):
        held = {0: a[0]}
        a[0].x = x * x
        return held[0].x * x

    def in_any_order(a, x):
        return (a[np.array([1, 0])]["x"] * x).sum()

    def as_a_whole(a, x):
        return np.flip(a)[0].x * x

    readonly = bodies()
    readonly.flags.writeable = False
    refused(lambda: gradient(written, wrt=1)(readonly, 2.0), "is read-only")
    refused(lambda: gradient(in_a_list, wrt=1)(bodies(), 2.0), "a list of records")
    refused(lambda: gradient(in_a_dict, wrt=1)(bodies(), 2.0), "a dict of records")
    several = List()
    several.append(bodies())
    refused(lambda: gradient(lambda s, x: s[0][0].x * x)(several, 2.0), "structured arrays, is not supported")
    refused(lambda: gradient(lambda s, x: s[0].x * x)([bodies()[0]], 2.0), "structured arrays, is not supported")
    refused(lambda: gradient(in_any_order)(bodies(), 2.0), "not supported")
    refused(lambda: gradient(as_a_whole)(bodies(), 2.0), "not supported")
    refused(lambda: zg.hessian(reads, wrt=0)(bodies(), 2.0), "not supported")
    overlapping = np.zeros(2, {"names": ["x", "y"], "formats": [np.float64, np.float64], "offsets": [0, 4]})
    refused(lambda: gradient(lambda a, x: a[0].x * x)(overlapping, 2.0), "overlap")
    objects = np.zeros(2, [("x", np.float64), ("o", object)])
    refused(lambda: gradient(lambda a, x: a[0].x * x)(objects, 2.0), "dtype")
    texts = np.zeros(2, [("x", np.float64), ("name", "U4")])
    refused(lambda: gradient(lambda a, x: a[0].x * x)(texts, 2.0), "not supported")
    with pytest.raises(ValueError, match="the tangent of `a` must have the shape of `a`"):
        zg.jvp(reads, (bodies(), 2.0), (bodies(3), 1.0))


def test_two_arguments_that_share_memory():
    def f(a, b, x):
        a[0].x = x
        return a[0].x * b[0].x

    both = bodies()
    with pytest.raises(ValueError, match="share memory"):
        gradient(f)(both, both, 2.0)
    found = gradient(f)(bodies(), both, 2.0)
    assert found[2] == both[0]["x"]


def test_a_record_and_the_array_that_it_is_in():
    def f(a, r, x):
        a[0].x = x * r.x
        return r.x * x

    def with_field(x, r, y):
        x[0] = y * r.x
        return r.x * y

    many = bodies()
    for call in (gradient(f), njit(lambda a, r, x: gradient(f)(a, r, x))):
        with pytest.raises(ValueError, match="`a` and `r` share memory"):
            call(many, many[0], 2.0)
        assert call(many, bodies()[1], 2.0)[2] == many[1]["x"]
    with pytest.raises(ValueError, match="`x` and `r` share memory"):
        gradient(with_field)(many["x"], many[1], 2.0)
    with pytest.raises(ValueError, match="share memory"):
        gradient(lambda both, x: f(both[0], both[1], x))((many, many[0]), 2.0)


def test_a_record_that_is_written_to():
    def f(r, x):
        for i in range(3):
            r.p[i] *= x * r.p[i]
        r.m = r.p[0] * r.p[2]
        return r.p[2] * r.m

    given, expected = cells(), cells()
    p, x = given["p"][1].copy(), 1.3
    found, slope = gradient(f)(given[1], x)
    f(expected.view(np.recarray)[1], x)
    assert_close(given, expected)  # as the function leaves it
    # p0**2 p2**4 x**3
    assert np.allclose(found["p"], [2 * p[0] * p[2] ** 4 * x**3, 0.0, 4 * p[0] ** 2 * p[2] ** 3 * x**3], rtol=1e-13)
    assert found["m"] == 0.0
    assert math.isclose(slope, 3 * p[0] ** 2 * p[2] ** 4 * x**2, rel_tol=1e-13)


def test_a_record_that_is_written_to_beside_a_list():
    def f(s, r):
        r.p[:] = r.p[::-1] * r.p
        return s[0] * r.p[0]

    given, expected = cells(), cells()
    gradient(f)(List([2.0]), given[1])
    njit(f)(List([2.0]), expected[1])
    assert_close(given, expected)


def product(a, n):
    return a[0].x * a[0].y if n == 0 else product(a, n - 1) * a[n].x


def product_of(x, n):
    return x[0] * 2.0 if n == 0 else product_of(x, n - 1) * x[n]


def power(r, n):
    return r.x if n == 0 else power(r, n - 1) * r.y


@pytest.mark.parametrize("align", [False, True])
def test_fields_in_recursive_functions(align):
    """The fields are kept for the reverse sweep, and Numba takes them for unaligned in most dtypes."""
    given = bodies().astype(np.dtype(BODY.descr, align=align))
    x, y = given["x"], given["y"]
    first = gradient(lambda a: product(a, 3))(given)
    assert np.allclose(first["x"], x.prod() * y[0] / x)
    assert np.allclose(first["y"], [x.prod(), 0.0, 0.0, 0.0])
    second = gradient(lambda a: product_of(a["x"], 3))(given)
    assert np.allclose(second["x"], 2 * x.prod() / x)
    assert not second["y"].any()
    third = gradient(lambda a: power(a[1], 3))(given)
    assert np.allclose(third["x"], [0.0, y[1] ** 3, 0.0, 0.0])
    assert np.allclose(third["y"], [0.0, 3 * x[1] * y[1] ** 2, 0.0, 0.0])
    made = gradient(lambda s: made_inside(s))(1.5)
    assert math.isclose(made, 4 * 1.5**3, rel_tol=1e-14)


def made_inside(s):
    a = np.zeros(4, BODY)
    for i in range(4):
        a[i].x = s
    a[0].y = 1.0
    return product(a, 3)


def test_fields_that_are_arrays_are_in_order():
    matrices = np.dtype([("k", np.int32), ("m", np.float64, (2, 3))])

    def f(a, r, x):
        flat = a[1].m.reshape(3, 2)
        total = np.sum(r.m.ravel() ** 2) * x
        for i in range(2):
            row = r["m"][i]
            row[:] = row * a[i].m[1]
            total += flat[i, 1] * np.sum(row.reshape(-1)) + norm(a[i].m)
        return total

    @njit
    def norm(m):
        return np.sum(np.abs(m.reshape(6)))

    random = np.random.default_rng(4)
    many, one = np.zeros(2, matrices), np.zeros(1, matrices)
    many["m"], one["m"] = random.normal(size=(2, 2, 3)), random.normal(size=(1, 2, 3))
    a, r, x = many["m"].copy(), one["m"][0].copy(), 1.3
    da, dr, dx = gradient(f)(many, one[0], x)
    new = r * a[:, 1]
    assert math.isclose(dx, np.sum(r**2), rel_tol=1e-13)
    assert np.allclose(one["m"][0], new, rtol=1e-14)
    weights = a[1].reshape(3, 2)[:2, 1]
    assert np.allclose(dr["m"], 2 * r * x + weights[:, None] * a[:, 1], rtol=1e-13)
    expected = np.sign(a)
    expected[:, 1] += weights[:, None] * r
    expected[1].reshape(-1)[[1, 3]] += new.sum(axis=1)
    assert np.allclose(da["m"], expected, rtol=1e-13)


def rebound_field(a, n):
    y = a["y"]  # not aligned in memory
    for _ in range(n):
        y = y.copy()
        y *= 2.0
    return np.sum(y * y)


@pytest.mark.parametrize("n", [0, 2])
def test_a_field_that_is_not_aligned_and_an_array_in_one_variable(n):
    a = bodies()
    of_a, of_n = gradient(rebound_field)(a, n)
    assert np.allclose(of_a["y"], 2.0 * 4.0**n * a["y"], rtol=1e-14)
    assert not of_a["x"].any()
    assert of_n is None


def test_made_by_keyword():
    kind = np.dtype([("a", "f8"), ("b", "f8", (2,))])

    def f(x):
        pair, row, grid = np.zeros(2, dtype=kind), np.empty(dtype=kind, shape=(3,)), np.zeros(shape=(2, 3), dtype=kind)
        pair[0]["a"], row[1]["b"][1], grid[1, 2]["a"] = x, 2.0 * x, x * x
        return pair[0]["a"] * row[1]["b"][1] * grid[1, 2]["a"]

    assert zg.gradient(f)(3.0) == 8.0 * 27.0
    assert f(3.0) == 2.0 * 81.0
    for made in (lambda x: np.zeros_like(x, dtype=kind), lambda x: np.empty_like(x, dtype=kind)):
        with pytest.raises(zg.DifferentiationError, match="with a structured dtype is not supported"):
            zg.gradient(lambda x, made=made: made(x)[0].a)(np.ones(2))
