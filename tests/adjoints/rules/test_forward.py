"""Every row of a rule in forward mode and to second order: all rows in one function, each of arguments of its own.

<J v, w> = <v, J^T w>, and the tangents of gradients are the gradients of gradients, those of tangents, the tangents of
tangents, and the differences of gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zygote_py as zg
from tests.adjoints.rules.evaluator import Adjoint, expand_instr, f32, f64
from tests.adjoints.rules.test_compiled import POINTS, instructions
from tests.adjoints.rules.test_complex_rules import CASES as COMPLEX_CASES
from tests.adjoints.rules.test_derivatives import CASES
from tests.checking.second import slopes
from tests.plain import plain
from zygote_py.adjoints import rule_for
from zygote_py.adjoints.rules import push_forward
from zygote_py.api.directions import hvp, jvp, pushforward
from zygote_py.ir import Instr, Param, Value, ops

ROUNDS = 6
REAL = [(op, case) for case in CASES for op in case.ops if op is not np.clip]  # Numba has none of numbers
COMPLEX = [(op, case) for case in COMPLEX_CASES for op in case.ops if op is not ops.const]


def pushed(instr: Instr, index: int) -> Adjoint:
    """The tangent of a row's result, as a straight line of Python."""
    rule = rule_for(instr)
    assert rule is not None
    tangent = Param(instr.args[index].type, "dy")
    made = Adjoint(arguments={instr: "y", tangent: "dy"})
    made.arguments |= {arg: arg.hint for arg in instr.args if isinstance(arg, Value)}

    def emit(op, args, type):
        made.instrs.append(Instr(op, args, type))
        return made.instrs[-1]

    made.result = push_forward(rule, index, instr, tangent, emit)
    return made


@pytest.mark.parametrize("type", [f64, f32], ids=str)
def test_the_tangent_of_a_real_row_is_its_adjoint(type) -> None:
    number = np.float64 if type == f64 else np.float32
    count = 0
    for instr in instructions(type):
        rule = rule_for(instr)
        assert rule is not None
        for index in (n for n in range(len(rule.names)) if rule.passes(n) and not rule.is_unknown(n)):
            adjoint, tangent = expand_instr(instr, index), pushed(instr, index)
            for x0, x1, x2, y, dy in POINTS:
                names = {"x0": number(x0), "x1": number(x1), "x2": number(x2), "n1": 3, "c0": x0 > 0, "c1": x1 > 0}
                names |= {"y": number(y), "dy": number(dy)}
                want = adjoint(**names)
                np.testing.assert_array_equal(tangent(**names), want, err_msg=ops.name_of(instr.op))
                count += 1
    assert count > 1000


def points(case) -> list[list[float]]:
    """Points at which differences can be taken, away from 0, 1 and ties; complex numbers as pairs of real ones."""
    rng = np.random.default_rng(5)
    found = [p for p in map(parts, case.points) if _is_apart(p)]
    low, high = (side(list(map(parts, case.points)), axis=0) for side in (np.min, np.max))
    while len(found) < ROUNDS:
        p = list(rng.uniform(np.maximum(low, -3), np.minimum(high, 3)))
        if _is_apart(p):
            found.append(p)
    return found[:ROUNDS]


def parts(point) -> list[float]:
    """The real numbers in a point."""
    return [float(part) for x in point for part in ((x.real, x.imag) if isinstance(x, complex) else (x,))]


def _is_apart(p: list[float]) -> bool:
    """Whether a point is not near one where a function jumps, or has a kink, or a pole."""
    ties = np.abs(np.subtract.outer(p, p))[~np.eye(len(p), dtype=bool)]
    ones = all(0.05 < abs(x) < 5 and abs(abs(x) - 1) > 0.05 for x in p)
    steep = abs(np.cos(p[0])) < 0.2 or abs(p[0] - round(p[0])) < 0.05  # tan; gamma and its like, remainders
    quotient = p[0] / p[-1]
    return ones and bool(np.all(ties > 0.05)) and not steep and (len(p) == 1 or abs(quotient - round(quotient)) > 0.05)


def written(rows) -> tuple[Callable[..., Any], list[list[int]]]:
    """A function of all rows, and the places of each one's arguments."""
    places, lines, at = [], [], 0
    for k, (_, case) in enumerate(rows):
        args, first = [], at
        for x in case.points[0]:
            args.append(f"complex(p[{at}], p[{at + 1}])" if isinstance(x, complex) else f"p[{at}]")
            at += 1 + isinstance(x, complex)
        places.append(list(range(first, at)))
        lines.append(f"y{k} = op{k}({', '.join(args)})")
        of_real = getattr(case, "is_real", True)
        lines.append(f"o[{k}] = " + (f"y{k}" if of_real else f"0.7 * y{k}.real - 0.4 * y{k}.imag"))
    namespace: dict[str, Any] = {f"op{k}": op for k, (op, _) in enumerate(rows)} | {"np": np}
    text = "\n    ".join([f"o = np.empty({len(rows)})", *lines, "return o"])
    exec(f"def every(p):\n    {text}\n", namespace)
    return namespace["every"], places


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(REAL[::5], id="a fifth of the real"),
        pytest.param(COMPLEX[::9], id="a ninth of the complex"),
        pytest.param(REAL, id="real", marks=pytest.mark.long),
        pytest.param(COMPLEX, id="complex", marks=pytest.mark.long),
    ],
)
def test_every_row_in_forward_mode_and_to_second_order(rows) -> None:
    function, places = written(rows)
    given = [points(case) for _, case in rows]
    found = [np.concatenate([each[j] for each in given]) for j in range(ROUNDS)]

    def total(p):
        return np.sum(function(p))

    def product(p, v):
        return np.sum(zg.gradient(total)(p) * v)

    def tangent(p, v):
        return jvp(function, p, v)[1]

    def total_tangent(p, v):
        return np.sum(jvp(function, p, v)[1])

    p, v = found[0], np.ones(len(found[0]))
    gradient = plain(zg.gradient(total).source(p))
    push = plain(pushforward(function).source((p,), (v,)))
    push_push = plain(pushforward(tangent).source((p, v), (v, None)))
    ways = [
        plain(hvp(total).source(p, v)),
        plain(zg.gradient(product, wrt=0).source(p, v)),
        plain(zg.gradient(total_tangent, wrt=0).source(p, v)),
    ]
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        for p in found:
            v = rng.standard_normal(len(p))
            first, change = gradient(p), push((p,), (v,))[1]
            along, again, through = (way(p, v) for way in ways)
            twice = push_push((p, v), (v, None))[1]
            expected = slopes(gradient, p, v * 0.3) / 0.3
            for k, (op, _) in enumerate(rows):
                at, where = places[k], f"{ops.name_of(op)} at {p[places[k]]}"
                terms = first[at] * v[at]
                assert abs(np.sum(terms) - change[k]) <= 1e-12 * np.sum(np.abs(terms)), where
                size = max(np.max(np.abs(along[at])), 1e-3 * np.max(np.abs(first[at])))
                assert np.max(np.abs(along[at] - again[at])) <= 1e-12 * size, where
                assert np.max(np.abs(along[at] - through[at])) <= 1e-12 * size, where
                curvature = along[at] * v[at]
                assert abs(np.sum(curvature) - twice[k]) <= 1e-11 * np.sum(np.abs(curvature)) + 1e-13 * size, where
                assert np.max(np.abs(along[at] - expected[at])) <= 1e-6 * size, where
