"""Captured structured arrays and records: read at each call, never written to, with gradients by name."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import zygote_py as zg
from tests.api.test_structured_arrays import bodies
from zygote_py import DifferentiationError, gradient

CAPTURED = bodies()
ONE = CAPTURED[1]


def of_captured(y):
    total = 0.0
    for i in range(len(CAPTURED)):
        total += CAPTURED[i]["x"] * CAPTURED["n"][i] * y * y
    return total + ONE["y"] ** 2 * y


class Planets:
    def __init__(self, made):
        self.made = made

    def energy(self, y):
        return self.made["x"][1] * y**3 + self.made[0]["y"]


@pytest.mark.interpreted
def test_captured_arrays_and_records():
    def slope(y):
        return sum(2.0 * each["x"] * each["n"] * y for each in CAPTURED) + ONE["y"] ** 2

    df = gradient(of_captured)
    assert math.isclose(df(1.5), slope(1.5), rel_tol=1e-13)
    assert math.isclose(zg.hessian(of_captured)(1.5), slope(2.5) - slope(1.5), rel_tol=1e-12)
    assert math.isclose(gradient(lambda y: df(y) * y)(1.5), 2.0 * slope(1.5) - ONE["y"] ** 2, rel_tol=1e-13)
    before, CAPTURED["x"][2] = CAPTURED["x"][2], 5.0
    assert math.isclose(df(1.5), slope(1.5), rel_tol=1e-13)  # read at each call
    CAPTURED["x"][2] = before

    dy, captured = gradient(of_captured, closure=True)(1.5)
    assert math.isclose(dy, slope(1.5), rel_tol=1e-13)
    assert np.allclose(captured.CAPTURED["x"], CAPTURED["n"] * 2.25, rtol=1e-13)
    assert not captured.CAPTURED["y"].any()
    assert math.isclose(captured.ONE["y"][0], 2.0 * ONE["y"] * 1.5, rel_tol=1e-13)
    found = gradient(of_captured, wrt="CAPTURED")(1.5)
    assert found.tolist() == captured.CAPTURED.tolist()
    inside = gradient(lambda y: gradient(of_captured, closure=True)(y)[1].CAPTURED["x"][2])
    assert math.isclose(inside(1.5), 3 * 2.0 * 1.5, rel_tol=1e-13)

    planets = Planets(bodies())
    of_energy = gradient(planets.energy)
    assert math.isclose(of_energy(2.0), 12.0 * planets.made["x"][1], rel_tol=1e-13)
    planets.made = planets.made[::-1].copy()
    assert math.isclose(of_energy(2.0), 12.0 * planets.made["x"][1], rel_tol=1e-13)


def test_captured_arrays_and_records_are_read_only():
    def to_an_array(y):
        CAPTURED[0].x = y
        return CAPTURED[0].x * y

    def to_a_record(y):
        ONE.x = y
        return ONE.x * y

    def beside(a, y):
        a["x"][0] = y
        return a["x"][0] * CAPTURED["x"][0]

    for function in (to_an_array, to_a_record):
        with pytest.raises(DifferentiationError, match="cannot be written to"):
            gradient(function)(2.0)
    with pytest.raises(ValueError, match="share memory"):
        gradient(beside)(CAPTURED, 2.0)
    assert gradient(beside, wrt=1)(CAPTURED.copy(), 2.0) == CAPTURED["x"][0]
    assert CAPTURED.tolist() == bodies().tolist()
    compiled = gradient(of_captured)
    assert njit(lambda y: compiled(y))(1.5) == compiled(1.5)
