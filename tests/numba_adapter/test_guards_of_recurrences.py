"""Guards in emitted gradients: branches where an adjoint is handed on from round to round, and selections elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba.core import compiler, ir

from tests.checking.slopes import slopes
from tests.checking.trees import real_parts
from tests.modes import one_in
from tests.plain import plain
from zygote_py import value_and_gradient
from zygote_py.numba_adapter.emitted import recurrences
from zygote_py.numba_adapter.emitted.conditional_expressions import JoinBranches
from zygote_py.numba_adapter.emitted.linear_ssa import LinearSSA

pytestmark = pytest.mark.interpreted

X = np.linspace(-0.7, 0.9, 5)


def rectified(x, w):
    y = 0.3
    for i in range(len(w)):
        y = max(x * y + w[i], 0.0)
    return y


def while_positive(x, w):
    y = 0.3
    for i in range(len(w)):
        y = x * y + w[i] if y > 0.0 else 0.0
    return y


def beside_a_recurrence(x, w):
    """Another adjoint is guarded than the one that is handed on."""
    y = 0.3
    for i in range(len(w)):
        y = 0.9 * y + max(x * w[i], 0.0)
    return y


def through_memory(x, w):
    """Elements hand on the adjoint."""
    y = np.zeros(len(w) + 1)
    for i in range(len(w)):
        y[i + 1] = max(y[i] * x + w[i], 0.0)
    return y[len(w)]


def one_after_another(x, w):
    """The guards depend on each other, and there are no rounds."""
    a = max(x * w[4], 0.1)
    b = max(a * x * w[3], 0.05)
    c = max(b * x, 0.01)
    return a * b * c


def of_each_element(x, w):
    t = 0.0
    for i in range(len(w)):
        t += max(x * w[i], 0.0) * w[i]
    return t


def of_the_sum(x, w):
    """A guard of the adjoint that all rounds use."""
    s = 0.0
    for i in range(len(w)):
        s += max(w[i] * x, 0.0)
    return max(s * x, 0.0) ** 2


def after_a_recurrence(x, w):
    y = x
    for i in range(len(w)):
        y = 0.5 * y + w[i] * w[i]
    return max(y * x, 0.0) ** 2


def of_an_inner_loop(x, w):
    """Each round of the outer loop adds to its own sum."""
    s = 0.0
    for k in range(3):
        y = x * k
        for i in range(len(w)):
            s += min(y * w[i], 0.3) * y
    return s


def on_both_sides(x, w):
    t = 0.0
    for i in range(len(w)):
        t += min(max(w[i] * x, -0.5), 0.5) ** 2
    return t


def of_distances(x, w):
    s = 0.0
    for i in range(len(w)):
        s += max(math.fabs(w[i] * x), 0.2) * w[i]
    return s


SELECTED = [beside_a_recurrence, through_memory, one_after_another, of_each_element, of_the_sum, after_a_recurrence]
SELECTED += [of_an_inner_loop, on_both_sides, of_distances]


def guards(derivative):
    """The number of guards in an emitted gradient, and whether some become branches."""
    made = derivative._inspect((1.3, X)).emitted
    state = compiler.StateDict()
    state.func_ir, state.locals = compiler.run_frontend(plain((made.compiled or made).source)), {}
    JoinBranches().run_pass(state)
    LinearSSA().run_pass(state)
    blocks = state.func_ir.blocks.values()
    values = {each.target.name: each.value for block in blocks for each in block.find_insts(ir.Assign)}
    count = sum(recurrences._guarded_by(value, values) is not None for value in values.values())
    before = [str(each) for block in blocks for each in block.body]
    is_changed = recurrences.PredictGuards().change(state)
    assert is_changed or [str(each) for block in state.func_ir.blocks.values() for each in block.body] == before
    return count, is_changed


@pytest.mark.parametrize("f", [rectified, while_positive], ids=lambda f: f.__name__)
def test_branches(f):
    count, is_changed = guards(value_and_gradient(f, mode="reverse"))
    assert count > 0
    assert is_changed


@pytest.mark.parametrize("f", one_in(3, SELECTED), ids=lambda f: f.__name__)
def test_selections(f):
    derivative = value_and_gradient(f, mode="reverse")
    count, is_changed = guards(derivative)
    assert count > 0
    assert not is_changed
    value, found = derivative(1.3, X)
    assert value == pytest.approx(f(1.3, X), rel=1e-14)
    expected = slopes(f, (1.3, X), (0, 1), np.random.default_rng(1))
    assert expected.doubt is None
    assert expected.off(np.ones(1), real_parts(found)) < 1e-7
