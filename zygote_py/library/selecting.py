"""Selecting elements of an array and inserting others: `delete`, `insert`, `extract`, ...

    np.delete(x, 2)                the elements but one, copied
    np.extract(c, x)               the elements where c holds, copied
    np.take_along_axis(x, i, 0)    x[i[j, k], k] for each j, k

Which elements are taken has no derivative; those that are taken have that of a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.library.arguments import (
    array,
    dtype_of,
    either,
    flattened,
    is_array,
    is_index_row,
    is_integer,
    is_none,
    is_row,
    is_sequence,
    is_slice,
    itself,
    known,
    known_int,
    optional,
)
from zygote_py.library.registry import Implementation, implements, nested, replaces, text, tuple_text


@implements(np.delete, arr=is_sequence, obj=either(is_integer, is_slice, is_index_row))
def delete(arr: Any, obj: Any) -> Implementation:
    """Return the elements in a row without some of them."""
    flat = flattened(arr)
    if is_integer(obj):

        def without_one(arr: Any, obj: Any) -> Any:
            row = flat(arr)
            n = row.size
            if obj < -n or obj >= n:
                raise IndexError("obj must be less than the len(arr)")
            place = obj + n if obj < 0 else obj
            return np.concatenate((row[:place], row[place + 1 :]))

        return without_one
    indices = itself if is_slice(obj) else flattened(obj)

    def without_several(arr: Any, obj: Any) -> Any:
        row = flat(arr)
        keep = np.ones(row.size, np.bool_)
        keep[indices(obj)] = False
        return row[keep]

    return without_several


@implements(np.insert, arr=is_sequence, obj=either(is_integer, is_index_row), values=is_row, axis=is_none)
def insert(arr: Any, obj: Any, values: Any, axis: object = None) -> Implementation:
    """Return the elements in a row with others put in before the places `obj`."""
    flat, given = flattened(arr), flattened(values)
    dtype = dtype_of(arr)

    def at_one(row: Any, place: Any, added: Any) -> Any:
        n = row.size
        if place < -n or place > n:
            raise IndexError("index is out of bounds for the given array size")
        if place < 0:
            place = place + n
        result = np.empty(n + added.size, dtype)
        result[:place] = row[:place]
        result[place : place + added.size] = added
        result[place + added.size :] = row[place:]
        return result

    if is_integer(obj):
        return lambda arr, obj, values, axis=None: at_one(flat(arr), obj, given(values))
    indices = flattened(obj)

    def at_several(row: Any, places: Any, added: Any) -> Any:
        n, count = row.size, places.size
        if added.size != 1 and added.size != count:
            raise ValueError("shape mismatch: the number of values does not match the number of insertion indices")
        own = np.empty(count, np.int64)
        for i in range(count):
            if places[i] < -n or places[i] > n:
                raise IndexError("index is out of bounds for the given array size")
            own[i] = places[i] + n if places[i] < 0 else places[i]
        # The place in the result: one further for each that goes in before it.
        order = np.argsort(own, kind="mergesort")
        source = np.full(n + count, -1, np.int64)
        for i in range(count):
            source[own[order[i]] + i] = order[i]
        result = np.empty(n + count, dtype)
        taken = 0
        for i in range(n + count):
            if source[i] < 0:
                result[i] = row[taken]
                taken += 1
            else:
                result[i] = added[source[i] if added.size > 1 else 0]
        return result

    def at_places(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
        row, places, added = flat(arr), indices(obj), given(values)
        if places.size == 1:
            return at_one(row, places[0], added)
        return at_several(row, places, added)

    return at_places


@implements(np.extract, condition=is_row, arr=is_row)
def extract(condition: Any, arr: Any) -> Implementation:
    """Return the elements where a condition holds, in a row."""
    holds, flat = flattened(condition), flattened(arr)
    dtype = dtype_of(arr)

    def implementation(condition: Any, arr: Any) -> Any:
        chosen, row = holds(condition), flat(arr)
        if row.size == 0:
            raise ValueError("Cannot extract from an empty array")
        count = 0
        for i in range(chosen.size):
            if chosen[i]:
                if i >= row.size:
                    raise ValueError("condition shape inconsistent with arr shape")
                count += 1
        result = np.empty(count, dtype)
        place = 0
        for i in range(min(row.size, chosen.size)):
            if chosen[i]:
                result[place] = row[i]
                place += 1
        return result

    return implementation


@implements(np.take_along_axis, arr=array(least=1), indices=array(of=types.Integer))
def take_along_axis(arr: Any, indices: Any, axis: object) -> Implementation:
    """Take an element of each line along an axis, or several; the other axes are broadcast."""
    flat = is_none(axis)
    ndim = 1 if flat else arr.ndim
    along = 0 if flat else known_int(axis)
    if along is None or not -ndim <= along < ndim or indices.ndim != ndim:
        return None
    along %= ndim
    message = "`arr` and `indices` dimensions don't match"
    lines = ["source = np.ravel(arr)" if flat else "source = arr"]
    for k in range(ndim):
        lines.append(f"n{k} = indices.shape[{k}]")
        if k != along:
            lines += [
                f"m{k} = source.shape[{k}]",
                f"if m{k} != 1 and n{k} != 1 and m{k} != n{k}:",
                f'    raise ValueError("{message}")',
                f"if n{k} == 1:",
                f"    n{k} = m{k}",
            ]
    lines.append(f"result = np.empty({tuple_text(f'n{k}' for k in range(ndim))}, dtype)")
    place = ", ".join(f"i{k}" if k == along else f"i{k} if indices.shape[{k}] > 1 else 0" for k in range(ndim))
    taken = ", ".join("j" if k == along else f"i{k} if m{k} > 1 else 0" for k in range(ndim))
    body = [f"j = indices[{place}]", f"result[{', '.join(f'i{k}' for k in range(ndim))}] = source[{taken}]"]
    lines += nested([(f"i{k}", f"n{k}") for k in range(ndim)], body)
    return text([*lines, "return result"], dtype=dtype_of(arr))


@implements(np.trim_zeros, filt=array(1), trim=lambda trim: isinstance(known(trim), str))
def trim_zeros(filt: Any, trim: object = "fb") -> Implementation:
    """Return a view of a vector without the zeros at its start and at its end."""
    sides = str(known(trim)).lower()
    front, back = "f" in sides, "b" in sides

    def implementation(filt: Any, trim: Any = "fb") -> Any:
        first, last = 0, len(filt)
        if front:
            while first < len(filt) and filt[first] == 0:
                first += 1
        if back:
            while last > 0 and filt[last - 1] == 0:
                last -= 1
        return filt[first:last]

    return implementation


def _is_row_of_numbers(given: Any) -> bool:
    return is_row(given) and not isinstance(getattr(given, "dtype", None), types.Boolean)


@implements(np.ediff1d, ary=_is_row_of_numbers, to_end=optional(is_row), to_begin=optional(is_row))
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Implementation:
    """Return the differences of neighbours in a row, with others before and after them."""
    captured: dict[str, object] = {"flat": flattened(ary), "dtype": dtype_of(ary)}
    lines = ["row = flat(ary)", "between = max(row.size - 1, 0)"]
    for name, parts in (("to_begin", to_begin), ("to_end", to_end)):
        if is_none(parts):
            lines.append(f"size_{name} = 0")
            continue
        if not np.can_cast(dtype_of(parts), dtype_of(ary)):
            return None
        captured[f"of_{name}"] = flattened(parts)
        lines += [f"{name}_ = of_{name}({name})", f"size_{name} = {name}_.size"]
    lines.append("result = np.empty(size_to_begin + between + size_to_end, dtype)")
    if not is_none(to_begin):
        lines.append("result[:size_to_begin] = to_begin_")
    lines += ["for i in range(between):", "    result[size_to_begin + i] = row[i + 1] - row[i]"]
    if not is_none(to_end):
        lines.append("result[size_to_begin + between :] = to_end_")
    return text([*lines, "return result"], **captured)


@replaces(np.asarray_chkfinite, a=is_array, dtype=is_none)
def asarray_chkfinite(a: Any, dtype: Any = None) -> Any:
    """Return the array itself if all of its elements are finite."""
    for value in np.ravel(a):
        if not np.isfinite(value):
            raise ValueError("array must not contain infs or NaNs")
    return a
