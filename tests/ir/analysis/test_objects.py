"""Which calls get the same object twice, and write to it, though all their arguments may reach one memory."""

import pytest

from zygote_py.ir import Function, Memory, Objects, Routine, parse, shares_what_it_writes, summaries_of
from zygote_py.ir.analysis.routines import find_effects

ROUTINES = """function keeps(%s: list(f64[:]), %x: f64[:]) -> i64
b0:
  push %s, %x
  return 0

function takes(%s: list(f64[:]), %t: list(f64[:])) -> f64
b0:
  %a = pop %s : f64[:]
  %b = pop %t : f64[:]
  %y = getitem %a, 0 : f64
  %z = getitem %b, 0 : f64
  %r = add %y, %z : f64
  return %r

function adds(%s: list(f64[:]), %t: list(f64[:])) -> i64
b0:
  %a = pop %s : f64[:]
  %b = pop %t : f64[:]
  %y = getitem %a, 0 : f64
  setitem %b, %y, 0
  return 0

function nests(%s: list(list(f64[:])), %t: list(f64[:])) -> i64
b0:
  push %s, %t
  return 0

function drains(%s: list(list(f64[:])), %t: list(f64[:])) -> i64
b0:
  %a = pop %t : f64[:]
  return 0

function made(%x: f64[:]) -> (list(f64[:]), list(f64[:]))
b0:
  %s = stack : list(f64[:])
  %t = stack : list(f64[:])
  push %s, %x
  push %t, %x
  %r = pack %s, %t : (list(f64[:]), list(f64[:]))
  return %r

function twice(%x: f64[:]) -> (list(f64[:]), list(f64[:]))
b0:
  %s = stack : list(f64[:])
  push %s, %x
  %r = pack %s, %s : (list(f64[:]), list(f64[:]))
  return %r
"""

# The body, and whether the last call gets an object twice to which it writes. To a `Memory` each does.
PROGRAMS = {
    "lists of the same array": (
        "push %s, %x; push %t, %x; %r = takes %s, %t : f64",
        False,
    ),
    "a list and the array in it": (
        "push %s, %x; keeps %s, %x",
        False,
    ),
    "an array in both is written to": (
        "push %s, %x; push %t, %x; adds %s, %t",
        True,
    ),
    "lists that may be the same one": (
        "push %s, %x; push %t, %y; push %o, %s; push %o, %t; adds %s, %t",
        True,
    ),
    "one list": (
        "%u = np.copy %x : f64[:]; push %s, %u; %r = takes %s, %s : f64",
        True,
    ),
    "a list and one that holds it": (
        "push %o, %s; nests %o, %s",
        False,
    ),
    "a list is written to, and held by the other": (
        "push %o, %s; drains %o, %s",
        True,
    ),
    "a list of its own in the other": (
        "push %s, %x; push %t, %x; push %o, %s; nests %o, %t",
        False,
    ),
    "by a call": (
        "keeps %s, %x; keeps %t, %x; adds %s, %t",
        True,
    ),
    "nested by a call": (
        "push %s, %x; push %t, %x; nests %o, %s; %u = pop %o : list(f64[:]); %r = takes %s, %u : f64",
        True,
    ),
    "lists that a call has made": (
        "%p = made %x : (list(f64[:]), list(f64[:])); %u = getitem %p, 0 : list(f64[:]);"
        " %v = getitem %p, 1 : list(f64[:]); %r = takes %u, %v : f64",
        False,
    ),
    "what these hold is written to": (
        "%p = made %x : (list(f64[:]), list(f64[:])); %u = getitem %p, 0 : list(f64[:]);"
        " %v = getitem %p, 1 : list(f64[:]); adds %u, %v",
        True,
    ),
    "a list that a call returns twice": (
        "%p = twice %x : (list(f64[:]), list(f64[:])); %u = getitem %p, 0 : list(f64[:]);"
        " %v = getitem %p, 1 : list(f64[:]); %r = takes %u, %v : f64",
        True,
    ),
    "a copy of a list": (
        "push %s, %x; %u = copied %s : list(f64[:]); %r = takes %s, %u : f64",
        False,
    ),
    "the arrays in a copy of a list": (
        "push %s, %x; %u = copied %s : list(f64[:]); adds %s, %u",
        True,
    ),
    "arrays of no length": (
        "%n = record 0 : f64[:]; push %s, %n; push %t, %n; adds %s, %t",
        False,
    ),
    "what is taken out of a tuple in a list": (
        "%l = stack : list((f64[:], i64)); %p = pack %x, 1 : (f64[:], i64); push %l, %p;"
        " %q = pop %l : (f64[:], i64); %u = getitem %q, 0 : f64[:]; push %s, %u; push %t, %x; adds %s, %t",
        True,
    ),
    "what is taken out of a tuple in a tuple": (
        "%p = pack %x, 1 : (f64[:], i64); %l = pack %p, 2 : ((f64[:], i64), i64); %q = getitem %l, 0 : (f64[:], i64);"
        " %u = getitem %q, 0 : f64[:]; push %s, %u; push %t, %x; adds %s, %t",
        True,
    ),
    "the last item of a tuple": (
        "%p = pack 1, %x : (i64, f64[:]); %u = getitem %p, -1 : f64[:]; push %s, %u; push %t, %x; adds %s, %t",
        True,
    ),
    "any item of a tuple": (
        "%p = pack %x, %y : (f64[:], f64[:]); %n = dim %x, 0 : i64; %u = getitem %p, %n : f64[:]; push %s, %u;"
        " push %t, %x; adds %s, %t",
        True,
    ),
    "a view": (
        "%u = np.transpose %x : f64[:]; push %s, %u; push %t, %x; adds %s, %t",
        True,
    ),
}


