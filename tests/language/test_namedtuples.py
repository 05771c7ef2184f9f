"""NamedTuples and tuples as arguments, results, locals and captured values; gradients of the same class."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

from tests.checking.derivatives import ALL_ROUTES, check_derivatives
from zygote_py import gradient, value_and_gradient

pytestmark = pytest.mark.interpreted


class Point(NamedTuple):
    x: float
    y: float


class Body(NamedTuple):
    at: Point
    speed: np.ndarray
    mass: float
    number: int = 2
    scale: float = 0.5


BODY = Body(Point(1.5, -0.5), np.array([0.3, 0.7, -1.1]), 2.0, 3, 0.25)


def energy(body, g):
    total = 0.0
    for v in body.speed:
        total += v * v
    return 0.5 * body.mass * total * body.scale + g * body.mass * body.at.y + body.at.x**body.number


def test_a_namedtuple_with_arrays_and_namedtuples():
    found = check_derivatives(energy, BODY, 9.81, routes=ALL_ROUTES)
    assert found[0].number is None
    assert type(found[0].at) is Point


def test_the_gradient_of_the_only_argument_is_its_class():
    found = gradient(lambda p: p.x * p.y)(Point(2.0, 3.0))
    assert found == Point(3.0, 2.0)
    assert type(found) is Point


def test_inner_functions_return_and_take_them():
    def moved(body, by):
        return Body(Point(body.at.x + by, body.at.y * by), body.speed, body.mass, body.number)

    def both(body):
        return moved(body, 2.0), (body.mass, body.at)

    def f(body, g):
        other, (mass, at) = both(body)
        return energy(other, g) * mass + at.x * other.at.y

    check_derivatives(f, BODY, 9.81, routes=ALL_ROUTES)


def test_defaults_are_filled_in():
    def f(x, v):
        made = Body(Point(x, 2 * x), v, x * x)
        named = Body(mass=x, speed=v, at=Point(y=x, x=1.0), scale=x)
        return energy(made, 1.5) + energy(named, 0.5)

    check_derivatives(f, 1.25, np.array([1.0, 2.0]), routes=ALL_ROUTES)


def test_one_is_chosen_in_a_branch_and_changed_in_a_loop():
    def f(p, q, n):
        r = p if p.x > q.x else Point(q.y, q.x * p.y)
        for i in range(n):
            r = Point(r.y * q.x + i, r.x - q.y)
        return r.x * r.y

    check_derivatives(f, Point(1.0, 2.0), Point(3.0, -0.5), 3, routes=ALL_ROUTES)
    check_derivatives(f, Point(4.0, 2.0), Point(3.0, -0.5), 2, routes=ALL_ROUTES)


def test_captured_ones_are_read_at_each_call():
    def f(x):
        return energy(BODY, x) * x

    check_derivatives(f, 1.5, routes=ALL_ROUTES)


def test_tuples_of_tuples():
    def f(t):
        (a, b), (v, (c,)) = t
        return a * b * c + v[0] * v[1]

    check_derivatives(f, ((2.0, 3.0), (np.array([4.0, 5.0]), (6.0,))), routes=ALL_ROUTES)


def test_loops_over_tuples_of_several_types():
    def f(x, t):
        total = 0.0
        for v in (1, x, 2, x * x):
            total += v * x
        for part in t:
            total *= weight(part)
        return total

    def weight(part):
        s = 0.0
        for v in part:
            s += v * v
        return s

    check_derivatives(f, 1.5, ((2.0, 3.0), np.array([1.0, 2.0, 3.0]), (1.0, 2.0, 0.5)), routes=ALL_ROUTES)


def test_fields_without_derivative_are_none_in_compiled_code():
    df = gradient(energy, wrt="body")

    @numba.njit
    def step(body, g):
        d = df(body, g)
        return Body(Point(body.at.x - d.at.x, body.at.y - d.at.y), body.speed - d.speed, body.mass, 1, d.scale)

    found = step(BODY, 9.81)
    expected = df(BODY, 9.81)
    assert found.at == Point(BODY.at.x - expected.at.x, BODY.at.y - expected.at.y)
    np.testing.assert_array_equal(found.speed, BODY.speed - expected.speed)


def test_a_local_class():
    class Pair(NamedTuple):
        a: float
        b: float

    found = gradient(lambda p: p.a * p.b)(Pair(2.0, 3.0))
    assert type(found) is Pair
    assert found == Pair(3.0, 2.0)


def test_saved_source_imports_the_class(tmp_path: Path):
    source = value_and_gradient(energy).source(BODY, 9.81)
    assert f"from {__name__} import Body\n" in source
    program = f"""
import numpy as np
{source}
from {__name__} import BODY
value, (body, g) = energy_value_and_gradient(BODY, 9.81)
print(type(body).__name__, float(body.mass), body.number)
"""
    (tmp_path / "saved.py").write_text(program, encoding="utf-8")
    here = Path(__file__).parent
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(here.parents[1]), str(here), os.environ.get("PYTHONPATH", "")])
    }
    out = subprocess.run([sys.executable, "saved.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    expected = gradient(energy)(BODY, 9.81)[0]
    assert out.stdout.split() == ["Body", repr(float(expected.mass)), "None"]
