"""The cache: a second process compiles nothing, and whatever is changed is compiled anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fork_server import SETTINGS, forked

START = """\
import json, sys
import numba
import numpy as np
from zygote_py import gradient, value_and_gradient

def show(df, *results):
    stages = "zygote_py.compiler.pipeline" in sys.modules
    dispatcher = df._now.dispatcher
    hits = sum(dispatcher._cache_hits.values()) if dispatcher is not None else 0
    parts = [each for result in results for each in (result if isinstance(result, tuple) else (result,))]
    flat = [np.asarray(each).tolist() for each in parts]
    print(json.dumps([stages, hits, flat]))
"""


class Process:
    """Runs programs with a cache folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.environment = {
            "ZYGOTE_PY_CACHE": "1",
            "ZYGOTE_PY_CACHE_DIR": str(self.cache),
            "ZYGOTE_PY_CACHE_SIZE": "",
            "ZYGOTE_PY_VERIFY": "",
            "ZYGOTE_PY_DUMP": "",
            **SETTINGS,
        }

    def write(self, name: str, source: str) -> None:
        (self.folder / name).write_text(textwrap.dedent(source))

    def text(self, program: str, anew: bool = False, **environment: str) -> str:
        """Return the output of a program, in a separate interpreter if it needs one, or needs other settings."""
        path = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        settings = {**os.environ, **self.environment, "PYTHONPATH": os.pathsep.join(path), **environment}
        program = START + textwrap.dedent(program)
        if anew or any(name.startswith("NUMBA") and settings[name] != SETTINGS.get(name) for name in settings):
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, cwd=self.folder, timeout=300)
        else:
            done = forked(program, self.folder, settings)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, program: str, anew: bool = False, **environment: str) -> tuple[bool, int, list]:
        """Whether stages ran, how many signatures' machine code was read, and the results."""
        stages, hits, results = json.loads(self.text(program, anew, **environment).splitlines()[-1])
        return stages, hits, results

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.cache.glob(f"*{suffix}"))


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)


COMPILED, READ = (True, 0), (False, 1)


def expect(found, how, results):
    assert found[:2] == how
    assert found[2] == pytest.approx(results) if not isinstance(results[0], list) else found[2] == results


# A second process


def test_a_second_process_compiles_nothing(process):
    process.write("model.py", "import math\ndef f(x, y=2.0):\n    return math.sin(x) * y * y\n")
    program = """
        from model import f
        df = gradient(f)
        show(df, df(0.0, 3.0), df(0.0))
    """
    expect(process.run(program, anew=True), COMPILED, [9.0, 0.0, 4.0, 0.0])
    assert [len(process.files(kind)) for kind in (".py", ".code")] == [2, 2]
    expect(process.run(program, anew=True), (False, 2), [9.0, 0.0, 4.0, 0.0])
    assert "def f_gradient" in process.files(".py")[0].read_text()


@pytest.mark.parametrize("how", ["gradient", "hessian"])
def test_a_second_process_imports_no_compiler(process, how):
    process.write("model.py", "import math\ndef f(x):\n    return math.sin(x) * x\n")
    program = f"""
        from model import f
        from zygote_py import {how}
        df = {how}(f)
        parts = ["zygote_py.emit.target", "zygote_py.frontend.lowered", "zygote_py.numba_adapter.emitted.passes",
                 "zygote_py.ir.passes", "zygote_py.adjoints.strategies", "numba.np.arraymath"]
        slope = df(0.0)
        show(df, slope, np.array([name in sys.modules for name in parts]))
    """
    slope = {"gradient": 0.0, "hessian": 2.0}[how]
    assert process.run(program, anew=True) == (*COMPILED, [slope, [True] * 6])
    assert process.run(program, anew=True) == (*READ, [slope, [False] * 6])


def test_a_second_process_reads_the_gradient_of_the_lotka_volterra_loss(process):
    program = """
        from zygote_py.cli import demo
        _, hare, lynx = demo.read_pelts()
        theta = demo.start_of(hare, lynx)
        vg = value_and_gradient(demo.loss, wrt="theta")
        value, slope = vg(theta, hare, lynx)
        show(vg, value, slope)
    """
    *_, results = process.run(program, anew=True)
    assert process.run(program, anew=True) == (*READ, results)


