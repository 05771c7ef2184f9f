"""A check that arguments do not share memory, nor elements of one argument, where one of them is written to.

    def f(x, out):                          refuse_shared(x, out, "the arguments `x` and `out` share memory, ...")
        out[0] = x[0] * x[0]        ->      out[0] = x[0] * x[0]
        return out[0] + x[1]                return out[0] + x[1]

The adjoint takes the memory of two parameters to be apart, and with it their shadows. Where nothing is written to that
is no assumption: the same array for both is two arguments of the same value.
"""

from __future__ import annotations

from itertools import combinations

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.core import Const, Function, Instr, Value
from zygote_py.ir.helpers import helper
from zygote_py.ir.memory import Memory
from zygote_py.ir.types import item_texts


def refuse_shared(x, y, message):  # type: ignore[no-untyped-def]
    """Raise ValueError if the two arrays may have a byte in common.

    Where all strides are multiples of one step, two arrays may lie in the gaps of each other.
    """
    if x.size > 0 and y.size > 0:
        step = 0
        low_x = x.ctypes.data
        high_x = low_x + x.itemsize
        for axis in range(x.ndim):
            stride, length = x.strides[axis], x.shape[axis]
            low_x += min(stride * (length - 1), 0)
            high_x += max(stride * (length - 1), 0)
            if length > 1:
                other = abs(stride)
                while other != 0:
                    step, other = other, step % other
        low_y = y.ctypes.data
        high_y = low_y + y.itemsize
        for axis in range(y.ndim):
            stride, length = y.strides[axis], y.shape[axis]
            low_y += min(stride * (length - 1), 0)
            high_y += max(stride * (length - 1), 0)
            if length > 1:
                other = abs(stride)
                while other != 0:
                    step, other = other, step % other
        if low_x < high_y and low_y < high_x:
            gap = (low_y - low_x) % step if step > 0 else 0
            if gap < x.itemsize or step - gap < y.itemsize:
                raise ValueError(message)


def refuse_folded(x, message):  # type: ignore[no-untyped-def]
    """Raise ValueError if two elements of an array may have a byte in common: a step is within what it steps over."""
    if x.size > 0:
        for axis in range(x.ndim):
            step = abs(x.strides[axis])
            reach = x.itemsize
            for other in range(x.ndim):
                shorter = abs(x.strides[other])
                if shorter < step or (shorter == step and other < axis):
                    reach += shorter * (x.shape[other] - 1)
            if x.shape[axis] > 1 and step < reach:
                raise ValueError(message)


for check in (refuse_shared, refuse_folded):
    helper(check, ops.Effect.WRITE)
    ops.WRITES_NOTHING.add(check)


def refuse_shared_arguments(function: Function) -> list[Instr]:
    """Add the checks that are needed to the start of a primal; gives them."""
    memory = Memory(function)
    arrays = list(_array_arguments(function, memory))
    checks: list[Instr] = []
    for x, name in arrays:
        if isinstance(x.type, types.Array) and x.type.layout == "A" and memory.is_written(x):
            message = f"elements of the argument `{name}` share memory, and it is written to: pass a copy"
            checks.append(Instr(refuse_folded, (x, Const(message, types.unicode_type)), types.none, "", function.loc))
    for (x, x_name), (y, y_name) in combinations(arrays, 2):
        if memory.is_written(x) or memory.is_written(y):
            message = f"the arguments `{x_name}` and `{y_name}` share memory, and one is written to: pass a copy of one"
            args = (x, y, Const(message, types.unicode_type))
            checks.append(Instr(refuse_shared, args, types.none, "", function.loc))
    defined = max((number + 1 for number, each in enumerate(function.entry.instrs) if each in dict(arrays)), default=0)
    function.entry.instrs[defined:defined] = checks
    return checks


def _array_arguments(function: Function, memory: Memory) -> list[tuple[Value, str]]:
    """The arrays among the parameters and the items of those that are tuples, with their names."""
    found: list[tuple[Value, str]] = []
    names: dict[Value, str] = {param: param.hint for param in function.params}
    for param in function.params:
        if isinstance(param.type, types.Array):
            found.append((param, param.hint))
    for instr in function.entry.instrs:
        match instr:
            case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in names:
                if isinstance(whole.type, types.BaseTuple):
                    names[instr] = names[whole] + item_texts(whole.type)[number]
                    if isinstance(instr.type, types.Array):
                        found.append((instr, names[instr]))
    return found
