"""Stacks that are filled and emptied together become one of tuples; what is computed stays the same."""

from __future__ import annotations

import math

import pytest

from tests.ir.transform import read, shown
from zygote_py.ir import Function, Routine, interpret, join_stacks, verify

ROUNDS = """
b0:
  %s = stack : list({item})
  %t = stack : list({item})
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
HEADER = "function f(%x: f64, %n: i64) -> f64"
LISTS = "function f(%s: list(f64), %t: list(f64), %x: f64, %n: i64) -> f64"
VALUES = [(0.5, n) for n in range(5)]


def joined(source: str, called: str = "", lists: str = LISTS) -> str:
    """The text of a function, and of a routine that it calls in place of `hypot`."""
    function, routine = read(source, HEADER), Routine("g")
    if called:
        routine.function = read(called, lists)
    functions: list[Function] = [function, routine.function] if called else [function]
    for each in functions:
        for instr in each.instrs():
            if instr.op is math.hypot:
                instr.op = routine
    routine.writes = frozenset((0, 1))
    expected = [interpret(function, *values) for values in VALUES]
    join_stacks([function], [routine] if called else [])
    for each in functions:
        verify(each, "join_stacks")
    assert [interpret(function, *values) for values in VALUES] == expected
    assert all(number < len(routine.function.params) for number in routine.writes) or not called
    return "\n".join(map(shown, functions))


def test_several_changes_in_a_block():
    pushes = """%y = add %x1, 1.0 : f64
  push %s, %x1
  push %s, %y
  %z = sub %x1, 2.0 : f64
  push %t, %z
  push %t, 0.5"""
    pops = """%a = pop %s : f64
  %b = pop %s : f64
  %e = mul %a, %b : f64
  %g = pop %t : f64
  %h = pop %t : f64
  %u = sub %g, %h : f64
  push %t, %u
  push %s, %e
  %v = pop %s : f64
  %w = pop %t : f64
  %q = mul %w, %r : f64
  %r2 = add %q, %v : f64"""
    text = joined(ROUNDS.format(item="f64", pushes=pushes, pops=pops))
    assert text.count("= stack") == 1
    assert text.count("push ") == text.count("= pop") == 3


def test_two_stacks_become_one():
    text = joined(ROUNDS.format(item="f64", pushes=PUSHES, pops=POPS))
    assert text.count("= stack") == text.count("push ") == text.count("= pop") == 1
    assert "list((f64, f64))" in text


@pytest.mark.parametrize("count", [16, 17, 40, 300])
def test_many_stacks_become_one_of_tuples_of_tuples(count):
    pushes = ["%y = add %x1, 1.0 : f64", *(f"%z{k} = add %x1, {k}.0 : f64\n  push %s{k}, %z{k}" for k in range(count))]
    pops = ["%u0 = add %r, 0.5 : f64"]
    for k in range(count):
        pops += [f"%a{k} = pop %s{k} : f64", f"%q{k} = mul %u{k}, 0.9 : f64", f"%u{k + 1} = add %q{k}, %a{k} : f64"]
    pops.append(f"%r2 = add %u{count}, 0.25 : f64")
    stacks = "\n".join(f"  %s{k} = stack : list(f64)" for k in range(count))
    text = ROUNDS.format(item="f64", pushes="\n  ".join(pushes), pops="\n  ".join(pops))
    found = joined(text.replace("  %s = stack : list(f64)\n  %t = stack : list(f64)", stacks))
    assert found.count("= stack") == found.count("push ") == found.count("= pop") == 1


@pytest.mark.parametrize(
    ("pushes", "pops"),
    [
        (PUSHES + "\n  push %t, %y", POPS.replace("%a =", "%b2 = pop %t : f64\n  %a =")),
        (PUSHES, POPS + "\n  push %t, %a\n  %e = pop %t : f64"),
        ("%y = add %x1, 1.0 : f64\n  push %s, %y\n  %o = pop %s : f64\n  push %s, %o\n  push %t, %x1", POPS),
    ],
    ids=["twice in a block", "pushed again", "popped and pushed again"],
)
def test_others_are_left(pushes, pops):
    assert joined(ROUNDS.format(item="f64", pushes=pushes, pops=pops)).count("= stack") == 2


INNER = """%y = add %x1, 1.0 : f64
  %u = stack : list(f64)
  push %u, %x1
  push %s, %u
  %z = sub %x1, 2.0 : f64
  %v = stack : list(f64)
  push {last}, %v
  push {first}, %z"""


def test_stacks_of_stacks():
    pops = POPS.replace("%b = pop %t : f64", "%w = pop %t : list(f64)\n  %b = pop %w : f64").replace(
        "%a = pop %s : f64", "%o = pop %s : list(f64)\n  %a = pop %o : f64"
    )
    text = joined(ROUNDS.format(item="list(f64)", pushes=INNER.format(first="%v", last="%t"), pops=pops))
    assert text.count("= stack") == text.count("push ") == text.count("= pop") == 2
    assert "list(list((f64, f64)))" in text


WAYS = """
b0:
  %none = stack : list(f64)
  %nil = stack : list(f64)
  %s = stack : list(f64)
  %t = stack : list(f64)
  %c = gt %n, 2 : bool
  branch %c, b1, b2
