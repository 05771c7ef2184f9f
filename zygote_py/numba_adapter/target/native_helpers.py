"""Helpers of emitted modules in LLVM's terms, which compile in no time: `ops.span_of`, `ops.overlap`.

An emitted module contains the text of its helpers. Where that is the text of one of these, the function here takes its
place when the module is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
        """Compare each of the first spans with those after it, in two loops over a copy on the stack."""
        given, number = args
        word, total = context.get_value_type(types.int64), len(spans)
        starts, ends = (cgutils.alloca_once(builder, word, size=word(total)) for _ in range(2))
        for place in range(total):
            start, end = cgutils.unpack_tuple(builder, builder.extract_value(given, place), 2)
            builder.store(start, builder.gep(starts, [word(place)]))
            builder.store(end, builder.gep(ends, [word(place)]))
        found = cgutils.alloca_once_value(builder, cgutils.false_bit)
        with cgutils.for_range(builder, number, intp=word) as first:
            start, end = (builder.load(builder.gep(each, [first.index])) for each in (starts, ends))
            following = builder.add(first.index, word(1))
            with cgutils.for_range(builder, word(total), start=following, intp=word) as second:
                other, other_end = (builder.load(builder.gep(each, [second.index])) for each in (starts, ends))
                before = builder.icmp_signed("<", start, other_end)
                both = builder.and_(before, builder.icmp_signed("<", other, end))
                builder.store(builder.or_(builder.load(found), both), found)
        return builder.load(found)

    is_known = isinstance(spans, types.UniTuple) and spans.dtype == _SPAN
    return (signature(types.boolean, spans, types.int64), lowered) if is_known else None


_NATIVE: dict[Any, Any] = {ops.span_of: _span_of, ops.overlap: _overlap, **lanes.NATIVE, **in_threads.NATIVE}


def native(function: Callable[..., object]) -> Any:
    """Return what takes the place of a function of an emitted module, whatever its name there; None if nothing does."""
    return _BY_TEXT.get(code_text(function))


_BY_TEXT = {code_text(helper): made for helper, made in _NATIVE.items()}
