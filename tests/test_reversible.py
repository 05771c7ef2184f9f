"""`inverse`: loops of steps that can be undone store nothing, and their gradients are those of the loops."""

import dataclasses
import math
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.function_checks import check_functions
from zygote_py import DifferentiationError


def normal(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


# ------------------------------------------------------------------------------------------------------------- steps


def turn(x, w, i):
    return x * (1.0 + 0.01 * w) + 0.1 * math.sin(w * i)


@zg.inverse(turn)
def unturn(y, w, i):
    return (y - 0.1 * math.sin(w * i)) / (1.0 + 0.01 * w)


def leapfrog(state, k, h):
    x, v = state
    v = v - 0.5 * h * k * math.sin(x)
    x = x + h * v
    return x, v - 0.5 * h * k * math.sin(x)


@zg.inverse(leapfrog)
def leapfrog_back(state, k, h):
    x, v = state
    v = v + 0.5 * h * k * math.sin(x)
    x = x - h * v
    return x, v + 0.5 * h * k * math.sin(x)


def couple(x, w):
    x1, x2 = x
    y1 = x1 + np.tanh(w @ x2)
    y2 = x2 + np.tanh(w.T @ y1)
    return y1, y2


@zg.inverse(couple)
def uncouple(y, w):
    y1, y2 = y
    x2 = y2 - np.tanh(w.T @ y1)
    return y1 - np.tanh(w @ x2), x2


def shear(x, by, w):
    return x + 0.2 * np.sin(by * w)


@zg.inverse(shear)
def unshear(y, by, w):
    return y - 0.2 * np.sin(by * w)


def half(x, w):
    """One of the two arrays is passed on as it is."""
    x1, x2 = x
    return x1 + w * np.sin(x2), x2


@zg.inverse(half)
def unhalf(y, w):
    y1, y2 = y
    return y1 - w * np.sin(y2), y2


class Particle(NamedTuple):
    x: np.ndarray
    mass: float


def drift(p, h):
    return Particle(p.x + h * np.cos(p.mass), p.mass)


@zg.inverse(drift)
def undrift(p, h):
    return Particle(p.x - h * np.cos(p.mass), p.mass)


@dataclasses.dataclass(frozen=True)
class Pair:
    a: float
    b: float


def kick(p, w):
    a = p.a + w * p.b
    return Pair(a, p.b + math.sin(a))


@zg.inverse(kick)
def unkick(p, w):
    b = p.b - math.sin(p.a)
    return Pair(p.a - w * b, b)


def with_rule(x, w):
    return x + math.sin(w)


@zg.adjoint(with_rule, inverse=lambda y, w: y - math.sin(w))
def rule(x, w):
    def back(dy):
        return dy, dy * math.cos(w)

    return with_rule(x, w), back


# ------------------------------------------------------------------------------------------------------------- loops


def scalar(x, w, n):
    for i in range(n):
        x = turn(x, w, i)
    return x * x


def integrated(x, v, k, h, n):
    for _ in range(n):
        x, v = leapfrog((x, v), k, h)
    return x * v


def chain(x, v, k, n):
    for i in range(n):
        x, v = leapfrog(leapfrog((x, v), k, 0.1), math.sin(k * i), 0.2)
        x = turn(x, v, i)
    return x - v


def network(x1, x2, w):
    for i in range(len(w)):
        x1, x2 = couple((x1, x2), w[i])
    return np.sum(x1 * x2)


def by_layers(x1, x2, w):
    for layer in w:
        x1, x2 = couple((x1, x2), layer)
    return np.sum(x1 * x2)


def two_halves(x1, x2, w):
    for i in range(len(w) - 1, -1, -1):
        x1 = shear(x1, x2, w[i])
        x2 = shear(x2, x1, w[i] * w[0])
    return np.sum(x1 * x2)


def swapped(x1, x2, w):
    for weight in w:
        x1, x2 = x2, shear(x1, x2, weight)
    return np.sum(x1 * x2 * x2)


def passed_on(x1, x2, w):
    for i in range(len(w)):
        x1, x2 = half((x1, x2), w[i])
        x2, x1 = half((x2, x1), w[i])
    return np.sum(x1 * x2)


def whole_tuple(x, mass, h, n):
    p = Particle(x, mass)
    for _ in range(n):
        p = drift(p, h)
    return np.sum(p.x * p.x) * p.mass


def whole_object(a, b, w, n):
    p = Pair(a, b)
    for _ in range(n):
        p = kick(p, w)
    return p.a * p.b


def made_in_the_loop(x1, x2, w, n):
    for i in range(n):
        scaled = np.cos(w * i) + w
        x1 = shear(x1, x2, scaled)
        x2 = shear(x2, x1, scaled[0] * i)
    return np.sum(x1 * x2)


def filled_in_the_loop(x1, x2, w, n):
    for i in range(n):
        scaled = np.empty(len(w))
        for j in range(len(w)):
            if j > 1:
                scaled[j] = w[j] * i
            else:
                scaled[j] = w[j]
        x1 = shear(x1, x2, scaled)
        x2 = shear(x2, x1, scaled)
    return np.sum(x1 * x2)


def chosen_in_the_loop(x, w, n):
    for i in range(n):
        c = w * i if i % 3 == 0 else w * w
        x = turn(x, c, i)
    return x


def added_up(x, v, k, n):
    total = 0.0
    for i in range(n):
        total += x * x
        x, v = leapfrog((x, v), k, 0.1)
        if i > 2:
            total -= math.sin(v)
    return total + v


def sampled(x, v, k, n):
    last = 0.0
    for i in range(n):
        x, v = leapfrog((x, v), k, 0.1)
        last = x * i
    return last * v


def until(x, v, k, n):
    steps = 0
    while x < n:
        x, v = leapfrog((x, v), k, 0.1)
        steps += 1
    return x * v * steps


def by_threes(x, w, n):
    k = 1
    for i in range(3 * n, 0, -3):
        x = turn(x, w * k, i)
        k += 2
    return x * k


def in_a_loop(x, v, k, n):
    total = 0.0
    for j in range(3):
        for i in range(n):
            x, v = leapfrog((x, v), k * i, 0.1)
        total += x * v * j
        x = math.sin(x)
    return total


def ruled(x, w, n):
    for i in range(n):
        x = with_rule(x, w * i)
    return x * x


def starts_constant(w, n):
    x, v = 0.3, 0.1
    for _ in range(n):
        x, v = leapfrog((x, v), w, 0.1)
    return x * v


def overwritten_behind(x1, x2, w):
    w = w.copy()
    for i in range(len(w)):
        x1 = shear(x1, x2, w[i])
        x2 = shear(x2, x1, w[i])
    w[:] = 3.0
    return np.sum(x1 * x2 * w)


def of_complex_numbers(x, w, n):
    z = complex(x, w)
    for _ in range(n):
        z = turned(z, w)
    return z.real * z.imag


def turned(z, w):
    return z * complex(math.cos(w), math.sin(w))


@zg.inverse(turned)
def unturned(z, w):
    return z * complex(math.cos(w), -math.sin(w))


def layers(*shape):
    return 0.3 * normal(*shape)


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
    (added_up, (0.3, 0.7, 1.1, 8)),
    (added_up, (0.3, 0.7, 1.1, 0)),
    (sampled, (0.3, 0.7, 1.1, 8)),
    (until, (0.3, 1.7, 1.1, 1)),
    (by_threes, (0.3, 0.7, 5)),
    (ruled, (0.3, 0.7, 5)),
    (starts_constant, (0.7, 5)),
    (overwritten_behind, (normal(3), normal(2, 3)[0], normal(3))),
    (of_complex_numbers, (0.3, 0.4, 5)),
]


