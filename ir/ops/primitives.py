"""The operations of the IR for which Python has no callable.

Each is an ordinary function, so that the interpreter can call it; `zygote_py.emit` prints each in Python syntax.

    getitem(x, i, j)          x[i, j]                     pick(i, a, b, c)         (a, b, c)[i]
    setitem(x, v, i, j)       x[i, j] = v                 select(c, a, b)          a if c else b
    accumulate(x, v, i, j)    x[i, j] += v                dim(x, axis)             x.shape[axis]
    record(n, m)              np.empty((n, m), dtype)     range_length(a, b, s)    len(range(a, b, s))
    const(1.0)                1.0, a named constant       pack(a, b), pack(a)      (a, b), (a,)
    zeros(n, m)               np.zeros((n, m), dtype)     initialize(x, v, i)      x[i] = v, the first write
    stack()                   []                          push(s, v), pop(s)       s.append(v), s.pop()
    copied(s)                 s[:], of a list
    common_length(n, m)       the length that axes of these lengths broadcast to
    fitting_length(n, m)      n, if an axis of length m broadcasts to one of length n
    spread(x, n, m)           np.broadcast_to(x, (n, m)), but writable
    view(x)                   x.view(dtype), the same bytes as numbers of another type; also of a number
    stop(x)                   x with derivative zero; an array is copied
    release(x)                nothing: from here on, the caller may write to what `x` reaches
    checkpointed(n, k, s)     n: the loop that counts to it has k segments, or s snapshots (0: not given)

Without an index, `setitem` and `accumulate` apply to the whole array: `x[...] = v`, `x += v`. The dtype and the layout
of a `record` and of `zeros` are those of its instruction's type, an array; so is the dtype of a `view`. In-place
operators on numbers are represented by the plain operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir.core import came_from
from zygote_py.ir.ops.table import Cost, Effect, Role, operation, primitive


@primitive(effect=Effect.READ, role=Role.READ, cost=Cost.READ, fresh=True, duplicable=True)
def getitem(x: Any, *index: Any) -> Any:
    """Return `x[i, j]`."""
    return x[index[0] if len(index) == 1 else index]


@primitive(effect=Effect.READ, cost=Cost.READ)
def element_if(x: Any, condition: bool, *index: int) -> Any:
    """Return an element if the condition holds, else 0 without reading anything."""
    return x[index[0] if len(index) == 1 else index] if condition else 0.0


@primitive(effect=Effect.WRITE, role=Role.STORE)
def setitem(x: Any, value: Any, *index: Any) -> None:
    """Perform `x[i, j] = v`."""
    x[index[0] if len(index) == 1 else index] = value


@primitive(effect=Effect.WRITE, role=Role.STORE, adds=True)
def accumulate(x: Any, value: Any, *index: Any) -> None:
    """Perform `x[i, j] += v`."""
    x[index[0] if len(index) == 1 else index] += value


@primitive(effect=Effect.WRITE, role=Role.STORE)
def initialize(x: Any, value: Any, *index: Any) -> None:
    """Perform `x[i, j] = v`, the first write to that element, and the only kind before all have been set."""
    setitem(x, value, *index)


@primitive(role=Role.CHOOSE, handle_only=True)
def pick(index: Any, *items: Any) -> Any:
    """Return the item with this index."""
    return items[index]


@primitive(role=Role.CHOOSE, handle_only=True, remade=True)
def select(condition: Any, then: Any, orelse: Any) -> Any:
    """Return one of two values, both of which are computed."""
    return then if condition else orelse


@primitive(role=Role.GUARD, remade=True)
def guarded(value: Any, *factors: Any) -> Any:
    """Return `value`, or 0 where all factors are 0: a product with them, whose other factors may be infinite there."""
    return value if any(factor != 0 for factor in factors) else 0 * factors[0]


@primitive(handle_only=True, remade=True)
def const(value: Any) -> Any:
    """Return the value: a named constant."""
    return value


@primitive(role=Role.PACK, handle_only=True)
def pack(*items: Any) -> tuple[Any, ...]:
    """Return a tuple."""
    return items


@primitive(role=Role.LENGTH, handle_only=True, nonnegative=True, remade=True, hoistable=True)
def dim(x: Any, axis: int) -> int:
    """Return the length of an axis."""
    length: int = x.shape[axis]
    return length


@primitive(nonnegative=True, remade=True, hoistable=True)
def range_length(start: int, stop: int, step: int) -> int:
    """Return the length of a range."""
    return len(range(start, stop, step))


@primitive(effect=Effect.ALLOCATE, role=Role.ALLOCATE, contents="unset", fresh=True, shapes_decide=True)
def record(*shape: int) -> Any:
    """Return an array with uninitialized elements."""
    # Objects, since the interpreter sees no types.
    return np.empty(shape, object)


@primitive(effect=Effect.ALLOCATE, role=Role.ALLOCATE, contents="zero", fresh=True, shapes_decide=True)
def zeros(*shape: int) -> Any:
    """Return an array of zeros."""
    return np.zeros(shape)


@primitive(role=Role.CHECK)
def common_length(first: int, second: int) -> int:
    """Return the length to which axes of these lengths broadcast. Raises ValueError if they do not fit."""
    if first == 1:
        return second
    if second == 1 or first == second:
        return first
    raise ValueError("operands could not be broadcast together: axes of different lengths")


@primitive(role=Role.CHECK)
def fitting_length(target: int, other: int) -> int:
    """Return the first length. Raises ValueError if an axis of the other length does not broadcast to it."""
    if other == 1 or target == other:
        return target
    raise ValueError("the value does not have the shape of what it is assigned to")


@primitive(role=Role.CHECK)
def check_lengths(first: int, second: int) -> None:
    """Raise ValueError if the factors of a product have different lengths along the axes that it sums over."""
    if first != second:
        raise ValueError("incompatible array sizes for np.dot(a, b)")


@primitive(view=True)
def spread(x: Any, *shape: int) -> Any:
    """Return a view of this shape in which elements of `x` stand in several places, and that may be written to."""
    strides = np.broadcast_to(x, shape).strides
    return np.lib.stride_tricks.as_strided(x, shape, strides)


@primitive(view=True)
def view(x: Any, dtype: Any) -> Any:
    """Return the same bytes as numbers of another type, which is given by the type of the instruction."""
    return x.view(dtype)


@primitive(elements=1, fresh=True, duplicable=True)
def stop(x: Any) -> Any:
    """Return the value, a copy for an array; its derivative is zero."""
    return np.copy(x) if isinstance(x, np.ndarray) else x


@primitive(effect=Effect.WRITE, silent=True)
def refuse(condition: bool, message: str) -> None:
    """Raise ValueError with this message if the condition holds."""
    if condition:
        raise ValueError(message)


@primitive(effect=Effect.WRITE, role=Role.RELEASE)
def release(x: Any) -> None:
    """Do nothing: marks the point after which the caller may write to memory that `x` reaches."""


@primitive()
def checkpointed(stop: int, segments: int, snapshots: int) -> int:
    """Return `stop`: the bound of a loop that is checkpointed in the reverse sweep."""
    return stop


@primitive(effect=Effect.ALLOCATE, contents="empty")
def stack() -> list[Any]:
    """Return an empty list."""
    return []


@primitive(effect=Effect.WRITE, role=Role.APPEND)
def push(values: list[Any], value: Any) -> None:
    """Append to a list."""
    values.append(value)


@primitive(effect=Effect.WRITE, role=Role.POP)
def pop(values: list[Any]) -> Any:
    """Remove and return the last item of a list."""
    return values.pop()


@primitive(effect=Effect.ALLOCATE, role=Role.COPY)
def copied(values: list[Any]) -> list[Any]:
    """Return a copy of a list."""
    return values[:]


# Allocates, so that two queries are never merged.
operation(came_from, effect=Effect.ALLOCATE)
