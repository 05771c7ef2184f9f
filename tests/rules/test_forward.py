"""Every row of a rule in forward mode and to second order: all rows in one function, each of arguments of its own.

<J v, w> = <v, J^T w>, and the tangents of gradients are the gradients of gradients, those of tangents, the tangents of
tangents, and the differences of gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zygote_py as zg
from tests.forward import slopes
from tests.plain import plain
from tests.rules.evaluator import Adjoint, expand_instr, f32, f64
from tests.rules.test_compiled import POINTS, instructions
from tests.rules.test_derivatives import CASES, Case
from zygote_py.adjoints.rules import push_forward, rule_for
from zygote_py.directions import hvp, jvp, pushforward
from zygote_py.ir import ops
from zygote_py.ir.core import Instr, Param, Value

ROUNDS = 6
ROWS = [(op, case) for case in CASES for op in case.ops if op is not np.clip]  # Numba has none of numbers


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
        for index in (n for n in range(len(rule.names)) if rule.passes(n)):
            adjoint, tangent = expand_instr(instr, index), pushed(instr, index)
            for x0, x1, x2, y, dy in POINTS:
                names = {"x0": number(x0), "x1": number(x1), "x2": number(x2), "n1": 3, "c0": x0 > 0, "c1": x1 > 0}
                names |= {"y": number(y), "dy": number(dy)}
                want = adjoint(**names)
                np.testing.assert_array_equal(tangent(**names), want, err_msg=ops.name_of(instr.op))
                count += 1
    assert count > 1000


def points(case: Case) -> list[tuple[float, ...]]:
    """Points at which differences can be taken: those of the case, or others between them, away from 0, 1 and ties."""
    rng = np.random.default_rng(5)
    found = [
        p for p in case.points if all(0.03 < abs(x) < 5 and abs(abs(x) - 1) > 0.03 for x in p) and _apart(p, case)
    ]
    low, high = np.min(case.points, axis=0), np.max(case.points, axis=0)
    while len(found) < ROUNDS:
        p = tuple(rng.uniform(np.maximum(low, -3), np.minimum(high, 3)))
        if all(0.05 < abs(x) and abs(abs(x) - 1) > 0.05 for x in p) and _apart(p, case):
            found.append(p)
    return found[:ROUNDS]


def _apart(p: tuple[float, ...], case: Case) -> bool:
    """Whether a point is not near one where the function jumps, or has a kink, or a pole."""
    ties = np.abs(np.subtract.outer(p, p))[~np.eye(len(p), dtype=bool)]
    steep = abs(np.cos(p[0])) < 0.2 or abs(p[0] - round(p[0])) < 0.05  # tan; gamma and its like, remainders
    quotient = p[0] / p[-1]
    return bool(np.all(ties > 0.05)) and not steep and (len(p) == 1 or abs(quotient - round(quotient)) > 0.05)


@functools.cache
def every() -> tuple[Callable[..., Any], list[list[int]], list[np.ndarray]]:
    """A function of all rows; the places of each one's arguments; points."""
    places, lines, at = [], [], 0
    for k, (_, case) in enumerate(ROWS):
        places.append(list(range(at, at + len(case.points[0]))))
        lines.append(f"o[{k}] = op{k}({', '.join(f'p[{n}]' for n in places[-1])})")
        at += len(places[-1])
    namespace: dict[str, Any] = {f"op{k}": op for k, (op, _) in enumerate(ROWS)} | {"np": np}
    body = "\n    ".join([f"o = np.empty({len(ROWS)})", *lines, "return o"])
    exec(f"def every(p):\n    {body}\n", namespace)
    found = []
    for j in range(ROUNDS):
        found.append(np.concatenate([points(case)[j] for _, case in ROWS]))
    return namespace["every"], places, found


def test_every_row_in_forward_mode_and_to_second_order() -> None:
    function, places, found = every()

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
            for k, (op, _) in enumerate(ROWS):
                at, where = places[k], f"{ops.name_of(op)} at {p[places[k]]}"
                terms = first[at] * v[at]
                assert abs(np.sum(terms) - change[k]) <= 1e-12 * np.sum(np.abs(terms)), where
                size = max(np.max(np.abs(along[at])), 1e-3 * np.max(np.abs(first[at])))
                assert np.max(np.abs(along[at] - again[at])) <= 1e-12 * size, where
                assert np.max(np.abs(along[at] - through[at])) <= 1e-12 * size, where
                curvature = along[at] * v[at]
                assert abs(np.sum(curvature) - twice[k]) <= 1e-11 * np.sum(np.abs(curvature)) + 1e-13 * size, where
                assert np.max(np.abs(along[at] - expected[at])) <= 1e-6 * size, where