def test_captured_values_are_read_in_each_process(process):
    process.write(
        "model.py",
        """
        import numpy as np
        import settings
        from layers import layer
        W = np.array([1.0, 2.0])
        POWER = 2
        def f(x):
            return np.sum(W * layer(x)) ** POWER * settings.scale
        """,
    )
    process.write("settings.py", "scale = 3.0\n")
    process.write("layers.py", "bias = 0.5\ndef layer(x):\n    return x * x + bias\n")
    program = """
        import model
        df = gradient(model.f)
        dw, ds = gradient(model.f, wrt=("W", "settings_scale")), value_and_gradient(model.f, closure=True)
        a = df(1.0)
        model.W = np.array([2.0, 2.0, 1.0])
        model.settings.scale = 1.0
        b, c, d = df(1.0), dw(1.0), ds(1.0)
        model.POWER = 1
        show(df, a, b, c, d[0], d[1][0], d[1][1].W, df(1.0))
    """
    # analytically: with s = sum(W) (x^2 + 0.5), the derivative by x is POWER s^(POWER - 1) sum(W) 2x scale
    expected = [
        2 * 4.5 * 3 * 2 * 3,
        2 * 7.5 * 5 * 2,
        [22.5, 22.5, 22.5],
        56.25,
        56.25,
        150.0,
        [22.5, 22.5, 22.5],
        10.0,
    ]
    first = process.run(program)
    assert first[2] == expected
    second = process.run(program)
    assert second[0] is False  # the constant that was changed was compiled by the first process too
    assert second[2] == expected
    process.write("settings.py", "scale = 6.0\n")
    third = process.run(program)
    assert third[0] is False
    assert third[2] == [2 * expected[0], *expected[1:]]


def test_functions_of_the_main_program_and_closures(process):
    program = """
        def made(n):
            def f(x):
                return x**n
            return f
        df, dg = gradient(made(2)), gradient(made(3))
        show(df, df(2.0), dg(2.0))
    """
    expect(process.run(program), COMPILED, [4.0, 12.0])
    expect(process.run(program), READ, [4.0, 12.0])


def test_recursive_functions_are_kept_as_source(process):
    program = """
        def power(x, n):
            if n == 0:
                return 1.0
            return x * power(x, n - 1)
        df = gradient(power, wrt="x")
        show(df, df(2.0, 3))
    """
    assert process.run(program)[2] == [12.0]
    stages, _, results = process.run(program)
    assert (stages, results) == (False, [12.0])


def test_linear_algebra_and_exceptions_that_carry_values(process):
    program = """
        def solved(a, b):
            return np.sum(np.linalg.solve(a, b))
        def first(x, a):
            if x < 0.0:
                raise ValueError("first", x, a)
            return np.sum(x * a)
        def second(x, a):
            if x < 0.0:
                raise ValueError("second", a * 2.0, x)
            if x > 9.0:
                raise ValueError("third", x, a)
            return x**2
        def raised(df, x):
            try:
                df(x, np.array([1.0, 2.0]))
            except ValueError as error:
                return error.args
        df, dg, dh = gradient(solved, wrt="b"), gradient(first, wrt="x"), gradient(second, wrt="x")
        assert raised(dg, -1.0)[:2] == ("first", -1.0) and raised(dg, -1.0)[2].tolist() == [1.0, 2.0]
        assert raised(dh, -2.0)[1].tolist() == [2.0, 4.0] and raised(dh, -2.0)[2] == -2.0
        assert raised(dh, 10.0)[1] == 10.0 and raised(dh, 10.0)[2].tolist() == [1.0, 2.0]
        hits = [sum(each._now.dispatcher._cache_hits.values()) for each in (dg, dh)]
        assert hits == ([0, 0] if "zygote_py.compiler.pipeline" in sys.modules else [1, 1])
        show(df, df(2.0 * np.eye(2), np.ones(2)))
    """
    expect(process.run(program), COMPILED, [[0.5, 0.5]])
    expect(process.run(program), READ, [[0.5, 0.5]])


