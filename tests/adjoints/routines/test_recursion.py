"""Functions that call themselves, or each other: to a depth that the data decide, with numbers and arrays."""

import math

import numba
import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from tests.checking.reference import central
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient, hvp, jvp, value_and_gradient

pytestmark = pytest.mark.interpreted


def fact(n):
    return n * fact(n - 1) if n > 1 else 1.0


def even(n, x):
    if n == 0:
        return x
    return odd(n - 1, x * math.sin(x))


def odd(n, x):
    if n == 0:
        return -x
    return even(n - 1, x * x + 1)


def ack(m, n, x):
    if m == 0:
        return x * n + 1.0
    if n == 0:
        return ack(m - 1, 1, x)
    return ack(m - 1, min(n - 1, 2), math.sin(ack(m, n - 1, x)))


def tree_sum(left, right, val, w, i):
    if i < 0:
        return 0.0
    le = tree_sum(left, right, val, w, left[i])
    r = tree_sum(left, right, val, w, right[i])
    return math.tanh(w[0] * le + w[1] * r + val[i])


def tree_rnn(left, right, emb, W, b, i):
    if left[i] < 0:
        return np.tanh(W @ emb[i] + b)
    le = tree_rnn(left, right, emb, W, b, left[i])
    r = tree_rnn(left, right, emb, W, b, right[i])
    return np.tanh(W @ (le * r + le) + b)


def tree_loss(left, right, emb, W, b):
    h = tree_rnn(left, right, emb, W, b, 0)
    return np.sum(h * h)


def fill(x, out, lo, hi):
    if hi - lo == 1:
        out[lo] = x[lo] * x[lo]
        return
    mid = (lo + hi) // 2
    fill(x, out, lo, mid)
    fill(x, out, mid, hi)
    out[lo] += out[hi - 1] * x[mid]


def fill_loss(x):
    out = np.zeros_like(x)
    fill(x, out, 0, len(x))
    s = 0.0
    for i in range(len(x)):
        s += out[i] * (i + 1)
    return s


def msum(x, lo, hi):
    if hi - lo == 0:
        return 0.0
    if hi - lo == 1:
        return x[lo] * x[lo]
    mid = (lo + hi) // 2
    return msum(x, lo, mid) * 1.5 + math.sin(msum(x, mid, hi))


def msum_loss(x):
    return msum(x, 0, len(x))


def loop_rec(x, n):
    s = 0.0
    for i in range(n):
        s += x * loop_rec(x * 0.9 + i, n - 1) + math.sin(x)
    return s + 1.0


def two(x, n):
    if n == 0:
        return x, x * x
    a, b = two(x * 1.1, n - 1)
    return a * b, math.sin(a) + b


def two_loss(x, n):
    a, b = two(x, n)
    return a + 2 * b


def slices(x):
    if len(x) == 0:
        return 1.0
    return x[0] * slices(x[1:]) + math.sin(x[-1])


def reversed_rows(x, n, a):
    if n == 0:
        return x
    y = reversed_rows(x * a[::-1, :].sum(), n - 1, a)
    if x > 0.1:
        for row in a:
            row[:] += x * row[::-1]
    return y * a[0, 1]


def reversed_loss(x, a):
    return reversed_rows(x, 2, a.copy())


def inplace(x, k):
    if k == 0:
        return
    for i in range(len(x)):
        x[i] = math.sin(x[i]) * x[i]
    inplace(x, k - 1)
    for i in range(len(x)):
        x[i] *= 1.5


def inplace_loss(x, k):
    y = x.copy()
    inplace(y, k)
    return np.sum(y * x)


SCALE = 0.7


def cap(x, n):
    return x if n == 0 else SCALE * cap(x * math.cos(x), n - 1)


def newton(x, a, n):
    if n == 0:
        return x
    y = x - (x * x - a) / (2 * x)
    if abs(y - x) < 1e-9:
        return y
    return newton(y, a, n - 1)


