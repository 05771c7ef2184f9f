"""Records of the forward sweep: the minimum that the reverse sweep needs."""

import math

import numpy as np
import pytest

from tests.adjoints.stages import stages
from zygote_py.ir import ops

X = np.array([0.5, 1.5, 2.5])


def test_straight_line_code_keeps_nothing():
    def f(x, y):
        return math.sin(x * y) + math.exp(x)

    found = stages(f, 1.0, 2.0)
    assert (found.records, found.stacks) == (0, 0)


def test_a_linear_loop_keeps_nothing():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s += 3.0 * x * i
        return s

    found = stages(f, 1.0, 4)
    assert (found.records, found.stacks) == (0, 0)


def test_elements_are_read_again():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            s += (x[i] - y) * (x[i] - y) * x[i]
        return s

    found = stages(f, X, 2.0)
    assert (found.records, found.stacks) == (0, 0)


def test_a_runge_kutta_step_keeps_its_state_only():
    def f(a, u, v, n):
        for _ in range(n):
            k1, l1 = a * u * v, u - a * v
            k2, l2 = a * (u + 0.1 * k1) * (v + 0.1 * l1), (u + 0.1 * k1) - a * (v + 0.1 * l1)
            k3, l3 = a * (u + 0.1 * k2) * (v + 0.1 * l2), (u + 0.1 * k2) - a * (v + 0.1 * l2)
            u, v = u + 0.1 * (k1 + k2 + k3), v + 0.1 * (l1 + l2 + l3)
        return u * v

    assert stages(f, 0.1, 0.2, 0.3, 4).records == 2


def test_an_exponential_is_kept_rather_than_computed_again():
    def f(x):
        s = 0.0
        for v in x:
            s += math.exp(v)
        return math.log(s)

    found = stages(f, X)
    assert found.records == 1
    assert found.count(math.exp) + found.count(np.exp) == 1


def test_a_comparison_is_kept_rather_than_what_it_compares():
    def f(x):
        m = x[0]
        for v in x:
            m = max(m, v * v)
        return m

    found = stages(f, X)
    kinds = [i.type.dtype.name for b in found.joint.blocks for i in b.instrs if getattr(i, "op", None) is ops.record]
    assert kinds == ["bool"]


def test_a_counting_while_loop_has_an_array():
    def f(x, n):
        r = 1.0
        while n > 0:
            n -= 1
            r *= x
        return r

    found = stages(f, 2.0, 3)
    assert (found.records, found.stacks) == (1, 0)


def test_a_loop_with_an_unknown_end_has_a_stack():
    def f(x):
        while x < 100.0:
            x = x * x
        return x

    found = stages(f, 2.0)
    assert (found.records, found.stacks) == (0, 1)


def test_nested_counting_loops_have_one_array_of_two_dimensions():
    def f(x, n, m):
        for _ in range(n):
            for _ in range(m):
                x = math.sin(x)
        return x

    found = stages(f, 0.5, 3, 4)
    (record,) = (i for b in found.joint.blocks for i in b.instrs if getattr(i, "op", None) is ops.record)
    assert (record.type.ndim, found.stacks) == (2, 0)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_with_nothing_active_is_not_reversed(n):
    def f(x, n):
        k = 0
        for i in range(n):
            k += i * i
        return x * k

    found = stages(f, 0.5, n)
    assert not any(phi for block in found.adjoint.blocks for phi in block.phis)
    assert len(found.adjoint.blocks) <= 3