def test_structures(process):
    process.write(
        "model.py",
        """
        from dataclasses import dataclass
        from typing import NamedTuple
        import numpy as np
        @dataclass(frozen=True)
        class Layer:
            w: np.ndarray
            b: float
            def __call__(self, x):
                return np.sum(self.w * x) + self.b
        class Pair(NamedTuple):
            a: float
            b: float
        LAYER = Layer(np.ones(2), 0.5)
        def f(layer, pair):
            return layer(pair.a) * pair.b * LAYER(1.0)
        """,
    )
    program = """
        from model import *
        df = gradient(f, wrt=("layer", "pair", "LAYER"))
        d, p, c = df(Layer(np.array([1.0, 3.0]), 1.0), Pair(2.0, 3.0))
        assert type(d) is Layer and type(p) is Pair and type(c) is Layer
        show(df, (d.w, d.b, p.a, p.b, c.w, c.b))
    """
    expected = [[15.0, 15.0], 7.5, 30.0, 22.5, [27.0, 27.0], 27.0]
    expect(process.run(program), COMPILED, expected)
    expect(process.run(program, anew=True), READ, expected)
    changed = (process.folder / "model.py").read_text().replace("+ self.b", "+ 2.0 * self.b")
    process.write("model.py", changed)
    assert process.run(program)[0] is True


def test_several_gradients_of_one_function_in_a_process(process):
    program = """
        def f(x, a):
            return np.sum(a * x)
        many = [gradient(f) for _ in range(5)]
        results = [df(2.0, np.ones(3))[0] for df in many]
        df = many[-1]
        del many
        import gc
        gc.collect()
        results.append(df(2.0, np.ones(4))[0])
        again = gradient(f)
        step = numba.njit(lambda x, a: x - again(x, a)[0])
        results += [again(2.0, np.ones(5))[0], step(1.0, np.ones(2))]
        show(df, *results)
    """
    expected = [3.0] * 5 + [4.0, 5.0, -1.0]
    assert process.run(program)[2] == expected
    second = process.run(program)
    assert second[:1] == (False,)
    assert second[2] == expected


# What is changed is compiled anew

PROGRAMS = (Path(__file__).parent / "cache_programs.py").read_text()
CALLEE = """
def inner(x):
    return 2.0 * x
def outer(x):
    return (lambda y: inner(y))(x)
"""


def test_what_is_changed_is_compiled_anew(process):
    process.write("model.py", PROGRAMS)
    process.write("callee.py", CALLEE)
    program = "import model\nprint(json.dumps([model.gradients(), [each[1:] for each in model.ALL]]))"
    for _ in range(2):  # to be read as well as to be written
        found, expected = json.loads(process.text(program))
        assert found == [*(each[0] for each in expected), 2.0]
    assert len(process.files(".py")) >= 15
    process.write("callee.py", CALLEE.replace("2.0 * x", "3.0 * x"))
    definitions, mark, values = PROGRAMS.partition("ALL = [")
    for old, new in [("= 2\n", "= 3\n"), ("= 2.0\n", "= 3.0\n"), ("k=2", "k=3"), (", 2)", ", 3)")]:
        assert old in definitions
        definitions = definitions.replace(old, new)
    for old, new in [("r * 2.0", "r * 3.0")]:
        assert old in definitions
        definitions = definitions.replace(old, new)
    for old, new in [("x * 2.0", "x * 3.0"), ("dy * 2.0", "dy * 3.0"), ("return 2.0 *", "return 3.0 *")]:
        assert old in definitions
        definitions = definitions.replace(old, new)
    definitions = definitions.replace("lambda x: 2.0 * x", "lambda x: 3.0 * x")
    process.write("model.py", definitions + mark + values.replace("k=2.0)", "k=3.0)"))
    found, expected = json.loads(process.text(program))
    assert found == [*(each[1] for each in expected), 3.0]


