import operator

import pytest
from numba import types

from tests.counts import calls
from zygote_py.ir import (
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
    SSABuilder,
    Undef,
    verify,
)
from zygote_py.ir.text.printer import text

F64, I64 = types.float64, types.int64
TRUE = Const(True, types.boolean)


def start(number):
    x = Param(F64, "x")
    blocks = [Block() for _ in range(number)]
    function = Function("f", [x], blocks)
    ssa = SSABuilder(function)
    ssa.declare("x", F64, "x", start=x)
    ssa.declare("y", F64, "y")
    return function, ssa, x, blocks


def add(block, *args):
    instr = Instr(operator.add, args, F64, "y")
    block.instrs.append(instr)
    return instr


def test_a_loop():
    function, ssa, _, (b0, b1, b2) = start(3)
    ssa.seal(b0, [])
    ssa.write("y", b0, Const(1.0, F64))
    b0.terminator = Jump(b1)
    y = ssa.read("y", b1)
    assert isinstance(y, Phi)
    ssa.write("y", b1, add(b1, y, ssa.read("x", b1)))
    b1.terminator = Branch(TRUE, b1, b2)
    ssa.seal(b1, [b0, b1])
    ssa.seal(b2, [b1])
    b2.terminator = Return((ssa.read("y", b2),))
    ssa.finish()
    verify(function)
    assert text(function) == (
        "function f(%x: f64) -> f64\n"
        "b0:\n  jump b1\n"
        "b1:\n  %y0: f64 = phi b0: 1.0, b1: %y1\n  %y1 = add %y0, %x : f64\n  branch True, b1, b2\n"
        "b2:\n  return %y1"
    )


def test_what_is_read_before_it_turns_out_to_be_trivial_is_substituted():
    _, ssa, x, (b0, b1, b2) = start(3)
    ssa.seal(b0, [])
    b0.terminator = Jump(b1)
    read = ssa.read("x", b1)
    assert isinstance(read, Phi)
    used = add(b1, read, read)
    b1.terminator = Branch(TRUE, b1, b2)
    ssa.seal(b1, [b0, b1])
    assert ssa.read("x", b1) is x
    ssa.seal(b2, [b1])
    b2.terminator = Return((read,))
    ssa.finish()
    assert used.args == (x, x)
    assert b2.terminator.args == (x,)
    assert not b1.phis


@pytest.mark.parametrize(
    ("left", "right", "phi"),
    [
        (Const(1.0, F64), Const(1.0, F64), False),
        (Const(0.0, F64), Const(-0.0, F64), True),
        (Const(1.0, F64), Undef(F64), True),
        (None, Undef(F64), True),
        (Undef(F64), Undef(F64), False),
    ],
)
def test_when_a_merge_needs_a_phi(left, right, phi):
    _, ssa, x, (b0, b1, b2, b3) = start(4)
    ssa.seal(b0, [])
    ssa.seal(b1, [b0])
    ssa.seal(b2, [b0])
    ssa.write("y", b1, x if left is None else left)
    ssa.write("y", b2, right)
    ssa.seal(b3, [b1, b2])
    assert isinstance(ssa.read("y", b3), Phi) is phi
    assert ssa.read("x", b3) is x


def test_a_variable_never_written_is_undefined():
    _, ssa, _, (b0, b1) = start(2)
    ssa.seal(b0, [])
    ssa.seal(b1, [b0])
    assert ssa.read("y", b1) == Undef(F64)


def test_an_entry_that_is_read_before_it_is_sealed():
    _, ssa, x, (b0,) = start(1)
    used = add(b0, ssa.read("x", b0), ssa.read("y", b0))
    ssa.seal(b0, [])
    b0.terminator = Return((used,))
    ssa.finish()
    assert used.args == (x, Undef(F64))


def test_a_trivial_phi_makes_its_users_trivial():
    # Two nested loops that do not change x.
    function, ssa, x, (b0, b1, b2, b3, b4) = start(5)
    ssa.seal(b0, [])
    read = [ssa.read("x", b2), ssa.read("x", b3)]
    ssa.seal(b2, [b1, b3])
    ssa.seal(b3, [b2])
    ssa.seal(b1, [b0, b3])
    ssa.seal(b4, [b3])
    b0.terminator = Jump(b1)
    b1.terminator = Jump(b2)
    b2.terminator = Jump(b3)
    b3.terminator = Branch(TRUE, b1, b4)
    b4.terminator = Return((read[1],))
    assert ssa.read("x", b4) is x
    ssa.finish()
    assert not any(block.phis for block in function.blocks)


def test_misuse_is_an_internal_error():
    _, ssa, _, (b0, b1) = start(2)
    ssa.seal(b0, [])
    with pytest.raises(InternalError, match="twice"):
        ssa.seal(b0, [])
    with pytest.raises(InternalError, match="never sealed"):
        ssa.finish()
    ssa.read("x", b1)
    with pytest.raises(InternalError, match="never sealed"):
        ssa.finish()


def chain(number):
    _, ssa, x, blocks = start(number)
    for index, block in enumerate(blocks):
        ssa.seal(block, blocks[max(0, index - 2) : index])
        after = blocks[index + 1 : index + 3]
        block.terminator = Branch(TRUE, after[0], after[-1]) if after else Return((x,))

    def read():
        assert ssa.read("x", blocks[-1]) is x
        ssa.finish()

    count = calls(read)
    assert not any(block.phis for block in blocks)
    return count


def test_many_blocks_without_recursion_in_linear_time():
    assert chain(20_000) < 4.2 * chain(5_000)
