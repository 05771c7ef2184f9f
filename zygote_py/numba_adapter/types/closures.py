"""Inner functions and lambdas as values: the captured variables, passed to the function as one more argument.

    def f(x, w):                            $maker = global(lambda: Maker)
        return apply(lambda v: v * w, x)    $1 = call $maker(w)                 # ClosureType(w: float64)
                                            $2 = call apply($1, x)

A call of a `ClosureType` is a call of the inner function, typed by this package. The closure is its last argument,
and the captured variables are components of that. So a closure may be passed on, returned, and put into a tuple. A
captured variable is read when the closure is made. Where Python would read another value than that, as the variable is
assigned later, Numba's way is taken, which puts the body into the place of the calls; if the closure is not only
called, it is refused. Functions that stay functions of Numba's own, as the `key` of `sorted`, are left alone.
"""

from __future__ import annotations

import dis
import inspect
import types as python_types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints import refuse
from zygote_py.base import MADE, statements as st
from zygote_py.ir import Loc, Type, components_of
from zygote_py.numba_adapter.base import (
    Decoration,
    IRPass,
    add_argument,
    add_variable,
    assigned,
    assignments,
    captured,
    copies,
    defaults,
    definition_of,
    dropped_after,
    is_constant,
    is_reached,
    keys,
    loc_of,
    rewrite,
    runtime_type,
    statements,
)
from zygote_py.numba_adapter.base.internals import ir, models, signature
from zygote_py.numba_adapter.types.callables import CallableType, FieldsType, HandleType, Same, StandIn, function_of
from zygote_py.numba_adapter.types.handles import (
    FunctionHandleType,
    TypingContext,
    constant_key,
    default_of,
    fold,
)

# The name of the parameter that takes the closure, and of the variable that holds it.
CLOSURE = "closure_"
_OF_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Captured:
    """The content of a cell of an inner function: the name of a component of the closure."""

    def __init__(self, name: str) -> None:
        self.name = name


class Undefined:
    """The value of a variable that is captured before it is assigned."""


