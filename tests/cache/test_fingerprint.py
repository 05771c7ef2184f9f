"""The key of a gradient in the cache: the same in every process, but different if something else would be compiled."""

from __future__ import annotations

import builtins
import ctypes
import enum
import functools
import inspect
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
from numba import njit, objmode, types

import zygote_py as zg
from zygote_py import GradientFunction, checkpoint, derivative, gradient, hessian, hook, hvp, ignore, inverse
from zygote_py.cache.environment import registered
from zygote_py.cache.fingerprint import fingerprint
from zygote_py.cache.inspection import NotCacheable

W = np.ones(3)
SCALE = 2.0
COUNT = 3
TABLE = (1.0, 2.0)


def digest(df: GradientFunction, *args: object, environment: str = "") -> str:
    request = df._request
    return fingerprint(request, df._types(df._bind(args, {})), (), environment, ()).digest


def helper(x):
    return x * COUNT


def model(x, k=2):
    return np.sum(W) * SCALE * helper(x) ** k * TABLE[0]


def test_the_same_again():
    assert digest(gradient(model), 1.0) == digest(gradient(model), 2.0)
    assert digest(gradient(lambda x: x), 1.0) != digest(gradient(lambda x: -x), 1.0)


def test_our_own_functions_are_imported_when_they_are_asked_for(monkeypatch):
    def f(x, n):
        for _ in zg.checkpointed(range(n)):
            x = math.sin(x) + zg.stop_gradient(x)
        return x

    found = digest(gradient(f), 1.0, 3)
    monkeypatch.delitem(vars(zg), "checkpointed", raising=False)
    assert digest(gradient(f), 1.0, 3) == found


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


class Colour(enum.IntEnum):
    red = 1
    blue = 2
    crimson = 1


class Kind(enum.Enum):
    red = 1


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


def differ(code: str, old: str, new: str, names: dict[str, object] | None = None, value: object = 1.0) -> bool:
    """Whether a function has another digest after an edit of its module; the same it has if nothing is edited."""
    assert old in code
    found = [digest(made(each, **(names or {})), value) for each in (code, code, code.replace(old, new))]
    assert found[0] == found[1]
    return found[0] != found[2]


