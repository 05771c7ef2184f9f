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

from zygote_py import cli
from zygote_py.cache import folder

START = """\
import json, sys, time
import numba
import numpy as np
began = time.process_time()
from zygote_py import gradient, value_and_gradient

def show(df, *results):
    stages = "zygote_py.compile" in sys.modules
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
        self.environment = {"ZYGOTE_PY_CACHE": "1", "ZYGOTE_PY_CACHE_DIR": str(self.cache), "PYTHONPATH": str(folder)}

    def write(self, name: str, source: str) -> None:
        (self.folder / name).write_text(textwrap.dedent(source))

    def text(self, program: str, **environment: str) -> str:
        path = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        settings = {**os.environ, **self.environment, "PYTHONPATH": os.pathsep.join(path), **environment}
        command = [sys.executable, "-c", START + textwrap.dedent(program)]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, cwd=self.folder, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, program: str, **environment: str) -> tuple[bool, int, list]:
        """Whether stages ran, how many signatures' machine code was read, and the results."""
        stages, hits, results = json.loads(self.text(program, **environment).splitlines()[-1])
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
    expect(process.run(program), COMPILED, [9.0, 0.0, 4.0, 0.0])
    assert [len(process.files(kind)) for kind in (".record", ".py", ".code")] == [2, 2, 2]
    expect(process.run(program), (False, 2), [9.0, 0.0, 4.0, 0.0])
    assert "def f_gradient" in process.files(".py")[0].read_text()


def test_the_first_gradient_of_the_lotka_volterra_loss_is_there_at_once(process):
    program = """
        from zygote_py import demo
        _, hare, lynx = demo.read_pelts()
        theta = demo.start_of(hare, lynx)
        vg = value_and_gradient(demo.loss, wrt="theta")
        value, slope = vg(theta, hare, lynx)
        print(time.process_time() - began)  # not the time of the clock: other tests run beside this one
        show(vg, value, slope)
    """
    first = process.text(program).splitlines()
    times = []
    for _ in range(3):
        seconds, second = process.text(program).splitlines()
        stages, hits, results = json.loads(second)
        assert (stages, hits) == READ
        assert results == json.loads(first[1])[2]
        times.append(float(seconds))
    assert min(times) < 0.3


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
    # by hand: with s = sum(W) (x^2 + 0.5), the derivative by x is POWER s^(POWER - 1) sum(W) 2x scale
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
    expect(process.run(program), READ, expected)
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


def test_without_compilation(process):
    program = """
        def f(x):
            return x * x * x
        df = gradient(f)
        show(df, df(2.0))
    """
    assert process.run(program)[2] == [12.0]
    assert process.run(program, NUMBA_DISABLE_JIT="1") == (False, 0, [12.0])


def test_source_of_what_was_read(process):
    program = """
        def f(x):
            return x * x * x
        df = gradient(f)
        df(2.0)
        show(df, len(df.source(2.0)))
    """
    _, _, (length,) = process.run(program)
    assert process.run(program) == (False, 1, [length])


def test_inspection_after_the_cache(process):
    program = """
        def f(x):
            return x * x * x
        df = gradient(f)
        value = df(2.0)
        source = df.source(2.0)
        assert df.inspect_llvm(2.0).startswith("define")
        assert "ret" in df.inspect_asm(2.0)
        assert df.primal_ir(2.0).startswith("primal f(")
        show(df, value, df(3.0), len(source))
    """
    first, second = process.run(program), process.run(program)
    assert first[2] == second[2]
    assert second[1] == 1


# What is changed is compiled anew

MODEL = """
from callee import g
import constants
POWER = 2
def f(x, k=1):
    return g(x) ** POWER * constants.count + k * x
"""
CALLEE = """
FACTOR = 3
def h(x):
    return x * FACTOR
def g(x):
    return h(x) + 1.0
"""


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("callee.py", "+ 1.0", "+ 2.0", 2 * 5.0 * 3 * 2 + 1),
        ("callee.py", "FACTOR = 3", "FACTOR = 4", 2 * 5.0 * 4 * 2 + 1),
        ("callee.py", "x * FACTOR", "x * x * FACTOR", 2 * 4.0 * 6 * 2 + 1),
        ("model.py", "POWER = 2", "POWER = 1", 3 * 2 + 1),
        ("model.py", "k=1", "k=5", 2 * 4.0 * 3 * 2 + 5),
        ("model.py", "+ k * x", "- k * x", 2 * 4.0 * 3 * 2 - 1),
        ("constants.py", "count = 2", "count = 7", 2 * 4.0 * 3 * 7 + 1),
    ],
)
def test_what_is_changed_is_compiled_anew(process, file, old, new, expected):
    process.write("model.py", MODEL)
    process.write("callee.py", CALLEE)
    process.write("constants.py", "count = 2\n")
    program = """
        from model import f
        df = gradient(f, wrt="x")
        show(df, df(1.0))
    """
    expect(process.run(program), COMPILED, [49.0])
    source = (process.folder / file).read_text()
    assert old in source
    process.write(file, source.replace(old, new))
    expect(process.run(program), COMPILED, [expected])
    expect(process.run(program), READ, [expected])


