"""Lowering of regions of blocks to a tree of Python statements with `ast` nodes for simple statements and conditions.

    Loop(b1, (Straight(b2),))           While(`n > 0`, (Simple(`n -= 1`), Simple(`r *= x`)))

A counted loop becomes a `For`. A loop whose header only computes its condition becomes a `While` with that condition,
and any other loop a `While` of `True` with a `break` after the statements of the header.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from numba import types

from zygote_py.emit import structure
from zygote_py.emit.expressions import Expressions, name, negated, signed
from zygote_py.emit.inlining import Statements
from zygote_py.emit.out_of_ssa import Variable, Variables, sequence_copies
from zygote_py.emit.structure import Range
from zygote_py.ir import Block, Branch, Const, Instr, InternalError, Loc, Operand, Raise, Return, Value, ops
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The source line of a statement or, if `reverse`, the line to whose pullback the statement belongs."""

    loc: Loc
    reverse: bool


@dataclass(frozen=True, slots=True, eq=False)
class Simple:
    """A statement of one line."""

    node: ast.stmt
    place: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """An `if` statement, `if test: then; else: orelse`."""

    test: ast.expr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    place: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """A `while` loop, `while test: body`."""

    test: ast.expr
    body: tuple[Statement, ...]
    place: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """A `for` loop, `for target in iterable: body`."""

    target: ast.expr
    iterable: ast.expr
    body: tuple[Statement, ...]
    place: Place | None = None


Statement = Simple | If | While | For


def inside(statement: Statement) -> tuple[Statement, ...]:
    """Return the statements that a compound statement consists of."""
    match statement:
        case If(_, then, orelse):
            return then + orelse
        case While() | For():
            return statement.body
        case _:
            return ()


_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# The negations of these also hold for NaN.
_ALWAYS_FLIPPED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)


