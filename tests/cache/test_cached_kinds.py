"""Machine code that needs more than itself is kept: recursive functions, threads, typed containers, and so on."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.cache.test_cache import COMPILED, READ, Process, expect
from tests.modes import one_in


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)


def check(process, program, expected, old, new, changed):
    """Run a program, then the same changed in one place; and both again, in another process."""
    assert program.count(old) == 1
    programs, results = (program, program.replace(old, new)), (expected, changed)
    for found, values in zip(run_all(process, programs), results, strict=True):
        expect(found, COMPILED, values)
    for (stages, hits, found), values in zip(run_all(process, programs), results, strict=True):
        assert not stages
        assert hits > 0
        assert found == pytest.approx(values)


def run_all(process, programs):
    """Run programs one after another in a process, and return what each of them shows."""
    shown = process.text("\n".join(map(textwrap.dedent, programs))).splitlines()
    return [tuple(json.loads(line)) for line in shown]


POWER = """
    def power(x, n):
        if n == 0:
            return 1.0
        return x * power(x, n - 1)
"""


def test_recursive_functions(process):
    program = (
        POWER
        + """
    df = gradient(power, wrt="x")
    show(df, df(2.0, 3))
    """
    )
    check(process, program, [12.0], "return 1.0", "return x", [32.0])


def test_functions_that_call_one_another(process):
    program = """
        def even(x, n):
            return 1.0 if n == 0 else x * odd(x, n - 1)
        def odd(x, n):
            return x if n == 0 else x * x * even(x, n - 1)
        df = gradient(even, wrt="x")
        show(df, df(1.0, 3), df(1.0, 4), df(1.0, np.int32(3)))
    """
    # x * x^2 * x * x, then once more x^2 at the end of an even count
    check(process, program, [5.0, 6.0, 5.0], "x * x * even", "x * x * x * even", [6.0, 8.0, 6.0])


def test_hessians_of_loops(process):
    program = """
        from zygote_py import hessian
        def f(x):
            s = 0.0
            for i in range(len(x)):
                s += x[i] ** 2 * x[0]
            return s
        dh = hessian(f)
        show(dh, tuple(dh(np.ones(3)).ravel()))
    """
    expected = [6.0, 2.0, 2.0, 2.0, 2.0, 0.0, 2.0, 0.0, 2.0]
    expect(process.run(program), COMPILED, expected)
    expect(process.run(program), READ, expected)


def test_loops_whose_iterations_run_side_by_side(process):
    program = """
        from zygote_py import gradient
        def f(w, x):
            total = 0.0
            for i in range(x.shape[0]):
                y = 1.0
                for j in range(x.shape[1]):
                    y = y * y * w[0] + x[i, j] * w[1] + y
                total += y
            return total
        df = gradient(f, wrt=0, mode="reverse")
        show(df, tuple(df(np.array([0.0, 2.0]), np.ones((9, 2)))))
    """
    expected = [90.0, 18.0]
    expect(process.run(program), COMPILED, expected)
    expect(process.run(program), READ, expected)


@pytest.mark.long
def test_recursions_of_higher_order_and_over_arrays(process):
    program = """
        from zygote_py import hessian, pullback
        def tree(a, n):
            if n == 0:
                return np.sum(a * a)
            return tree(a * 2.0, n - 1) + tree(a[:1], n - 1)
        value, back = pullback(tree, np.ones(3), 3)
        df, dh = gradient(tree, wrt="a"), hessian(tree, wrt="a")
        show(df, tuple(df(np.ones(3), 3)), tuple(dh(np.ones(3), 2)[0]), value, tuple(back(1.0)[0]))
    """
    first = process.run(program)
    assert first[:2] == COMPILED
    # each of three levels is 4 times the first element plus the first, or 4 times the others
    assert first[2] == [250.0, 128.0, 128.0, 50.0, 0.0, 0.0, 125.0 + 64.0 + 64.0, 250.0, 128.0, 128.0]
    stages, hits, found = process.run(program)
    assert (stages, hits) == (False, 1)
    assert found == first[2]


def test_compiled_functions_that_call_recursive_ones(process):
    """The code that was read is linked into that of a caller, which reads the same pointers."""
    program = (
        POWER
        + """
    df = gradient(power, wrt="x")
    @numba.njit
    def first(x):
        return df(x, 3)
    @numba.njit
    def second(x):
        return first(x) + gradient(power, wrt="x")(x, 4)
    show(df, first(2.0), second(2.0), df(3.0, 3))
    """
    )
    for _ in range(2):
        assert process.run(program)[2] == [12.0, 44.0, 27.0]


def test_cached_callers_of_recursive_ones(process):
    """Numba's own cache cannot set the pointers, whether their code was compiled or read."""
    process.write("powers.py", POWER)
    process.write(
        "callers.py",
        """
        import numba
        from powers import power
        from zygote_py import gradient
        df = gradient(power, wrt="x")
        @numba.njit(cache=True)
        def caller(x):
            return df(x, 3)
        """,
    )
    program = """
        import callers, warnings
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            found = callers.caller(2.0)
        text = "Cannot cache compiled functions that call the gradient of power"
        said = any(text in str(each.message) for each in raised)
        print(json.dumps([said, sum(callers.caller.stats.cache_hits.values()), [found]]))
    """
    for _ in range(3):
        assert process.run(program, NUMBA_CACHE_DIR=str(process.folder / "numba")) == (True, 0, [12.0])


