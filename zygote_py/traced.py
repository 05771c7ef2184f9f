"""Which elements of an argument a function's result depends on, as a function of its arguments.

    _, (sets, unions, same) = trace(f)((x, n), ((indices, None),))

It stands where `push` does (`zygote_py.pushed`): `indices` is like the one argument that is asked for, an array, and
holds the numbers of the sets that its elements begin with. `sets` is like the result, an array, `same` is whether the
function goes the same way for all numbers. What the numbers of sets mean, `zygote_py.adjoints.dependence` says.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numba import types

from zygote_py import numba_adapter
from zygote_py.forms import Form
from zygote_py.requests import make_request

if TYPE_CHECKING:
    from zygote_py.frontend import LoweredFunction
    from zygote_py.ir.core import Type
    from zygote_py.numba_adapter import DerivedCall
    from zygote_py.statements import TypedFunction


@dataclass(frozen=True, slots=True)
class TraceForm(Form):
    """The form of what finds out what depends on what."""

    def __str__(self) -> str:
        return "dependence"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """The arguments as a tuple, and a tuple with a tuple of sets."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in ("args", "indices")])

    def typed(self, call: DerivedCall) -> TypedFunction:
        """What finds out, for these types."""
        return _typed_trace(call)


def trace(f: Any) -> Any:
    """What finds out what depends on what, in functions that are compiled here; no function to call."""
    raise NotImplementedError


def _trace_is_internal(f: Any, options: Any) -> Any:
    raise NotImplementedError


numba_adapter.embed(trace, _trace_is_internal, form=lambda options: TraceForm())


def _typed_trace(call: DerivedCall) -> TypedFunction:
    from zygote_py.adjoints.dependence import Dependences
    from zygote_py.compile import result_of, tidy
    from zygote_py.frontend import Derived, lower_typed, typed_as_derived
    from zygote_py.ir.routines import routines_of
    from zygote_py.ir.types import components_of
    from zygote_py.primals import lowered_primal
    from zygote_py.pushed import refuse_draws, take_together, work_on_copies

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
    tidy(function)
    derived = Derived(function, 2, routines_of(function))
    return typed_as_derived(call, derived, request.name, result_of(function).type, lowered.hidden, lowered.frozen)
