"""Stacks that are filled and emptied together become one of tuples; what is computed stays the same."""

from __future__ import annotations

import pytest

from tests.ir.transform import read, shown
from zygote_py.ir import interpret, verify
from zygote_py.ir.passes import join_stacks

LOOPS = """
b0:
  %s = stack : list(f64)
  %t = stack : list(f64)
  jump b1
b1:
  %i: i64 = phi b0: 0, b2: %i2
  %x1: f64 = phi b0: %x, b2: %x2
  %c = lt %i, %n : bool
  branch %c, b2, b3
b2:
  {pushes}
  %x2 = mul %y, 1.5 : f64
  %i2 = add %i, 1 : i64
  jump b1
b3:
  jump b4
b4:
  %k: i64 = phi b3: %i, b5: %k2
  %r: f64 = phi b3: 0.0, b5: %r2
  %d = gt %k, 0 : bool
  branch %d, b5, b6
b5:
  {pops}
  %k2 = sub %k, 1 : i64
  jump b4
b6:
  return %r
"""
PUSHES = """%y = add %x1, 1.0 : f64
  push %s, %x1
  %z = sub %x1, 2.0 : f64
  push %t, %z"""
POPS = """%b = pop %t : f64
  %q = mul %b, %r : f64
  %a = pop %s : f64
  %r2 = add %q, %a : f64"""


def joined(pushes: str, pops: str) -> str:
    function = read(LOOPS.format(pushes=pushes, pops=pops), "function f(%x: f64, %n: i64) -> f64")
    expected = [interpret(function, 0.5, n) for n in range(4)]
    join_stacks(function)
    verify(function, "join_stacks")
    assert [interpret(function, 0.5, n) for n in range(4)] == expected
    return shown(function)


def test_two_stacks_become_one():
    text = joined(PUSHES, POPS)
    assert text.count("= stack") == text.count("push ") == text.count("= pop") == 1
    assert "list((f64, f64))" in text


@pytest.mark.parametrize(
    ("pushes", "pops"),
    [
        (PUSHES + "\n  push %t, %y", POPS.replace("%a =", "%b2 = pop %t : f64\n  %a =")),
        (PUSHES, POPS + "\n  push %t, %a\n  %e = pop %t : f64"),
    ],
    ids=["twice in a block", "pushed again"],
)
def test_others_are_left(pushes, pops):
    assert joined(pushes, pops).count("= stack") == 2
