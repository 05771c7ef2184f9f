import operator
import random

import numpy as np
import pytest
from numba import types

from tests.ir.pow_example import f64, i64, pow_adjoint, pow_primal
from zygote_py.ir import (
    Block,
    Branch,
    CameFrom,
    Const,
    Function,
    Instr,
    Jump,
    Loc,
    Param,
    ParseError,
    Phi,
    Raise,
    Return,
    Undef,
    Value,
    ops,
    parse,
    verify,
)
from zygote_py.ir.text.printer import text


def test_pow_comes_back():
    primal, active = pow_primal()
    before = text(primal, active) + "\n\n" + text(pow_adjoint(primal))
    primal, adjoint = parse(before)
    located = [value for value in primal.values() if value.loc]
    assert text(primal, located) + "\n\n" + text(adjoint) == before
    verify(primal)
    verify(adjoint)
    assert adjoint.primal is primal
    assert [block.mirror for block in adjoint.blocks] == [primal.blocks[index] for index in (3, 1, 2, 0)]
    assert primal.loc == Loc("pow.py", 1)
    assert [value.loc for value in located] == [Loc("pow.py", 5)]


def test_hints_come_back():
    primal, _ = pow_primal()
    adjoint = pow_adjoint(primal)
    again, adjoint_again = parse(text(primal) + "\n" + text(adjoint))
    assert [value.hint for value in again.values()] == [value.hint for value in primal.values()]
    assert [value.hint or "t" for value in adjoint.values()] == [value.hint for value in adjoint_again.values()]


def test_origins_come_back():
    primal, _ = pow_primal()
    again, adjoint = parse(text(primal) + "\n" + text(pow_adjoint(primal)))
    r2 = again.blocks[2].instrs[1]
    assert [instr.origin for instr in adjoint.blocks[2].instrs] == [r2, r2, r2]
    came_from = adjoint.blocks[1].instrs[0]
    assert isinstance(came_from, CameFrom)
    assert (came_from.block, came_from.pred) == (again.blocks[1], again.blocks[2])


CASES = """\
function f() -> ()
b0:
  return

function f() -> none
b0:
  raise

function f(%x: f64, %s: str) -> (f64, i64)
b0:
  %g = eq %s, 'a#\\'b"' : bool
  branch %g, b1, b2
b1:
  raise ValueError "no: \\" # , %x", %x, 1, none, True
b2:
  return undef, undef

function f(%p: (f64, i64), %a: f64[:, :]F) -> (f64, i64)
b0:
  %s = np.sum %a, axis=0, keepdims=True : f64[:, :]
  setitem %a, f32(2.0), 0, -1
  %n = setitem %a, 1.0, 0, 1 : none
  %m = is_ %n, none : bool
  return %p

function f(%x: f64, %x1: f64) -> f64
b0:
  %x2 = neg inf : f64
  %x11 = neg -inf : f64
  %a0 = neg nan : f64
  %a1 = neg -0.0 : f64
  %a10 = neg 1e-300 : f64
  %_b1 = neg %x11 : f64
  return %x2

function f(%x: f64) -> f64
b0:
  jump b1
b1:
  %long: f64 = phi b0: %x,  b1: %z
  %y: f64    = phi b0: 1.0, b1: undef
  %z = builtins.pow %long, %y : f64
  %c = lt %z, 1.0 : bool
  branch %c, b1, b2
b2:
  return %z

joint f(%x: f64[:]) -> f64                         # <stdin>:1
b0:
  %k = stack : list(f64)
  push %k, -0.0
  push %k, 1.0
  jump b1
b1:
  jump b1'
b1':                                               # of push %k, -0.0
  %u0 = pop %k : f64
  %vv = mul %u0, inf : f64                         # of push %k, 1.0
  %u1 = mul %u0, nan : f64
  push %k, 2.0                                     # of none
  jump b1''
b1'':
  return undef
"""


@pytest.mark.parametrize("case", CASES.split("\n\n"))
def test_round_trip(case):
    (function,) = parse(case)
    assert text(function) == case.rstrip("\n")


def test_free_names_and_comments():
    (function,) = parse(
        """
        # a comment
        function f(%x: float64) -> f64

        start:   # another: comment
          %one = const 1 : int64   # and another
          %two   = neg   %x : f64
          return %two
        """
    )
    assert text(function) == (
        "function f(%x: f64) -> f64\nb0:\n  %one = const 1 : i64\n  %two = neg %x : f64\n  return %two"
    )


def test_an_instruction_may_come_before_what_it_uses():
    # The blocks of a text are in any order.
    (function,) = parse(
        """
        function f(%x: f64) -> f64
        b0:
          jump b2
        b1:
          %b = neg %a : f64
          return %b
        b2:
          %a = neg %x : f64
          jump b1
        """
    )
    verify(function)


def test_callables():
    def double(x):
        return 2 * x

    class OddError(Exception):
        pass

    source = "function f(%x: f64) -> f64\nb0:\n  %y = my.double %x : f64\n  raise OddError %y"
    (function,) = parse(source, {"my.double": double, "OddError": OddError})
    assert function.entry.instrs[0].op is double
    assert function.entry.terminator.exception is OddError
    with pytest.raises(ParseError, match=r"unknown operation 'my.double'"):
        parse(source)


