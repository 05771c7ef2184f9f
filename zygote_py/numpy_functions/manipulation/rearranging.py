"""Rearranged elements: flips, rotations, exchanged axes, rolls, repetitions, inserted axes.

    np.flip(m)            m[::-1, ::-1], a view
    np.swapaxes(a, 0, 2)  np.transpose(a, (2, 1, 0)), a view
    np.roll(a, 1)         a new array, filled from two slices

What is a view for Numba is a view here: writing to it writes to the array. `np.broadcast_to`, `np.expand_dims`,
`np.transpose` and `np.reshape` are views that need no implementation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import components_of
from zygote_py.numpy_functions.support.overloads import (
    Implementation,
    array,
    checked_axis,
    dtype_of,
    either,
    flattened,
    implements,
    indented,
    is_array,
    is_integer,
    is_list,
    is_number,
    is_row,
    is_sequence,
    is_shape,
    known,
    known_int,
    lengths_of,
    replaces,
    text,
    tuple_text,
    written,
)

# ------------------------------------------------------------------------------------------------------- flips


@implements(np.flip, m=is_array)
def flip(m: Any) -> Implementation:
    """Reverse every axis."""
    return text([f"return m[{', '.join(['::-1'] * m.ndim) or '()'}]"])


@implements(np.flipud, m=either(array(least=1), lambda m: not is_array(m) and is_sequence(m)))
def flipud(m: Any) -> Implementation:
    """Reverse the first axis."""
    flat = flattened(m)
    return (lambda m: m[::-1, ...]) if isinstance(m, types.Array) else lambda m: np.flipud(flat(m))


@replaces(np.fliplr, m=array(least=2))
def fliplr(m: Any) -> Any:
    """Reverse the second axis."""
    return m[::, ::-1, ...]


@implements(np.rot90, m=array(least=2), k=is_integer)
def rot90(m: Any, k: object = 1) -> Implementation:
    """Turn in the plane of the first two axes, by `k` quarters."""
    axes = tuple_text((1, 0, *range(2, m.ndim)))
    quarters = [
        "m[::1]",  # as Numba types it: in any order
        f"np.transpose(m[::, ::-1, ...], {axes})",
        "m[::-1, ::-1, ...]",
        f"np.transpose(m, {axes})[::, ::-1, ...]",
    ]
    constant = known_int(k)
    if constant is not None:
        return text([f"return {quarters[constant % 4]}"])
    lines = ["quarters = k % 4"]
    for number, turned in enumerate(quarters[:3]):
        lines += [f"if quarters == {number}:", f"    return {turned}"]
    return text([*lines, f"return {quarters[3]}"])


# -------------------------------------------------------------------------------------------------------- axes


@implements(np.swapaxes, a=array(least=1), axis1=is_integer, axis2=is_integer)
def swapaxes(a: Any, axis1: object, axis2: object) -> Implementation:
    """Exchange two axes."""
    first, second = known_int(axis1), known_int(axis2)
    if first is not None and second is not None and all(-a.ndim <= axis < a.ndim for axis in (first, second)):
        axes = list(range(a.ndim))
        axes[first], axes[second] = axes[second], axes[first]
        return text([f"return np.transpose(a, {tuple_text(axes)})"])
    chosen = [f"axis2 if axis1 == {k} else axis1 if axis2 == {k} else {k}" for k in range(a.ndim)]
    checks = [*_checked(a.ndim, "np.swapaxes", "axis1"), *_checked(a.ndim, "np.swapaxes", "axis2")]
    return text([*checks, f"return np.transpose(a, {tuple_text(chosen)})"])


@implements(np.moveaxis, a=array(least=1))
def moveaxis(a: Any, source: object, destination: object) -> Implementation:
    """Put axes into other places; the others keep their order."""
    sources, destinations = _places(source), _places(destination)
    if sources is not None and destinations is not None:
        places = (*sources, *destinations)
        if len(sources) != len(destinations) or not all(-a.ndim <= place < a.ndim for place in places):
            return None
        moved = [place % a.ndim for place in sources]
        order = [axis for axis in range(a.ndim) if axis not in moved]
        for to, axis in sorted(zip((place % a.ndim for place in destinations), moved, strict=True)):
            order.insert(to, axis)
        return text([f"return np.transpose(a, {tuple_text(order)})"])
    if not is_integer(source) or not is_integer(destination):
        return None
    # The axis at k: the one moved there, else number k among the axes without the moved one and its destination.
    lines = [
        *_checked(a.ndim, "np.moveaxis", "source"),
        *_checked(a.ndim, "np.moveaxis", "destination"),
        *(f"k{k} = {k} if {k} < destination else {k - 1}" for k in range(a.ndim)),
    ]
    axes = [f"source if destination == {k} else k{k} if k{k} < source else k{k} + 1" for k in range(a.ndim)]
    return text([*lines, f"return np.transpose(a, {tuple_text(axes)})"])


def _places(given: object) -> tuple[int, ...] | None:
    """Return the integers of an argument that is an integer or a tuple, if they are known when compiling."""
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


def _are_arrays(*arys: object) -> bool:
    return bool(arys) and all(map(is_array, arys))


@implements(np.atleast_1d, where=_are_arrays)
def atleast_1d(*arys: Any) -> Implementation:
    """Return arrays with at least one axis."""
    return _at_least(arys, 1)


@implements(np.atleast_2d, where=_are_arrays)
def atleast_2d(*arys: Any) -> Implementation:
    """Return arrays with at least two axes: a vector becomes a row."""
    return _at_least(arys, 2)


@implements(np.atleast_3d, where=_are_arrays)
def atleast_3d(*arys: Any) -> Implementation:
    """Return arrays with at least three axes: a vector becomes the middle one, a matrix the first two."""
    return _at_least(arys, 3)


def _at_least(arrays: tuple[Any, ...], ndim: int) -> Implementation:
    names = [f"a{j}" for j in range(len(arrays))]
    results = [_with_axes(name, array, ndim) for name, array in zip(names, arrays, strict=True)]
    result = results[0] if len(results) == 1 else tuple_text(results)
    return written([f"def at_least({', '.join(names)}):", f"    return {result}"])


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


@implements(np.broadcast_arrays, where=lambda *args: all(map(is_row, args)))
def broadcast_arrays(*args: Any) -> Implementation:
    """Return views of all arrays in their common shape, in a list."""
    names = [f"a{j}" for j in range(len(args))]
    rows = {name: flattened(arg) for name, arg in zip(names, args, strict=True) if not is_array(arg)}
    ndims = [arg.ndim if isinstance(arg, types.Array) else 1 for arg in args]
    ndim = max(ndims, default=0)
    if not ndim:
        return None
    message = "shape mismatch: objects cannot be broadcast to a single shape"
    lines = [f"{name} = row_of_{name}({name})" for name in rows]
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
    lines += [f"return [{', '.join(f'np.broadcast_to({name}, {shape})' for name in names)}]"]
    captured = {f"row_of_{name}": row for name, row in rows.items()}
    return written([f"def broadcast_arrays({', '.join(names)}):", *indented(lines)], **captured)


# ---------------------------------------------------------------------------------------------------- new arrays


@implements(np.roll, a=is_row, shift=lambda shift: is_integer(shift) or isinstance(shift, types.Boolean))
def roll(a: Any, shift: object) -> Implementation:
    """Move all elements on, in a row; those that leave at the end come in at the start."""
    if is_number(a):
        return lambda a, shift: np.asarray(a)
    lines = [
        "row = flat(a)",
        "n = row.size",
        "result = np.empty(n, dtype)",
        "if n > 0:",
        "    first = int(shift) % n",
        "    result[first:] = row[: n - first]",
        "    result[:first] = row[n - first :]",
        f"return result.reshape({'a.shape' if isinstance(a, types.Array) else 'n'})",
    ]
    return text(lines, flat=flattened(a), dtype=dtype_of(a))


def _are_counts(given: Any) -> bool:
    return is_integer(given) or ((is_array(given) or is_list(given)) and is_integer(given.dtype))


@implements(np.repeat, a=is_row, repeats=_are_counts)
def repeat(a: Any, repeats: Any) -> Implementation:
    """Return each element several times in a row."""
    flat, dtype = flattened(a), dtype_of(a)
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
    times = flattened(repeats)

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


@implements(np.resize, a=is_row, new_shape=is_shape)
def resize(a: Any, new_shape: Any) -> Implementation:
    """Return the elements in another shape, repeated from the start where there are too few."""
    lengths = lengths_of("new_shape", new_shape)
    shape = "new_shape" if is_integer(new_shape) else tuple_text(lengths)
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
    return text(lines, flat=flattened(a), dtype=dtype_of(a))
