"""Arguments that no derivative takes: which one, what it is and how to convert it; and wrong numbers of them."""

from __future__ import annotations

import decimal
import fractions
import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, types

import zygote_py as zg
from zygote_py import DifferentiationError, gradient, pullback, value_and_gradient

F8 = types.float64
ONE = np.ones(3)


class Series:
    def to_numpy(self):
        return ONE


class Tensor:
    def detach(self):
        return self

    def numpy(self):
        return ONE


class Matrix:
    def toarray(self):
        return ONE


class Wrapped:
    def __array__(self, dtype=None, copy=None):
        return ONE


class Weights(NamedTuple):
    w: object
    scale: float


def weighted(x, y):
    return np.sum(x * y)


VALUES = [
    (np.array([1, 2], object), "`y` is an array of Python objects (dtype object)", "`y.astype(float)`"),
    (np.ones(2, np.float16), "`y` is an array of dtype float16", "`y.astype(np.float32)`"),
    (np.ones(2, ">f8"), "`y` is an array of dtype >f8", "`y.astype(np.float64)`"),
    (np.ones(2, ">f4"), "`y` is an array of dtype >f4", "`y.astype(np.float32)`"),
    (np.ones(2, np.longdouble), "`y` is an array of dtype ", "`y.astype(np.float64)`"),
    (np.ones(2, np.clongdouble), "`y` is an array of dtype ", "`y.astype(np.complex128)`"),
    (np.array(["1.0"]), "`y` is an array of strings", "`y.astype(float)`"),
    (np.array(["2020-01-01"], "M8[D]"), "`y` is an array of dtype datetime64[D]", "timedelta64"),
    (np.zeros(2, [("a", "f8")]), "`y` is an array of dtype [('a', '<f8')]", "`y['a']`"),
    (np.ma.array([1.0, 2.0], mask=[True, False]), "`y` is a masked array", "`y.filled(0.0)`"),
    (np.float16(1.0), "`y` is a value of type `float16`", "`np.float32(y)`"),
    (np.longdouble(1.0), "`y` is a value of type `longdouble`", "`float(y)`"),
    ([1.0, 2.0], "`y` is a list", "`np.array(y)`"),
    ([[1.0], [2.0]], "`y` is a list", "`np.array(y)`"),
    (range(3), "`y` is a range", "`np.array(y)`"),
    ((i for i in range(3)), "`y` is a value of type `generator`", "`np.array(list(y))`"),
    ({1.0}, "`y` is a set", "`np.array(sorted(y))`"),
    ({"a": 1.0}, "`y` is a dict", "NamedTuple"),
    (b"abc", "`y` is a bytes", "`np.frombuffer(y, dtype)`"),
    (decimal.Decimal("1.5"), "`y` is a value of type `Decimal`", "`float(y)`"),
    (fractions.Fraction(1, 2), "`y` is a value of type `Fraction`", "`float(y)`"),
    (Series(), "`y` is a value of type `Series`", "`y.to_numpy()`"),
    (Tensor(), "`y` is a value of type `Tensor`", "`y.detach().numpy()`"),
    (Matrix(), "`y` is a value of type `Matrix`", "`y.toarray()`"),
    (Wrapped(), "`y` is a value of type `Wrapped`", "`np.asarray(y)`"),
    ((1.0, [2.0]), "`y[1]` is a list", "`np.array(y[1])`"),
    (Weights((1.0, Series()), 1.0), "`y.w[1]` is a value of type `Series`", "`y.w[1].to_numpy()`"),
    (object(), "`y` is a value of type `object`", "NamedTuple"),
]
OF_ALL = [
    gradient,
    value_and_gradient,
    zg.jacobian,
    zg.hessian,
    zg.hessian_diagonal,
    zg.value_gradient_hessian,
    lambda f: lambda *args: pullback(f, *args),
]