def test_parallel_functions(process):
    program = """
        from numba import prange
        @numba.njit(parallel=True)
        def f(a, x):
            y = np.empty_like(a)
            for i in prange(a.shape[0]):
                y[i] = a[i] ** 2 * x
            return np.sum(y)
        df = gradient(f)
        da, dx = df(np.arange(5.0), 3.0)
        show(df, *da, dx)
    """
    check(process, program, [0.0, 6.0, 12.0, 18.0, 24.0, 30.0], "a[i] ** 2", "2.0 * a[i]", [6.0] * 5 + [20.0])
    assert process.run(program, anew=True)[:2] == READ  # where no threads have been started


def test_parallel_functions_with_classes_of_the_main_program(process):
    program = """
        from numba import prange
        from typing import NamedTuple
        class Pair(NamedTuple):
            a: np.ndarray
            x: float
        @numba.njit(parallel=True)
        def f(p):
            y = np.empty_like(p.a)
            for i in prange(p.a.shape[0]):
                y[i] = p.a[i] * p.x
            return np.sum(y)
        df = gradient(f)
        found = df(Pair(np.arange(3.0), 2.0))
        assert type(found) is Pair
        show(df, *found.a, found.x)
    """
    check(process, program, [2.0, 2.0, 2.0, 3.0], "y[i] = p.a[i]", "y[i] = 2.0 * p.a[i]", [4.0, 4.0, 4.0, 6.0])


MADE = """
    import numpy as np
    from numba import njit, types
    from numba.typed import Dict, List

    @njit(cache=True)
    def of_arrays():
        return List([np.ones(2), np.ones(3)])

    @njit(cache=True)
    def of_floats():
        return List([1.0, 2.0])

    @njit(cache=True)
    def of_integers():
        return List([1, 2])

    @njit(cache=True)
    def of_entries():
        made = Dict.empty(types.int64, types.float64)
        made[1] = 2.0
        made[2] = 3.0
        return made

    @njit(cache=True)
    def items(values):
        return [each for each in values]

    @njit(cache=True)
    def entries(values):
        return values[1], values[2]
"""


@pytest.fixture
def made(process):
    """Let there be functions that make and read containers, cached by Numba: in Python it compiles each operation."""
    process.write("made.py", MADE)


@pytest.mark.long
def test_typed_lists(process, made):
    program = """
        import made
        def f(items, x):
            s = 0.0
            for item in items:
                s += np.sum(item * item) * x
            return s
        df = gradient(f)
        ds, dx = df(made.of_arrays(), 2.0)
        ds = made.items(ds)
        show(df, *ds[0], *ds[1], dx)
    """
    check(process, program, [4.0] * 5 + [5.0], "item * item)", "item * item) * 2.0", [8.0] * 5 + [10.0])
    other = program.replace("of_arrays", "of_floats").replace("*ds[0], *ds[1]", "*ds")
    check(process, other, [4.0, 8.0, 5.0], "s = 0.0", "s = x", [4.0, 8.0, 6.0])
    ints = other.replace("of_floats", "of_integers").replace("ds = made.items(ds)", "").replace("*ds, dx", "dx")
    expect(process.run(ints), COMPILED, [5.0])
    expect(process.run(ints), READ, [5.0])
    expect(process.run(program), READ, [4.0] * 5 + [5.0])


def test_typed_dicts(process, made):
    program = """
        import made
        def f(d):
            return d[1] * d[2]
        df = gradient(f)
        show(df, *made.entries(df(made.of_entries())))
    """
    check(process, program, [3.0, 2.0], "d[1] * d[2]", "d[1] * d[2] * d[2]", [9.0, 12.0])


