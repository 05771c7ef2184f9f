"""Helpers of emitted modules in LLVM's terms, which compile in no time: `ops.span_of`, `ops.overlap`; and one that
calls BLAS in a way that Numba has no words for: `ops.add_large_product`.

An emitted module contains the text of its helpers. Where that is the text of one of these, the function here takes its
place when the module is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as llvm
from numba import types
from numba.extending import intrinsic

from zygote_py.ir import ops
from zygote_py.numba_adapter.base import internals
from zygote_py.numba_adapter.base.internals import cgutils, signature
from zygote_py.numba_adapter.linking import code_text
from zygote_py.numba_adapter.target import in_threads, lanes

_SPAN = types.UniTuple(types.int64, 2)


@intrinsic
def _span_of(context: Any, x: Any) -> Any:
    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = internals.make_array(x)(context, builder, value=args[0])
        word = context.get_value_type(types.int64)
        zero = word(0)
        size = builder.mul(array.nitems, array.itemsize)
        start = builder.select(builder.icmp_signed(">", size, zero), builder.ptrtoint(array.data, word), zero)
        return context.make_tuple(builder, sig.return_type, (start, builder.add(start, size)))

    return (signature(_SPAN, x), lowered) if isinstance(x, types.Array) else None


@intrinsic
def _overlap(context: Any, spans: Any, count: Any) -> Any:
    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given, number = args
        word, total = context.get_value_type(types.int64), len(spans)
        together = cgutils.alloca_once(builder, word, size=word(2 * total))
        for place in range(total):
            bounds = cgutils.unpack_tuple(builder, builder.extract_value(given, place), 2)
            for part, bound in enumerate(bounds):
                builder.store(bound, builder.gep(together, [word(2 * place + part)]))
        return builder.call(_compared(builder.module, word), [together, word(total), number])

    is_known = isinstance(spans, types.UniTuple) and spans.dtype == _SPAN
    return (signature(types.boolean, spans, types.int64), lowered) if is_known else None


def _compared(module: Any, word: Any) -> Any:
    """Return the function that compares each of the first spans with those after it.

    It is one for any number of them, and ends with the first that it finds: LLVM would write out loops over ten spans,
    and take several at a time of many, which takes longer to compile than most functions.
    """
    made = module.globals.get(_COMPARED)
    if made is not None:
        return made
    bit = llvm.IntType(1)
    made = llvm.Function(module, llvm.FunctionType(bit, [word.as_pointer(), word, word]), _COMPARED)
    made.linkage = "linkonce_odr"  # so that it is not made for its only caller
    made.attributes.add("noinline")
    spans, total, number = made.args
    builder = llvm.IRBuilder(made.append_basic_block("entry"))

    def bounds(place: Any) -> list[Any]:
        first = builder.gep(spans, [builder.shl(place, word(1))])
        return [builder.load(builder.gep(first, [word(part)])) for part in range(2)]

    with cgutils.for_range(builder, number, intp=word) as first:
        start, end = bounds(first.index)
        with cgutils.for_range(builder, total, start=builder.add(first.index, word(1)), intp=word) as second:
            other, other_end = bounds(second.index)
            before = builder.icmp_signed("<", start, other_end)
            with builder.if_then(builder.and_(before, builder.icmp_signed("<", other, end)), likely=False):
                builder.ret(bit(1))
    builder.ret(bit(0))
    return made


_COMPARED = "zygote_py.overlap"


@intrinsic
def _add_large_product(context: Any, total: Any, a: Any, b: Any) -> Any:
    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kinds = (total, a, b)
        if {each.dtype for each in kinds} != {total.dtype} or any(each.layout == "A" for each in kinds):
            return context.compile_internal(builder, ops.add_large_product, sig, args)
        internals.ensure_blas()
        _gemm(context, builder, kinds, args)
        return context.get_dummy_value()

    are_matrices = all(isinstance(each, types.Array) and each.ndim == 2 for each in (total, a, b))
    return (signature(types.none, total, a, b), lowered) if are_matrices else None


def _gemm(context: Any, builder: Any, kinds: Any, args: Any) -> None:
    """Call BLAS to add the product of two contiguous matrices to a third, `total = 1 total + 1 a @ b`.

    BLAS counts along columns: a total in the order of C is the transpose of one in the order of Fortran, to which the
    product of the transposed factors is added, the second one first.
    """
    total, a, b = (internals.make_array(kind)(context, builder, arg) for kind, arg in zip(kinds, args, strict=True))
    word, byte, pointer = context.get_value_type(types.intp), llvm.IntType(8), cgutils.voidptr_t
    one = builder.bitcast(
        cgutils.alloca_once_value(builder, context.get_constant_generic(builder, kinds[0].dtype, 1)), pointer
    )

    def given(kind: Any, array: Any) -> tuple[Any, Any, Any]:
        """Return how BLAS is to take a matrix, its data, and how far apart its columns are there."""
        shape = cgutils.unpack_tuple(builder, array.shape, 2)
        form = byte(ord("n" if kind.layout == kinds[0].layout else "t"))  # as it is, or transposed
        return form, builder.bitcast(array.data, pointer), shape[1 if kind.layout == "C" else 0]

    factors, (rows, columns) = [(kinds[1], a), (kinds[2], b)], cgutils.unpack_tuple(builder, total.shape, 2)
    terms = builder.extract_value(a.shape, 1)
    if kinds[0].layout == "C":
        factors, rows, columns = factors[::-1], columns, rows
    (first, first_data, first_step), (second, second_data, second_step) = (given(*each) for each in factors)
    _, data, step = given(kinds[0], total)
    form = llvm.FunctionType(
        llvm.IntType(32),
        [byte, byte, byte, word, word, word, pointer, pointer, word, pointer, word, pointer, pointer, word],
    )
    gemm = cgutils.get_or_insert_function(builder.module, form, "numba_xxgemm")
    letter = byte(ord(internals.get_blas_kind(kinds[0].dtype)))
    sizes = (rows, columns, terms, one, first_data, first_step, second_data, second_step, one, data, step)
    internals.check_blas_return(context, builder, builder.call(gemm, (letter, first, second, *sizes)))


_NATIVE: dict[Any, Any] = {
    ops.span_of: _span_of,
    ops.overlap: _overlap,
    ops.add_large_product: _add_large_product,
    **lanes.NATIVE,
    **in_threads.NATIVE,
}


def native(function: Callable[..., object]) -> Any:
    """Return what takes the place of a function of an emitted module, whatever its name there; None if nothing does."""
    return _BY_TEXT.get(code_text(function))


_BY_TEXT = {code_text(helper): made for helper, made in _NATIVE.items()}