EDITS = {
    "a callee": ("def g(x):\n    return 2.0 * x\ndef f(x):\n    return g(x)", "2.0", "3.0"),
    "a decorated callee": ("@njit\ndef g(x):\n    return 2.0 * x\ndef f(x):\n    return g(x)", "2.0", "3.0"),
    "the options of a callee": (
        "@njit()\ndef g(x):\n    return x\ndef f(x):\n    return g(x)",
        "()",
        "(fastmath=True)",
    ),
    "a lambda": ("g = lambda x: 2.0 * x\ndef f(x):\n    return g(x)", "2.0", "3.0"),
    "an inner function": ("def f(x):\n    def g(y):\n        return 2.0 * y\n    return g(x)", "2.0", "3.0"),
    "what a closure captures": (
        "def power(n):\n    return lambda x: x**n\ng = power(2)\ndef f(x):\n    return g(x)",
        "(2)",
        "(3)",
    ),
    "a recursive function": ("def f(x):\n    return x if x < 2.0 else f(x - 1.0)", "2.0", "3.0"),
    "two that call one another": (
        "def f(x):\n    return x if x < 1.0 else g(x)\ndef g(x):\n    return f(x - 2.0)",
        "2.0",
        "3.0",
    ),
    "a default": ("def g(x, k=2.0):\n    return k * x\ndef f(x):\n    return g(x)", "2.0", "3.0"),
    "the default of a keyword": ("def g(x, *, k=2.0):\n    return k * x\ndef f(x):\n    return g(x)", "2.0", "3.0"),
    "a default that `wraps` gives": (
        "def h(x, k=2):\n    pass\n@functools.wraps(h)\ndef g(x, k):\n    return k * x\ndef f(x):\n    return g(x)",
        "k=2",
        "k=3",
    ),
    "functions in a tuple": ("g = (lambda x: 2.0 * x,)\ndef f(x):\n    return g[0](x)", "2.0", "3.0"),
    "a checkpoint": ("g = checkpoint(lambda x: 2.0 * x)\ndef f(x):\n    return g(x)", "2.0", "3.0"),
    "a checkpoint within": ("def g(x):\n    return 2.0 * x\ndef f(x):\n    return checkpoint(g)(x)", "2.0", "3.0"),
    "an ignored function": ("g = ignore(lambda x: 2.0 * x)\ndef f(x):\n    return x * g(x)", "2.0", "3.0"),
    "a hook": ("g = lambda dx: 2.0 * dx\ndef f(x):\n    return hook(x, g)", "2.0", "3.0"),
    "what is a constant in NumPy": ("np.extra = 2.0\ndef f(x):\n    return np.extra * x", "2.0", "3.0"),
    "what is put into builtins": ("builtins.extra = 2\ndef f(x):\n    return extra * x", "2", "3"),
    "a name for a function of NumPy": ("g = np.sin\ndef f(x):\n    return g(x)", "np.sin", "np.cos"),
    "a name for a function of Python": ("g = min\ndef f(x):\n    return g(x, 1.0)", "min", "max"),
    "a string": ("MODE = 'a'\ndef f(x):\n    return x if MODE == 'a' else -x", "MODE = 'a'", "MODE = 'b'"),
    "a slice": ("S = slice(0, 2)\ndef f(x):\n    return np.sum(x[S])", "2)", "3)"),
    "a dtype": ("D = np.dtype('f4')\ndef f(x):\n    return x * np.ones(1, D)[0]", "f4", "f8"),
    "a scalar": ("N = np.int64(2)\ndef f(x):\n    return x * N", "(2)", "(3)"),
    "the sign of zero": ("Z = (0.0, 1)\ndef f(x):\n    return x * Z[0]", "(0.0", "(-0.0"),
    "a name that is read through a string": (
        "def f(x):\n    return getattr(settings, 'a') * x",
        "'a'",
        "'b'",
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit(what, monkeypatch):
    code, old, new = EDITS[what]
    settings = ModuleType("settings")
    settings.a, settings.b = 1, 2
    for place in (builtins, np):
        monkeypatch.setattr(place, "extra", 0, raising=False)
    names = {"builtins": builtins, "functools": functools, "settings": settings}
    names |= {"njit": njit, "checkpoint": checkpoint, "ignore": ignore, "hook": hook}
    assert differ(code, old, new, names)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self.r * 2", "return self.r * 3"),  # `a`
        ("return self.r + 2", "return self.r + 3"),
        ("return r - 2", "return r - 3"),
        ("return self.r == 2", "return self.r == 3"),
        ("return 2.0, other", "return 3.0, other"),
        ("n: int = 2", "n: int = 3"),
        ("K = 2", "K = 3"),
        ("n: int", "m: int"),
        ("frozen=True", "frozen=True, unsafe_hash=True"),
    ],
)
@pytest.mark.parametrize("kind", ["dataclass", "NamedTuple", "derived"])
def test_what_a_class_defines(tmp_path, monkeypatch, kind, old, new):
    head = {"dataclass": "@dataclass(frozen=True)\nclass P:\n", "NamedTuple": "class P(NamedTuple):\n"}
    head["derived"] = "class Base(NamedTuple):\n    r: float\n    n: int = 2\nclass P(Base):\n"
    body = """
        K = 2
        def a(self):
            return self.r * 2
        @property
        def b(self):
            return self.r + 2
        @staticmethod
        def c(r):
            return r - 2
        def __eq__(self, other):
            return self.r == 2
        def __lt__(self, other):
            return 2.0, other
    """
    fields = "" if kind == "derived" else "    r: float\n    n: int = 2\n"
    text = "from dataclasses import dataclass\nfrom typing import NamedTuple\n" + head[kind] + fields
    text += textwrap.indent(textwrap.dedent(body), "    ") + "\ndef f(p):\n    return p.a()\n"
    if old not in text:
        return

    def found(text: str) -> str:
        path = tmp_path / "of_classes.py"
        path.write_text(text)
        module = ModuleType("of_classes")
        monkeypatch.setitem(sys.modules, "of_classes", module)
        exec(compile(text, str(path), "exec"), vars(module))
        return digest(gradient(module.f), module.P(1.0, 2))

    assert found(text) == found(text) != found(text.replace(old, new))


@pytest.mark.parametrize("value", [math.sin, 2, Point(1.0, 2.0), (1, 2), np.float32(1.0)], ids=repr)
def test_what_is_taken_for_another(value):
    """Objects that say that they are of NumPy, or go by the name of something else."""

    def double(x):
        return 2.0 * x

    double.__module__, double.__name__, double.__qualname__ = "numpy", "dot", "dot"
    code = "def f(x):\n    return g"
    assert digest(made(code, g=double), 1.0) != digest(made(code, g=np.dot), 1.0)
    assert digest(made(code, g=double), 1.0) != digest(made(code, g=value), 1.0)
    assert digest(made(code, g=value), 1.0) != digest(made(code, g=np.dot), 1.0)


