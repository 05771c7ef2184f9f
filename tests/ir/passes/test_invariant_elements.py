"""Elements that all rounds of a loop access are variables only beside others, which are certainly different ones."""

import numpy as np
import pytest

from tests.checking.left_out import check_not_made
from tests.ir.transform import read, shown
from tests.modes import one_in
from zygote_py.ir import interpret, verify
from zygote_py.ir.passes import keep_invariant_elements

HEADER = "function f(%z: f64[:, ::1], %y: f64[::1], %n: i64, %m: i64) -> f64"
NEST = """
    b0:
      %x = np.copy %z : f64[:, ::1]
      jump b1
    b1:
      %i: i64 = phi b0: START, b5: %i1
      %s: f64 = phi b0: 0.0, b5: %s0
      %c0 = lt %i, %n : bool
      branch %c0, b2, b6
    b2:
      %next = add %i, 1 : i64
      jump b3
    b3:
      %j: i64 = phi b2: FIRST, b4: %j1
      %s0: f64 = phi b2: %s, b4: %s1
      %c1 = lt %j, BOUND : bool
      branch %c1, b4, b5
    b4:
      BODY
      %j1 = add %j, 1 : i64
      jump b3
    b5:
      %i1 = add %i, 1 : i64
      jump b1
    b6:
      %e = getitem %x, 1, 1 : f64
      %r = add %s, %e : f64
      return %r
"""
READ = """%a = getitem %x, %i, 0 : f64
      %v = getitem %y, %j : f64
      %s1 = add %s0, %a : f64
      %b = mul %a, %v : f64
      accumulate %x, %b, %j, 1"""
CHANGED = """%v = getitem %x, %j, 0 : f64
      accumulate %x, %v, %i, 1
      %a = getitem %x, %i, 1 : f64
      %s1 = add %s0, %a : f64
      %b = mul %a, 0.5 : f64
      setitem %x, %b, %i, 1"""


def made(body, first="0", bound="%m", start="0", given=False):
    text = NEST.replace("BODY", body).replace("FIRST", first).replace("BOUND", bound).replace("START", start)
    if given:
        text = text.replace("%x = np.copy %z : f64[:, ::1]", "%o = np.copy %z : f64[:, ::1]").replace("%x", "%z")
    return read(text, HEADER)


def result(function, n, m):
    return interpret(function, np.arange(1.0, 9.0).reshape(4, 2), np.array([0.5, 0.25, 4.0, 8.0]), n, m)


def inner(function):
    """The text of the inner loop's round."""
    blocks = shown(function).split("\nb")
    return next(block for block in blocks if " = add %j, 1" in block)


@pytest.mark.parametrize(
    ("body", "gone"),
    [(READ, "getitem %x"), (CHANGED, "%x, %b"), (CHANGED, "getitem %x, %i"), (CHANGED, "accumulate")],
)
@pytest.mark.parametrize("bound", ["%m", "4", "%n", "%next"])
def test_elements_beside_others(body, gone, bound):
    function = made(body, bound=bound)
    sizes = [(n, m) for n in (0, 1, 3) for m in (0, -2, 1, 4)]
    wanted = [result(function, *size) for size in sizes]
    assert keep_invariant_elements(function)
    verify(function)
    assert [result(function, *size) for size in sizes] == wanted
    assert gone not in inner(function)


def test_indices_that_the_loop_computes():
    body = "%u = sub %next, 1 : i64\n      " + READ.replace("%i, 0", "%u, 0")
    function = made(body)
    wanted = [result(function, 3, m) for m in (0, 1, 4)]
    assert keep_invariant_elements(function)
    verify(function)
    assert [result(function, 3, m) for m in (0, 1, 4)] == wanted
    assert "getitem %x" not in inner(function)


@pytest.mark.parametrize(("bound", "is_known"), [("%m", False), ("4", True), ("%n", True), ("%next", True)])
def test_no_round_and_no_such_element(bound, is_known):
    function = made(READ, bound=bound)
    assert keep_invariant_elements(function)
    assert ("element_if" in shown(function)) is not is_known
    for body in (READ, CHANGED):
        function = made(body.replace("%x, %i", "%x, %n"))
        keep_invariant_elements(function)
        assert result(function, 4, 0) == 4.0  # there is no row 4


