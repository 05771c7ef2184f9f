"""Emitted source stands alone: it runs where zygote_py cannot be imported, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import zygote_py as zg
from tests.emit.standalone_classes import Dense, Kind, Net, Point, leaves
from tests.modes import one_in

ROOT = Path(__file__).parents[2]
BLOCKED = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "zygote_py":
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Missing())
import numpy as np
from tests.emit.standalone_classes import Dense, Net, Point, leaves

def run(text, call):
    namespace = {"__name__": "emitted"}
    exec(text, namespace)
    return leaves(eval(call, {**namespace, "np": np, "Dense": Dense, "Net": Net, "Point": Point}))
"""


def of_layer(layer, x):
    return np.sum(layer(x))


def of_net(net, x):
    return np.sum(net.first(x)) * -net.scale


def of_point(point):
    return point.x * np.sum(point.layer.b)


def made_inside(x):
    layer = Dense(np.ones((2, 2)) * x, np.ones(2))
    return np.sum(layer(np.ones(2)))


def by_kind(x, kind=Kind.SQUARE, most=float("inf")):
    return min(x * x, most) if kind == Kind.SQUARE else min(x**3, most)


def around(w):
    def of_captured(x):
        return np.sum(w * x) * x

    return of_captured


def local_classes():
    @dataclass(frozen=True)
    class Pair:
        a: float
        b: np.ndarray

    def of_pair(pair):
        return pair.a * np.sum(pair.b**2)

    return of_pair, Pair(3.0, np.array([1.0, 2.0]))


X = np.array([0.3, -0.2])
DENSE = Dense(np.array([[0.5, -1.0], [2.0, 0.25]]), np.array([0.1, 0.2]))
OF_PAIR, PAIR = local_classes()
LAYER = "Dense(np.array([[0.5, -1.0], [2.0, 0.25]]), np.array([0.1, 0.2]))"
AT = "np.array([0.3, -0.2])"
CASES = {
    "with the value": (
        zg.value_and_gradient(of_net),
        (Net(DENSE), X),
        f"of_net_value_and_gradient(Net({LAYER}), {AT})",
    ),
    "a dataclass": (zg.gradient(of_layer), (DENSE, X), f"of_layer_gradient({LAYER}, {AT})"),
    "defaults": (zg.gradient(by_kind, wrt=0), (3.0,), "by_kind_gradient(3.0)"),
    "in another": (zg.gradient(of_net), (Net(DENSE, 3.0), X), f"of_net_gradient(Net({LAYER}, 3.0), {AT})"),
    "captured": (
        zg.gradient(around(np.array([1.0, 2.0])), closure=True),
        (2.0,),
        "of_captured_gradient(2.0, np.array([1.0, 2.0]))",
    ),
    "in a NamedTuple": (zg.gradient(of_point), (Point(2.0, DENSE),), f"of_point_gradient(Point(2.0, {LAYER}))"),
    "a local class": (zg.gradient(OF_PAIR), (PAIR,), "of_pair_gradient(Pair(3.0, np.array([1.0, 2.0])))"),
    "made inside": (zg.gradient(made_inside), (1.5,), "made_inside_gradient(1.5)"),
}


@pytest.fixture(scope="module")
def alone(request):
    """Return what the emitted modules compute in a process without zygote_py, by the names of the cases to run."""
    lines = [BLOCKED, "found = {}"]
    tests = (each for each in request.session.items if "alone" in each.fixturenames)
    for name in dict.fromkeys(each.callspec.params["name"] for each in tests):
        derivative, args, call = CASES[name]
        lines.append(f"found[{name!r}] = run({derivative.source(*args)!r}, {call!r})")
    lines.append("assert not any(name.partition('.')[0] == 'zygote_py' for name in sys.modules)")
    lines.append("print(found)")
    environment = {**os.environ, "NUMBA_OPT": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_the_source_computes_the_same_without_the_package(name, alone):
    derivative, args, _ = CASES[name]
    here = leaves(derivative(*args))
    assert len(alone[name]) == len(here)
    for got, want in zip(alone[name], here, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


def test_what_cannot_be_imported_is_defined():
    source = zg.gradient(OF_PAIR).source(PAIR)
    assert "Pair = make_dataclass('Pair', ['a', 'b'], frozen=True)" in source


def test_ordinary_sources_name_nothing_of_the_package():
    assert "zygote_py" not in zg.gradient(by_kind, wrt=0).source(3.0)
