"""Loops whose rounds make new arrays: of the old ones only references are kept; and loops for which that is wrong."""

import numpy as np
import pytest

from tests.checking.slopes import differences
from tests.modes import one_in
from zygote_py import gradient, hessian, pullback, value_and_gradient

pytestmark = pytest.mark.interpreted

U = np.array([0.9, -0.7, 0.4, 1.2, 0.3, 0.8])


def diffused(u, k):
    """Each round reads the array of the round before and makes one."""
    for _ in range(4):
        new = u.copy()
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.2 * k[i] * (u[i + 1] - u[i]) * (u[i] - u[i - 1])
        u = new
    return np.sum(u**2)


def two_buffers(u, k):
    u = u.copy()
    new = np.zeros_like(u)
    for _ in range(4):
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.2 * k[i] * (u[i + 1] - u[i]) * (u[i] - u[i - 1])
        u, new = new, u
    return np.sum(u**2)


def boundary_in_place(u, k):
    """Each round writes to the new array of the round before."""
    for t in range(4):
        if t > 0:
            u[0] = u[1] * u[2]
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = np.sin(u[i]) * k[i] + u[i - 1] * u[i]
        u = new
    return np.sum(u**2)


def after_the_read(u, k):
    for _ in range(3):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * u[i] * k[i]
            u[i] = 0.5
        for i in range(len(u)):
            new[i] += u[i - 1] * new[i]
        u = new
    return np.sum(u**2)


def sometimes_new(u, k):
    """An array that two rounds hold, the second of which writes to it."""
    u = u.copy()
    for t in range(5):
        new = u * k + 0.1
        for i in range(len(u)):
            new[i] += u[i] * u[i]
        if t % 2 == 0:
            u = new
        else:
            u[1] = u[2] * u[3]
    return np.sum(u**3)


def new_or_the_old_one(u, k):
    """Some rounds write to the array that they have found, and hand it on."""
    for t in range(5):
        new = u
        if t % 2 == 0:
            new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = np.sin(u[i] * u[i - 1]) * k[i] + 0.3
        u = new
    return np.sum(u**3)


def through_a_list(u, k):
    """A list hands the array of a round on to the next, which writes to it."""
    states = [u.copy()]
    for t in range(4):
        old = states[len(states) - 1]
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = old[i] * old[i - 1] * k[i]
        states[t][2] = 0.3 * new[1]
        states.append(new)
    s = 0.0
    for state in states:
        s += np.sum(state**2)
    return s


def a_view_is_handed_on(u, k):
    for _ in range(3):
        new = np.zeros(len(u) + 1)
        for i in range(len(u)):
            new[i + 1] = u[i] * u[i] * k[i]
        u = new[1:]
        new[2] += 1.5 * new[1] * new[3]
    return np.sum(u**2)


def two_rounds_ago(u, k):
    """The wave equation: each round reads the arrays of two rounds before."""
    before = u.copy()
    u = u * k
    for _ in range(4):
        new = np.zeros_like(u)
        for i in range(1, len(u) - 1):
            new[i] = 2.0 * u[i] - before[i] + 0.3 * k[i] * (u[i + 1] - 2.0 * u[i] + u[i - 1]) * u[i]
        before, u = u, new
    return np.sum(u**2) + np.sum(before**3)


def two_rounds_ago_in_place(u, k):
    before = u.copy()
    u = u * k
    for _ in range(4):
        new = np.zeros_like(u)
        for i in range(1, len(u) - 1):
            new[i] = 2.0 * u[i] * before[i] + k[i] * u[i + 1] * u[i - 1]
        before[1] = new[2] * k[0]
        before, u = u, new
    return np.sum(u**2) + np.sum(before**3)


def two_loops(u, k):
    """The outer loop begins with the same array each time, and writes to it last."""
    start = u.copy()
    s = 0.0
    for e in range(3):
        u = start
        for _ in range(e):
            new = np.zeros_like(u)
            for i in range(len(u)):
                new[i] = u[i] * u[i - 1] * k[i] + 0.1
            u = new
        s += np.sum(u**3)
        u[1] = u[0] * u[2]
        start[3] += 0.5 * start[4]
    return s


