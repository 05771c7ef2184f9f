"""Elements in another order: flips, rotations, axes exchanged, rolls, repetitions, axes put in.

    np.flip(m)            m[::-1, ::-1], a view
    np.swapaxes(a, 0, 2)  np.transpose(a, (2, 1, 0)), a view
    np.roll(a, 1)         a new array, filled from two slices

What is a view for Numba is a view here: writing to it writes to the array. `np.broadcast_to`, `np.expand_dims`,
`np.transpose` and `np.reshape` are views that need no implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir.types import components_of
from zygote_py.library.arguments import Given, dtype_of, is_integer, is_number, known, known_int
from zygote_py.library.flat import flattened
from zygote_py.library.registry import implements
from zygote_py.library.written import checked_axis, indented, tuple_text, written

Implementation = Callable[..., Any] | None


# ------------------------------------------------------------------------------------------------------- flips


@implements(np.flip)
def flip(m: Given) -> Implementation:
    """Reverse every axis."""
    if not isinstance(m, types.Array):
        return None
    if not m.ndim:
        return lambda m: m[()]
    return written(["def flip(m):", f"    return m[{', '.join(['::-1'] * m.ndim)}]"])


@implements(np.flipud)
def flipud(m: Given) -> Implementation:
    """Reverse the first axis."""
    if not isinstance(m, types.Array):
        return _of_sequence(m, np.flipud, "m")

    def implementation(m: Any) -> Any:
        return m[::-1, ...]

    return implementation if m.ndim >= 1 else None


@implements(np.fliplr)
def fliplr(m: Given) -> Implementation:
    """Reverse the second axis."""
    if not isinstance(m, types.Array):
        return None

    def implementation(m: Any) -> Any:
        return m[::, ::-1, ...]

    return implementation if m.ndim >= 2 else None


@implements(np.rot90)
def rot90(m: Given, k: object = 1) -> Implementation:
    """Turn in the plane of the first two axes, by `k` quarters."""
    if not isinstance(m, types.Array) or m.ndim < 2 or not is_integer(k):
        return None
    axes = tuple_text((1, 0, *range(2, m.ndim)))
    quarters = [
        "m[::1]",  # as Numba types it: in any order
        f"np.transpose(m[::, ::-1, ...], {axes})",
        "m[::-1, ::-1, ...]",
        f"np.transpose(m, {axes})[::, ::-1, ...]",
    ]
    constant = known_int(k)
    if constant is not None:
        return written(["def rot90(m, k=1):", f"    return {quarters[constant % 4]}"])
    lines = ["quarters = k % 4"]
    for number, text in enumerate(quarters[:3]):
        lines += [f"if quarters == {number}:", f"    return {text}"]
    return written(["def rot90(m, k=1):", *indented([*lines, f"return {quarters[3]}"])])


# -------------------------------------------------------------------------------------------------------- axes


@implements(np.swapaxes)
def swapaxes(a: Given, axis1: object, axis2: object) -> Implementation:
    """Exchange two axes."""
    if not isinstance(a, types.Array) or not a.ndim or not is_integer(axis1) or not is_integer(axis2):
        return None
    header = "def swapaxes(a, axis1, axis2):"
    first, second = known_int(axis1), known_int(axis2)
    if first is not None and second is not None and all(-a.ndim <= axis < a.ndim for axis in (first, second)):
        axes = list(range(a.ndim))
        axes[first], axes[second] = axes[second], axes[first]
        return written([header, f"    return np.transpose(a, {tuple_text(axes)})"])
    chosen = [f"axis2 if axis1 == {k} else axis1 if axis2 == {k} else {k}" for k in range(a.ndim)]
    checks = [*_checked(a.ndim, "np.swapaxes", "axis1"), *_checked(a.ndim, "np.swapaxes", "axis2")]
    return written([header, *indented([*checks, f"return np.transpose(a, {tuple_text(chosen)})"])])


@implements(np.moveaxis)
def moveaxis(a: Given, source: object, destination: object) -> Implementation:
    """Put axes into other places; the others keep their order."""
    if not isinstance(a, types.Array) or not a.ndim:
        return None
    sources, destinations = _places(source), _places(destination)
    if sources is not None and destinations is not None:
        places = (*sources, *destinations)
        if len(sources) != len(destinations) or not all(-a.ndim <= place < a.ndim for place in places):
            return None
        moved = [place % a.ndim for place in sources]
        order = [axis for axis in range(a.ndim) if axis not in moved]
        for to, axis in sorted(zip((place % a.ndim for place in destinations), moved, strict=True)):
            order.insert(to, axis)
        text = tuple_text(order)
        return written(["def moveaxis(a, source, destination):", f"    return np.transpose(a, {text})"])
    if not is_integer(source) or not is_integer(destination):
        return None
    # What stands at k: the axis moved there, else the axis that is k without the moved one and the place kept for it.
    lines = [
        *_checked(a.ndim, "np.moveaxis", "source"),
        *_checked(a.ndim, "np.moveaxis", "destination"),
        *(f"k{k} = {k} if {k} < destination else {k - 1}" for k in range(a.ndim)),
    ]
    axes = [f"source if destination == {k} else k{k} if k{k} < source else k{k} + 1" for k in range(a.ndim)]
    header = "def moveaxis(a, source, destination):"
    return written([header, *indented([*lines, f"return np.transpose(a, {tuple_text(axes)})"])])


def _places(given: object) -> tuple[int, ...] | None:
    """The integers of an argument that is an integer or a tuple, if they are known when compiling."""
    one = known_int(given)
    if one is not None:
        return (one,)
    items = components_of(given) if isinstance(given, types.BaseTuple) else known(given)
    if not isinstance(items, tuple):
        return None
    found = [known_int(item) for item in items]
    return None if None in found else tuple(found)  # type: ignore[arg-type]


def _checked(ndim: int, name: str, variable: str) -> list[str]:
    message = f"{name}: Argument {variable} out of bounds for dimensions of the array"
    return checked_axis(variable, ndim, f'ValueError("{message}")')


@implements(np.atleast_1d)
def atleast_1d(*arys: Given) -> Implementation:
    """Give arrays at least one axis."""
    return _at_least("atleast_1d", arys, 1)


@implements(np.atleast_2d)
def atleast_2d(*arys: Given) -> Implementation:
    """Give arrays at least two axes: a vector becomes a row."""
    return _at_least("atleast_2d", arys, 2)


@implements(np.atleast_3d)
def atleast_3d(*arys: Given) -> Implementation:
    """Give arrays at least three axes: a vector becomes the middle one, a matrix the first two."""
    return _at_least("atleast_3d", arys, 3)


def _at_least(name: str, arrays: tuple[Given, ...], ndim: int) -> Implementation:
    if not arrays or not all(isinstance(array, types.Array) for array in arrays):
        return None
    names = [f"a{j}" for j in range(len(arrays))]
    results = [_with_axes(name, array, ndim) for name, array in zip(names, arrays, strict=True)]
    return written(
        [
            f"def {name}({', '.join(names)}):",
            f"    return {results[0] if len(results) == 1 else tuple_text(results)}",
        ]
    )


def _with_axes(name: str, array: types.Array, ndim: int) -> str:
    if array.ndim >= ndim:
        return name
    lengths = [f"{name}.shape[{axis}]" for axis in range(array.ndim)]
    if ndim > 1 and array.ndim < 2:
        lengths = ["1", *(lengths or ["1"])]
    if ndim > len(lengths):
        lengths += ["1"]
    if array.layout in "CF":
        return f"{name}.reshape({tuple_text(lengths)})"
    return f"{name}[{', '.join('None' if length == '1' else ':' for length in lengths)}]"


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Given) -> Implementation:
    """Give views of all arrays in their common shape, in a list."""
    rows = [None if isinstance(arg, types.Array) else flattened(arg) for arg in args]
    if any(row is None and not isinstance(arg, types.Array) for row, arg in zip(rows, args, strict=True)):
        return None
    ndims = [arg.ndim if isinstance(arg, types.Array) else 1 for arg in args]
    ndim = max(ndims, default=0)
    if not ndim:
        return None
    names = [f"a{j}" for j in range(len(args))]
    message = "shape mismatch: objects cannot be broadcast to a single shape"
    lines = [f"{name} = row_of_{name}({name})" for name, row in zip(names, rows, strict=True) if row is not None]
    for axis in range(ndim):
        lines.append(f"n{axis} = 1")
        for name, own in zip(names, ndims, strict=True):
            if axis >= ndim - own:
                length = f"{name}.shape[{axis - ndim + own}]"
                lines += [
                    f"if n{axis} == 1:",
                    f"    n{axis} = {length}",
                    f"elif {length} != 1 and {length} != n{axis}:",
                    f'    raise ValueError("{message}")',
                ]
    shape = tuple_text(f"n{axis}" for axis in range(ndim))
    views = [f"np.broadcast_to({name}, {shape})" for name in names]
    return written(
        [f"def broadcast_arrays({', '.join(names)}):", *indented([*lines, f"return [{', '.join(views)}]"])],
        **{f"row_of_{name}": row for name, row in zip(names, rows, strict=True) if row is not None},
    )


# ---------------------------------------------------------------------------------------------------- new arrays


@implements(np.roll)
def roll(a: Given, shift: object) -> Implementation:
    """Move all elements on, in a row; those that leave at the end come in at the start."""
    if not is_integer(shift) and not isinstance(shift, types.Boolean):
        return None
    flat = flattened(a)
    if flat is None:
        return None
    if is_number(a):

        def alone(a: Any, shift: Any) -> Any:
            return np.asarray(a)

        return alone
    shape = "a.shape" if isinstance(a, types.Array) else "n"
    lines = [
        "row = flat(a)",
        "n = row.size",
        "result = np.empty(n, dtype)",
        "if n > 0:",
        "    first = int(shift) % n",
        "    result[first:] = row[: n - first]",
        "    result[:first] = row[n - first :]",
        f"return result.reshape({shape})",
    ]
    return written(["def roll(a, shift):", *indented(lines)], flat=flat, dtype=dtype_of(a))


@implements(np.repeat)
def repeat(a: Given, repeats: object) -> Implementation:
    """Give each element several times in a row."""
    flat = flattened(a)
    if flat is None:
        return None
    dtype = dtype_of(a)
    if is_integer(repeats):

        def equally(a: Any, repeats: Any) -> Any:
            if repeats < 0:
                raise ValueError("negative dimensions are not allowed")
            row = flat(a)
            result = np.empty(row.size * repeats, dtype)
            for i in range(row.size):
                result[i * repeats : (i + 1) * repeats] = row[i]
            return result

        return equally
    if not isinstance(repeats, types.Array | types.List | types.ListType) or not is_integer(repeats.dtype):
        return None
    times = flattened(repeats)
    if times is None:
        return None

    def each(a: Any, repeats: Any) -> Any:
        row = flat(a)
        counts = times(repeats)
        total = 0
        for j in range(counts.size):
            if counts[j] < 0:
                raise ValueError("negative dimensions are not allowed")
            total += counts[j]
        if counts.size == 1:
            total = counts[0] * row.size
        elif counts.size != row.size:
            raise ValueError("operands could not be broadcast together")
        result = np.empty(total, dtype)
        place = 0
        for i in range(row.size):
            count = counts[i if counts.size > 1 else 0]
            result[place : place + count] = row[i]
            place += count
        return result

    return each


@implements(np.resize)
def resize(a: Given, new_shape: Given) -> Implementation:
    """Give the elements in a row, again from the start where there are too few, in another shape."""
    flat = flattened(a)
    if flat is None:
        return None
    if is_integer(new_shape):
        lengths, shape = ["new_shape"], "new_shape"
    elif isinstance(new_shape, types.BaseTuple) and len(new_shape) and all(map(is_integer, components_of(new_shape))):
        lengths = [f"new_shape[{axis}]" for axis in range(len(new_shape))]
        shape = tuple_text(lengths)
    else:
        return None
    lines = [
        "row = flat(a)",
        f"if {' or '.join(f'{length} < 0' for length in lengths)}:",
        '    raise ValueError("All elements of `new_shape` must be non-negative")',
        f"size = {' * '.join(lengths)}",
        "n = row.size",
        "if n == 0:",
        f"    return np.zeros({shape}, dtype)",
        "if size <= n:",
        f"    return row[:size].reshape({shape})",
        "result = np.empty(size, dtype)",
        "for i in range(size):",
        "    result[i] = row[i % n]",
        f"return result.reshape({shape})",
    ]
    return written(["def resize(a, new_shape):", *indented(lines)], flat=flat, dtype=dtype_of(a))


def _of_sequence(m: Given, function: Callable[..., Any], name: str) -> Implementation:
    """`function` of a tuple or a list, made an array of one axis."""
    flat = flattened(m)
    if flat is None or is_number(m):
        return None
    lines = [f"def implementation({name}):", f"    return function(flat({name}))"]
    return written(lines, flat=flat, function=function)
