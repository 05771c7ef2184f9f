import operator

import numpy as np
import pytest
from numba import types

from tests.counts import calls
from tests.ir.pow_example import f64, i64, pow_adjoint, pow_primal
from zygote_py.ir import (
    Alpha,
    Block,
    Branch,
    Const,
    Function,
    Instr,
    InternalError,
    Jump,
    Param,
    Phi,
    Return,
    Value,
    parse,
    verify,
    verify_canonical,
)


def marked(function: Function, check=verify) -> str:
    """The text that the verifier shows: lines of the function, and faults marked with ^."""
    with pytest.raises(InternalError) as caught:
        check(function, "some_pass")
    assert caught.value.pass_name == "some_pass"
    assert "after some_pass" in str(caught.value)
    assert caught.value.ir in str(caught.value)
    return caught.value.ir


def faults(shown: str) -> list[tuple[str, str]]:
    """Each fault with the line it stands under."""
    found = []
    subject = ""
    for line in shown.splitlines():
        if line.startswith("^ "):
            found.append((subject.strip(), line[2:]))
        else:
            subject = line
    return found


def test_pow_is_well_formed_and_canonical():
    primal, _ = pow_primal()
    for function in (primal, pow_adjoint(primal)):
        verify(function)
        verify_canonical(function)


# Each body is that of `function f(%x: f64, %n: i64, %c: bool)`.
FAULTS = [
    # 1: blocks. 2: the entry. 3: reachability.
    ("b0:\n  jump b0", "jump b0", "this leads to the entry"),
    ("b0:\n  %p: f64 = phi\n  return %x", "%p: f64 = phi", "the entry has a phi"),
    ("b0:\n  return %x\nb1:\n  return %x", "b1:", "this block cannot be reached"),
    # 4: the operands of phis.
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  jump b2\nb2:\n  %p: f64 = phi b1: %x\n  return %p",
        "%p: f64 = phi b1: %x",
        "there is no operand for b0",
    ),
    (
        "b0:\n  jump b1\nb1:\n  jump b2\nb2:\n  %p: f64 = phi b0: %x, b1: %x\n  return %p",
        "%p: f64 = phi b0: %x, b1: %x",
        "b0 is not a predecessor",
    ),
    # 5: types of phis.
    (
        "b0:\n  jump b1\nb1:\n  %p: f64 = phi b0: %n\n  return %p",
        "%p: f64 = phi b0: %n",
        "the operand for b0 is of type i64, not f64",
    ),
    # 6: conditions.
    (
        "b0:\n  branch %n, b1, b2\nb1:\n  return %x\nb2:\n  return %x",
        "branch %n, b1, b2",
        "the condition is of type i64, not bool",
    ),
    # 8: dominance.
    (
        "b0:\n  %a = neg %b : f64\n  %b = neg %x : f64\n  return %b",
        "%a = neg %b : f64",
        "%b does not dominate this use",
    ),
    ("b0:\n  %a = neg %a : f64\n  return %x", "%a = neg %a : f64", "%a does not dominate this use"),
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  %a = neg %x : f64\n  jump b2\nb2:\n  return %a",
        "return %a",
        "%a does not dominate this use",
    ),
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  %a = lt %x, 1.0 : bool\n  jump b2\nb2:\n  branch %a, b3, b4\n"
        "b3:\n  return %x\nb4:\n  return %x",
        "branch %a, b3, b4",
        "%a does not dominate this use",
    ),
    (
        "b0:\n  jump b1\nb1:\n  %p: f64 = phi b0: %a, b2: %x\n  branch %c, b2, b3\n"
        "b2:\n  %a = neg %p : f64\n  jump b1\nb3:\n  return %p",
        "%p: f64 = phi b0: %a, b2: %x",
        "%a does not dominate this use",
    ),
    # 9: returns.
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  return %x\nb2:\n  return %n",
        "return %n",
        "this returns (i64), another return (f64)",
    ),
    # 11: arithmetic.
    ("b0:\n  %a = add %x, %n : f64\n  return %a", "%a = add %x, %n : f64", "add of f64, i64 to f64"),
    ("b0:\n  %a = mul %n, %n : f64\n  return %a", "%a = mul %n, %n : f64", "mul of i64, i64 to f64"),
    ("b0:\n  %a = sub %c, 1.0 : f64\n  return %a", "%a = sub %c, 1.0 : f64", "sub of bool, f64 to f64"),
    ("b0:\n  %a = mul f32(2.0), %x : f64\n  return %a", "%a = mul f32(2.0), %x : f64", "mul of f32, f64 to f64"),
    # 12: constants.
    ("b0:\n  return i32(1.5)", "return i32(1.5)", "the constant 1.5 (float) is not of type i32"),
]