def walks_back(function, *args):
    """Whether the reverse sweep of a function walks back, and nothing is stored outside of one iteration."""
    source = zg.gradient(function).source(*args)
    own = [text for text in source.split("@njit\n") if text.startswith(f"def {function.__name__}_")]
    outside = [text for text in own if "_step" not in text.partition("(")[0]]
    stores = any("record" in text or ".append(" in text for text in outside)
    return len(own) > len(outside) > 3 and "_step_back(" in source and not stores


@pytest.mark.parametrize(("program", "args"), WALKING, ids=lambda each: getattr(each, "__name__", ""))
def test_gradients_of_loops_that_walk_back(program, args):
    assert walks_back(program, *args)
    check_functions(program, *args, tolerance=1e-6)


def test_a_loop_in_a_loop():
    check_functions(in_a_loop, 0.3, 0.7, 1.1, 5, tolerance=1e-6)
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
    (not_always, (0.3, 0.3, 1.2, 9)),
    (something_else_carried, (0.3, 0.3, 1.2, 9)),
    (depends_on_itself, (0.3, 1.2, 4)),
    (not_only_stepped, (0.3, 1.2, 4)),
    (with_a_history, (0.3, 1.2, 4)),
    (with_a_list, (0.3, 1.2, 4)),
    (written_to_behind, (normal(3), normal(2, 3)[0], normal(4))),
    (written_to_inside, (normal(3), normal(2, 3)[0], normal(4))),
    (half_forgotten, (0.3, 0.3, 1.2, 9)),
    (outside_of_loops, (0.3, 0.3, 1.2)),
    (over_checkpoints, (0.3, 0.3, 1.2, 9)),
]


