"""A pass in Numba's pipeline: captured floats and arrays become arguments, so that Numba does not freeze them.

    $1 = global(SCALE: 2.5)    ->    $1 = arg(2, name=SCALE)

Integers, strings and the like stay constants, and are noted as `frozen`. Functions that Numba would have to compile
before it could type a call of them, or could not type at all, become `Callee`s. `with`, `try` and `yield` are refused
here, where they can still be told.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import operator
import types as python_types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints import refuse
from zygote_py.base import (
    CONSTANT_MODULES,
    attribute_of_object,
    checkpoint,
    default_by_name,
    defaults_of,
    given_for,
    global_names,
    is_default_read,
    is_observed,
    named_in,
    statements as st,
    varies,
)
from zygote_py.ir import Loc, Type, identifier
from zygote_py.numba_adapter.base import (
    IRPass,
    add_argument,
    add_variable,
    as_pointer,
    is_from_source,
    keys,
    known_type,
    loc_of,
    refuse_with,
    statements,
    unknown,
    unsuitable,
)
from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.embedding.calls import embedded
from zygote_py.numba_adapter.embedding.custom_calls import given_callee, take_given
from zygote_py.numba_adapter.embedding.transforms import as_callees, derived_callee, take_derivers
from zygote_py.numba_adapter.sources.stencils import make_absolute
from zygote_py.numba_adapter.target.dispatch import typeof
from zygote_py.numba_adapter.types import (
    CLOSURE,
    ObjectType,
    Same,
    StandIn,
    TransformType,
    TypingContext,
    as_captured_python,
    callee_for,
    checkpoint_type,
    holds_functions,
    is_plain_object,
    stand_in,
    take_closure,
    with_functions,
)


class Captures:
    """The captured variables of a function, in order; hidden ones with the number of their argument."""

    def __init__(self) -> None:
        self.hidden: dict[object, tuple[int, st.Capture]] = {}
        self.frozen: dict[object, st.Capture] = {}


class CapturesToArguments(IRPass):
    """Runs twice: once before Numba inlines closures, once after, for the variables that these capture."""

    def change(self, state: Any) -> bool:
        """Put arguments and callees in the place of captured values."""
        holders: dict[str, tuple[Any, str]] = {}
        left = keys(state.func_ir)
        make_absolute(state)
        take_given(state)
        take_derivers(state)
        if state.closure is not None:
            take_closure(state)
        for _, statement in list(statements(state.func_ir)):
            _refuse_statement(statement, holders)
            if isinstance(statement, ir.Assign):
                capture = _captured(state, statement, holders)
                if capture is not None:
                    _take(state, statement, capture, statement.target.name in left)
        return True


def _captured(state: Any, assign: Any, holders: dict[str, tuple[Any, str]]) -> st.Capture | None:
    """Return the captured value that an assignment reads, if any.

    `holders` is updated: the modules, and the objects of classes that Numba does not know, with their names in the
    source, by the variables that hold them.
    """
    func, value, target = state.func_id.func, assign.value, assign.target.name
    source, owner = "", identifier(func.__name__, "function")
    match value:
        case ir.Global() if isinstance(value.value, Same):
            return None  # what was put here already; a global variable may have the name of an inner function
        case ir.Global(name=name) if name not in func.__globals__ and _is_no_variable(value):
            _check_builtin(value)
            if is_observed(func) and name in global_names(func.__code__):  # a global variable may take its name
                read = functools.partial(named_in, func.__globals__, name)
                key = (id(func.__globals__), name)
                state.captures.frozen.setdefault(key, st.Capture(name, "global", read, key, value=value.value))
            return None
        case ir.Global() if _is_of_numba(value, func):
            return None
        case ir.Arg(name=name, index=index) if isinstance(state.args[index], types.Omitted):
            return _default(state, name, index)
        case ir.Global(name=name) if name in func.__globals__:
            key, read = (id(func.__globals__), name), functools.partial(operator.getitem, func.__globals__, name)
            capture = st.Capture(name, "global", read, key, value=value.value)
        case ir.FreeVar(name=name):
            cells = dict(zip(func.__code__.co_freevars, func.__closure__ or (), strict=True))
            cell = cells.get(name) or python_types.CellType(value.value)
            contents = functools.partial(getattr, cell, "cell_contents")
            capture = st.Capture(name, "freevar", contents, (id(cell), name), value=value.value)
        case ir.Expr(op="getattr") if value.value.name in holders:
            name, (holder, path) = value.attr, holders[value.value.name]
            is_module = isinstance(holder, python_types.ModuleType)
            if not hasattr(holder, name):
                return None
            if is_module:
                key, member = (id(vars(holder)), name), functools.partial(getattr, holder, name)
                capture = st.Capture(f"{path}_{name}", "global", member, key, value=member())
            else:
                capture = dataclasses.replace(attribute_of_object(holder, name), name=f"{path}_{name}")
                source, owner = name, path
                if capture.value is not getattr(holder, name):  # a method or a property
                    return None
        case ir.Var(name=name) if name in holders and _is_assigned_once(state, target):
            holders[target] = holders[name]
            return None
        case ir.Arg() | ir.Expr(op="getattr") if (held := _object_passed(state, value)) is not None:
            if _is_assigned_once(state, target):
                holders[target] = held
            return None
        case _:
            return None
    if isinstance(capture.value, python_types.ModuleType):
        if capture.value.__name__.partition(".")[0] not in CONSTANT_MODULES:
            holders[target] = capture.value, capture.name
        if is_observed(func):  # another module may take its name
            state.captures.frozen.setdefault(capture.key, dataclasses.replace(capture, source=name, owner=owner))
        return None
    if is_plain_object(capture.value) and _is_assigned_once(state, target):
        holders[target] = capture.value, capture.name
    return dataclasses.replace(capture, source=source or capture.name, owner=owner)


def _default(state: Any, name: str, index: int) -> st.Capture | None:
    """Return the default of an argument that is not given, if it may change, as an array does."""
    func, default = state.func_id.func, state.args[index].value
    if state.session.frozen or not is_default_read(default) or defaults_of(func).get(name) is not default:
        return None
    state.args = (*state.args[:index], types.none, *state.args[index + 1 :])
    read = functools.partial(default_by_name, func, name)
    return st.Capture(name, "function", read, (id(func), name), value=default, source=name, owner=func.__name__)


def _object_passed(state: Any, value: Any) -> tuple[Any, str] | None:
    """Return the object that an argument is, or a captured variable of an inner function, and its name."""
    closure = state.closure
    match value:
        case ir.Arg(name=name, index=index):
            held = state.args[index]
        case ir.Expr(value=ir.Var(name=holder), attr=name) if closure is not None and holder == CLOSURE:
            held = dict(zip(closure.fields, closure.types, strict=True)).get(name)
        case _:
            return None
    return (held.value, name) if isinstance(held, ObjectType) else None


def _is_assigned_once(state: Any, variable: str) -> bool:
    return len(state.func_ir._definitions[variable]) == 1


# What to write instead of functions of Python that Numba does not have.
_INSTEAD = {
    "reversed": "count down: `for i in range(n - 1, -1, -1)`, or loop over `x[::-1]`",
    "any": "use `np.any` of an array, or write a loop",
    "all": "use `np.all` of an array, or write a loop",
}


def _is_no_variable(value: Any) -> bool:
    """Return whether a name is not defined, or one of those that Python has in every module."""
    known = vars(builtins)
    return value.value is ir.UNDEFINED or (value.name in known and known[value.name] is value.value)


def _is_of_numba(value: Any, func: Any) -> bool:
    """Return whether Numba itself refers to an object for which the function's module has another one by this name.

    It does so with `bool` in each branch, which `from numpy import *` replaces in a module.
    """
    name, held = value.name, value.value
    if name not in func.__globals__ or func.__globals__[name] is held:
        return False
    return held is vars(builtins).get(name, func) or held is np or _package_of(held) == "numba"


def _package_of(held: object) -> str:
    return str(getattr(held, "__module__", None) or "").partition(".")[0]


def _check_builtin(value: Any) -> None:
    loc = loc_of(value.loc)
    if value.value is ir.UNDEFINED:
        raise refuse(f"the name `{value.name}` is not defined", loc, "define it before the first call", value.name)
    if known_type(value.value) is None:
        hint = _INSTEAD.get(value.name, "write it with what Numba supports")
        raise refuse(f"`{value.name}` is not supported", loc, hint, value.name)


def _take(state: Any, assign: Any, capture: st.Capture, is_key: bool) -> None:
    """Note a captured value, and put an argument or a callee in its place where it needs one."""
    if capture.value is checkpoint:
        transform = TransformType(
            "checkpoint", state.session.number, functools.partial(checkpoint_type, session=state.session)
        )
        assign.value = ir.Global("checkpoint", StandIn(transform), assign.value.loc)
        return
    if capture.value is functools.reduce:
        assign.value = ir.Global("reduce", functools.reduce, assign.value.loc)
    captures: Captures = state.captures
    observed = is_observed(state.func_id.func)
    if is_plain_object(capture.value) and given_for(capture.value) is None:
        if observed:
            captures.frozen.setdefault(capture.key, capture)
        made = state.session.once(("object", id(capture.value)), lambda: ObjectType(capture.value))
        assign.value = ir.Global(capture.name, StandIn(made), assign.value.loc)
        return
    if state.session.frozen or not varies(capture.value, state.session.tuple_floats_are_inputs, holds_functions):
        if observed:
            captures.frozen.setdefault(capture.key, capture)
        if is_key and is_from_source(capture.value):
            return
        value = as_captured_python(capture.value)
        callee: object = (
            given_callee(capture.value, state.session)
            or stand_in(value)
            or derived_callee(value, state.session, loc_of(assign.loc))
        )
        if callee is None:
            if observed:
                _check_own(capture, loc_of(assign.loc))
            callee = callee_for(value, state.session, loc_of(assign.loc), state.decoration)
        if callee is None and (pointer := as_pointer(value)) is not value:
            callee = state.session.once(("pointer", id(value)), lambda: pointer)
        if callee is not None:
            assign.value = ir.Global(capture.name, callee, assign.value.loc)
        elif known_type(capture.value) is None:
            what, hint = unknown(capture.value)
            what = f"`{capture.name}`, {what.removesuffix(',')}, is not supported"
            raise refuse(what, loc_of(assign.loc), hint, capture.name)
        elif isinstance(assign.value, ir.Expr) and not isinstance(assign.value, ir.Global):
            assign.value = ir.Global(capture.name, capture.value, assign.value.loc)
        return
    if capture.key not in captures.hidden:
        has_fields = getattr(getattr(capture.value, "dtype", None), "names", None) is not None
        if (found := unsuitable(capture.value, capture.name, lists=has_fields)) is not None:
            place, what, hint = found
            raise refuse(f"`{capture.name}{place}`, {what}, is not supported", loc_of(assign.loc), hint, capture.name)
        name = capture.name
        while name in state.func_ir.arg_names:
            name += "_"
        type_ = typeof(with_functions((capture.value,))[0])
        if isinstance(type_, types.Array):  # captured arrays are read-only, as Numba has it
            type_ = type_.copy(readonly=True)
        read = _wrapping(capture.read) if holds_functions(capture.value) else capture.read
        made = dataclasses.replace(capture, name=name, read=read, type=type_)
        captures.hidden[capture.key] = add_argument(state, name, as_callees(type_, state.session)), made
        if isinstance(type_, types.BaseTuple):  # Numba unrolls loops over variables that hold an argument only
            add_variable(state.func_ir, name)
    index, held = captures.hidden[capture.key]
    name, loc = state.func_ir.arg_names[index], assign.value.loc
    whole = isinstance(held.type, types.BaseTuple)
    assign.value = ir.Var(assign.target.scope, name, loc) if whole else ir.Arg(name, index, loc)


def _check_own(capture: st.Capture, loc: Loc) -> None:
    """Refuse a function of this package that works on functions outside of compiled code, such as `implicit`."""
    function = capture.value
    if not isinstance(function, python_types.FunctionType) or embedded(function) is not None:
        return
    if (function.__module__ or "").startswith("zygote_py.api."):
        name = function.__name__
        what = f"`{name}` in a function that is differentiated is not supported"
        raise refuse(what, loc, "call it outside of the function, and use what it gives in there", name)


def check_modules(func_ir: Any, typemap: Mapping[str, Type], session: TypingContext) -> None:
    """Refuse what varies in a module of which it is known only by its type which one it is: Numba has frozen it.

    Raises DifferentiationError.
    """
    for _, statement in statements(func_ir):
        match statement:
            case ir.Assign(value=ir.Expr(op="getattr") as read) if isinstance(
                held := typemap[read.value.name], types.Module
            ):
                module, name = held.pymod, read.attr
                is_constant = session.frozen or module.__name__.partition(".")[0] in CONSTANT_MODULES
                if not is_constant and varies(
                    getattr(module, name, None), session.tuple_floats_are_inputs, holds_functions
                ):
                    raise refuse(
                        f"`{name}` of the module `{module.__name__}` is read through another variable",
                        loc_of(statement.loc),
                        f"write the name under which the module was imported: `{module.__name__}.{name}`",
                        name,
                    )


def _wrapping(read: Callable[[], object]) -> Callable[[], object]:
    return lambda: with_functions((read(),))[0]


def _refuse_statement(statement: Any, holders: Mapping[str, tuple[Any, str]]) -> None:
    """Refuse what type inference would reject with a worse message, or accept as something else."""
    loc = loc_of(statement.loc)
    match statement:
        case ir.EnterWith():
            raise refuse_with(loc)
        case ir.Assign(value=ir.Yield()):
            raise refuse("a generator cannot be differentiated", loc, "use a loop that computes the result", "yield")
        case ir.SetAttr(target=target, attr=attr) if target.name in holders:
            holder, path = holders[target.name]
            raise refuse(
                f"`{path}.{attr}`, a captured variable, is assigned to",
                loc,
                f"use a local variable, and return what `{type(holder).__name__}` is to keep",
                attr,
            )