def program(body: str) -> tuple[Function, list[Routine]]:
    functions = parse(ROUTINES)
    routines = [Routine(function.name) for function in functions]
    for routine, function in zip(routines, functions, strict=True):
        routine.function = function
    find_effects(routines)
    head = "function f(%x: f64[:], %y: f64[:], %o: list(list(f64[:]))) -> i64\nb0:\n"
    made = ["%s = stack : list(f64[:])", "%t = stack : list(f64[:])"]
    lines = "\n".join(f"  {line.strip()}" for line in (*made, *body.split(";"), "return 0"))
    (function,) = parse(f"{head}{lines}\n", {routine.__name__: routine for routine in routines})
    return function, routines


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_that_get_an_object_twice(name):
    body, is_shared = PROGRAMS[name]
    function, routines = program(body)
    call, _ = function.calls()[-1]
    assert shares_what_it_writes(Memory(function), call)
    assert Objects(function, summaries_of(routines)).share_what_is_written(call) is is_shared


def test_a_routine_that_calls_itself():
    text = """function again(%s: list(f64[:]), %t: list(f64[:]), %x: f64[:], %n: i64) -> i64
b0:
  push %s, %x
  again %t, %s, %x, %n
  return 0
"""
    routine = Routine("again")
    (routine.function,) = parse(text, {"again": routine})
    ((first, *others),) = summaries_of([routine])[routine].joined
    assert {(path.argument, path.depth) for path in (first, *others)} == {(0, 1), (1, 1), (2, 0)}


def test_nothing_is_known_of_other_routines():
    function, routines = program("push %s, %x; push %t, %x; %r = takes %s, %t : f64")
    (*_, (call, takes)) = function.calls()
    known = summaries_of([each for each in routines if each is not takes])
    assert Objects(function, known).share_what_is_written(call)
    body = "push %s, %x; push %t, %x; %r = takes %s, %t : f64; %z = takes %s, %t : f64"
    function, routines = program(body.replace("%z = takes", "%z = adds"))
    known = summaries_of([each for each in routines if each.__name__ != "takes"])
    call, _ = function.calls()[-1]
    assert Objects(function, known).share_what_is_written(call)
