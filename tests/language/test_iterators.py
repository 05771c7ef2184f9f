"""Iterators are used up by the loop that goes over them; what they were made from is not."""

# ruff: noqa: B905
from __future__ import annotations

import numpy as np
import pytest

from tests.checking.derivatives import check_derivatives
from zygote_py import DifferentiationError, checkpointed, gradient

pytestmark = pytest.mark.interpreted

X = np.array([1.0, 2.0, 3.0])


def twice(x):
    pairs, s = enumerate(x), 0.0
    for _, a in pairs:
        s += a * a
    for _, a in pairs:
        s += a
    return s


def in_a_loop(x):
    pairs, s = zip(x, x), 0.0
    for _ in range(2):
        for a, b in pairs:
            s += a * b
    return s


def after_a_break(x):
    pairs, s = zip(x, x), 0.0
    for a, b in pairs:
        s += a * b
        if a > 1.5:
            break
    for a, _ in pairs:
        s += 10.0 * a
    return s


def under_two_names(x):
    pairs, s = np.ndenumerate(x), 0.0
    others = pairs
    for _, a in pairs:
        s += a * a
    for _, a in others:
        s += a
    return s


def of_indices(x):
    indices, s = np.ndindex(3), 0.0
    for i in indices:
        s += x[i] * x[i]
    for i in indices:
        s += x[i]
    return s


def of_all_elements(x):
    elements, s = x.flat, 0.0
    for a in elements:
        s += a * a
    for a in elements:
        s += a
    return s


def in_another(x):
    pairs, s = enumerate(x), 0.0
    for (_, a), b in zip(pairs, x):
        s += a * b
    for _, a in pairs:
        s += a
    return s


def with_itself(x):
    pairs, s = enumerate(x), 0.0
    for (_, a), (_, b) in zip(pairs, pairs):
        s += a * b
    return s


def in_a_list(x):
    pairs, s = enumerate(x), 0.0
    for _, a in list(pairs):
        s += a * a
    for _, a in pairs:
        s += a
    return s


def with_a_checkpoint(x):
    pairs, s = checkpointed(enumerate(x), segments=2), 0.0
    for _, a in pairs:
        s += a * s + a
    for _, a in pairs:
        s += a * s
    return s


def squares(pairs):
    s = 0.0
    for _, a in pairs:
        s += a * a
    return s


def passed_twice(x):
    pairs = enumerate(x)
    return squares(pairs) + squares(pairs)


USED_UP = (
    *(
        twice,
        in_a_loop,
        after_a_break,
        under_two_names,
        of_indices,
        of_all_elements,
        in_another,
        with_itself,
        in_a_list,
    ),
    *(with_a_checkpoint, passed_twice),
)


@pytest.mark.parametrize("function", USED_UP)
def test_a_second_loop_is_refused(function):
    with pytest.raises(DifferentiationError, match="may have used it up") as caught:
        gradient(function)(X)
    assert caught.value.file == __file__


def anew_in_a_loop(x):
    s = 0.0
    for _ in range(2):
        pairs, elements = enumerate(x), x.flat
        for _, a in pairs:
            s += a * a
        for a in elements:
            s += a * s
    return s


def in_one_branch_or_the_other(x):
    pairs, s = zip(x, x[::-1]), 0.0
    if x[0] > 0.5:
        for a, b in pairs:
            s += a * a * b
    else:
        for a, _ in pairs:
            s += a
    return s


def what_is_no_iterator(x):
    numbers, pair, some, s = range(3), (x[0], x[1]), [x[0], x[2]], 0.0
    for _ in range(2):
        for i in numbers:
            s += x[i] * x[i]
        for a in pair:
            s += a * s
        for a in some:
            s += a * a
    for i in checkpointed(numbers, segments=2):
        s += x[i] * s
    return s


def made_before_the_loop(x):
    pairs, s = enumerate(x), 0.0
    if len(x) > 5:
        return s
    s += x[0] * x[0]
    for i, a in pairs:
        s += i * a * a
    return s


@pytest.mark.parametrize(
    "function", [anew_in_a_loop, in_one_branch_or_the_other, what_is_no_iterator, made_before_the_loop]
)
def test_one_loop_over_each(function):
    check_derivatives(function, X)
