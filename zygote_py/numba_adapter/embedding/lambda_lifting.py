"""Inner functions of a function that Numba compiles, as functions of captured variables and parameters.

    def step(x, w):                             def lifted(w, x):
        return gradient(lambda x: x * w)(x)         function = lambda x: x * w
                                                    return function(x)

What is constant in the function around, functions for example, is captured by the lifted function; inner functions
that are captured are defined in it. The bodies are the user's own bytecode, so that errors name the user's lines. A
variable is read where the derivative is called; if that is passed on or put into a tuple, where it was made: if the
variable may be assigned to after that, Python might read another value, and that is refused.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import types as python_types
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from typing import Any

from zygote_py.adjoints import refuse
from zygote_py.ir import Loc
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import (
    assignments,
    captured,
    copies,
    defaults,
    dropped_after,
    fresh,
    held_by,
    is_constant,
    is_reached,
    parameters,
    rewrite,
    statements,
)
from zygote_py.numba_adapter.base.internals import ir


@dataclass(frozen=True)
class Lifted:
    """A function of the captured variables and of an inner function's parameters; where that is defined."""

    function: Any
    variables: tuple[Any, ...]
    names: tuple[str, ...]
    codes: tuple[Any, ...]
    loc: Loc


@dataclass
class _Parts:
    """The parts of a lifted function."""

    func_ir: Any
    cells: dict[str, object] = field(default_factory=dict)  # what is constant, by name
    variables: dict[str, Any] = field(default_factory=dict)  # captured variables of the function around, by name
    codes: dict[str, Any] = field(default_factory=dict)  # inner functions, in the order in which they are to be defined
    headers: dict[str, str] = field(default_factory=dict)  # their parameters

    def take(self, called: str, made: Any, loc: Loc) -> None:
        """Add an inner function under a name, after its captured variables."""
        for name, var, found in captured(self.func_ir, made):
            match found:
                case ir.Const() | ir.Global() | ir.FreeVar():
                    self._enter(self.cells, name, found.value, loc)
                case ir.Expr(op="make_function"):
                    if name not in self.codes:
                        self.take(name, found, loc)
                    elif self.codes[name] is not found.code:
                        raise _two_of(name, loc)
                case _:
                    self._enter(self.variables, name, var, loc)
        self.codes[called] = made.code
        self.headers[called] = _header(self.func_ir, made, loc)

    def _enter(self, table: dict[str, Any], name: str, value: Any, loc: Loc) -> None:
        others = [each for each in (self.cells, self.variables, self.codes) if each is not table]
        known = table.get(name, value)
        same = known.name == value.name if isinstance(value, ir.Var) else known is value
        if not same or any(name in each for each in others):
            raise _two_of(name, loc)
        table[name] = value


def _two_of(name: str, loc: Loc) -> Exception:
    return refuse(f"two variables called `{name}` are captured", loc, "give one of them another name", name)


def captures(func_ir: Any, made: Any) -> bool:
    """Whether an expression makes an inner function that captures what is not constant."""
    is_inner = isinstance(made, ir.Expr) and made.op == "make_function"
    return is_inner and not all(is_constant(found) for _, _, found in captured(func_ir, made))


