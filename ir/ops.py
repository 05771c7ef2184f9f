"""The callables that instructions call, their names in IR text, and what is known of their effects.

Python's own callables stand for themselves (`operator.mul`, `math.sin`, `numpy.exp`, `float`); the functions here are
those that the IR needs and Python has no callable for. Each is an ordinary function, so that the interpreter can call
it; `zygote_py.emit` knows the Python syntax of each.

    getitem(x, i, j)          x[i, j]                     pick(i, a, b, c)         (a, b, c)[i]
    setitem(x, v, i, j)       x[i, j] = v                 select(c, a, b)          a if c else b
    accumulate(x, v, i, j)    x[i, j] += v                dim(x, axis)             x.shape[axis]
    record(n, m)              np.empty((n, m), dtype)     range_length(a, b, s)    len(range(a, b, s))
    const(1.0)                1.0, a named constant       pack(a, b), pack(a)      (a, b), (a,)
    zeros(n, m)               np.zeros((n, m), dtype)     initialize(x, v, i)      x[i] = v, the element's first
    stack()                   []                          push(s, v), pop(s)       s.append(v), s.pop()
    copied(s)                 s[:], of a list
    common_length(n, m)       the length that axes of these lengths broadcast to
    fitting_length(n, m)      n, if an axis of length m broadcasts to one of length n
    spread(x, n, m)           np.broadcast_to(x, (n, m)), but to be written to
    view(x)                   x.view(dtype), the same bytes as other numbers; of a number too
    stop(x)                   x, through which no derivative flows; of an array a copy
    release(x)                nothing: from here on, the caller may write to what `x` reaches
    checkpointed(n, k, s)     n: the loop that counts to it has k segments, or s snapshots (0: not given)

Without index, `setitem` and `accumulate` are of the whole array: `x[...] = v`, `x += v`. The dtype and the layout of a
`record` and of `zeros` are those of its instruction's type, an array; so is the dtype of a `view`. In-place operators
on numbers are the plain ones.
"""

from __future__ import annotations

import builtins
import cmath
import enum
import math
import operator
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from zygote_py.ir.core import Routine, came_from
from zygote_py.ir.special import Special

Op = Callable[..., Any]


def getitem(x: Any, *index: Any) -> Any:
    """Give `x[i, j]`."""
    return x[index[0] if len(index) == 1 else index]


def setitem(x: Any, value: Any, *index: Any) -> None:
    """Do `x[i, j] = v`."""
    x[index[0] if len(index) == 1 else index] = value


def accumulate(x: Any, value: Any, *index: Any) -> None:
    """Do `x[i, j] += v`."""
    x[index[0] if len(index) == 1 else index] += value


def initialize(x: Any, value: Any, *index: Any) -> None:
    """Do `x[i, j] = v`, which is the first to set that element, and the only one before all have been set."""
    setitem(x, value, *index)


def pick(index: Any, *items: Any) -> Any:
    """Give the item with this number."""
    return items[index]


def select(condition: Any, then: Any, orelse: Any) -> Any:
    """Give one of two values, both computed."""
    return then if condition else orelse


def guarded(value: Any, *factors: Any) -> Any:
    """Give the value, but 0 where all factors are 0: a product with them, of which the rest may be infinite there."""
    return value if any(factor != 0 for factor in factors) else 0 * factors[0]


def const(value: Any) -> Any:
    """Give the value: a constant with a name."""
    return value


def pack(*items: Any) -> tuple[Any, ...]:
    """Make a tuple."""
    return items


def dim(x: Any, axis: int) -> int:
    """Give the length of an axis."""
    length: int = x.shape[axis]
    return length


def range_length(start: int, stop: int, step: int) -> int:
    """Give the length of a range."""
    return len(range(start, stop, step))


def record(*shape: int) -> Any:
    """Make an array whose elements are not set."""
    # Objects, as the interpreter sees no types.
    return np.empty(shape, object)


def zeros(*shape: int) -> Any:
    """Make an array of zeros."""
    return np.zeros(shape)


def common_length(first: int, *others: int) -> int:
    """Give the length to which axes of these lengths broadcast. Raises ValueError if they do not fit."""
    length = first
    for other in others:
        if length == 1:
            length = other
        elif other not in (1, length):
            raise ValueError("operands could not be broadcast together: axes of different lengths")
    return length


def fitting_length(target: int, *others: int) -> int:
    """Give the first length. Raises ValueError if axes of the other lengths do not broadcast to it."""
    for other in others:
        if other not in (1, target):
            raise ValueError("the value does not have the shape of what it is assigned to")
    return target


