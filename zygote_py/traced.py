"""Which elements of an argument a function's result depends on, as a function of its arguments.

    _, (sets, unions, same) = applying(TraceForm())(f)((x, n), ((indices, None),))

It stands where `push` does (`zygote_py.pushed`): `indices` is like the one argument that is asked for, an array, and
holds the numbers of the sets that its elements begin with. `sets` is like the result, an array, `same` is whether the
function goes the same way for all numbers. What the numbers of sets mean, `zygote_py.adjoints.forward.dependence` says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from numba import types

from zygote_py.adjoints.forward.dependence import Dependences
from zygote_py.compile import typed_as_called
from zygote_py.frontend import LoweredFunction, lower_typed
from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of
from zygote_py.primals import lowered_primal
from zygote_py.pushed import refuse_draws, take_together, work_on_copies
from zygote_py.requests import make_request

if TYPE_CHECKING:
    from zygote_py.numba_adapter import DerivedCall
    from zygote_py.statements import TypedFunction


def typed_trace(call: DerivedCall) -> TypedFunction:
    """Return what finds out what depends on what, for these types, in a function that is typed for us."""
    given, directions = call.argument_types
    kinds, indices = components_of(given), components_of(components_of(directions)[0])
    wrt = tuple(number for number, kind in enumerate(indices) if not isinstance(kind, types.NoneType))
    request = make_request(call.func, wrt, with_value=False)
    request = replace(request, options=call.options, name=f"{call.name}_dependence")

    def lower(taken: tuple[Type, ...]) -> LoweredFunction:
        lowered = lower_typed(call.typed(taken))
        work_on_copies(lowered.function, lowered.argument_count)
        return lowered

    _, (number,), lowered = lowered_primal(request, kinds, lower)
    function = lowered.function
    refuse_draws(function)
    traced = Dependences(function, lowered.routines).trace(function, function.params[number])
    take_together(function, given, directions, (number,), (traced.indices,))
    return typed_as_called(call, function, request.name, lowered)
