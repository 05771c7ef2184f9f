"""The lowering of emitted functions computes what Numba's own does, with the same errors, and frees the same arrays."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
from numba.core import event, ir, postproc
from numba.core.compiler import run_frontend
from numba.core.runtime import _nrt_python, rtsys

from tests.modes import one_in
from zygote_py import gradient
from zygote_py.numba_adapter.base import quick_liveness
from zygote_py.numba_adapter.emitted.edges import separate_deaths
from zygote_py.numba_adapter.emitted.linear_ssa import make_ssa
from zygote_py.numba_adapter.emitted.lowering import lower
from zygote_py.numba_adapter.emitted.lowering.registers import kept_in_registers
from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline

pytestmark = pytest.mark.compiled


def made_in_loops(n):
    total = 0.0
    for i in range(n):
        a = np.ones(i + 1)
        if i % 3 == 0:
            continue
        b = a
        a = np.zeros(2)
        a[-1] = b[i]
        total += a[1] + b[0]
        if total > 12.0:
            break
    else:
        return total
    return total + a[-1]


def on_one_way(n):
    if n > 2:
        a = np.full(3, 2.0)
        if n > 4:
            return a[n % 3]
        total = a[0]
    else:
        total = 1.0
    for i in range(n):
        if i > 3:
            return total
        for j in range(i):
            total += i * j
    return total


def of_exchanged(n):
    a, b = np.zeros(2), np.ones(2)
    for i in range(n):
        a, b = b, a
        if i == 3:
            a = a.copy()
        a[i % 2] += b[0] + 1.0
    c = a if n > 2 else b
    return a[0] + 2.0 * b[0] + 4.0 * c[1]


def of_lists(n):
    kept = [np.zeros(1)]
    for i in range(n):
        new = np.full(2, float(i))
        kept.append(new)
        if i > 2:
            kept.pop()
    t = (kept[-1], n)
    return t[0][0] + len(kept) + t[1]


def with_handler(n):
    total = 0.0
    for i in range(n):
        a = np.ones(2)
        try:
            if i == 2:
                raise ValueError("two")
            total += a[0]
        except Exception:
            total += 10.0 * a[1]
    return total


def of_views(n):
    a = np.arange(12.0).reshape(3, 4)
    total = 0.0
    for i in range(n % 4):
        for j in range(n % 3):
            row = a[i % 3]
            row[j] += 1.0
            total += a.T[j, i % 3] + row[-1] + a[::2, 1:][-1, -1]
    return total


def used_up_on_two_ways(n):
    a = np.full(3, 2.0)
    total = 0.0
    if n > 2:
        for i in range(n):
            total += a[i % 3]
    else:
        for i in range(n):
            for j in range(3):
                total -= a[j] * i
    b = np.ones(2)
    return total + b[n % 2]


def handed_on(n):
    if n < 3:
        a = np.zeros(3)
    else:
        a = np.ones(3)
        for i in range(n):
            a[i % 3] += i
    return a[0] + a[n % 3]


@pytest.mark.parametrize(
    "f", [made_in_loops, on_one_way, of_exchanged, of_lists, with_handler, of_views, used_up_on_two_ways, handed_on]
)
def test_variables(f):
    compiled = numba.njit(f, pipeline_class=EmittedPipeline)
    compiled(1)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for n in range(9):
            assert compiled(n) == f(n), n
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc > before.alloc or f is on_one_way
    assert after.alloc - before.alloc == after.free - before.free


def counted(start, stop, step):
    found = [0]
    for i in range(stop):
        found.append(i)
        i += 7
        if len(found) > 20:
            break
    for i in range(start, stop):
        if len(found) > 40:
            break
        for j in range(i, start - 3, -1):
            found.append(100 * i + j)
            if j < i - 2:
                break
        else:
            found.append(-1)
    for i in range(start, stop, step):
        found.append(i)
        if len(found) > 80:
            break
    last = -5
    for last in range(stop, start, -1):
        found.append(last)
        if len(found) > 100:
            break
    twice = range(start, stop)
    total = len(twice)
    for i in twice:
        for j in twice:
            total += i - 2 * j
            if total > 1000 or total < -1000:
                return found, total, last
    return found, total, last


EXTREME = 2**63 - 1


@pytest.mark.parametrize(
    "bounds",
    [(0, 4, 1), (3, 3, -1), (5, -2, -2), (-3, 2, 3), (EXTREME - 2, EXTREME, 1), (-EXTREME - 1, -EXTREME + 1, 1)],
    ids=repr,
)
def test_ranges(bounds):
    compiled = numba.njit(counted, pipeline_class=EmittedPipeline)
    assert compiled(*bounds) == numba.njit(counted)(*bounds)
    for kind in (np.int32, np.int8):
        if max(map(abs, bounds)) < 100:
            assert compiled(*map(kind, bounds)) == counted(*bounds)


def test_a_range_without_a_step():
    compiled = numba.njit(counted, pipeline_class=EmittedPipeline)
    with pytest.raises(ValueError, match="must not be zero"):
        compiled(0, 3, 0)


def element(a, i, value):
    before = a[i]
    a[i] = value
    return before


ARRAYS = [
    np.arange(6.0),
    np.arange(12.0)[::2],
    np.arange(6, dtype=np.int32),
    np.arange(6, dtype=np.uint8),
    np.array([True, False, True, True, False, True]),
    np.arange(6) * (1.0 + 2.0j),
    np.arange(6, dtype=np.complex64),
    np.arange(6, dtype=np.float32),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype} {array.strides}")
def test_elements(array):
    compiled = numba.njit(element, pipeline_class=EmittedPipeline)
    for index in (0, 3, 5, -1, -6, np.uint64(2), np.int8(-2), np.uint8(3)):
        expected, found = array.copy(), array.copy()
        if array.strides[0] != array.itemsize:
            found = np.arange(12.0)[::2]
        value = array.dtype.type(1)
        assert compiled(found, index, value) == element(expected, index, value)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("order", ["C", "F", "A"])
def test_elements_of_matrices(order):
    compiled = numba.njit(element, pipeline_class=EmittedPipeline)
    for index in itertools.product((0, -1, np.uint8(1)), (2, -4, np.int16(3))):
        expected = np.arange(12.0).reshape(3, 4)
        found = np.zeros((6, 8))[::2, ::2] if order == "A" else np.zeros((3, 4), order=order)
        found[:] = expected
        assert compiled(found, index, 7.5) == element(expected, index, 7.5)
        np.testing.assert_array_equal(found, expected)


def test_elements_are_converted():
    compiled = numba.njit(element, pipeline_class=EmittedPipeline)
    for array, value in ((np.zeros(3, np.int64), 2.75), (np.zeros(3, np.float32), math.pi), (np.zeros(3), True)):
        expected = array.copy()
        assert compiled(array, 1, value) == element(expected, 1, value)
        np.testing.assert_array_equal(array, expected)


def test_arrays_of_records_and_of_misaligned_numbers():
    compiled = numba.njit(element, pipeline_class=EmittedPipeline)
    bytes_ = np.zeros(25, np.uint8)
    array = bytes_[1:].view(np.float64)
    assert compiled(array, 1, 2.5) == 0.0
    assert array[1] == 2.5
    records = np.zeros(2, np.dtype([("x", np.float64), ("n", np.int64)], align=True))
    read = numba.njit(lambda a, i: a[i].x + a[i].n, pipeline_class=EmittedPipeline)
    records[1] = 1.5, 2
    assert read(records, -1) == 3.5


@pytest.mark.parametrize("index", [3, -4, (1, 3), (-3, 0), np.uint64(9)], ids=repr)
def test_bounds_are_checked_where_that_is_asked_for(index):
    compiled = numba.njit(element, boundscheck=True, pipeline_class=EmittedPipeline)
    array = np.zeros((2, 3) if isinstance(index, tuple) else 3)
    with pytest.raises(IndexError, match="index is out of bounds"):
        compiled(array, index, 1.0)


def test_arrays_that_must_not_be_written():
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.raises(numba.TypingError, match=r"[Cc]annot modify readonly array"):
        numba.njit(element, pipeline_class=EmittedPipeline)(array, 0, 1.0)


def constant_indices(a, b):
    a[0] = b[1, 2] + a[-1]
    b[0, -1] = a[1]
    return a[0] + b[0, 2]


def test_constant_indices():
    compiled = numba.njit(constant_indices, pipeline_class=EmittedPipeline)
    args = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    expected = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    assert compiled(*args) == constant_indices(*expected)
    for found, known in zip(args, expected, strict=True):
        np.testing.assert_array_equal(found, known)


def allocations(n, a, m):
    x = np.empty((n, m), np.float32)
    x[:] = 1.0
    y = np.empty_like(a)
    y[...] = 2.0
    return x, np.zeros(n), np.zeros((n, 2, m), np.complex128), np.zeros(m, np.bool_), np.zeros_like(a), y


MATRIX = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("a", one_in(2, [MATRIX, MATRIX.copy("F"), MATRIX[::2, ::3], np.float32([1.0]), np.array(1.0)]))
def test_allocations(a):
    compiled, by_numba = numba.njit(allocations, pipeline_class=EmittedPipeline), numba.njit(allocations)
    for n, m in ((2, 3), (0, 1)):
        for found, expected in zip(compiled(n, a, m), by_numba(n, a, m), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
            assert found.flags.writeable
            assert found.ctypes.data % 64 == 0  # a vector of eight floats lies in one line of the cache


def without_elements(n):
    a, b = np.empty(0), np.zeros((2, 0, 3), np.float32)
    if n > 0:
        a = np.ones(n)
    return a, b, b.T, a[:0], np.append(a, np.empty(0)), a.sum() + len(b[0])


def test_arrays_without_elements():
    compiled = numba.njit(without_elements, pipeline_class=EmittedPipeline)
    for n in (0, 2):
        for found, expected in zip(compiled(n), without_elements(n), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert (np.shape(found), np.asarray(found).dtype) == (np.shape(expected), np.asarray(expected).dtype)
    with pytest.raises(ValueError, match="negative dimensions"):
        numba.njit(lambda: np.zeros((0, -1)), pipeline_class=EmittedPipeline)()


def test_allocations_compile_no_functions():
    compiled = []
    numba.njit(pipeline_class=EmittedPipeline)(allocations)(2, MATRIX, 3)  # what else it needs is compiled now

    class Compilations(event.Listener):
        def on_start(self, event):
            compiled.append(event.data["dispatcher"])

        def on_end(self, event):
            pass

    def zeros(n, a):
        return np.zeros(n), np.zeros_like(a), np.empty((n, n), np.int64), max(n, 2), min(a[0], 1.0)

    with event.install_listener("numba:compile", Compilations()):
        numba.njit(pipeline_class=EmittedPipeline)(zeros)(2, np.ones(3))
    assert [dispatcher.py_func.__name__ for dispatcher in compiled] == ["zeros"]


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        ((-1, 2), "negative dimensions not allowed"),
        ((2, -1), "negative dimensions not allowed"),
        ((2**40, 2**40), "array is too big"),
        ((2**61, 1), "array is too big"),
    ],
)
def test_shapes_of_no_array(shape, error):
    for f in (lambda s: np.zeros(s), lambda s: np.empty(s, np.float64), lambda s: np.zeros(s[0] * s[1] if 0 else s)):
        with pytest.raises(ValueError, match=error):
            numba.njit(f, pipeline_class=EmittedPipeline)(shape)


@pytest.mark.parametrize("fastmath", [False, {"contract"}])
def test_the_larger_and_the_smaller(fastmath):
    def f(a, b):
        return max(a, b), min(a, b), max(b, 1), min(0.5, a)

    theirs = numba.njit(f, fastmath=fastmath)
    ours = numba.njit(f, fastmath=fastmath, pipeline_class=EmittedPipeline)
    values = [0.0, -0.0, math.nan, 1.0, math.inf, -math.inf, 0.5, 3, -2, True]
    for a, b in itertools.product(values, repeat=2):
        assert repr(ours(a, b)) == repr(theirs(a, b)), (a, b)


def test_functions_of_numbas_within_are_compiled_by_numba():
    def f(x):
        return np.median(x) + np.linspace(0.0, 1.0, 5)[2] + np.full(2, 3.0)[1]

    assert numba.njit(f, pipeline_class=EmittedPipeline)(np.arange(5.0)) == f(np.arange(5.0))


def test_in_parallel():
    def f(n):
        a = np.zeros(n)
        for i in numba.prange(n):
            a[i] = max(i, 2) + np.zeros(2)[1]
        return a

    np.testing.assert_array_equal(numba.njit(f, parallel=True, pipeline_class=EmittedPipeline)(5), [2, 2, 2, 3, 4])


def test_which_variables_are_values():
    def f(n):
        a = np.zeros(n)
        total = 0.0
        for i in range(n):
            b = np.zeros(2)
            if i > 1:
                total += a[i] + b[0]
        return total

    blocks = run_frontend(f, emit_dels=False).blocks
    make_ssa(blocks)
    kept = kept_in_registers(blocks, lambda name: name in ("a", "b"))
    assert {"a", "n"} <= kept  # nothing deletes `a`, and it is assigned once
    assert "b" not in kept  # the array of the last iteration has to be freed where it is assigned again


def test_an_array_that_two_ways_use_last_is_a_value():
    def kept(separate):
        func_ir = run_frontend(used_up_on_two_ways)
        with quick_liveness():
            if separate:
                separate_deaths(func_ir, lambda name: name == "a")
            postproc.PostProcessor(func_ir).run(emit_dels=True)
        return kept_in_registers(func_ir.blocks, lambda name: name == "a")

    assert "a" not in kept(False)  # one way deletes it, and the block where both meet, for the other
    assert "a" in kept(True)


def test_a_loop_does_not_hand_on_its_arrays_in_each_iteration(monkeypatch):
    found = []

    def watched(blocks, counts_references):
        found.append(dict(blocks))
        return kept_in_registers(blocks, counts_references)

    monkeypatch.setattr(lower, "kept_in_registers", watched)
    compiled = numba.njit(handed_on, pipeline_class=EmittedPipeline)
    assert [compiled(n) for n in range(6)] == [handed_on(n) for n in range(6)]
    (blocks,) = found
    heads = [block for block in blocks.values() if any(each.op == "iternext" for each in block.find_exprs())]
    copied = [
        each.value.name for head in heads for each in head.find_insts(ir.Assign) if isinstance(each.value, ir.Var)
    ]
    assert len(heads) == 1
    assert not [name for name in copied if name.startswith("a")]


@pytest.mark.optimised
def test_loops_over_repeated_axes_are_not_unrolled():
    text = gradient(lambda x, y: np.sum(x / y)).inspect_llvm(np.ones(3), np.ones(1))
    assert "vector.body" in text
    assert ".prol" not in text  # the rounds before those that are unrolled


def of_complex(a, b):
    c = a * b + a
    c *= b
    c -= a
    return a * b, a + b, a - b, c, c * 2, c + 1.5


@pytest.mark.parametrize("kind", [np.complex128, np.complex64])
def test_sums_and_products_of_complex_numbers(kind):
    compiled, by_numba = numba.njit(of_complex, pipeline_class=EmittedPipeline), numba.njit(of_complex)
    numbers = [1.5 - 2.0j, -0.25 + 1e-30j, complex(math.inf, 1.0), complex(0.0, -0.0), complex(math.nan, 2.0)]
    for a, b in itertools.product(map(kind, numbers), repeat=2):
        for found, expected in zip(compiled(a, b), by_numba(a, b), strict=True):
            assert type(found) is type(expected)
            np.testing.assert_array_equal([found.real, found.imag], [expected.real, expected.imag])
            assert math.copysign(1.0, found.real) == math.copysign(1.0, expected.real) or found.real != 0.0


def put_back(a):
    saved = a.copy()
    for i in range(len(a)):
        a[i] = -1.0
    a[:] = saved
    saved[0] *= 2.0
    total = a.sum()
    a[:] = saved
    return total


def put_into_another(a, b):
    saved = a.copy()
    b[:] = saved


def put_into_the_last(a, b):
    saved = a.copy()
    if len(a) > 2:
        a = b
    a[:] = saved


STORED = [
    np.arange(5.0),
    np.arange(9.0)[::-2],
    MATRIX.copy(),
    np.asfortranarray(MATRIX),
    MATRIX[::2, ::-3].copy().T,
    np.empty((0, 3)),
    np.arange(6, dtype=np.float32).reshape(1, 2, 3),
    np.arange(24.0).reshape(2, 3, 4)[:, ::2],
]


@pytest.mark.parametrize("a", STORED, ids=lambda array: f"{array.dtype}{array.shape}")
def test_stores_of_copies(a):
    compiled = numba.njit(put_back, pipeline_class=EmittedPipeline)
    wide = np.stack([a, a], axis=-1)[..., 0] if a.ndim > 1 else a.copy()  # with gaps between the elements
    for given in (a.copy(), wide):
        if not given.size:
            compiled(given)
            continue
        expected = given.copy()
        assert compiled(given) == pytest.approx(put_back(expected))
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("function", [put_into_another, put_into_the_last])
def test_a_store_of_a_copy_of_another_array(function):
    compiled = numba.njit(function, pipeline_class=EmittedPipeline)
    a, b = np.arange(3.0), np.zeros((2, 3)) if function is put_into_another else np.zeros(3)
    compiled(a, b)
    np.testing.assert_array_equal(b, np.broadcast_to(a, b.shape))
    with pytest.raises(ValueError, match="cannot assign slice"):
        compiled(a, np.zeros(4))


@numba.njit(fastmath=True)
def at_most_one(x):
    total = 0.0
    for i in range(3):
        total += min(x * i, 1.0) * x
    return total


def test_the_smaller_number_in_functions_with_and_without_fastmath():
    def f(x):
        least, total = min(x, 2.0), 0.0
        for i in range(4):
            total += at_most_one(x + i) * least
        return total + at_most_one(x) * at_most_one(2.0 * x)

    h = 1e-6
    assert gradient(f)(0.3) == pytest.approx((f(0.3 + h) - f(0.3 - h)) / (2 * h), rel=1e-7)
