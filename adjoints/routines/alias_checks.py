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
from collections.abc import Iterable, Mapping
from itertools import combinations
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
    Value,
    helper,
    inserting,
    item_texts,
    ops,
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


def shares_memory(x: Any, arrays: Any) -> Any:
    """Return whether one of several arrays may have a byte in common with another, which the array itself is not."""
    count = 0
    for other in arrays:
        if share_memory(x, other):
            count += 1
    return count > 1


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


for each in (memory_of, share_memory, shares_memory, list_shares_memory, is_folded):
    helper(each)

_MEMORY = types.UniTuple(types.int64, 4)
_MOST_PAIRS = 10  # with a separate message: those of five arrays, since each message is a block to compile
_UNNAMED = "the argument `{}` shares memory with another, and is written to: pass a copy"


def refuse_if_shared(b: Builder, x: Operand, y: Operand, message: str) -> None:
    """Raise ValueError if two arrays share memory."""
    _refuse_if(b, share_memory, [b.call(memory_of, each, type=_MEMORY, hint="memory") for each in (x, y)], message)


def _refuse_if(b: Builder, condition: ops.Op, args: Iterable[Operand], message: str) -> None:
    b.refuse_if(b.call(condition, *args, type=types.boolean), message)


def refuse_shared_arguments(function: Function) -> list[Instr]:
    """Add the required checks to the start of a primal; return their instructions."""
    memory = Memory(function)
    found = _arguments_with_arrays(function)
    arrays = [(each, name) for each, name in found if isinstance(each.type, types.Array)]
    lists = [(each, name) for each, name in found if isinstance(each.type, types.List)]
    defined = max((number + 1 for number, each in enumerate(function.entry.instrs) if each in dict(found)), default=0)
    with inserting(function.entry, defined, function.loc) as b:
        for x, name in arrays:
            if isinstance(x.type, types.Array) and x.type.layout == "A" and memory.is_written(x):
                message = f"elements of the argument `{name}` share memory, and it is written to: pass a copy"
                _refuse_if(b, is_folded, [x], message)
        for x, name in arrays:
            for values, of in lists if memory.is_written(x) else ():
                message = f"the argument `{name}` is written to, and shares memory with an array in `{of}`: pass a copy"
                _refuse_if(b, list_shares_memory, [b.call(memory_of, x, type=_MEMORY), values], message)
        pairs = [
            (x, y)
            for x, y in combinations(arrays, 2)
            if (memory.is_written(x[0]) or memory.is_written(y[0])) and not _are_fields(x[0], y[0])
        ]
        if pairs:
            lies = {x: b.call(memory_of, x, type=_MEMORY, hint=f"memory_{name}") for x, name in arrays}
            if len(pairs) <= _MOST_PAIRS:
                _refuse_pairs(b, pairs, lies)
            else:
                _refuse_each(b, [each for each in arrays if memory.is_written(each[0])], lies)
    return b.block.instrs


_Named = tuple[Value, str]


def _are_fields(x: Value, y: Value) -> bool:
    """Return whether two arrays are fields of one structured array."""
    of, other = (each.args[0] if isinstance(each, Instr) and each.op is ops.getitem else each for each in (x, y))
    return of is other and isinstance(of.type, DisjointType)


def _refuse_pairs(b: Builder, pairs: Iterable[tuple[_Named, _Named]], lies: Mapping[Value, Instr]) -> None:
    """Refuse each pair that shares memory, with both names in the message."""
    for (x, x_name), (y, y_name) in pairs:
        message = f"the arguments `{x_name}` and `{y_name}` share memory, and one is written to: pass a copy of one"
        _refuse_if(b, share_memory, [lies[x], lies[y]], message)


def _refuse_each(b: Builder, written: Iterable[_Named], lies: Mapping[Value, Instr]) -> None:
    """Refuse each array that shares memory with any other: the pairs would be too many to compile."""
    kinds = types.UniTuple(_MEMORY, len(lies))
    together = b.call(ops.pack, *lies.values(), type=kinds, hint="memories")
    for x, name in written:
        _refuse_if(b, shares_memory, [lies[x], together], _UNNAMED.format(name))


def also_named(message: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return a message of these checks that names both arrays, where it says only "another"."""
    found = re.fullmatch(re.escape(_UNNAMED).replace(r"\{\}", "(.+)"), message)
    name = found[1] if found else ""
    lies = {other: memory_of(each) for other, each in arrays.items()}
    for other in lies:
        if other != name and name in lies and share_memory(lies[name], lies[other]):
            return message.replace("another,", f"`{other}`,")
    return message


def _arguments_with_arrays(function: Function) -> list[_Named]:
    """Return the arrays and the lists of arrays among the parameters and the items of tuple parameters, with names."""
    names: dict[Value, str] = {param: param.hint for param in function.params}
    for instr in function.entry.instrs:
        match instr:
            case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in names:
                if isinstance(whole.type, types.BaseTuple):
                    of_fields = isinstance(whole.type, DisjointType)
                    names[instr] = names[whole] + ("" if of_fields else item_texts(whole.type)[number])
    return [(each, name) for each, name in names.items() if _holds_arrays(each.type)]


def _holds_arrays(type: Any) -> bool:
    return isinstance(type, types.Array) or (isinstance(type, types.List) and isinstance(type.dtype, types.Array))