@pytest.mark.parametrize(("program", "args"), STORING, ids=lambda each: getattr(each, "__name__", ""))
def test_gradients_of_other_loops(program, args):
    assert "_step_back(" not in zg.gradient(program).source(*args)
    check_functions(program, *args, tolerance=1e-6)


# ---------------------------------------------------------------------------------------------- captured, and others


def model(stiffness, weights):
    """A function whose step and inverse capture variables, one of them only the inverse."""
    same = stiffness * 1.0

    def inner(state, h):
        x, v = state
        v = v - h * stiffness * math.sin(x) * weights[1]
        return x + h * v, v

    @zg.inverse(inner)
    def back(state, h):
        x, v = state
        x = x - h * v
        return x, v + h * same * math.sin(x) * weights[1]

    def trajectory(x, n):
        v = 0.5
        for i in range(n):
            x, v = inner((x, v), 0.1 * weights[i % 3])
        return x * v

    return trajectory


def test_gradients_of_what_is_captured():
    weights = np.array([1.0, 1.2, 0.7])
    (dx, _), captured = zg.gradient(model(0.8, weights), closure=True)(0.3, 9)
    h = 1e-5
    assert dx == pytest.approx((model(0.8, weights)(0.3 + h, 9) - model(0.8, weights)(0.3 - h, 9)) / (2 * h), rel=1e-7)
    by_stiffness = (model(0.8 + h, weights)(0.3, 9) - model(0.8 - h, weights)(0.3, 9)) / (2 * h)
    assert captured.stiffness == pytest.approx(by_stiffness, rel=1e-7)
    for place in range(3):
        moved = h * np.eye(3)[place]
        slope = (model(0.8, weights + moved)(0.3, 9) - model(0.8, weights - moved)(0.3, 9)) / (2 * h)
        assert captured.weights[place] == pytest.approx(slope, rel=1e-6)
    assert "_step_back(" in zg.gradient(model(0.8, weights)).source(0.3, 9)


