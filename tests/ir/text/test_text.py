import operator
from itertools import pairwise

import numpy as np
import pytest
from numba import types

from tests.ir.pow_example import f64, i64, pow_adjoint, pow_primal
from zygote_py.ir import (
    Alpha,
    Block,
    Const,
    Function,
    Instr,
    Jump,
    Loc,
    Names,
    Param,
    Raise,
    Return,
    Undef,
    Value,
    ops,
    parse_type,
    parse_types,
    type_text,
)
from zygote_py.ir.text.printer import text


def straight(*instrs, params=(), returns=(), kind="function"):
    """A function of one block."""
    block = Block()
    block.instrs = list(instrs)
    block.terminator = Return(returns)
    return Function("f", list(params), [block], kind)


def body(function):
    """The lines of a function without the header, the label and the terminator."""
    return [line.strip() for line in text(function).splitlines()[2:-1]]


def test_pow(golden):
    primal, active = pow_primal()
    golden("pow", text(primal, active) + "\n\n" + text(pow_adjoint(primal)))


def test_locations_only_of_active_values_in_a_primal():
    primal, active = pow_primal()
    assert "pow.py:5" in text(primal, active)
    assert "pow.py:5" not in text(primal)
    assert "pow.py:4" not in text(primal, active)
    primal.kind = "function"
    assert "pow.py:5" not in text(primal, active)


def test_text_is_the_same_for_another_copy():
    assert text(pow_primal()[0]) == text(pow_primal()[0])


@pytest.mark.parametrize(
    ("kind", "params", "hints", "names"),
    [
        ("function", [], ["c"], ["c"]),
        ("function", ["n"], ["n", "n"], ["n", "n1", "n2"]),
        ("function", [], ["r", "r", "r"], ["r0", "r1", "r2"]),
        ("primal", [], ["r", "r"], ["r0", "r1"]),
        ("joint", [], ["r", "r"], ["r0", "r1"]),
        ("adjoint", ["dy"], ["dx", "dx", "dy"], ["dy", "dx1", "dx2", "dy1"]),
        ("function", ["x"], ["x", "x1", "x"], ["x", "x2", "x1", "x3"]),
        ("function", [], ["x", "x1", "x1", "x"], ["x0", "x10", "x11", "x1"]),
        ("function", [], ["", "", "t"], ["t0", "t1", "t2"]),
        ("function", [], ["$phi12.1"], ["_phi12_1"]),
        ("function", ["x", "x"], ["y"], ["x", "x1", "y"]),
    ],
)
def test_names(kind, params, hints, names):
    values = [Param(f64, hint) for hint in params]
    instrs = [Instr(operator.neg, (Const(1.0, f64),), f64, hint) for hint in hints]
    function = straight(*instrs, params=values, kind=kind)
    assert [Names(function).values[value] for value in [*values, *instrs]] == names


def test_no_two_values_have_one_name():
    hints = ["x", "x1", "x", "x11", "x1", "x", "t", "", "x", "x1", "x11"]
    function = straight(*(Instr(operator.neg, (Const(1.0, f64),), f64, hint) for hint in hints))
    names = list(Names(function).values.values())
    assert len(set(names)) == len(names) == len(hints)


@pytest.mark.parametrize(
    ("constant", "shown"),
    [
        (Const(1.0, f64), "1.0"),
        (Const(-0.0, f64), "-0.0"),
        (Const(float("inf"), f64), "inf"),
        (Const(float("-inf"), f64), "-inf"),
        (Const(float("nan"), f64), "nan"),
        (Const(1e-300, f64), "1e-300"),
        (Const(-3, i64), "-3"),
        (Const(True, types.boolean), "True"),
        (Const(None, types.none), "none"),
        (Const("a'b", types.unicode_type), '"a\'b"'),
        (Const(2.0, types.float32), "f32(2.0)"),
        (Const(7, types.uint8), "u8(7)"),
        (Const(1j, types.complex128), "c128(1j)"),
        # What the verifier refuses is printed all the same.
        (Const(np.float64(2.5), f64), "2.5"),
        (Const(np.int64(2), i64), "2"),
        (Const(2, f64), "2.0"),
        (Undef(f64), "undef"),
    ],
)
def test_literals(constant, shown):
    assert body(straight(Instr(ops.pack, (constant,), f64, "x"))) == [f"%x = pack {shown} : f64"]


def test_operations():
    x = Param(types.Array(f64, 2, "F"), "x")
    k = Instr(ops.stack, (), types.List(f64), "k")
    lines = body(
        straight(
            k,
            Instr(ops.push, (k, Const(1.0, f64)), types.none, "k"),
            Instr(ops.getitem, (x, Const(0, i64), Const(1, i64)), f64, "v"),
            Instr(np.sum, (x, Const(0, i64)), types.Array(f64, 1, "C"), "s", keywords=("axis",)),
            params=[x],
        )
    )
    assert lines == [
        "%k = stack : list(f64)",
        "push %k, 1.0",
        "%v = getitem %x, 0, 1 : f64",
        "%s = np.sum %x, axis=0 : f64[:]",
    ]


def test_an_instruction_of_type_none_has_a_name_only_if_it_is_used():
    call = Instr(print, (Const(1, i64),), types.none, "r")
    assert body(straight(call)) == ["builtins.print 1"]
    assert text(straight(call, returns=(call,))).splitlines()[2:] == [
        "  %r = builtins.print 1 : none",
        "  return %r",
    ]