@pytest.mark.parametrize(("body", "line", "message"), FAULTS)
def test_faults(body, line, message):
    (function,) = parse(f"function f(%x: f64, %n: i64, %c: bool) -> f64\n{body}")
    assert faults(marked(function)) == [(line, message)]


GOOD = [
    "b0:\n  return %x",
    # A loop whose phi takes what its own block defines.
    "b0:\n  jump b1\nb1:\n  %p: f64 = phi b0: %x, b1: %q\n  %q = neg %p : f64\n  branch %c, b1, b2\nb2:\n  return %q",
    # Ints of any widths mix; arithmetic of other things is not checked.
    "b0:\n  %a = add i32(1), %n : i64\n  %b = add %c, %n : i64\n  return %x",
    "b0:\n  %a = add 'a', 'b' : str\n  return %x",
    "b0:\n  %a = truediv %n, %n : f64\n  return %x",
    # Both branches may lead to one block.
    "b0:\n  branch %c, b1, b1\nb1:\n  %p: f64 = phi b0: %x\n  return %p",
    'b0:\n  branch True, b1, b2\nb1:\n  raise ValueError "no", %x\nb2:\n  return undef',
    # The order of blocks is free.
    "b0:\n  jump b2\nb1:\n  return %a\nb2:\n  %a = neg %x : f64\n  jump b1",
]


@pytest.mark.parametrize("body", GOOD)
def test_well_formed(body):
    (function,) = parse(f"function f(%x: f64, %n: i64, %c: bool) -> f64\n{body}")
    verify(function)


def only_fault(function: Function) -> tuple[str, str]:
    (fault,) = faults(marked(function))
    return fault


def test_a_function_without_blocks():
    assert only_fault(Function("f", [], [])) == ("function f() -> none", "the function has no block")


def test_a_block_twice():
    block = Block()
    block.terminator = Return(())
    assert ("b0:", "this block is in the function twice") in faults(marked(Function("f", [], [block, block])))


def test_a_foreign_block():
    primal, _ = pow_primal()
    primal.blocks[2].terminator = Jump(Block())
    assert ("jump b?", "this leads to a block that is not in the function") in faults(marked(primal))


def test_a_foreign_value():
    primal, _ = pow_primal()
    primal.blocks[3].terminator = Return((Value(f64, "y"),))
    assert only_fault(primal) == ("return %?y", "%?y is not defined in this function")


def test_a_value_twice():
    primal, _ = pow_primal()
    b0, b2 = primal.blocks[0], primal.blocks[2]
    b2.instrs.append(b0.instrs[0])
    found = faults(marked(primal))
    assert found.count(("%r0 = const 1.0 : f64", "%r0 is defined more than once")) == 2


def test_a_value_in_the_wrong_place():
    primal, _ = pow_primal()
    primal.blocks[2].instrs.insert(0, Phi(f64, "p"))
    assert ("%p = phi : f64", "a Phi is in the wrong place") in faults(marked(primal))


def test_arity_of_a_primal():
    primal, _ = pow_primal()
    (r1, n1) = primal.blocks[1].phis
    primal.blocks[3].terminator = Return((r1, n1, n1))
    assert only_fault(primal) == ("return %r1, %n1, %n1", "a primal returns one value or two, not 3")


def test_arity_of_an_adjoint():
    adjoint = pow_adjoint(pow_primal()[0])
    adjoint.blocks[3].terminator = Return((Const(0.0, f64),))
    assert only_fault(adjoint) == ("return 0.0", "this adjoint returns 2 values, not 1")