def test_options_and_rules_are_part_of_the_key(process):
    program = """
        import os
        import zygote_py as zg
        def g(x):
            return x * x
        def f(x):
            return g(x) / x
        if os.environ.get("RULE"):
            @zg.adjoint(g)
            def rule(x):
                def back(dy):
                    return (dy * RULE,)
                return x * x, back
            RULE = int(os.environ["RULE"])
        df = gradient(numba.njit(error_model="numpy")(f) if os.environ.get("OPTION") else f)
        show(df, df(2.0))
    """
    expect(process.run(program), COMPILED, [1.0])
    expect(process.run(program, OPTION="1"), COMPILED, [1.0])
    for rule in ("10", "20"):
        stages, _, results = process.run(program, RULE=rule)
        assert stages
        assert results == [int(rule) / 2 - 1.0]
    expect(process.run(program), READ, [1.0])


def test_overloads_of_others_are_part_of_the_key(process):
    program = """
        import os
        from numba.extending import overload
        def scale(x):
            return 0.0
        FACTOR = int(os.environ["FACTOR"])
        @overload(scale)
        def overload_scale(n):
            return lambda n: n * FACTOR
        def f(x, n):
            return x * scale(n)
        df = gradient(f, wrt="x")
        show(df, df(2.0, 3))
    """
    assert process.run(program, FACTOR="2")[2] == [6.0]
    assert process.run(program, FACTOR="5")[2] == [15.0]
    assert process.run(program, FACTOR="2")[2] == [6.0]


def test_settings_of_numba_are_part_of_the_key(process):
    program = """
        def f(a):
            return a[0] * a[5]
        df = gradient(f)
        try:
            df(np.ones(2))
            print("no error")
        except IndexError:
            print("IndexError")
    """
    assert process.text(program, NUMBA_BOUNDSCHECK="1") == "IndexError\n"
    fine = "def f(a):\n    return a[0] * a[1]\ndf = gradient(f)\nshow(df, df(np.ones(2)))"
    assert process.run(fine)[:2] == COMPILED
    assert process.run(fine, NUMBA_OPT="1")[:2] == COMPILED
    assert process.run(fine)[:2] == READ


# Files


SIMPLE = """
    def f(x):
        return x * x * x
    df = gradient(f)
    show(df, df(2.0))
"""


@pytest.mark.parametrize("kind", [".record", ".py", ".code"])
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "missing"])
def test_damaged_files(process, kind, damage):
    process.run(SIMPLE)
    (path,) = process.files(kind)
    data = path.read_bytes()
    changed = {"cut": data[: len(data) // 2], "changed": data[:-5] + b"x" + data[-4:], "empty": b""}
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(changed[damage])
    assert process.run(SIMPLE)[2] == [12.0]
    expect(process.run(SIMPLE), READ, [12.0])


def test_switched_off(process):
    for _ in range(2):
        expect(process.run(SIMPLE, ZYGOTE_PY_CACHE="0"), COMPILED, [12.0])
    assert not process.cache.exists()


def test_a_folder_that_cannot_be_made(process):
    (process.folder / "file").write_text("")
    where = str(process.folder / "file" / "cache")
    expect(process.run(SIMPLE, ZYGOTE_PY_CACHE_DIR=where), COMPILED, [12.0])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(process):
    process.cache.mkdir()
    process.cache.chmod(0o500)
    expect(process.run(SIMPLE), COMPILED, [12.0])


def test_many_processes_at_once(process):
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: process.run(SIMPLE), range(6)))
    assert all(results == [12.0] for _, _, results in found)
    expect(process.run(SIMPLE), READ, [12.0])
    assert not process.files(".tmp")
    assert len(process.files(".record")) == 1


def test_the_size_is_limited(process):
    program = """
        import os
        def made(n):
            return gradient(lambda x: x**n)
        for n in range(2, int(os.environ["LAST"])):
            df = made(n)
            df(2.0)
        df = made(int(os.environ["LAST"]))
        show(df, df(2.0))
    """
    process.run(program, LAST="4")
    size = sum(path.stat().st_size for path in process.cache.iterdir())  # of three gradients
    process.run(program, ZYGOTE_PY_CACHE_SIZE=str(size / 1e6), LAST="9")
    assert size / 4 < sum(path.stat().st_size for path in process.cache.iterdir()) <= size
    only_the_last = program.replace('in range(2, int(os.environ["LAST"]))', "in ()")
    expect(process.run(only_the_last, LAST="9"), READ, [9 * 2.0**8])
    expect(process.run(only_the_last, LAST="2"), COMPILED, [4.0])


def test_commands(process, monkeypatch, capsys):
    monkeypatch.setattr(folder, "_switched_on", True)
    process.run(SIMPLE)
    for name, value in process.environment.items():
        monkeypatch.setenv(name, value)
    other = process.cache / "notes.txt"
    other.write_text("not of the cache")
    assert cli.main(["cache", "info"]) == 0
    printed = capsys.readouterr().out
    assert f"folder: {process.cache}\n" in printed
    assert "gradients: 1\n" in printed
    assert "of at most 512.0 MB" in printed
    assert cli.main(["cache", "clear"]) == 0
    assert "1 gradient deleted" in capsys.readouterr().out
    assert [path.name for path in process.cache.iterdir()] == ["notes.txt"]
    monkeypatch.setenv("ZYGOTE_PY_CACHE", "off")
    assert cli.main(["cache", "info"]) == 0
    assert "switched off" in capsys.readouterr().out
    monkeypatch.setenv("ZYGOTE_PY_CACHE_DIR", str(process.folder / "nowhere"))
    assert cli.main(["cache", "clear"]) == 0
    expect(process.run(SIMPLE), COMPILED, [12.0])
