"""Objectives for SciPy, against SciPy itself.

References are SciPy's own derivatives of Rosenbrock's function, hand-written derivatives, and finite differences.
Functions that return vectors are in `tests/api/test_scipy_vectors.py`.
"""

from __future__ import annotations

import doctest
import math
import os
import pickle
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import cloudpickle
import numpy as np
import pytest
import scipy.optimize as optimize
from numba import njit

import zygote_py as zg
from tests.checking.reference import central
from zygote_py.runtime import Layout

pytestmark = pytest.mark.interpreted


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


class Line(NamedTuple):
    slope: float
    weights: np.ndarray
    power: int


@dataclass(frozen=True)
class Model:
    line: Line
    shift: np.ndarray
    scales: tuple[float, np.ndarray]
    name: str


def start() -> Model:
    weights = np.asfortranarray(np.arange(1.0, 7.0).reshape(2, 3))
    return Model(Line(1.5, weights, 3), np.array(0.5), (2.0, np.array([1.0, -1.0])), "model")


def cost(model, data):
    line = model.line
    total = line.slope**line.power * model.scales[0]
    for i in range(2):
        for j in range(3):
            total += line.weights[i, j] ** 2 * data[i, j] * model.scales[1][i]
    return total + model.shift[()] ** 4 * line.slope


DATA = np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 0.25]])


def cost_of(x):
    """The same, of the vector: slope, weights by rows, shift, scales."""
    total = x[0] ** 3 * x[8] + x[7] ** 4 * x[0]
    for i in range(2):
        for j in range(3):
            total += x[1 + 3 * i + j] ** 2 * DATA[i, j] * x[9 + i]
    return total


def hessian_of_cost(x):
    h = np.zeros((11, 11))
    h[0, 0], h[0, 8], h[0, 7], h[7, 7] = 6 * x[0] * x[8], 3 * x[0] ** 2, 4 * x[7] ** 3, 12 * x[7] ** 2 * x[0]
    for i in range(2):
        for j in range(3):
            k = 1 + 3 * i + j
            h[k, k], h[k, 9 + i] = 2 * DATA[i, j] * x[9 + i], 2 * x[k] * DATA[i, j]
    return h + np.triu(h, 1).T


ROSENBROCK = zg.scipy_objective(rosenbrock)
COST = zg.scipy_objective(cost, start())


# Objectives


