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
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numba import types

from zygote_py import statements as st
from zygote_py import structures
from zygote_py.adjoints.errors import refuse
from zygote_py.capture import CONSTANT_MODULES
from zygote_py.checkpoints import checkpoint
from zygote_py.ir.core import Loc, Type
from zygote_py.ir.text.identifiers import identifier
from zygote_py.numba_adapter.again import Checkpointer
from zygote_py.numba_adapter.callees import Session, callee_for, is_known_to_numba
from zygote_py.numba_adapter.closures import take_closure
from zygote_py.numba_adapter.dataclasses import stand_in
from zygote_py.numba_adapter.decorations import is_from_source
from zygote_py.numba_adapter.derived import derived_callee, take_derivers
from zygote_py.numba_adapter.dispatch import typeof
from zygote_py.numba_adapter.functions import as_callees, as_captured_python, holds_functions, with_functions
from zygote_py.numba_adapter.given import given_callee, take_given
from zygote_py.numba_adapter.internals import FunctionPass, build_definitions, ir, register_pass
from zygote_py.numba_adapter.messages import refuse_with
from zygote_py.numba_adapter.pointers import as_pointer
from zygote_py.numba_adapter.same import Same
from zygote_py.numba_adapter.sources import remembered
from zygote_py.numba_adapter.stencils import make_absolute
from zygote_py.numba_adapter.unknown import unknown, unsuitable

# What the globals of a function hold that was written here: what it captures follows from what it was written for.
OURS = "__written_by_zygote_py__"


class Captures:
    """What a function captures, in the order it was met; the hidden ones with the number of their argument."""

    def __init__(self) -> None:
        self.hidden: dict[object, tuple[int, st.Capture]] = {}
        self.frozen: dict[object, st.Capture] = {}


@register_pass(mutates_CFG=False, analysis_only=False)
class CapturesToArguments(FunctionPass):
    """Runs twice: once before Numba inlines closures, once after, for what these capture."""

    _name = "zygote_py_captures_to_arguments"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        modules: dict[str, tuple[python_types.ModuleType, str]] = {}
        keys = set(_keys(state.func_ir))
        make_absolute(state)
        take_given(state)
        take_derivers(state)
        if state.closure is not None:
            take_closure(state)
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                _refuse_statement(statement)
                if isinstance(statement, ir.Assign):
                    capture = _captured(state.func_id.func, statement, modules)
                    if capture is not None:
                        _take(state, statement, capture, statement.target.name in keys)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


def _keys(func_ir: Any) -> Iterator[str]:
    """The variables that are passed as `key` of a sorting function, which Numba wants as a function of its own."""
    for block in func_ir.blocks.values():
        for call in block.find_exprs(op="call"):
            yield from (arg.name for word, arg in call.kws if word == "key")


def _captured(func: Any, assign: Any, modules: dict[str, tuple[python_types.ModuleType, str]]) -> st.Capture | None:
    """What an assignment captures, if it does; modules are remembered by the variable that holds them."""
    value = assign.value
    read: Callable[[], object]
    match value:
        case ir.Global() if isinstance(value.value, Same):
            return None  # what was put here already; a global variable may have the name of an inner function
        case ir.Global() if value.value is ir.UNDEFINED or vars(builtins).get(value.name) is value.value:
            _check_builtin(value)
            return None
        case ir.Global() if value.name in func.__globals__:
            name, namespace = value.name, func.__globals__
            read = functools.partial(operator.getitem, namespace, name)
            capture = st.Capture(name, "global", read, (id(namespace), name), value=value.value)
        case ir.FreeVar():
            cells = dict(zip(func.__code__.co_freevars, func.__closure__ or (), strict=True))
            cell = cells.get(value.name) or python_types.CellType(value.value)
            read = functools.partial(getattr, cell, "cell_contents")
            capture = st.Capture(value.name, "freevar", read, (id(cell), value.name), value=value.value)
        case ir.Expr(op="getattr") if value.value.name in modules:
            module, path = modules[value.value.name]
            name = value.attr
            if not hasattr(module, name):
                return None
            path = f"{path}_{name}"
            held = getattr(module, name)
            read = functools.partial(getattr, module, name)
            capture = st.Capture(path, "global", read, (id(vars(module)), name), value=held)
        case _:
            return None
    if isinstance(capture.value, python_types.ModuleType):
        if capture.value.__name__.partition(".")[0] not in CONSTANT_MODULES:
            modules[assign.target.name] = (capture.value, capture.name)
        return None
    owner = identifier(func.__name__, "function")
    return dataclasses.replace(capture, source=capture.name, owner=owner)


# What to write instead of functions of Python that Numba does not have.
_INSTEAD = {
    "reversed": "count down: `for i in range(n - 1, -1, -1)`, or loop over `x[::-1]`",
    "any": "use `np.any` of an array, or write a loop",
    "all": "use `np.all` of an array, or write a loop",
}


def _check_builtin(value: Any) -> None:
    loc = loc_of(value.loc)
    if value.value is ir.UNDEFINED:
        raise refuse(f"the name `{value.name}` is not defined", loc, "define it before the first call", value.name)
    if not is_known_to_numba(value.value):
        hint = _INSTEAD.get(value.name, "write it with what Numba supports")
        raise refuse(f"`{value.name}` is not supported", loc, hint, value.name)