def test_each_value_is_called_what_it_is_and_its_conversion_is_named():
    df = gradient(weighted)
    for value, said, hint in VALUES:
        with pytest.raises(DifferentiationError) as caught:
            df(ONE, value)
        assert f"the argument {said}" in caught.value.message
        assert hint in caught.value.hint
        assert "pyobject" not in str(caught.value)
        assert caught.value.file == __file__


@pytest.mark.parametrize("of", OF_ALL)
def test_every_derivative_names_the_argument(of):
    with pytest.raises(
        DifferentiationError, match=r"the argument `x` is a value of type `Series`(.|\n)*x\.to_numpy\(\)"
    ):
        of(weighted)(Series(), ONE)


def test_directions_name_the_arguments_of_the_function():
    with pytest.raises(DifferentiationError, match="the argument `y` is a list"):
        zg.jvp(weighted, (ONE, [1.0]), (ONE, None))
    with pytest.raises(DifferentiationError, match="the tangent of `x` is a value of type `Series`"):
        zg.jvp(weighted, (ONE, ONE), (Series(), None))
    with pytest.raises(DifferentiationError, match="the tangent of `x` is an array of Python objects"):
        zg.jvp(lambda x: x * x, ONE, ONE.astype(object))
    with pytest.raises(DifferentiationError, match=r"the tangent of `x`, .*is of type .*list"):
        zg.hvp(weighted)(ONE, ONE, [1.0])


def test_a_second_call_with_other_values_says_the_same():
    df = gradient(lambda x: x * x)
    assert df(3.0) == 6.0
    for value, said in ((range(3), "a range"), ([1.0], "a list"), (np.array([1.0], object), "Python objects")):
        with pytest.raises(DifferentiationError, match=f"the argument `x` is .*{said}"):
            df(value)
    assert df(4.0) == 8.0


def test_a_captured_array_of_objects_is_named():
    table = np.array([1.0, 2.0], object)
    with pytest.raises(
        DifferentiationError, match=r"`table`, an array of Python objects (.|\n)*`table\.astype\(float\)`"
    ):
        gradient(lambda x: np.sum(x * table)).source(F8)


# ------------------------------------------------------------------------------------------------- how many there are


def call_of(f, args, keywords):
    with pytest.raises(TypeError) as caught:
        f(*args, **keywords)
    return str(caught.value)


@pytest.mark.parametrize("of", [*OF_ALL[:-1], zg.derivative, zg.SparseHessian, zg.SparseJacobian])
def test_wrong_arguments_are_what_they_are_in_python(of):
    df = of(weighted)
    for args, keywords in (
        ((), {}),
        ((1.0,), {}),
        ((1.0, 2.0, 3.0), {}),
        ((1.0,), {"x": 2.0}),
        ((1.0, 2.0), {"z": 3.0}),
    ):
        assert call_of(df, args, keywords) == call_of(weighted, args, keywords)


def test_wrong_arguments_of_what_is_called_otherwise():
    assert call_of(pullback, (weighted, 1.0), {}) == "weighted() missing 1 required positional argument: 'y'"
    assert call_of(pullback, (weighted, 1.0), {"z": 1.0}) == call_of(weighted, (1.0,), {"z": 1.0})
    assert call_of(zg.hvp(weighted), (1.0, 2.0), {}) == "hvp of weighted() missing 1 required positional argument: 'v'"
    assert call_of(zg.jvp, (weighted, (1.0,), (1.0,)), {}) == call_of(weighted, (1.0,), {})
    assert call_of(zg.jvp, (weighted, (1.0, 2.0), (1.0,)), {}) == "jvp of weighted() takes 2 tangents but 1 was given"
    assert "as a tuple of 2" in call_of(zg.jvp, (weighted, 1.0, 1.0), {})

    def rest(x, *others):
        return x

    for of in (gradient, lambda f: functools.partial(pullback, f)):
        assert call_of(of(rest), (), {}).endswith("rest() missing 1 required positional argument: 'x'")
        assert call_of(of(rest), (1.0,), {"k": 1}).endswith("rest() got an unexpected keyword argument 'k'")