def the_first_is_written_in_the_loop(u, k):
    first = u.copy()
    u = first
    s = 0.0
    for t in range(4):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1] * k[i] + 0.1
        first[t] = new[t] * k[1]
        s += np.sum(first * k)
        u = new
    return np.sum(u**3) + s


def the_first_is_written_afterwards(u, k):
    first = u.copy()
    u = first
    for _ in range(3):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1] * k[i] + 0.1
        u = new
    first[2] = u[1] * u[1]
    return np.sum(u**3) + np.sum(first**2)


def the_last_is_written_afterwards(u, k, rounds):
    """Without a round it is the argument itself."""
    for _ in range(rounds):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1] * k[i] + 0.1
        u = new
    u[2] = u[1] * u[1]
    return np.sum(u**3)


def left_early(u, k):
    for t in range(6):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1] * k[i] + 0.3
        if np.sum(new) > 1.4 and t > 1:
            break
        u = new
    return np.sum(u**3)


def other_lengths(u, k):
    """Each round makes a shorter array."""
    for _ in range(3):
        new = np.zeros(len(u) - 1)
        for i in range(len(new)):
            new[i] = u[i] * u[i + 1] * k[i]
        u = new
    return np.sum(u**2)


def in_matrices(u, k):
    a = np.outer(u, k)
    for _ in range(3):
        new = np.empty_like(a)
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                new[i, j] = np.cos(a[i, j]) * a[j, i]
        a = new
    return np.sum(a**2)


def used_in_the_round(u, k):
    """The new array counts in its round as well."""
    s = 0.0
    for _ in range(4):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1] * k[i] + 0.1
        s += np.sum(new**3)
        new[1] = new[2] * u[3]
        u = new
    return np.sum(u**2) + s


def through_both_loops(u, k):
    """The inner loop goes on with what the outer loop's round before has ended with."""
    s = 0.0
    for e in range(3):
        for _ in range(e):
            new = np.zeros_like(u)
            for i in range(len(u)):
                new[i] = u[i] * u[i - 1] * k[i] + 0.3
            u = new
        s += np.sum(u**3) * k[e]
    return s + np.sum(u**2)


def through_both_loops_in_place(u, k):
    for e in range(3):
        for _ in range(2):
            new = np.zeros_like(u)
            for i in range(len(u)):
                new[i] = u[i] * u[i - 1] * k[i] + 0.3
            u = new
        u[e] = k[e] * u[e + 1]
    return np.sum(u**2)


def begun_anew(u, k):
    """Each round of the outer loop makes the array that the inner loop begins with."""
    s = 0.0
    for e in range(3):
        v = u * k[e]
        for _ in range(e + 1):
            new = np.zeros_like(v)
            for i in range(len(v)):
                new[i] = v[i] * v[i - 1] * k[i] + 0.3
            v = new
        for i in range(len(v)):
            s += v[i] * v[i] * v[i]
    return s


def by_the_data(u, k):
    t = 0
    while np.sum(np.abs(u)) < 30.0 and t < 20:
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] + 0.3 * u[i] * u[i - 1] * k[i] + 0.3
        u = new
        t += 1
    return np.sum(u**2) * t


def views_of_rows(u, k):
    a = np.outer(u, k)
    for _ in range(3):
        new = np.zeros_like(a)
        for i in range(a.shape[0]):
            row, above = a[i], a[i - 1]
            made = new[i]
            for j in range(a.shape[1]):
                made[j] = np.sin(row[j]) * above[j] * k[j]
        a = new
    return np.sum(a[1] ** 2) + np.sum(a[2])


def whole_arrays(u, k):
    for t in range(4):
        u = np.sin(u) * k + u[::-1] * t
    return np.sum(u**2)


def products(u, k):
    a = np.outer(k, k) * 0.3
    for _ in range(3):
        u = np.tanh(a @ u) + 0.1 * u
    return np.sum(u**2)


