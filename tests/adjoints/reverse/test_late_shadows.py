"""Shadows of arrays that are handed from round to round: which the reverse sweep makes, and which must not be late."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checking.left_out import check_not_made, is_made
from tests.modes import one_in

pytestmark = pytest.mark.interpreted

U = np.random.default_rng(5).normal(size=5)
A = np.random.default_rng(6).normal(size=(5, 3))


def handed_on(u, steps):
    for _ in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        u = new
    return np.sum(u)


def written_to_after_the_loop(u, steps):
    for _ in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        u = new
    u[1] = u[2] * u[3]
    return np.sum(u)


def begun_with_what_rounds_write_to(u, steps):
    first = u.copy()
    u = first
    for k in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        first[k] = new[2] * 0.5
        u = new
    return np.sum(u) + np.sum(first)


def begun_with_what_a_view_writes_to(u, steps):
    u = u.copy()
    tail = u[1:]
    for k in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        tail[k] = new[1]
        u = new
    return np.sum(u) + np.sum(tail)


def begun_with_what_is_written_to_later(u, steps):
    """For no rounds, it is also what the loop ends with."""
    first = u
    for _ in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * first[i]
        u = new
    first[1] = u[2] * u[1]
    return np.sum(u) + np.sum(first)


def written_to_in_the_next_round(u, steps):
    for _ in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        u[0] = new[1]
        u = new
    return np.sum(u)


def made_by_some_rounds(u, steps):
    for k in range(steps):
        if k != 1:
            new = np.zeros(len(u))
            for i in range(1, len(u)):
                new[i] = u[i] * u[i - 1] + 0.1 * u[i]
            u = new
    return np.sum(u)


def made_before_the_loop(u, steps):
    u, new = u.copy(), np.zeros(len(u))
    for _ in range(steps):
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        u, new = new, u
    return np.sum(u)


def two_rounds_before(u, steps):
    """Two arrays are handed on."""
    before = u
    for _ in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * before[i - 1] + 0.1 * u[i]
        before = u
        u = new
    return np.sum(u * before)


def part_of_what_a_round_makes(u, steps):
    for _ in range(steps):
        new = np.zeros(len(u) + 1)
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        u = new[1:]
    return np.sum(u)


def one_that_is_given(u, v, steps):
    """One round hands on an array that it has not made."""
    for k in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * u[i]
        u = new if k != 1 else v
    return np.sum(u)


BESIDE = {
    written_to_after_the_loop: (U,),
    begun_with_what_rounds_write_to: (U,),
    begun_with_what_a_view_writes_to: (U,),
    begun_with_what_is_written_to_later: (U,),
    written_to_in_the_next_round: (U,),
    made_by_some_rounds: (U,),
    made_before_the_loop: (U,),
    two_rounds_before: (U,),
    part_of_what_a_round_makes: (U,),
    one_that_is_given: (U, U[::-1].copy()),
}


def test_late():
    assert is_made("late-shadows", handed_on, U, 3)


@pytest.mark.parametrize("f", one_in(3, BESIDE), ids=lambda f: f.__name__)
def test_beside_their_arrays(f):
    check_not_made("late-shadows", f, *BESIDE[f], 3)


def test_no_rounds():
    check_not_made("late-shadows", begun_with_what_is_written_to_later, U, 0)
