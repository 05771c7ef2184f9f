"""Constants that are loaded once in a block, and variables of loops that take one at the end of a round."""

from __future__ import annotations

import pytest

from tests.numba_adapter.by_address_programs import emitted


def reset_after_a_selection(n, x):
    s = 0.5
    for _ in range(n - 1, -1, -1):
        t = x if x != 0.0 else 0.0
        s += 0.1 * t
        x = 0.0
    return s


def reset_after_a_comparison(n, x):
    s = 0.0
    for _ in range(n):
        t = 2.0 * x
        t = t if x > 1.0 else 1.0
        s += t
        x = 1.0
    return s


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("function", [reset_after_a_selection, reset_after_a_comparison])
def test_a_variable_is_assigned_after_its_last_use(function, n):
    assert emitted(function)(n, 3.0) == function(n, 3.0)