def in_branches(u, k):
    for t in range(4):
        if t % 2 == 0:
            new = np.zeros_like(u)
            for i in range(len(u)):
                new[i] = u[i] * u[i - 1] * k[i] + 0.3
        else:
            new = u * u * k
        u = new
    return np.sum(u**2)


def two_arrays_handed_on(u, k):
    v = k * 1.5
    for _ in range(3):
        new_u = np.zeros_like(u)
        new_v = np.zeros_like(v)
        for i in range(len(u)):
            new_u[i] = u[i] * v[i - 1] + 0.2 * k[i]
            new_v[i] = v[i] * u[i - 1] * k[i]
        u, v = new_v, new_u
    return np.sum(u**2) + np.sum(v**3)


def the_same_array_twice(u, k):
    v = u
    for _ in range(3):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * v[i - 1] * k[i] + 0.3
        u = new
        v = new
    return np.sum(u**2) + np.sum(v**3)


def kept_in_a_list(u, k):
    states = [u]
    for _ in range(3):
        new = np.zeros_like(u)
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1] * k[i] + 0.3
        states.append(new)
        u = new
    s = 0.0
    for state in states:
        s += np.sum(state**2) * k[1]
    return s + np.sum(u**3)


def after_no_round(u, k):
    return the_last_is_written_afterwards(u, k, 0)


def after_three_rounds(u, k):
    return the_last_is_written_afterwards(u, k, 3)


PROGRAMS = [
    diffused,
    two_buffers,
    boundary_in_place,
    after_the_read,
    sometimes_new,
    new_or_the_old_one,
    through_a_list,
    a_view_is_handed_on,
    two_rounds_ago,
    two_rounds_ago_in_place,
    two_loops,
    the_first_is_written_in_the_loop,
    the_first_is_written_afterwards,
    after_no_round,
    after_three_rounds,
    left_early,
    other_lengths,
    in_matrices,
    used_in_the_round,
    through_both_loops,
    through_both_loops_in_place,
    begun_anew,
    by_the_data,
    views_of_rows,
    whole_arrays,
    products,
    in_branches,
    two_arrays_handed_on,
    the_same_array_twice,
    kept_in_a_list,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    k = np.linspace(0.7, 1.3, len(U))
    expected = differences(f, U, k)[0]
    left, given = U.copy(), U.copy()
    value = f(left, k)
    found, slopes = value_and_gradient(f, wrt=(0, 1), mode="reverse")(given, k.copy())
    assert found == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(np.concatenate(slopes), expected, rtol=2e-8, atol=1e-8)
    np.testing.assert_array_equal(given, left)


@pytest.mark.parametrize(
    "f", one_in(2, [diffused, begun_anew, through_both_loops, the_first_is_written_in_the_loop, products])
)
def test_other_derivatives(f):
    k = np.linspace(0.7, 1.3, len(U))
    expected = differences(f, U, k)[0]
    value, back = pullback(f, U.copy(), k)
    assert value == pytest.approx(f(U, k), rel=1e-14)
    np.testing.assert_allclose(np.concatenate(back(1.0)), expected, rtol=2e-8, atol=1e-8)
    np.testing.assert_allclose(np.concatenate(back(2.0)), 2.0 * expected, rtol=2e-8, atol=1e-8)
    slope = gradient(f, wrt=(0, 1), mode="reverse")
    second = differences(lambda u, k: np.concatenate(slope(u, k)), U, k)
    found = hessian(f, wrt=(0, 1))(U.copy(), k)
    np.testing.assert_allclose(np.block([list(row) for row in found]), second, rtol=1e-6, atol=1e-6)


def test_shadows_are_made_by_the_reverse_sweep():
    source = gradient(diffused, wrt=(0, 1)).source(U, U)
    forward, reverse = source.split("u_stack.append(u_1)")
    assert "dnew" not in forward
    assert "dnew = du" in reverse
    assert "np.zeros(" in reverse


def test_references_are_kept_where_rounds_make_new_arrays():
    source = gradient(diffused, wrt=(0, 1)).source(U, U)
    assert "_record" not in source
    assert "u_1[" in source.partition("pop()")[2]
