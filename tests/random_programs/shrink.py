"""Shrink a failing program: delete statements, replace compound statements and expressions by their parts.

    small = shrink(program, lambda candidate: check(candidate, False).kind is Kind.WRONG, seconds=30)

Every step keeps the failure that the predicate describes. Most candidates are not valid programs; the predicate must
treat these as not failing.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random_programs.generator import HEADER, Program


def shrink(program: Program, fails: Callable[[Program], bool], seconds: float = 30.0) -> Program:
    """The smallest failing program found in the time given."""
    end = time.monotonic() + seconds
    for position in range(len(program.inputs)):
        one = replace(program, inputs=program.inputs[position : position + 1])
        if len(program.inputs) > 1 and fails(one):
            program = one
            break
    tried = {program.text}
    position, changed = 0, False
    while True:
        for number, candidate in enumerate(_candidates(program)):
            if number < position or candidate.text in tried or len(candidate.text) > len(program.text):
                continue
            if time.monotonic() > end:
                return program
            tried.add(candidate.text)
            if fails(candidate):  # what came before in the order mostly does not help now either: go on from here
                program, position, changed = candidate, number, True
                break
        else:
            if not changed:
                return program
            position, changed = 0, False


def _candidates(program: Program) -> Iterator[Program]:
    module = ast.parse(program.text)
    function = module.body[-1]
    assert isinstance(function, ast.FunctionDef)
    before = "\n".join(program.text.splitlines()[: function.lineno - 1]) + "\n"
    before = before if len(module.body) > 3 else HEADER  # with the functions that it calls
    for changed in _smaller(function):
        ast.fix_missing_locations(changed)
        yield replace(program, text=before + ast.unparse(changed) + "\n")
    for position in range(len(function.args.args)):
        if len(function.args.args) > 1:
            changed = copy.deepcopy(function)
            del changed.args.args[position]
            inputs = tuple(args[:position] + args[position + 1 :] for args in program.inputs)
            yield replace(program, text=before + ast.unparse(changed) + "\n", inputs=inputs)


def _smaller(function: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Smaller versions of a function, the boldest first."""
    blocks = _blocks(function)
    for number, block in enumerate(blocks):
        size = len(block)
        while size:
            for start in range(0, len(block), size):
                changed = copy.deepcopy(function)
                target = _blocks(changed)[number]
                del target[start : start + size]
                if not target:
                    if size > 1:
                        continue
                    target.append(ast.Pass())
                yield changed
            size //= 2
    for number, block in enumerate(blocks):
        for position, statement in enumerate(block):
            for part in _parts(statement):
                changed = copy.deepcopy(function)
                _blocks(changed)[number][position : position + 1] = copy.deepcopy(part)
                yield changed
    for number, node in enumerate(_expressions(function)):
        for part in _simpler(node):
            changed = copy.deepcopy(function)
            _replace(changed, _expressions(changed)[number], copy.deepcopy(part))
            yield changed


def _blocks(function: ast.AST) -> list[list[ast.stmt]]:
    """All lists of statements, the outer before the inner."""
    found: list[list[ast.stmt]] = []
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                found.append(block)
    return found


def _parts(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Return the statements that may replace a compound statement."""
    if isinstance(statement, ast.If | ast.For | ast.While):
        yield statement.body
        if statement.orelse:
            yield statement.orelse
            bare = copy.deepcopy(statement)
            bare.orelse = []
            yield [bare]
    if isinstance(statement, ast.AugAssign):
        yield [ast.Assign([statement.target], statement.value)]


def _expressions(function: ast.AST) -> list[ast.expr]:
    """All expressions that are read."""
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    ]


def _simpler(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Constant | ast.Name):
        if isinstance(node, ast.Name) and len(node.id) > 1:
            yield ast.Name("x", ast.Load())
        return
    if isinstance(node, ast.Attribute):
        return
    yield from (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    yield ast.Name("x", ast.Load())
    yield ast.Constant(1.0)
    yield ast.Constant(2)
    yield ast.Constant(True)


def _replace(function: ast.AST, old: ast.expr, new: ast.expr) -> None:
    for parent in ast.walk(function):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and any(item is old for item in value):
                value[next(i for i, item in enumerate(value) if item is old)] = new
                return
