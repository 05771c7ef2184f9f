"""Simplification of statements: nested ifs become `and` and `or`, and guards that are then set only once are removed.

    to_3 = False                            if a > 0.0 and b > 0.0:
    if a > 0.0:                                 y = a * b
        if b > 0.0:                         else:
            y = a * b                           y = a - b
        else:
            to_3 = True
    else:
        to_3 = True
    if to_3:
        y = a - b

Two arms are considered equal if they are the same few simple statements, a jump to the same target.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from zygote_py.emit.expressions import negated
from zygote_py.emit.lower import For, If, Simple, Statement, While, inside

# Longer arms are not compared: the copies of a jump are few.
LONGEST_JUMP = 4
# Conditions with more parts than this (names, constants, operations) are not joined: the line would be too long.
LARGEST_CONDITION = 30
Body = tuple[Statement, ...]


def tidy(body: Body, guards: Collection[str]) -> Body:
    """Return `body` with conditions joined, and without the guards that this makes redundant."""
    body = _everywhere(body, _joined)
    single = {guard for guard, count in Counter(_setters(body, set(guards))).items() if count == 1}
    if not single:
        return body
    gone: set[str] = set()
    body = _everywhere(body, lambda inner: _without_guards(inner, single, gone))
    body = _everywhere(body, lambda inner: tuple(s for s in inner if _assigned_guard(s, gone, False) is None))
    return _everywhere(body, _joined)


def _everywhere(body: Body, change: Callable[[Body], Body]) -> Body:
    """Apply `change` to every sequence of statements, inner ones first."""
    changed: list[Statement] = []
    for statement in body:
        match statement:
            case If(test, then, orelse, place):
                changed.append(If(test, _everywhere(then, change), _everywhere(orelse, change), place))
            case While() | For():
                changed.append(replace(statement, body=_everywhere(statement.body, change)))
            case _:
                changed.append(statement)
    return change(tuple(changed))


def _joined(body: Body) -> Body:
    return tuple(_join(statement) if isinstance(statement, If) else statement for statement in body)


def _join(outer: If) -> If:
    """Merge an `if` with another `if` that is one of its arms, if they share an arm."""
    inner = outer.then if len(outer.then) == 1 and isinstance(outer.then[0], If) else outer.orelse
    if len(inner) != 1 or not isinstance(inner[0], If) or _size(outer.test) + _size(inner[0].test) > LARGEST_CONDITION:
        return outer
    match outer:
        case If(test, (If(second, then, orelse),), other) if _same(orelse, other):
            return If(_both(ast.And(), test, second), then, orelse, outer.place)
        case If(test, (If(second, then, orelse),), other) if _same(then, other):
            joined = _both(ast.And(), test, negated(second))
            return If(joined, orelse, then, outer.place) if orelse else If(negated(joined), then, (), outer.place)
        case If(test, other, (If(second, then, orelse),)) if _same(then, other):
            return If(_both(ast.Or(), test, second), then, orelse, outer.place)
        case If(test, other, (If(second, then, orelse),)) if other and _same(orelse, other):
            return If(_both(ast.Or(), test, negated(second)), orelse, then, outer.place)
        case _:
            return outer


def _both(op: ast.boolop, first: ast.expr, second: ast.expr) -> ast.expr:
    values: list[ast.expr] = []
    for test in (first, second):
        values += test.values if isinstance(test, ast.BoolOp) and type(test.op) is type(op) else [test]
    return ast.BoolOp(op, values)


def _size(test: ast.expr) -> int:
    return sum(isinstance(node, ast.expr) for node in ast.walk(test))


def _same(one: Body, other: Body) -> bool:
    return len(one) == len(other) <= LONGEST_JUMP and all(
        isinstance(a, Simple) and isinstance(b, Simple) and ast.dump(a.node) == ast.dump(b.node)
        for a, b in zip(one, other, strict=True)
    )


def _setters(body: Body, guards: Collection[str]) -> Iterator[str]:
    """Yield the guards that statements set to True, once per statement."""
    for statement in body:
        yield from _setters(inside(statement), guards)
        if (guard := _assigned_guard(statement, guards, True)) is not None:
            yield guard


def _assigned_guard(statement: Statement, guards: Collection[str], value: bool) -> str | None:
    match statement:
        case Simple(ast.Assign([ast.Name(name)], ast.Constant(constant))) if name in guards and constant is value:
            return name
        case _:
            return None


def _without_guards(body: Body, guards: Collection[str], gone: set[str]) -> Body:
    """Move the body of a guarded `if` to the assignment of its guard, if that ends the preceding statement."""
    kept: list[Statement] = []
    for statement in body:
        match statement:
            case If(ast.Name(name), inner, ()) if name in guards and kept and isinstance(kept[-1], If):
                if (moved := _instead(kept[-1], name, inner)) is not None:
                    kept[-1] = moved
                    gone.add(name)
                    continue
        kept.append(statement)
    return tuple(kept)


def _instead(statement: If, guard: str, body: Body) -> If | None:
    """Return `statement` with `body` instead of the assignment to `guard` at the end of one of its arms, or None."""
    for arm in (statement.then, statement.orelse):
        if (replaced := _at_end(arm, guard, body)) is not None:
            then, orelse = (replaced, statement.orelse) if arm is statement.then else (statement.then, replaced)
            return If(statement.test, then, orelse, statement.place)
    return None


def _at_end(arm: Sequence[Statement], guard: str, body: Body) -> Body | None:
    if not arm:
        return None
    *rest, last = arm
    if isinstance(last, If):
        inner = _instead(last, guard, body)
        return None if inner is None else (*rest, inner)
    return None if _assigned_guard(last, (guard,), True) is None else (*rest, *body)
