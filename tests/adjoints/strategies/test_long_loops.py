"""`checkpointed`: the gradient of the loop is what it is without, whatever the number of segments or snapshots."""

import math
import subprocess
import sys
import types as python_types

import numba
import numpy as np
import pytest

import zygote_py as zg
from tests.checking.derivatives import captured_by
from tests.checking.reference import central, distance
from tests.modes import one_in
from tests.plain import plain
from zygote_py import DifferentiationError
from zygote_py.adjoints import iterations_before

pytestmark = pytest.mark.interpreted

SEGMENTS = SNAPSHOTS = None  # the tests give the functions others
HOW = [(None, None), (1, None), (3, None), (None, 1), (None, 2), (None, 5)]


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
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):  # noqa: B007
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
    for v, k in zg.checkpointed(zip(u, range(n)), SEGMENTS, SNAPSHOTS):  # noqa: B905
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


def integers_and_truth_values(u, places, n):
    x = u[0]
    marks = u > 0.0
    order = np.arange(3)
    for i in zg.checkpointed(range(n), SEGMENTS, SNAPSHOTS):
        x = math.sin(x) * u[places[i % 3]] + u[order[0]]
        places[i % 3] = (places[i % 3] + i) % 3
        marks[i % 3] = not marks[i % 3]
        order = (order + i) % 3
        if marks[0]:
            x = x * 1.1
    return x * places[1] + order[0]


def over_places(u, places, n):
    x = u[0]
    for k in zg.checkpointed(places, SEGMENTS, SNAPSHOTS):
        x = math.sin(x) * u[k] + n
    return x


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
    (over_places, (normal(3), np.array([2, 0, 1, 1, 2]), 2)),
]


def with_checkpoints(program, segments, snapshots):
    """The program with other globals."""
    here = {**globals(), "SEGMENTS": segments, "SNAPSHOTS": snapshots}
    return python_types.FunctionType(program.__code__, here, program.__name__)


TRIED = [(*case, how) for k, case in enumerate(CASES) for how in (HOW if k % 2 else HOW[::-1])]


@pytest.mark.parametrize(
    ("program", "args", "how"), one_in(5, TRIED), ids=[f"{case[0].__name__}-{case[2]}" for case in TRIED]
)
def test_in_plain_python(program, args, how):
    derivative = zg.value_and_gradient(with_checkpoints(program, *how))
    expected = central(program, *args)
    value, gradient = plain(derivative.source(*args))(*args, *captured_by(derivative))
    assert value == expected.value
    assert distance(gradient, expected.gradients) < 1e-6


@pytest.mark.parametrize("how", HOW, ids=str)
def test_arrays_of_integers_and_truth_values(how):
    u, places = normal(3), np.array([0, 2, 1])
    expected = central(lambda u: integers_and_truth_values(u, places.copy(), 6), u)
    derivative = zg.value_and_gradient(with_checkpoints(integers_and_truth_values, *how))
    there, given = places.copy(), places.copy()
    integers_and_truth_values(u, there, 6)
    value, gradient = plain(derivative.source(u, places, 6))(u, given, 6, *captured_by(derivative))
    assert value == expected.value
    assert distance(gradient[:1], expected.gradients) < 1e-6
    np.testing.assert_array_equal(given, there)


COMPILED = [
    (numbers, (0.4, 1.2, 11)),
    (left_in_a_branch, (1.1, 30)),
    (in_place, (normal(5), 0.3, 7)),
    (two_new_arrays, (normal(3), 0.7, 6)),
    (history, (normal(2), 0.7, 6)),
    (nested, (0.4, 0.9, 5)),
]


@pytest.mark.parametrize("how", [(None, None), (None, 2)], ids=str)
@pytest.mark.parametrize(("program", "args"), COMPILED, ids=lambda each: getattr(each, "__name__", ""))
def test_compiled(program, args, how):
    function = with_checkpoints(program, *how)
    expected = central(program, *args)
    value, gradient = zg.value_and_gradient(function)(*args)
    assert value == pytest.approx(expected.value, rel=1e-14)
    assert distance(gradient, expected.gradients) < 1e-6


def test_the_function_itself_compiles():
    def f(u, n):
        s = 0.0
        for v, k in zg.checkpointed(zip(u, range(n)), segments=3):  # noqa: B905
            s += v * k
        for v in zg.checkpointed(u, 2):
            s += v
        for i in zg.checkpointed(range(n), snapshots=n):
            s += i
        return s

    u = np.arange(4.0)
    assert numba.njit(f)(u, 3) == f(u, 3) == 2 * u[2] + u[1] + np.sum(u) + 3


@pytest.mark.parametrize("how", [(None, None), (None, 3)], ids=str)
def test_a_pullback_can_be_called_again(how):
    u, w = normal(5), 0.3
    function = with_checkpoints(in_place, *how)
    value, back = zg.pullback(function, u, w, 9)
    expected = central(in_place, u, w, 9)
    assert value == pytest.approx(expected.value)
    u[:] = 0.0
    for factor in (1.0, -2.0, 1.0):
        du, dw, none = back(factor)
        assert none is None
        np.testing.assert_allclose(du, factor * expected.gradients[0], rtol=1e-6, atol=1e-9)
        assert dw == pytest.approx(factor * expected.gradients[1], rel=1e-6)


def test_the_caller_sees_what_the_loop_wrote():
    def f(u, n):
        for i in zg.checkpointed(range(n), segments=2):
            u[i % 3] = u[i % 3] * u[(i + 1) % 3]
        return u[0]

    u, there = normal(3), normal(3)
    value, _ = zg.value_and_gradient(f)(u, 7)
    assert value == f(there, 7)
    np.testing.assert_array_equal(u, there)


