"""Emitted functions against the interpreter, in plain Python and compiled, and their text."""

from __future__ import annotations

import ast
import inspect
import math
import random
import sys
import textwrap
import traceback
from random import Random

import numpy as np
import pytest

from tests.emit import programs
from tests.ir.pow_example import pow_primal
from tests.plain import plain
from zygote_py import gradient, numba_adapter
from zygote_py.emit import NJIT, emit
from zygote_py.emit.source import _print_nodes
from zygote_py.ir import Instr, Routine, interpret, parse, verify

CALLS = {
    "SWAP": [(0, 1.0, 2.0), (1, 1.0, 2.0), (2, 1.0, 2.0), (5, 1.0, 2.0)],
    "ROTATION": [(0, 1.0), (1, 1.0), (2, 1.0), (4, 1.0)],
    "LOST_COPY": [(3.0, 1), (3.0, 4)],
    "FIBONACCI": [(0,), (1,), (9,)],
    "SHORT_CIRCUIT": [(1.0, 2.0), (1.0, -2.0), (-1.0, 2.0), (-1.0, -2.0), (float("nan"), 1.0), (1.0, float("nan"))],
    "GUARDS": [(a, b, np.zeros(4)) for a in (-1.0, 1.0, 2.0) for b in (-1.0, 0.5, 2.0)],
    "SHARED_ARM": [(a, b, np.zeros(1)) for a in (-1.0, 1.0) for b in (-1.0, 1.0)],
    "TRIANGLE": [(np.arange(20.0).reshape(4, 5), n) for n in (0, 1, 2, 4)],
    "BACKWARDS": [(np.arange(float(n)),) for n in (0, 1, 5)],
    "USED_AFTER": [(0, 0), (10, 1), (-3, 2)],
    "SHRINKING_BOUND": [(0,), (4,)],
    "STATEMENTS_IN_HEADER": [(np.array([1.0, 1.5, 2.5, 3.0]),)],
    "FLOAT32": [(np.float32(1.1), n) for n in (0, 1, 5)],
    "SLOT": [(3.0, n) for n in (0, 1, 2)],
    "UNSET_AND_COPIED": [(3.0, n) for n in (0, 1, 2, 3, 4)],
    "CHECKED": [(3.0, 1), (3.0, -1), (0.0, 1)],
    "STACKS": [(np.array([1.0, 2.0, -3.0]),), (np.array([]),)],
    "NESTED_STACKS": [(np.array([1.0, 2.0, -3.0]), n) for n in (0, 1, 2)],
    "ARRAYS": [(np.arange(12.0).reshape(3, 4), i) for i in (0, 1, 2)],
    "CONSTANTS": [(1.0,), (0.5,)],
    "NAMES": [(1.0, 0.2, 3.0, 2.0, np.zeros(3))],
    "NEGATED": [(3.0, 1), (1.0, 2), (float("nan"), 1)],
    "BREAKS": [(np.array([1.0, 2.0, 3.0]), n) for n in (0, 1, 2, 3)],
    "EMPTY": [(3,)],
}


def function(source):
    (only,) = parse(textwrap.dedent(source))
    verify(only)
    return only


def outcome(call, args):
    args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    with np.errstate(all="ignore"):
        try:
            result = call(*args)
        except (ValueError, ZeroDivisionError) as error:
            result = repr(error)
    if isinstance(result, complex):
        result = float("nan")
    return result, [arg for arg in args if isinstance(arg, np.ndarray)]


def assert_same(got, want):
    assert repr(got[0]) == repr(want[0]) or np.array_equal(got[0], want[0], equal_nan=True)
    assert all(map(np.array_equal, got[1], want[1]))


@pytest.mark.parametrize("name", CALLS)
def test_in_plain_python(name, golden):
    ir = function(getattr(programs, name))
    emitted = emit(ir, name=name.lower())
    golden(f"emit/{name.lower()}", emitted.source)
    for args in CALLS[name]:
        want = outcome(lambda *args: interpret(ir, *args), args)
        got = outcome(numba_adapter.load(emitted), args)
        assert_same(got, want)
        assert type(got[0]) is type(want[0]) or not isinstance(want[0], np.floating)


COMPILED = ("SWAP", "LOST_COPY", "GUARDS", "TRIANGLE", "FLOAT32", "UNSET_AND_COPIED", "CHECKED", "STACKS", "ARRAYS")