def _take(state: Any, assign: Any, capture: st.Capture, is_key: bool) -> None:
    """Note a captured value, and put an argument or a callee in its place where it needs one."""
    if capture.value is checkpoint:
        assign.value = ir.Global("checkpoint", Checkpointer(state.session), assign.value.loc)
        return
    if capture.value is functools.reduce:
        assign.value = ir.Global("reduce", functools.reduce, assign.value.loc)
    captures: Captures = state.captures
    if state.session.frozen or not _varies(capture.value, state.session.numbers_vary):
        if OURS not in state.func_id.func.__globals__:
            captures.frozen.setdefault(capture.key, capture)
        if is_key and is_from_source(capture.value):
            return
        value = as_captured_python(capture.value)
        callee: object = given_callee(capture.value, state.session) or stand_in(value)
        callee = callee or derived_callee(value, state.session, loc_of(assign.loc))
        callee = callee or callee_for(value, state.session, loc_of(assign.loc), state.decoration)
        if callee is None and (pointer := as_pointer(value)) is not value:
            callee = remembered(state.session, ("pointer", id(value)), lambda: pointer)
        if callee is not None:
            assign.value = ir.Global(capture.name, callee, assign.value.loc)
        elif not is_known_to_numba(capture.value):
            what, hint = unknown(capture.value)
            what = f"`{capture.name}`, {what.removesuffix(',')}, is not supported"
            raise refuse(what, loc_of(assign.loc), hint, capture.name)
        return
    if capture.key not in captures.hidden:
        if (found := unsuitable(capture.value, capture.name)) is not None:
            place, what, hint = found
            raise refuse(f"`{capture.name}{place}`, {what}, is not supported", loc_of(assign.loc), hint, capture.name)
        name = capture.name
        while name in state.func_ir.arg_names:
            name += "_"
        index = state.func_ir.arg_count
        read = capture.read
        if holds_functions(capture.value):
            read = _wrapping(read)
        type_ = _read_only(typeof(with_functions((capture.value,))[0]))
        made = dataclasses.replace(capture, name=name, read=read, type=type_)
        captures.hidden[capture.key] = index, made
        state.func_ir.arg_names = (*state.func_ir.arg_names, name)
        state.func_ir.arg_count = state.nargs = index + 1
        state.args = (*state.args, as_callees(type_, state.session))
        if isinstance(type_, types.BaseTuple):  # Numba unrolls loops over variables that hold an argument only
            entry = state.func_ir.blocks[min(state.func_ir.blocks)]
            loc = entry.body[0].loc
            entry.body.insert(0, ir.Assign(ir.Arg(name, index, loc), ir.Var(entry.scope, name, loc), loc))
    index, held = captures.hidden[capture.key]
    name, loc = state.func_ir.arg_names[index], assign.value.loc
    whole = isinstance(held.type, types.BaseTuple)
    assign.value = ir.Var(assign.target.scope, name, loc) if whole else ir.Arg(name, index, loc)


def check_modules(func_ir: Any, typemap: Mapping[str, Type], session: Session) -> None:
    """Refuse what varies in a module of which it is known only by its type which one it is: Numba has frozen it.

    Raises DifferentiationError.
    """
    for block in func_ir.blocks.values():
        for assign in block.find_insts(ir.Assign):
            match assign.value:
                case ir.Expr(op="getattr") as read if isinstance(held := typemap[read.value.name], types.Module):
                    module = held.pymod
                    is_constant = session.frozen or module.__name__.partition(".")[0] in CONSTANT_MODULES
                    if not is_constant and _varies(getattr(module, read.attr, None), session.numbers_vary):
                        raise refuse(
                            f"`{read.attr}` of the module `{module.__name__}` is read through another variable",
                            loc_of(assign.loc),
                            f"write the name under which the module was imported: `{module.__name__}.{read.attr}`",
                            read.attr,
                        )
                case _:
                    pass


def _wrapping(read: Callable[[], object]) -> Callable[[], object]:
    return lambda: with_functions((read(),))[0]


def _varies(value: object, numbers: bool = False) -> bool:
    """Whether a captured value is read at each call; numbers in tuples are if gradients are asked for of `numbers`."""
    if numbers and isinstance(value, float | complex | np.floating | np.complexfloating):
        return True
    if numbers and (parts := structures.parts(value)) is not None and any(_varies(each, True) for each in parts):
        return True
    if isinstance(value, tuple) and holds_functions(value):
        return True
    if isinstance(value, tuple):
        return any(isinstance(item, np.ndarray) or (not isinstance(item, float) and _varies(item)) for item in value)
    if structures.is_structure(type(value)):
        return any(_varies(getattr(value, name)) for name in structures.field_names(type(value)))
    return isinstance(value, float | np.floating | np.ndarray)


def _read_only(type_: Type) -> Type:
    """The type of a captured value, to which Numba lets nobody write."""
    if isinstance(type_, types.Array):
        return type_.copy(readonly=True)
    return type_


def _refuse_statement(statement: Any) -> None:
    """Refuse what type inference would reject with a worse message, or accept as something else."""
    loc = loc_of(statement.loc)
    match statement:
        case ir.EnterWith():
            raise refuse_with(loc)
        case ir.Assign(value=ir.Yield()):
            raise refuse("a generator cannot be differentiated", loc, "use a loop that computes the result", "yield")
        case _:
            pass


def loc_of(loc: Any) -> Loc:
    """A location of Numba as one of ours."""
    return Loc(loc.filename, loc.line)


Reader = Callable[[], object]
