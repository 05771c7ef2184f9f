"""The front end: a Python function and its argument types become a `Function` of the IR.

    lowered = lower(f, (types.float64, types.int64), {})
    lowered.function                  # kind "primal"; a parameter for each argument, then one for each hidden value
    [capture.read() for capture in lowered.hidden]    # the arguments to pass for those, at this moment

Numba reads and types the function (`zygote_py.numba_adapter`); here its statements become SSA. Loops over ranges,
arrays, tuples, `zip` and `enumerate` become loops that count; tuples are taken apart; implicit casts become explicit;
functions that are called are inlined. It knows no derivatives: a call of a callable that nobody has a rule for goes
through as an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from zygote_py import numba_adapter
from zygote_py.frontend.inlining import inline_calls
from zygote_py.frontend.lowering import Lowering
from zygote_py.ir.core import Function, Type
from zygote_py.statements import Capture

__all__ = ["Capture", "LoweredFunction", "lower"]


@dataclass(frozen=True, slots=True, eq=False)
class LoweredFunction:
    """The IR of a function, and what the caller must know besides.

    `function.params` are the `argument_count` arguments and then the `hidden` values, captured floats and arrays, to be
    read at each call. `frozen` are the captured values that are constants of this compilation. A tuple that is returned
    stands in the IR as a `Return` of its components; `result_type` is its type.
    """

    function: Function
    argument_count: int
    result_type: Type
    hidden: tuple[Capture, ...]
    frozen: tuple[Capture, ...]


def lower(
    func: Callable[..., object], argument_types: Sequence[Type], options: Mapping[str, object] | None = None
) -> LoweredFunction:
    """The IR of `func`, a plain Python function, for these Numba types.

    Raises DifferentiationError for what the IR cannot represent or Numba cannot type.
    """
    typed = inline_calls(numba_adapter.typed_function(func, argument_types, options or {}))
    lowering = Lowering(typed)
    return LoweredFunction(lowering.run(), typed.argument_count, lowering.result_type, typed.hidden, typed.frozen)
