"""Shadows that begin as the first contribution to them, and those that must begin as zeros."""

import numpy as np
import pytest

from tests.checking.left_out import check_not_made
from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py import gradient, hessian, jvp

pytestmark = pytest.mark.interpreted

N = 3
A = np.random.default_rng(5).normal(size=(N, N))
W = np.random.default_rng(6).normal(size=(N, N))


def chain(a):
    b = a @ W
    c = b @ a
    return np.sum((c @ W) ** 2)


def both_factors(a):
    """One array is both factors: two contributions from one operation."""
    b = a @ W
    return np.sum(b @ b)


def in_rounds(a):
    p = a @ W
    for _ in range(3):
        q = p @ a
        p = q @ W
    return np.sum(p * p)


def used_in_a_loop(a):
    """The loop contributes several times to one array."""
    b = a @ W
    s = 0.0
    for k in range(N):
        s += np.sum((b @ a[k]) ** 2)
    return s


def used_before_a_loop(a):
    """The first contribution comes from a loop, the last from before it."""
    b = a @ W
    c = b @ a
    s = np.sum(c @ W)
    for k in range(N):
        s += np.sum(b @ a[k])
    return s


def in_one_branch(a):
    b = a @ W
    c = b @ a if b[0, 0] > 0.0 else b + a
    return np.sum(c**2) + np.sum(b @ W)


def in_both_branches(a):
    b = a @ W
    c = b @ a if b[0, 0] > 0.0 else a @ b
    return np.sum(c**2)


def transposed(a):
    """The view of an array adds to its shadow as well."""
    b = a @ W
    c = b.T @ a
    return np.sum(c @ b)


def element_first(a):
    """Elements add to the shadow before the product does."""
    b = a @ W
    c = b @ a
    return np.sum(c) + b[0, 1] ** 2


def element_last(a):
    """Elements add to the shadow after the product has."""
    b = a @ W
    s = b[0, 1] ** 2 * b[2, 2]
    return s + np.sum(b @ a)


def written_to(a):
    b = a @ W
    c = b @ a
    b[1, 1] = a[0, 0] * 2.0
    return np.sum(c) + np.sum(b @ W)


def kept_in_a_list(a):
    made = []
    for _ in range(3):
        made.append(a @ W)
    s = 0.0
    for each in made:
        s += np.sum(each @ a)
    return s


def handed_on(a):
    b = a @ W
    c = b
    for _ in range(2):
        c = c @ a
    return np.sum(c @ b)


def of_a_row(a):
    """A row and a column, which broadcast."""
    u = a[0] @ W
    b = np.ones((N, 1)) * u
    return np.sum(b @ a) + np.sum(u @ a)


def not_used(a):
    b = a @ W
    c = b @ a  # noqa: F841
    return np.sum(a)


def decompositions(a):
    s = a @ a.T + np.eye(N)
    x = np.linalg.inv(s) @ a
    _, logarithm = np.linalg.slogdet(s)
    return logarithm + np.sum(x * W) + np.linalg.det(s @ W @ W.T)


def recursive(a, n):
    b = a @ W
    if n == 0:
        return np.sum(b @ a)
    return recursive(b, n - 1) + np.sum(b)


def from_recursion(a):
    return recursive(a, 2)


