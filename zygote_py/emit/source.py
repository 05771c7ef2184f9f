"""The source text of one function of an emitted module.

    function_text(joint, "pow_gradient", module, ["@njit"], {})         @njit ... def pow_gradient(x, n): ...

astor prints all expressions and simple statements in one call. The compound statements and the comments, which are not
part of an `ast`, are added here.
"""

from __future__ import annotations

import ast
import enum
import linecache
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import astor
from numba import types

from zygote_py.base import Names
from zygote_py.emit import structure as regions
from zygote_py.emit.expressions import Expressions
from zygote_py.emit.inlining import Statements, choose_statements
from zygote_py.emit.lower import For, If, Lowering, Place, Simple, Statement, While, assigned, inside
from zygote_py.emit.out_of_ssa import Variables, assign_variables
from zygote_py.emit.schedule import schedule
from zygote_py.emit.sharing import hint_of, share_by_hint
from zygote_py.emit.structure import ranges, structure
from zygote_py.emit.syntax.names import Module
from zygote_py.emit.tidy import tidy
from zygote_py.ir import (
    Block,
    Function,
    Instr,
    InternalError,
    Operand,
    Phi,
    Return,
    Routine,
    Type,
    Value,
    leaf_types,
    loop_nest,
    one_line,
    ops,
    place_text,
)
from zygote_py.ir.lazy_dataclass import dataclass


def function_text(
    function: Function, name: str, module: Module, above: Sequence[str], defaults: Mapping[str, object]
) -> str:
    """Return the definition of one function, with the lines `above` it."""
    nest = loop_nest(function)
    tree = structure(function, nest)
    counting = ranges(function, nest, tree)
    order = schedule(function)
    variables = assign_variables(function, nest, order, counting)
    statements = choose_statements(function, order, variables, counting)
    share_by_hint(function, variables, statements, counting)

    params = [param.hint for param in function.params]
    names = module.names_inside(params)
    lowering = Lowering(
        variables,
        statements,
        counting,
        Expressions(variables.of, statements.inlined, module, _passed_on(function)),
        _name_guards(function, tree, names),
        params,
    )
    _name_variables(function, variables, statements, names)
    body = tidy(lowering.lower(tree), frozenset(lowering.guards.values()))
    body = tuple(_outlined((*lowering.zeros(body), *body), params, module))
    signature = _signature(params, defaults, module)
    return "\n".join([*above, f"def {name}({signature}):", *_print(body)])


def _outlined(body: Sequence[Statement], params: Sequence[str], module: Module) -> Iterator[Statement]:
    """Yield the statements with calls of functions of their own in the place of comprehensions.

    Where a function has a comprehension, Numba removes the writes to arrays that it takes for unused (0.68.1: a view
    that a call returns is not known to be one).
    """
    known = {*params, *_assigned_in(body)}
    outline = _Outline(known, module)

    def changed(statement: Statement) -> Statement:
        match statement:
            case Simple(node, place):
                return Simple(outline.visit(node), place)
            case If(test, then, orelse, place):
                return If(outline.visit(test), tuple(map(changed, then)), tuple(map(changed, orelse)), place)
            case While(test, inner, place):
                return While(outline.visit(test), tuple(map(changed, inner)), place)
            case For(target, iterable, inner, place):
                return For(target, outline.visit(iterable), tuple(map(changed, inner)), place)

    return map(changed, body)


def _assigned_in(body: Iterable[Statement]) -> Iterator[str]:
    for statement in body:
        match statement:
            case Simple(ast.Assign([target], _)) | For(target, _, _):
                yield from assigned(target)
        yield from _assigned_in(inside(statement))


class _Outline(ast.NodeTransformer):
    """Makes functions of the module of comprehensions."""

    def __init__(self, known: Collection[str], module: Module) -> None:
        self.known = known
        self.module = module

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """Return the call of a new function that returns the list."""
        return self._call(node, node.generators, "list_of")

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        """Return the call of a new function that returns the dict."""
        return self._call(node, node.generators, "dict_of")

    def _call(self, node: ast.expr, loops: Sequence[ast.comprehension], hint: str) -> ast.expr:
        own = {name for each in ast.walk(node) if isinstance(each, ast.comprehension) for name in _names(each.target)}
        first = _names(loops[0].iter)  # what a comprehension goes over is read outside of it
        needed = [each for each in _names(node) if each in self.known and (each in first or each not in own)]
        (line,) = _print_nodes([ast.Return(node)])
        name = self.module.outlined(f"({', '.join(needed)}):\n    {line}", hint, self.known)
        return ast.Call(ast.Name(name), [ast.Name(each) for each in needed], [])


def _names(node: ast.AST) -> list[str]:
    return list(dict.fromkeys(each.id for each in ast.walk(node) if isinstance(each, ast.Name)))


def _passed_on(function: Function) -> frozenset[Value]:
    """Return the lists that are passed to a routine, returned or left empty: `append` does not tell their type.

    Of an array that may have any layout Numba may know more, so that it would take a list of lists of such for another.
    """
    filled = {instr.args[0] for instr in function.instrs() if instr.op is ops.push}
    passed: set[Operand] = {instr for instr in function.instrs() if instr.op is ops.stack and instr not in filled}
    for node in function.nodes():
        given: Iterable[Operand] = ()
        match node:
            case Return() | Instr(op=Routine() | ops.pack):
                given = node.args
            case Instr(op=ops.push, args=(_, item)) if _is_of_any(item.type):
                given = (item,)
            case Phi() if _is_of_any(node.type):
                given = node.incoming.values()
        passed.update(each for each in given if isinstance(each, Instr) and each.op is ops.stack)
    return frozenset(each for each in passed if isinstance(each, Instr))


