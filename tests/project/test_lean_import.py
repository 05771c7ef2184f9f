"""Importing the package imports nothing that only the compiler needs."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import zygote_py


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_compiler_is_imported_when_it_is_needed():
    out = run("""
        import sys
        from zygote_py import gradient
        df = gradient(lambda x: x * x)
        late = ["zygote_py.compiler.pipeline", "zygote_py.emit", "zygote_py.frontend"]
        late += ["scipy.linalg", "astor", "numba.typed.typedlist"]
        print([name for name in late if name in sys.modules])
        print(df(3.0), "zygote_py.compiler.pipeline" in sys.modules)
    """)
    assert out == "[]\n6.0 True\n"


def test_dataclasses_are_known_when_the_first_is_met():
    out = run("""
        from dataclasses import dataclass
        from numba import njit
        import zygote_py

        @dataclass(frozen=True)
        class Point:
            x: float

            def square(self):
                return self.x * self.x

        @njit
        def made(x):
            point = Point(x)
            return point.square(), point

        print(made(3.0), njit(lambda point: point.square())(Point(2.0)))
    """)
    assert out == "(9.0, Point(x=3.0)) 4.0\n"


def test_the_names_are_listed():
    assert "gradient" in zygote_py.__all__
    assert set(zygote_py.__all__) <= set(dir(zygote_py))
