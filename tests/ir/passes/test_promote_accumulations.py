"""Sums kept in a variable while a loop runs: only where there is one element, and only if the loop has run."""

import numpy as np
import pytest

from tests.ir.transform import read, shown
from zygote_py.ir import Instr, interpret, ops, verify
from zygote_py.ir.passes import promote_accumulations

HEADER = "function f(%x: f64[::1], %y: f64[::1], %n: i64, %i: i64) -> f64[::1]"
LOOP = """
    b0:
      jump b1
    b1:
      %k0: i64 = phi b0: START, b2: %k1
      %c = lt %k0, BOUND : bool
      branch %c, b2, b3
    b2:
      %v = getitem %y, %k0 : f64
      BODY
      %k1 = add %k0, 1 : i64
      jump b1
    b3:
      return %x
    """


def made(body, start="0", bound="%n", origin=True):
    function = read(LOOP.replace("BODY", body).replace("START", start).replace("BOUND", bound), HEADER)
    for instr in function.values():
        if isinstance(instr, Instr) and instr.op is ops.accumulate and origin:
            instr.origin = instr
    return function


def left_in_x(function, n, i):
    x, y = np.arange(3.0), np.array([0.5, 0.25, 4.0, 8.0])
    interpret(function, x, y, n, i)
    return x.tolist()


def test_one_addition_behind_the_loop():
    function = made("accumulate %x, %v, %i")
    wanted = [left_in_x(function, n, 1) for n in (0, 1, 4)]
    promote_accumulations(function)
    verify(function)
    assert [left_in_x(function, n, 1) for n in (0, 1, 4)] == wanted
    loop, behind = shown(function).split("\nb3:")
    assert "accumulate" not in loop
    assert behind.count("accumulate") == 1


@pytest.mark.parametrize("n", [0, -2])
def test_no_iteration_and_no_such_element(n):
    function = made("accumulate %x, %v, %i")
    promote_accumulations(function)
    assert left_in_x(function, n, 99) == [0.0, 1.0, 2.0]


def test_bounds_that_are_known():
    function = made("accumulate %x, %v, %i", bound="4")
    wanted = left_in_x(function, 0, 2)
    promote_accumulations(function)
    verify(function)
    assert left_in_x(function, 0, 2) == wanted
    assert shown(function).count("branch") == 1
    never = made("accumulate %x, %v, %i", start="4", bound="4")
    before = shown(never)
    promote_accumulations(never)
    assert shown(never) == before


@pytest.mark.parametrize(
    "body",
    [
        "accumulate %x, %v, %k0",  # another element each time
        "accumulate %x, %v, %i\n      setitem %x, %v, %n",  # perhaps the same, and set
        "accumulate %x, %v, %i\n      %w = getitem %x, 0 : f64",  # read meanwhile
    ],
)
def test_left_alone(body):
    function = made(body)
    before = shown(function)
    promote_accumulations(function)
    assert shown(function) == before


def test_other_additions_to_the_same_array():
    function = made("accumulate %x, %v, %i\n      accumulate %x, %v, %k0\n      accumulate %x, %v, 1")
    wanted = [left_in_x(function, n, i) for n in (0, 1, 3) for i in range(3)]
    promote_accumulations(function)
    verify(function)
    assert [left_in_x(function, n, i) for n in (0, 1, 3) for i in range(3)] == wanted
    loop, behind = shown(function).split("\nb3:")
    assert loop.count("accumulate") == 1  # the one to another element each time
    assert behind.count("accumulate") == 2


def test_an_addition_that_the_user_wrote_stands_between():
    function = made("accumulate %x, %v, %i\n      accumulate %x, %v, %k0")
    *_, last = (each for each in function.values() if isinstance(each, Instr) and each.op is ops.accumulate)
    last.origin = None
    before = shown(function)
    promote_accumulations(function)
    assert shown(function) == before


def test_what_the_user_wrote_keeps_its_order():
    function = made("accumulate %x, %v, %i", origin=False)
    before = shown(function)
    promote_accumulations(function)
    assert shown(function) == before


def test_loops_in_loops():
    source = """
    b0:
      jump b1
    b1:
      %j0: i64 = phi b0: 0, b4: %j1
      %c0 = lt %j0, 3 : bool
      branch %c0, b2, b5
    b2:
      %k0: i64 = phi b1: 0, b3: %k1
      %c1 = lt %k0, 2 : bool
      branch %c1, b3, b4
    b3:
      %v = getitem %y, %k0 : f64
      accumulate %x, %v, %i
      %k1 = add %k0, 1 : i64
      jump b2
    b4:
      %j1 = add %j0, 1 : i64
      jump b1
    b5:
      return %x
    """
    function = read(source, HEADER)
    for instr in function.values():
        if isinstance(instr, Instr) and instr.op is ops.accumulate:
            instr.origin = instr
    promote_accumulations(function)
    verify(function)
    assert left_in_x(function, 0, 1) == [0.0, 1.0 + 3 * 0.75, 2.0]
    before, _, after = shown(function).rpartition("jump b1")
    assert "accumulate" not in before
    assert after.count("accumulate") == 1