@pytest.mark.parametrize("name", [*COMPILED, "NAMES", "BREAKS", "EMPTY", "NESTED_STACKS"])
def test_compiled(name):
    ir = function(getattr(programs, name))
    call = numba_adapter.load(emit(ir, name=name.lower(), target=NJIT))
    for args in CALLS[name]:
        assert_same(outcome(call, args), outcome(lambda *args: interpret(ir, *args), args))


def test_the_module_around_the_function(golden):
    primal, _ = pow_primal()
    emitted = emit(
        primal,
        name="power",
        target=NJIT,
        options={"fastmath": True},
        defaults={"n": 3},
    )
    golden("emit/pow", emitted.source)
    power = numba_adapter.load(emitted)
    assert power(2.0) == power.py_func(2.0) == 8.0
    assert inspect.getsource(power.py_func).startswith("@njit(fastmath=True)\ndef power(x, n=3):")


def test_comments_say_what_an_adjoint_statement_belongs_to(tmp_path, golden):
    (tmp_path / "user.py").write_text("def f(x):\n    y = x * x\n    return y * x\n")
    ir = function(
        """
        joint f(%x: f64) -> (f64,)
        b0:
          %y = mul %x, %x : f64
          %dy = mul 1.0, %x : f64
          %dx0 = mul 1.0, %y : f64
          %t = mul %dy, %x : f64
          %dx1 = add %dx0, %t : f64
          %dx2 = add %dx1, %t : f64
          return %dx2
        """
    )
    from zygote_py.ir import Loc

    y, dy, dx0, t, dx1, dx2 = ir.blocks[0].instrs
    z = Instr(y.op, (y, y), y.type, "", Loc(str(tmp_path / "user.py"), 3))
    y.loc = Loc(str(tmp_path / "user.py"), 2)
    for instr, origin in ((dy, z), (dx0, z), (t, y), (dx1, y), (dx2, y)):
        instr.origin = origin
    golden("emit/comments", emit(ir, name="f").source)
    (tmp_path / "user.py").unlink()
    import linecache

    linecache.clearcache()
    assert "# of user.py:3" in emit(ir, name="f").source


def test_defaults_and_globals():
    def twice(value):
        return 2 * value

    ir = function("function f(%x: f64, %y: f64, %z: f64) -> f64\nb0:\n  %t = mul %x, %y : f64\n  return %t")
    ir.blocks[0].instrs[0].op = lambda x, y: x * y
    ir.blocks[0].instrs.append(Instr(twice, (ir.blocks[0].instrs[0],), ir.params[0].type, "twice"))
    ir.blocks[0].terminator.args = (ir.blocks[0].instrs[1],)
    emitted = emit(ir, name="f", defaults={"y": float("inf"), "z": 0.5})
    assert "def f(x, y=float('inf'), z=0.5):" in emitted.source
    assert numba_adapter.load(emitted)(1.0) == float("inf")
    assert numba_adapter.load(emitted)(1.0, 3.0) == 6.0
    assert len(emitted.globals) == 2


def test_tracebacks_show_the_emitted_line():
    emitted = emit(function(programs.CHECKED), name="checked")
    with pytest.raises(ValueError, match="n is negative") as raised:
        numba_adapter.load(emitted)(1.0, -1)
    assert "raise ValueError('n is negative')" in "".join(traceback.format_exception(raised.value))


def test_emission_is_deterministic_and_leaves_the_function_alone():
    from zygote_py.ir.text.printer import text

    ir = function(programs.GUARDS)
    before = text(ir)
    assert emit(ir, name="f") == emit(ir, name="f") == emit(function(programs.GUARDS), name="f")
    assert text(ir) == before


def sequential(count):
    lines = ["function f(%x: f64) -> f64", "b0:", "  jump b1"]
    last, block = "%x", 1
    for index in range(count):
        lines += [
            f"b{block}:",
            f"  %c{index} = gt {last}, {float(index)} : bool",
            f"  branch %c{index}, b{block + 1}, b{block + 2}",
            f"b{block + 1}:",
            f"  %y{2 * index} = mul {last}, 0.5 : f64",
            f"  jump b{block + 2}",
            f"b{block + 2}:",
            f"  %y{2 * index + 1}: f64 = phi b{block}: {last}, b{block + 1}: %y{2 * index}",
            f"  jump b{block + 3}" if index < count - 1 else f"  return %y{2 * index + 1}",
        ]
        last, block = f"%y{2 * index + 1}", block + 3
    return function("\n".join(lines))