@pytest.mark.parametrize("n", [2, 5, 13])
def test_derivatives_of_rosenbrock(n):
    x, p = np.random.default_rng(n).normal(size=(2, n))
    value, gradient = ROSENBROCK(x)
    assert type(value) is float
    assert gradient.dtype == np.float64
    assert gradient.shape == (n,)
    assert value == pytest.approx(optimize.rosen(x), rel=1e-14)
    assert ROSENBROCK.fun(x) == value
    np.testing.assert_allclose(gradient, optimize.rosen_der(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(ROSENBROCK.jac(x), gradient)
    hessian = ROSENBROCK.hess(x)
    np.testing.assert_allclose(hessian, optimize.rosen_hess(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(hessian, hessian.T)
    np.testing.assert_allclose(ROSENBROCK.hessp(x, p), optimize.rosen_hess_prod(x, p), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("method", "second"),
    [
        ("BFGS", ""),
        ("L-BFGS-B", ""),
        ("Newton-CG", "hess"),
        ("Newton-CG", "hessp"),
        ("trust-ncg", "hess"),
        ("trust-ncg", "hessp"),
        ("trust-krylov", "hessp"),
        ("trust-exact", "hess"),
    ],
)
def test_minimize(method, second):
    x0 = np.array([1.3, 0.7, 0.8, 1.9])
    own = {"hess": optimize.rosen_hess, "hessp": optimize.rosen_hess_prod}
    theirs = {second: own[second]} if second else {}
    ours = {second: getattr(ROSENBROCK, second)} if second else {}
    expected = optimize.minimize(optimize.rosen, x0, jac=optimize.rosen_der, method=method, **theirs)
    for fun, jac in ((ROSENBROCK, True), (ROSENBROCK.fun, ROSENBROCK.jac), (ROSENBROCK.fun, True)):
        found = optimize.minimize(fun, x0, jac=jac, method=method, **ours)
        assert found.success
        np.testing.assert_allclose(found.x, np.ones(4), atol=1e-3)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
        assert found.nit == expected.nit


def test_derivatives_of_a_structure():
    x = COST.x0
    model = start()
    parts = [model.line.slope, *model.line.weights.ravel(), model.shift, model.scales[0], *model.scales[1]]
    np.testing.assert_array_equal(x, parts)
    value, gradient = COST(x, DATA)
    expected = central(cost_of, x)
    assert expected.doubt is None
    assert value == pytest.approx(expected.value, rel=1e-14)
    np.testing.assert_allclose(gradient, expected.gradients[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(COST.hess(x, DATA), hessian_of_cost(x), rtol=1e-12, atol=1e-12)
    p = np.random.default_rng(0).normal(size=11)
    np.testing.assert_allclose(COST.hessp(x, p, DATA), hessian_of_cost(x) @ p, rtol=1e-12, atol=1e-12)


def test_structures_come_back():
    back = COST.unflatten(COST.x0 + 1.0)
    assert (back.name, back.line.power, back.line.slope, back.scales[0]) == ("model", 3, 2.5, 3.0)
    assert type(back.line.slope) is float
    np.testing.assert_array_equal(back.line.weights, start().line.weights + 1.0)
    assert back.shift.shape == ()
    np.testing.assert_array_equal(COST.flatten(back), COST.x0 + 1.0)


@dataclass(frozen=True)
class Weights:
    w: np.ndarray
    b: float


def logistic_loss(weights, features, labels):
    total = 0.0
    for i in range(len(labels)):
        total += np.log1p(np.exp(-labels[i] * (features[i] @ weights.w + weights.b)))
    return total + 0.05 * (weights.w @ weights.w)


def logistic_data():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 3))
    labels = np.sign(features @ np.array([1.0, -2.0, 0.5]) + 0.3 + rng.logistic(size=60))
    return features, labels


def logistic_optimum(features, labels):
    """Newton's method with hand-written derivatives: w, then b."""
    x = np.zeros(4)
    rows = np.column_stack([features, np.ones(60)])
    ridge = np.diag([0.1, 0.1, 0.1, 0.0])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(labels * (rows @ x)))
        hessian = rows.T @ (rows * (p * (1.0 - p))[:, None]) + ridge
        x -= np.linalg.solve(hessian, rows.T @ (-labels * p) + ridge @ x)
    return x


@pytest.mark.parametrize("how", ["args", "captured", "constants"])
def test_logistic_regression(how):
    features, labels = logistic_data()
    weights = Weights(np.zeros(3), 0.0)
    args = ()
    if how == "args":
        objective, args = zg.scipy_objective(logistic_loss, weights), (features, labels)
    elif how == "captured":
        compiled = njit(logistic_loss)
        objective = zg.scipy_objective(lambda weights: compiled(weights, features, labels), weights)
    else:
        data = {"features": features, "labels": labels}
        objective = zg.scipy_objective(logistic_loss, weights, wrt="weights", constants=data)
    expected = logistic_optimum(features, labels)
    methods = [("trust-exact", "hess"), ("BFGS", "")] + [("trust-ncg", "hessp")] * (how == "args")
    for method, second in methods:
        more = {second: getattr(objective, second)} if second else {}
        options = {"gtol": 1e-8 if second else 1e-6}
        found = optimize.minimize(objective, objective.x0, args=args, jac=True, method=method, options=options, **more)
        assert found.success
        np.testing.assert_allclose(found.x, expected, atol=1e-6)
        back = objective.unflatten(found.x)
        np.testing.assert_allclose([*back.w, back.b], expected, atol=1e-6)


def loss_of_two(data, a, b, power=2):
    return a**power + np.sum(b**2 * data)


@pytest.mark.compiled
def test_several_parameters():
    objective = zg.scipy_objective(loss_of_two, (2, np.ones(3)), wrt=("a", "b"), constants={"data": np.arange(3.0)})
    x = objective.x0
    np.testing.assert_array_equal(x, [2.0, 1.0, 1.0, 1.0])
    value, gradient = objective(x)
    assert value == 7.0
    np.testing.assert_array_equal(gradient, [4.0, 0.0, 2.0, 4.0])
    np.testing.assert_array_equal(objective.jac(x, 3), [12.0, 0.0, 2.0, 4.0])
    np.testing.assert_array_equal(objective.hess(x, 3), np.diag([12.0, 0.0, 2.0, 4.0]))
    np.testing.assert_array_equal(objective.hessp(x, [1.0, 2.0, 3.0, 4.0]), [2.0, 0.0, 6.0, 16.0])
    a, b = objective.unflatten(x)
    assert a == 2.0
    np.testing.assert_array_equal(b, np.ones(3))


def test_any_number_of_arguments():
    def f(x, c, *more):
        return np.sum(x**2) * c * more[0] * more[1]

    objective = zg.scipy_objective(f, constants={"c": 2.0})
    x = np.array([1.0, 2.0])
    value, gradient = objective(x, 3.0, 0.5)
    assert value == 15.0
    np.testing.assert_array_equal(gradient, [6.0, 12.0])
    np.testing.assert_array_equal(objective.hess(x, 3.0, 0.5), 6.0 * np.eye(2))
    np.testing.assert_array_equal(objective.hessp(x, x, 3.0, 0.5), 6.0 * x)


def cube(x):
    return x[0] ** 3 + x[1] ** 3


@pytest.mark.parametrize(
    "x0", [[1, 2], [1.0, 2.0], np.array([1, 2]), np.array([1.0, 2.0]), np.array([1.0, 0.0, 2.0, 0.0])[::2]]
)
def test_vectors(x0):
    objective = zg.scipy_objective(cube, x0)
    assert objective.x0.dtype == np.float64
    for x in (x0, objective.x0):
        value, gradient = objective(x)
        assert value == 9.0
        np.testing.assert_array_equal(gradient, [3.0, 12.0])
        np.testing.assert_array_equal(objective.hess(x), [[6.0, 0.0], [0.0, 12.0]])
        np.testing.assert_array_equal(objective.hessp(x, [1, 1]), [6.0, 12.0])


def test_the_start_may_be_written_to():
    for x0 in (np.ones(2), (np.ones(2), 3)):
        objective = zg.scipy_objective(cube, x0)
        (x0 if isinstance(x0, np.ndarray) else x0[0])[:] = 5.0
        np.testing.assert_array_equal(objective.x0, [1.0, 1.0])
        objective.x0[:] = 7.0
        np.testing.assert_array_equal(objective.x0, [1.0, 1.0])


@pytest.mark.compiled
def test_floats():
    objective = zg.scipy_objective(lambda x: math.cos(x), 3)
    found = optimize.minimize(objective, objective.x0, jac=True, hess=objective.hess, method="trust-exact")
    assert objective.unflatten(found.x) == pytest.approx(math.pi)
    assert objective(3)[1] == objective.jac([3.0]) == -math.sin(3)


@pytest.mark.compiled
def test_single_precision():
    pair = (np.ones(2, np.float32), np.float32(2.0))
    objective = zg.scipy_objective(lambda p: np.sum(p[0] ** 2) * p[1], pair)
    value, gradient = objective(objective.x0)
    assert (value, gradient.dtype) == (4.0, np.float64)
    np.testing.assert_array_equal(gradient, [4.0, 4.0, 2.0])
    back = objective.unflatten(objective.x0)
    assert (back[0].dtype, type(back[1])) == (np.float32, np.float32)
    np.testing.assert_array_equal(objective.hess(objective.x0), [[4.0, 0.0, 2.0], [0.0, 4.0, 2.0], [2.0, 2.0, 0.0]])


def test_nothing_is_kept_between_calls():
    weights = np.array([1.0, 2.0])
    objective = zg.scipy_objective(lambda x: np.sum(weights * x**2))
    x = np.array([1.0, 1.0])
    assert objective.fun(x) == 3.0
    weights[0] = 5.0
    value = objective.fun(x)
    np.testing.assert_array_equal(objective.jac(x), [10.0, 4.0])
    np.testing.assert_array_equal(objective.hess(x), [[10.0, 0.0], [0.0, 4.0]])
    x[1] = 3.0
    np.testing.assert_array_equal(objective.jac(x), [10.0, 12.0])
    assert objective.fun(x) == 23.0
    _, gradient = value  # at the x of that call
    np.testing.assert_array_equal(gradient, [10.0, 4.0])


def test_the_vector_is_left_as_it_was():
    def f(x, out):
        out[:] = x**2
        x[:] = 2.0 * out
        return np.sum(x * out)

    objective = zg.scipy_objective(f)
    x = np.array([2.0, 1.0])
    x.flags.writeable = False
    assert objective(x, np.zeros(2))[0] == 34.0
    np.testing.assert_array_equal(objective.jac(x, np.zeros(2)), [64.0, 8.0])
    np.testing.assert_array_equal(objective.hess(x, np.zeros(2)), [[96.0, 0.0], [0.0, 24.0]])
    np.testing.assert_array_equal(x, [2.0, 1.0])


def test_what_is_not_finite():
    value, gradient = zg.scipy_objective(lambda x: np.sum(x**2))(np.array([np.inf, np.nan, 1.0]))
    assert math.isnan(value)
    np.testing.assert_array_equal(gradient, [np.inf, np.nan, 2.0])
    assert zg.scipy_objective(lambda x: np.sum(x**2)).fun(np.array([-np.inf, 1.0])) == np.inf


def test_pickles():
    again = pickle.loads(pickle.dumps(COST))
    np.testing.assert_array_equal(again.jac(COST.x0, DATA), COST.jac(COST.x0, DATA))
    scale = 3.0
    for made in (zg.scipy_objective(lambda x: scale * np.sum(x**2)), zg.scipy_residuals(lambda x: scale * x)):
        copy = pickle.loads(cloudpickle.dumps(made))
        np.testing.assert_array_equal(copy.jac(np.ones(2)), made.jac(np.ones(2)))
    ode = pickle.loads(cloudpickle.dumps(zg.scipy_ode(lambda t, y: -scale * y, (1.0, 2.0))))
    np.testing.assert_array_equal(ode.y0, [1.0, 2.0])
    assert type(pickle.loads(pickle.dumps(COST.fun(COST.x0, DATA)))) is float


# What is refused


def vector(x):
    return 2.0 * x


def pair(model):
    return model.shift[()], model.scales[0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: zg.scipy_objective(vector)(np.ones(2)), "not a real number"),
        (lambda: zg.scipy_objective(vector).fun(np.ones(2)), "not a real number"),
        (lambda: zg.scipy_objective(vector).hess(np.ones(2)), "real number"),
        (lambda: zg.scipy_objective(pair, start())(np.ones(11)), "not a real number"),
        (lambda: zg.scipy_objective(lambda x: x[0] * 1j)(np.ones(2)), "complex"),
        (lambda: zg.scipy_objective(cube)(np.ones(2) * 1j), "`x` is complex"),
        (lambda: zg.scipy_objective(cube).hessp(np.ones(2), [1j, 0.0]), "`p` is complex"),
        (lambda: zg.scipy_objective(cube).hessp(np.ones(2), np.ones(3)), r"`p` has the shape \(3,\), not \(2,\)"),
        (lambda: zg.scipy_objective(cube)(np.ones((2, 1))), r"the shape \(2, 1\), not \(2,\)"),
        (lambda: zg.scipy_objective(cube, [1.0, 2.0])(np.ones(3)), r"the shape \(3,\), not \(2,\)"),
        (lambda: zg.scipy_objective(cube)(np.ones(2), 1.0), "1 arguments too many"),
        (lambda: zg.scipy_objective(cost)(np.ones(2)), "`data` is missing"),
        (lambda: zg.scipy_objective(cube, (1.0, (2j, 1.0))), r"`x0\[1\]\[0\]` is complex"),
        (lambda: zg.scipy_objective(cube, Line(1.0, np.ones(2) * 1j, 1)), r"`x0\.weights` is complex"),
        (lambda: zg.scipy_objective(cube, [1.0, 2j]), "`x0` is complex"),
        (lambda: zg.scipy_objective(cube, (1.0, [2.0])), r"`x0\[1\]` is of type list"),
        (lambda: zg.scipy_objective(cube, {"a": 1.0}), "`x0` is of type dict"),
        (lambda: zg.scipy_objective(cube, (1, 2)), "`x0` holds no floats"),
        (lambda: zg.scipy_objective(cube, wrt="y"), "`y` is not a parameter"),
        (lambda: zg.scipy_objective(cube, wrt=1), "`1` is not a parameter"),
        (lambda: zg.scipy_objective(cost, wrt=(0, 1)), "names 2 parameters"),
        (lambda: zg.scipy_objective(cube, constants={"c": 1.0}), "`c` is not a parameter"),
        (lambda: zg.scipy_objective(cube, constants={"x": 1.0}), "named twice"),
        (lambda: COST.flatten((1.0, 2.0)), "is not of the form of Model"),
        (lambda: COST.flatten(Model(Line(1.0, np.ones(6), 3), np.array(0.5), (2.0, np.ones(2)), "")), r"shape \(6,\)"),
    ],
)
def test_refused(wrong, message):
    with pytest.raises(zg.DifferentiationError, match=message) as caught:
        wrong()
    assert caught.value.file == __file__
    assert caught.value.hint


def test_refused_without_a_place():
    with pytest.raises(zg.DifferentiationError, match="is not a Python function"):
        zg.scipy_objective(np.sin)
    with pytest.raises(AttributeError, match="made without values to start from"):
        ROSENBROCK.x0  # noqa: B018


def test_after_an_error():
    objective = zg.scipy_objective(cube)
    for wrong in (np.ones(3) * 1j, np.ones((2, 2))):
        with pytest.raises(zg.DifferentiationError):
            objective(wrong)
    np.testing.assert_array_equal(objective.jac(np.ones(2)), [3.0, 3.0])


# Vectors and structures


def test_layouts():
    layout = Layout(start())
    assert layout.size == 11
    x = np.random.default_rng(3).normal(size=11)
    np.testing.assert_array_equal(layout.flatten(layout.unflatten(x)), x)
    with pytest.raises(zg.DifferentiationError, match="is not of the form of Model"):
        layout.flatten(start().line)


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_plain_python():
    out = run(
        """
        import numpy as np
        import zygote_py as zg

        objective = zg.scipy_objective(lambda p: p[0] ** 3 * np.sum(p[1]), (2.0, np.ones(2)))
        x = objective.x0
        print(objective.fun(x), *objective.jac(x), *objective.hess(x).ravel(), *objective.hessp(x, x))
        residuals = zg.scipy_residuals(lambda x: [x[0] * x[1], x[1] ** 2])
        x = np.array([2.0, 3.0])
        print(*residuals(x), *residuals.jac(x).ravel(), *residuals.hess(x, np.ones(2)).ravel())
        """,
        NUMBA_DISABLE_JIT="1",
    )
    first, second = ([float(word) for word in line.split()] for line in out.splitlines())
    assert first == [16.0, 24.0, 8.0, 8.0, 24.0, 12.0, 12.0, 12.0, 0.0, 0.0, 12.0, 0.0, 0.0, 72.0, 24.0, 24.0]
    assert second == [6.0, 9.0, 3.0, 2.0, 0.0, 6.0, 0.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("name", ["scipy_objective", "scipy_ode", "scipy_residuals", "scipy_root"])
def test_docstrings(name):
    (found,) = doctest.DocTestFinder(recurse=False).find(getattr(zg, name), name, globs={})
    assert doctest.DocTestRunner().run(found) == (0, len(found.examples))


def test_scipy_is_not_imported():
    out = run("""
        import sys
        import zygote_py as zg
        print("zygote_py.api.scipy" in sys.modules)
        zg.scipy_objective(lambda x: x, 1.0)
        print([name for name in ("scipy.optimize", "scipy.integrate") if name in sys.modules])
    """)
    assert out == "False\n[]\n"


def test_the_gradient_of_a_value_that_is_another_by_now():
    def growing(x, s):
        s[0] *= 2.0
        return np.sum(x**2) * s[0]

    objective = zg.scipy_objective(growing)
    x, s = np.array([1.0, 2.0]), np.ones(1)
    value = objective.fun(x, s)
    assert value == 10.0
    with pytest.raises(ValueError, match="where it gave 10"):
        value[1]
    value, gradient = objective(x, np.ones(1))
    assert value == 10.0
    np.testing.assert_array_equal(gradient, [4.0, 8.0])
    value = zg.scipy_objective(lambda x: np.sum(x) * np.nan).fun(x)
    assert np.isnan(value[1]).all()
