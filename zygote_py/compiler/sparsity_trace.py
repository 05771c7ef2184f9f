"""Which elements of an argument a function's result depends on, as a function of its arguments.

    _, (sets, unions, same) = dependence(f)((x, n), ((indices, None),))

Its form is `TraceForm`; it is called where the pushforward is (`zygote_py.compiler.jvp`). `indices` is like the one
argument that is asked for, an array, and holds the numbers of the sets that its elements begin with. `sets` is like the
result, an array, `same` is whether the function goes the same way for all numbers.
`zygote_py.adjoints.forward.dependence` explains the numbers of sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import types

from zygote_py.adjoints import Dependences
from zygote_py.compiler.higher_order import typed_as_called
from zygote_py.compiler.jvp import lowered_on_copies, refuse_draws, take_together
from zygote_py.compiler.transforms import TraceForm
from zygote_py.ir import components_of

if TYPE_CHECKING:
    from zygote_py.base import TypedFunction
    from zygote_py.numba_adapter import DerivedCall


def typed_trace(form: TraceForm, call: DerivedCall) -> TypedFunction:
    """Return the function that detects sparsity, for these types, as a typed function."""
    given, directions = call.argument_types
    indices = components_of(components_of(directions)[0])
    wrt = tuple(number for number, kind in enumerate(indices) if not isinstance(kind, types.NoneType))
    name, (number,), lowered = lowered_on_copies(form, call, components_of(given), wrt)
    function = lowered.function
    refuse_draws(function)
    traced = Dependences(function, lowered.routines).trace(function, function.params[number])
    take_together(function, given, directions, (number,), (traced.indices,))
    return typed_as_called(call, function, name, lowered)