@pytest.mark.parametrize(
    ("kind", "values", "result"),
    [
        ("function", (Const(1.0, f64),), "f64"),
        ("joint", (Const(1.0, f64),), "f64"),
        ("adjoint", (Const(1.0, f64),), "(f64,)"),
        ("joint", (Const(1.0, f64), Const(None, types.none)), "(f64, none)"),
    ],
)
def test_result_in_the_header(kind, values, result):
    assert text(straight(returns=values, kind=kind)).startswith(f"{kind} f() -> {result}\n")


def test_raise():
    block = Block()
    function = Function("f", [], [block])
    block.terminator = Raise(ValueError, (Const('no "x"', types.unicode_type), Const(1, i64)))
    assert text(function) == 'function f() -> none\nb0:\n  raise ValueError "no \\"x\\"", 1'
    block.terminator = Raise(None)
    assert text(function).endswith("\n  raise")
    block.terminator = Raise(np.exceptions.AxisError)
    assert text(function).endswith("\n  raise numpy.exceptions.AxisError")


def test_origins_of_later_groups():
    x = Param(f64, "x")
    sin = Instr(np.sin, (x,), f64, "s")
    store = Instr(ops.setitem, (x, sin), types.none)
    primal = straight(sin, store, params=[x], returns=(sin,), kind="primal")
    one = Const(1.0, f64)
    block = Block(mirror=primal.entry)
    block.instrs = [
        Instr(operator.neg, (one,), f64, "a"),
        Instr(operator.neg, (one,), f64, "long", origin=sin),
        Instr(operator.neg, (Alpha(x),), f64, "b", origin=sin),
        Instr(operator.neg, (one,), f64, "c"),
        Instr(ops.setitem, (one,), types.none, origin=store),
    ]
    block.terminator = Return((one,))
    assert text(Function("f", [], [block], "adjoint", primal)).splitlines()[1:-1] == [
        "b0':",
        "  %a = neg 1.0 : f64",
        "  %long = neg 1.0 : f64                            # of %s = np.sin %x",
        "  %b    = neg @x : f64",
        "  %c = neg 1.0 : f64                               # of none",
        "  setitem 1.0                                      # of setitem %x, %s",
    ]


def test_names_of_reverse_blocks_in_a_joint_function():
    blocks = [Block(), Block()]
    blocks += [Block(mirror=blocks[1]), Block(mirror=blocks[0]), Block(mirror=blocks[0])]
    for block, following in pairwise(blocks):
        block.terminator = Jump(following)
    blocks[-1].terminator = Return(())
    names = Names(Function("f", [], blocks, "joint"))
    assert [names.block(block) for block in blocks] == ["b0", "b1", "b1'", "b0'", "b0''"]


def test_what_a_function_does_not_have_is_printed():
    function = straight(Instr(operator.neg, (Value(f64, "lost"),), f64), returns=(Alpha(Value(f64, "gone")),))
    function.entry.instrs[0].loc = Loc("f.py", 1)
    assert body(function) == ["%t = neg %?lost : f64"]
    assert text(function).endswith("return @?gone")


TYPES = [
    ("f64", types.float64),
    ("f32", types.float32),
    ("i64", types.int64),
    ("u8", types.uint8),
    ("bool", types.boolean),
    ("none", types.none),
    ("str", types.unicode_type),
    ("f64[:]", types.Array(f64, 1, "C")),
    ("f64[:, :]F", types.Array(f64, 2, "F")),
    ("i64[:, :, :]A", types.Array(i64, 3, "A")),
    ("f32[]", types.Array(types.float32, 0, "C")),
    ("readonly f64[:]", types.Array(f64, 1, "C", readonly=True)),
    ("(f64, i64)", types.Tuple((f64, i64))),
    ("(f64, f64)", types.UniTuple(f64, 2)),
    ("(f64,)", types.UniTuple(f64, 1)),
    ("()", types.Tuple(())),
    ("(f64, (i64, f64[:, :]))", types.Tuple((f64, types.Tuple((i64, types.Array(f64, 2, "C")))))),
    ("list(f64)", types.List(f64)),
]


@pytest.mark.parametrize(("shown", "type"), TYPES)
def test_types(shown, type):
    assert type_text(type) == shown
    assert parse_type(shown) == type


@pytest.mark.parametrize(
    ("spelled", "shown"),
    [
        ("float64", "f64"),
        ("int64", "i64"),
        ("boolean", "bool"),
        ("int", "i64"),
        ("float32[:]", "f32[:]"),
        ("float64[:, ::1]", "f64[:, :]"),
        ("float64[::1, :]", "f64[:, :]F"),
        ("array(float64, 2d, A)", "f64[:, :]A"),
        (" f64[:,:] F ", "f64[:, :]F"),
    ],
)
def test_other_spellings_of_types(spelled, shown):
    assert type_text(parse_type(spelled)) == shown


def test_lists_of_types():
    assert [type_text(t) for t in parse_types("f64, i64, f64[:, :]F, (f64, i64)")] == [
        "f64",
        "i64",
        "f64[:, :]F",
        "(f64, i64)",
    ]
    assert parse_types(" ") == ()


@pytest.mark.parametrize(
    "bad",
    ["", "foo", "f64[", "f64[:", "f64[:,,:]", "f64[::1]F", "f64[:, ::1, :]", "none[:]", "(f64,,)", "f64 ]"],
)
def test_bad_types(bad):
    with pytest.raises(ValueError, match=r"unknown type .*: write f64"):
        parse_type(bad)


def test_an_unknown_type_is_in_angle_brackets():
    assert type_text(types.DictType(f64, i64)) == "<DictType[float64,int64]<iv=None>>"