def lift(func_ir: Any, made: Any, namespace: dict[str, Any], asked: Loc) -> Lifted:
    """The lifted form of the inner function that an expression of the IR makes."""
    code = made.code
    parts = _Parts(func_ir)
    name = "function"
    while name in {*code.co_varnames, *code.co_freevars, *code.co_cellvars}:
        name += "_"
    parts.take(name, made, asked)
    own = parameters(code)
    assert not set(parts.variables) & set(own)
    header = ", ".join([*parts.variables, *([parts.headers[name]] if parts.headers[name] else [])])
    star = "*" if code.co_flags & inspect.CO_VARARGS else ""
    passed = ", ".join([*own[: code.co_argcount], *([star + own[-1]] if star else [])])
    lines = [f"def make({', '.join(parts.cells)}):", f" def lifted({header}):"]
    for each, inner in parts.codes.items():
        lines += [
            f"  def {each}({parts.headers[each]}):",
            f"   return ({''.join(f'{n}, ' for n in inner.co_freevars)})",
        ]
    lines += [f"  return {name}({passed})", " return lifted"]
    tree = ast.parse("\n".join(lines))
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            located: Any = node
            located.lineno = located.end_lineno = code.co_firstlineno
    (maker,) = (each for each in compile(tree, "<lifted>", "exec").co_consts if inspect.iscode(each))
    (outer,) = (each for each in maker.co_consts if inspect.iscode(each))
    consts = tuple(_real(each, parts.codes) if inspect.iscode(each) else each for each in outer.co_consts)
    real = outer.replace(co_consts=consts, co_name=code.co_name, co_filename=code.co_filename)
    maker = maker.replace(co_consts=tuple(real if each is outer else each for each in maker.co_consts))
    result: Any = python_types.FunctionType(maker, namespace)(*parts.cells.values())
    result.__name__ = result.__qualname__ = code.co_name
    return Lifted(
        result,
        tuple(parts.variables.values()),
        tuple(parts.variables),
        tuple(parts.codes.values()),
        Loc(code.co_filename, code.co_firstlineno),
    )


def _real(placeholder: Any, codes: dict[str, Any]) -> Any:
    code = codes[placeholder.co_name]
    assert placeholder.co_freevars == code.co_freevars
    return code


def _header(func_ir: Any, made: Any, loc: Loc) -> str:
    """The parameters of an inner function as they are written, with their defaults."""
    code = made.code
    if code.co_kwonlyargcount or code.co_flags & inspect.CO_VARKEYWORDS:
        raise refuse(
            f"the inner function `{code.co_name}` has parameters that are given by name only",
            loc,
            "let each parameter be passed by position",
        )
    written = list(code.co_varnames[: code.co_argcount])
    given = defaults(func_ir, made)
    for place, (name, _, value) in enumerate(given, len(written) - len(given)):
        held = value.value if is_constant(value) else value
        if not isinstance(held, int | float | complex | str | None):
            raise refuse(
                f"a default of the inner function `{code.co_name}` is not a constant number",
                loc,
                "capture the value, or make it a parameter",
            )
        written[place] = f'{name}=float("{held}")' if isinstance(held, float) else f"{name}={held!r}"
    if code.co_flags & inspect.CO_VARARGS:
        written.append(f"*{parameters(code)[-1]}")
    return ", ".join(written)


# -------------------------------------------------------------------------------------------- the function around


def check_assignments(func_ir: Any, asked: Any, variables: Sequence[Any], loc: Loc) -> None:
    """Refuse captured variables that may be assigned to while a derivative is held that is not only called.

    `asked` is the statement that makes the derivative. Raises DifferentiationError.
    """
    names = copies(func_ir, {asked.target.name})
    only = _is_only(func_ir, names)
    start, uses, escapes = None, [], False
    for place, statement in statements(func_ir):
        match statement:
            case _ if statement is asked:
                start = place
            case ir.Del() | ir.Assign(value=ir.Var()):
                pass
            case ir.Assign(value=ir.Expr(op="call") as call):
                passed = {var.name for var in call.list_vars() if var is not call.func}
                if names & passed or (call.func.name in names and not only):
                    uses.append(place)
            case _:
                escapes = escapes or any(var.name in names for var in statement.list_vars())
    assert start is not None
    ends = [place for place, _ in statements(func_ir)] if escapes else uses
    for name in {var.name for var in variables}:
        if is_reached(func_ir.blocks, start, assignments(func_ir, [name]), ends):
            raise refuse(
                f"`{name.partition('.')[0]}` is assigned after the function that captures it was differentiated",
                loc,
                "differentiate it after the assignment, or only call its derivative where that was made",
            )


