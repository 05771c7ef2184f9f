"""Every expression of every rule: linear in dy, the same compiled as in plain Python, in float32 where that is."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator

import numpy as np
import pytest
from numba import types

from tests.adjoints.rules.evaluator import NAMES, Adjoint, compile_all, expand_instr, f32, f64, i64, instruction
from zygote_py.adjoints import ROWS, UNKNOWN, Term, digamma, parse, rule_for
from zygote_py.adjoints.rules import uses
from zygote_py.adjoints.rules.formulas.terms import Call, Number
from zygote_py.adjoints.rules.helpers import scipy_helpers
from zygote_py.ir import Const, Instr, Type, ops


def instructions(type: Type) -> Iterator[Instr]:
    """An instruction for every row, and for every case of the structural rules."""
    for op, rows in ROWS.items():
        if op in (float, np.float64, np.float32, digamma) or op.__module__ == scipy_helpers.__name__:
            continue
        for each in rows:
            kinds = [types.boolean if name == "c" else i64 if name == "i" else type for name in each.names]
            yield instruction(op, kinds, type)
    for op in (operator.pow, pow, math.pow, np.power, np.float_power):
        yield instruction(op, (type, type), type)
    yield instruction(operator.pow, (type, i64), type)
    for n in range(-3, 20):
        yield instruction(operator.pow, (type, Const(n, i64)), type)
    for p in (0.0, 0.5, 1.5, 2.0, -0.5, 2.25, -3.0, math.inf):
        yield instruction(operator.pow, (type, Const(p, type)), type)
    for op in (min, max):
        for n in (1, 2, 3):
            yield instruction(op, (type,) * n, type)


def adjoints(type: Type) -> Iterator[tuple[Instr, int, Adjoint]]:
    seen = set()
    for instr in instructions(type):
        found = rule_for(instr)
        assert found is not None, ops.name_of(instr.op)
        for index, text in enumerate(found.adjoints):
            if text not in (None, UNKNOWN) and (text, found.names) not in seen:
                seen.add((text, found.names))
                yield instr, index, expand_instr(instr, index)


def is_linear(term: Term) -> bool:
    """Whether a term is linear in dy, by its form; 0.0 counts, as a branch of a selection."""
    match term:
        case "dy" | Number(0.0):
            return True
        case Call(operator.neg, (part,)):
            return is_linear(part)
        case Call(op, (left, right)) if op in (operator.add, operator.sub):
            return is_linear(left) and is_linear(right)
        case Call(operator.mul, (left, right)):
            return (is_linear(left) and is_free(right)) or (is_free(left) and is_linear(right))
        case Call(op, (left, right)) if op in (np.divide, np.ldexp):
            return is_linear(left) and is_free(right)
        case Call(ops.select, (condition, then, orelse)):
            return is_free(condition) and is_linear(then) and is_linear(orelse)
        case _:
            return False


def is_free(term: Term) -> bool:
    return term != "dy" and not (isinstance(term, Call) and not all(map(is_free, term.args)))


def test_every_expression_is_linear_in_dy() -> None:
    for instr, index, _ in adjoints(f64):
        found = rule_for(instr)
        assert found is not None
        text = found.adjoints[index]
        assert text is not None
        assert is_linear(parse(text)), text
        assert "dy" not in uses(found, index)
        assert uses(found, index) <= {*found.names, "y"}


POINTS = [
    (0.5, 0.25, 2.0, 0.75, 1.5),
    (0.5, 0.5, 0.25, 0.5, -2.0),
    (-0.375, 1.25, -3.0, -0.25, 1.5),
    (0.0, 0.0, 0.0, 0.0, 1.0),
    (0.0, -1.5, 1.0, 1.0, 1.0),
    (-0.0, 2.0, 1.0, -0.0, 1.0),
    (1.0, 0.0, 1.0, math.inf, 1.0),
    (-7.25, -7.25, 3.0, 2.5, 0.25),
    (1e30, 1e-30, 1.0, 1e-30, 1.0),
    (math.inf, -math.inf, 1.0, math.inf, 1.0),
    (math.inf, math.inf, 0.0, math.nan, 1.0),
    (math.nan, 1.0, 2.0, math.nan, 1.0),
    (1.0, math.nan, 2.0, 1.0, 1.0),
    (3.0, 2.0, math.nan, 8.0, 0.0),
]


@pytest.mark.parametrize("type", [f64, f32], ids=str)
def test_compiled_is_plain(type: Type) -> None:
    made = list(adjoints(type))
    together, names = compile_all([adjoint for _, _, adjoint in made])
    number = np.float64 if type == f64 else np.float32
    out = np.zeros(len(made), number)
    for point in POINTS:
        x0, x1, x2, y, dy = map(number, point)
        z = complex(x0, x1)
        values = (x0, x1, x2, 3, x0 > 0, x1 > 0, z, z, z, y, dy)
        kinds = dict(zip(NAMES, values, strict=True))
        together(out, *values)
        for (instr, index, adjoint), got in zip(made, out, strict=True):
            want = adjoint(**kinds)
            where = f"{ops.name_of(instr.op)}, argument {index}, at {point}"
            assert isinstance(want, float if type == f64 else np.float32), where
            np.testing.assert_allclose(got, want, rtol=4e-15 if type == f64 else 4e-6, err_msg=where)
    (compiled,) = together.overloads.values()
    inferred = compiled.type_annotation.typemap
    declared = [instr.type for _, _, adjoint in made for instr in adjoint.instrs]
    for name, kind in zip(names, declared, strict=True):
        assert inferred[name] == kind, (name, inferred[name], kind)