def check_lengths(first: int, second: int) -> None:
    """Raise ValueError if the factors of a scalar product have different lengths."""
    if first != second:
        raise ValueError("incompatible array sizes for np.dot(a, b) (vector * vector)")


def spread(x: Any, *shape: int) -> Any:
    """Give a view of this shape in which elements of `x` stand in several places, and that may be written to."""
    strides = np.broadcast_to(x, shape).strides
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def view(x: Any, dtype: Any) -> Any:
    """Give the same bytes as numbers of another type, which an instruction has from its own type."""
    return x.view(dtype)


def stop(x: Any) -> Any:
    """Give the value, of an array a copy: no derivative flows through it."""
    return np.copy(x) if isinstance(x, np.ndarray) else x


def refuse(condition: bool, message: str) -> None:
    """Raise ValueError with this message if the condition holds."""
    if condition:
        raise ValueError(message)


def release(x: Any) -> None:
    """Do nothing: from here on, somebody else may write to what `x` reaches."""


def checkpointed(stop: int, segments: int, snapshots: int) -> int:
    """Give the first: where a loop that keeps little for its reverse sweep stops counting."""
    return stop


def stack() -> list[Any]:
    """Make an empty list."""
    return []


def push(values: list[Any], value: Any) -> None:
    """Append to a list."""
    values.append(value)


def pop(values: list[Any]) -> Any:
    """Take the last of a list."""
    return values.pop()


def copied(values: list[Any]) -> list[Any]:
    """Make a list of the same."""
    return values[:]


class Effect(enum.Enum):
    """What an instruction may do besides computing its result."""

    PURE = "pure"  # may be removed, repeated, merged and moved
    READ = "read"  # reads memory: may be removed and repeated while nothing writes
    ALLOCATE = "allocate"  # makes a new object, from memory that it may read: may be removed, not merged
    WRITE = "write"  # must stay where it is


OWN = (
    *(const, pack, getitem, setitem, initialize, accumulate, pick, select, guarded, dim, range_length, common_length),
    *(fitting_length, check_lengths, spread, view, stop),
    *(record, zeros, stack, push, pop, copied, refuse, release, checkpointed),
)

_EFFECTS: dict[Op, Effect] = {
    getitem: Effect.READ,
    setitem: Effect.WRITE,
    initialize: Effect.WRITE,
    accumulate: Effect.WRITE,
    record: Effect.ALLOCATE,
    zeros: Effect.ALLOCATE,
    stack: Effect.ALLOCATE,
    push: Effect.WRITE,
    pop: Effect.WRITE,
    copied: Effect.ALLOCATE,
    refuse: Effect.WRITE,
    release: Effect.WRITE,
    came_from: Effect.ALLOCATE,  # two questions are never one
    np.zeros_like: Effect.ALLOCATE,
}
_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "pos", "matmul"),
    *("invert", "and_", "or_", "xor", "lshift", "rshift", "not_"),
    *("lt", "le", "eq", "ne", "ge", "gt", "is_", "is_not"),
)
_BUILTINS = (abs, bool, complex, divmod, float, int, len, max, min, pow, round, slice)
_NAMED: dict[str, Op] = {op.__name__: op for op in OWN}
_NAMED |= {name: getattr(operator, name) for name in _OPERATORS}
_NAMED |= {op.__name__: op for op in _BUILTINS if op is not builtins.pow}
_NAMED["builtins.pow"] = builtins.pow
_NAMES: dict[Op, str] = {op: name for name, op in _NAMED.items()}


def name_of(op: Op) -> str:
    """The name of a callable in IR text: `mul`, `math.sin`, `np.exp`, `float`, `package.module.function`."""
    if op in _NAMES:
        return _NAMES[op]
    name = op.__name__
    if isinstance(op, Routine):
        return name
    if isinstance(op, Special):
        return f"special.{name}"
    if getattr(math, name, None) is op:
        return f"math.{name}"
    if getattr(np, name, None) is op:
        return f"np.{name}"
    if getattr(np.linalg, name, None) is op:
        return f"np.linalg.{name}"
    return f"{module_of(op)}.{getattr(op, '__qualname__', name)}"


def module_of(op: Op) -> str:
    """The name of the module that a callable is from; methods of built-in types (`str.upper`) have none."""
    return getattr(op, "__module__", None) or "?"