def test_an_adjoint_without_a_primal():
    block = Block()
    block.terminator = Return(())
    assert only_fault(Function("f", [], [block], "adjoint")) == ("adjoint f() -> ()", "an adjoint without a primal")


def test_alphas_and_came_from_outside_of_an_adjoint():
    adjoint = pow_adjoint(pow_primal()[0])
    adjoint.kind = "function"
    messages = [message for _, message in faults(marked(adjoint))]
    assert "@x: an alpha outside of an adjoint" in messages
    assert "came_from outside of an adjoint" in messages


def test_an_alpha_of_another_function():
    adjoint = pow_adjoint(pow_primal()[0])
    adjoint.blocks[3].terminator = Return((Alpha(Param(f64, "y")), Const(None, types.none)))
    assert only_fault(adjoint) == ("return @?y, none", "@?y is not a value of the primal")


def test_came_from_a_block_that_is_no_predecessor():
    primal, _ = pow_primal()
    adjoint = pow_adjoint(primal)
    adjoint.blocks[1].instrs[0].pred = primal.blocks[3]
    assert only_fault(adjoint) == ("%e = came_from @b1, b3 : bool", "b3 is not a predecessor of b1")


def test_came_from_another_function():
    primal, _ = pow_primal()
    adjoint = pow_adjoint(primal)
    adjoint.blocks[1].instrs[0].block = adjoint.blocks[1]
    assert only_fault(adjoint) == (
        "%e = came_from @b?, b2 : bool",
        "came_from names a block that is not in the primal",
    )


def test_a_mirror_of_another_function():
    adjoint = pow_adjoint(pow_primal()[0])
    adjoint.blocks[3].mirror = Block()
    assert only_fault(adjoint) == ("b0:", "this reverses a block that is not in the primal")


def test_keywords():
    primal, _ = pow_primal()
    primal.blocks[2].instrs.append(Instr(np.sum, (), f64, "s", keywords=("axis",)))
    ((_, message),) = faults(marked(primal))
    assert message == "there are more keywords than arguments"


@pytest.mark.parametrize(
    ("value", "type", "shown"),
    [
        (1, f64, "1 (int)"),
        (np.float64(1.0), f64, "np.float64(1.0) (float64)"),
        (True, i64, "True (bool)"),
        (np.int64(1), i64, "np.int64(1) (int64)"),
        (1, types.boolean, "1 (int)"),
        (1.0, types.float32, None),
        (None, types.none, None),
        (0, types.none, "0 (int)"),
        ("a", types.unicode_type, None),
        (1j, types.complex128, None),
    ],
)
def test_constants(value, type, shown):
    block = Block()
    block.terminator = Return((Const(value, type),))
    function = Function("f", [], [block])
    if shown is None:
        verify(function)
    else:
        assert only_fault(function)[1].startswith(f"the constant {shown} is not of type")


def test_all_faults_are_reported_at_once():
    primal, _ = pow_primal()
    r1, n1 = primal.blocks[1].phis
    r1.type = i64
    primal.blocks[1].terminator.condition = n1
    primal.blocks[2].instrs[0].args = (Const(1, i64), primal.blocks[2].instrs[1])
    shown = marked(primal)
    assert (
        shown
        == """\
primal pow(%x: f64, %n: i64) -> i64                # pow.py:1
b0:
  %r0 = const 1.0 : f64
  jump b1
b1:
  %r1: i64 = phi b0: %r0, b2: %r2
^ the operand for b0 is of type f64, not i64
^ the operand for b2 is of type f64, not i64
  %n1: i64 = phi b0: %n,  b2: %n2
  %c = gt %n1, 0 : bool
  branch %n1, b2, b3
^ the condition is of type i64, not bool
b2:
  %n2 = sub 1, %r2 : i64
^ %r2 does not dominate this use
^ sub of i64, f64 to i64
  %r2 = mul %r1, %x : f64
^ mul of i64, f64 to f64
  jump b1
b3:
  return %r1"""
    )
    with pytest.raises(InternalError, match="primal pow has 6 faults"):
        verify(primal)


