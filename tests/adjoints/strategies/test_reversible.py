"""Loops of steps that have inverses store nothing, and all loops have the gradients that they have without."""

import math

import numpy as np
import pytest

import zygote_py as zg
from tests.adjoints.strategies.reversible_programs import (
    added_up,
    by_layers,
    by_threes,
    chain,
    chosen_in_the_loop,
    counted_by_a_constant,
    decided_sums,
    filled_in_the_loop,
    in_a_loop,
    integrated,
    layers,
    leapfrog,
    losses,
    made_in_the_loop,
    network,
    normal,
    of_complex_numbers,
    overwritten_behind,
    passed_on,
    ruled,
    sampled,
    scalar,
    shear,
    starts_constant,
    swapped,
    turn,
    two_halves,
    under_two_names,
    until,
    walks_back,
    whole_object,
    whole_tuple,
)
from tests.checking.derivatives import check_derivatives
from tests.modes import one_in

pytestmark = pytest.mark.interpreted

WALKING = [
    *((scalar, (0.4, 1.2, n)) for n in (0, 1, 2, 40)),
    *((integrated, (0.4, 0.2, 1.2, 0.1, n)) for n in (0, 1, 50)),
    (chain, (0.4, 0.2, 1.2, 7)),
    *((network, (normal(3), normal(2, 3)[0], layers(n, 3, 3))) for n in (0, 1, 5)),
    (by_layers, (normal(3), normal(2, 3)[0], layers(4, 3, 3))),
    *((two_halves, (normal(3), normal(2, 3)[0], normal(n))) for n in (1, 2, 6)),
    (swapped, (normal(3), normal(2, 3)[0], normal(5))),
    (passed_on, (normal(3), normal(2, 3)[0], normal(5))),
    (whole_tuple, (normal(3), 0.7, 0.1, 6)),
    (whole_object, (0.3, 0.4, 0.7, 6)),
    (made_in_the_loop, (normal(3), normal(2, 3)[0], normal(3), 5)),
    (filled_in_the_loop, (normal(3), normal(2, 3)[0], normal(3), 5)),
    (chosen_in_the_loop, (0.3, 0.7, 8)),
    (counted_by_a_constant, (0.3, normal(3))),
    (added_up, (0.3, 0.7, 1.1, 8)),
    (added_up, (0.3, 0.7, 1.1, 0)),
    (sampled, (0.3, 0.7, 1.1, 8)),
    *((under_two_names, (0.3, 0.7, n)) for n in (0, 1, 5)),
    (until, (0.3, 1.7, 1.1, 1)),
    (by_threes, (0.3, 0.7, 5)),
    (ruled, (0.3, 0.7, 5)),
    (starts_constant, (0.7, 5)),
    (losses, (normal(3), normal(2, 3)[0], normal(4))),
    (decided_sums, (0.3, 0.4, 1.1, 5)),
    (overwritten_behind, (normal(3), normal(2, 3)[0], normal(3))),
    (of_complex_numbers, (0.3, 0.4, 5)),
]


@pytest.mark.parametrize(("program", "args"), one_in(3, WALKING), ids=lambda each: getattr(each, "__name__", ""))
def test_gradients_of_loops_that_walk_back(program, args):
    assert walks_back(program, *args)
    check_derivatives(program, *args, tolerance=1e-6)


def test_a_loop_in_a_loop():
    check_derivatives(in_a_loop, 0.3, 0.7, 1.1, 5, tolerance=1e-6)
    assert "_step_back(" in zg.gradient(in_a_loop).source(0.3, 0.7, 1.1, 5)


# ------------------------------------------------------------------------------------------- loops that do not qualify


def left_early(x, v, k, n):
    for _ in range(n):
        x, v = leapfrog((x, v), k, 0.1)
        if x > 0.5:
            break
    return x * v


def two_conditions(x, v, k, n):
    steps = 0
    while x < 1.0 and steps < n:
        x, v = leapfrog((x, v), k, 0.1)
        steps += 1
    return x * v * steps


def decided_by_the_state(x, v, k, n):
    for _ in range(n):
        if x > 0.42:
            k = k * 0.9
        x, v = leapfrog((x, v), k, 0.1)
    return x * v


def flagged(x, v, k, n):
    flag = False
    total = 0.0
    for _ in range(n):
        x, v = leapfrog((x, v), k, 0.1)
        if flag:
            total += x
        flag = x > 0.42
    return total


def lost(a, b, w, n):
    for _ in range(n):
        own = np.zeros(3)
        own[0] = b[1]
        a = shear(a, own, w)
        b = shear(b, a, w)
    return np.sum(a * b)


def decided_fill(a, b, w, n):
    for _ in range(n):
        own = np.ones(3)
        for j in range(3):
            if b[j] > 0.0:
                own[j] = w
        a = shear(a, own, w)
        b = shear(b, a, w)
    return np.sum(a * b)


def decided_rest(x, w, n):
    for i in range(n):
        c = w if x > 0.0 else 2.0 * w
        x = turn(x, c, i)
    return x


def not_always(x, v, k, n):
    for i in range(n):
        if i % 2 == 0:
            x, v = leapfrog((x, v), k, 0.1)
        else:
            x = x * v
    return x * v


def something_else_carried(x, v, k, n):
    t = k
    for _ in range(n):
        x, v = leapfrog((x, v), t, 0.1)
        t = t * 0.9
    return x * v * t


def depends_on_itself(x, w, n):
    for i in range(n):
        x = turn(x, x * w, i)
    return x


def between_steps(x, w, n):
    z = w * 1.0
    for i in range(n):
        x = turn(x, w, i)
        z = x
        x = turn(x, z * 0.1 + w, i)
    return z * x