def test_a_function_that_was_compiled_before(process):
    """Its helpers had Numba's own numbers, and machine code that links them was not kept."""
    process.write(
        "model.py",
        """
        import numba, zygote_py
        @numba.njit
        def h(x, n):
            return x ** n
        h(3.0, 2)
        def f(x, n):
            return x ** n * x
        """,
    )
    program = "import model\ndf = gradient(model.f, wrt='x')\nshow(df, df(3.0, 4))"
    for how in (COMPILED, READ):
        expect(process.run(program, anew=True), how, [5 * 81.0])


def install_orbits(process, group: str, derivatives: str) -> None:
    """Let there be a package `orbits` with an entry point in its module `derivatives`."""
    folder = process.folder / "orbits-1.0.dist-info"
    folder.mkdir()
    (process.folder / "orbits").mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: orbits\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{group}]\ninit = orbits.derivatives:register")
    process.write("orbits/__init__.py", "def anomaly(m):\n    return round(m * 1e6) * 1e-6\n")
    process.write("orbits/derivatives.py", derivatives)
    process.write("model.py", "import orbits\ndef f(x):\n    return 5.0 * orbits.anomaly(x)\n")


def test_rules_of_another_package(process):
    derivatives = """
        import zygote_py
        from orbits import anomaly
        def register():
            @zygote_py.adjoint(anomaly)
            def rule(m):
                return anomaly(m), lambda dy: (2.0 * dy,)
    """
    install_orbits(process, "zygote_py_extensions", derivatives)
    program = "import model\ndf = gradient(model.f)\nshow(df, df(1.0))"
    expect(process.run(program), COMPILED, [10.0])
    expect(process.run(program), READ, [10.0])
    process.write(
        "orbits/derivatives.py", derivatives.replace("2.0 * dy", "3.00 * dy")
    )  # of another size, by which Python notices
    expect(process.run(program), COMPILED, [15.0])
    process.write("orbits/derivatives.py", "raise OSError('no disk')")
    program = "import warnings\nwith warnings.catch_warnings(record=True) as found:\n    gradient(abs)(2.0)\n"
    said = process.text(program + "print(*(each.message for each in found))")
    assert "the extension `orbits.derivatives:register` of zygote_py failed with OSError: no disk" in said


def test_overloads_of_another_package(process):
    derivatives = """
        from numba.extending import overload
        from orbits import anomaly
        def register():
            overload(anomaly)(lambda m: lambda m: 2.0 * m)
    """
    install_orbits(process, "numba_extensions", derivatives)
    program = "import model\ndf = gradient(model.f)\nshow(df, df(1.0))"
    expect(process.run(program, anew=True), COMPILED, [10.0])  # Numba loads them once in a process


def test_overloads_of_others_keep_everything_out(process):
    program = """
        import os
        from numba.extending import overload
        def scale(x):
            return 0.0
        FACTOR = float(os.environ["FACTOR"])
        @overload(scale)
        def overload_scale(n):
            return lambda n: n * FACTOR
        def f(x, n):
            return x * scale(n)
        df = gradient(f, wrt="x")
        show(df, df(2.0, 3))
    """
    for factor in ("2", "5"):
        expect(process.run(program, FACTOR=factor), COMPILED, [3 * float(factor)])
    assert not process.cache.exists()


def test_options_and_settings_are_part_of_the_key(process):
    program = """
        import os
        def f(a):
            return a[0] * a[1] / a[2]
        df = gradient(numba.njit(error_model="numpy")(f) if os.environ.get("OPTION") else f)
        show(df, df(np.array([1.0, 2.0, 4.0])))
    """
    result = [[0.5, 0.25, -0.125]]
    expect(process.run(program), COMPILED, result)
    expect(process.run(program, OPTION="1"), COMPILED, result)
    expect(process.run(program, NUMBA_BOUNDSCHECK="1"), COMPILED, result)
    expect(process.run(program), READ, result)
    assert process.run(program, NUMBA_DISABLE_JIT="1") == (False, 0, result)


SIMPLE = """
    def f(x):
        return x * x * x
    df = gradient(f)
    show(df, df(2.0))
"""


def test_many_processes_at_once(process):
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: process.run(SIMPLE, anew=True), range(3)))
    assert all(results == [12.0] for _, _, results in found)
    expect(process.run(SIMPLE), READ, [12.0])
    assert not process.files(".tmp")
    assert len(process.files(".py")) == 1
