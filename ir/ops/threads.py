"""Operations of the threads of a device: where a thread is in the grid, barriers, shared memory, atomic updates.

    thread_index(axis)        cuda.threadIdx.x          grid(ndim, axis)          cuda.grid(ndim)[axis]
    block_index(axis)         cuda.blockIdx.x           grid_step(ndim, axis)     cuda.gridsize(ndim)[axis]
    block_size(axis)          cuda.blockDim.x           blocks(axis)              cuda.gridDim.x
    barrier(x, y)             cuda.syncthreads(), after which writes of others to `x` and `y` are seen
    cube_root(x)              cuda.cbrt(x)
    fast_sin(x)               cuda.libdevice.fast_sinf(x), and so on, in single precision
    shared(n, m)              cuda.shared.array((n, m), dtype)
    atomic_add(x, v, i, j)    cuda.atomic.add(x, (i, j), v), and so on; each returns the element as it was

The interpreter runs one thread, which is alone in the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from zygote_py.ir.ops.table import Cost, Effect, Op, Role, primitive

_REGISTER = {"cost": Cost.CHEAP, "remade": True, "hoistable": True, "duplicable": True, "nonnegative": True}


@primitive(**_REGISTER)
def thread_index(axis: int) -> int:
    """Return the number of the thread in its block."""
    return 0


@primitive(**_REGISTER)
def block_index(axis: int) -> int:
    """Return the number of the block."""
    return 0


@primitive(**_REGISTER)
def block_size(axis: int) -> int:
    """Return the number of threads in a block."""
    return 1


@primitive(**_REGISTER)
def blocks(axis: int) -> int:
    """Return the number of blocks."""
    return 1


@primitive(**_REGISTER)
def grid(ndim: int, axis: int) -> int:
    """Return the number of the thread in a grid of this many axes, on one of them."""
    return 0


@primitive(**_REGISTER)
def grid_step(ndim: int, axis: int) -> int:
    """Return the number of threads in a grid of this many axes, on one of them."""
    return 1


@primitive(effect=Effect.WRITE, role=Role.BARRIER)
def barrier(*arrays: Any) -> None:
    """Wait for the other threads of the block, which may have written to the arrays."""


@primitive(cost=Cost.FUNCTION)
def cube_root(x: float) -> float:
    """Return the cube root of a number that is not negative."""
    return float(np.cbrt(x))


_FUNCTION = {"cost": Cost.FUNCTION, "remade": True}


@primitive(**_FUNCTION)
def fast_sin(x: float) -> float:
    """Return the sine, with few bits right."""
    return math.sin(x)


@primitive(**_FUNCTION)
def fast_cos(x: float) -> float:
    """Return the cosine, with few bits right."""
    return math.cos(x)


@primitive(**_FUNCTION)
def fast_tan(x: float) -> float:
    """Return the tangent, with few bits right."""
    return math.tan(x)


@primitive(**_FUNCTION)
def fast_exp(x: float) -> float:
    """Return e to the x, with few bits right."""
    return math.exp(x)


@primitive(**_FUNCTION)
def fast_exp10(x: float) -> float:
    """Return 10 to the x, with few bits right."""
    return float(np.power(10.0, x))


@primitive(**_FUNCTION)
def fast_log(x: float) -> float:
    """Return the natural logarithm, with few bits right."""
    return math.log(x)


@primitive(**_FUNCTION)
def fast_log2(x: float) -> float:
    """Return the logarithm to base 2, with few bits right."""
    return math.log2(x)


@primitive(**_FUNCTION)
def fast_log10(x: float) -> float:
    """Return the logarithm to base 10, with few bits right."""
    return math.log10(x)


@primitive(**_FUNCTION)
def fast_pow(x: float, y: float) -> float:
    """Return x to the y, with few bits right."""
    return float(np.power(x, y))


@primitive(**_FUNCTION)
def fast_divide(x: float, y: float) -> float:
    """Return x divided by y, with few bits right."""
    return float(np.divide(x, y))


@primitive(effect=Effect.ALLOCATE, role=Role.ALLOCATE, contents="unset", fresh=True)
def shared(*shape: int) -> Any:
    """Return an array that the threads of a block share."""
    return np.empty(shape, object)


def _updated(x: Any, index: tuple[int, ...], update: Callable[[Any], Any]) -> Any:
    place = index[0] if len(index) == 1 else index
    old = x[place]
    x[place] = update(old)
    return old


@primitive(effect=Effect.WRITE)
def atomic_add(x: Any, value: Any, *index: int) -> Any:
    """Add to an element; return what it was."""
    return _updated(x, index, lambda old: old + value)


@primitive(effect=Effect.WRITE)
def atomic_sub(x: Any, value: Any, *index: int) -> Any:
    """Subtract from an element; return what it was."""
    return _updated(x, index, lambda old: old - value)


@primitive(effect=Effect.WRITE)
def atomic_max(x: Any, value: Any, *index: int) -> Any:
    """Raise an element to a value, if it is less; return what it was."""
    return _updated(x, index, lambda old: max(old, value))


@primitive(effect=Effect.WRITE)
def atomic_min(x: Any, value: Any, *index: int) -> Any:
    """Lower an element to a value, if it is greater; return what it was."""
    return _updated(x, index, lambda old: min(old, value))


@primitive(effect=Effect.WRITE, role=Role.EXTREME)
def raise_to(x: Any, value: Any, *index: int) -> Any:
    """Do as `atomic_max`, where only the reverse sweep uses what the element was."""
    return atomic_max(x, value, *index)


@primitive(effect=Effect.WRITE, role=Role.EXTREME)
def lower_to(x: Any, value: Any, *index: int) -> Any:
    """Do as `atomic_min`, where only the reverse sweep uses what the element was."""
    return atomic_min(x, value, *index)


@primitive(effect=Effect.WRITE, silent=True)
def latch(value: Any) -> Any:
    """Return the value, to the last bit: it is not computed again elsewhere, where it might be rounded differently."""
    return value


@primitive(effect=Effect.WRITE)
def atomic_exch(x: Any, value: Any, *index: int) -> Any:
    """Set an element; return what it was."""
    return _updated(x, index, lambda old: value)


@primitive(effect=Effect.WRITE)
def atomic_and_(x: Any, value: Any, *index: int) -> Any:
    """Set an element to its bitwise and with a value; return what it was."""
    return _updated(x, index, lambda old: old & value)


@primitive(effect=Effect.WRITE)
def atomic_or_(x: Any, value: Any, *index: int) -> Any:
    """Set an element to its bitwise or with a value; return what it was."""
    return _updated(x, index, lambda old: old | value)


@primitive(effect=Effect.WRITE)
def atomic_xor(x: Any, value: Any, *index: int) -> Any:
    """Set an element to its bitwise exclusive or with a value; return what it was."""
    return _updated(x, index, lambda old: old ^ value)


@primitive(effect=Effect.WRITE)
def atomic_inc(x: Any, value: Any, *index: int) -> Any:
    """Count an element up to a value, after which it starts at 0; return what it was."""
    return _updated(x, index, lambda old: 0 if old >= value else old + 1)


@primitive(effect=Effect.WRITE)
def atomic_dec(x: Any, value: Any, *index: int) -> Any:
    """Count an element down, from 0 or what is above a value to that; return what it was."""
    return _updated(x, index, lambda old: value if old == 0 or old > value else old - 1)


_ALL: tuple[Op, ...] = (
    *(atomic_add, atomic_sub, atomic_max, atomic_min, atomic_exch),
    *(atomic_and_, atomic_or_, atomic_xor, atomic_inc, atomic_dec),
)
ATOMIC: dict[str, Op] = {op.__name__.removeprefix("atomic_"): op for op in _ALL}
# By their names in numba.cuda.libdevice.
_FAST: tuple[Op, ...] = (fast_sin, fast_cos, fast_tan, fast_exp, fast_exp10, fast_log, fast_log2, fast_log10, fast_pow)
FAST: dict[str, Op] = {**{f"{op.__name__}f": op for op in _FAST}, "fast_fdividef": fast_divide}


def is_of_threads(op: Op) -> bool:
    """Return whether an operation is one of the threads of a device."""
    return getattr(op, "__module__", None) == __name__
