"""Compiled implementations of NumPy's functions on disk: shared by all derivatives, never stale, never needed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cache.test_cache import COMPILED, READ, Process
from tests.modes import one_in
from zygote_py.numba_adapter.linking.function_content import Unknown, words_of

pytestmark = pytest.mark.compiled

ANOTHER = """
    def other(a, b):
        return np.sum(np.linalg.solve(a, b) ** 2) + 1.0

    df = gradient(other, wrt="b")
    show(df, df(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([1.0, 2.0])))
"""
# They say too which of Numba's implementations they have compiled.
COMPILATIONS = """
    from numba.core import event

    class Compiled(event.Listener):
        names = []
        def on_start(self, event):
            self.names.append(event.data["dispatcher"].py_func.__qualname__.partition(".")[0])
        def on_end(self, event):
            pass
"""
SOLVE = (
    COMPILATIONS
    + """
    def loss(s, e, scale):
        return scale * np.dot(e, np.linalg.solve(s, e))

    df = gradient(loss, wrt=("s", "e"))
    with event.install_listener("numba:compile", Compiled()):
        slopes = df(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 3.0]), 0.5)
    print(json.dumps(Compiled.names))
    show(df, *slopes)
    try:
        df(np.zeros((2, 2)), np.array([1.0, 3.0]), 0.5)
    except np.linalg.LinAlgError:
        pass
    else:
        raise AssertionError("a singular matrix")
"""
)
# With x = s^-1 e: ds = -scale x x^T, de = 2 scale x.
SLOPES_OF_SOLVE = [[[-0.125, -0.1875], [-0.1875, -0.28125]], [0.5, 0.75]]
# A product takes less time to compile.
PRODUCT = (
    COMPILATIONS
    + """
    def loss(a, b, scale):
        return scale * np.dot(a, b)[0] ** 2

    df = gradient(loss, wrt=("b", "scale"))
    with event.install_listener("numba:compile", Compiled()):
        slopes = df(np.array([[2.0, 3.0], [0.0, 4.0]]), np.array([0.5, 1.0]), 0.5)
    print(json.dumps(Compiled.names))
    show(df, *slopes)
"""
)
SLOPES_OF_PRODUCT = [[8.0, 12.0], 16.0]


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)


def run(
    process: Process, program: str = PRODUCT, expected: list = SLOPES_OF_PRODUCT, **environment: str
) -> tuple[list[str], tuple[bool, int]]:
    """Return what a process has compiled, and how it got the derivative, whose values are as they should be."""
    *_, names, shown = process.text(program, **environment).splitlines()
    stages, hits, results = json.loads(shown)
    for found, slope in zip(results, expected, strict=True):
        np.testing.assert_allclose(found, slope, rtol=1e-14)
    return json.loads(names), (stages, hits)


def test_what_an_unrelated_program_compiled_is_found(process):
    process.text(ANOTHER)
    compiled, how = run(process, SOLVE, SLOPES_OF_SOLVE)
    assert "solve_impl" not in compiled
    assert how == COMPILED
    assert run(process, SOLVE, SLOPES_OF_SOLVE) == ([], READ)


SECOND = (
    COMPILATIONS
    + """
    def loss(a, b):
        return np.sum((a @ (a.T @ b)) ** 2)

    import zygote_py as zg

    h = zg.hessian(loss)
    with event.install_listener("numba:compile", Compiled()):
        found, *_ = h(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([[1.0], [2.0]]))
    print(json.dumps(Compiled.names))
    print(json.dumps(found.tolist()))
