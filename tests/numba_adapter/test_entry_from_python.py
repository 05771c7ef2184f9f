"""How Python enters emitted functions of arrays: what they take and return, what is refused, and that nothing leaks."""

from __future__ import annotations

import sys
import threading

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import zygote_py as zg
from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline

pytestmark = pytest.mark.compiled


def emitted(**options):
    return numba.njit(pipeline_class=EmittedPipeline, **options)


def living():
    """How many arrays Numba has allocated that have not been freed; it counts them from now on."""
    stats = rtsys.get_allocation_stats()
    return stats.alloc - stats.free


def left_by(run):
    """How many arrays a call leaves, after another one."""
    _nrt_python.memsys_enable_stats()
    try:
        run()
        before = living()
        for _ in range(3):
            run()
        return living() - before
    finally:
        _nrt_python.memsys_disable_stats()


ARRAYS = [
    np.arange(3.0),
    np.arange(6.0)[::2],
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(24.0).reshape(2, 3, 4)[:, ::2, ::-1],
    np.array(2.5),
    np.empty((0, 4)),
    np.arange(3, dtype=np.float32),
    np.array([True, False]),
    np.array([1 + 2j, 3j]),
    np.array([(1, 2.0), (3, 4.0)], dtype=[("n", np.int32), ("x", np.float64)]),
    np.array(["ab", "c"]),
    np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_come_back(array):
    @emitted()
    def both(a, n):
        return a, n + 1, a

    first, number, second = both(array, 2)
    assert number == 3
    for found in (first, second):
        assert type(found) is np.ndarray
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert found.strides == array.strides
        assert np.array_equal(found, array)
        assert np.shares_memory(found, array) or not array.size


def test_results_of_all_kinds():
    @emitted()
    def several(a, name):
        made = a * 2.0
        return (made, (made[1:], None, (True, 3)), 1.5, 2j, name, [1.0, 2.0], (a > 1.0, made.T))

    a = np.arange(4.0)
    expected = (2 * a, (2 * a[1:], None, (True, 3)), 1.5, 2j, "w", [1.0, 2.0], (a > 1, 2 * a))
    np.testing.assert_equal(several(a, "w"), expected)


def test_an_array_by_itself():
    @emitted()
    def last(a, b):
        return b

    a, b = np.arange(2.0), np.arange(6).reshape(2, 3)
    assert np.shares_memory(last(a, b), b)


def test_nothing_but_numbers():
    @emitted()
    def total(a, b):
        return a.sum() + b[0]

    assert total(np.ones(3), np.array([2.0])) == 5.0


def test_what_cannot_be_written_to():
    @emitted()
    def whole(a):
        return a, a.copy()

    a = np.arange(3.0)
    a.flags.writeable = False
    same, copy = whole(a)
    assert not same.flags.writeable
    assert copy.flags.writeable


def forty(count=40):
    """A function of many arrays, that returns one for each, and a number."""
    names = [f"a_{n}" for n in range(count)]
    made = ", ".join(f"a_{n} * {n + 1}.0" for n in range(count))
    space = {}
    exec(f"def f({', '.join(names)}, x):\n    return {made}, x + 1.0\n", space)
    return space["f"]


def test_many_arrays():
    f = emitted()(forty())
    given = [np.full(n + 1, 0.5) for n in range(40)]
    *found, number = f(*given, 2.0)
    assert number == 3.0
    assert len(found) == 40
    for n, (own, before) in enumerate(zip(found, given, strict=True)):
        np.testing.assert_array_equal(own, before * (n + 1))


def test_gradients_of_many_arrays():
    count = 35
    names = [f"a_{n}" for n in range(count)]
    space = {}
    body = " + ".join(f"{n + 1}.0 * np.sum(a_{n} * a_{n})" for n in range(count))
    exec(f"import numpy as np\ndef f({', '.join(names)}):\n    return {body}\n", space)
    given = [np.arange(n + 1.0) for n in range(count)]
    for n, own in enumerate(zg.gradient(space["f"])(*given)):
        np.testing.assert_allclose(own, 2.0 * (n + 1) * given[n])


def compiled():
    """A function of two arrays that has been compiled, entered as the dispatcher does it; it raises for n < 0."""

    @emitted()
    def f(a, b, n):
        made = a + b
        if n < 0:
            raise ValueError("no")
        return made, b, n

    f(np.ones(2), np.ones(2), 1)
    (found,) = f.overloads.values()
    return found.entry_point


WRONG = [
    (3.0, np.ones(2), 1),
    (np.ones(2), [1.0, 2.0], 1),
    (np.ones(2), np.ones(2, dtype=np.float32), 1),
    (np.ones(2, dtype=np.complex128), np.ones(2), 1),
    (np.ones(2), np.ones(2), "one"),
    (np.ones(2), np.ones(2)),
    (np.ones(2), np.ones(2), 1, 1),
    (np.ones(2), np.ones(2), -1),
]


@pytest.mark.parametrize("given", WRONG, ids=range(len(WRONG)))
def test_errors_leave_nothing(given):
    entry = compiled()

    def run():
        with pytest.raises((TypeError, ValueError)):
            entry(*given)

    assert left_by(run) == 0
    before = [sys.getrefcount(each) for each in given]
    for _ in range(5):
        run()
    assert [sys.getrefcount(each) for each in given] == before
    found, _, _ = entry(np.ones(2), np.ones(2), 1)  # the next good call works
    np.testing.assert_array_equal(found, np.full(2, 2.0))


def test_results_leave_nothing():
    entry, a, b = compiled(), np.ones(2), np.ones(2)
    assert left_by(lambda: entry(a, b, 1)) == 0
    counted = a, b, a.dtype, np.ndarray
    before = [sys.getrefcount(each) for each in counted]
    for _ in range(50):
        entry(a, b, 1)
    assert [sys.getrefcount(each) for each in counted] == before


def test_a_view_keeps_its_array():
    @emitted()
    def row(a):
        made = a * 2.0
        return made[1], 1

    found = [row(np.full((2, 3), float(n)))[0] for n in range(50)]
    for n, each in enumerate(found):
        np.testing.assert_array_equal(each, np.full(3, 2.0 * n))


def test_without_the_lock():
    @emitted(nogil=True)
    def work(a, n):
        made = a.copy()
        for _ in range(n):
            made += a
        return made, n

    work(np.ones(3), 1)
    found = {}

    def run(k):
        for _ in range(20):
            found[k] = work(np.full(4, float(k)), 1000)[0]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k], np.full(4, 1001.0 * k))


def test_a_refused_call_has_made_no_array():
    def f(x, y):
        x[0] = y[1] * y[0]
        return np.sum(x * y)

    df = zg.gradient(f)
    df(np.ones(3), np.ones(3))
    text = df.source(np.ones(3), np.ones(3))
    assert text.index("raise ValueError") < text.index("zeros_like")


def test_generators():
    @emitted()
    def halves(a):
        for each in a:
            yield each / 2.0

    assert list(halves(np.arange(3.0))) == [0.0, 0.5, 1.0]