b1:
  %y = mul %x, 3.0 : f64
  push %s, %x
  push %t, %y
  {more}
  jump b3
b2:
  jump b3
b3:
  %p: list(f64) = phi b1: %s, b2: {none}
  %q: list(f64) = phi b1: %t, b2: {nil}
  branch %c, b4, b5
b4:
  %a = pop %q : f64
  %b = pop %p : f64
  %z = sub %a, %b : f64
  jump b6
b5:
  jump b6
b6:
  %r: f64 = phi b4: %z, b5: 0.5
  return %r
"""


def test_stacks_of_branches():
    text = joined(WAYS.format(more="", none="%none", nil="%nil"))
    assert text.count("= stack") == 2
    assert text.count("push ") == text.count("= pop") == text.count(": list((f64, f64)) ") == 1


def test_stacks_that_are_selected_in_another_way_are_left():
    text = joined(WAYS.format(more="", none="%none", nil="%t"))
    assert text.count("= pop") == 2
    text = joined(WAYS.format(more="push %none, %x", none="%none", nil="%nil"))
    assert text.count("= pop") == 2


CALLS = """
b0:
  %s = stack : list(f64)
  %t = stack : list(f64)
  %y = mul %x, 3.0 : f64
  {pushes}
  {call}
  %a = pop %s : f64
  %b = pop %t : f64
  %z = sub %a, %b : f64
  %r = mul %z, %u : f64
  return %r
"""
TWO = "push %s, %x\n  push %t, %y"
CALL = "%u = math.hypot %s, %t, %x, %n : f64"
CALLED = """
b0:
  %c = gt %n, 0 : bool
  branch %c, b1, b2
b1:
  push %t, %x
  push %s, 1.5
  %m = sub %n, 1 : i64
  %y = add %x, 0.5 : f64
  %u = math.hypot %s, %t, %y, %m : f64
  {pops}
  %v = mul %a, %b : f64
  %w = sub %v, %u : f64
  jump b3
b2:
  jump b3
b3:
  %r: f64 = phi b1: %w, b2: %x
  return %r
"""
OF_BOTH = "%a = pop %s : f64\n  %b = pop %t : f64"


def test_stacks_that_are_passed_to_a_recursive_routine():
    text = joined(CALLS.format(pushes=TWO, call=CALL), CALLED.format(pops=OF_BOTH))
    assert text.count("= stack") == 1
    assert text.count("push ") == text.count("= pop") == 2


@pytest.mark.parametrize(
    ("caller", "called"),
    [
        (CALLS.format(pushes="push %s, %x\n  push %t, %y", call=CALL.replace("%s, %t", "%t, %s")), CALLED),
        (CALLS.format(pushes="push %s, %x", call=CALL + "\n  push %t, %y"), CALLED),
        (CALLS.format(pushes=TWO, call=CALL.replace("%s, %t", "%s, %s")), CALLED),
        (CALLS.format(pushes=TWO, call=CALL + "\n  %k = len %s : i64"), CALLED),
        (CALLS.format(pushes=TWO, call=CALL), CALLED.replace("%s, %t, %y, %m", "%t, %s, %y, %m")),
        (
            CALLS.format(pushes=TWO, call=CALL),
            CALLED.replace("%y = add", "push %t, %x\n  %o = pop %t : f64\n  %y = add"),
        ),
    ],
    ids=["crossed", "around the call", "one for two", "read", "crossed within", "changed again"],
)
def test_stacks_that_are_passed_in_another_way(caller, called):
    """If both take the other's place they may be joined, too; what is computed is compared."""
    joined(caller, called.format(pops=OF_BOTH))


def test_stacks_that_change_around_a_call_are_left():
    text = joined(CALLS.format(pushes="push %s, %x", call=CALL + "\n  push %t, %y"), CALLED.format(pops=OF_BOTH))
    assert text.count("= stack") == 2


SELECTED = """
b0:
  %s = stack : list(f64)
  %t = stack : list(f64)
  %u = stack : list(f64)
  %v = stack : list(f64)
  push %s, %x
  push %t, 2.0
  jump b1
b1:
  push %u, 3.0
  push %v, 4.0
  %c = gt %n, 2 : bool
  branch %c, b2, b3
b2:
  jump b4
b3:
  jump b4
b4:
  %p: list(f64) = phi b2: %s, b3: %u
  %q: list(f64) = phi b2: {first}, b3: {second}
  %a = pop %p : f64
  %b = pop %q : f64
  %r = truediv %a, %b : f64
  return %r
"""


def test_stacks_that_come_from_each_other_in_the_same_way():
    assert joined(SELECTED.format(first="%t", second="%v")).count("= stack") == 2
    assert joined(SELECTED.format(first="%v", second="%t")).count("= stack") == 4