HEADER = "function f(%x: f64) -> f64\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nonsense", "line 1: expected a header"),
        ("adjoint f() -> ()", "line 1: there is no function 'f' before its adjoint"),
        ("function f(x: f64) -> f64", "expected a parameter"),
        ("function f(%x: f65) -> f64", "unknown type 'f65'"),
        ("function f(%x: f64, %x: f64) -> f64", "%x is defined twice"),
        (HEADER + "  return %x", "line 2: expected the label of a block"),
        (HEADER + "b0:\n  return %y", "line 3: there is no value 'y' in function f"),
        (HEADER + "b0:\n  jump b7", "there is no block 'b7'"),
        (HEADER + "b0:\n  jump", "a jump is not written so"),
        (HEADER + "b0:\n  %y = neg %x\n  return %x", "expected a type"),
        (HEADER + "b0:\n  %y: f64 = neg %x\n  return %x", "expected an instruction or a phi"),
        (HEADER + "b0:\n  %y = nag %x : f64\n  return %x", "unknown operation 'nag'"),
        (HEADER + "b0:\n  %y = neg x : f64\n  return %x", "what is 'x'"),
        (HEADER + "b0:\n  %y = neg @x : f64\n  return %x", "an alpha outside of an adjoint"),
        (HEADER + "b0:\n  %y = neg a=%x, %x : f64\n  return %x", "keyword arguments come last"),
        (HEADER + "b0:\n  %x = neg %x : f64\n  return %x", "%x is defined twice"),
        (HEADER + "b0:\n  return %x\n  return %x", "this follows the end of its block"),
        (HEADER + "b0:\n  return %x, %x", "a return of 2 values"),
        (HEADER + "b0:\n  %y = neg %x : f64", "the block b0 does not end"),
        (HEADER + "b0:\nb0:\n  return %x", "the block b0 is there twice"),
        (HEADER + "b0:\n  %y = neg %x : f64\n  %z: f64 = phi b0: %x\n  return %x", "a phi after an instruction"),
        (HEADER + "b0:\n  %z: f64 = phi %x\n  return %x", "expected an operand such as 'b0: %x'"),
        (HEADER + "b0:\n  %e = came_from @b0, b1 : bool\n  return %x", "expected two blocks of the primal"),
        (HEADER + "b0:\n  raise Oops", "unknown exception 'Oops'"),
        (HEADER + "b0:\n  return %x\nadjoint f() -> ()\nb9':\n  return", "there is no block for b9' to reverse"),
        (HEADER + "b0:\n  return %x\nadjoint f() -> ()\nb0': # of %y = sin\n  return", "no value '%y = sin'"),
    ],
)
def test_errors(source, message):
    with pytest.raises(ParseError) as caught:
        parse(source)
    assert message in str(caught.value)
    assert caught.value.line in source
    assert source.splitlines()[caught.value.number - 1] == caught.value.line


def random_function(seed: int) -> Function:
    """A function that need not be well formed but for its names: every kind of node, and names that collide."""
    choose = random.Random(seed)
    hints = ["x", "x1", "r", "", "r1", "dx", "t", "x11", "r10"]
    some_types = [f64, i64, types.boolean, types.float32, types.Array(f64, 2, "A"), types.unicode_type]
    blocks = [Block() for _ in range(choose.randint(1, 6))]
    params = [Param(choose.choice(some_types), hint) for hint in choose.sample(hints[:5], choose.randint(0, 3)) if hint]
    values: list[Value] = [*params]
    for block in blocks:
        block.phis = [Phi(choose.choice(some_types), choose.choice(hints)) for _ in range(choose.randint(0, 3))]
        for _ in range(choose.randint(0, 4)):
            op = choose.choice([operator.add, np.sin, ops.getitem, ops.setitem, float, ops.select])
            type = types.none if op is ops.setitem else choose.choice(some_types)
            block.instrs.append(Instr(op, (), type, choose.choice(hints)))
        values += [*block.phis, *block.instrs]
    constants = [
        Const(choose.choice([0.0, -0.0, 1e100, float("nan"), float("-inf")]), f64),
        Const(-7, i64),
        Const(False, types.boolean),
        Const(None, types.none),
        Const("it's # : , \"\\", types.unicode_type),
        Const(0.5, types.float32),
        Undef(f64),
    ]

    def operand():
        return choose.choice(values) if values and choose.random() < 0.7 else choose.choice(constants)

    for block in blocks:
        for phi in block.phis:
            phi.incoming = {pred: operand() for pred in choose.sample(blocks, choose.randint(1, len(blocks)))}
        for instr in block.instrs:
            instr.args = tuple(operand() for _ in range(choose.randint(1, 3)))
            if choose.random() < 0.2:
                instr.keywords = ("axis",)
        block.terminator = choose.choice(
            [
                Jump(choose.choice(blocks)),
                Branch(operand(), choose.choice(blocks), choose.choice(blocks)),
                Raise(ValueError, (operand(), operand())),
            ]
        )
    blocks[-1].terminator = Return((operand(),))
    return Function("f", params, blocks, choose.choice(["function", "primal", "joint"]))


@pytest.mark.parametrize("seed", range(200))
def test_round_trip_of_anything(seed):
    once = text(random_function(seed))
    (function,) = parse(once)
    assert text(function) == once