def checks(count):
    lines = ["function f(%x: f64) -> f64", "b0:", "  jump b1"]
    for index in range(count):
        lines += [
            f"b{2 * index + 1}:",
            f"  %c{index} = gt %x, {float(index)} : bool",
            f"  branch %c{index}, b{2 * index + 2}, b{2 * index + 3}",
            f"b{2 * index + 2}:",
            "  raise ValueError",
        ]
    return function("\n".join([*lines, f"b{2 * count + 1}:", "  return %x"]))


@pytest.mark.parametrize("make", [sequential, checks])
def test_long_sequences_do_not_nest(make):
    source = emit(make(sys.getrecursionlimit()), name="f").source
    assert max(len(line) - len(line.lstrip()) for line in source.splitlines()) == 8


OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.LShift)


def random_expression(choices, depth):
    if depth == 0 or choices.random() < 0.1:
        value = choices.choice((1.5, 2, 1e-300, True))
        return choices.choice((ast.Name("x"), ast.Constant(value), ast.UnaryOp(ast.USub(), ast.Constant(2.5))))

    def inner():
        return random_expression(choices, depth - 1)

    match choices.randrange(9):
        case 0 | 1 | 2:
            op = choices.choice(
                ["Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "BitAnd", "BitOr", "BitXor", "LShift"]
            )
            return ast.BinOp(inner(), getattr(ast, op)(), inner())
        case 3:
            return ast.UnaryOp(getattr(ast, choices.choice(("USub", "Not", "Invert", "UAdd")))(), inner())
        case 4:
            return ast.Compare(inner(), [choices.choice((ast.Lt, ast.Eq, ast.Is))()], [inner()])
        case 5:
            return ast.IfExp(inner(), inner(), inner())
        case 6:
            return ast.BoolOp(choices.choice((ast.And, ast.Or))(), [inner(), inner()])
        case 7:
            return ast.Call(ast.Attribute(ast.Name("np"), "sin"), [inner()], [ast.keyword("dtype", inner())])
        case _:
            return ast.Subscript(
                ast.Tuple([inner(), inner()]), choices.choice((inner(), ast.Tuple([inner(), inner()])))
            )


def test_what_astor_prints_reads_back():
    choices = Random(1)
    nodes = [ast.Assign([ast.Name("y")], random_expression(choices, 1 + n % 5)) for n in range(500)]
    for node, line in zip(nodes, _print_nodes(nodes), strict=True):
        (read,) = ast.parse(line).body
        assert plain_dump(read) == plain_dump(node), line


def plain_dump(node):
    """The tree without contexts, which only a parser sets."""
    return ast.dump(node).replace(", ctx=Load()", "").replace(", ctx=Store()", "").replace(", keywords=[]", "")


def test_draws_are_called_by_their_modules():
    """So that the emitted source runs where only NumPy and Numba are known."""

    def f(x):
        np.random.seed(5)
        random.seed(5)
        return x * np.random.random() * random.random()

    derivative = plain(gradient(f).source(2.0))(2.0)
    np.random.seed(5)
    random.seed(5)
    assert derivative == np.random.random() * random.random()


LAST = """
function last({parameters}) -> f64
b0:
  %r = add %v0, %v31 : f64
  return %r
"""
MANY = """
function f(%x: f64, %p: bool) -> f64
b0:
  %t = select %p, %x, 0.5 : f64
  %r = math.hypot {arguments}, %t : f64
  return %r
"""


def test_calls_with_many_arguments_have_no_conditions_among_them():  # which Numba would not take
    called, ir = Routine("last"), function(MANY.format(arguments=", ".join(["%x"] * 31)))
    called.function = function(LAST.format(parameters=", ".join(f"%v{k}: f64" for k in range(32))))
    next(instr for instr in ir.instrs() if instr.op is math.hypot).op = called
    emitted = emit(ir, name="f", target=NJIT)
    calls = [each for each in ast.walk(ast.parse(emitted.source)) if isinstance(each, ast.Call)]
    assert any(len(each.args) > 30 for each in calls)
    call = numba_adapter.load(emitted)
    assert [call(2.0, True), call(2.0, False)] == [4.0, 2.5]
