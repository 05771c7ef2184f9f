"""The model of a grid on which random kernels run: its log finds races, and it computes what Numba's simulator does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import config, cuda, float64

from tests.modes import one_in
from zygote_py import adjoint_kernel

if not config.ENABLE_CUDASIM:
    pytest.skip("the model stands in for the simulator, which is off", allow_module_level=True)

from tests.kernels.random_kernels.case import Array, Case, load
from tests.kernels.random_kernels.check import Kind, check
from tests.kernels.random_kernels.families import generate
from tests.kernels.random_kernels.races import Log, Thread
from tests.kernels.random_kernels.simulator import ORDERS, threads_in
from tests.kernels.test_adjoint_kernel_cuda import TILE, product, softmax, some, tree


def races(kernel, grid, *args):
    log = Log()
    with threads_in("in order", log):
        kernel[grid](*(cuda.to_device(each) if isinstance(each, np.ndarray) else each for each in args))
    return {(race.array, frozenset({race.kind, race.other_kind})) for race in log.races}


@cuda.jit
def add_to_one(dx):
    dx[0] += 1.0


@cuda.jit
def add_atomically(dx):
    cuda.atomic.add(dx, 0, 1.0)


@cuda.jit
def read_next(x, out):
    i = cuda.grid(1)
    x[i] = 2.0
    out[i] = x[(i + 1) % x.size]


@cuda.jit
def read_next_after_a_barrier(x, out):
    i = cuda.grid(1)
    x[i] = 2.0
    cuda.syncthreads()
    out[i] = x[(i + 1) % x.size]


@cuda.jit
def read_a_sum(x, out):
    cuda.atomic.add(x, 0, 1.0)
    out[cuda.grid(1)] = x[0]


@cuda.jit(device=True)
def set_first(view):
    view[0] = 1.0


@cuda.jit
def through_a_view(x):
    set_first(x[cuda.grid(1) // 2 :])


@cuda.jit
def in_shared_memory(out):
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    s[t] = 1.0
    out[cuda.grid(1)] = s[3 - t]


def test_threads_that_meet_are_found():
    write, mixed, atomic = frozenset({"write"}), frozenset({"read", "write"}), frozenset({"read", "atomic"})
    x, out = np.zeros(8), np.zeros(8)
    assert races(add_to_one, (1, 4), x) == {("dx", write), ("dx", mixed)}
    assert races(add_to_one, (4, 1), x) == {("dx", write), ("dx", mixed)}  # blocks, too
    assert races(add_to_one, (1, 1), x) == set()
    assert races(add_atomically, (2, 4), x) == set()
    assert races(read_next, (1, 8), x, out) == {("x", mixed)}
    assert races(read_next_after_a_barrier, (1, 8), x, out) == set()
    assert races(read_next_after_a_barrier, (2, 4), x, out) == {("x", mixed)}  # it is a barrier of a block
    assert races(read_a_sum, (1, 4), x, out) == {("x", atomic)}
    assert races(through_a_view, (1, 4), x) == {("x", write)}
    ((name, kinds),) = races(in_shared_memory, (2, 4), out)
    assert "shared array" in name
    assert kinds == mixed


def test_a_race_names_its_threads():
    log = Log()
    with threads_in("in order", log):
        add_to_one[(1, 2), (1, 2)](cuda.to_device(np.zeros(1)))
    assert {race.thread for race in log.races} <= {Thread(b, t) for b in range(2) for t in range(2)}
    assert all(race.thread != race.other for race in log.races)


# The check of a random kernel finds what is wrong

SUM = """import math
from numba import cuda, float64


