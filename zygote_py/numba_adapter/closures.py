"""Inner functions and lambdas as values: what they capture, with a function that takes it as one argument more.

    def f(x, w):                            $maker = global(lambda: Maker)
        return apply(lambda v: v * w, x)    $1 = call $maker(w)                 # ClosureType(w: float64)
                                            $2 = call apply($1, x)

A call of a `ClosureType` is the call of the inner function, typed by our own inference, behind whose arguments stands
the closure; what it captures are components of that. So a closure may be passed on, returned, and put into a tuple. A
captured variable is read when the closure is made. Where Python would read another value than that, as the variable is
assigned later, Numba's way is taken, which puts the body into the place of the calls; if the closure is not only
called, it is refused. Functions that stay functions of Numba's own, as the `key` of `sorted`, are left alone.
"""

from __future__ import annotations

import dis
import inspect
import types as python_types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.extending import register_model, typeof_impl

from zygote_py import statements as st
from zygote_py.adjoints.errors import refuse
from zygote_py.ir.core import Loc, Type
from zygote_py.ir.errors import InternalError
from zygote_py.ir.types import components_of
from zygote_py.numba_adapter.callees import MADE, Callee, Session, constant_key, default_of, fold
from zygote_py.numba_adapter.decorations import Decoration
from zygote_py.numba_adapter.internals import (
    FunctionPass,
    build_definitions,
    get_definition,
    guard,
    ir,
    models,
    register_pass,
    signature,
)
from zygote_py.numba_adapter.internals import typeof as numba_typeof
from zygote_py.numba_adapter.messages import definition_of
from zygote_py.numba_adapter.places import Place, is_reached
from zygote_py.numba_adapter.same import Same
from zygote_py.numba_adapter.stores import dropped_after

# The name of the parameter that takes the closure, and of the variable that holds it.
SELF = "closure_"
_OF_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Captured:
    """What the cell of an inner function holds here: the name of a component of the closure."""

    def __init__(self, name: str) -> None:
        self.name = name


class Undefined:
    """What a variable holds that is captured before it is assigned."""


class Maker(Same):
    """What stands in a function for an inner one: called with what that captures, it gives the closure.

    `own` is the name under which the function captures itself, empty if it does not; `variables` are those captured;
    `how` says how the function is compiled.
    """

    def __init__(
        self,
        func: Any,
        fields: Sequence[str],
        own: str,
        variables: Sequence[str],
        session: Session,
        loc: Loc,
        how: Decoration | None = None,
    ) -> None:
        self.func = func
        self.fields = tuple(fields)
        self.own = own
        self.variables = frozenset(variables)
        self.session = session
        self.loc = loc
        self.how = how


