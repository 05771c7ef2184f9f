"""Every row of the table of docs/kinks.md, in float64, by the rule and again compiled."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numba import types

from tests.adjoints.rules.evaluator import NAMES, Adjoint, compile_all, expand_instr, f32, f64, i64, instruction
from zygote_py import gradient, hessian
from zygote_py.adjoints import rule_for
from zygote_py.ir import Const, Type

TABLE = Path(__file__).resolve().parents[3] / "docs" / "kinks.md"
OPERATORS = {ast.Pow: operator.pow, ast.Mod: operator.mod, ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv}


@dataclass(frozen=True)
class Row:
    text: str
    op: Callable[..., object]
    args: tuple[str | int | float, ...]  # names and constants
    at: dict[str, float | bool]
    gradient: dict[str, float]


def read(line: str) -> Row:
    call, at, gradient = (cell.strip().strip("`") for cell in line.strip("|\n ").split("|")[:3])
    tree = ast.parse(call, mode="eval").body
    match tree:
        case ast.BinOp(left, op, right):
            callee, operands = OPERATORS[type(op)], [left, right]
        case ast.Call(function, operands, []):
            callee = eval(ast.unparse(function), {"math": math, "np": np})
        case _:
            raise AssertionError(line)
    args = tuple(arg.id if isinstance(arg, ast.Name) else ast.literal_eval(arg) for arg in operands)
    return Row(f"{call} at {at}", callee, args, bindings(at), bindings(gradient))


def bindings(text: str) -> dict[str, float]:
    pairs = (part.split("=") for part in text.split(","))
    return {name.strip(): eval(value, {"inf": math.inf, "nan": math.nan}) for name, value in pairs}


SCALARS = TABLE.read_text("utf-8").partition("## Functions of arrays")[0]
ROWS = [read(line) for line in SCALARS.splitlines() if line.startswith("| `")]


def result_of(row: Row) -> float:
    """The operation's own value; where plain Python raises, what NumPy gives, or the value at the pole."""
    args = [float(row.at[arg]) if isinstance(arg, str) else arg for arg in row.args]
    numpy = {operator.truediv: np.divide, operator.pow: np.power, math.log: np.log, math.log1p: np.log1p}
    poles = {math.gamma: math.inf, math.lgamma: math.inf, math.atanh: math.inf}
    with np.errstate(all="ignore"):
        if row.op in poles:
            return poles[row.op]
        op = numpy.get(row.op, row.op)
        return float(op(*args))  # type: ignore[arg-type]


def pieces(row: Row) -> tuple[list[Adjoint | None], dict[str, object]]:
    """The adjoint for each named argument (None: no gradient), and the values to run them with."""
    kinds: list[Type | Const] = []
    for arg in row.args:
        if not isinstance(arg, str):
            kinds.append(Const(arg, i64 if isinstance(arg, int) else f64))
        else:
            kinds.append(types.boolean if arg == "c" and row.op is np.where else f64)
    instr = instruction(row.op, kinds, f32 if row.op is np.float32 else f64)
    rule = rule_for(instr)
    assert rule is not None
    values: dict[str, object] = dict.fromkeys(NAMES, 0.0)
    values |= {"n1": 0, "c0": False, "dy": 1.0, "y": result_of(row)}
    adjoints: list[Adjoint | None] = []
    for index, arg in enumerate(row.args):
        if not isinstance(arg, str):
            continue
        value = row.at[arg]
        values[f"c{index}" if isinstance(value, bool) else f"x{index}"] = (
            value if isinstance(value, bool) else float(value)
        )
        if f"d{arg}" in row.gradient:
            adjoints.append(expand_instr(instr, index) if rule.passes(index) else None)
    return adjoints, values


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
def test_row(row: Row) -> None:
    adjoints, values = pieces(row)
    got = [0.0 if adjoint is None else float(adjoint(**values)) for adjoint in adjoints]
    np.testing.assert_allclose(got, list(row.gradient.values()), rtol=1e-15)


def test_compiled() -> None:
    everything = [(row, *pieces(row)) for row in ROWS]
    present = [adjoint for _, adjoints, _ in everything for adjoint in adjoints if adjoint is not None]
    together, _ = compile_all(present)
    out = np.zeros(len(present))
    first = 0
    for row, adjoints, values in everything:
        together(out, *(values[name] for name in NAMES))
        got = []
        for adjoint in adjoints:
            got.append(0.0 if adjoint is None else out[first])
            first += adjoint is not None
        np.testing.assert_allclose(got, list(row.gradient.values()), rtol=1e-15, err_msg=row.text)


def cubes_of_distances(x, y):
    square = x * x + y * y
    return square * math.sqrt(square) + np.sqrt(square) * square * x


@pytest.mark.parametrize("make", [lambda f: gradient(f), lambda f: gradient(f, mode="forward")])
def test_a_product_of_a_number_and_its_root_is_a_power(make):
    assert make(cubes_of_distances)(0.0, 0.0) == (0.0, 0.0)
    assert make(lambda x: x * math.sqrt(x))(4.0) == 3.0
    assert make(lambda x: math.sqrt(x) * x)(np.float32(4.0)) == 3.0
    dx, dy = make(cubes_of_distances)(0.6, 0.8)  # at distance 1: 3 (1 + x) (x, y), and 1 for x
    np.testing.assert_allclose((dx, dy), (3 * 1.6 * 0.6 + 1.0, 3 * 1.6 * 0.8), rtol=1e-14)
    assert hessian(lambda x: x * math.sqrt(x))(4.0) == 0.375
    np.testing.assert_array_equal(
        gradient(lambda x: np.sum(x * np.sqrt(x)))(np.array([0.0, 1.0, 4.0])), [0.0, 1.5, 3.0]
    )


def test_a_product_with_the_root_of_another_number_is_not():
    assert math.isnan(gradient(lambda x: x * math.sqrt(x * 1.0 + 0.0))(0.0))
    dx, dy = gradient(lambda x, y: x * math.sqrt(y))(3.0, 4.0)
    assert (dx, dy) == (2.0, 0.75)