def check_dropped(func_ir: Any, outermost: Any, lifted: Lifted) -> None:
    """Refuse captured variables of which Numba has dropped an assignment that a later call has to see.

    Where it inlines an inner function, Numba drops assignments to what nothing reads but inner functions that were made
    before. The bytecode tells of them. Raises DifferentiationError.
    """
    for name, var in zip(lifted.names, lifted.variables, strict=True):
        known = len(assignments(func_ir, [var.name]))
        for chain in [chain for code in lifted.codes for chain in _chains(outermost, code)]:
            owners = [pair for pair in itertools.pairwise(chain) if name in pair[0].co_cellvars]
            if owners and dropped_after(*owners[-1], name, known):
                raise refuse(
                    f"`{name}` is assigned after the function that captures it was made",
                    lifted.loc,
                    f"make the function again after that, or give it a parameter for `{name}`",
                )


def _chains(outer: Any, code: Any) -> Iterator[list[Any]]:
    """The functions from the outermost to one in it, as their code."""
    if outer is code or outer == code:
        yield [outer]
    for inner in filter(inspect.iscode, outer.co_consts):
        yield from ([outer, *chain] for chain in _chains(inner, code))


def read_again(func_ir: Any, name: str, partial: Any, variables: Sequence[Any]) -> None:
    """Let each call of a derivative, the variable `name`, hold the captured variables as they are then."""
    names = copies(func_ir, {name})

    def held_anew(block: Any, statement: Any) -> Sequence[Any] | None:
        match statement:
            case ir.Assign(value=ir.Expr(op="call") as call) if call.func.name in names:
                loc = statement.loc
                holder = fresh(func_ir, block.scope, ir.Global("derivative", partial, loc), loc)
                derived = fresh(func_ir, block.scope, ir.Expr.call(holder.target, list(variables), (), loc), loc)
                call.func = derived.target
                return holder, derived, statement
        return None

    if _is_only(func_ir, names):
        rewrite(func_ir, held_anew)


def _is_only(func_ir: Any, names: Collection[str]) -> bool:
    """Whether each of these variables is assigned in one place only."""
    return all(len(func_ir._definitions[name]) == 1 for name in names)


def drop_unused(func_ir: Any, replaced: Collection[str] = ()) -> None:
    """Drop functions that nothing uses any more, and `replaced` variables if nothing does.

    Numba would refuse those of Python, and inner ones that capture variables.
    """
    functions = {
        each.target.name
        for _, each in statements(func_ir)
        if isinstance(each, ir.Assign)
        and (_is_function(each.value) or any(map(callable, held_by(func_ir, each.target))))
    }
    made = copies(func_ir, {*functions, *replaced})
    while _drop_unread(func_ir, made, replaced):
        pass


def _drop_unread(func_ir: Any, made: Collection[str], replaced: Collection[str]) -> bool:
    """Drop what no other statement reads. Return whether there was anything, after which there may be more."""
    read = {var.name for _, each in statements(func_ir) for var in _read(each)}

    def dropped(block: Any, statement: Any) -> Sequence[Any] | None:
        is_unread = isinstance(statement, ir.Assign) and statement.target.name not in read
        return () if is_unread and (statement.target.name in replaced or _is_unused(func_ir, statement, made)) else None

    return rewrite(func_ir, dropped)


def _read(statement: Any) -> list[Any]:
    """The variables that a statement reads."""
    match statement:
        case ir.Assign(value=ir.Var() as source):
            return [source]
        case ir.Assign(value=ir.Expr() | ir.Yield() as value):
            return list(value.list_vars())  # type: ignore[no-untyped-call]
        case ir.Del() | ir.Assign():
            return []
        case _:
            return list(statement.list_vars())


def _is_function(value: Any) -> bool:
    match value:
        case ir.Global() | ir.FreeVar():
            return callable(value.value)
        case _:
            return isinstance(value, ir.Expr) and value.op == "make_function"


def _is_unused(func_ir: Any, statement: Any, made: Collection[str]) -> bool:
    """Whether an assignment that nothing reads is of a function, or of a copy of one."""
    match statement.value:
        case ir.Var(name=name):
            return name in made
        case ir.Expr(op="getattr"):
            return any(map(callable, held_by(func_ir, statement.target)))
        case ir.Expr(op="build_tuple"):
            return bool(statement.target.name.startswith("$"))
        case value:
            return _is_function(value)
