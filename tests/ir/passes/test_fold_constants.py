import math

import numpy as np
import pytest

from tests.ir.transform import check, read, shown
from zygote_py.ir import Const, Instr, interpret
from zygote_py.ir.passes import fold_constants


def result(operation, **options):
    """Return, as text, the result after folding of a function that returns the operation."""
    type = operation.rpartition(": ")[2]
    header = f"function f(%x: f64, %n: i64, %p: bool, %v: f32) -> {type}"
    function = read(f"b0:\n  %r = {operation}\n  return %r", header, **options)
    fold_constants(function)
    return shown(function).rpartition("return ")[2] if "%r" not in shown(function) else None


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        ("add 0.1, 0.2 : f64", repr(0.1 + 0.2)),
        ("truediv 1.0, 3.0 : f64", repr(1 / 3)),
        ("mul f32(0.1), f32(3.0) : f32", f"f32({float(np.float32(0.1) * np.float32(3.0))!r})"),
        ("neg 0.0 : f64", "-0.0"),
        ("math.sqrt 2.0 : f64", repr(math.sqrt(2.0))),
        ("add 2, 3 : i64", "5"),
        ("floordiv -7, 2 : i64", "-4"),
        ("mod -7, 2 : i64", "1"),
        ("max 3, 4 : i64", "4"),
        ("lt 1.0, nan : bool", "False"),
        ("ne nan, nan : bool", "True"),
        ("float 3 : f64", "3.0"),
        ("int -2.7 : i64", "-2"),
        ("bool 0.0 : bool", "False"),
        ("not_ True : bool", "False"),
        ("and_ True, False : bool", "False"),
        ("is_ True, False : bool", "False"),
        ("is_not True, False : bool", "True"),
        ("pos 2.0 : f64", "2.0"),
        ("add nan, 1.0 : f64", "nan"),
    ],
)
def test_what_is_folded(operation, value):
    assert result(operation) == value


@pytest.mark.parametrize(
    "operation",
    [
        "truediv 1.0, 0.0 : f64",
        "floordiv 1, 0 : i64",
        "mod 1, 0 : i64",
        "mul 1e300, 1e300 : f64",
        "sub inf, inf : f64",
        "add 9223372036854775807, 1 : i64",
        "mul 4611686018427387904, 2 : i64",
        "neg -9223372036854775808 : i64",
        "lshift 1, 64 : i64",
        "lshift 1, -1 : i64",
        "math.sqrt -1.0 : f64",
        "math.sin 1.0 : f64",
        "np.exp 1.0 : f64",
        "pow 2.0, 0.5 : f64",
        "int nan : i64",
        "int 1e300 : i64",
        "add %n, 1 : i64",
    ],
)
def test_what_is_not_folded(operation):
    assert result(operation) is None


@pytest.mark.parametrize(
    ("operation", "value"),
    [
        ("mul %x, 1.0 : f64", "%x"),
        ("mul 1.0, %x : f64", "%x"),
        ("truediv %x, 1.0 : f64", "%x"),
        ("sub %x, 0.0 : f64", "%x"),
        ("add %x, -0.0 : f64", "%x"),
        ("add -0.0, %x : f64", "%x"),
        ("pow %x, 1.0 : f64", "%x"),
        ("pow %x, 1 : f64", "%x"),
        ("mul %v, f32(1.0) : f32", "%v"),
        ("add %n, 0 : i64", "%n"),
        ("mul 0, %n : i64", "0"),
        ("sub %n, %n : i64", "0"),
        ("floordiv %n, 1 : i64", "%n"),
        ("mod %n, 1 : i64", "0"),
        ("pow %n, 1 : i64", "%n"),
        ("eq %n, %n : bool", "True"),
        ("lt %n, %n : bool", "False"),
        ("and_ %p, True : bool", "%p"),
        ("or_ True, %p : bool", "True"),
        ("and_ %p, %p : bool", "%p"),
        ("select True, %x, 2.0 : f64", "%x"),
        ("pick 1, %x, 2.0 : f64", "2.0"),
        ("pick -1, %x, 2.0 : f64", "2.0"),
    ],
)
def test_identities(operation, value):
    assert result(operation) == value


@pytest.mark.parametrize(
    "operation",
    [
        "add %x, 0.0 : f64",  # -0.0
        "sub %x, -0.0 : f64",
        "mul %x, 0.0 : f64",  # nan, inf, signs
        "sub %x, %x : f64",
        "truediv %x, %x : f64",
        "eq %x, %x : bool",
        "mul %x, -1.0 : f64",
        "pow %x, 0.0 : f64",
        "pick 2, %x, 2.0 : f64",
    ],
)
def test_what_is_no_identity(operation):
    assert result(operation) is None


def test_the_identities_of_floats_hold_bit_for_bit():
    special = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308]
    for operation in ["mul %x, 1.0", "truediv %x, 1.0", "sub %x, 0.0", "add %x, -0.0", "pow %x, 1.0", "pow %x, 1"]:
        function = read(f"b0:\n  %r = {operation} : f64\n  return %r", "function f(%x: f64) -> f64")
        for x in special:
            assert repr(interpret(function, x)) == repr(x), operation


def test_two_negations():
    check(
        fold_constants,
        "b0:\n  %a = neg %x : f64\n  %b = neg %a : f64\n  return %b",
        "b0:\n  %a = neg %x : f64\n  return %x",
    )


def test_named_constants_are_seen_through_and_stay():
    check(
        fold_constants,
        "b0:\n  %r = const 2.0 : f64\n  %a = mul %r, 3.0 : f64\n  %b = add %a, %r : f64\n  return %b",
        "b0:\n  %r = const 2.0 : f64\n  return 8.0",
    )


def test_a_constant_branch_and_what_it_led_to():
    check(
        fold_constants,
        """
        b0:
          %c = lt 1, 2 : bool
          branch %c, b1, b2
        b1:
          jump b3
        b2:
          jump b3
        b3:
          %r: f64 = phi b1: %x, b2: %y
          return %r
        """,
        """
        b0:
          jump b1
        b1:
          jump b2
        b2:
          %r: f64 = phi b1: %x
          return %r
        """,
    )


def test_constants_are_plain_values_of_python():
    function = read("b0:\n  %r = mul 2.0, 3.0 : f64\n  %s = add %x, %r : f64\n  return %s")
    fold_constants(function)
    (instr,) = function.entry.instrs
    assert isinstance(instr, Instr)
    constant = instr.args[1]
    assert isinstance(constant, Const)
    assert type(constant.value) is float


def test_minus_one_times_an_adjoint_is_its_negative():
    source = """
    b0:
      %a = mul -1.0, %x : f64
      %b = mul %y, -1.0 : f64
      %c = add %a, %b : f64
      return %c
    """
    function = read(source)
    fold_constants(function)
    assert "neg" not in shown(function)  # the user's own, to the sign of NaN
    for instr in function.values():
        if isinstance(instr, Instr):
            instr.origin = instr
    fold_constants(function)
    assert shown(function).count("= neg %") == 2
    assert "mul" not in shown(function)