def test_rules():
    def ruled(x):
        return x

    def rule(n):
        return lambda x: (x, lambda dy: (n * dy,))

    def found(*rules: object) -> str:
        df = gradient(ruled)
        return fingerprint(df._request, df._types((1.0,)), (), "", rules).digest

    assert found(ruled, rule(2)) == found(ruled, rule(2))
    assert len({found(), found(ruled, rule(2)), found(ruled, rule(3)), found(math.sin, rule(2))}) == 4
    with pytest.raises(NotCacheable):
        found(Opaque(), rule(2))


class Opaque:
    def __call__(self, x):
        return x


class Dynamic:
    def __getattr__(self, name):
        return name


def called_before(ufunc):
    ufunc(1.0)
    return ufunc


def with_objmode(x):
    with objmode(y="f8"):
        y = x + 1.0
    return y * x


def with_signature_attribute(x, k):
    return x


with_signature_attribute.__signature__ = inspect.signature(lambda x, k=2: 0.0)


@pytest.mark.parametrize(
    "held",
    [
        Dynamic(),
        njit(with_objmode),
        with_signature_attribute,
        functools.partial(operator.mul, 2.0),
        operator.itemgetter(0),
        called_before(numba.vectorize(lambda x: x)),
        np.frompyfunc(abs, 1, 1),
        functools.lru_cache(helper),
        Disc(1.0).area,
        [1, 2],
        {"a": 1},
        numba.typed.List([1.0]),
        np.array([None]),
        np.zeros(1, [("a", "O")])[0],
        enum.IntEnum("Unnamed", ["red"]).red,
        ctypes.CDLL(None).abs if os.name != "nt" else object(),
        frozenset([(1, 2)]),
    ],
    ids=lambda held: type(held).__name__,
)
def test_what_cannot_be_looked_into(held):
    with pytest.raises(NotCacheable):
        digest(made("def f(x):\n    return g", g=held), 1.0)
    with pytest.raises(NotCacheable):
        digest(made("def g(x):\n    return h\ndef f(x):\n    return g(x)", h=held), 1.0)


def test_enumerations_and_records_that_are_captured():
    code = "def f(x):\n    return x if c == d else -x"
    found = {digest(made(code, c=c, d=Colour.red), 1.0) for c in (Colour.red, Colour.blue, Kind.red, 1)}
    assert len(found) == 4
    assert digest(made(code, c=Colour.crimson, d=Colour.red), 1.0) in found  # another name of the same member
    code = "def f(x):\n    return x * r.a"
    kinds = [[("a", "f8")], [("a", "f4")], [("b", "f8"), ("a", "f8")], [("a", "f8"), ("b", "f8")], [("a", "i8")]]
    records = [np.ones(1, kind)[0] for kind in kinds]
    assert len({digest(made(code, r=record), 1.0) for record in records}) == len(kinds)
    assert digest(made(code, r=np.zeros(1, kinds[0])[0]), 1.0) == digest(made(code, r=records[0]), 1.0)


def test_derivatives_that_are_captured():
    code = "def f(x):\n    return d(x)"
    square, cube = (made(f"def f(x):\n    return x**{n}").primal for n in (2, 3))
    kinds = [
        gradient(square),
        gradient(cube),
        gradient(square, wrt="x"),
        derivative(square),
        hessian(square),
        hvp(square),
    ]
    kinds += [gradient(gradient(cube)), hessian(square, wrt="x")]
    digests = [digest(made(code, d=each), 1.0) for each in kinds]
    assert len(set(digests)) == len(kinds)
    again = made("def f(x):\n    return x**2").primal
    assert digest(made(code, d=gradient(again)), 1.0) == digests[0]


@pytest.mark.parametrize(
    "df",
    [
        gradient(lambda x: x * Local.value),
        gradient(lambda x: Jitted(x).x),
        gradient(lambda x: functools.partial(operator.mul, 2.0)(x)),
        local_structure(),
    ],
    ids=["a class", "a jitclass", "a library", "a local class"],
)
def test_what_is_not_known_is_not_kept(df):
    with pytest.raises(NotCacheable):
        digest(df, 1.0)


def test_inverses_have_a_say():
    def step(x):
        return x + 1.0

    def unstep(y):
        return y - 1.0

    inverse(step)(unstep)
    assert step in registered()
    assert unstep in registered()
