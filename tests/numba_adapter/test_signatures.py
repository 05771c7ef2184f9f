"""Functions that are compiled for given signatures: which one a call takes, what is converted, what options hold."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from numba import float32, float64, int64, njit, types

import zygote_py as zg
from tests.checking.derivatives import check_derivatives
from tests.plain import plain
from zygote_py import DifferentiationError, gradient, value_and_gradient

SCALE = 1.5


@njit("f8(f8)")
def eager_square(x):
    return x * x


@njit(float64(float64, int64))
def eager_power(x, n):
    return 1.0 if n == 0 else x * eager_power(x, n - 1)


@njit(["f8(f8)", "i8(i8)"])
def half_up(x):
    return x // 2 + x * x


@njit(["f8(f8[::1])", "f8(f8[:])", "f8(f8[:,:])"])
def weighed(a):
    return SCALE * np.sum(a * a * a)


@njit("f8(f8[:], f8)")
def fill(out, x):
    for i in range(len(out)):
        out[i] = x * i
    return x


def emitted(function, *args):
    """The value and the gradient by the emitted source in plain Python."""
    return plain(value_and_gradient(function).source(*args))(*args)


# What is called


def test_conversions_of_the_arguments():
    check_derivatives(lambda x, n: eager_square(n) * x + eager_square(x) * eager_square(2), 1.5, 3, reference="numba")


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: half_up(n) * x + half_up(3),  # the exact signature, of a literal too
        lambda x, n: half_up(np.int32(n)) * x,  # an int is promoted to an int
        lambda x, n: half_up(n > 1) * x,
        lambda x, n: eager_square(np.float32(n)) * x,
        lambda x, n: eager_power(x, n) + eager_power(n, n) * x,
    ],
)
def test_the_overload_is_the_one_that_numba_takes(function):
    check_derivatives(function, 1.5, 3, reference="numba", routes=("source",))


def test_the_signature_of_a_differentiated_function_decides():
    assert value_and_gradient(eager_square)(3) == (9.0, 6.0)
    check_derivatives(eager_power, 1.5, 3, reference="numba")
    value, slopes = value_and_gradient(njit("f8(f8, f8)")(lambda x, y: x * y))(2, 3.0)
    assert (value, slopes) == (6.0, (None, 2.0))  # the argument is an int, whatever it is converted to


def test_arrays_of_every_layout():
    a = np.linspace(0.5, 1.5, 6)
    check_derivatives(lambda a: weighed(a) * weighed(a[::2]) + weighed(a.reshape(2, 3)), a, reference="numba")
    for changed in (a[::-1], a.reshape(2, 3), np.asfortranarray(a.reshape(2, 3))):
        np.testing.assert_allclose(gradient(weighed)(changed), 4.5 * changed**2, rtol=1e-14)


def test_a_captured_variable_of_the_callee(monkeypatch):
    d = gradient(lambda x: weighed(np.array([x, x])), wrt=(0, "SCALE"))
    assert d(2.0) == (36.0, 16.0)


def test_what_is_written_to():
    check_derivatives(lambda x: fill(np.empty(4), x) * x + x, 1.5, reference="numba", routes=("source",))

    def through(x):
        out = np.empty(4)
        fill(out, x * x)
        return np.sum(out)

    check_derivatives(through, 1.5, reference="numba")


def test_functions_passed_as_arguments():
    def apply(f, x):
        return f(x) * f(2)

    value, (_, slope) = value_and_gradient(apply)(eager_square, 3)
    assert (value, slope) == (36.0, None)
    assert gradient(apply)(half_up, 1.5) == (None, (1.0 + 4.0) * 2 * 1.5)  # the literal takes the int's overload


def test_named_and_omitted_arguments():
    @njit([float64(float64, types.Omitted(2.0)), float64(float64, float64)])
    def scaled(x, factor=2.0):
        return x * factor

    check_derivatives(lambda x, n: scaled(x) * scaled(factor=n, x=x), 1.5, 3, reference="numba")
    assert gradient(scaled)(3.0) == (2.0, 3.0)


def test_tuples_and_arguments_that_are_read_only():
    readonly = types.Array(types.float64, 1, "C", readonly=True)

    @njit([float64(types.UniTuple(float64, 2), readonly)])
    def mixed(pair, a):
        return pair[0] * a[0] + pair[1] * a[1] ** 2

    check_derivatives(
        lambda x, n, a: mixed((x, n), a) * x, 1.5, 3, np.array([2.0, 3.0]), reference="numba", routes=("source",)
    )


def test_recursion_through_another_function():
    even = njit("f8(f8, i8)")(lambda x, n: 1.0 if n == 0 else 0.5 * x * eager_power(x, n - 1))

    @njit("f8(f8, i8)")
    def odd(x, n):
        return x if n == 0 else x * even(x, n - 1)

    check_derivatives(lambda x: odd(x, 3) + odd(x, 0), 1.5, reference="numba", routes=("source",))


def test_single_precision_and_explicit_results():
    @njit(float32(float64))
    def rounded(x):
        return x * x

    @njit(float64(float32))
    def narrowed(x):
        return x * 1.1

    def f(x):
        return rounded(x) * narrowed(x)

    x = 1.1
    value, slope = value_and_gradient(f)(x)
    assert value == njit(f)(x)
    product = float(np.float32(x * x)) * (float(np.float32(x)) * 1.1)
    assert value == product
    assert slope == pytest.approx(3 * 1.1 * x * x, rel=1e-6)
    assert emitted(f, x)[1] == pytest.approx(slope, rel=1e-6)


def test_a_result_that_is_cast_to_an_integer():
    @njit("i8(f8)")
    def whole(x):
        return x * x

    check_derivatives(lambda x: whole(x) * x, 1.7, reference="numba", routes=("source",))


def test_the_types_of_local_variables():
    @njit(locals={"y": types.float32})
    def rough(x):
        y = x * 1.1
        return y * x

    for function in (rough, lambda x: rough(x)):
        value, slope = value_and_gradient(function)(1.3)
        assert value == rough(1.3) != 1.3 * 1.1 * 1.3
        assert slope == pytest.approx(2.86, rel=1e-6)
    assert emitted(lambda x: rough(x), 1.3)[0] == rough(1.3)

    @njit(locals={"s": types.int64})
    def counted(x):
        s = x
        return s * x

    check_derivatives(lambda x: counted(x), 2.75, reference="numba", routes=("source",))


def test_compile_and_disable_compile():
    @njit
    def cube(x):
        return x * x * x

    cube.compile("f8(f8)")
    assert value_and_gradient(lambda x, n: x * cube(n))(2.0, 3) == (54.0, (27.0, None))  # an i8 overload is made
    cube.disable_compile()

    @njit
    def square(x):
        return x // 1 * x

    square(2.0)
    square.disable_compile()
    check_derivatives(lambda x, n: square(n) * x, 1.5, 3, reference="numba")


def test_always_inlined_functions_take_what_they_are_given():
    @njit("f8(f8)", inline="always")
    def inlined(x):
        return x // 2

    check_derivatives(lambda x, n: (inlined(n) + 0 * n) * x, 1.5, 3, reference="numba")


# Options


def test_each_function_keeps_its_options():
    @njit(fastmath=True)
    def dot(a):
        s = 0.0
        for i in range(len(a)):
            s += a[i] * a[i]
        return s

    source = value_and_gradient(lambda a: dot(a) * a[0]).source(types.float64[::1])
    assert re.search(r"@njit\(fastmath=True\)\ndef dot_forward", source)
    assert re.search(r"@njit\ndef function_value_and_gradient", source)
    check_derivatives(lambda a: dot(a) * a[0], np.linspace(0.5, 1.5, 5), reference="numba")

    @njit
    def is_missing(x):
        return x if not np.isnan(x) else 0.0

    outer = njit(fastmath=True)(lambda x: is_missing(x) * x)
    assert "@njit(fastmath=False)\ndef is_missing_forward" in gradient(outer).source(types.float64)

    some = njit(fastmath={"nnan", "contract"})(lambda a: np.sum(a * a))
    assert "@njit(fastmath={'contract', 'nnan'})\ndef lambda__" in gradient(lambda a: some(a)).source(types.f8[:])
    short = njit(fastmath=True)(lambda x: x * x)  # computed more strictly, and inlined
    assert "@njit(fast" not in gradient(lambda x: short(x)).source(types.f8)

    @njit(fastmath=True)
    def update(a, i, x):
        a[i] = a[i - 1] * x
        return a[i] + x

    stricter = njit(fastmath={"contract"})(lambda a, x: update(a, 1, x) * x)
    assert "update" not in gradient(stricter).source(types.f8[::1], types.f8)
    whole = njit(fastmath=True)(lambda a: np.sum(a))
    assert "@njit(fastmath=True)" in gradient(lambda a: whole(a) * a[0]).source(types.f8[::1])


def test_divisions_by_zero_are_those_of_the_function_with_the_division():
    @njit("f8(f8)", error_model="numpy")
    def infinite(x):
        return 1.0 / x

    @njit
    def strict(x):
        return 1.0 / x

    assert value_and_gradient(lambda x: infinite(x))(0.0) == (np.inf, -np.inf)
    with pytest.raises(ZeroDivisionError):
        gradient(lambda x: infinite(x) + strict(x))(0.0)
    with pytest.raises(ZeroDivisionError):
        gradient(njit(error_model="numpy")(lambda x: infinite(x) + strict(x)))(0.0)


def test_what_is_always_inlined_is_compiled_as_its_caller():
    """It was compiled as the function that is differentiated."""

    @njit(inline="always")
    def quotient(a, b):
        return a / b

    @njit(error_model="numpy")
    def infinite(a, b):
        return quotient(a, b) * 2.0

    @njit
    def strict(a, b):
        return quotient(a, b) * 2.0

    assert njit(lambda a, b: infinite(a, b))(1.0, 0.0) == np.inf
    assert value_and_gradient(lambda a, b: infinite(a, b))(1.0, 0.0) == (np.inf, (np.inf, -np.inf))
    with pytest.raises(ZeroDivisionError):
        strict(1.0, 0.0)
    for function in (lambda a, b: strict(a, b), njit(error_model="numpy")(lambda a, b: strict(a, b))):
        with pytest.raises(ZeroDivisionError):
            gradient(function)(1.0, 0.0)

    @njit(inline="always", fastmath=True)
    def many(x):
        s = 0.0
        for i in range(9):
            s += quotient(x, s + i + 1.0)
        return s

    summed = njit(fastmath={"contract"})(lambda x: many(x) * x)
    source = gradient(lambda x: summed(x)).source(types.f8)
    assert "@njit(fastmath={'contract'})" in source
    assert "@njit(fastmath=True)" not in source


def test_a_bound_that_is_checked():
    @njit(boundscheck=True)
    def at(a, i):
        return a[i]

    d = gradient(lambda a, i: at(a, i) * a[0])
    assert d(np.array([2.0, 3.0]), 1)[0].tolist() == [3.0, 2.0]
    with pytest.raises(IndexError):
        d(np.array([2.0, 3.0]), 5)


def test_one_source_decorated_in_two_ways():
    def source(x):
        return x // 2 * x

    whole, real = njit("f8(i8)")(source), njit("f8(f8)")(source)
    check_derivatives(lambda x: real(x) * 2.0 + whole(x), 3.5, reference="numba")


# Rules and derivatives within


def test_a_rule_wins():
    @njit("f8(f8)")
    def known(x):
        return x // 1.0

    @zg.adjoint(known)
    def rule(x):
        return known(x), lambda dy: (10.0 * dy,)

    assert value_and_gradient(lambda x, n: known(x) + known(n))(2.5, 3) == (5.0, (10.0, None))
    assert gradient(known)(2.5) == 10.0
    ignored = zg.ignore(njit("f8(f8)")(lambda x: x * x))
    assert gradient(lambda x: ignored(x) * x)(3.0) == 9.0


def test_derivatives_of_functions_with_signatures():
    check_derivatives(
        lambda x, n: gradient(eager_square)(x) * gradient(eager_power)(x, n)[0], 1.5, 3, reference="numba"
    )
    assert zg.hessian(eager_square)(2.0) == 2.0
    assert njit(lambda x: gradient(eager_square)(x))(2.0) == 4.0
    assert zg.jvp(eager_square, (3.0,), (1.0,)) == (9.0, 6.0)
    value, back = zg.pullback(eager_power, 2.0, 3)
    assert (value, back(1.0)) == (8.0, (12.0, None))
    assert gradient(lambda x: zg.checkpoint(eager_square)(x) * x)(2.0) == 12.0


def test_pickled_with_its_signatures():
    d = pickle.loads(pickle.dumps(d_decorated))
    assert d is d_decorated
    again = pickle.loads(pickle.dumps(gradient(d_decorated.primal)))
    assert again(3.0) == d_decorated(3.0) == 6.0
    assert again.primal is d_decorated.primal


@gradient
@njit("f8(f8)")
def d_decorated(x):
    return x * x


# Refused


def test_arguments_that_fit_no_signature():
    message = r"`weighed` was compiled for \(array\(float64, 1d, C\)\) and .* only, and is called with \(float64\)"
    with pytest.raises(DifferentiationError, match=message) as caught:
        gradient(lambda x: weighed(x) * x)(1.0)
    assert "convert the arguments" in str(caught.value)
    with pytest.raises(DifferentiationError, match="is called with"):
        gradient(weighed)(1.0)


def test_an_ambiguous_call():
    @njit(["f8(f8, i8)", "f8(i8, f8)"])
    def either(x, y):
        return x * y + x / y

    with pytest.raises(TypeError, match="Ambiguous"):
        either(3, 2)
    with pytest.raises(DifferentiationError, match="several signatures that fit"):
        gradient(either)(3, 2)
    check_derivatives(
        lambda x, n: either(n, n) * x, 1.5, 2, reference="numba", routes=("source",)
    )  # compiled code takes the first


def test_the_fingerprint_tells_signatures_apart():
    from zygote_py.cache.fingerprint import Fingerprint

    def source(x):
        return x * x

    digests = set()
    for decorated in (
        njit(source),
        njit("f8(f8)")(source),
        njit("f4(f4)")(source),
        njit(locals={"x": types.f8})(source),
    ):
        found = Fingerprint()
        found.value(decorated)
        digests.add(found.digest)
    assert len(digests) == 4
