"""Walks over Numba's IR, what its variables hold, and passes that change it."""

from __future__ import annotations

import dis
import inspect
import types as python_types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from zygote_py.ir import Loc
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base.internals import (
    FunctionPass,
    build_definitions,
    get_definition,
    guard,
    ir,
    register_pass,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A statement: the label of its block, and its number in there."""

    label: int
    number: int


class IRPass(FunctionPass):
    """The base of this package's passes over Numba's IR, each registered under the name of its class."""

    _name: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._name = f"zygote_py_{cls.__name__}"
        register_pass(mutates_CFG=True, analysis_only=False)(cls)

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the IR of `state` in place, and let Numba know again what defines its variables."""
        changed = self.change(state)
        if changed:
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return changed

    def change(self, state: Any) -> bool:
        """Change the IR of `state` in place. Return whether anything was changed."""
        raise NotImplementedError


def rewrite(func_ir: Any, change: Callable[[Any, Any], Iterable[Any] | None]) -> bool:
    """Replace statements by those that `change` gives for a block and a statement; None keeps it.

    Return whether anything was changed.
    """
    changed = False
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for statement in block.body:
            made = change(block, statement)
            changed = changed or made is not None
            body += [statement] if made is None else made
        block.body = body
    return changed


def statements(func_ir: Any) -> Iterator[tuple[Place, Any]]:
    """Yield all statements with their places."""
    for label, block in func_ir.blocks.items():
        for number, statement in enumerate(block.body):
            yield Place(label, number), statement


def assigned(scope: Any, name: str, value: Any, loc: Any) -> Any:
    """Return a statement that assigns a value to a new variable."""
    return ir.Assign(value, ir.Var(scope, name, loc), loc)


def fresh(func_ir: Any, scope: Any, value: Any, loc: Any) -> Any:
    """Return a statement that assigns a value to a new variable, whose definition is known from now on."""
    made = ir.Assign(value, scope.redefine("$embedded", loc), loc)
    func_ir._definitions[made.target.name] = [value]
    return made


def add_argument(state: Any, name: str, type: Any) -> int:
    """Add an argument to a function. Return its number."""
    func_ir = state.func_ir
    number: int = func_ir.arg_count
    func_ir.arg_names = (*func_ir.arg_names, name)
    func_ir.arg_count = state.nargs = number + 1
    state.args = (*state.args, type)
    return number


def add_variable(func_ir: Any, name: str) -> None:
    """Let a variable hold the last argument, which has its name, from the start."""
    entry = func_ir.blocks[min(func_ir.blocks)]
    loc = entry.body[0].loc
    entry.body.insert(0, ir.Assign(ir.Arg(name, func_ir.arg_count - 1, loc), ir.Var(entry.scope, name, loc), loc))


def loc_of(loc: Any) -> Loc:
    """Return a location of Numba's as a `Loc`."""
    return Loc(loc.filename, loc.line)


# ------------------------------------------------------------------------------------------- what variables hold


def definition(func_ir: Any, var: Any) -> Any:
    """Return what defines a variable; None if that is not one expression."""
    return guard(get_definition, func_ir, var)


def is_constant(value: Any) -> bool:
    """Return whether an expression is a value of Python."""
    return isinstance(value, ir.Const | ir.Global | ir.FreeVar)


def held_by(func_ir: Any, var: Any) -> tuple[Any, ...]:
    """Return the value of a variable, in a tuple, if known before typing: a global, a member of a module."""
    match definition(func_ir, var):
        case ir.Global() | ir.FreeVar() | ir.Const() as found:
            return (found.value,)
        case ir.Expr(op="getattr") as read:
            for module in held_by(func_ir, read.value):
                if isinstance(module, python_types.ModuleType) and hasattr(module, read.attr):
                    return (getattr(module, read.attr),)
    return ()


def items(func_ir: Any, operand: Any) -> tuple[Any, ...]:
    """Return the variables of a tuple, or the items of a constant one."""
    if operand is None or isinstance(operand, tuple):
        return operand or ()
    made = get_definition(func_ir, operand)
    return tuple(made.value) if isinstance(made, ir.Const) else tuple(made.items)


def captured(func_ir: Any, made: Any) -> list[tuple[str, Any, Any]]:
    """Return the captured variables of an inner function: names, variables, and their definitions."""
    return [
        (name, var, definition(func_ir, var))
        for name, var in zip(made.code.co_freevars, items(func_ir, made.closure), strict=True)
    ]


def defaults(func_ir: Any, made: Any) -> list[tuple[str, Any, Any]]:
    """Return the defaults of an inner function: the parameter, the variable or value, and what defines that."""
    given = items(func_ir, made.defaults)
    parameters = made.code.co_varnames[: made.code.co_argcount]
    return [
        (name, item, definition(func_ir, item) if isinstance(item, ir.Var) else ir.Const(item, made.loc))
        for name, item in zip(parameters[len(parameters) - len(given) :], given, strict=True)
    ]


def originals(func_ir: Any, name: str) -> Iterator[str]:
    """Yield the variables that one is a copy of."""
    while len(func_ir._definitions.get(name, ())) == 1:
        (made,) = func_ir._definitions[name]
        if not isinstance(made, ir.Var):
            return
        name = made.name
        yield name


def copies(func_ir: Any, names: Iterable[str]) -> frozenset[str]:
    """Return variables and those that they are copied to."""
    found = frozenset(names)
    while True:
        new = {
            each.target.name
            for _, each in statements(func_ir)
            if isinstance(each, ir.Assign) and isinstance(each.value, ir.Var) and each.value.name in found
        }
        if new <= found:
            return found
        found |= new


def assignments(func_ir: Any, names: Collection[str]) -> list[Place]:
    """Return where variables that have these names in the source are assigned."""
    names = {name.partition(".")[0] for name in names}
    return [
        where
        for where, each in statements(func_ir)
        if isinstance(each, ir.Assign)
        and each.target.name.partition(".")[0] in names
        and not (isinstance(each.value, ir.Expr) and each.value.op == "phi")
    ]


def keys(func_ir: Any) -> frozenset[str]:
    """Return the variables that are passed as `key` of a sorting function, which Numba wants as its own function."""
    found = {
        arg.name
        for block in func_ir.blocks.values()
        for call in block.find_exprs(op="call")
        for word, arg in call.kws
        if word == "key"
    }
    return frozenset(found).union(*(originals(func_ir, name) for name in found))


# -------------------------------------------------------------------------- assignments between two places


def is_reached(blocks: Mapping[int, Any], start: Place, through: Collection[Place], ends: Collection[Place]) -> bool:
    """Whether control may come from `start` to one of `ends`, through one of `through` and not again by `start`.

    A statement may be both: it is an end first, as it reads before it assigns.
    """
    passing, ending = frozenset(through), frozenset(ends)
    seen: set[tuple[int, bool]] = set()
    pending = [(start.label, start.number + 1, False)]
    while pending:
        label, first, passed = pending.pop()
        for number in range(first, len(blocks[label].body)):
            place = Place(label, number)
            if place == start:
                break
            if passed and place in ending:
                return True
            passed = passed or place in passing
        else:
            for successor in blocks[label].terminator.get_targets():
                if (successor, passed) not in seen:
                    seen.add((successor, passed))
                    pending.append((successor, 0, passed))
    return False


def dropped_after(owner: Any, inner: Any, name: str, known: int) -> bool:
    """Whether an assignment to a variable is missing that may follow on the making of an inner function.

    Numba may have dropped some from its IR, which the bytecode has:

        y = x
        g = lambda v: v * y         # dropped_after(code of all this, code of g, "y", 1): True
        s = g(1.0)
        y = 3.0 * x                 # nothing reads it but `g`, which Numba does not take into account when it inlines
        return s + g(1.0)

    `owner` is the code of the function whose variable `name` is, `inner` that of the inner function, and `known` says
    how many assignments there are in the IR, that of an argument included.
    """
    instructions = list(dis.get_instructions(owner))
    made = min(
        (each.offset for each in instructions if inspect.iscode(each.argval) and each.argval == inner), default=0
    )
    jumps = [each for each in instructions if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs]
    loops = [each.argval for each in jumps if each.argval <= made < each.offset]  # that contain it: where they begin
    stores = [each.offset for each in instructions if each.opname == "STORE_DEREF" and each.argval == name]
    if not any(offset > made or any(offset >= first for first in loops) for offset in stores):
        return False
    return known < len(stores) + (name in parameters(owner))


def parameters(code: Any) -> list[str]:
    """Return the names of the parameters, the one that takes all further arguments at the end."""
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    return list(code.co_varnames[:count])


def used_by(statement: Any) -> list[Any]:
    """Return the variables that a statement uses."""
    if not isinstance(statement, ir.Assign):
        return statement.list_vars()  # type: ignore[no-any-return]
    value = statement.value
    if isinstance(value, ir.Var):
        return [value]
    if not isinstance(value, ir.Inst):
        return []
    if not isinstance(value, ir.Expr):
        return value.list_vars()  # type: ignore[no-any-return]
    found = []
    for part in value._kws.values():  # Numba's own method looks into each constant
        if isinstance(part, ir.Var):
            found.append(part)
        elif isinstance(part, list | tuple | dict | ir.Inst):
            found += value._rec_list_vars(part)
    return found


class Labels(list[int]):
    """The places that are jumped to, in which Numba looks up each instruction."""

    def __init__(self, places: Iterable[int]) -> None:
        super().__init__(places)
        self._set = set(self)

    def __contains__(self, place: object) -> bool:
        return place in self._set
