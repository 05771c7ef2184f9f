"""The bytes of arrays and numbers as numbers of another type: `x.view(np.int64)`.

    z.view(np.float64)              view %z : f64[:]            of complex128: real and imaginary parts in turn
    x.view(np.uint8)                view %x : u8[:]
    x[i].view(np.int64)             view %t : i64

Whether a derivative may depend on it is decided in `zygote_py.adjoints.analysis.byte_views`. Where the elements are of
another size, the last axis must be contiguous, as in NumPy; arrays in Fortran order, which Numba may interpret
differently, are then refused.
"""

from __future__ import annotations

from numba import types

from zygote_py.frontend.checks import check_last_axis
from zygote_py.frontend.emitter import Emitter
from zygote_py.frontend.values import Bundle, plain
from zygote_py.ir import ops
from zygote_py.ir.core import Operand, Type
from zygote_py.ir.types import is_scalar, itemsize

_TOKEN = "view"


def can_be_viewed(type_: Type) -> bool:
    """Return whether values of this type are arrays or numbers, whose `view` this is."""
    return isinstance(plain(type_), types.Array) or is_scalar(plain(type_))


def view(at: Emitter, value: Bundle, type_: Type) -> Bundle:
    """`value.view(dtype)`, of this type."""
    source, wanted = plain(value.type), plain(type_)
    (operand,) = value.leaves
    if source == wanted:
        return Bundle(wanted, (operand,))
    for each in (source, wanted):
        if not is_scalar(each.dtype if isinstance(each, types.Array) else each):
            raise at.refuse(f"a view of {source} as {wanted} is not supported", "use arrays of numbers", _TOKEN)
    if isinstance(source, types.Array) and itemsize(source) != itemsize(wanted):
        _check_layout(at, operand, source)
    return Bundle(wanted, (at.emit(ops.view, (operand,), wanted),))


def _check_layout(at: Emitter, operand: Operand, source: types.Array) -> None:
    """Refuse layouts on which Numba and NumPy disagree, where the element size changes."""
    if source.ndim == 0:
        message = "a view of an array without axes as a type of another size is not supported"
        raise at.refuse(message, "give it an axis: `x.reshape(1)`", _TOKEN)
    if source.ndim > 1 and source.layout == "F":
        message = "a view of an array in Fortran order as a type of another size is not supported"
        raise at.refuse(message, "make a copy in C order: `np.ascontiguousarray(x)`", _TOKEN)
    if source.ndim > 1 and source.layout == "A":
        at.emit(check_last_axis, (operand,), types.none)
