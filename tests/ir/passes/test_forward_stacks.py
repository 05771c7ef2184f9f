"""Stacks of one item at a time are values; what is computed stays the same."""

from __future__ import annotations

import pytest

from tests.ir.transform import read, shown
from zygote_py.ir import interpret, verify
from zygote_py.ir.passes import forward_stacks, remove_dead_code

BRANCHES = """
b0:
  %s = stack : list(f64)
  %c = gt %n, 1 : bool
  {first}
  branch %c, b1, b2
b1:
  {second}
  jump b3
b2:
  {third}
  jump b3
b3:
  %r: f64 = phi b1: %a, b2: 0.5
  {fourth}
  return %r
"""
ROUNDS = """
b0:
  {outside}
  jump b1
b1:
  %i: i64 = phi b0: 0, b4: %i2
  %r: f64 = phi b0: 0.0, b4: %r2
  %c = lt %i, %n : bool
  branch %c, b2, b5
b2:
  {inside}
  push %s, %x1
  %d = gt %i, 1 : bool
  branch %d, b3, b4
b3:
  jump b4
b4:
  %a = pop %s : f64
  %q = mul %r, 0.5 : f64
  %r2 = add %q, %a : f64
  %i2 = add %i, 1 : i64
  jump b1
b5:
  return %r
"""
STACK, SUM = "%s = stack : list(f64)", "%f = float %i : f64\n  %x1 = add %x, %f : f64"


def forwarded(text: str) -> str:
    function = read(text, "function f(%x: f64, %n: i64) -> f64")
    expected = [interpret(function, 0.5, n) for n in range(5)]
    forward_stacks(function)
    verify(function, "forward_stacks")
    remove_dead_code(function)
    assert [interpret(function, 0.5, n) for n in range(5)] == expected
    return shown(function)


@pytest.mark.parametrize(
    "parts",
    [
        {"first": "push %s, %x", "second": "%a = pop %s : f64"},
        {"second": "push %s, %x\n  %a = pop %s : f64"},
        {"first": "%y = mul %x, 2.0 : f64\n  push %s, %y", "second": "%a = pop %s : f64", "third": "%z = neg %x : f64"},
        {"first": "push %s, %x", "second": "%a = neg %x : f64", "third": "push %s, %x"},  # nothing is popped
        {  # from one to another
            "first": "push %s, %x\n  %t = stack : list(f64)\n  %y = pop %s : f64\n  push %t, %y",
            "second": "%a = pop %t : f64",
        },
    ],
)
def test_what_is_pushed_before_is_the_value(parts):
    text = forwarded(BRANCHES.format(**{"first": "", "second": "", "third": "", "fourth": "", **parts}))
    assert "stack" not in text
    assert "pop" not in text


def test_in_each_round():
    assert "stack" not in forwarded(ROUNDS.format(outside="", inside=f"{STACK}\n  {SUM}"))


@pytest.mark.parametrize(
    "text",
    [
        ROUNDS.format(outside=STACK, inside=SUM),  # made outside of the loop
        BRANCHES.format(  # two items
            first="push %s, %x\n  %y = neg %x : f64\n  push %s, %y", second="%a = pop %s : f64", third="", fourth=""
        ),
        BRANCHES.format(  # popped in two places
            first="push %s, %x", second="%a = pop %s : f64", third="%b = pop %s : f64", fourth=""
        ),
        BRANCHES.format(  # known by another name
            first="push %s, %x\n  %t = copied %s : list(f64)", second="%a = pop %t : f64", third="", fourth=""
        ),
    ],
)
def test_other_stacks_stay(text):
    assert "stack" in forwarded(text)
