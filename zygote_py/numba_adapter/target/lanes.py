"""Several numbers as one vector of LLVM's, in emitted functions: the helpers of `zygote_py.ir.ops.lanes`.

    ty = tx * w                     %ty = fmul <4 x double> %tx, %w_4
    ta[i] = ty                      store <4 x double> %ty, ptr %element, align 8

The arithmetic on them is in `zygote_py.numba_adapter.emitted.lowering.lane_arithmetic`. An array of such values is an
array of numbers with one more axis, in which those of a value stand next to each other.
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.ir as llvm
from numba import types
from numba.extending import intrinsic, register_model

from zygote_py.ir import Lanes, ops
from zygote_py.numba_adapter.base.internals import cgutils, impl_ret_borrowed, models, signature
from zygote_py.numba_adapter.emitted.lowering.elements import Fields, array_of, fields_of
from zygote_py.numba_adapter.emitted.lowering.lane_arithmetic import (
    address_of_lanes,
    load_lanes,
    spread,
    store_lanes,
    vector_type,
)
from zygote_py.numba_adapter.emitted.lowering.native_calls import allocated, called_apart, new_array

_Star: Any = types.StarArgTuple


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    """A vector; in memory an array, which needs no other alignment than its numbers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, vector_type(kind))  # type: ignore[no-untyped-call]
        self._in_memory = llvm.ArrayType(self.be_type.element, kind.count)

    def get_data_type(self) -> Any:
        """Return LLVM's type of a value in memory."""
        return self._in_memory

    def as_data(self, builder: Any, value: Any) -> Any:
        """Return a value in the form that it has in memory."""
        found = llvm.Constant(self._in_memory, llvm.Undefined)
        for place in range(self._in_memory.count):
            found = builder.insert_value(found, builder.extract_element(value, _place(place)), place)
        return found

    def from_data(self, builder: Any, value: Any) -> Any:
        """Return a value, given the form that it has in memory."""
        found = llvm.Constant(self.be_type, llvm.Undefined)
        for place in range(self._in_memory.count):
            found = builder.insert_element(found, builder.extract_value(value, place), _place(place))
        return found


@intrinsic
def _lanes(context: Any, *numbers: Any) -> Any:
    kind = types.unliteral(numbers[0])
    if not isinstance(kind, types.Float | types.Boolean) or any(types.unliteral(each) != kind for each in numbers):
        return None
    made = Lanes(kind, len(numbers))

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = llvm.Constant(vector_type(made), llvm.Undefined)
        for place, number in enumerate(cgutils.unpack_tuple(builder, args[0])):
            value = builder.insert_element(value, number, _place(place))
        return value

    return signature(made, _Star(numbers)), lowered


@intrinsic(prefer_literal=True)
def _lane(context: Any, x: Any, number: Any) -> Any:
    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], _place(number.literal_value))

    is_known = isinstance(x, Lanes) and isinstance(number, types.IntegerLiteral)
    return (signature(x.dtype, x, number), lowered) if is_known else None


@intrinsic(prefer_literal=True)
def _lanes_at(context: Any, array: Any, count: Any, *index: Any) -> Any:
    if not isinstance(array, types.Array) or not isinstance(count, types.IntegerLiteral):
        return None
    kinds = tuple(map(types.unliteral, index))
    if len(kinds) != array.ndim - 1 or not all(isinstance(each, types.Integer) for each in kinds):
        return None
    kind, star = Lanes(array.dtype, count.literal_value), _Star(kinds)

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given, _, index = args
        place = address_of_lanes(context, builder, array, fields_of(context, builder, array, given), star, index)
        return load_lanes(builder, kind, place)

    return signature(kind, array, count, star), lowered


@intrinsic
def _guarded_lanes(context: Any, x: Any, *factors: Any) -> Any:
    if not isinstance(x, Lanes) or any(each != x for each in factors):
        return None

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        nothing = llvm.Constant(vector_type(x), None)
        matters = None
        for each in cgutils.unpack_tuple(builder, args[1]):
            own = builder.fcmp_unordered("!=", each, nothing)
            matters = own if matters is None else builder.or_(matters, own)
        return builder.select(matters, args[0], nothing)

    return signature(x, x, _Star(factors)), lowered