"""
)


def test_derivatives_of_helpers_are_found(process):
    def ran(program):
        *_, names, values = process.text(program).splitlines()
        return [name for name in json.loads(names) if name.startswith("dot_") and "pushforward" in name], values

    compiled, values = ran(SECOND)
    assert compiled
    unrelated, _ = ran(SECOND.replace("loss", "cost").replace("** 2)", "** 2) + a[0, 0] ** 3"))
    assert not unrelated
    for path in process.cache.iterdir():
        if path.suffix != ".helper":
            path.unlink()
    assert ran(SECOND) == ([], values)


def test_code_without_its_helpers_is_compiled_again(process):
    compiled, _ = run(process)
    assert "dot_2_impl" in compiled
    assert run(process)[1] == READ
    helpers = process.files(".helper")
    assert helpers
    for path in helpers:
        path.unlink()
    compiled, how = run(process)
    assert "dot_2_impl" in compiled
    assert how == (False, 0)
    assert run(process)[1] == READ


def test_damaged_helpers_are_compiled_again(process):
    run(process)
    for path in (*process.files(".helper"), *process.files(".code")):
        path.write_bytes(path.read_bytes()[:-9] + b"something")
    assert "dot_2_impl" in run(process)[0]
    assert run(process)[1] == READ


def test_another_processor_has_its_own(process):
    run(process)
    many = len(process.files(".helper"))
    assert "dot_2_impl" in run(process, NUMBA_CPU_NAME="generic")[0]
    assert len(process.files(".helper")) > many


@pytest.mark.parametrize("how", one_in(3, ["small", "nowhere", "off"]))
def test_it_works_without_a_place(process, how):
    (process.folder / "file").touch()
    environment = {
        "small": {"ZYGOTE_PY_CACHE_SIZE": "0.001"},
        "nowhere": {"ZYGOTE_PY_CACHE_DIR": str(process.folder / "file" / "cache")},
        "off": {"ZYGOTE_PY_CACHE": "0"},
    }[how]
    for _ in range(2):
        assert "dot_2_impl" in run(process, **environment)[0]
    assert sum(path.stat().st_size for path in process.files("")) <= 1_000


@pytest.mark.parametrize("is_read", one_in(2, [False, True]), ids=["compiled", "read"])
def test_callers_that_numba_caches_find_their_helpers(process, is_read):
    process.write("model.py", "import numpy as np\ndef loss(a, b):\n    return np.dot(a, b)[0]\n")
    process.write(
        "user.py",
        """
        from numba import njit
        import zygote_py as zg
        from model import loss

        @njit(cache=True)
        def slope(a, b):
            return zg.gradient(loss, wrt="b")(a, b)
        """,
    )
    if is_read:  # the derivative is not compiled in the process that compiles its caller
        process.text(
            """
            from model import loss
            gradient(loss, wrt="b")(np.array([[0.0, 8.0], [1.0, 2.0]]), np.ones(2))
            """
        )
    program = """
        from user import slope
        found = slope(np.array([[0.0, 8.0], [1.0, 2.0]]), np.ones(2))
        print(json.dumps([found.tolist(), sum(slope.stats.cache_hits.values())]))
    """
    found = [json.loads(process.text(program).splitlines()[-1]) for _ in range(2)]
    assert found == [[[0.0, 8.0], 0], [[0.0, 8.0], 1]]
    for path in process.files(".helper"):
        path.unlink()
    assert json.loads(process.text(program).splitlines()[-1]) == [[0.0, 8.0], 0]


@pytest.mark.long
def test_functions_within_a_helper_are_found_by_no_other_code(process):
    program = """
        from zygote_py import hessian

        def loss(x):
            return np.linalg.cholesky(np.outer(x, x) + 2.0 * np.eye(3))[1, 0]

        x = np.array([0.4, -0.3, 0.7])
        gradient(loss)(x)  # keeps a helper that contains the solution of a system, with fewer arguments
        df = hessian(loss)
        show(df, df(x))
    """
    for _ in range(2):
        _, _, (found,) = json.loads(process.text(program))
        a, b = 0.4, -0.3  # loss = a b (a^2 + 2)^-1/2
        root = (a * a + 2.0) ** 0.5
        expected = [[-6.0 * a * b / root**5, 2.0 / root**3, 0.0], [2.0 / root**3, 0.0, 0.0], [0.0, 0.0, 0.0]]
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_what_the_user_caches_does_not_need_this_package(process):
    process.write(
        "user.py",
        """
        import numpy as np
        from numba import njit

        @njit(cache=True)
        def own(z):
            return np.linalg.inv(np.full((1, 1), z))[0, 0] * np.arctan(z)

        def loss(x):
            z = x + 1j
            return np.abs(np.linalg.inv(np.full((1, 1), z))[0, 0] * np.arctan(z))
        """,
    )
    process.text("from user import *\ngradient(loss)(0.3)\nown(0.3 + 1j)")
    (code,) = process.folder.rglob("*.nbc")
    assert b"zygote_py" not in code.read_bytes()


@pytest.mark.parametrize("option", ["fastmath", "boundscheck"])
def test_helpers_depend_on_the_options_that_they_inherit(process, option):
    program = """
        from numba import njit

        @njit(OPTIONS)
        def loss(x, y):
            return np.hypot(x, y)

        df = gradient(loss, wrt="x")
        show(df, df(3.0, 4.0))
    """
    for number, given in enumerate(("", f"{option}=True")):
        _, _, (slope,) = json.loads(process.text(program.replace("OPTIONS", given)))
        assert slope == pytest.approx(0.6)
        assert sum(b"hypot_impl" in path.read_bytes() for path in process.files(".helper")) == 1 + number


@pytest.mark.long
def test_many_first_runs_at_once(process):
    from concurrent.futures import ThreadPoolExecutor

    def first(number: int) -> list[object]:
        return json.loads(process.text(SOLVE, anew=True).splitlines()[-1])[2]

    with ThreadPoolExecutor(6) as pool:
        for results in pool.map(first, range(6)):
            for found, slope in zip(results, SLOPES_OF_SOLVE, strict=True):
                np.testing.assert_allclose(found, slope, rtol=1e-14)


# ---------------------------------------------------------------------------------------------- what a function is


def emitted(text: str, **names: object):
    namespace: dict[str, object] = {"np": np, **names}
    exec(compile(text, "<zygote_py test>", "exec"), namespace)
    return namespace["f"]


def test_emitted_functions_are_described_by_their_code_and_what_they_refer_to():
    first = emitted("def f(x):\n    return np.sin(x) + g(x)", g=np.cos)
    same = emitted("\n\ndef f(x):\n    return np.sin(x) + g(x)", g=np.cos)
    other = emitted("def f(x):\n    return np.sin(x) + g(x)", g=np.tan)
    constant = emitted("def f(x):\n    return np.sin(x) + 1.0")
    another = emitted("def f(x):\n    return np.sin(x) + 2.0")
    assert words_of(first) == words_of(same)
    assert words_of(first) != words_of(other)
    assert words_of(constant) != words_of(another)


def test_what_another_process_may_have_otherwise_is_unknown():
    def users(x):
        return x

    class Strange:
        pass

    for value in (users, Strange, Strange(), Path()):
        with pytest.raises(Unknown):
            words_of(emitted("def f(x):\n    return g(x)", g=value))


def test_captured_values_of_implementations_count():
    from numba.np import arrayobj

    def made(kind: object):
        code = """
def outer(kind):
    def f(x):
        return kind
    return f
f = outer(kind)
"""
        return emitted(code, kind=kind)

    assert words_of(made(1)) != words_of(made(2))
    assert words_of(made((1, np.dtype("f8")))) != words_of(made((1, np.dtype("f4"))))
    assert words_of(arrayobj.normalize_axis) == words_of(arrayobj.normalize_axis)
