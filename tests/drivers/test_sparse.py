"""Sparse Jacobians and Hessians against finite differences of the function's values, and hand-written patterns."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, eye_array

import zygote_py as zg
from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py import adjoint
from zygote_py.adjoints import DifferentiationError
from zygote_py.api.sparse import SparseHessian, SparseJacobian

pytestmark = pytest.mark.interpreted

X = np.array([0.7, 1.2, 0.9, 1.4, 0.6, 1.1, 0.8])
A = np.random.default_rng(0).uniform(0.5, 1.0, (4, 7))


def second_differences(f, x, *args):
    """The Hessian by central differences of values, dense."""
    h = 1e-4
    steps = h * np.eye(x.size)
    found = np.zeros((x.size, x.size))
    for i in range(x.size):
        for j in range(x.size):
            values = [
                float(f(x + (s * steps[i] + t * steps[j]).reshape(x.shape), *args)) for s in (1, -1) for t in (1, -1)
            ]
            found[i, j] = (values[0] - values[1] - values[2] + values[3]) / (4 * h * h)
    return found


def agree(matrix: csr_array, expected: np.ndarray, entries: int | None, tolerance: float) -> None:
    assert isinstance(matrix, csr_array)
    assert matrix.shape == expected.shape
    np.testing.assert_allclose(matrix.toarray(), expected, atol=tolerance, rtol=tolerance)
    if entries is not None:
        assert matrix.nnz == entries


def check_jacobian(f, x, *args, entries=None):
    jacobian = SparseJacobian(f)
    before = x.copy()
    for _ in range(2):
        agree(jacobian(x, *args), differences(f, x, *args, wrt=(0,)), entries, 1e-8)
    np.testing.assert_array_equal(x, before)
    return jacobian


def check_hessian(f, x, *args, entries=None):
    hessian = SparseHessian(f)
    before = x.copy()
    for _ in range(2):
        found = hessian(x, *args)
        agree(found, second_differences(f, x.copy(), *args), entries, 2e-6)
        assert (found.toarray() == found.toarray().T).all()
    np.testing.assert_array_equal(x, before)
    return hessian


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


def rosenbrock_by_hand(x):
    """The second derivatives of the terms of `rosenbrock`, added up."""
    n = len(x)
    matrix = np.zeros((n, n))
    for i in range(n - 1):
        matrix[i, i] += 1200.0 * x[i] ** 2 - 400.0 * x[i + 1] + 2.0
        matrix[i + 1, i + 1] += 200.0
        matrix[i, i + 1] -= 400.0 * x[i]
        matrix[i + 1, i] -= 400.0 * x[i]
    return matrix


def branches(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 1.0:
            y[i] = x[i] * x[0]
        else:
            y[i] = np.sin(x[i - 1])
    return y


def smooth(x):
    x = x.copy()
    for _ in range(2):
        for i in range(1, len(x) - 1):
            x[i] = 0.5 * (x[i - 1] + x[i + 1]) * x[i]
    return x


def overwrite(x):
    for i in range(len(x) - 1, 0, -1):
        x[i] *= x[i - 1]
    return x * 1.0


def product(x, low, high):
    if high - low == 1:
        return x[low] ** 2
    middle = (low + high) // 2
    return product(x, low, middle) * product(x, middle, high)


def two_products(x):
    y = np.zeros(2)
    y[0] = product(x, 0, 3)
    y[1] = product(x, 3, len(x))
    return y


def pull(x, n):
    if n > 0:
        x[n] = x[n] * x[n - 1]
        pull(x, n - 1)


def pulled(x):
    y = x.copy()
    pull(y, len(y) - 1)
    return y


def lists(x):
    found = []
    for value in x:
        found.append(value * value)
    found[0] = found[1] * x[2]
    return np.array([found[i] for i in range(len(found))])


def real_parts(x):
    z = x[:-1] + 1j * x[1:]
    z.real[:] = 0.5
    return np.abs(z)


def ruled(s, n):
    return math.sin(s) * n


@adjoint(ruled)
def rule_of_ruled(s, n):
    return math.sin(s) * n, lambda d: (d * math.cos(s) * n, d * math.sin(s))


def neighbours(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = ruled(x[i], x[i - 1])
    return y


JACOBIANS = [
    (neighbours, (X,), 14),
    (branches, (X,), 10),
    (smooth, (X,), None),
    (overwrite, (X,), 13),
    (two_products, (X,), 7),
    (pulled, (X,), 13),
    (lists, (X,), 8),
    (lambda x: np.where(x > 1.0, x[::-1] ** 2, x**3), (X,), 13),
    (lambda x: np.concatenate((np.zeros(2), x[:2] ** 2)), (X,), 2),
    (lambda x: np.tanh(A @ x), (X,), 28),
    (lambda w: w @ w.T, (A[:, :3],), 12 * 7),
    (lambda w: np.sin(w).T * w[0, 1] + w.T**2, (A[:3, :3],), 17),
    (lambda x, n, w: np.roll(x, n) * w, (X, 2, X * 3.0), 7),
    (lambda x: (x[:-1] + 1j * x[1:]).real ** 2, (X,), None),
]


@pytest.mark.parametrize(("f", "args", "entries"), one_in(2, JACOBIANS))
def test_jacobians(f, args, entries):
    check_jacobian(f, *args, entries=entries)


def test_what_is_written_to_the_real_part_of_a_number_leaves_the_other():
    J = SparseJacobian(real_parts)(X).toarray()
    expected = np.zeros((6, 7))
    expected[np.arange(6), np.arange(1, 7)] = X[1:] / np.hypot(0.5, X[1:])
    np.testing.assert_allclose(J, expected, rtol=1e-14, atol=0.0)


def blocks(x):
    total = 0.0
    for k in range(0, len(x) - 1, 2):
        total += np.exp(x[k] * x[k + 1])
    return total


HESSIANS = [
    (lambda x: np.sum(x[2:] * x[:-2] ** 2) + np.exp(x[0]), (X,), 15),
    (lambda x, k: np.sum(x[0] * x**2) + np.sum(np.exp(k * x)), (X, 0.5), 19),
    (blocks, (X,), 12),
    (lambda x: np.dot(x[1:] * x[:-1], x[1:] * x[:-1]), (X,), 19),
    (lambda x: np.log(np.sum(np.exp(x))), (X,), 49),
    (lambda x: np.sum(3.0 * x), (X,), 0),
    (lambda w: np.sum(w[1:] * w[:-1]), (A[:3, :3],), 12),
    (lambda x: np.sum(branches(x)), (X,), None),
    (lambda x: np.sum(overwrite(x)), (X,), 12),
    (lambda x: np.sum(neighbours(x)), (X,), 21),
]


@pytest.mark.parametrize(("f", "args", "entries"), one_in(2, HESSIANS))
def test_hessians(f, args, entries):
    check_hessian(f, *args, entries=entries)


def test_a_recursion_has_a_hessian():
    check_hessian(lambda x: product(x, 0, 3) + x[3] ** 2 * x[4], X, entries=9 + 3)


def test_rosenbrock_of_every_size():
    hessian = SparseHessian(rosenbrock)
    for n in (0, 1, 2, 5, 40):
        x = np.linspace(-1.0, 1.0, n)
        found = hessian(x)
        np.testing.assert_allclose(found.toarray(), rosenbrock_by_hand(x), rtol=1e-13, atol=1e-12)
        assert found.nnz == (3 * n - 2 if n > 1 else 0)
    n = 100_000
    x = np.linspace(-1.0, 1.0, n)
    found = hessian(x)
    assert hessian.directions(x) == 3
    assert (found != found.T).nnz == 0
    inner = x[1:-1]
    np.testing.assert_allclose(found.diagonal()[1:-1], 1200.0 * inner**2 - 400.0 * x[2:] + 202.0, rtol=1e-12)
    np.testing.assert_allclose(found.diagonal(1), -400.0 * x[:-1], rtol=1e-13)
    assert found.nnz == 3 * n - 2


def test_the_pattern_follows_the_control_flow():
    jacobian = SparseJacobian(branches)
    for x in (X, X[::-1].copy(), np.full(7, 2.0), np.full(7, 0.5), X):
        agree(jacobian(x), differences(branches, x), None, 1e-8)
        found = jacobian.pattern(x)
        assert found.dtype == np.bool_
        assert found.toarray()[differences(branches, x) != 0.0].all()
    assert jacobian.pattern(np.full(7, 2.0)).nnz == 13
    assert jacobian.pattern(np.full(7, 0.5)).nnz == 7


def test_the_pattern_follows_captured_arrays_and_arguments():
    places = np.array([0, 1, 2])

    def taken(x, k):
        return x[places] * x[k]

    jacobian = SparseJacobian(taken)
    agree(jacobian(X, 0), differences(taken, X, 0), 5, 1e-8)
    agree(jacobian(X, 4), differences(taken, X, 4), 6, 1e-8)
    places[0] = 5
    agree(jacobian(X, 4), differences(taken, X, 4), 6, 1e-8)
    assert jacobian(X, 4)[0, 5] == X[4]


STRIDE = 1


def test_the_pattern_follows_what_decides_an_index():
    def strided(x):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = x[i] * x[(i + STRIDE) % len(x)]
        return y

    def by_value(x):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = x[int(10.0 * x[i] + 0.5) % len(x)]
        return y

    def by_argument(x, places):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = x[places[i]]
        return y

    global STRIDE
    jacobian = SparseJacobian(strided)
    for stride in (1, 3, 1):
        STRIDE = stride  # a global is a constant of what is compiled
        agree(jacobian(X), differences(strided, X), 14, 1e-8)
    jacobian = SparseJacobian(by_value)
    for x in (X, X[::-1].copy(), X):
        agree(jacobian(x), differences(by_value, x), 7, 1e-8)
    jacobian = SparseJacobian(by_argument)
    for places in (np.arange(7), np.arange(7)[::-1].copy(), np.zeros(7, np.int64)):
        agree(jacobian(X, places), np.eye(7)[places], 7, 0.0)


def test_what_numbers_do_not_decide_is_found_out_once(monkeypatch):
    hessian = SparseHessian(rosenbrock)
    x = np.linspace(-1.0, 1.0, 20)
    expected = hessian(x)
    monkeypatch.setattr(hessian, "_dependence", Refusing(hessian._dependence))
    assert (hessian(x) != expected).nnz == 0
    np.testing.assert_allclose(hessian(2.0 * x).toarray(), rosenbrock_by_hand(2.0 * x), rtol=1e-13, atol=1e-12)
    with pytest.raises(AssertionError, match="again"):
        hessian(x[1:])
    jacobian = SparseJacobian(branches)
    jacobian(X)
    monkeypatch.setattr(jacobian, "_dependence", Refusing(jacobian._dependence))
    with pytest.raises(AssertionError, match="again"):
        jacobian(X)


class Refusing:
    """Something that must not be called."""

    def __init__(self, of):
        self.circumstances = of.circumstances

    def __call__(self, *args):
        raise AssertionError("it is found out again")


def test_a_dense_row_does_not_make_the_others_dense():
    def constraints(x):
        y = np.empty(len(x))
        y[:-1] = x[1:] * x[:-1]
        y[-1] = np.sum(x**3)
        return y

    x = np.linspace(0.5, 1.5, 60)
    jacobian = SparseJacobian(constraints)
    agree(jacobian(x), differences(constraints, x), 2 * 59 + 60, 1e-8)
    assert jacobian.directions(x) == 2


def test_dense_rows_are_those_at_the_argument_though_it_is_written_to():
    def f(x, b):
        x[0] *= b[0]
        b[0] = 7.0
        y = x**2
        y[2] = np.sum(x**2)
        y[4] = np.sum(x**3)
        return y

    x, b = np.linspace(0.5, 1.5, 40), np.array([2.0])
    expected = np.diag(2.0 * x)
    expected[0, 0] *= 4.0
    expected[2] = [8.0 * x[0], *2.0 * x[1:]]
    expected[4] = [24.0 * x[0] ** 2, *3.0 * x[1:] ** 2]
    found = SparseJacobian(f)(x, b)
    assert found.nnz == 38 + 2 * 40
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-13)
    np.testing.assert_array_equal(x, np.linspace(0.5, 1.5, 40))
    assert b[0] == 2.0


def test_memory_that_arguments_share_is_refused_where_it_is_written_to():
    def f(x, y):
        y[0] = 5.0 * y[0]
        return x * x

    data = np.ones(6)
    with pytest.raises(ValueError, match="the arguments `x` and `y` share memory"):
        SparseJacobian(f)(data[::2], data)
    np.testing.assert_array_equal(SparseJacobian(f)(data[::2], data[1::2]).toarray(), 2.0 * np.eye(3))


def test_other_arguments_and_names():
    def scaled(a, x=X, b=2.0):
        return a * x[::-1] ** 2 * b

    jacobian = SparseJacobian(scaled, wrt="x")
    expected = np.fliplr(np.diag(2.0 * X[::-1] * 3.0 * 2.0))
    np.testing.assert_allclose(jacobian(3.0).toarray(), expected, rtol=1e-14)
    np.testing.assert_allclose(jacobian(a=3.0, b=1.0).toarray(), expected / 2.0, rtol=1e-14)
    np.testing.assert_allclose(SparseJacobian(scaled, wrt=1)(3.0, X[::1]).toarray(), expected, rtol=1e-14)
    np.testing.assert_allclose(SparseJacobian(scaled, wrt=np.int64(-2))(3.0).toarray(), expected, rtol=1e-14)


def test_layouts_and_precisions():
    def f(w):
        return w.T * w[0, 0]

    jacobian = SparseJacobian(f)
    for w in (A[:3, :3], np.asfortranarray(A[:3, :3]), A.T[:3, :3]):
        agree(jacobian(w), differences(f, w), None, 1e-8)
    single = jacobian(A[:3, :3].astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), differences(f, A[:3, :3]), rtol=1e-5, atol=1e-6)


# -------------------------------------------------------------------------------------------------- given patterns


def test_a_given_pattern_may_be_too_large():
    x = np.linspace(-1.0, 1.0, 30)
    five = np.abs(np.subtract.outer(np.arange(30), np.arange(30))) <= 2
    for pattern in (five, csr_array(five), five.astype(float), np.triu(five)):
        found = SparseHessian(rosenbrock, sparsity=pattern)(x)
        np.testing.assert_allclose(found.toarray(), rosenbrock_by_hand(x), rtol=1e-13, atol=1e-12)
        assert found.nnz == five.sum()
    detected = SparseHessian(rosenbrock).pattern(x)
    assert SparseHessian(rosenbrock, sparsity=detected)(x).nnz == 3 * 30 - 2


def test_a_given_pattern_that_is_too_small_is_refused():
    x = np.linspace(-1.0, 1.0, 30)
    complete = SparseHessian(rosenbrock).pattern(x).toarray()
    for missing in ((0, 1), (7, 7), (28, 29)):
        pattern = complete.copy()
        pattern[missing] = pattern[missing[::-1]] = False
        hessian = SparseHessian(rosenbrock, sparsity=pattern)
        with pytest.raises(ValueError, match="`sparsity` lacks an entry in row"):
            hessian(x)


def test_a_given_pattern_of_a_jacobian():
    shifts = eye_array(7, k=-1) + eye_array(7)
    jacobian = SparseJacobian(overwrite, sparsity=shifts)
    agree(jacobian(X), differences(overwrite, X), 13, 1e-8)
    with pytest.raises(ValueError, match="lacks an entry in row 1 "):
        SparseJacobian(overwrite, sparsity=eye_array(7))(X)
    with pytest.raises(ValueError, match="lacks an entry"):
        SparseJacobian(overwrite, sparsity=np.zeros((7, 7)))(X)
    with pytest.raises(ValueError, match="7 columns, and the argument 6 elements"):
        jacobian(X[:6])
    with pytest.raises(ValueError, match="6 rows, and the result 7"):
        SparseJacobian(overwrite, sparsity=np.ones((6, 7)))(X)
    agree(jacobian(X), differences(overwrite, X), 13, 1e-8)


def test_an_entry_that_a_branch_brings_in_is_missed_from_a_given_pattern():
    jacobian = SparseJacobian(branches, sparsity=SparseJacobian(branches).pattern(np.full(7, 0.5)))
    assert jacobian(np.full(7, 0.5)).nnz == 7
    with pytest.raises(ValueError, match="lacks an entry"):
        jacobian(np.full(7, 2.0))


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("make", "args", "message"),
    [
        (lambda: SparseJacobian(lambda x: x[0] * x[1]), (X,), "whose result is of type float64"),
        (lambda: SparseJacobian(lambda x: (x, x)), (X,), "whose result is of type"),
        (lambda: SparseHessian(lambda x: x * 2.0), (X,), "not a real number"),
        (lambda: SparseJacobian(lambda x: x * 2.0), (np.arange(3),), "an array of int64"),
        (lambda: SparseJacobian(lambda x: x * 2.0), (3.0,), "of type float"),
        (lambda: SparseJacobian(lambda x: x * 2.0, wrt=1), (X,), "argument 1 of 1"),
        (lambda: SparseJacobian(lambda x: x * 2.0, wrt=-2), (X,), "argument -2 of 1"),
        (lambda: SparseJacobian(lambda x: x * 2.0, wrt=True), (X,), "with respect to True"),
        (lambda: SparseJacobian(lambda x: x * 2.0, wrt="y"), (X,), "`y`, which is not a parameter"),
        (lambda: SparseJacobian(lambda x: x * 2.0, wrt=(0,)), (X,), "with respect to"),
        (lambda: SparseJacobian(lambda *x: x[0] * 2.0), (X,), "any number of arguments"),
    ],
)
def test_what_has_no_sparse_derivative_is_refused(make, args, message):
    with pytest.raises(DifferentiationError, match=message):
        make()(*args)


@pytest.mark.parametrize("sparsity", ["dense", np.ones(3), np.array([["a"]]), coo_array(np.ones(7))])
def test_what_is_no_pattern_is_refused(sparsity):
    with pytest.raises(ValueError, match="sparsity"):
        SparseHessian(rosenbrock, sparsity=sparsity)


def test_a_hessian_is_square():
    with pytest.raises(ValueError, match="a Hessian is square"):
        SparseHessian(rosenbrock, sparsity=np.ones((6, 7)))(X)


def test_a_failed_call_changes_nothing():
    def f(x):
        if x[0] < 0.0:
            raise ValueError("negative")
        return x * x[0]

    jacobian = SparseJacobian(f)
    expected = differences(f, X)
    agree(jacobian(X), expected, 13, 1e-8)
    with pytest.raises(ValueError, match="negative"):
        jacobian(-X)
    agree(jacobian(X), expected, 13, 1e-8)


def test_it_can_be_pickled():
    hessian = SparseHessian(rosenbrock)
    hessian(X)
    again = pickle.loads(pickle.dumps(hessian))
    np.testing.assert_array_equal(again(X).toarray(), hessian(X).toarray())
    narrow = pickle.loads(pickle.dumps(SparseHessian(rosenbrock, sparsity=np.eye(7))))
    with pytest.raises(ValueError, match="lacks an entry"):
        narrow(X)


@pytest.mark.long
def test_without_compiling():
    program = textwrap.dedent("""
        import numpy as np
        from zygote_py.api.sparse import SparseHessian, SparseJacobian
        x = np.array([1.0, 2.0, 3.0])
        print(SparseHessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))(x).toarray().tolist())
        print(SparseJacobian(lambda x: x[1:] * x[:-1])(x).toarray().tolist())
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}
    )
    assert done.returncode == 0, done.stderr
    expected = "[[4.0, 2.0, 0.0], [2.0, 6.0, 4.0], [0.0, 4.0, 0.0]]\n[[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]]\n"
    assert done.stdout == expected


def test_by_the_names_of_the_dense_ones():
    x = np.linspace(-1.0, 1.0, 12)
    found = zg.hessian(rosenbrock, sparsity="detect")(x)
    assert isinstance(found, csr_array)
    np.testing.assert_allclose(found.toarray(), zg.hessian(rosenbrock)(x), rtol=1e-13)
    banded = zg.jacobian(wrt=0, sparsity="detect")(lambda x: x[1:] * x[:-1])(x)
    np.testing.assert_allclose(banded.toarray(), zg.jacobian(lambda x: x[1:] * x[:-1])(x), rtol=1e-13)
    with pytest.raises(zg.DifferentiationError, match="mode='forward' with `sparsity`"):
        zg.jacobian(rosenbrock, mode="forward", sparsity="detect")
