"""`has_aux=True`: functions that return a loss and more, which is passed on."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, types

import zygote_py as zg
from tests.checking.slopes import differences
from tests.plain import plain
from zygote_py import DifferentiationError, gradient, value_and_gradient

F8 = types.float64
X = np.array([0.5, -1.0, 2.0])


class Report(NamedTuple):
    residual: np.ndarray
    count: int


@dataclass(frozen=True)
class Best:
    x: np.ndarray
    name: str


def loss(w, x):
    r = np.tanh(x * w)
    for i in range(len(r)):
        r[i] = r[i] * r[i] + w  # overwritten, so that the reverse sweep has to know what was there
    return np.sum(np.sin(r)), Report(r, len(x))


def branches(x):
    if x > 1.0:
        return x * x, (x, np.array([x, 1.0]), "large", None, True)
    return 3.0 * x, (1.0, np.zeros(2), "small", None, False)


def same(found, expected):
    assert type(found) is type(expected) or np.isscalar(expected)
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("of", ["compiled", "plain"])
def test_a_loss_and_a_structure(of):
    df = value_and_gradient(loss, wrt="w", has_aux=True)
    run = plain(df.source(0.7, X)) if of == "plain" else df
    if of == "plain":
        run.__globals__["Report"] = Report
    (value, aux), dw = run(0.7, X)
    expected = loss(0.7, X)
    assert value == pytest.approx(expected[0], rel=1e-15)
    np.testing.assert_allclose(aux.residual, expected[1].residual, rtol=1e-15)
    assert (type(aux), aux.count) == (Report, 3)
    assert dw == pytest.approx(differences(lambda w: loss(w, X)[0], 0.7).item(), rel=1e-8)


def test_on_several_paths_and_in_compiled_code():
    df = gradient(branches, has_aux=True)

    @njit
    def step(x):
        g, aux = gradient(branches, has_aux=True)(x)
        (value, also), again = value_and_gradient(branches, has_aux=True)(x)
        return df(x), g, aux, value, also, again

    for x, dx in ((2.0, 4.0), (0.5, 3.0)):
        value, aux = branches(x)
        same(df(x), (dx, aux))
        direct, g, found, v, also, again = step(x)
        same(direct, (dx, aux))
        same((found, also), (aux, aux))
        assert (g, v, again) == (dx, value, dx)


def test_what_is_passed_on_is_not_what_the_reverse_sweep_rewinds():
    def f(x):
        a = np.zeros(3)
        s = 0.0
        for _ in range(4):
            for i in range(3):
                a[i] = a[i] * a[i] * 0.1 + x * i
                s += np.sin(a[i])
        return s, a

    d, a = plain(gradient(f, has_aux=True).source(F8))(1.3)
    np.testing.assert_array_equal(a, f(1.3)[1])
    assert d == pytest.approx(differences(lambda x: f(x)[0], 1.3).item(), rel=1e-8)


def test_the_second_may_be_an_argument_or_active_itself():
    def f(a, x):
        y = a * x
        return y.sum() * x, (y, a.T, Best(a, "b"))

    (da, dx), (y, transposed, best) = gradient(f, has_aux=True)(np.ones((2, 3)), 2.0)
    np.testing.assert_array_equal(da, np.full((2, 3), 4.0))
    assert dx == 24.0
    np.testing.assert_array_equal(y, np.full((2, 3), 2.0))
    assert transposed.shape == (3, 2)
    assert best.name == "b"


def test_captured_variables_and_any_number_of_arguments():
    c = 2.0

    def f(x):
        return x * c, x

    grads, aux = gradient(f, closure=True, has_aux=True)(3.0)
    assert (grads[0], grads[1].c, aux) == (2.0, 3.0, 3.0)
    total = gradient(lambda *a: (a[0] * a[1], a[0]), has_aux=True)
    assert plain(total.source("f64, f64"))(3.0, 4.0) == ((4.0, 3.0), 3.0)


def test_nested():
    cube = gradient(lambda x: (x**3, x), has_aux=True)
    assert plain(gradient(cube, has_aux=True).source(F8))(2.0) == (12.0, 2.0)
    assert (
        plain(gradient(lambda x: cube(x)[0] + cube(x)[1]).source(F8))(2.0) == 13.0
    )  # the second is a result of `cube`


def test_matrices():
    def f(x, k):
        return x[0] ** 2 * x[1] * k, (x * 2.0, k)

    h, (doubled, k) = plain(zg.hessian(f, has_aux=True).source(X[:2], 3.0))(np.array([1.0, 2.0]), 3.0)
    np.testing.assert_allclose(h, [[12.0, 6.0], [6.0, 0.0]])
    np.testing.assert_array_equal(doubled, [2.0, 4.0])
    assert k == 3.0
    j, text = plain(zg.jacobian(lambda x: (x * x[0], "t"), has_aux=True).source(X))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(j, [[2.0, 0.0], [2.0, 1.0]])
    assert text == "t"
    with pytest.raises(DifferentiationError, match="`has_aux=True` with `sparsity`"):
        zg.hessian(f, sparsity="detect", has_aux=True)


def test_it_is_part_of_what_the_function_is():
    df = gradient(branches, has_aux=True)
    assert repr(df) == "<gradient of branches, has_aux=True>"
    again = pickle.loads(pickle.dumps(df))
    assert repr(again) == repr(df)
    assert again.form == df.form != gradient(branches).form
    decorated = gradient(has_aux=True)(branches)
    assert decorated.source(F8) == df.source(F8)
    assert value_and_gradient(wrt="w", has_aux=True)(loss).form.has_aux


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: x * x, "is of type float64"),
        (lambda x: (x,), "is a tuple of 1 items"),
        (lambda x: (x, x, x), "is a tuple of 3 items"),
        (lambda x: np.array([x, x]), "is of type array"),
    ],
)
def test_a_function_that_returns_no_pair(f, said):
    for of in (gradient, value_and_gradient, zg.hessian, zg.jacobian):
        with pytest.raises(DifferentiationError, match=f"has to return a pair, and its result {said}"):
            of(f, has_aux=True).source(F8)


def test_the_loss_has_to_be_a_number():
    with pytest.raises(DifferentiationError, match="not a real number"):
        gradient(lambda x: (np.array([x]), x), has_aux=True).source(F8)
    with pytest.raises(DifferentiationError, match=r"with `has_aux=True` a pair"):
        gradient(lambda x: (x, x)).source(F8)