def test_a_pullback_can_be_called_again():
    x1, x2, w = normal(3), normal(2, 3)[0], normal(4)

    def outputs(x1, x2, w):
        for i in range(len(w)):
            x1, x2 = half((x1, x2), w[i])
            x2 = shear(x2, x1, w[i])
        return x1, x2

    first, last = normal(3), normal(4)[:3]
    _, back = zg.pullback(outputs, x1, x2, w)
    given = [x1.copy(), x2.copy(), w.copy()]
    for each in (x1, x2, w):
        each[:] = 9.0
    for factor in (1.0, -2.0, 1.0):
        found = back((factor * first, factor * last))
        for number, (gradient, argument) in enumerate(zip(found, given, strict=True)):
            expected = np.zeros_like(argument)
            for index in np.ndindex(argument.shape):
                slopes = []
                for sign in (1.0, -1.0):
                    moved = [each.copy() for each in given]
                    moved[number][index] += sign * 1e-5
                    y1, y2 = outputs(*moved)
                    slopes.append(np.sum(first * y1) + np.sum(last * y2))
                expected[index] = factor * (slopes[0] - slopes[1]) / 2e-5
            np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_the_arguments_stay_and_a_result_may_be_changed():
    def outputs(x1, x2, w):
        for i in range(len(w)):
            x1 = shear(x1, x2, w[i])
            x2 = shear(x2, x1, w[i])
        return x1, x2

    given = [normal(3), normal(2, 3)[0], normal(4)]
    (y1, y2), back = zg.pullback(outputs, *given)
    before = back((np.ones(3), np.ones(3)))
    y1[:] = 7.0
    y2[:] = 7.0
    after = back((np.ones(3), np.ones(3)))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_single_precision():
    x1, x2, w = (normal(size).astype(np.float32) for size in (3, 3, 6))
    assert walks_back(passed_on, x1, x2, w)
    single = zg.gradient(passed_on)(x1, x2, w)
    double = zg.gradient(passed_on)(*(each.astype(np.float64) for each in (x1, x2, w)))
    for one, other in zip(single, double, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_from_compiled_code():
    derivative = zg.gradient(integrated)

    @numba.njit
    def sums(n):
        total = 0.0
        for i in range(n):
            total += derivative(0.1 * i, 0.2, 1.2, 0.1, 10)[0]
        return total

    expected = sum(derivative(0.1 * i, 0.2, 1.2, 0.1, 10)[0] for i in range(4))
    assert sums(4) == pytest.approx(expected, rel=1e-14)


def test_a_recursion_through_the_loop():
    check_functions(nested_runs, 0.3, 0.4, 2, tolerance=1e-6)


def nested_runs(x, w, depth):
    if depth == 0:
        return x * w
    for i in range(3):
        x = turn(x, nested_runs(w, w * i, depth - 1), i)
    return x


def test_the_step_itself_is_differentiated_with_respect_to_all():
    check_functions(lambda x, w: turn(x, w, 2) * w, 0.3, 0.4)
    check_functions(with_rule, 0.3, 0.4)


def test_an_integer_where_the_state_is_a_float_is_a_call_like_any_other():
    check_functions(lambda w: turn(1, w, 2), 0.4)


def test_an_inverse_given_later_is_used():
    def grow(x, w):
        return x * w

    def f(x, w, n):
        for _ in range(n):
            x = grow(x, w)
        return x

    derivative = zg.gradient(f, wrt="w")
    before = derivative(1.5, 1.1, 4)
    assert "_step_back(" not in derivative.source(1.5, 1.1, 4)
    zg.inverse(grow)(lambda y, w: y / w)
    assert "_step_back(" in derivative.source(1.5, 1.1, 4)
    assert derivative(1.5, 1.1, 4) == pytest.approx(before, rel=1e-12)


def test_states_are_those_that_are_walked_back():
    """A wrong inverse is believed: what it gives is where the derivative is taken."""

    def square(x):
        return x * x

    def f(x):
        for _ in range(1):
            x = square(x)
        return x

    zg.inverse(square)(lambda y: 5.0 + 0.0 * y)
    assert zg.gradient(f)(3.0) == 10.0
    with pytest.raises(DifferentiationError, match=r"`<lambda>` of `square` does not undo it: `x` is off by 2"):
        zg.check_inverse(square, 3.0)


def test_a_million_steps_take_no_memory(tmp_path):
    """In a process of its own, as the peak of a process never goes down."""
    program = """
import math, resource, numpy as np, zygote_py as zg

def leap(state, w, h):
    x, v = state
    v = v - 0.5 * h * w * np.sin(x)
    x = x + h * v
    return x, v - 0.5 * h * w * np.sin(x)

@zg.inverse(leap)
def back(state, w, h):
    x, v = state
    v = v + 0.5 * h * w * np.sin(x)
    x = x - h * v
    return x, v + 0.5 * h * w * np.sin(x)

def of_numbers(x, v, w, n, h):
    for _ in range(n):
        x, v = leap((x, v), w, h)
    return x * v

def of_arrays(x, v, w, n, h):
    for _ in range(n):
        x, v = leap((x, v), w, h)
    return np.sum(x * v)

x = np.full(50, 0.1)
numbers, arrays = zg.gradient(of_numbers), zg.gradient(of_arrays)
numbers(0.1, 0.0, 1.0, 10, 1e-5)
arrays(x, 0.0 * x, x, 10, 1e-5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
numbers(0.1, 0.0, 1.0, 10**6, 1e-5)
arrays(x, 0.0 * x, x, 10**6, 1e-5)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    pytest.importorskip("resource")
    script = tmp_path / "leap.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000  # in kilobytes


# ------------------------------------------------------------------------------------------------------ what is refused


def fresh():
    def step(x, w):
        return x + w

    return step


def varied(x, *rest):
    return x


def no_state():
    return 1.0


@zg.ignore
def ignored(x):
    return x


def of_one(y):
    return y


def of_two(y, w):
    return y - w


@pytest.mark.parametrize(
    ("step", "unstep", "message"),
    [
        (fresh(), of_one, r"the inverse `of_one` of `step` has 1 parameter, and `step` has 2"),
        (fresh(), lambda *x: x, r"the inverse `<lambda>` of `step` has the parameter `\*x`"),
        (fresh(), lambda y, *, w: y, r"the inverse `<lambda>` of `step` has the parameter `w`"),
        (fresh(), lambda y, w=2.0: y, r"the inverse `<lambda>` of `step` has another default for `w` than `step`"),
        (fresh(), math.sin, r"the inverse of `step`, .*, is no Python function"),
        (fresh(), 3, r"the inverse of `step`, 3, is no Python function"),
        (varied, of_one, r"`varied` takes any number of arguments"),
        (no_state, no_state, r"`no_state` takes no state"),
        (zg.stop_gradient, of_one, r"`stop_gradient` is a function of the library"),
        (turn, unturn, r"`turn` has an inverse already, `unturn` \(.*test_reversible.py:\d+\)"),
    ],
)
def test_bad_registrations_are_refused(step, unstep, message):
    with pytest.raises(DifferentiationError, match=message):
        zg.inverse(step)(unstep)
    check_functions(integrated, 0.4, 0.2, 1.2, 0.1, 3, tolerance=1e-6)


def test_what_cannot_have_an_inverse_is_refused():
    with pytest.raises(DifferentiationError, match="`ignored` is ignored"):
        zg.inverse(ignored)
    with pytest.raises(DifferentiationError, match="3 cannot be called"):
        zg.inverse(3)
    with pytest.raises(DifferentiationError, match="`of_one` has no inverse"):
        zg.check_inverse(of_one, 3.0)


def test_a_rule_with_a_bad_inverse_registers_neither():
    step = fresh()

    def rule(x, w):
        def back(dy):
            return dy, dy

        return x + w, back

    with pytest.raises(DifferentiationError, match=r"the inverse `of_one` of `step` has 1 parameter"):
        zg.adjoint(step, inverse=of_one)(rule)
    zg.adjoint(step)(rule)
    zg.inverse(step)(of_two)
    with pytest.raises(DifferentiationError, match=r"`step` has a rule already, `rule`"):
        zg.adjoint(step)(rule)
    with pytest.raises(DifferentiationError, match=r"`step` has an inverse already, `of_two`"):
        zg.inverse(step)(of_two)
    zg.inverse(step, replace=True)(of_two)
    zg.adjoint(step, replace=True)(rule)  # which leaves the inverse
    zg.check_inverse(step, 1.0, 2.0)


def writes_to_it(x, w):
    x[0] = w
    return x * w


def draws(x, w):
    return x * w + np.random.normal()


def another_type(x, w):
    return x * w * 1j


def of_a_list(x, w):
    return x * w[0]


@pytest.mark.parametrize(
    ("step", "unstep", "message"),
    [
        (writes_to_it, lambda y, w: y / w, r"`writes_to_it` has an inverse, and writes to its argument `x`"),
        (lambda x, w: x * w, writes_to_it, r"the inverse `writes_to_it` of `<lambda>` writes to its argument `x`"),
        (draws, lambda y, w: y / w, r"`draws` has an inverse, and draws random numbers"),
        (another_type, lambda y, w: y / w, r"`another_type` takes a state of type array\(float64, .*complex128"),
        (
            lambda x, w: x * w,
            lambda y, w: (y, w),
            r"`<lambda>` of `<lambda>` returns a value of type Tuple",
        ),
        (lambda x, w: x * w, lambda y, w: undefined(y), r"the inverse .* cannot be compiled for \(array"),  # noqa: F821
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_compiled(step, unstep, message):
    zg.inverse(step)(unstep)

    def f(x, w):
        return np.sum(np.abs(step(x, w)))

    with pytest.raises(DifferentiationError, match=message) as info:
        zg.gradient(f)(normal(3), 0.5)
    assert "test_reversible.py" in str(info.value)


def test_a_list_is_refused_by_name():
    zg.inverse(of_a_list)(lambda y, w: y / w[0])

    def f(x, w):
        return of_a_list(x, [w])

    with pytest.raises(DifferentiationError, match="`of_a_list` takes or returns a list"):
        zg.gradient(f)(0.3, 0.5)