@intrinsic
def _interleaved(context: Any, *arrays: Any) -> Any:
    first = arrays[0]
    if any(
        not isinstance(each, types.Array) or (each.dtype, each.ndim) != (first.dtype, first.ndim) for each in arrays
    ):
        return None
    made = types.Array(first.dtype, first.ndim + 1, "C")

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values = cgutils.unpack_tuple(builder, args[0], len(arrays))
        sources = [fields_of(context, builder, first, each) for each in values]
        word = context.get_value_type(types.intp)
        lengths = [*sources[0].shape, word(len(sources))]
        found = cgutils.alloca_once(builder, context.get_value_type(made))
        with builder.if_else(_are_of_one(context, builder, first, sources)) as (one, several):
            with one:
                model = context.data_model_manager[first]
                meminfo = model.get(builder, values[0], "meminfo")
                whole = new_array(context, builder, made, lengths, meminfo, sources[0].data)
                context.nrt.incref(builder, made, whole)
                builder.store(whole, found)
            with several:
                whole = allocated(context, builder, made, lengths, False)
                target = fields_of(context, builder, made, whole)
                with cgutils.loop_nest(builder, sources[0].shape, word) as indices:
                    for number, (kind, source) in enumerate(zip(arrays, sources, strict=True)):
                        value = builder.load(element_at(context, builder, kind, source, indices))
                        builder.store(value, element_at(context, builder, made, target, [*indices, word(number)]))
                builder.store(whole, found)
        return builder.load(found)

    def apart(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return called_apart(context, builder, f"interleaved {arrays}", lowered, sig, args)

    return signature(made, _Star(arrays)), apart


def _are_of_one(context: Any, builder: Any, kind: Any, sources: list[Fields]) -> Any:
    """Return whether arrays are all the views, in order, of an array in C order with one more axis."""
    word = context.get_value_type(types.intp)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    step = word(size * len(sources))
    tests = []
    for length, stride in zip(reversed(sources[0].shape), reversed(sources[0].strides), strict=True):
        tests.append(builder.icmp_signed("==", stride, step))
        step = builder.mul(step, length)
    start = builder.ptrtoint(sources[0].data, word)
    for number, each in enumerate(sources[1:], 1):
        place = builder.add(start, word(size * number))
        tests.append(builder.icmp_signed("==", builder.ptrtoint(each.data, word), place))
        tests += [builder.icmp_signed("==", *both) for both in zip(each.strides, sources[0].strides, strict=True)]
    return functools.reduce(builder.and_, tests)


@intrinsic
def _select_lanes(context: Any, condition: Any, then: Any, orelse: Any) -> Any:
    if type(condition) is not Lanes:
        return None
    number = next((each.dtype for each in (then, orelse) if type(each) is Lanes), then)
    made = Lanes(number, condition.count)
    if any(each not in (made, number) for each in (then, orelse)):
        return None

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(args[0], *(spread(builder, made, each) for each in args[1:]))

    return signature(made, condition, then, orelse), lowered


@intrinsic(prefer_literal=True)
def _add_lanes(context: Any, array: Any, parts: Any, count: Any) -> Any:
    if not all(isinstance(each, types.Array) for each in (array, parts)) or not isinstance(count, types.IntegerLiteral):
        return None
    several = Lanes(parts.dtype, count.literal_value)

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target, source = (fields_of(context, builder, *both) for both in zip((array, parts), args, strict=True))
        word = context.get_value_type(types.intp)
        with cgutils.loop_nest(builder, source.shape[:-1], word) as indices:
            place = element_at(context, builder, parts, source, [*indices, word(0)])
            value = load_lanes(builder, several, place)
            at = element_at(context, builder, array, target, indices)
            total = builder.load(at)
            for number in range(several.count):
                total = builder.fadd(total, builder.extract_element(value, _place(number)))
            builder.store(total, at)
        return context.get_dummy_value()

    def apart(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        name, kinds = f"add lanes {array} {several}", signature(types.none, array, parts)
        return called_apart(context, builder, name, lowered, kinds, args[:2])

    return signature(types.none, array, parts, count), apart


@intrinsic(prefer_literal=True)
def _added_in_order(context: Any, total: Any, parts: Any, count: Any) -> Any:
    kind = types.unliteral(total)
    if not isinstance(parts, types.Array) or kind != parts.dtype or not isinstance(count, types.IntegerLiteral):
        return None

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = fields_of(context, builder, parts, args[1])
        found = cgutils.alloca_once_value(builder, args[0])
        word = context.get_value_type(types.intp)
        for number in range(count.literal_value):
            with cgutils.loop_nest(builder, source.shape[:-1], word) as indices:
                part = builder.load(element_at(context, builder, parts, source, [*indices, word(number)]))
                builder.store(builder.fadd(builder.load(found), part), found)
        return builder.load(found)

    def apart(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        name = f"added in order {parts} {count.literal_value}"
        return called_apart(context, builder, name, lowered, signature(kind, kind, parts), args[:2])

    return signature(kind, kind, parts, count), apart


def _of_slices(is_sum: bool) -> Any:
    """Return the intrinsic of `add_to_slices`, or of `copy_slices`."""

    def typed(context: Any, first: Any, second: Any, count: Any, axis: Any, start: Any) -> Any:
        array, parts = (first, second) if is_sum else (second, first)
        if not all(isinstance(each, types.Array) for each in (array, parts)) or parts.layout != "C":
            return None
        if not all(isinstance(each, types.IntegerLiteral) for each in (count, axis)):
            return None
        several, along = Lanes(parts.dtype, count.literal_value), axis.literal_value

        def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            *both, start = args
            given, made = both if is_sum else both[::-1]
            target, source = fields_of(context, builder, array, given), fields_of(context, builder, parts, made)
            word = context.get_value_type(types.intp)
            end = builder.add(start, word(several.count))
            exists = builder.icmp_signed("<=", end, target.shape[along])  # else, the function does not access it
            with builder.if_then(exists), cgutils.loop_nest(builder, source.shape[:-1], word) as indices:
                place = element_at(context, builder, parts, source, [*indices, word(0)])
                at = [
                    element_at(
                        context,
                        builder,
                        array,
                        target,
                        [*indices[:along], builder.add(start, word(number)), *indices[along:]],
                    )
                    for number in range(several.count)
                ]
                if is_sum:
                    value = load_lanes(builder, several, place)
                    for number, each in enumerate(at):
                        term = builder.extract_element(value, _place(number))
                        builder.store(builder.fadd(builder.load(each), term), each)
                    value = llvm.Constant(vector_type(several), None)
                else:
                    value = llvm.Constant(vector_type(several), llvm.Undefined)
                    for number, each in enumerate(at):
                        element = context.unpack_value(builder, parts.dtype, each)
                        value = builder.insert_element(value, element, _place(number))
                store_lanes(builder, several, value, place)
            return context.get_dummy_value()

        def apart(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            name = f"{'add' if is_sum else 'copy'} slices {array} {several} {along}"
            kinds = signature(types.none, first, second, types.intp)
            return called_apart(context, builder, name, lowered, kinds, [args[0], args[1], args[4]])

        return signature(types.none, first, second, count, axis, types.intp), apart

    return intrinsic(prefer_literal=True)(typed)


@intrinsic
def _lane_of_array(context: Any, array: Any, number: Any) -> Any:
    if not isinstance(array, types.Array):
        return None
    made = types.Array(array.dtype, array.ndim - 1, "A")

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = fields_of(context, builder, array, args[0])
        return impl_ret_borrowed(context, builder, made, _view(context, builder, made, args[0], array, source, args[1]))

    return signature(made, array, types.intp), lowered


def _view(context: Any, builder: Any, kind: Any, of: Any, of_kind: Any, source: Fields, number: Any) -> Any:
    """Return the view of the elements whose last index is `number`; references are not counted."""
    model = context.data_model_manager[of_kind]
    word = context.get_value_type(types.intp)
    lengths, strides = source.shape[:-1], source.strides[:-1]
    nitems = functools.reduce(builder.mul, lengths, word(1))
    fields = {
        "meminfo": model.get(builder, of, "meminfo"),
        "parent": model.get(builder, of, "parent"),
        "nitems": nitems,
        "itemsize": model.get(builder, of, "itemsize"),
        "data": builder.gep(source.data, [number]),
        "shape": cgutils.pack_array(builder, lengths, ty=word),
        "strides": cgutils.pack_array(builder, strides, ty=word),
    }
    return array_of(context, builder, kind, fields)


def element_at(context: Any, builder: Any, kind: Any, fields: Fields, indices: Any) -> Any:
    """Return the address of an element, whose indices are not negative."""
    return cgutils.get_item_pointer2(
        context, builder, data=fields.data, shape=fields.shape, strides=fields.strides, layout=kind.layout, inds=indices
    )


def _place(number: int) -> Any:
    return llvm.Constant(llvm.IntType(32), number)


@intrinsic
def _plus(context: Any, total: Any, term: Any) -> Any:
    return _sum_in_any_order("fadd", total, term)


@intrinsic
def _minus(context: Any, total: Any, term: Any) -> Any:
    return _sum_in_any_order("fsub", total, term)


def _sum_in_any_order(operation: str, total: Any, term: Any) -> Any:
    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = sorted(context.fastmath.flags) if context.fastmath else ()  # which Numba adds to what has none
        return getattr(builder, operation)(*args, flags=("reassoc", *given))

    kind = types.unliteral(total)
    is_known = isinstance(kind, types.Float) and types.unliteral(term) == kind
    return (signature(kind, kind, kind), lowered) if is_known else None


@intrinsic(prefer_literal=True)
def _folded(context: Any, x: Any, count: Any) -> Any:
    if type(x) is not Lanes or not isinstance(count, types.IntegerLiteral):
        return None
    made = Lanes(x.dtype, count.literal_value)

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found, half = args[0], x.count // 2
        while half >= made.count:
            kind = llvm.VectorType(llvm.IntType(32), half)
            masks = [llvm.Constant(kind, list(range(start, start + half))) for start in (0, half)]
            found = builder.fadd(*(builder.shuffle_vector(found, found, mask) for mask in masks))
            half //= 2
        return found

    return signature(made, x, count), lowered


NATIVE: dict[Any, Any] = {
    ops.folded: _folded,
    ops.plus: _plus,
    ops.minus: _minus,
    ops.lanes: _lanes,
    ops.lane: _lane,
    ops.lanes_at: _lanes_at,
    ops.guarded_lanes: _guarded_lanes,
    ops.interleaved: _interleaved,
    ops.lane_of_array: _lane_of_array,
    ops.add_lanes: _add_lanes,
    ops.added_in_order: _added_in_order,
    ops.select_lanes: _select_lanes,
    ops.copy_slices: _of_slices(False),
    ops.add_to_slices: _of_slices(True),
}
