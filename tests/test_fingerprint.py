"""What the cache knows a gradient by: the same in every process, another where something else would be compiled."""

from __future__ import annotations

import functools
import math
import operator
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit, types

from zygote_py import GradientFunction, gradient, ignore
from zygote_py.cache.environment import registered, versions
from zygote_py.cache.fingerprint import NotCacheable, fingerprint

W = np.ones(3)
SCALE = 2.0
COUNT = 3
TABLE = (1.0, 2.0)


def digest(df: GradientFunction, *args: object, environment: str = "") -> str:
    request = df._request
    return fingerprint(request, df._types(df._bind(args, {})), (), environment, registered()).digest


def helper(x):
    return x * COUNT


def model(x, k=2):
    return np.sum(W) * SCALE * helper(x) ** k * TABLE[0]


def test_the_same_again():
    assert digest(gradient(model), 1.0) == digest(gradient(model), 2.0)
    assert digest(gradient(lambda x: x), 1.0) != digest(gradient(lambda x: -x), 1.0)


def test_the_same_in_every_process(tmp_path):
    program = """
        import numpy as np
        from zygote_py import gradient
        from zygote_py.cache.fingerprint import fingerprint
        names = {"sum", "prod"}
        def f(x, mode="fast"):
            if mode in ("fast", "slow"):
                return np.sum(x)
            return [each for each in x][0]
        request = gradient(f)._request
        print(fingerprint(request, gradient(f)._types((np.ones(2), "a")), (), "", ()).digest)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "program.py"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COUNT", 4),
        ("COUNT", 3.0),
        ("COUNT", True),
        ("SCALE", 2),
        ("SCALE", np.float32(2.0)),
        ("W", np.ones(3, np.float32)),
        ("W", np.ones((2, 3))[:, 1]),
        ("TABLE", (1.0, 3.0)),
        ("TABLE", (1, 2.0)),
        ("helper", lambda x: x * 5.0),
        ("helper", njit(lambda x: x * COUNT)),
        ("helper", math.sin),
    ],
)
def test_another_value_is_another_gradient(monkeypatch, name, value):
    before = digest(gradient(model), 1.0)
    monkeypatch.setitem(globals(), name, value)
    assert digest(gradient(model), 1.0) != before


@pytest.mark.parametrize(("name", "value"), [("SCALE", 7.0), ("W", np.zeros(8))])
def test_what_is_passed_counts_by_its_type(monkeypatch, name, value):
    before = digest(gradient(model), 1.0)
    monkeypatch.setitem(globals(), name, value)
    assert digest(gradient(model), 1.0) == before


def test_what_is_asked_for():
    forms = [
        gradient(model),
        gradient(model, wrt="x"),
        gradient(model, wrt=("x",)),
        gradient(model, wrt=("x", "W")),
        gradient(model, closure=True),
        gradient(njit(fastmath=True)(model)),
    ]
    assert len({digest(each, 1.0) for each in forms}) == len(forms)
    kinds = [1.0, 1, np.float32(1.0), np.ones(2), np.ones((2, 2)), (1.0, 2.0), (1.0, 2)]
    assert len({digest(gradient(lambda x: 0.0), kind) for kind in kinds}) == len(kinds)
    readonly = np.ones(2)
    readonly.flags.writeable = False
    assert digest(gradient(lambda x: 0.0), readonly) != digest(gradient(lambda x: 0.0), np.ones(2))


def made(code: str, **names: object):
    namespace = {"np": np, "math": math, **names}
    exec(textwrap.dedent(code), namespace)
    return gradient(namespace["f"])


def test_modules_and_what_is_read_of_them():
    one, two = ModuleType("settings"), ModuleType("settings")
    one.count, two.count = 1, 2
    one.unused, two.unused = object(), object()
    code = "def f(x):\n    return x * settings.count"
    assert digest(made(code, settings=one), 1.0) != digest(made(code, settings=two), 1.0)
    two.count = 1
    assert digest(made(code, settings=one), 1.0) == digest(made(code, settings=two), 1.0)
    outer = ModuleType("outer")
    outer.settings = one
    through = "def f(x):\n    return x * outer.settings.count"
    before = digest(made(through, outer=outer), 1.0)
    one.count = 5
    assert digest(made(through, outer=outer), 1.0) != before


def test_two_functions_that_read_different_things_of_a_module():
    settings = ModuleType("settings")
    settings.a, settings.b = 1, 2
    code = """
        def g(x):
            return x * settings.a
        def f(x):
            return g(x) + settings.b
    """
    before = digest(made(code, settings=settings), 1.0)
    settings.a = 3
    middle = digest(made(code, settings=settings), 1.0)
    settings.b = 4
    assert len({before, middle, digest(made(code, settings=settings), 1.0)}) == 3


def test_inner_functions_and_closures():
    def power(n):
        def inner(x):
            return x**n

        return gradient(lambda x: inner(x) + sum([y * COUNT for y in (x, x)]))

    assert digest(power(2), 1.0) == digest(power(2), 1.0) != digest(power(3), 1.0)


def test_constants_in_the_code():
    pairs = [("1.0", "1"), ("1.0", "-1.0"), ("0.0", "-0.0"), ("(1, 2)", "(1, 2.0)"), ("True", "1"), ("1j", "2j")]
    for one, other in pairs:
        code = "def f(x):\n    return x if x == {} else 0.0"
        assert digest(made(code.format(one)), 1.0) != digest(made(code.format(other)), 1.0)


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class Disc:
    r: float

    def area(self):
        return self.r * self.r * COUNT


def test_methods(monkeypatch):
    df = gradient(lambda disc: disc.area())
    before = digest(df, Disc(1.0))
    monkeypatch.setitem(globals(), "COUNT", 5)
    changed = digest(df, Disc(1.0))
    monkeypatch.setattr(Disc, "area", lambda self: self.r)
    assert len({before, changed, digest(df, Disc(1.0))}) == 3
    assert digest(gradient(lambda p: p.x), Point(1.0, 2.0)) != digest(gradient(lambda p: p.x), (1.0, 2.0))


class Local:
    value = 1.0


@numba.experimental.jitclass([("x", types.float64)])
class Jitted:
    def __init__(self, x):
        self.x = x


def local_structure():
    class P(NamedTuple):
        a: float

    return gradient(lambda x: P(x).a)


d_helper = gradient(helper)


@ignore
def ignored(x):
    return x


@pytest.mark.parametrize(
    "df",
    [
        gradient(lambda x: x * Local.value),
        gradient(lambda x: Jitted(x).x),
        gradient(lambda x: ignored(x)),
        gradient(lambda x: functools.partial(operator.mul, 2.0)(x)),
        gradient(lambda x: d_helper(x)),
        local_structure(),
    ],
    ids=["a class", "a jitclass", "ignored", "a library", "a gradient", "a local class"],
)
def test_what_is_not_known_is_not_kept(df):
    with pytest.raises(NotCacheable):
        digest(df, 1.0)


def test_the_environment(monkeypatch):
    before = versions()
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert versions() != before
    monkeypatch.setenv("ZYGOTE_PY_DUMP", "all")
    with pytest.raises(NotCacheable):
        versions()


def test_our_own_files(monkeypatch):
    from zygote_py.cache import environment

    environment.check_unchanged()
    monkeypatch.setattr(environment, "_BEGAN", 0.0)  # as if a file had been changed since
    with pytest.raises(NotCacheable):
        environment.check_unchanged()
