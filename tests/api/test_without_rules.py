"""A callable without a rule is refused where it would be active: it is never treated as a constant.

This holds for arrays in all forms, and for callables that may return their argument, or a view of it.
"""

import numba
import numpy as np
import pytest
from numba import njit
from numba.extending import intrinsic

from zygote_py import DifferentiationError, gradient

X = np.array([0.4, 0.9, 1.7, 2.2])


@intrinsic
def same_number(typing_context, x):
    def codegen(context, builder, signature, args):
        return args[0]

    return x(x), codegen


@intrinsic
def same_array(typing_context, x):
    def codegen(context, builder, signature, args):
        context.nrt.incref(builder, signature.args[0], args[0])
        return args[0]

    return x(x), codegen


def a_draw(x):
    return np.random.dirichlet(x)[0]


def a_draw_of_many(x):
    return np.sum(np.random.dirichlet(x, 3))


def an_intersection(x):
    return np.sum(np.intersect1d(x, x + 1.0))


def another_type(x):
    return x.view(np.float32)[1] * 1.0


def an_intrinsic(x):
    return same_number(x[0]) * x[1]


def an_intrinsic_of_arrays(x):
    y = same_array(x)
    return y[0] * y[1]


def an_intrinsic_that_is_written_to(x):
    y = same_array(x.copy())
    y[0] = 1.0
    return y[0] * y[1]


def an_object(x):
    with numba.objmode(y="float64"):
        y = float(x[0])
    return y * x[1]


@pytest.mark.parametrize(
    "f",
    [
        *(pytest.param(each, marks=pytest.mark.interpreted) for each in (a_draw, a_draw_of_many, an_intersection)),
        another_type,
        an_intrinsic,
        an_intrinsic_of_arrays,
        an_intrinsic_that_is_written_to,
        an_object,
    ],
)
def test_refused(f):
    njit(f)(X.copy())
    with pytest.raises(DifferentiationError) as caught:
        gradient(f)(X.copy())
    assert caught.value.file == __file__
    assert caught.value.hint
    with pytest.raises(DifferentiationError):  # and again
        gradient(f)(X.copy())


def test_a_constant_is_none_of_its_business():
    def f(x):
        weights = np.random.dirichlet(np.ones(4))
        np.random.seed(3)
        return np.sum(x * x) + 0.0 * np.sum(weights)

    np.testing.assert_allclose(gradient(f)(X), 2 * X)


def test_both_parts_of_divmod():
    def f(x):
        quotients, remainders = np.divmod(x, 0.3)
        return np.sum(remainders * remainders) + np.sum(quotients)

    np.testing.assert_allclose(gradient(f)(X), 2 * np.mod(X, 0.3))