def test_the_records_of_a_million_steps_are_small(tmp_path):
    """In a process of its own, as the peak of a process never goes down."""
    program = """
import math, resource, zygote_py as zg

def pendulum(x, v, w, n, h):
    for _ in zg.checkpointed(range(n)):
        a1 = -w * math.sin(x)
        a2 = -w * math.sin(x + 0.5 * h * v)
        a3 = -w * math.sin(x + 0.5 * h * v + 0.25 * h * h * a1)
        a4 = -w * math.sin(x + h * v + 0.5 * h * h * a2)
        x, v = x + h * v + h * h * (a1 + a2 + a3) / 6, v + h * (a1 + 2 * a2 + 2 * a3 + a4) / 6
    return x * v

gradient = zg.gradient(pendulum)
gradient(0.1, 0.0, 1.0, 10, 1e-5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
gradient(0.1, 0.0, 1.0, 10**6, 1e-5)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    pytest.importorskip("resource")
    script = tmp_path / "pendulum.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 5000  # in kilobytes


def test_a_schedule_is_as_good_as_the_best():
    """The fewest runs of iterations with `s` snapshots: t n - (s + t)! / ((s + 1)! (t - 1)!), Griewank and Walther."""

    def runs(n, s, known={}):  # noqa: B006
        if n < 2:
            return 0
        if (n, s) not in known:
            before = iterations_before(n, s)
            assert 1 <= before < n
            known[n, s] = before + runs(n - before, s - 1) + runs(before, s)
        return known[n, s]

    for s in range(1, 7):
        for n in range(2, 200):
            t = next(t for t in range(1, n + 1) if math.comb(s + t, s) >= n)
            assert runs(n, s) == t * n - math.comb(s + t, t - 1)


def draws(x, n):
    for _ in zg.checkpointed(range(n)):
        x = x * np.random.rand()
    return x


def appends(x, n):
    values = [x]
    for _ in zg.checkpointed(range(n)):
        values.append(math.sin(values[-1]))
    return values[-1]


def swaps(u, n):
    u = u.copy()
    v = u * 1.0
    for _ in zg.checkpointed(range(n)):
        v[0] = math.sin(u[0])
        u, v = v, u
    return u[0]


def one_of_two_written_behind(u, n):
    before = u * 1.0
    v = before
    for _ in zg.checkpointed(range(n), snapshots=2):
        v = np.sin(v)
    behind = u * 2.0
    either = before if u[0] > 0.0 else behind
    either[0] = 5.0
    return np.sum(v) + either[0]


def written_in_the_next_round(u, n):
    new = u * 1.0
    v = u * 1.0
    total = 0.0
    for k in range(3):
        old = new
        new = u * (k + 1.0)
        old[0] = 7.0
        total += np.sum(v)
        v = new
        for _ in zg.checkpointed(range(n), snapshots=2):
            v = np.sin(v)
    return total


def gives_what_it_has(a, n):
    if n < 0:
        return gives_what_it_has(a, -n)
    for _ in zg.checkpointed(range(n), snapshots=2):
        a = np.sin(a)
    return a


def written_by_the_caller(u, n):
    u = u * 1.0
    v = gives_what_it_has(u, n)
    v[0] = 2.0
    return np.sum(v) * u[0]


def written_behind(u, n):
    v = u
    for _ in zg.checkpointed(range(n)):
        v = np.sin(v)
    v[0] = 2.0
    return v[1] * u[0]


def both(x, n):
    for _ in zg.checkpointed(range(n), segments=2, snapshots=3):
        x = math.sin(x)
    return x


def no_segments(x, n):
    for _ in zg.checkpointed(range(n), segments=0):
        x = math.sin(x)
    return x


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (draws, "draws random numbers"),
        (appends, "uses `values`, which is neither a number nor an array"),
        (swaps, "gives `u` another array|gives `v` another array"),
        (one_of_two_written_behind, "gives `v` another array, to which something is written"),
        (written_in_the_next_round, "gives `v` another array, to which something is written"),
        (written_by_the_caller, "`gives_what_it_has` may return one of its arguments"),
        (written_behind, "gives `v` another array, to which something is written"),
        (both, "segments or snapshots, not both"),
        (no_segments, "`segments` must be at least 1"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_refused(function, says):
    x = normal(3) if function.__code__.co_varnames[0] == "u" else 0.5
    with pytest.raises(DifferentiationError, match=says) as error:
        zg.gradient(function)(x, 3)
    assert "test_long_loops.py" in str(error.value)


def test_bad_numbers():
    def f(x, n, k, s):
        for _ in zg.checkpointed(range(n), segments=k):
            x = math.sin(x)
        for _ in zg.checkpointed(range(n), snapshots=s):
            x = math.sin(x)
        return x

    gradient = zg.gradient(f)
    for k, s in ((0, 1), (1, 0), (-3, 2)):
        with pytest.raises(ValueError, match="at least 1"):
            gradient(0.5, 3, k, s)
        with pytest.raises(ValueError, match="at least 1"):
            f(0.5, 3, k, s)
    assert gradient(0.5, 3, 1, 1)[0] == pytest.approx(central(f, 0.5, 3, 1, 1).gradients[0])
    assert gradient(0.5, 0, 10**6, 10**6)[0] == 1.0
    with pytest.raises(ValueError, match="not both"):
        zg.checkpointed(range(3), 1, 1)