def not_only_stepped(x, w, n):
    for i in range(n):
        x = math.sin(turn(x, w, i))
    return x


def with_a_history(x, w, n):
    path = np.zeros(n + 1)
    for i in range(n):
        x = turn(x, w, i)
        path[i] = x
    return np.sum(path * path)


def with_a_list(x, w, n):
    path = [x]
    for i in range(n):
        x = turn(x, w, i)
        path.append(x)
    return path[0] * path[-1] * path[n // 2]


def written_to_behind(x1, x2, w):
    for i in range(len(w)):
        x1 = shear(x1, x2, w[i])
        x2 = shear(x2, x1, w[i])
    x1[0] = 2.0 * x2[0]
    x1 *= x2
    return np.sum(x1 * x2)


def written_to_inside(x1, x2, w):
    w = w.copy()
    for i in range(len(w)):
        x1 = shear(x1, x2, w[i])
        w[i] = 2.0
        x2 = shear(x2, x1, w[0])
    return np.sum(x1 * x2 * w[0])


def shears(a, b, w, n):
    if n < 0:
        return shears(a, b, w, -n)
    for _ in range(n):
        a = shear(a, b, w)
        b = shear(b, a, w)
    return a, b


def written_by_the_caller(x, y, w, n):
    x = x * 1.0
    y = y * 1.0
    a, b = shears(x, y, w, n)
    a[0] = 2.0 * w
    b[1] *= w
    return np.sum(a * b) * x[0] * y[1]


def half_forgotten(x, v, k, n):
    for _ in range(n):
        x, _ = leapfrog((x, v), k, 0.1)
    return x


def outside_of_loops(x, v, k):
    x, v = leapfrog((x, v), k, 0.1)
    x, v = leapfrog((v, x), k, 0.1)
    return x * turn(v, 0, 3)


def over_checkpoints(x, v, k, n):
    for _ in zg.checkpointed(range(n)):
        x, v = leapfrog((x, v), k, 0.1)
    return x * v


STORING = [
    *((left_early, (0.4, 0.2, 1.2, n)) for n in (1, 9)),
    (two_conditions, (0.3, 0.7, 1.1, 4)),
    (decided_by_the_state, (0.3, 0.3, 1.2, 9)),
    (flagged, (0.3, 0.4, 1.1, 5)),
    (lost, (normal(3), normal(2, 3)[0], 0.4, 3)),
    (decided_fill, (normal(3), normal(2, 3)[0], 0.4, 3)),
    (decided_rest, (0.3, 0.4, 3)),
    (not_always, (0.3, 0.3, 1.2, 9)),
    (something_else_carried, (0.3, 0.3, 1.2, 9)),
    (depends_on_itself, (0.3, 1.2, 4)),
    (between_steps, (0.3, 1.2, 4)),
    (not_only_stepped, (0.3, 1.2, 4)),
    (with_a_history, (0.3, 1.2, 4)),
    (with_a_list, (0.3, 1.2, 4)),
    (written_to_behind, (normal(3), normal(2, 3)[0], normal(4))),
    (written_to_inside, (normal(3), normal(2, 3)[0], normal(4))),
    *((written_by_the_caller, (normal(3), normal(2, 3)[0], 0.7, n)) for n in (0, 3)),
    (half_forgotten, (0.3, 0.3, 1.2, 9)),
    (outside_of_loops, (0.3, 0.3, 1.2)),
    (over_checkpoints, (0.3, 0.3, 1.2, 9)),
]


@pytest.mark.parametrize(("program", "args"), one_in(3, STORING), ids=lambda each: getattr(each, "__name__", ""))
def test_gradients_of_other_loops(program, args):
    assert "_step_back(" not in zg.gradient(program).source(*args)
    check_derivatives(program, *args, tolerance=1e-6)


def grown(u, w):
    return u * w


@zg.inverse(grown)
def shrunk(u, w):
    return u / w


def moved(state, w):
    return state[0] * w, state[1] + w


@zg.inverse(moved)
def moved_back(state, w):
    return state[0] / w, state[1] - w


def add_to(u, w):
    u[0] += w


def an_element(u, w, n):
    for _ in range(n):
        u = grown(u, w)
        u[1] = u[1] + 0.5
    return np.sum(u * u)


def through_a_view(u, w, n):
    for _ in range(n):
        u = grown(u, w)
        v = u[1:]
        v[0] += w
    return np.sum(u * u)


def in_a_function(u, w, n):
    for _ in range(n):
        v = grown(u, w)
        u = v
        add_to(u, w)
    return np.sum(u * u)


def under_a_condition(u, w, n):
    for _ in range(n):
        u = grown(u, w)
        if u[0] > 2.0:
            u[0] = 1.0
    return np.sum(u * u)


def as_a_whole(u, w, n):
    for _ in range(n):
        u = grown(u, w)
        u[:] = 0.5 * u
        u = grown(u, w)
    return np.sum(u * u)


def an_item(u, w, n):
    t = 0.5
    for _ in range(n):
        u, t = moved((u, t), w)
        u[1] = u[1] * t
    return np.sum(u * u) * t


@pytest.mark.parametrize(
    "program",
    [an_element, through_a_view, in_a_function, under_a_condition, as_a_whole, an_item],
    ids=lambda f: f.__name__,
)
def test_states_that_are_written_to(program):
    u, w, h = np.array([1.0, 2.0]), 1.3, 1e-6
    du, dw = zg.gradient(program, wrt=("u", "w"))(u, w, 3)
    assert dw == pytest.approx((program(u, w + h, 3) - program(u, w - h, 3)) / (2 * h), rel=1e-7)
    expected = [(program(u + e, w, 3) - program(u - e, w, 3)) / (2 * h) for e in h * np.eye(2)]
    np.testing.assert_allclose(du, expected, rtol=1e-7)