VECTORIZED = """
    @numba.vectorize(["f8(f8)"])
    def g(x):
        return 2.0 * x
    df = gradient(lambda a: np.sum(g(a)))
    show(df, *df(np.ones(2)))
"""
STENCIL = """
    SCALE = 2
    @numba.stencil
    def g(a):
        return a[-1] * SCALE
    df = gradient(lambda a: np.sum(g(a)))
    show(df, *df(np.ones(3)))
"""
SORTED = """
    @numba.njit
    def key(v):
        return -2.0 * v
    def f(x):
        items = [x, 3.0 * x]
        items.sort(key=key)
        return items[0]
    df = gradient(f)
    show(df, df(1.0))
"""
HOOK = """
    import zygote_py
    df = gradient(lambda x: zygote_py.hook(x, lambda dx: 2.0 * dx))
    show(df, df(1.0))
"""
RANDOM = """
    def f(x, n):
        np.random.seed(n)
        return 2.0 * x * np.random.normal(1.0, 0.0)
    df = gradient(f, wrt="x")
    show(df, df(1.0, 3))
"""
ENUMS = """
    import enum
    class Mode(enum.IntEnum):
        A = 1
        B = 2
    class Kind(enum.Enum):
        C = "c"
        D = "d"
    KIND = Kind.C
    def f(x, mode):
        y = 2.0 * x if mode == Mode.A else 4.0 * x
        return y + x if KIND == Kind.D else y
    df = gradient(f, wrt="x")
    show(df, df(1.0, Mode.A), df(1.0, Mode.B))
"""
RECORDS = """
    ROWS = np.array([(2.0, 3)], dtype=[("a", "f8"), ("n", "i8")])
    def f(x, row):
        return x * ROWS[0].a + x * row["a"] * row["n"] * 2.0
    df = gradient(f)
    dx, drow = df(1.0, ROWS[0])
    show(df, dx, drow["a"])
"""
VECTORS = """
    from numba import njit
    @njit(fastmath=True)
    def f(x):
        total = 0.0
        for i in range(len(x)):
            total += np.exp(2.0 * x[i])
        return total
    df = gradient(f)
    show(df, *df(np.zeros(9)))
"""
KINDS = {
    "functions of vectors": (VECTORS, [2.0] * 9, "2.0 * x", "3.0 * x", [3.0] * 9),
    "vectorize": (VECTORIZED, [2.0, 2.0], "2.0 * x", "3.0 * x", [3.0, 3.0]),
    "stencil": (STENCIL, [2.0, 2.0, 0.0], "SCALE = 2", "SCALE = 3", [3.0, 3.0, 0.0]),
    "a key": (SORTED, [3.0], "-2.0 * v", "2.0 * v", [1.0]),
    "a hook": (HOOK, [2.0], "2.0 * dx", "3.0 * dx", [3.0]),
    "random numbers": (RANDOM, [2.0], "2.0 * x", "3.0 * x", [3.0]),
    "the values of an enumeration": (ENUMS, [2.0, 4.0], "A = 1", "A = 3", [2.0, 4.0]),
    "aliases in an enumeration": (ENUMS, [2.0, 4.0], "B = 2", "B = 1", [2.0, 2.0]),
    "a member of an enumeration": (ENUMS, [2.0, 4.0], "Kind.C", "Kind.D", [3.0, 5.0]),
    "members with equal values": (ENUMS, [2.0, 4.0], 'D = "d"', 'D = "c"', [3.0, 5.0]),
    "records": (RECORDS, [14.0, 6.0], "2.0\n", "4.0\n", [26.0, 12.0]),
}


@pytest.mark.parametrize("what", one_in(3, KINDS))
def test_what_else_is_kept(process, what):
    check(process, *KINDS[what])


def test_the_fields_of_records(process):
    for how in (COMPILED, READ):
        expect(process.run(RECORDS), how, [14.0, 6.0])
    narrow = RECORDS.replace('("n", "i8")', '("n", "i4")')
    for how in (COMPILED, READ):
        expect(process.run(narrow), how, [14.0, 6.0])
    swapped = RECORDS.replace("(2.0, 3)", "(3, 2.0)").replace('("a", "f8"), ("n", "i8")', '("n", "i8"), ("a", "f8")')
    for how in (COMPILED, READ):
        expect(process.run(swapped), how, [14.0, 6.0])
    values = RECORDS.replace("(2.0, 3)", "(5.0, 3)")  # which are read at each call
    expect(process.run(values), READ, [35.0, 6.0])