PROGRAMS = (
    *(chain, both_factors, in_rounds, used_in_a_loop, used_before_a_loop, in_one_branch, in_both_branches),
    *(transposed, element_first, element_last, written_to, kept_in_a_list, handed_on, of_a_row, not_used),
    *(decompositions, from_recursion),
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["plus", "minus"])
def test_gradient(program, sign):
    a = sign * A
    np.testing.assert_allclose(gradient(program)(a).ravel(), *differences(program, a), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("program", [chain, in_rounds, element_first], ids=lambda each: each.__name__)
def test_hessian(program):
    found = hessian(program)(A).reshape(N * N, N * N)
    df = gradient(program)
    expected = np.concatenate([differences(lambda a, k=k: df(a).flat[k], A) for k in range(N * N)])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_products_make_no_zeros():
    source = gradient(chain).source(A).partition("def chain_gradient")[2]
    assert source.count("np.zeros(") == 0
    assert "dc = dot_left(" in source


def test_lengths_of_products_are_not_recorded():
    source = gradient(in_rounds).source(A).partition("def in_rounds_gradient")[2]
    assert "_record" not in source


@pytest.mark.parametrize("program", [used_in_a_loop, in_one_branch, in_both_branches], ids=lambda each: each.__name__)
def test_what_comes_several_times_or_not_always_is_added(program):
    assert "db += " in gradient(program).source(A) or "db, " in gradient(program).source(A)


def linear_in_both(a, b):
    """The product is not computed, since no adjoint needs its elements."""
    c = a * 2.0
    return np.sum(c @ b)


def linear_in_a_chain(a, b):
    c = a * 2.0
    return np.sum((c @ b) @ b.T)


def of_vectors(a, b):
    return np.sum((a[0] * 1.0) @ b) + np.dot(a[1], b[:, 0])


@pytest.mark.parametrize("program", [linear_in_both, linear_in_a_chain, of_vectors], ids=lambda each: each.__name__)
def test_factors_that_do_not_fit_are_refused_though_nothing_is_multiplied(program):
    df = gradient(program)
    fitting = np.ones((2, 3)), np.ones((3, 4))
    da, db = df(*fitting)
    assert da.shape == (2, 3)
    assert db.shape == (3, 4)
    for shape in ((4, 3), (2, 4), (5, 4)):
        with pytest.raises(ValueError, match=r"incompatible array sizes|mismatch"):
            df(np.ones((2, 3)), np.ones(shape))
    np.testing.assert_array_equal(df(*fitting)[0], da)


def of_sines(a, b):
    return np.sum(np.sin(np.sin(a) @ np.sin(b)))


@pytest.mark.compiled
@pytest.mark.parametrize("shape", [(3, 2), (300, 2)], ids=str)
def test_factors_without_elements_must_fit(shape):
    """Numba's product compares nothing if the first factor has no columns."""
    df = gradient(of_sines)
    da, db = df(np.ones((2, 0)), np.ones((0, 4)))
    assert (da.shape, db.shape) == ((2, 0), (0, 4))
    arguments = np.ones((2, 0)), np.ones(shape)
    with pytest.raises(ValueError, match="incompatible array sizes"):
        df(*arguments)
    with pytest.raises(ValueError, match="incompatible array sizes"):
        jvp(of_sines, arguments, arguments)


def test_lengths_that_are_equal_are_not_compared():
    def f(a):
        b = a @ a.T
        return np.sum((b @ b) ** 2) + np.dot(a[0], np.sin(a[0]))

    assert "check_lengths" not in gradient(f).source(A)


def of_elements_first(a):
    """A sum over elements adds to the shadow before the product."""
    b = a @ W
    return np.sum(b @ a) + np.sum(np.sin(b))


def of_a_parameter(a, b):
    """The shadows are results, which stay zeros if there is no product."""
    return np.sum(np.sin(a @ b)) if a[0, 0] < 9.0 else 0.0


def of_a_part(a):
    """The product is added to a part of the shadow."""
    b = np.sin(a)
    return np.sum(np.sin(b[:2] @ W))


def in_each_round_of_a_loop(a):
    """The array is made before the loop that contributes."""
    b = np.sin(a)
    s = 0.0
    for k in range(2):
        s += np.sum(np.sin(b @ W * k))
    return s


def in_one_of_two_ways(a):
    b = np.sin(a)
    return np.sum(np.sin(b @ W)) if a[0, 0] > 0.0 else np.sum(b[0])


ZEROS = [element_first, kept_in_a_list, from_recursion]
ZEROS += [of_elements_first, of_a_part, in_each_round_of_a_loop]
ZEROS += [in_one_of_two_ways]


@pytest.mark.parametrize("program", one_in(3, ZEROS), ids=lambda each: each.__name__)
def test_shadows_that_begin_as_zeros(program):
    check_not_made("first-contributions", program, A)


def test_shadows_that_are_results():
    check_not_made("first-contributions", of_a_parameter, A, W)
