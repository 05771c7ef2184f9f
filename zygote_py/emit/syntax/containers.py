"""The parts of lists, dicts and objects at the border of a function: how `ops.taken` and `ops.given` are written.

taken(%batch, "each/:x")                [each.x for each in batch]
given(template, %x, %y)                 [Point(part_0_0, part_0_1) for part_0_0, part_0_1 in zip(x, y)]
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zygote_py.ir import ops

_Call = Callable[..., ast.expr]
_Construct = Callable[[Any, list[ast.expr]], ast.expr]


def taken(value: ast.expr, path: str, call: _Call) -> ast.expr:
    """Return the expression of a part of a value."""
    return _follow(value, path.split(ops.SEPARATOR) if path else [], call, 0)


def _follow(value: ast.expr, steps: Sequence[str], call: _Call, depth: int) -> ast.expr:
    if not steps:
        return value
    step, *rest = steps
    match step:
        case "each" | "keys" | "values":
            each = ast.Name(f"each_{depth}" if depth else "each")
            over = ast.Call(ast.Attribute(value, "values"), [], []) if step == "values" else value
            return ast.ListComp(_follow(each, rest, call, depth + 1), [ast.comprehension(each, over, [], 0)])
        case "slots":
            return call(ops.slots_by_order, value)
        case "cell":
            return call(np.array, ast.List([_follow(value, rest, call, depth)]))
        case "rows":
            return _follow(call(ops.array_of_record, value), rest, call, depth)
        case "box":
            return ast.List([_follow(value, rest, call, depth)])
        case "copy":
            return ast.Call(ast.Attribute(value, "copy"), [], [])
        case _ if step.startswith("="):
            return _follow(ast.Subscript(value, ast.Constant(step[1:])), rest, call, depth)
        case _ if step.startswith(":"):
            return _follow(ast.Attribute(value, step[1:]), rest, call, depth)
        case _:
            return _follow(ast.Subscript(value, ast.Constant(int(step))), rest, call, depth)


def given(template: Any, parts: Sequence[ast.expr], call: _Call, construct: _Construct) -> ast.expr:
    """Return the expression of what a template makes of parts."""

    def made(template: Any, parts: Sequence[ast.expr], depth: int) -> ast.expr:
        kind, *rest = template
        match kind:
            case "part":
                number: int = rest[0]
                return parts[number]
            case "tuple":
                type_, *inner = rest
                items: list[ast.expr] = [made(each, parts, depth) for each in inner]
                return construct(type_, items)
            case "list":
                cls, inner, numbers = rest
                held = [parts[number] for number in numbers]
                if inner == ("part", 0):
                    return held[0] if cls is list else call(cls, held[0])
                names: list[ast.expr] = [ast.Name(f"part_{depth}_{number}") for number in range(len(held))]
                listed = ast.ListComp(made(inner, names, depth + 1), [_loop(names, held, call)])
                return listed if cls is list else call(cls, listed)
            case "dict":
                of_key, keys, of_value, values, slots = rest
                held = [parts[number] for number in (*keys, *values)]
                names = [ast.Name(f"part_{depth}_{number}") for number in range(len(held))]
                over = _loop(names, held, call)
                if slots:  # those that there are
                    places: dict[int, ast.expr] = {n: ast.Name(f"slot_{depth}_{n}") for n in slots}
                    over = _loop([*places.values()], [call(ops.slots_in_order, parts[n]) for n in places], call)
                    of = [places[slots[0]]] * len(keys) + [places[slots[1]]] * len(values)
                    names = [ast.Subscript(part, place) for part, place in zip(held, of, strict=True)]
                both = made(of_key, names[: len(keys)], depth + 1), made(of_value, names[len(keys) :], depth + 1)
                return ast.DictComp(*both, [over])
            case _:
                return ast.Constant(None)

    return made(template, parts, 0)


def _loop(names: list[ast.expr], over: list[ast.expr], call: _Call) -> ast.comprehension:
    if len(names) == 1:
        return ast.comprehension(names[0], over[0], [], 0)
    return ast.comprehension(ast.Tuple(names), call(zip, *over), [], 0)