@cuda.jit
def kernel(x, out, n, reps, s):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = math.sin(x[0]) * x[i] + s
"""
CASE = Case(
    SUM, ((2,), (4,)), {"x": Array("float", (7,)), "out": Array("float", (7,))}, ("x", "out", "n", "reps", "s"), 7
)


class Changed:
    """An adjoint whose text is changed."""

    def __init__(self, kernel, old, new):
        self.adjoint, self.old, self.new = adjoint_kernel(kernel), old, new

    def __getitem__(self, grid):
        def launch(*args):
            text = self.adjoint.source(*args, threads=grid[1])
            assert self.old in text, text
            load(text.replace(self.old, self.new).replace("def kernel_adjoint(", "def kernel("))[grid](*args)

        return launch


@pytest.mark.parametrize(
    ("old", "new", "found"),
    one_in(
        2,
        [
            ("cuda.atomic.add(dx, 0, ", "dx[0] += (", "a race, in order: Race(array='dx'"),
            ("cuda.atomic.add(dx, i, ", "dx[i] += (", "a race, in order: Race(array='dx'"),
            ("math.cos(", "1.001 * math.cos(", "a gradient, in order: `dx[0]`"),
            ("dout[i] = 0.0", "dout[i] = dt", "a gradient, in order: `dout"),
            (" = 0.0", " = 0.0\n        out[i] += 1.0", "a value, in order: `out`"),
        ],
    ),
)
def test_a_wrong_adjoint_is_found(old, new, found):
    assert check(CASE).kind is Kind.OK
    outcome = check(CASE, make_adjoint=lambda kernel: Changed(kernel, old, new))
    assert outcome.kind is Kind.WRONG
    assert outcome.detail.startswith(found)


def test_a_kernel_whose_threads_race_is_discarded():
    racing = SUM.replace("x[i] + s", "x[i] + s\n        x[0] = 1.0")
    outcome = check(Case(racing, CASE.grid, CASE.arrays, CASE.parameters, 7))
    assert outcome.kind is Kind.DISCARDED
    assert outcome.detail == "the threads of the kernel race"


def test_a_kernel_that_reads_what_it_has_not_set_is_discarded():
    text = SUM.replace("    if i", "    a = cuda.shared.array(3, float64)\n    if i").replace("+ s", "+ a[0]")
    outcome = check(Case(text, CASE.grid, CASE.arrays, CASE.parameters, 7))
    assert outcome.detail == "the kernel makes infinite values, or reads what it has not set"


# The model


@cuda.jit(device=True)
def publish(s, t, value):
    s[t] = value
    cuda.syncthreads()


@cuda.jit(device=True)
def sum_of_block(value):
    s = cuda.shared.array(4, float64)
    publish(s, cuda.threadIdx.x, value)
    return s[0] + s[1] + s[2] + s[3]


@cuda.jit
def with_device_functions(x, out):
    i = cuda.grid(1)
    out[i] = sum_of_block(x[i]) * math.sin(x[i])


@pytest.mark.parametrize("order", ORDERS)
def test_barriers_in_device_functions(order):
    x, out = some(8), cuda.to_device(np.zeros(8))
    with threads_in(order, log := Log()):
        with_device_functions[2, 4](x, out)
    np.testing.assert_allclose(out.copy_to_host(), np.repeat(x.reshape(2, 4).sum(1), 4) * np.sin(x), rtol=1e-14)
    assert not log.races


@pytest.mark.parametrize(
    ("kernel", "grid", "arrays"),
    one_in(
        3,
        [
            (softmax, (3, 4), [some(12) + np.arange(12.0), some(12)]),
            (tree, (2, 8), [some(13), some(2)]),
            (product, ((2, 2), (TILE, TILE)), [some(5, 4), some(4, 6), some(5, 6)]),
        ],
    ),
)
def test_the_model_computes_what_the_simulator_does(kernel, grid, arrays):
    def run():
        given = [cuda.to_device(each) for array in arrays for each in (array, np.ones_like(array))]
        adjoint_kernel(kernel)[grid](*given)
        return [each.copy_to_host() for each in given]

    expected = run()
    for order in ORDERS:
        with threads_in(order):
            found = run()
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@cuda.jit
def meet_in_part(x, out):
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.syncthreads()


def test_threads_that_do_not_come_to_a_barrier():
    for kernel, is_left_out in ((meet_in_part, True), (read_next_after_a_barrier, False)):
        with threads_in("in order", log := Log()):
            kernel[1, 4](cuda.to_device(np.zeros(4)), cuda.to_device(np.zeros(4)))
        assert log.has_left_out == is_left_out


LEAVES = """import math
from numba import cuda, float64


@cuda.jit
def kernel(x, out, acc, n, reps, s):
    i, t = cuda.grid(1), cuda.threadIdx.x
    a = cuda.shared.array(4, float64)
    if i >= n:
        return
    a[t] = math.sin(x[i])
    cuda.syncthreads()
    v = a[0] * x[i]
    cuda.syncthreads()
    a[t] = v * a[t]
    cuda.syncthreads()
    out[i] = a[t] * a[0]
    cuda.atomic.add(acc, 0, v)
"""


def test_threads_that_return_at_the_start():
    arrays = {"x": Array("float", (6,)), "out": Array("float", (6,)), "acc": Array("float", (1,))}
    case = Case(LEAVES, ((2,), (4,)), arrays, ("x", "out", "acc", "n", "reps", "s"), 6)
    outcome = check(case)
    assert outcome.kind is Kind.OK, outcome.detail


def test_a_random_kernel_is_right():
    assert check(generate(7), 7).kind is Kind.OK