def named(name: str) -> Op:
    """The callable that `name_of` gave this name. Raises KeyError if there is none."""
    if name in _NAMED:
        return _NAMED[name]
    module, _, attribute = name.rpartition(".")
    for prefix, namespace in (("math", math), ("cmath", cmath), ("np", np), ("np.linalg", np.linalg)):
        if module == prefix and hasattr(namespace, attribute):
            found: Op = getattr(namespace, attribute)
            return found
    raise KeyError(name)


def declare(op: Op, name: str, effect: Effect = Effect.PURE) -> None:
    """Make a callable known under a name of its own; the helper functions of derivative rules are."""
    assert _NAMED.get(name, op) is op, name
    _NAMED[name] = op
    _NAMES[op] = name
    _EFFECTS[op] = effect


def effect_of(op: Op) -> Effect:
    """What `op` may do; a callable that is not known here may do anything (`WRITE`)."""
    if op in _EFFECTS:
        return _EFFECTS[op]
    if isinstance(op, Special):
        return Effect.PURE
    name = getattr(op, "__name__", "")
    if op in _NAMES or op in _PURE_NUMPY or op in (getattr(math, name, None), getattr(cmath, name, None)):
        return _EFFECTS.setdefault(op, Effect.PURE)
    return Effect.WRITE


_WRITING_NUMPY = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask", "save", "savetxt", "load")
_PURE_NUMPY: frozenset[Any] = frozenset(
    {function for function in vars(np).values() if isinstance(function, np.ufunc)}
    | {getattr(np, name) for name in np.__all__ if isinstance(getattr(np, name), FunctionType | BuiltinFunctionType)}
    | {getattr(np, name) for name in np.__all__ if type(getattr(np, name)) is type(np.sum)}
    | {getattr(np.linalg, name) for name in np.linalg.__all__ if type(getattr(np.linalg, name)) is type(np.sum)}
    | {np.sinc, np.where, np.clip, np.real, np.imag, np.around, np.round, np.nan_to_num}
    | {np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
    | {
        np.complex64,
        np.complex128,
        np.bool_,
        np.angle,
        np.isneginf,
        np.isposinf,
        np.isreal,
        np.iscomplex,
        np.isclose,
        np.allclose,
    }
) - {getattr(np, name) for name in _WRITING_NUMPY}
# What gives another view of the memory of its first argument.
VIEWS: frozenset[Op] = frozenset(
    {np.transpose, np.reshape, np.expand_dims, np.broadcast_to, np.real, np.imag, np.diagonal, np.squeeze, spread, view}
)
_FRESH_NUMPY = (
    *("append", "arange", "argpartition", "argsort", "argwhere", "array", "bincount", "concatenate", "convolve"),
    *(
        "copy",
        "correlate",
        "cross",
        "cumprod",
        "cumsum",
        "delete",
        "diff",
        "digitize",
        "dot",
        "dstack",
        "empty",
        "empty_like",
    ),
    *("eye", "flatnonzero", "full", "full_like", "hstack", "identity", "interp", "intersect1d", "isin", "kron"),
    *("linspace", "ones", "ones_like", "outer", "partition", "prod", "repeat", "roll", "searchsorted", "setdiff1d"),
    *("sort", "stack", "sum", "take", "tri", "tril", "triu", "union1d", "unique", "vander", "vstack", "where"),
    *("zeros", "zeros_like", "column_stack"),
)
# What gives an array of its own: never one of its arguments, nor a view of one.
FRESH: frozenset[Any] = frozenset(
    {function for function in vars(np).values() if isinstance(function, np.ufunc)}
    | {getattr(operator, name) for name in _OPERATORS}
    | {getattr(np, name) for name in _FRESH_NUMPY}
    | {getattr(np.linalg, name) for name in np.linalg.__all__ if type(getattr(np.linalg, name)) is type(np.sum)}
    | {getitem, record, zeros, stop}
)
# What acts and yet writes to no memory that anybody reads.
WRITES_NOTHING: set[Op] = {print, refuse}
# What raises where lengths do not fit, and does nothing else.
CHECKS: frozenset[Op] = frozenset({common_length, fitting_length, check_lengths})
_DIVIDES: frozenset[Op] = frozenset({operator.truediv, operator.floordiv, operator.mod, divmod, operator.pow, pow})


def may_raise(op: Op) -> bool:
    """Whether a compiled call of `op` can raise (a division by zero, under Numba's error model `python`)."""
    return op in _DIVIDES or op in CHECKS or effect_of(op) is Effect.WRITE