class MakerType(Same, types.Callable, types.Opaque):
    """The type of a `Maker`."""

    def __init__(self, maker: Maker) -> None:
        self.maker = maker
        super().__init__(f"maker of {maker.func.__qualname__} at {id(maker)} in {maker.session.number}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        return signature(ClosureType(self.maker, tuple(map(_held_as, args))), *args)

    def get_call_signatures(self) -> tuple[tuple[Any, ...], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return (), True

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile; it does not come to that."""
        raise InternalError("a closure is to be compiled before it is inlined")


def _with_none(one: Type, other: Type) -> Type | None:
    """The type of a value that is of one of two types, where these are the same but that it may be `None`."""
    if one == other:
        return one
    kinds = {each.type if isinstance(each, types.Optional) else each for each in (one, other)} - {types.none}
    return types.Optional(kinds.pop()) if len(kinds) == 1 else None


def _held_as(type_: Type) -> Type:
    held: Type = numba_typeof(type_.value) if isinstance(type_, types.Omitted) else types.unliteral(type_)
    return held


class ClosureType(Same, types.Callable, types.NamedTuple):
    """The type of an inner function with what it captures, which has the form of a named tuple."""

    def __init__(self, maker: Maker, held: tuple[Type, ...]) -> None:
        self.maker = maker
        self.types = held
        self.count = len(held)
        self.fields = maker.fields
        self.instance_class = maker
        types.Type.__init__(self, f"function {maker.func.__qualname__} at {id(maker)} in {maker.session.number}{held}")

    @property
    def key(self) -> object:
        """What tells closures apart."""
        return self.maker, self.types

    def unify(self, context: object, other: Type) -> Type | None:
        """Numba asks for a type that holds values of both; what is captured may be found out to be no mere `None`."""
        if isinstance(other, ClosureType) and other.maker is self.maker:
            held = [_with_none(one, another) for one, another in zip(self.types, other.types, strict=True)]
            known = tuple(each for each in held if each is not None)
            if len(known) == len(held):
                return ClosureType(self.maker, known)
        return self.maker.session.united(self, other)

    def held(self) -> ClosureType:
        """The type as that the function itself gets the closure."""
        return self

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """The function for these argument types, the closure's behind them."""
        return self.maker.session.typed(self.maker.func, argument_types, self.maker.how)

    def signature(self) -> inspect.Signature:
        """The parameters of the inner function, and that for the closure."""
        pysig = inspect.signature(self.maker.func)
        self_ = inspect.Parameter(SELF, inspect.Parameter.KEYWORD_ONLY)
        return pysig.replace(parameters=[*pysig.parameters.values(), self_])

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        func = self.maker.func
        pysig, folded = fold(func, args, kws, dict(zip(self.fields, self.types, strict=True)))
        found = self.maker.session.result_type(func, (*folded, self.held()), self.maker.how)
        return signature(found, *folded).replace(pysig=pysig)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return [], False

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile; it does not come to that."""
        raise InternalError("a closure is to be compiled before it is inlined")


register_model(MakerType)(models.OpaqueModel)
register_model(ClosureType)(models.TupleModel)


@typeof_impl.register(Maker)
def _typeof_maker(value: Maker, context: object) -> Type:
    return MakerType(value)


def closure_of(func: Any, argument_types: Sequence[Type]) -> ClosureType | None:
    """The type of the closure behind the arguments of an inner function; None for any other function."""
    last = argument_types[-1] if argument_types else None
    return last if isinstance(last, ClosureType) and last.maker.func is func and takes_itself(func) else None


def takes_itself(func: Any) -> bool:
    """Whether a function was made here, to be passed its closure."""
    return SELF in getattr(func, "__dict__", {})


# ------------------------------------------------------------------------------------------------------------ the pass


@register_pass(mutates_CFG=False, analysis_only=False)
class ClosuresToObjects(FunctionPass):
    """Stands before Numba's inlining of closures."""

    _name = "zygote_py_closures_to_objects"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        func_ir = state.func_ir
        left = _keys(func_ir)
        changed = False
        for label, block in func_ir.blocks.items():
            body: list[Any] = []
            for number, statement in enumerate(block.body):
                match statement:
                    case ir.Assign(value=ir.Expr(op="make_function") as made) if (
                        made.code.co_name not in _OF_COMPREHENSIONS and statement.target.name not in left
                    ):
                        if not _is_numbas(func_ir, statement, Place(label, number)):
                            body += _as_object(state, statement, block.scope)
                            changed = True
                            continue
                body.append(statement)
            block.body = body
        for _, statement in _statements(func_ir):
            match statement:
                case ir.Assign(value=ir.Const(value=Undefined())):
                    statement.value = ir.Const(None, statement.loc)
        if changed:
            func_ir._definitions = build_definitions(func_ir.blocks)
        return changed


def _keys(func_ir: Any) -> frozenset[str]:
    """The variables that are passed as `key` of a sorting function, which Numba wants as a function of its own."""
    calls = [call for block in func_ir.blocks.values() for call in block.find_exprs(op="call")]
    found = {arg.name for call in calls for word, arg in call.kws if word == "key"}
    for name in tuple(found):
        found |= set(_originals(func_ir, name))
    return frozenset(found)


def _originals(func_ir: Any, name: str) -> Iterator[str]:
    while name in func_ir._definitions and len(func_ir._definitions[name]) == 1:
        (made,) = func_ir._definitions[name]
        if not isinstance(made, ir.Var):
            return
        name = made.name
        yield name


def _is_numbas(func_ir: Any, statement: Any, place: Place) -> bool:
    """Whether to leave a closure to Numba: one that is only called, where it is not enough to pass what it captures."""
    code = statement.value.code
    stored = {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_DEREF"}
    early = [
        name
        for name, var in zip(code.co_freevars, _items(func_ir, statement.value.closure), strict=True)
        if isinstance(getattr(guard(get_definition, func_ir, var), "__dict__", {}).get("value"), Undefined)
    ]
    if stored & set(code.co_freevars):
        if early:
            raise _assigned_later(early[0], code.co_name, Loc(statement.loc.filename, statement.loc.line))
        return True
    names = _copies(func_ir, statement.target.name)
    uses, escapes, keywords = [], False, False
    for where, other in _statements(func_ir):
        if other is statement:
            continue
        read = {var.name for var in other.list_vars()} & names
        match other:
            case ir.Assign(value=ir.Var() as source) if source.name in names:
                continue  # the copy's uses count
            case ir.Assign(value=ir.Expr(op="call") as call) if call.func.name in names:
                uses.append(where)
                keywords = keywords or bool(call.kws) or call.vararg is not None
                escapes = escapes or any(arg.name in names for arg in call.args)
            case _:
                escapes = escapes or bool(read and not isinstance(other, ir.Del))
    if escapes or keywords or early:
        return False
    return is_reached(func_ir.blocks, place, _assignments(func_ir, code.co_freevars), uses)


def _copies(func_ir: Any, name: str) -> frozenset[str]:
    """A variable and those that it is copied to."""
    found = {name}
    while True:
        new = {
            each.target.name
            for _, each in _statements(func_ir)
            if isinstance(each, ir.Assign) and isinstance(each.value, ir.Var) and each.value.name in found
        }
        if new <= found:
            return frozenset(found)
        found |= new


def _statements(func_ir: Any) -> Iterator[tuple[Place, Any]]:
    for label, block in func_ir.blocks.items():
        for number, statement in enumerate(block.body):
            yield Place(label, number), statement


def _assignments(func_ir: Any, names: Sequence[str]) -> list[Place]:
    """Where variables of these names in the source are assigned."""
    return [
        where
        for where, each in _statements(func_ir)
        if isinstance(each, ir.Assign)
        and each.target.name.partition(".")[0] in names
        and not (isinstance(each.value, ir.Expr) and each.value.op == "phi")
    ]


def _as_object(state: Any, statement: Any, scope: Any) -> Iterator[Any]:
    """The statements that make a closure in the place of the one that makes a function."""
    func_ir, made, loc = state.func_ir, statement.value, statement.loc
    code = made.code
    names: list[str] = []  # of the components
    fields: list[Any] = []
    cells: list[python_types.CellType] = []
    itself = ""
    for name, var in zip(code.co_freevars, _items(func_ir, made.closure), strict=True):
        value = guard(get_definition, func_ir, var)
        if isinstance(value, ir.Const) and isinstance(value.value, Undefined):
            if name not in {each.partition(".")[0] for each in _copies(func_ir, statement.target.name)}:
                raise _assigned_later(name, code.co_name, Loc(loc.filename, loc.line))
            itself = name
            cells.append(python_types.CellType(Captured(name)))
        elif isinstance(value, ir.Const | ir.Global | ir.FreeVar) and _is_fixed(value.value):
            held = value.value.func if isinstance(value.value, Callee) else value.value
            cells.append(python_types.CellType(held))
        else:
            cells.append(python_types.CellType(Captured(name)))
            names.append(name)
            fields.append(var)
    defaults: list[object] = []
    items = _items(func_ir, made.defaults)
    parameters = code.co_varnames[: code.co_argcount]
    for name, item in zip(parameters[len(parameters) - len(items) :], items, strict=True):
        value = guard(get_definition, func_ir, item) if isinstance(item, ir.Var) else ir.Const(item, loc)
        if isinstance(value, ir.Const):
            defaults.append(value.value)
        else:
            defaults.append(None)
            names.append(default_of(name))
            fields.append(item)
    key = (
        code,
        id(state.func_id.func.__globals__),
        tuple(_key(cell.cell_contents) for cell in cells),
        constant_key(tuple(defaults)),
        tuple(names),
        state.decoration,
    )
    makers: dict[object, Maker] = state.session.makers
    if key not in makers:
        func: Any = python_types.FunctionType(
            code, state.func_id.func.__globals__, code.co_name, tuple(defaults) or None, tuple(cells)
        )
        vars(func)[MADE] = True
        variables = [name for name in code.co_freevars if name != itself]
        makers[key] = Maker(func, names, itself, variables, state.session, definition_of(code), state.decoration)
        if names or itself:
            vars(func)[SELF] = True
    maker = makers[key]
    if not names and not itself:
        callee = Callee(maker.func, state.session, how=state.decoration)
        yield ir.Assign(ir.Global(code.co_name, callee, loc), statement.target, loc)
        return
    holder = ir.Var(scope, f"{statement.target.name}.maker", loc)
    yield ir.Assign(ir.Global(code.co_name, maker, loc), holder, loc)
    yield ir.Assign(ir.Expr.call(holder, tuple(fields), (), loc), statement.target, loc)


def _items(func_ir: Any, operand: Any) -> tuple[Any, ...]:
    """The variables of a tuple, or the items of a constant one."""
    if operand is None or isinstance(operand, tuple):
        return operand or ()
    made = get_definition(func_ir, operand)
    return tuple(made.value) if isinstance(made, ir.Const) else tuple(made.items)


def _is_fixed(value: object) -> bool:
    """Whether a captured value is to be a constant for the inner function: an integer, a string, a function."""
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    simple = isinstance(value, int | str | np.integer) or value is None
    return simple or callable(value) or isinstance(value, Callee | python_types.ModuleType)


def _key(held: object) -> object:
    """What tells a captured constant from others; functions live as long as the makers that capture them."""
    if isinstance(held, Captured):
        return "captured", held.name
    return id(held) if callable(held) or isinstance(held, python_types.ModuleType) else constant_key(held)


def _assigned_later(name: str, function: str, loc: Loc) -> Exception:
    what = "lambda" if function == "<lambda>" else f"inner function `{function}`"
    return refuse(
        f"`{name}` is assigned after the {what} that uses it was made",
        loc,
        f"assign to `{name}` before, or give the function a parameter for it",
        name,
    )


# ------------------------------------------------------------------------------------------ what stands in a function


def take_closure(state: Any) -> None:
    """Give an inner function its parameter for the closure, and let it read what it captures from there."""
    closure: ClosureType = state.closure
    func_ir = state.func_ir
    entry = func_ir.blocks[min(func_ir.blocks)]
    if SELF not in func_ir.arg_names:
        index = func_ir.arg_count
        func_ir.arg_names = (*func_ir.arg_names, SELF)
        func_ir.arg_count = state.nargs = index + 1
        state.args = (*state.args, closure)
        loc = entry.body[0].loc
        entry.body.insert(0, ir.Assign(ir.Arg(SELF, index, loc), ir.Var(entry.scope, SELF, loc), loc))
    for block in func_ir.blocks.values():
        for statement in block.body:
            match statement:
                case ir.Assign(value=ir.FreeVar(value=Captured() as captured) as read):
                    itself = ir.Var(entry.scope, SELF, read.loc)
                    own = captured.name == closure.maker.own
                    statement.value = itself if own else ir.Expr.getattr(itself, captured.name, read.loc)


def check_captured(func_ir: Any, typemap: Mapping[str, Type]) -> None:
    """Refuse closures that are used after something was assigned to what they capture.

    Raises DifferentiationError.
    """
    makers = {
        where: made
        for where, each in _statements(func_ir)
        if isinstance(each, ir.Assign)
        and isinstance(made := typemap.get(each.target.name), ClosureType)
        and isinstance(each.value, ir.Expr)
        and each.value.op == "call"
        and isinstance(typemap[each.value.func.name], MakerType)
    }
    for where, made in makers.items():
        maker = made.maker
        uses = [
            place
            for place, each in _statements(func_ir)
            if any(_holds(typemap[var.name], maker) for var in _used(each))
        ]
        code = func_ir.func_id.func.__code__
        for name in sorted(maker.variables):
            known = len(_assignments(func_ir, [name]))
            if name in code.co_cellvars and uses and dropped_after(code, maker.func.__code__, name, known):
                raise _assigned_later(name, maker.func.__name__, maker.loc)
            if is_reached(func_ir.blocks, where, _assignments(func_ir, [name]), uses):
                raise _assigned_later(name, maker.func.__name__, maker.loc)


def _used(statement: Any) -> list[Any]:
    """The variables whose functions a statement calls, may let others call, or gives away."""
    match statement:
        case ir.Assign(value=ir.Expr(op="call") as call):
            return list(call.list_vars())
        case ir.Return():
            return [statement.value]
        case _:
            return []


def _holds(type_: Type, maker: Maker) -> bool:
    """Whether there is a closure of this maker in a value of a type."""
    if isinstance(type_, ClosureType) and type_.maker is maker:
        return True
    return isinstance(type_, types.BaseTuple) and any(_holds(part, maker) for part in components_of(type_))


def is_closure(type: Type) -> bool:
    """Whether values of this type are inner functions with what they capture."""
    return isinstance(type, ClosureType)