def test_an_array_that_is_given_is_changed_at_once():  # the caller sees it after an exception
    function = made(CHANGED, given=True)
    before = shown(function)
    assert not keep_invariant_elements(function)
    assert shown(function) == before
    assert keep_invariant_elements(made(READ, given=True))


@pytest.mark.parametrize(
    "body",
    [
        READ.replace("%j, 1", "%j, 0"),  # perhaps the same row
        CHANGED.replace("%x, %j, 0", "%x, %j, 1"),
        CHANGED.replace("%x, %j, 0", "%x, 0, 1"),  # a row that may be row %i
        READ.replace("%j, 1", "%m, %m"),  # anywhere
        READ.replace("%x, %i, 0", "%x, %j, 0"),  # another one in each round
        "%v = getitem %x, %i, 0 : f64\n      %s1 = add %s0, %v : f64",  # nothing is stored
        "accumulate %x, 1.0, %i, 0\n      %s1 = add %s0, 1.0 : f64",  # no others: LLVM sees it
        "%row = getitem %x, %i : f64[::1]\n      setitem %x, 2.0, %j, 1\n      %v = getitem %row, 0 : f64\n"
        "      %s1 = add %s0, %v : f64",  # a view, made in the loop
    ],
)
def test_elements_that_stay_in_memory(body):
    function = made(body)
    before = shown(function)
    assert not keep_invariant_elements(function)
    assert shown(function) == before


def test_accesses_that_some_rounds_make():
    function = read(
        """
    b0:
      %x = np.copy %z : f64[:, ::1]
      jump b1
    b1:
      %j: i64 = phi b0: 0, b4: %j1
      %s: f64 = phi b0: 0.0, b4: %s1
      %c = lt %j, %m : bool
      branch %c, b2, b5
    b2:
      %v = getitem %y, %j : f64
      setitem %x, %v, %j, 1
      %d = lt %v, 1.0 : bool
      branch %d, b3, b4
    b3:
      %a = getitem %x, 0, 0 : f64
      jump b4
    b4:
      %s1: f64 = phi b2: %s, b3: %a
      %j1 = add %j, 1 : i64
      jump b1
    b5:
      return %s
""",
        HEADER,
    )
    before = shown(function)
    assert not keep_invariant_elements(function)
    assert shown(function) == before


# ------------------------------------------------------------------------------------------------ gradients


def in_a_column_that_is_given(a, x, steps):
    """Which may be the one that is read."""
    found = np.zeros((len(x), 4))
    found[:, 0] = x
    for i in range(len(x)):
        for j in range(len(x)):
            found[i, steps - 2] += a[i, j] * found[j, 0]
    return np.sum(found * found)


def in_two_columns_by_turns(a, x, steps):
    found = np.zeros((len(x), 2))
    found[:, 0] = x
    for t in range(steps - 1):
        for i in range(len(x)):
            for j in range(len(x)):
                found[i, (t + 1) % 2] += 0.1 * a[i, j] * found[j, t % 2]
    return np.sum(found * found)


def through_a_view(a, x, steps):
    found = np.zeros((len(x), steps))
    found[:, 0] = x
    for t in range(steps - 1):
        new = found[:, t + 1]
        for i in range(len(x)):
            for j in range(len(x)):
                new[i] += a[i, j] * found[j, t]
    return np.sum(found * found)


def in_one_vector(a, x, steps):
    """The element is also read by its round."""
    found = x.copy()
    for i in range(len(x)):
        for j in range(len(x)):
            found[i] += 0.1 * a[i, j] * found[j] * steps
    return np.sum(found * found)


def from_the_end(a, x, steps):
    """A negative index, and one that is not: of the same column in one of the rounds."""
    found = np.zeros((len(x), 3))
    found[:, 0] = x
    for t in range(-2, 1):
        for i in range(len(x)):
            for j in range(len(x)):
                found[i, t] += 0.5 * a[i, j] * found[j, t + 2] * steps
    return np.sum(found * found)


IN_MEMORY = [in_a_column_that_is_given, in_two_columns_by_turns]
IN_MEMORY += [through_a_view, in_one_vector, from_the_end]
A, X = np.random.default_rng(3).normal(size=(3, 3)), np.array([0.4, -0.7, 1.1])


@pytest.mark.interpreted
@pytest.mark.parametrize("f", one_in(3, IN_MEMORY), ids=lambda f: f.__name__)
def test_gradients_without_variables(f):
    check_not_made("invariant-elements", f, A, X, 4)
