"""Random programs of matrices in several memory orders: value and derivatives in both modes, against differences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checking.slopes import slopes
from tests.modes import one_in
from tests.random_programs.generator import load
from tests.random_programs.orders import order_program
from zygote_py import jvp, value_and_gradient

M = np.array([[0.5, -1.2, 0.8], [1.4, 0.3, -0.7], [0.2, 0.9, -0.4]])
V = np.array([[0.3, -0.8, 0.1], [0.9, 0.5, -0.2], [-0.6, 0.4, 0.7]])


def check(seed: int) -> bool:
    """Compare the derivatives of a program with differences; return whether these can be trusted."""
    f = load(order_program(seed))
    value, found = f(M), slopes(f, (M,), [0])
    if found.doubt is not None or abs(value) > 1e6:
        return False
    expected = found.products.reshape(3, 3)
    scale = max(1.0, float(np.abs(expected).max()))
    at, gradient = value_and_gradient(f, mode="reverse")(M)
    pushed, tangent = jvp(f, (M,), (V,))
    assert at == pytest.approx(value, rel=1e-12)
    assert pushed == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * scale)
    assert tangent == pytest.approx(float(np.sum(expected * V)), abs=1e-5 * scale)
    return True


@pytest.mark.interpreted
@pytest.mark.parametrize("first", one_in(10, range(0, 200, 10)))
def test_programs_in_plain_python(first):
    assert sum(map(check, range(first, first + 10))) >= 7


@pytest.mark.compiled
@pytest.mark.parametrize("seed", one_in(2, [5, 3]))
def test_programs_compiled(seed):
    assert check(seed)