class ClosureConstructor(Same):
    """An inner function, of which a closure is made.

    `own` is the name under which the function captures itself, empty if it does not; `variables` are those captured;
    `how` says how the function is compiled.
    """

    def __init__(
        self,
        func: Any,
        fields: Sequence[str],
        own: str,
        variables: Iterable[str],
        session: TypingContext,
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


class ClosureConstructorType(CallableType, types.Opaque):
    """The type of a function that makes a closure of the captured variables."""

    def __init__(self, maker: ClosureConstructor) -> None:
        self.maker = maker
        super().__init__(f"maker of {maker.func.__qualname__} at {id(maker)} in {maker.session.number}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        return signature(ClosureType(self.maker, tuple(map(runtime_type, args))), *args)


def _united(context: Any, one: Type, other: Type, maker: ClosureConstructor) -> Any:
    """The type of a captured value that is of one of two types; None if there is none.

    There is none if it holds a closure of the same maker: each round of a loop may put one more into the last.
    """
    if one == other:
        return one
    kinds = {each.type if isinstance(each, types.Optional) else each for each in (one, other)} - {types.none}
    if len(kinds) == 1:
        found: Any = types.Optional(kinds.pop())
    else:
        found = context.unify_pairs(one, other)
        shared = {*_leaves(one)} & {*_leaves(other)}
        if found is None or not all(isinstance(each, _CONVERTED) or each in shared for each in _leaves(found)):
            return None
    return None if _holds(found, maker) else found


_CONVERTED = types.Number | types.Boolean | types.NoneType | types.Array


def _leaves(type_: Type) -> Iterator[Type]:
    """Yield the types of the parts of a value, that of a value that may be `None` included."""
    if isinstance(type_, types.BaseTuple | types.Optional):
        for part in (type_.type,) if isinstance(type_, types.Optional) else components_of(type_):
            yield from _leaves(part)
    else:
        yield type_


class ClosureType(HandleType, FieldsType):
    """The type of an inner function with its captured variables, a named tuple.

    With `again` it has a checkpoint (see `zygote_py.base.checkpoints`).
    """

    model = models.TupleModel

    def __init__(self, maker: ClosureConstructor, held: tuple[Type, ...], again: bool = False) -> None:
        self.maker = maker
        self.func = maker.func
        self.again = again
        what = "checkpoint of " if again else ""
        name = f"{what}function {maker.func.__qualname__} at {id(maker)} in {maker.session.number}{held}"
        FieldsType.__init__(self, held, maker.fields, maker, name)

    @property
    def key(self) -> object:
        """The identity of the type."""
        return self.maker, self.types, self.again

    def unify(self, context: Any, other: Type) -> Type | None:
        """Return a type that holds values of both."""
        common = self.common(context, other)
        return self.maker.session.united(self, other) if common is None else common

    def common(self, context: Any, other: Type) -> ClosureType | None:
        """Return the type for both if only captured variables differ, as `s` after an `s = 0` and a loop."""
        if type(other) is not ClosureType or other.maker is not self.maker:
            return None
        held = tuple(_united(context, *pair, self.maker) for pair in zip(self.types, other.types, strict=True))
        return None if None in held else ClosureType(self.maker, held, self.again and other.again)

    def checkpointed(self) -> ClosureType:
        """Return the type of the inner function with a checkpoint."""
        return ClosureType(self.maker, self.types, again=True)

    def held(self) -> ClosureType:
        """Return the type of the closure within the function itself: a recursive call is not a checkpoint."""
        return ClosureType(self.maker, self.types) if self.again else self

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """Return the function for these argument types, of which the last is the closure's."""
        types_ = (*argument_types[:-1], self.held()) if self.again else argument_types
        return self.maker.session.typed(self.func, types_, self.maker.how, self.again)

    def signature(self) -> inspect.Signature:
        """The parameters of the inner function, and that for the closure."""
        pysig = self.own_signature()
        self_ = inspect.Parameter(CLOSURE, inspect.Parameter.KEYWORD_ONLY)
        return pysig.replace(parameters=[*pysig.parameters.values(), self_])

    def own_signature(self) -> inspect.Signature:
        """Return the parameters without that for the closure."""
        return inspect.signature(self.func)

    def result_type(self, argument_types: tuple[Type, ...]) -> Type:
        """Return the type of what a call gives."""
        return self.maker.session.result_type(self.func, (*argument_types, self.held()), self.maker.how)

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Return the signature of a call."""
        pysig, defaults = self.own_signature(), dict(zip(self.fields, self.types, strict=True))
        folded = fold(pysig, self.func, args, kws, defaults)
        return signature(self.result_type(folded), *folded).replace(pysig=pysig)


def closure_of(func: Any, argument_types: Sequence[Type]) -> ClosureType | None:
    """Return the type of the closure among the arguments of an inner function; None for any other function."""
    last = argument_types[-1] if argument_types else None
    return last if isinstance(last, ClosureType) and last.maker.func is func and CLOSURE in vars(func) else None


# ------------------------------------------------------------------------------------------------------------ the pass


class ClosuresToObjects(IRPass):
    """Stands before Numba's inlining of closures."""

    def change(self, state: Any) -> bool:
        """Make closures in the place of inner functions."""
        func_ir = state.func_ir
        left = keys(func_ir)

        def converted(block: Any, statement: Any) -> Iterable[Any] | None:
            match statement:
                case ir.Assign(value=ir.Expr(op="make_function") as made) if (
                    made.code.co_name not in _OF_COMPREHENSIONS and statement.target.name not in left
                ):
                    return None if _is_numbas(func_ir, statement) else _as_object(state, statement, block.scope)
            return None

        changed = rewrite(func_ir, converted)
        for _, statement in statements(func_ir):
            if _is_undefined(getattr(statement, "value", None)):
                statement.value = ir.Const(None, statement.loc)
        return changed


def _is_numbas(func_ir: Any, statement: Any) -> bool:
    """Return whether to leave a closure to Numba: it is only called, and its variables change between the calls."""
    code = statement.value.code
    stored = {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_DEREF"}
    early = [name for name, _, made in captured(func_ir, statement.value) if _is_undefined(made)]
    if stored & set(code.co_freevars):
        if early:
            raise _assigned_later(early[0], code.co_name, loc_of(statement.loc))
        return True
    names = copies(func_ir, [statement.target.name])
    uses, escapes, keywords = [], False, False
    for where, other in statements(func_ir):
        if other is statement:
            place = where
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
    is_called = not (escapes or keywords or early)
    return is_called and is_reached(func_ir.blocks, place, assignments(func_ir, code.co_freevars), uses)


def _is_undefined(made: Any) -> bool:
    """Return whether a captured variable is assigned after the function that captures it was made."""
    return isinstance(made, ir.Const) and isinstance(made.value, Undefined)


def _as_object(state: Any, statement: Any, scope: Any) -> Iterator[Any]:
    """The statements that make a closure in the place of the one that makes a function."""
    func_ir, made, loc = state.func_ir, statement.value, statement.loc
    code = made.code
    names: list[str] = []  # of the components
    fields: list[Any] = []
    cells: list[python_types.CellType] = []
    itself = ""
    for name, var, value in captured(func_ir, made):
        cell: object = Captured(name)
        if _is_undefined(value):
            if name not in {each.partition(".")[0] for each in copies(func_ir, [statement.target.name])}:
                raise _assigned_later(name, code.co_name, loc_of(loc))
            itself = name
        elif is_constant(value) and _is_fixed(value.value):
            cell = function_of(value.value)
        else:
            names.append(name)
            fields.append(var)
        cells.append(python_types.CellType(cell))
    held: list[object] = []  # by the defaults
    for name, item, value in defaults(func_ir, made):
        is_fixed = isinstance(value, ir.Const)
        held.append(value.value if is_fixed else None)
        if not is_fixed:
            names.append(default_of(name))
            fields.append(item)
    namespace = state.func_id.func.__globals__
    key = (
        code,
        id(namespace),
        tuple(_key(cell.cell_contents) for cell in cells),
        constant_key(tuple(held)),
        tuple(names),
        state.decoration,
    )

    def make() -> ClosureConstructor:
        func: Any = python_types.FunctionType(code, namespace, code.co_name, tuple(held) or None, tuple(cells))
        vars(func)[MADE] = True
        if names or itself:
            vars(func)[CLOSURE] = True
        variables = set(code.co_freevars) - {itself}
        return ClosureConstructor(func, names, itself, variables, state.session, definition_of(code), state.decoration)

    maker = state.session.once(key, make)
    if not names and not itself:
        callee = StandIn(FunctionHandleType(maker.func, state.session, how=state.decoration))
        yield ir.Assign(ir.Global(code.co_name, callee, loc), statement.target, loc)
        return
    holder = assigned(
        scope,
        f"{statement.target.name}.maker",
        ir.Global(code.co_name, StandIn(ClosureConstructorType(maker)), loc),
        loc,
    )
    yield holder
    yield ir.Assign(ir.Expr.call(holder.target, tuple(fields), (), loc), statement.target, loc)


def _is_fixed(value: object) -> bool:
    """Whether a captured value is to be a constant for the inner function: an integer, a string, a function."""
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    simple = isinstance(value, int | str | np.integer) or value is None
    return simple or callable(function_of(value)) or isinstance(value, python_types.ModuleType)


def _key(held: object) -> object:
    """Return the identity of a captured constant; functions live as long as the makers that capture them."""
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
    """Add the parameter for the closure to an inner function, and read the captured variables from there."""
    closure: ClosureType = state.closure
    if CLOSURE not in state.func_ir.arg_names:
        add_argument(state, CLOSURE, closure)
        add_variable(state.func_ir, CLOSURE)
    for _, statement in statements(state.func_ir):
        match statement:
            case ir.Assign(value=ir.FreeVar(value=Captured(name=name), loc=loc), target=target):
                itself = ir.Var(target.scope, CLOSURE, loc)
                statement.value = itself if name == closure.maker.own else ir.Expr.getattr(itself, name, loc)


def check_captured(func_ir: Any, typemap: Mapping[str, Type]) -> None:
    """Refuse closures that are used after an assignment to one of their captured variables.

    Raises DifferentiationError.
    """
    makers = {
        where: made
        for where, each in statements(func_ir)
        if isinstance(each, ir.Assign)
        and isinstance(made := typemap.get(each.target.name), ClosureType)
        and isinstance(each.value, ir.Expr)
        and each.value.op == "call"
        and isinstance(typemap[each.value.func.name], ClosureConstructorType)
    }
    for where, made in makers.items():
        maker = made.maker
        uses = [
            place for place, each in statements(func_ir) if any(_holds(typemap[var.name], maker) for var in _used(each))
        ]
        code = func_ir.func_id.func.__code__
        for name in sorted(maker.variables):
            known = assignments(func_ir, [name])
            is_cell = name in code.co_cellvars and uses
            is_dropped = is_cell and dropped_after(code, maker.func.__code__, name, len(known))
            if is_dropped or is_reached(func_ir.blocks, where, known, uses):
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


def _holds(type_: Type, maker: ClosureConstructor) -> bool:
    """Whether there is a closure of this maker in a value of a type."""
    if isinstance(type_, types.Optional):
        return _holds(type_.type, maker)
    return (isinstance(type_, ClosureType) and type_.maker is maker) or (
        isinstance(type_, types.BaseTuple) and any(_holds(part, maker) for part in components_of(type_))
    )
