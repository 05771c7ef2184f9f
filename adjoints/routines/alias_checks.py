"""Run-time checks that arguments, and the elements of one argument, share no memory where one is written to.

    def f(x, out):                  memory_x = memory_of(x)
        out[0] = x[0] * x[0]        memory_out = memory_of(out)
        return out[0] + x[1]        if share_memory(memory_x, memory_out):
                                        raise ValueError("the arguments `x` and `out` share memory, ...")
                                    out[0] = x[0] * x[0]
                                    return out[0] + x[1]

The adjoint assumes that the memory of two parameters is disjoint, and with it their shadows. Without writes that does
not matter: the same array for both is two arguments of equal value.

Numba compiles one function per array type, and one for all pairs: a string argument would have a different literal type
for each message, so the messages are placed where they are raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import (
    Builder,
    Const,
    DisjointType,
    Function,
    Instr,
    Memory,
    Operand,
    Routine,
    Value,
    helper,
    inserting,
    item_text,
    ops,
    uses,
)


def memory_of(x: Any) -> Any:
    """Return where the memory of an array lies: from where to where, its step, and the bytes of an element.

    Where all strides are multiples of one step, two arrays may lie in the gaps of each other.
    """
    low = high = step = np.int64(0)
    if x.size > 0:
        low = np.int64(x.ctypes.data)
        high = low + x.itemsize
        for axis in range(x.ndim):
            stride, length = x.strides[axis], x.shape[axis]
            low += min(stride * (length - 1), 0)
            high += max(stride * (length - 1), 0)
            if length > 1:
                other = abs(stride)
                while other != 0:
                    step, other = other, step % other
    return low, high, step, x.itemsize


def share_memory(x: Any, y: Any) -> Any:
    """Return whether two arrays may have a byte in common, from where they lie."""
    low_x, high_x, step, size_x = x
    low_y, high_y, other, size_y = y
    while other != 0:
        step, other = other, step % other
    gap = (low_y - low_x) % step if step > 0 else 0
    return low_x < high_y and low_y < high_x and (gap < size_x or step - gap < size_y)


def share_some(memories: Any, count: Any) -> Any:
    """Return whether one of the first `count` arrays may have a byte in common with another, from where they lie."""
    for i in range(count):
        for j in range(i + 1, len(memories)):
            if share_memory(memories[i], memories[j]):
                return True
    return False


def list_shares_memory(x: Any, values: Any) -> Any:
    """Return whether an array, which lies there, may have a byte in common with one in a list."""
    for value in values:  # noqa: SIM110 (Numba has no `any`)
        if share_memory(x, memory_of(value)):
            return True
    return False


def is_folded(x: Any) -> Any:
    """Return whether two elements of an array may have a byte in common: a step is within what it steps over."""
    folded = False
    for axis in range(x.ndim):
        step = abs(x.strides[axis])
        reach = x.itemsize
        for other in range(x.ndim):
            shorter = abs(x.strides[other])
            if shorter < step or (shorter == step and other < axis):
                reach += shorter * (x.shape[other] - 1)
        if x.size > 0 and x.shape[axis] > 1 and step < reach:
            folded = True
    return folded


for each in (memory_of, share_memory, share_some, list_shares_memory, is_folded):
    helper(each)

_MEMORY, _SPAN = types.UniTuple(types.int64, 4), types.UniTuple(types.int64, 2)
_MOST_PAIRS = 3  # with a message each: those of three arrays
_NAMED = "the arguments `{}` and `{}` share memory, and one is written to: pass a copy of one"
_ANOTHER = " is written to, and shares memory with another argument: pass a copy"


def refuse_if_shared(b: Builder, x: Operand, y: Operand, message: str) -> None:
    """Raise ValueError if two arrays share memory."""
    b.refuse_if(_share(b, [x, y], 1, {}), message)


def _share(b: Builder, arrays: Sequence[Operand], count: int, known: dict[tuple[Operand, ops.Op], Instr]) -> Operand:
    """Return whether one of the first `count` arrays may share memory with any other; `known` is where they lie."""
    is_span = all(isinstance(each.type, types.Array) and each.type.layout in ("C", "F") for each in arrays)
    of, kind = (ops.span_of, _SPAN) if is_span else (memory_of, _MEMORY)
    for each in arrays:
        if (each, of) not in known:
            hint = f"memory_{each.hint}" if isinstance(each, Value) else "memory"
            known[each, of] = b.call(of, each, type=kind, hint=hint)
    together = b.pack([known[each, of] for each in arrays])
    return b.call(ops.overlap if is_span else share_some, together, Const(count, types.int64), type=types.boolean)


def _refuse_if(b: Builder, condition: ops.Op, args: Iterable[Operand], message: str) -> None:
    b.refuse_if(b.call(condition, *args, type=types.boolean), message)


def refuse_shared_arguments(function: Function) -> list[Instr]:
    """Add the required checks to the start of a primal; return their instructions."""
    memory = Memory(function)
    found = _arguments_with_arrays(function)
    arrays = [(each, name) for each, name in found if isinstance(each.type, types.Array)]
    lists = [
        (each, name)
        for each, name in found
        if isinstance(each.type, types.List) and not _is_only_filled(function, each)
    ]
    written = {each: f"`{name}`" for each, name in arrays if memory.is_written_to(each)}
    given = {each for each, _ in found}
    defined = max((number + 1 for number, each in enumerate(function.entry.instrs) if each in given), default=0)
    with inserting(function.entry, defined, function.loc) as b:
        for x, name in arrays:
            if isinstance(x.type, types.Array) and x.type.layout == "A" and x in written:
                message = f"elements of the argument `{name}` share memory, and it is written to: pass a copy"
                _refuse_if(b, is_folded, [x], message)
        for x, name in arrays:
            for values, of in lists if x in written else ():
                message = f"the argument `{name}` is written to, and shares memory with an array in `{of}`: pass a copy"
                _refuse_if(b, list_shares_memory, [b.call(memory_of, x, type=_MEMORY), values], message)
        pairs = [
            (x, y)
            for x, y in combinations(arrays, 2)
            if (x[0] in written or y[0] in written) and not _are_fields(x[0], y[0])
        ]
        if pairs:
            _refuse_pairs(b, pairs, written)
    return b.block.instrs


_Named = tuple[Value, str]


def _is_only_filled(function: Function, values: Value) -> bool:
    """Return whether a function, with all that it calls, does nothing with a list but append to it.

    What is in such a list may share memory with the arrays that are written to: so do the shadows that are appended.
    """
    pending, seen = [(function, values)], set[tuple[Function, Value]]()
    while pending:
        if (asked := pending.pop()) in seen:
            continue
        seen.add(asked)
        within, value = asked
        for use in uses(within)[value]:
            match use.user:
                case Instr(op=ops.push, args=(target, given)) if target is value and given is not value:
                    continue
                case Instr(op=Routine(function=called), args=args):
                    pending += [(called, called.params[number]) for number, arg in enumerate(args) if arg is value]
                case _:
                    return False
    return True


def _are_fields(x: Value, y: Value) -> bool:
    """Return whether two arrays are fields of one structured array."""
    of, other = (each.args[0] if isinstance(each, Instr) and each.op is ops.getitem else each for each in (x, y))
    return of is other and isinstance(of.type, DisjointType)


def _refuse_pairs(b: Builder, pairs: Sequence[tuple[_Named, _Named]], written: Mapping[Value, str]) -> None:
    """Refuse each pair that shares memory, of which one array is written to."""
    known: dict[tuple[Operand, ops.Op], Instr] = {}
    if len(pairs) <= _MOST_PAIRS:
        for (x, x_name), (y, y_name) in pairs:
            b.refuse_if(_share(b, [x, y], 1, known), _NAMED.format(x_name, y_name))
        return
    arrays = list(dict.fromkeys(each for pair in pairs for each, _ in pair))
    arrays.sort(key=lambda each: each not in written)
    names = ", ".join(written.values())
    b.refuse_if(_share(b, arrays, len(written), known), (names if len(written) == 1 else f"one of {names}") + _ANOTHER)


def also_named(message: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the message of a check with the names of two arrays that share memory, if it does not say which do."""
    written = re.findall("`([^`]+)`", message.removesuffix(_ANOTHER)) if message.endswith(_ANOTHER) else []
    lies = {name: memory_of(each) for name, each in arrays.items()}
    for name, other in product(written, lies):
        if name != other and name in lies and share_memory(lies[name], lies[other]):
            return _NAMED.format(name, other)
    return message


def _arguments_with_arrays(function: Function) -> list[_Named]:
    """Return the arrays and the lists of arrays among the parameters and the items of tuple parameters, with names."""
    names: dict[Value, str] = {param: param.hint for param in function.params}
    for instr in function.entry.instrs:
        match instr:
            case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in names:
                if isinstance(whole.type, types.BaseTuple):
                    of_fields = isinstance(whole.type, DisjointType)
                    names[instr] = names[whole] + ("" if of_fields else item_text(whole.type, number))
    return [(each, name) for each, name in names.items() if _holds_arrays(each.type)]


def _holds_arrays(type: Any) -> bool:
    return isinstance(type, types.Array) or (isinstance(type, types.List) and isinstance(type.dtype, types.Array))
