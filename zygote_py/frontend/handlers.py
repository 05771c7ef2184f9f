"""Caught exceptions: what raises inside `try` jumps to the handler.

    1: c = g(x)               1: c = x + 1.0                   # g's body, with `raise` in it
       s = c / d         ->      zero = d == 0
       try 3, next 2             choose zero, 3, 4             # 3 is the handler
                              4: s = c / d
                                 goto 2

An explicit `raise` becomes a jump, a division is tested before it is made. Other operations that may raise by
themselves are refused. What a function has done before it raises stays done. Exceptions are not told apart: Numba
supports `except Exception` only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from itertools import count

import numpy as np
from numba import literal_unroll, prange, types

from zygote_py import numba_adapter
from zygote_py import statements as st
from zygote_py.adjoints.errors import refuse
from zygote_py.frontend.values import is_list, is_tuple, plain
from zygote_py.ir.core import Loc, Type
from zygote_py.ir.types import is_scalar

_DIVISIONS = frozenset({operator.truediv, operator.floordiv, operator.mod, divmod})
_SAFE = frozenset(
    {
        *(abs, bool, complex, enumerate, float, int, len, max, min, print, range, round, slice, sum, zip, tuple),
        *(each for name, each in vars(math).items() if callable(each) and name not in ("factorial", "comb", "perm")),
        *(each for each in vars(np).values() if isinstance(each, np.ufunc)),
        *(np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like, np.full, np.sum, np.mean, np.copy),
        *(literal_unroll, prange),
    }
)
_SAFE_METHODS = frozenset({"append", "sum", "mean", "copy"})


def guard(
    blocks: Mapping[st.Label, st.TypedBlock],
    handlers: Mapping[st.Label, st.Label],
    types_: dict[st.Variable, Type],
    options: Mapping[str, object],
) -> tuple[dict[st.Label, st.TypedBlock], dict[st.Label, st.Label]]:
    """Redirect what raises in blocks with handlers to these; new variables are added to `types_`.

    Returns the blocks and, for each that was split, the last of its parts. Raises DifferentiationError.
    """
    fresh = count(max(blocks) + 1)
    found: dict[st.Label, st.TypedBlock] = {}
    lasts: dict[st.Label, st.Label] = {}
    methods = {
        each.target: each.value
        for block in blocks.values()
        for each in block.statements
        if isinstance(each, st.Assign)
        and isinstance(each.value, st.Attribute)
        and not isinstance(types_[each.value.value], types.Module)
    }
    for label, block in blocks.items():
        if label not in handlers:
            found[label] = block
            continue
        current, done = label, list[st.Statement]()
        for number, statement in enumerate(block.statements):
            divisor = _divisor(statement, types_, methods, options)
            if divisor is not None:
                variable, type_ = divisor
                zero, test = f"{label}:zero{number}", f"{label}:is_zero{number}"
                types_[zero], types_[test] = type_, types.boolean
                done.append(st.Assign(zero, st.Constant(0), statement.loc))
                done.append(st.Assign(test, st.Operate(operator.eq, (variable, zero), (type_, type_)), statement.loc))
                following = next(fresh)
                ending = st.Choose(test, handlers[label], following, statement.loc)
                found[current] = st.TypedBlock(tuple(done), ending, block.loc)
                current, done = following, []
            done.append(statement)
        last: st.Ending = block.ending
        if isinstance(last, st.Fail):
            last = st.GoTo(handlers[label], last.loc)
        found[current] = st.TypedBlock(tuple(done), last, block.loc)
        lasts[label] = current
    return found, lasts


def _divisor(
    statement: st.Statement,
    types_: Mapping[st.Variable, Type],
    methods: Mapping[st.Variable, st.Attribute],
    options: Mapping[str, object],
) -> tuple[st.Variable, Type] | None:
    """Return the variable that must not be zero in a statement, with the type that it is taken as."""
    match statement:
        case st.Assign(_, st.Operate(op, args, taken)):
            kinds = [plain(each) for each in taken]
            if op in _DIVISIONS and all(map(is_scalar, kinds)):
                return None if options.get("error_model") == "numpy" else (args[1], kinds[1])
            arrays = [each for each in kinds if isinstance(each, types.Array)]
            if len(arrays) > 1 or any(map(is_list, kinds)) or op is operator.matmul:
                raise _refuse("an operation on arrays or lists", statement.loc)
        case st.Assign(target, st.Call(callee, args, _, taken)):
            _check_call(target, callee, args, types_, methods, statement.loc)
            if numba_adapter.object_of(types_[callee]) in (divmod, operator.mod):
                return args[1], plain(taken[1])
        case st.Assign(_, st.Invoke(function)):
            if not _is_safe(function, set()):
                raise _refuse(f"`{function.name}`, which stays a function", statement.loc, function.name)
        case st.Assign(_, st.Item(value, index)):
            dynamic = is_tuple(types_[value]) and index is not None and not isinstance(types_[index], types.Literal)
            if dynamic or is_list(types_[value]) or options.get("boundscheck"):
                raise _refuse("an index", statement.loc, "[")
        case st.Assign(_, st.Unpack(value)) if not is_tuple(types_[value]):
            raise _refuse("unpacking an array or a list", statement.loc, "=")
        case st.Assign(_, st.Unknown(kind)):
            raise _refuse(kind, statement.loc)
        case st.Store(target, _, value) if is_list(types_[target]) or options.get("boundscheck"):
            raise _refuse("an index", statement.loc, "[")
        case st.Store(_, _, value) if not is_scalar(plain(types_[value])):
            raise _refuse("an assignment to a part of an array", statement.loc, "[")
        case st.Act(kind) if not kind.startswith("print"):
            raise _refuse(f"`{kind}`", statement.loc)
        case _:
            pass
    return None


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
    if isinstance(made, types.ExceptionInstance) or numba_adapter.constructed_by(own) is not None:
        return
    if numba_adapter.is_closure(made) or function is numba_adapter.LENGTH_OF_ITERATOR or function is divmod:
        return
    if callee in methods:
        name = methods[callee].name
        if name not in _SAFE_METHODS:
            raise _refuse(f"`{name}`", loc, name)
        return
    several = sum(isinstance(plain(types_[arg]), types.Array) for arg in args) > 1
    stepped = function is range and len(args) == 3 and not isinstance(types_[args[2]], types.Literal)
    empty = function in (max, min) and len(args) == 1
    known = function in _SAFE if _is_hashable(function) else False
    if not (known or isinstance(own, types.NumberClass)) or several or stepped or empty:
        name = getattr(function, "__name__", str(own))
        raise _refuse(f"`{name}`", loc, name)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_safe(function: st.TypedFunction, seen: set[st.TypedFunction]) -> bool:
    """Return whether neither a routine nor anything that it calls raises."""
    if function in seen:
        return True
    seen.add(function)
    types_ = function.types
    for block in function.blocks.values():
        if isinstance(block.ending, st.Fail | st.Try):
            return False
        for statement in block.statements:
            match statement:
                case st.Assign(_, st.Call(callee, _, _, taken)):
                    called = function.callee_of(types_[callee], taken)
                    if called is not None:
                        if not _is_safe(called, seen):
                            return False
                        continue
                case _:
                    pass
            try:
                if _divisor(statement, types_, {}, function.options) is not None:
                    return False
            except Exception:  # it may raise
                return False
    return True


def _refuse(what: str, loc: Loc, token: str = "") -> Exception:
    return refuse(
        f"{what} in `try` may raise an exception by itself, which is not supported",
        loc,
        "do it outside of `try`, or test for the error with `if` and raise an exception",
        token,
    )