def grow(x, n):
    if n == 0:
        return x * 1.0
    y = grow(x, n - 1)
    y[0] *= 2.0
    y[1] += y[0] * x[1]
    return y


def grow_loss(x, n):
    return np.sum(grow(x, n) ** 2)


def view_rec(x):
    n = len(x)
    if n == 1:
        x[0] *= x[0]
        return
    view_rec(x[: n // 2])
    view_rec(x[n // 2 :])
    x[0] += x[n - 1] * x[n // 2]


def view_loss(x):
    y = x * 1.0
    view_rec(y)
    return y[0]


def ident(x, n):
    if n == 0:
        return x
    return ident(x, n - 1)


def ident_loss(x, n):
    y = ident(x * 2.0, n)
    y[0] *= 3.0
    return y[0] * y[1] + x[0]


def any_order(a, n):
    if n == 0:
        return a, 1.0
    if n == 1:
        return a.T, 2.0
    b, weight = any_order(a * a, n - 1)
    return b, 3.0 * weight


def any_order_loss(a):
    """The first item of the tuples is in C order at one return, and in no known order at the others."""
    b, u = any_order(a, 0)
    c, v = any_order(a, 2)
    return b[0, 1] * u + c[0, 1] * v


LEFT = np.array([1, 3, -1, -1, 5, -1, -1])
RIGHT = np.array([2, 4, -1, -1, 6, -1, -1])


BY_ROUTES = {"routes": ("source", "call"), "value": "exact"}


def normal(*shape):
    return np.random.default_rng(7).normal(size=shape)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (fact, (5.5,)),
        (even, (4, 0.7)),
        (even, (5, 0.7)),
        (ack, (2, 2, 0.3)),
        (tree_sum, (LEFT, RIGHT, normal(7), np.array([0.5, -0.3]), 0)),
        (fill_loss, (normal(6),)),
        (msum_loss, (normal(7),)),
        (loop_rec, (0.3, 3)),
        (two_loss, (0.4, 3)),
        (slices, (normal(4),)),
        (reversed_loss, (0.7, 0.3 + normal(2, 2) ** 2)),
        (inplace_loss, (normal(3), 3)),
        (newton, (3.0, 2.0, 20)),
        (grow_loss, (normal(3), 3)),
        (view_loss, (normal(5),)),
        (ident_loss, (normal(2), 3)),
        (any_order_loss, (normal(2, 2),)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_recursive(function, args):
    check_derivatives(function, *args, **BY_ROUTES)


def test_matrices_in_a_tree():
    check_derivatives(tree_loss, LEFT, RIGHT, normal(7, 2), normal(2, 2), normal(2), **BY_ROUTES)


def test_a_function_that_never_ends_is_refused():
    def forever(x):
        return forever(x + 1.0)

    with pytest.raises(DifferentiationError, match="no path in it returns"):
        gradient(forever)(1.0)


def test_what_it_captures_is_read_at_each_call(monkeypatch):
    df = gradient(cap, wrt="x")
    for scale in (0.7, -1.3):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert df(0.4, 3) == pytest.approx(central(lambda x: cap(x, 3), 0.4).gradients[0], rel=1e-8)


def test_it_is_called_from_compiled_code():
    df = gradient(even, wrt="x")

    @numba.njit
    def twice(x):
        return df(4, x) + df(5, x)

    expected = sum(central(lambda x, n=n: even(n, x), 0.7).gradients[0] for n in (4, 5))
    assert twice(0.7) == pytest.approx(expected, rel=1e-8)


def chain(x, n):
    return x if n == 0 else 0.5 * math.sin(chain(x, n - 1)) + 0.9 * x


@pytest.mark.optimised
def test_a_deep_recursion():
    n = 10_000
    y, d = 0.3, 1.0
    for _ in range(n):
        y, d = 0.5 * math.sin(y) + 0.9 * 0.3, 0.5 * math.cos(y) * d + 0.9
    assert gradient(chain, wrt="x")(0.3, n) == pytest.approx(d, rel=1e-13)


@pytest.mark.compiled
def test_a_recursion_that_is_too_deep_is_refused_before_the_stack_ends():
    df = gradient(chain, wrt="x")
    with pytest.raises(RecursionError, match=r"chain calls itself more than \d+ times in turn: write it as a loop"):
        df(0.3, 10_000_000)
    assert df(0.3, 1) == pytest.approx(0.9 + 0.5 * math.cos(0.3))


def third(x, n):
    return jvp(lambda x: hvp(chain, wrt="x")(x, n, 1.0), (x,), (1.0,))[1]


def digits(n):
    return 1 if n == 0 else digits(n - 1) * 3 % 7 + 1


def above(x, n, m):
    return chain(x, m) if n == 0 else above(x * 0.999, n - 1, m) + math.sin(x)


def at_the_top(x, n, m):
    return above(x, m, m) if n == 0 else at_the_top(x * 0.999, n - 1, m) + math.sin(x)


def first_of_two(x, n):
    return x if n == 0 else second_of_two(x * 0.999, n - 1)


def second_of_two(x, n):
    return first_of_two(x + 0.001, n - 1) * x


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("df", "name", "expected"),
    [
        (gradient(chain, wrt="x", mode="forward"), "chain_pushforward", 0.9 + 0.5 * math.cos(0.3)),
        (
            lambda x, n: jvp(first_of_two, (x, 2 * n), (1.0, None))[1],
            "(first|second)_of_two_pushforward",
            0.999 * (2 * 0.999 * 0.3 + 0.001),
        ),
        (gradient(lambda x, n: x * digits(n), wrt="x"), "digits", 4.0),
        (lambda x, n: gradient(lambda x: (x * x, chain(x, n)), has_aux=True)(x)[0], "chain", 0.6),
        (lambda x, n: third(x, n), r"chain\w*_pushforward_pushforward", -0.5 * math.cos(0.3)),
    ],
    ids=["forward", "mutual", "integers", "has_aux", "third"],
)
def test_any_recursion_that_is_too_deep_is_refused_before_the_stack_ends(df, name, expected):
    with pytest.raises(RecursionError, match=rf"({name}) calls itself more than \d+ times in turn: write it as a loop"):
        df(0.3, 10_000_000)
    assert df(0.3, 1) == pytest.approx(expected)


@pytest.mark.compiled
def test_recursions_that_end_in_others_count_together():
    with pytest.raises(RecursionError, match="times in turn"):  # each of the three could do so alone
        jvp(lambda x, n: at_the_top(x, n, n), (0.3, 20_000), (1.0, None))
    assert jvp(lambda x, n: at_the_top(x, n, n), (0.3, 0), (1.0, None)) == (0.3, 1.0)


def turned_and_scaled(a, n):
    if n == 0:
        return a, 1.0
    d = a[0, 0] * a[0, 1]
    b, weight = turned_and_scaled(a, n - 1)
    if n % 2 == 1:
        return b.T, weight * d
    return b * 2.0, weight


def turned_pairs(a, n):
    if n == 0:
        return a, a.T
    both = turned_pairs(a, n - 1)
    if n == 1:
        return both[0].copy(), both[1] * a
    return (both[0] * both[1]).T, both[1]


@pytest.mark.compiled
def test_what_is_returned_is_known_better_once_a_function_that_calls_itself_is_typed():
    """Its first return tells of a contiguous array, which those of the later ones are not."""

    def scaled(a):
        b, weight = turned_and_scaled(a, 3)
        return b[0, 1] * weight

    def paired(a):
        b, c = turned_pairs(a, 2)
        return np.sum(b * c * np.array([[1.0, 2.0], [3.0, 5.0]]))

    a = np.array([[0.3, 0.7], [1.1, 0.4]])
    for f in (scaled, paired):
        value, found = value_and_gradient(f)(a)
        np.testing.assert_allclose(value, f(a), rtol=1e-14)
        np.testing.assert_allclose(found, central(f, a).gradients[0], rtol=1e-7, atol=1e-9)


WEIGHTS = np.linspace(0.5, 2.0, 6)


def walked(a, t, n):
    if n < 0:
        return t * a[0]
    s = 0.0
    for i in range(n):
        s += a[i] * t * a[i + 1]
    return s * a[n] + walked(a, s, n - 2)


def walked_rows(a, t, n):
    if n < 0:
        return t * a[0, 0]
    s = 0.0
    for i in range(n):
        s += a[i, 0] * t * a[i + 1, 1]
    return s * a[n, 1] + walked_rows(a, s, n - 2)


def turned(a, x, n):
    if n == 0:
        return np.sum(x * a[0])
    return turned(a.T, x * a[0], n - 1) + a[0, 0] * x[0] ** 2


@pytest.mark.compiled
def test_views_of_arrays_that_are_not_written_to():
    a, x = np.arange(1.0, 5.0).reshape(2, 2), np.array([0.5, 2.0])
    read_only = a.copy()
    read_only.flags.writeable = False
    found = gradient(turned, wrt=("a", "x"))(read_only, x, 2)
    for number, expected in enumerate(gradient(turned, wrt=("a", "x"))(a, x, 2)):
        np.testing.assert_array_equal(found[number], expected)
    h = 1e-6
    step = np.array([[0.0, h], [0.0, 0.0]])
    assert found[0][0, 1] == pytest.approx((turned(a + step, x, 2) - turned(a - step, x, 2)) / (2 * h), rel=1e-7)


def by_constants(x):
    return walked(WEIGHTS, x, 4)


ROWS = np.linspace(0.5, 2.0, 12).reshape(6, 2)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("function", "array"),
    one_in(
        2,
        [
            (walked, np.repeat(WEIGHTS, 2)[::2]),
            (walked, WEIGHTS),
            (walked_rows, np.asfortranarray(ROWS)),
            (walked_rows, ROWS),
            (walked_rows, np.repeat(ROWS, 2, axis=0)[::2]),
        ],
    ),
)
def test_arrays_that_are_not_written_to(function, array):
    read_only = array.view()
    read_only.flags.writeable = False
    found = gradient(function, wrt="a")
    np.testing.assert_array_equal(found(read_only, 1.5, 4), found(array, 1.5, 4))
    scope: dict[str, object] = {}
    exec(found.source(read_only, 1.5, 4), scope)
    np.testing.assert_array_equal(scope[f"{function.__name__}_gradient"](read_only, 1.5, 4), found(array, 1.5, 4))


@pytest.mark.compiled
def test_an_array_that_is_a_constant():
    assert gradient(by_constants)(1.5) == pytest.approx(by_constants(1.5) / 1.5)  # each term has one factor of x


def exchanged(a, b, n):
    if n == 0:
        return a
    for i in range(len(a)):
        a[i] = 0.5 * a[i] ** 2 + 0.4 * b[i]
    return exchanged(b, a, n - 1)


def a_column_and_a_copy(x):
    m = np.zeros((3, len(x)))
    m[0] = x
    return np.sum(exchanged(m.T[:, 0], x.copy(), 3))


@pytest.mark.compiled
def test_a_column_of_a_matrix_and_another_array_take_turns():
    x = np.linspace(0.1, 1.0, 5)
    value, found = value_and_gradient(a_column_and_a_copy)(x)
    assert value == pytest.approx(a_column_and_a_copy(x), rel=1e-14)
    np.testing.assert_allclose(found, central(a_column_and_a_copy, x).gradients[0], rtol=1e-7)


@pytest.mark.compiled
def test_a_column_that_is_not_written_to():
    column = np.asfortranarray(np.stack([WEIGHTS, WEIGHTS], axis=1))[:, 0]
    column.flags.writeable = False
    found = gradient(walked, wrt="a")
    np.testing.assert_array_equal(found(column, 1.5, 4), found(WEIGHTS, 1.5, 4))
