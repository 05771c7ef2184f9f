"""New arrays, copies of arrays and views of arrays: the NumPy calls with special lowerings.

    np.ones((n, 3))              %t = record %n, 3 : f64[:, :]             x.reshape(n, -1)     np.reshape %x, %n, -1
                                 setitem %t, 1.0                           x.T                  np.transpose %x
    x.astype(np.float32)         np.copy %x : f32[:]                       np.ravel(x)          np.reshape %x, -1
    np.array([a, b])             record and `initialize` of each           np.sin(x, out)       setitem %out, %t

Tuples among the arguments are flattened. The element type and the layout are those of Numba's result. A method is
looked up as NumPy's function of its name. `call` returns None for everything else, which becomes an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.frontend import values
from zygote_py.frontend.arrays import check_overlap, fill, is_array, number, shares_base
from zygote_py.frontend.checks import check_out
from zygote_py.frontend.emitter import Emitter
from zygote_py.frontend.iteration import INT, product, shape_of
from zygote_py.frontend.values import Bundle, components, constant, plain
from zygote_py.ir import ops
from zygote_py.ir.core import Const, Operand, Type
from zygote_py.ir.types import is_scalar

Form = Callable[[Emitter, dict[str, Bundle], Type], "Bundle | None"]


def call(at: Emitter, callee: object, args: list[Bundle], keywords: dict[str, Bundle], type_: Type) -> Bundle | None:
    """Return the value of a NumPy call that is not simply an instruction of the same name."""
    type_ = plain(type_)
    if isinstance(callee, np.ufunc):
        taken = callee.nin if callee.nout == 1 else len(args)
    else:
        taken = next((count for function, count in _TAKE_OUT if function is callee), len(args))
    if "out" in keywords and is_array(keywords["out"].type):
        args, keywords = [*args, keywords["out"]], {word: arg for word, arg in keywords.items() if word != "out"}
        taken = len(args) - 1
    if len(args) == taken + 1 and is_array(args[-1].type):
        return _into(at, callee, args, keywords, type_)
    try:
        names, form = FORMS[callee]
    except (KeyError, TypeError):
        return None
    if names[-1].startswith("*") and len(args) > len(names):
        rest = args[len(names) - 1 :]
        packed = types.Tuple([part.type for part in rest])
        args = [*args[: len(names) - 1], Bundle(packed, tuple(leaf for part in rest for leaf in part.leaves))]
    if len(args) > len(names):
        return None
    given = dict(zip(names, args, strict=False))
    for keyword, value in keywords.items():
        given[next((name for name in names if name.strip("*") == keyword), "array")] = value
    return form(at, given, type_)


def _into(at: Emitter, callee: object, args: list[Bundle], keywords: dict[str, Bundle], type_: Type) -> Bundle | None:
    """Lower a call of a function whose result goes to a given array."""
    *taken, out = args
    assert callable(callee)
    computed = numba_adapter.result_type(callee, [plain(arg.type) for arg in taken])
    if computed is None or keywords or any(len(arg.leaves) != 1 for arg in taken):
        name = getattr(callee, "__name__", "")
        raise at.refuse("an array for the result is not supported here", "assign the result: `y[:] = f(x)`", name)
    operands = [arg.leaves[0] for arg in taken]
    check_overlap(at, out.leaves[0], operands)
    if callee is np.dot and any(shares_base(out.leaves[0], operand) for operand in operands):
        raise at.refuse("`np.dot` writes to an array that it reads", "give it another array for the result", "dot")
    result = out.leaves[0].type
    if callee in _OF_ANY_TYPE and isinstance(result, types.Array) and isinstance(computed, types.Array):
        if result.ndim != computed.ndim:
            raise at.refuse("the array for the result does not have its shape", "give it one that does", "out")
        computed = computed.copy(dtype=result.dtype)
    made = at.emit(callee, operands, computed)
    if callee in _OF_ANY_TYPE:
        for own, given in zip(shape_of(at, made), shape_of(at, out.leaves[0]), strict=True):
            at.emit(check_out, (own, given), types.none)
    fill(at, out.leaves[0], Bundle(computed, (made,)))
    return Bundle(type_, out.leaves)


# ---------------------------------------------------------------------------------------------------- new arrays


def lengths(at: Emitter, shape: Bundle) -> list[Operand]:
    """Return the operands of a shape, an integer or a tuple of integers."""
    parts = components(shape) if values.is_tuple(shape.type) else (shape,)
    return [at.cast(number(at, part), INT) for part in parts]


def _made(at: Emitter, op: ops.Op, shape: Sequence[Operand], type_: Type) -> Bundle | None:
    if not isinstance(type_, types.Array) or not is_scalar(type_.dtype):
        return None
    return Bundle(type_, (at.emit(op, shape, type_),))


def _filled(at: Emitter, shape: Sequence[Operand], value: Bundle, type_: Type) -> Bundle | None:
    made = _made(at, ops.record, shape, type_)
    if made is not None:
        fill(at, made.leaves[0], value)
    return made


def _one(type_: Type) -> Bundle:
    dtype = getattr(type_, "dtype", types.float64)
    return Bundle(dtype, (constant(1, dtype),))


def _empty(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _made(at, ops.record, lengths(at, given["shape"]), type_)


def _zeros(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _made(at, ops.zeros, lengths(at, given["shape"]), type_)


def _ones(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _filled(at, lengths(at, given["shape"]), _one(type_), type_)


def _full(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _filled(at, lengths(at, given["shape"]), given["fill_value"], type_)


def _empty_like(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _made(at, ops.record, _shape_like(at, given), type_)


def _zeros_like(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _made(at, ops.zeros, _shape_like(at, given), type_)


def _ones_like(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _filled(at, _shape_like(at, given), _one(type_), type_)


def _full_like(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return _filled(at, _shape_like(at, given), given["fill_value"], type_)


def _shape_like(at: Emitter, given: dict[str, Bundle]) -> Sequence[Operand]:
    return shape_of(at, given["array"].leaves[0])


def _copy(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    """Return a new array of the elements of one, converted to the type of the result."""
    array = given["array"]
    if not is_array(array.type):
        return _array(at, given, type_)
    if not is_scalar(plain(array.type).dtype):  # type: ignore[attr-defined]
        return None
    return Bundle(type_, (at.emit(np.copy, array.leaves, type_),))


def _flatten(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array = given["array"].leaves[0]
    own = array.type
    assert isinstance(own, types.Array)
    copy = at.emit(np.copy, (array,), types.Array(own.dtype, own.ndim, "C"))
    return Bundle(type_, (_raveled(at, copy, type_),))


def _ravel(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array = given["array"]
    if not is_array(array.type):
        return None
    if getattr(array.type, "layout", "") != "C":
        return _flatten(at, given, type_)
    return Bundle(type_, (_raveled(at, array.leaves[0], type_),))


def _raveled(at: Emitter, array: Operand, type_: Type) -> Operand:
    if getattr(array.type, "ndim", 0) == 1:
        return array
    return at.emit(np.reshape, (array, Const(-1, INT)), type_)


def _asarray(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array = given["array"]
    if not is_array(array.type):
        return _array(at, given, type_)
    if getattr(plain(array.type), "dtype", None) == getattr(type_, "dtype", None):
        return Bundle(type_, array.leaves)
    return _copy(at, given, type_)


def _contiguous(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array = given["array"]
    own = plain(array.type)
    assert isinstance(type_, types.Array)
    if is_scalar(own):
        alone = _array(at, given, types.Array(own, 0, "C"))
        return None if alone is None else _contiguous(at, {"array": alone}, type_)
    if not isinstance(own, types.Array):
        return None
    if own.ndim == 0:  # one axis is added
        return Bundle(type_, (at.emit(np.reshape, (*array.leaves, Const(1, INT)), type_),))
    if own.layout == type_.layout or (own.ndim == 1 and own.layout != "A"):
        return Bundle(type_, array.leaves)
    made = at.emit(np.copy, array.leaves, type_)
    if own.layout == "A":
        at.copied_if_needed.append((array.leaves[0], made, at.loc))
    return Bundle(type_, (made,))


def _array(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    """Return an array of a number, or of nested tuples of numbers."""
    items = given["array"]
    if not isinstance(type_, types.Array):
        return None
    shape: list[int] = []
    nested = items
    while values.is_tuple(nested.type):
        parts = components(nested)
        shape.append(len(parts))
        if not parts:
            break
        nested = parts[0]
    if len(shape) != type_.ndim or not _is_regular(items, shape):
        return None
    made = at.emit(ops.record, [Const(length, INT) for length in shape], type_)
    for place, leaf in zip(np.ndindex(*shape), items.leaves, strict=True):
        index = [Const(number, INT) for number in place]
        at.emit(ops.initialize, (made, at.cast(leaf, type_.dtype), *index), types.none)
    return Bundle(type_, (made,))


def _is_regular(items: Bundle, shape: list[int]) -> bool:
    if not shape:
        return is_scalar(plain(items.type))
    parts = components(items) if values.is_tuple(items.type) else ()
    return len(parts) == shape[0] and all(_is_regular(part, shape[1:]) for part in parts)


# --------------------------------------------------------------------------------------------------------- views


def _reshape(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array = given["array"]
    return Bundle(type_, (at.emit(np.reshape, (*array.leaves, *lengths(at, given["*shape"])), type_),))


def _transpose(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array, axes = given["array"], given.get("*axes")
    if not is_array(array.type):
        return None
    return Bundle(type_, (transpose(at, array.leaves[0], type_, axes),))


def transpose(at: Emitter, array: Operand, type_: Type, axes: Bundle | None = None) -> Operand:
    """Return the transpose of an array."""
    if getattr(array.type, "ndim", 0) <= 1:
        return array
    if axes is None or isinstance(axes.type, types.NoneType):
        return at.emit(np.transpose, (array,), type_)
    if is_array(axes.type):
        raise at.refuse("`np.transpose` with an array of axes is not supported", "give a tuple", "transpose")
    return at.emit(np.transpose, (array, *lengths(at, axes)), type_)


def _expand_dims(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array, axis = given["array"], given["axis"]
    if not is_array(array.type) or not is_scalar(plain(axis.type)):
        return None
    return Bundle(type_, (at.emit(np.expand_dims, (*array.leaves, at.cast(axis.leaves[0], INT)), type_),))


def _broadcast_to(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array = given["array"]
    if not is_array(array.type):
        own = plain(array.type)
        made = _filled(at, [], array, types.Array(own, 0, "C"))
        if made is None:
            return None
        array = made
    return Bundle(type_, (at.emit(np.broadcast_to, (*array.leaves, *lengths(at, given["shape"])), type_),))


def _real(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return part(at, np.real, given["array"], type_)


def _imag(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    return part(at, np.imag, given["array"], type_)


def part(at: Emitter, op: ops.Op, value: Bundle, type_: Type) -> Bundle | None:
    """Return the real or the imaginary part of numbers: a view of a complex array."""
    own = plain(value.type)
    kind = own.dtype if isinstance(own, types.Array) else own
    if isinstance(kind, types.Complex):
        return Bundle(type_, (at.emit(op, value.leaves, type_),))
    if op is np.real:
        return Bundle(type_, value.leaves)
    if isinstance(own, types.Array):
        return _made(at, ops.zeros, shape_of(at, value.leaves[0]), type_)
    return Bundle(type_, (constant(0, type_),))


# ------------------------------------------------------------------------------------------------------- methods


def _fill(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    fill(at, given["array"].leaves[0], given["value"])
    return Bundle(type_, (Const(None, types.none),))


def _item(at: Emitter, given: dict[str, Bundle], type_: Type) -> Bundle | None:
    array = given["array"].leaves[0]
    own = array.type
    if not isinstance(own, types.Array) or (own.ndim > 0 and own.layout == "A"):
        return None
    if own.ndim > 0:  # it raises ValueError, as `item` does, unless there is one element
        array = at.emit(np.reshape, (array, Const(1, INT)), own.copy(ndim=1))
        return Bundle(type_, (at.emit(ops.getitem, (array, Const(0, INT)), own.dtype),))
    return Bundle(type_, (at.emit(ops.getitem, (array,), own.dtype),))


def size(at: Emitter, array: Operand) -> Operand:
    """Return the number of elements of an array."""
    return product(at, shape_of(at, array))


# Functions that take an output array after this many other arguments, as all ufuncs do.
# For these, Numba compares the shapes, and converts each element to the type of the output array at once.
_OF_ANY_TYPE = (np.around, np.round, np.clip)
_TAKE_OUT: tuple[tuple[object, int], ...] = ((np.dot, 2), (np.around, 2), (np.round, 2), (np.clip, 3))
FORMS: dict[object, tuple[tuple[str, ...], Form]] = {
    np.empty: (("shape", "dtype"), _empty),
    numba_adapter.EMPTY_INFERRED: (("shape",), _empty),
    np.zeros: (("shape", "dtype"), _zeros),
    np.ones: (("shape", "dtype"), _ones),
    np.full: (("shape", "fill_value", "dtype"), _full),
    np.empty_like: (("array", "dtype"), _empty_like),
    np.zeros_like: (("array", "dtype"), _zeros_like),
    np.ones_like: (("array", "dtype"), _ones_like),
    np.full_like: (("array", "fill_value", "dtype"), _full_like),
    np.copy: (("array",), _copy),
    np.astype: (("array", "dtype"), _copy),
    np.ndarray.flatten: (("array",), _flatten),
    np.ravel: (("array",), _ravel),
    np.asarray: (("array", "dtype"), _asarray),
    np.ascontiguousarray: (("array",), _contiguous),
    np.asfortranarray: (("array",), _contiguous),
    np.array: (("array", "dtype"), _array),
    np.reshape: (("array", "*shape"), _reshape),
    np.transpose: (("array", "*axes"), _transpose),
    np.expand_dims: (("array", "axis"), _expand_dims),
    np.broadcast_to: (("array", "shape"), _broadcast_to),
    np.real: (("array",), _real),
    np.imag: (("array",), _imag),
    np.ndarray.fill: (("array", "value"), _fill),
    np.ndarray.item: (("array",), _item),
}