@dataclass(frozen=True, slots=True, eq=False)
class Lowering:
    """Lowers regions to statements, using the decisions of the other steps and the names of the guards."""

    variables: Variables
    statements: Statements
    ranges: Mapping[Block, Range]
    expressions: Expressions
    guards: Mapping[structure.Target, str]
    parameters: Collection[str]

    def lower(self, regions: Sequence[structure.Region]) -> tuple[Statement, ...]:
        """Return the statements of `regions`."""
        return tuple(statement for region in regions for statement in self._region(region))

    def zeros(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """Yield the assignments that must precede `body`, for variables that may be unset.

        Numba refuses a variable that the text reads before it assigns it, even if no execution does.
        """
        unset = {variable.name: variable for variable in map(self._variable, self.variables.unset) if variable}
        candidates = set(unset).difference(self.parameters)
        return map(self._zero, [unset[found] for found in read_early(body, candidates)])

    def _zero(self, variable: Variable) -> Statement:
        return Simple(ast.Assign([name(variable.name)], self.expressions.zero(variable.members[0].type)))

    def _region(self, region: structure.Region) -> Iterator[Statement]:
        match region:
            case structure.Straight(block):
                yield from self._straight(block)
            case structure.Edge(source, target):
                yield from self._copies(source, target)
            case structure.Leave(block):
                yield self._leave(block)
            case structure.If(block, then, orelse):
                yield from self._choose(_condition(block), self.lower(then), self.lower(orelse))
            case structure.Loop(loop, body):
                yield from self._loop(loop.header, loop.header.successors[0] in loop, self.lower(body))
            case structure.Endless(body):
                yield While(ast.Constant(True), self.lower(body))
            case structure.Break():
                yield Simple(ast.Break())
            case structure.SetGuard(target, value):
                yield Simple(ast.Assign([name(self.guards[target])], ast.Constant(value)))
            case structure.Guarded(target, body):
                yield If(name(self.guards[target]), self.lower(body), ())

    def _straight(self, block: Block) -> Iterator[Statement]:
        yield from map(self._zero, self.variables.zeros.get(block, ()))
        for instr in self.statements.roots[block]:
            if instr.op is ops.refuse:
                condition, message = map(self.expressions.operand, instr.args)
                error = self.expressions.call(ValueError, message)
                yield If(condition, (Simple(ast.Raise(error, None)),), (), place_of(instr))
            else:
                yield Simple(self.expressions.statement(instr), place_of(instr))

    def _copies(self, source: Block, target: Block) -> Iterator[Statement]:
        copies = [(copy.target, copy.source) for copy in self.variables.copies.get((source, target), ())]
        for group in sequence_copies(copies, self._variable):
            targets: list[ast.expr] = [name(variable.name) for variable, _ in group]
            values = [self.expressions.operand(operand) for _, operand in group]
            if len(group) == 1:
                yield Simple(ast.Assign(targets, values[0]))
            else:
                yield Simple(ast.Assign([ast.Tuple(targets)], ast.Tuple(values)))

    def _variable(self, operand: Operand) -> Variable | None:
        return self.variables.of[operand] if isinstance(operand, Value) else None

    def _leave(self, block: Block) -> Statement:
        match block.terminator:
            case Return(values):
                written = [self.expressions.operand(value) for value in values]
                result = ast.Constant(None) if not written else written[0] if len(written) == 1 else ast.Tuple(written)
                return Simple(ast.Return(result))
            case Raise(None, _):
                return Simple(ast.Raise(None, None))
            case Raise(exception, args) if exception is not None:
                call = self.expressions.call(exception, *map(self.expressions.operand, args))
                return Simple(ast.Raise(call, None), _place_at(block.loc))
            case _:
                raise InternalError("emit: a block does not leave the function")

    def _choose(
        self, condition: Operand, then: tuple[Statement, ...], orelse: tuple[Statement, ...]
    ) -> Iterator[Statement]:
        if then:
            yield If(self.expressions.operand(condition), then, orelse, place_of(condition))
        elif orelse:
            yield If(self._negated(condition), orelse, (), place_of(condition))

    def _negated(self, condition: Operand) -> ast.expr:
        test = self.expressions.operand(condition)
        match test:
            case ast.Compare(left, [comparison], [right]) if isinstance(condition, Instr) and (
                isinstance(comparison, _ALWAYS_FLIPPED) or all(_is_whole(arg) for arg in condition.args)
            ):
                return ast.Compare(left, [_FLIPPED[type(comparison)]()], [right])
            case _:
                return negated(test)

    def _loop(self, header: Block, runs_while: bool, body: tuple[Statement, ...]) -> Iterator[Statement]:
        condition = _condition(header)
        place = place_of(condition)
        if header in self.ranges:
            found = self.ranges[header]
            yield For(name(self.variables.of[found.phi].name), self._range(found), body, place)
            return
        above = tuple(self._straight(header))
        if not above:
            test = self.expressions.operand(condition) if runs_while else self._negated(condition)
            yield While(test, body, place)
            return
        test = self._negated(condition) if runs_while else self.expressions.operand(condition)
        leave = If(test, (Simple(ast.Break()),), (), place)
        yield While(ast.Constant(True), (*above, leave, *body))

    def _range(self, found: Range) -> ast.expr:
        args = [self.expressions.operand(found.start), self._stop(found), signed(_whole(found.step), found.step < 0)]
        if found.step == 1:
            args.pop()
            if isinstance(found.start, Const) and found.start.value == 0:
                args.pop(0)
        return self.expressions.call(range, *args)

    def _stop(self, found: Range) -> ast.expr:
        if isinstance(found.bound, Const) and isinstance(found.bound.value, int):
            last = found.bound.value + found.past
            return signed(_whole(last), last < 0)
        stop = self.expressions.operand(found.bound)
        if found.past == 0:
            return stop
        return ast.BinOp(stop, ast.Add() if found.past > 0 else ast.Sub(), _whole(found.past))


def read_early(body: Iterable[Statement], candidates: set[str]) -> list[str]:
    """Return the names that the text of `body` reads before it assigns them; remove the assigned ones from
    `candidates`.
    """
    found: list[str] = []

    def read(*nodes: ast.AST) -> None:
        for node in nodes:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and inner.id in candidates:
                    candidates.discard(inner.id)
                    found.append(inner.id)

    for statement in body:
        if not candidates:
            break
        match statement:
            case Simple(ast.Assign([target], value)):
                read(value)
                candidates.difference_update(assigned(target))
                read(target)
            case Simple(node):
                read(node)
            case If(test) | While(test):
                read(test)
                found += read_early(inside(statement), candidates)
            case For(target, iterable, inner):
                read(iterable)
                candidates.difference_update(assigned(target))
                found += read_early(inner, candidates)
    return found


def assigned(target: ast.expr) -> list[str]:
    """Return the variables that an assignment to `target` assigns."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def place_of(operand: Operand) -> Place | None:
    """Return the location for the comment of a statement that computes `operand`."""
    if not isinstance(operand, Value):
        return None
    if isinstance(operand, Instr) and operand.origin is not None and operand.origin.loc is not None:
        return Place(operand.origin.loc, True)
    return _place_at(operand.loc)


def _place_at(loc: Loc | None) -> Place | None:
    return None if loc is None else Place(loc, False)


def _condition(block: Block) -> Operand:
    assert isinstance(block.terminator, Branch)
    return block.terminator.condition


def _is_whole(operand: Operand) -> bool:
    return isinstance(operand.type, types.Integer | types.Boolean)


def _whole(value: int) -> ast.expr:
    return ast.Constant(abs(value))