NOT_CANONICAL = [
    # 1: a loop with two entries.
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  jump b2\nb2:\n  branch %c, b1, b3\nb3:\n  return %x",
        ["loops: the control flow of f is irreducible"],
    ),
    # 2: two edges into the header from outside; the entry of the loop is a branch.
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  jump b3\nb2:\n  jump b3\n"
        "b3:\n  branch %c, b4, b5\nb4:\n  jump b3\nb5:\n  return %x",
        ["the loop has no single preheader: b1, b2"],
    ),
    (
        "b0:\n  branch %c, b1, b4\nb1:\n  branch %c, b2, b3\nb2:\n  jump b1\nb3:\n  jump b5\nb4:\n  jump b5\n"
        "b5:\n  return %x",
        ["the preheader of b1 has two successors", "the edge to b1 is critical"],
    ),
    # 3: two latches, as `continue` makes; a latch that branches.
    (
        "b0:\n  jump b1\nb1:\n  branch %c, b2, b5\nb2:\n  branch %c, b3, b4\nb3:\n  jump b1\nb4:\n  jump b1\n"
        "b5:\n  return %x",
        ["the loop has no single latch: b3, b4"],
    ),
    # 4: `while True` with a test at its end: the only exit is not the header's.
    (
        "b0:\n  jump b1\nb1:\n  jump b2\nb2:\n  branch %c, b3, b4\nb3:\n  jump b1\nb4:\n  return %x",
        ["an exit of the loop at b1 besides its header's"],
    ),
    # 5: a critical edge.
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  jump b2\nb2:\n  return %x",
        ["the edge to b2 is critical"],
    ),
    # 6: two returns, or none.
    ("b0:\n  branch %c, b1, b2\nb1:\n  return %x\nb2:\n  return %x", ["the function has 2 returns, not one"]),
    ("b0:\n  raise ValueError", ["the function has 0 returns, not one"]),
    # 7: a merge of three.
    (
        "b0:\n  branch %c, b1, b2\nb1:\n  jump b5\nb2:\n  branch %c, b3, b4\nb3:\n  jump b5\nb4:\n  jump b5\n"
        "b5:\n  return %x",
        ["a merge of 3 predecessors"],
    ),
]


@pytest.mark.parametrize(("body", "messages"), NOT_CANONICAL)
def test_not_canonical(body, messages):
    (function,) = parse(f"function f(%x: f64, %c: bool) -> f64\n{body}")
    verify(function)
    assert [message for _, message in faults(marked(function, verify_canonical))] == messages


def test_raising_is_no_exit_of_a_loop():
    (function,) = parse(
        """
        function f(%x: f64, %c: bool) -> f64
        b0:
          jump b1
        b1:
          branch %c, b2, b5
        b2:
          branch %c, b3, b4
        b3:
          raise ValueError "no"
        b4:
          jump b1
        b5:
          return %x
        """
    )
    verify_canonical(function)


def test_canonical_form_needs_a_well_formed_function():
    primal, _ = pow_primal()
    primal.blocks[3].terminator = Return(())
    with pytest.raises(InternalError, match="a primal returns one value"):
        verify_canonical(primal)


def test_time_is_linear():
    # A chain of diamonds: the number of steps is counted, as a clock would not be a test.
    def chain(length):
        x, c = Param(f64, "x"), Param(types.boolean, "c")
        blocks = [Block() for _ in range(4 * length + 1)]
        value = x
        for start in range(0, 4 * length, 4):
            top, left, right, bottom, following = blocks[start : start + 5]
            add = Instr(operator.add, (value, x), f64, "x")
            left.instrs = [add]
            phi = Phi(f64, "x")
            phi.incoming = {left: add, right: value}
            top.terminator, left.terminator, right.terminator = Branch(c, left, right), Jump(bottom), Jump(bottom)
            bottom.phis, bottom.terminator = [phi], Jump(following)
            value = phi
        blocks[-1].terminator = Return((value,))
        return Function("f", [x, c], blocks)

    verify(chain(3))
    assert calls(lambda: verify(chain(200))) < 2.2 * calls(lambda: verify(chain(100)))
