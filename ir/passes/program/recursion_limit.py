"""The limit on recursion depth: compiled code that recurses too deeply would kill the process without a message.

    def fact_forward(n, records, depth):
        if depth > 14563:
            raise RecursionError("fact calls itself more than 14563 times in turn: write it as a loop")

Reverse mode counts how deep it is where it keeps records; any other recursion gets a parameter for the depth before it
is emitted. The stack size of a call is unknown before compilation; an upper bound is estimated, as if every array and
every second number had a stack slot. In plain Python the interpreter's own limit applies.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from itertools import count
from math import prod

from numba import config, types

from zygote_py.ir import ops
from zygote_py.ir.analysis.routines import routines_of
from zygote_py.ir.building.clone import clone
from zygote_py.ir.core import Block, Branch, Const, Function, Instr, Operand, Param, Raise, Routine, Type, Value
from zygote_py.ir.types import components_of

_BYTES = 8 * 2**20  # of a thread's stack, on the systems that Numba supports
_USABLE = 0.75  # the rest is reserved for the callers
_FRAME = 96  # of a call, independent of its contents
_SMALL = 64  # elements
_UNOPTIMISED = 6  # factor by which frames grow with NUMBA_OPT=0, where every intermediate value has its own slot


def limit_depth(counting: Sequence[Function], others: Sequence[Function] = ()) -> None:
    """Make the functions of a recursion, whose last parameter is the depth, raise RecursionError in time.

    The `others` are not called more often in turn than these.
    """
    limit = int(_stack_bytes() * _USABLE) // max(map(_bytes_of, (*counting, *others)))
    for function in counting:
        name = function.name
        text = f"{name} calls itself more than {limit} times in turn: write it as a loop"
        first, stop, deep = Block(function.loc), Block(function.loc), Const(limit, types.int64)
        condition = Instr(operator.gt, (function.params[-1], deep), types.boolean, "", function.loc)
        first.instrs.append(condition)
        first.terminator = Branch(condition, stop, function.entry)
        stop.terminator = Raise(RecursionError, (Const(text, types.unicode_type),))
        function.blocks[:0] = [first, stop]
    for function in (*counting, *others):
        function.is_limited = True


def with_limits(function: Function) -> Function:
    """Return a function in which every recursion is limited: itself, or a copy that calls copies of its routines."""
    called = {routine: set(routines_of(routine.function)) for routine in routines_of(function)}
    recursive = {each for each, found in called.items() if each in found and not each.function.is_limited}
    if not recursive:
        return function
    copies = {each: copy(each) for each, found in called.items() if each in recursive or found & recursive}
    counting: list[Function] = []
    for routine, made in copies.items():
        made.function = clone(routine.function).function
        if routine in recursive:
            taken = {param.hint for param in made.function.params}
            names = (f"depth_{number}" if number else "depth" for number in count())
            name = next(hint for hint in names if hint not in taken)
            made.function.params.append(Param(types.int64, name))
            counting.append(made.function)
    whole = clone(function).function
    for each in (whole, *(made.function for made in copies.values())):
        _call_copies(each, copies, recursive, each.params[-1] if each in counting else None)
    limit_depth(counting)
    return whole


def _call_copies(
    function: Function, copies: Mapping[Routine, Routine], recursive: Collection[Routine], depth: Param | None
) -> None:
    """Let a function call copies; those of recursive routines get the depth: one more than its own, or 0."""
    for block in function.blocks:
        instrs: list[Instr] = []
        for instr in block.instrs:
            if isinstance(instr.op, Routine) and instr.op in copies:
                if instr.op in recursive:
                    instr.args += (_deeper(instrs, instr, depth),)
                instr.op = copies[instr.op]
            instrs.append(instr)
        block.instrs = instrs


def _deeper(instrs: list[Instr], call: Instr, depth: Param | None) -> Operand:
    """Return the depth of a call; what computes it is appended."""
    if depth is None:
        return Const(0, types.int64)
    instrs.append(Instr(operator.add, (depth, Const(1, types.int64)), types.int64, "", call.loc))
    return instrs[-1]


def _stack_bytes() -> int:
    try:
        import resource  # not available on Windows, where the main thread has less
    except ImportError:
        return _BYTES // 8
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _BYTES if soft == resource.RLIM_INFINITY else min(soft, _BYTES)


def _bytes_of(function: Function) -> int:
    """Return an upper bound of the stack size of a call of a function."""
    frame = _FRAME + sum(_size(value.type) + _elements(value) for value in function.values())
    return frame if int(config.OPT) else _UNOPTIMISED * frame  # type: ignore[attr-defined]


def _elements(value: Value) -> int:
    """Return the bytes of the elements of a small array of constant lengths: LLVM may keep them in the frame."""
    match value:
        case Instr(op=ops.record | ops.zeros, args=args) if args and all(isinstance(each, Const) for each in args):
            elements = prod(each.value for each in args if isinstance(each, Const))  # type: ignore[misc]
            return 8 * elements if elements <= _SMALL else 0
    return 0


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
