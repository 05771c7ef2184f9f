"""Elements by index or by condition: `take`, `select`, `extract`, `delete`, `insert`, ...

    np.take(x, k)                  x.reshape(x.size)[k]
    np.take(x, indices, axis=1)    result[:, i] = x[:, indices[i]]
    np.take_along_axis(x, i, 0)    x[i[j, k], k] for each j, k
    np.select(conditions, xs, d)   np.where(conditions[0], xs[0], np.where(conditions[1], xs[1], d))
    np.extract(c, x)               the elements where c holds, copied
    np.delete(x, 2)                the elements but one, copied

Which elements are taken has no derivative; those that are taken have that of a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from zygote_py.numpy_functions.support.overloads import (
    Implementation,
    array,
    by_axis,
    dtype_of,
    either,
    flattened,
    implements,
    in_c_order,
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
    nested,
    optional,
    replaces,
    text,
    tuple_text,
    written,
)


@implements(np.take, a=is_array, indices=either(is_integer, is_row), axis=optional(is_integer))
def take(a: Any, indices: Any, axis: Any = None) -> Implementation:
    """Return the elements with these numbers; along an axis, the slices."""
    if not is_none(axis):
        return _along_axis(a, indices, axis)
    if is_integer(indices):
        element = element_at(a)

        def one(a: Any, indices: Any, axis: Any = None) -> Any:
            if indices > a.size - 1 or indices < -a.size:
                raise IndexError("Index out of bounds")
            return element(a, indices + a.size if indices < 0 else indices)

        return one
    flat, flat_indices = in_c_order, flattened(indices)
    shaped = isinstance(indices, types.Array) and indices.ndim != 1
    dtype = dtype_of(a)

    def several(a: Any, indices: Any, axis: Any = None) -> Any:
        values = flat(a)
        places = flat_indices(indices)
        result = np.empty(places.size, dtype)
        for i in range(places.size):
            place = places[i]
            if place > a.size - 1 or place < -a.size:
                raise IndexError("Index out of bounds")
            result[i] = values[place + a.size if place < 0 else place]
        return result.reshape(indices.shape) if shaped else result

    return several


def _along_axis(a: types.Array, indices: Any, axis: Any) -> Implementation:
    error = "ValueError('axis is out of bounds')"
    if is_integer(indices):
        return text(by_axis(axis, a.ndim, error, lambda k: [_slice_of(a.ndim, k)]))
    if not isinstance(indices, types.Array | types.List | types.BaseTuple) or getattr(indices, "ndim", 1) != 1:
        return None
    lines = by_axis(axis, a.ndim, error, lambda k: _slices_of(a.ndim, k))
    return text(lines, flat_indices=flattened(indices), dtype_=dtype_of(a))


def _place(ndim: int, axis: int, index: str) -> str:
    return ", ".join(index if k == axis else ":" for k in range(ndim))


def _slice_of(ndim: int, axis: int) -> str:
    return f"return a[{_place(ndim, axis, 'indices')}]{'' if ndim == 1 else '.copy()'}"


def _slices_of(ndim: int, axis: int) -> list[str]:
    shape = ", ".join("places.size" if k == axis else f"a.shape[{k}]" for k in range(ndim))
    return [
        "places = flat_indices(indices)",
        f"result = np.empty(({shape},), dtype_)",
        "for i in range(places.size):",
        f"    result[{_place(ndim, axis, 'i')}] = a[{_place(ndim, axis, 'places[i]')}]",
        "return result",
    ]


def element_at(a: types.Array) -> Callable[[Any, int], Any]:
    """Return the function that reads the k-th element of such an array in C order."""
    if a.ndim == 1:
        return lambda a, k: a[k]
    if a.layout == "C":
        return lambda a, k: a.reshape(a.size)[k]
    places = [f"i{axis}" for axis in range(a.ndim)]
    lines = ["def element_at(a, k):"]
    for axis in range(a.ndim - 1, 0, -1):
        lines += [f"    i{axis} = k % a.shape[{axis}]", f"    k = k // a.shape[{axis}]"]
    return written([*lines, "    i0 = k", f"    return a[{', '.join(places)}]"])


def _is_list_or_tuple(given: object) -> bool:
    return isinstance(given, types.UniTuple | types.List)


@implements(np.select, condlist=_is_list_or_tuple, choicelist=_is_list_or_tuple)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Implementation:
    """Select the elements of the array whose condition holds first; elsewhere `default`."""
    lines = ["result = default * np.ones(choicelist[0].shape, dtype_)"]
    if isinstance(condlist, types.List) or isinstance(choicelist, types.List):
        lines = [
            "if len(condlist) != len(choicelist):",
            '    raise ValueError("list of cases must be same length as list of conditions")',
            *lines,
            "for k in range(len(condlist) - 1, -1, -1):",
            "    result = np.where(condlist[k], choicelist[k], result)",
        ]
    elif len(condlist) != len(choicelist):
        return None
    else:
        places = range(len(condlist) - 1, -1, -1)
        lines += [f"result = np.where(condlist[{k}], choicelist[{k}], result)" for k in places]
    return text([*lines, "return result"], dtype_=dtype_of(choicelist.dtype))


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
        at = place + n if place < 0 else place
        result = np.empty(n + added.size, dtype)
        result[:at] = row[:at]
        result[at : at + added.size] = added
        result[at + added.size :] = row[at:]
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
        return at_one(row, places[0], added) if places.size == 1 else at_several(row, places, added)

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
        if np.any(chosen[row.size :]):
            raise ValueError("condition shape inconsistent with arr shape")
        result = np.empty(np.count_nonzero(chosen), dtype)
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