def test_wrong_arguments_in_compiled_code():
    df = gradient(weighted)

    @njit
    def step(x):
        return df(x, x, x)

    with pytest.raises(TypeError, match=r"weighted\(\) takes 2 positional arguments but 3 were given"):
        step(1.0)


# ----------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("of", [gradient, value_and_gradient, zg.hessian, zg.hessian_diagonal])
def test_an_array_result_names_what_takes_it(of):
    with pytest.raises(DifferentiationError, match="not a real number") as caught:
        of(lambda x: x * x)(ONE)
    assert "`jacobian`" in caught.value.hint
    assert "`pullback`" in caught.value.hint


# ----------------------------------------------------------------------------------------------------- inspection


def test_types_are_given_as_on_the_command_line():
    df = gradient(weighted)
    given = types.Array(F8, 1, "C"), F8
    assert df.source("f64[:], f64") == df.source(*given) == df.source(ONE, 2.0)
    assert df.primal_ir("f64[:], f64") == df.primal_ir(*given)
    assert df.adjoint_ir("f64[:], f64") == df.adjoint_ir(*given)
    assert "jvp" in zg.pushforward(weighted).source("(f64[:], f64), (f64[:], f64)")
    assert gradient(lambda *a: a[0] * a[1]).source("f64, f64") == gradient(lambda *a: a[0] * a[1]).source(F8, F8)
    assert "define" in gradient(lambda x: x * x).inspect_llvm("f64")
    with pytest.raises(ValueError, match=r"unknown type 'f65': write f64"):
        df.source("f65, f64")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        df.source("f64[:]")


class Both(NamedTuple):
    w: np.ndarray
    n: int


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda x: x, ""),
        (lambda x: (2.0, x), r"\[1\]"),
        (lambda x: (1, (x, 3.0)), r"\[1\]\[0\]"),
        (lambda x: Both(x, 3), r"\.w"),
    ],
    ids=["an array", "in a tuple", "in a tuple in a tuple", "in a named tuple"],
)
def test_arrays_of_which_numba_knows_no_difference_are_refused_in_each_call(made, said):
    paths = {"": "y", r"\[1\]": "y[1]", r"\[1\]\[0\]": "y[1][0]", r"\.w": "y.w"}
    namespace = {"np": np}
    exec(f"def f(y):\n    return np.sum({paths[said]} ** 2)", namespace)
    masked, swapped = np.ma.array(ONE, mask=[False, True, False]), ONE.astype(">f8")
    for of in (gradient, value_and_gradient, lambda f: lambda y: pullback(f, y)[1](1.0)):
        df = of(namespace["f"])
        expected = repr(df(made(ONE)))
        for wrong, what in ((masked, "a masked array"), (swapped, "an array of dtype >f8")):
            for _ in range(3):
                with pytest.raises(DifferentiationError, match=f"the argument `y{said}` is {what}"):
                    df(made(wrong))
                assert repr(df(made(ONE))) == expected


@dataclass(frozen=True)
class Frozen:
    w: np.ndarray
    scale: float


@pytest.mark.compiled
def test_arrays_in_a_dataclass_that_compiled_code_takes():
    df = gradient(lambda s: np.sum(s.w * s.w) * s.scale)
    for scale in (1.0, 2.0, 3.0):
        found = df(Frozen(ONE, scale))
        np.testing.assert_array_equal(found.w, 2.0 * scale * ONE)
        assert found.scale == 3.0
    (found, _) = gradient(lambda t: np.sum(t[0].w) * t[1])((Frozen(ONE, 2.0), 4.0))
    np.testing.assert_array_equal(found.w, 4.0 * ONE)


@pytest.mark.compiled
def test_subclasses_of_arrays_are_arrays(tmp_path):
    df = gradient(lambda x: np.sum(x * x))
    given = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=(3,))
    given[:] = [1.0, 2.0, 3.0]
    for _ in range(3):
        np.testing.assert_array_equal(df(given), [2.0, 4.0, 6.0])
        np.testing.assert_array_equal(df(ONE), [2.0, 2.0, 2.0])
