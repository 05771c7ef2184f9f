"""Caught exceptions: what raises inside `try` jumps to the handler.

    1: c = g(x)               1: c = x + 1.0                   # g's body, with `raise` in it
       s = c / d         ->      zero = d == 0
       try 3, next 2             choose zero, 3, 4             # 3 is the handler
                              4: s = c / d
                                 goto 2

An explicit `raise` becomes a jump; a division, and a key that a dict must have, is tested before, and so is linear
algebra, by a trial. Other operations that may raise by themselves are refused. What a function has done before it
raises stays done. Exceptions are not told apart: Numba supports `except Exception` only.

Whether a division by zero raises at all depends on the options of the function: which divisions it has is told here.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.base import statements as st
from zygote_py.frontend.graphs.graph import targets
from zygote_py.frontend.values import TRIALS, is_dict, is_list, is_tuple, method_of, plain
from zygote_py.ir import Function, Instr, Loc, Raise, Routine, Type, functions_of, is_scalar, ops
from zygote_py.ir.analysis import reach
from zygote_py.ir.passes.cleanup.dead_code import can_raise


def divisor(
    statement: st.Statement,
    types_: Mapping[st.Variable, Type],
    methods: Mapping[st.Variable, st.Attribute],
    options: Mapping[str, object],
) -> tuple[st.Variable, Type] | None:
    """Return the variable that must not be zero in a statement in `try`, with the type that it is taken as.

    Raises DifferentiationError if the statement may raise for another reason.
    """
    match statement:
        case st.Assign(_, st.Operate(op, args, taken)):
            kinds = [plain(each) for each in taken]
            if ops.of(op).divides and all(map(is_scalar, kinds)):
                return None if options.get("error_model") == "numpy" else (args[1], kinds[1])
            arrays = [each for each in kinds if isinstance(each, types.Array)]
            if len(arrays) > 1 or any(map(is_list, kinds)) or op is operator.matmul:
                raise _refuse("an operation on arrays or lists", statement.loc)
        case st.Assign(target, st.Call(callee, args, _, taken)):
            _check_call(target, callee, args, types_, methods, statement.loc)
            if ops.properties(numba_adapter.object_of(types_[callee])).divides:
                return args[1], plain(taken[1])
        case st.Assign(_, st.Item(value, index)):
            dynamic = is_tuple(types_[value]) and index is not None and not isinstance(types_[index], types.Literal)
            if dynamic or is_list(types_[value]) or options.get("boundscheck"):
                raise _refuse("an index", statement.loc, "[")
        case st.Assign(_, st.Unpack(value)) if not is_tuple(types_[value]):
            raise _refuse("unpacking an array or a list", statement.loc, "=")
        case st.Assign(_, st.Unknown(kind)):
            raise _refuse(kind, statement.loc)
        case st.Store(target) if is_dict(types_[target]):
            return None
        case st.Store(target, _, value) if is_list(types_[target]) or options.get("boundscheck"):
            raise _refuse("an index", statement.loc, "[")
        case st.Store(_, _, value) if not is_scalar(plain(types_[value])):
            raise _refuse("an assignment to a part of an array", statement.loc, "[")
        case st.SideEffect("delitem", (target, _)) if is_dict(types_[target]):
            return None
        case st.SideEffect(kind) if not kind.startswith("print"):
            raise _refuse(f"`{kind}`", statement.loc)
    return None


def key_needed(statement: st.Statement, types_: Mapping[st.Variable, Type]) -> tuple[st.Variable, object] | None:
    """Return the dict in which a statement in `try` needs a key, and the variable or the value of that."""
    match statement:
        case st.Assign(_, st.Item(of, index, static)) if is_dict(types_[of]):
            return of, static if index is None else st.Name(index)
        case st.SideEffect("delitem", (of, index)) if is_dict(types_[of]):
            return of, st.Name(index)
    return None


def trial_of(
    statement: st.Statement, types_: Mapping[st.Variable, Type]
) -> tuple[Callable[..., bool], tuple[st.Variable, ...]] | None:
    """Return the function that tells whether a call of linear algebra raises, and what it is called with."""
    match statement:
        case st.Assign(_, st.Call(callee, args)) if found := _trial(types_[callee], args):
            trial, count = found
            return trial, args[:count]
    return None


def _trial(callee: Type, args: tuple[st.Variable, ...]) -> tuple[Callable[..., bool], int] | None:
    function = numba_adapter.object_of(callee)
    found = TRIALS.get(function) if isinstance(function, Hashable) else None
    return None if found is None or len(args) < found[1] else found


def _check_call(
    target: st.Variable,
    callee: st.Variable,
    args: tuple[st.Variable, ...],
    types_: Mapping[st.Variable, Type],
    methods: Mapping[st.Variable, st.Attribute],
    loc: Loc,
) -> None:
    own = types_[callee]
    function = numba_adapter.object_of(own)
    made = types_[target]
    is_made = isinstance(made, types.ExceptionInstance) or numba_adapter.constructed_by(own) is not None
    if is_made or numba_adapter.is_closure(made) or function in (numba_adapter.length_of_iterator, divmod):
        return
    if callee in methods:
        method = methods[callee]
        if not ops.properties(method_of(types_[method.value], method.name)).safe_in_try:
            raise _refuse(f"`{method.name}`", loc, method.name)
        return
    if _trial(own, args) is not None:
        return
    several = sum(isinstance(plain(types_[arg]), types.Array) for arg in args) > 1
    stepped = function is range and len(args) == 3 and not isinstance(types_[args[2]], types.Literal)
    empty = function in (max, min) and len(args) == 1
    if not (ops.properties(function).safe_in_try or isinstance(own, types.NumberClass)) or several or stepped or empty:
        name = str(getattr(function, "__name__", getattr(own, "transform", own)))
        raise _refuse(f"`{name}`", loc, name)


def check_routine(function: st.TypedFunction, loc: Loc) -> None:
    """Raise DifferentiationError if a routine that is called in `try` may raise."""
    if not _is_safe(function, set()):
        raise _refuse(f"`{function.name}`, which stays a function", loc, function.name)


def _is_safe(function: st.TypedFunction, seen: set[st.TypedFunction]) -> bool:
    """Return whether neither a routine nor anything that it calls raises."""
    if function in seen:
        return True
    seen.add(function)
    derived: Any = function.derived
    if derived is not None and raises(derived.function):
        return False
    for block in function.blocks.values():
        if isinstance(block.ending, st.Raise | st.Try):
            return False
        for statement in block.statements:
            match statement:
                case st.Assign(_, st.Call(callee, _, _, taken)):
                    if (called := function.callee_of(function.types[callee], taken)) is not None:
                        if not _is_safe(called, seen):
                            return False
                        continue
            try:
                tested = divisor(statement, function.types, {}, function.options)
            except Exception:  # it may raise
                return False
            if tested or key_needed(statement, function.types) or trial_of(statement, function.types):
                return False
    return True


def check_inlined(function: Function, loc: Loc) -> None:
    """Raise DifferentiationError if something may raise that a derivative does whose blocks are put in a `try`.

    What it raises itself goes to the handler.
    """
    for instr in function.instrs():
        own = instr.op.function if isinstance(instr.op, Routine) else None
        if _may_raise(instr, function) or (own is not None and raises(own)):
            raise _refuse(f"`{function.name}`, which calls `{own.name}`," if own else f"`{function.name}`", loc)


def raises(function: Function) -> bool:
    """Return whether a function of the IR, or one that it calls, may raise an exception."""
    functions = functions_of(function)
    return any(
        isinstance(block.terminator, Raise) or any(_may_raise(instr, each) for instr in block.instrs)
        for each in functions
        for block in each.blocks
    )


def _may_raise(instr: Instr, function: Function) -> bool:
    if isinstance(instr.op, Routine):
        return False  # that is another question
    if instr.op is ops.refuse or str(getattr(instr.op, "__module__", "")).startswith("numpy.linalg"):
        return True
    return function.options.get("error_model", "python") == "python" and can_raise(instr)


def _refuse(what: str, loc: Loc, token: str = "") -> Exception:
    return refuse(
        f"{what} in `try` may raise an exception by itself, which is not supported",
        loc,
        "do it outside of `try`, or test for the error with `if` and raise an exception",
        token,
    )


# ------------------------------------------------------------------------------------- divisions by zero as no errors


def divisions(function: st.TypedFunction) -> set[object]:
    """Return the operators by which a function divides numbers, and functions that do."""
    found: set[object] = set()
    for block in function.blocks.values():
        for statement in block.statements:
            match statement:
                case st.Assign(_, st.Operate(op, _, types_)) if ops.of(op).divides and _are_numbers(types_):
                    found.add(op)
                case st.Assign(_, st.Call(callee, types=types_)) if _are_numbers(types_):
                    called = numba_adapter.object_of(function.types[callee])
                    if ops.properties(called).divides:
                        found.add(called)
    return found


def with_divisions_of_numpy(block: st.TypedBlock) -> st.TypedBlock:
    """Return a block in which dividing a number by zero yields infinity or NaN, whatever Python would do."""
    statements: list[st.Statement] = []
    for statement in block.statements:
        match statement:
            case st.Assign(target, st.Operate(operator.truediv, args, types_), loc) if _are_numbers(types_):
                statement = st.Assign(target, st.Operate(np.true_divide, args, types_), loc)
        statements.append(statement)
    return dataclasses.replace(block, statements=tuple(statements))


def in_parallel_loops(function: st.TypedFunction) -> set[st.Label]:
    """Return the blocks of loops over `prange` that run in threads, where Numba lets divisions by zero pass.

    A loop that may be left from within, as by an exception, does not.
    """
    blocks = function.blocks
    if not function.options.get("parallel"):
        return set()
    parallel: set[st.Variable] = set()  # ranges and iterators, each assigned before its uses
    headers = []
    for label, block in blocks.items():
        for statement in block.statements:
            match statement:
                case st.Assign(target, st.Call(callee)):
                    if numba_adapter.object_of(function.types[callee]) is numba.prange:
                        parallel.add(target)
                case st.Assign(target, st.Copy(source) | st.Iterate(source)) if source in parallel:
                    parallel.add(target)
                case st.Assign(_, st.Advance(iterator)) if iterator in parallel:
                    headers.append(label)
    before: dict[st.Label, list[st.Label]] = {label: [] for label in blocks}
    for label, block in blocks.items():
        for successor in targets(block.ending):
            before[successor].append(label)
    found: set[st.Label] = set()
    for header in headers:
        after = set(reach([header], lambda label: targets(blocks[label].ending)))
        latches = [label for label in before[header] if label in after]
        body = set(reach(latches, before.__getitem__, {header}))
        if all(set(targets(blocks[label].ending)) <= {header, *body} for label in body):
            found |= {header, *body}
    return found


def _are_numbers(types_: tuple[Type, ...]) -> bool:
    return all(isinstance(types.unliteral(each), types.Number | types.Boolean) for each in types_)
