"""The limit on recursion depth: compiled code that recurses too deeply would kill the process without a message.

    def fact_forward(n, records, depth):
        if depth > 14563:
            raise RecursionError("fact calls itself more than 14563 times in turn: write it as a loop")

The stack size of a call is unknown before compilation; an upper bound is estimated, as if every array and every second
number had a stack slot. In plain Python the interpreter's own limit applies.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from numba import config, types

from zygote_py.ir import Block, Branch, Const, Function, Instr, Raise, Type, components_of

_BYTES = 8 * 2**20  # of a thread's stack, on the systems that Numba supports
_USABLE = 0.75  # the rest is reserved for the callers
_FRAME = 96  # of a call, independent of its contents
_UNOPTIMISED = 6  # factor by which frames grow with NUMBA_OPT=0, where every intermediate value has its own slot


def limit_depth(forward: Sequence[Function], reverse: Sequence[Function]) -> None:
    """Make the forward functions of a recursion, whose last parameter is the depth, raise RecursionError in time."""
    limit = int(_stack_bytes() * _USABLE) // max(map(_bytes_of, (*forward, *reverse)))
    for function in forward:
        name = function.name
        text = f"{name} calls itself more than {limit} times in turn: write it as a loop"
        first, stop, deep = Block(function.loc), Block(function.loc), Const(limit, types.int64)
        condition = Instr(operator.gt, (function.params[-1], deep), types.boolean, "", function.loc)
        first.instrs.append(condition)
        first.terminator = Branch(condition, stop, function.entry)
        stop.terminator = Raise(RecursionError, (Const(text, types.unicode_type),))
        function.blocks[:0] = [first, stop]


def _stack_bytes() -> int:
    try:
        import resource  # not available on Windows, where the main thread has less
    except ImportError:
        return _BYTES // 8
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _BYTES if soft == resource.RLIM_INFINITY else min(soft, _BYTES)


def _bytes_of(function: Function) -> int:
    """Return an upper bound of the stack size of a call of a function."""
    frame = _FRAME + sum(_size(value.type) for value in function.values())
    return frame if int(config.OPT) else _UNOPTIMISED * frame  # type: ignore[attr-defined]


def _size(type: Type) -> int:
    match type:
        case types.Array(ndim=ndim):
            return 40 + 16 * ndim
        case types.BaseTuple():
            return sum(map(_size, components_of(type)))
        case types.List():
            return 16
        case _:
            return 4