def _is_of_any(kind: Type) -> bool:
    """Return whether a type is a list of arrays whose layout is not known, or of lists of such."""
    return isinstance(kind, types.List) and any(
        _is_of_any(each) or (isinstance(each, types.Array) and each.layout == "A") for each in leaf_types(kind.dtype)
    )


def _name_guards(function: Function, tree: Sequence[regions.Region], names: Names) -> dict[regions.Target, str]:
    number = {block: index for index, block in enumerate(function.blocks)}
    guards: dict[regions.Target, str] = {}
    for region in regions.walk(tree):
        if isinstance(region, regions.SetGuard) and (target := region.target) not in guards:
            kind, block = ("to", target) if isinstance(target, Block) else ("again", target.header)
            guards[target] = names.fresh(f"{kind}_{number[block]}")
    return guards


def _name_variables(function: Function, variables: Variables, statements: Statements, names: Names) -> None:
    for param in function.params:
        variables.of[param].name = param.hint
    roots = {instr for instrs in statements.roots.values() for instr in instrs}
    for value in function.values():
        variable = variables.of[value]
        if not variable.name and (value in roots or isinstance(value, Phi)):
            variable.name = names.fresh(hint_of(variable))


def _signature(params: Sequence[str], defaults: Mapping[str, object], module: Module) -> str:
    written = []
    for param in params:
        if param not in defaults:
            written.append(param)
        elif isinstance(value := defaults[param], enum.Enum):
            written.append(f"{param}={'.'.join(module.callable(type(value)))}.{value.name}")
        elif type(value) in _LITERAL:
            written.append(f"{param}={value!r}")
        elif isinstance(value, float):
            number = float(value)
            text = repr(number) if math.isfinite(number) else f"{module.alias('float')}({str(number)!r})"
            written.append(f"{param}={text}")
        else:
            written.append(f"{param}={module.value(value, f'default_{param}')}")
    return ", ".join(written)


_LITERAL = (bool, int, str, type(None))  # rather than subclasses of these, whose repr is arbitrary


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """A line: the texts `before` and `after`, the printed `node`, and the contents of the comment."""

    depth: int
    before: str = ""
    node: ast.stmt | None = None
    after: str = ""
    place: Place | None = None


def _print(body: Iterable[Statement]) -> Iterator[str]:
    lines = list(_lines(tuple(body), 1))
    printed = iter(_print_nodes([line.node for line in lines if line.node is not None]))
    comment = _Comments()
    for line in lines:
        text = next(printed) if line.node is not None else ""
        full = "    " * line.depth + line.before + text + line.after
        said = comment.at(line.place)
        yield f"{full}  # {said}" if said else full


def _lines(body: tuple[Statement, ...], depth: int) -> Iterator[_Line]:
    if not body:
        yield _Line(depth, "pass")
    for statement in body:
        match statement:
            case Simple(node, place):
                yield _Line(depth, node=node, place=place)
            case While(test, inner, place):
                yield _Line(depth, "while ", ast.Expr(test), ":", place)
                yield from _lines(inner, depth + 1)
            case For(target, iterable, inner, place):
                assert isinstance(target, ast.Name)
                yield _Line(depth, f"for {target.id} in ", ast.Expr(iterable), ":", place)
                yield from _lines(inner, depth + 1)
            case If():
                yield from _if_lines(statement, depth)


def _if_lines(statement: If, depth: int) -> Iterator[_Line]:
    word = "if "
    while True:
        yield _Line(depth, word, ast.Expr(statement.test), ":", statement.place)
        yield from _lines(statement.then, depth + 1)
        match statement.orelse:
            case ():
                return
            case (If() as following,):
                statement, word = following, "elif "
            case orelse:
                yield _Line(depth, "else:")
                yield from _lines(orelse, depth + 1)
                return


def _print_nodes(nodes: list[ast.stmt]) -> list[str]:
    """Return the text of simple statements, one line each."""
    if not nodes:
        return []
    text = astor.to_source(ast.Module(nodes, []), pretty_string=lambda s, *_, **__: repr(s), pretty_source="".join)
    lines = [line for line in text.splitlines() if line]
    if len(lines) != len(nodes):
        raise InternalError("emit: a statement is longer than one line", ir=text)
    return lines


class _Comments:
    """Adds the source line to statements, once for each run of statements from the same line."""

    def __init__(self) -> None:
        self.last: tuple[str, int, bool] | None = None

    def at(self, place: Place | None) -> str:
        if place is None or place.loc.file.startswith("<zygote_py "):
            return ""  # not a line of the user's code
        loc = place.loc
        key = (loc.file, loc.line, place.reverse)
        if key == self.last:
            return ""
        self.last = key
        where = place_text(loc)
        if not place.reverse:
            return where
        line = linecache.getline(loc.file, loc.line).strip()
        return f"of line {loc.line}: {one_line(line)}" if line else f"of {where}"
