"""`checkpointed`: the gradient of the loop is what it is without, whatever the number of segments or snapshots."""

import math
import types as python_types

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.function_checks import captured_of
from tests.plain import plain
from tests.reference import central, distance
from zygote_py import DifferentiationError

SEGMENTS = SNAPSHOTS = None  # the tests give the functions others
HOW = [(None, None), (1, None), (3, None)]


def normal(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


def numbers(x, w, n):
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        x = x + 0.1 * math.sin(w * x) * (i % 3)
    return x * w


def left_early(x, n):
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        x = x + 0.2 * math.sin(x)
        if x > 1.5:
            break
    return x * x


def left_in_a_branch(x, n):
    last = 0
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        if i % 3 == 1:
            continue
        if x > 1.6:
            return x * last
        x = x * 1.05
        last = i
    return x + last


def counter_behind(x, n):
    i = -1
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        x = x * 1.1
        if x > 2.0:
            break
    return x * (i + 1)


def backwards(x, n):
    for i in zg.checkpointed(range(3 * n, -2, -3), SEGMENTS, SNAPSHOTS):
        x = math.sin(x + i)
    return x


def in_place(u, w, n):
    u = u.copy()
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        for j in range(1, len(u) - 1):
            u[j] += w * (u[j - 1] * u[j + 1] - u[j]) * 0.1 * i
    return np.sum(u * u)


def whole_arrays(u, w, n):
    u = u * 1.0
    v = np.zeros(len(u))
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        v[:] = v - 0.1 * np.sin(u * w)
        u[:] = u + 0.1 * v
    return np.sum(u) * v[0]


def new_arrays(u, w, n):
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        v = np.empty(len(u))
        for j in range(len(u)):
            v[j] = math.tanh(u[j] * w + u[j - 1])
        u = v
    return np.sum(u * u)


def two_new_arrays(u, w, n):
    before = u * 0.5
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        before, u = u, np.tanh(w * u - 0.3 * before)
    return np.sum(u * before)


def through_views(u, w, n):
    u = u.copy()
    inner = u[1:-1]
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        inner *= 1.0 + 0.1 * w
        u[0] = math.sin(u[1] * u[0])
    return np.sum(u * u)


def history(u, w, n):
    path = np.empty(n + 1)
    x = u[0]
    path[n] = 1.0
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        x = math.sin(w * x + u[1])
        path[i] = x
    return np.sum(path * path)


def trajectory(u, w, n):
    path = np.empty(n + 1)
    path[0] = u[0]
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        path[i + 1] = math.sin(w * path[i]) + u[1]
    return np.sum(path * path)


def overwritten_behind(u, w, n):
    u = u * 1.0
    x = w
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        x = x * math.cos(u[i % len(u)])
    u[:] = 2.0
    return x * u[0]


def over_arrays(u, w, n):
    x = w
    for v, k in zg.checkpointed(zip(u, range(n)), SEGMENTS, SNAPSHOTS):
        x = x * math.sin(v) + k
    for k, v in enumerate(zg.checkpointed(u, SEGMENTS, SNAPSHOTS)):
        x = x * math.cos(v + k)
    return x


def nested(x, w, n):
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        for j in zg.checkpointed(range(4), SEGMENTS, SNAPSHOTS):
            x = x + 0.1 * math.sin(w * x + j)
        x = x * w
    return x


def inside_a_loop(u, w, n):
    total = 0.0
    for k in range(3):
        v = u * (1.0 + k)
        v[0] = w
        for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
            v = np.sin(v * w)
        total += np.sum(v)
    return total


def one_that_may_raise(x, n):
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        if x > 1e6:
            raise ValueError("too large")
        x = 1.1 * x
    return x


def starts_inactive(w, n):
    x, y = 1.0, 0.5
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        x, y = y * w, math.sin(x)
    return x + y


def complex_state(x, n):
    z = complex(x, 0.2)
    for _ in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        z = z * z + complex(0.1, x)
    return z.real * z.imag


def unused_state(x, n):
    y = x
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        y = math.sin(y) + i
    return x * 2.0


CASES = [
    *((numbers, (0.4, 1.2, n)) for n in (0, 1, 2, 11)),
    *((left_early, (0.4, n)) for n in (0, 5, 30)),
    *((left_in_a_branch, (1.1, n)) for n in (0, 6, 30)),
    (counter_behind, (1.1, 20)),
    (counter_behind, (1.1, 3)),
    (backwards, (0.4, 5)),
    (in_place, (normal(5), 0.3, 7)),
    (in_place, (normal(5), 0.3, 0)),
    (whole_arrays, (normal(3), 0.7, 6)),
    (new_arrays, (normal(3), 0.7, 5)),
    (new_arrays, (normal(3), 0.7, 0)),
    (two_new_arrays, (normal(3), 0.7, 6)),
    (through_views, (normal(4), 0.7, 5)),
    (history, (normal(2), 0.7, 6)),
    (trajectory, (normal(2), 0.7, 6)),
    (overwritten_behind, (normal(3), 0.7, 6)),
    (over_arrays, (normal(5), 0.7, 4)),
    (nested, (0.4, 0.9, 5)),
    (inside_a_loop, (normal(3), 0.7, 4)),
    (one_that_may_raise, (0.3, 6)),
    (starts_inactive, (0.7, 7)),
    (complex_state, (0.3, 5)),
    (unused_state, (0.3, 5)),
]


def with_checkpoints(program, segments, snapshots):
    """The program with other globals."""
    here = {**globals(), "SEGMENTS": segments, "SNAPSHOTS": snapshots}
    return python_types.FunctionType(program.__code__, here, program.__name__)


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize(("program", "args"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_in_plain_python(program, args, how):
    derivative = zg.value_and_gradient(with_checkpoints(program, *how))
    expected = central(program, *args)
    value, gradient = plain(derivative.source(*args))(*args, *captured_of(derivative))
    assert value == expected.value
    assert distance(gradient, expected.gradients) < 1e-6
