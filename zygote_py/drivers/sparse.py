"""Parts of sparse Jacobians and Hessians: the dependence of results on inputs, and products with several directions.

    def f_dependence(x, n, indices, closure_):
        _, (sets, unions, same) = dependence(closure_)((x, n), ((indices, None),))
        return sets, unions, same

`order` is 1 for the function, whose result is an array, and 2 for its gradient with respect to the same argument.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from numba import types

from zygote_py import base, frontend, numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import is_array
from zygote_py.base import free
from zygote_py.compiler import FUNCTION, WIDTH, GradientForm, PushForm, TraceForm, signature_of
from zygote_py.drivers.forms import Driver, SelectedParameter
from zygote_py.frontend.values import NOTHING, LoweredValue, component, components, tuple_of, value_of
from zygote_py.ir import Const, Operand, ops
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class _Sparse(Driver):
    """A driver with an additional array as its last argument."""

    order: int = 1

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature of the arguments and the array."""
        names = list(of.parameters)
        return signature_of(*names, free("given", names))

    def check_result(self, call: numba_adapter.DerivedCall) -> None:
        """Refuse a function with another result than an array of floats, of which there is to be a Jacobian."""
        result: Any = call.typed(call.argument_types[:-1]).return_type if self.order == 1 else None
        if self.order == 1 and not (is_array(result) and isinstance(result.dtype, types.Float)):
            raise refuse(
                f"a sparse Jacobian of `{call.name}`, whose result is of type {result}",
                call.loc,
                hint="return an array of floats",
            )

    def begun(
        self, call: numba_adapter.DerivedCall
    ) -> tuple[frontend.Writer, list[LoweredValue], SelectedParameter, Operand, LoweredValue]:
        """Return a new writer, the arguments, the selected parameter, the array, and the function."""
        w = self.writer(call, (*call.parameters, free("given", call.parameters)))
        (asked,), _ = self.asked(call)
        self.check_result(call)
        *args, given = w.parameters
        of = w.closure if self.order == 1 else w.derived(GradientForm(asked.number - self.captured_count))
        return w, args, asked, given.leaves[0], of


@dataclass(frozen=True)
class Dependence(_Sparse):
    """The elements of the argument on which each element of the result depends; the array contains their numbers."""

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments and of the numbers."""
        w, args, asked, indices, of = self.begun(call)
        traced = w.invoke(w.derived(TraceForm(), of), tuple_of(args), tuple_of([_only(args, asked, indices)]))
        return w.returned(component(traced, 1))


@dataclass(frozen=True)
class Products(_Sparse):
    """Derivatives of the result in directions, the rows of a matrix; returns one row for each.

    There is at least one direction.
    """

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments and of the directions."""
        w, args, asked, rows, of = self.begun(call)
        kind: Any = asked.type
        lengths = w.shape(args[asked.number].leaves[0])
        pushed = w.derived(PushForm(with_value=False, again=True), of)
        count, _ = w.shape(rows)
        last = w.last(count)

        def carry(start: Operand) -> list[Operand]:
            """Write a call in several directions; the last group repeats its last direction."""
            places = [start, *(w.least(w.plus(start, number), last) for number in range(1, WIDTH))]
            directions = [w.reshaped(w.element(rows, place), lengths) for place in places]
            changes = [_only(args, asked, each) for each in directions]
            tangents = components(w.invoke(pushed, tuple_of(args), tuple_of(changes)))
            return [w.flat(each.leaves[0]) for each in tangents]

        def put(changes: Sequence[Operand], start: Operand) -> None:
            """Write the assignment of the tangents."""
            w.store(found, changes[0], start)
            for number, change in enumerate(changes[1:], 1):
                place = w.plus(start, number)
                with w.when(w.call(operator.lt, place, count, type=types.boolean)):
                    w.store(found, change, place)

        first = Const(0, types.int64)
        changes = carry(first)  # by itself: it says how many elements there are
        found = w.array(ops.record, kind.dtype, count, w.size(changes[0]), hint="found")
        put(changes, first)
        with w.loop("start", WIDTH, count, WIDTH) as start:
            put(carry(start), start)
        return w.returned(value_of(found))


@dataclass(frozen=True)
class Weighed(_Sparse):
    """Gradients of weighted sums of the result's elements, one for each row of a matrix of weights."""

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments and of the weights."""
        w, args, asked, rows, _ = self.begun(call)
        kind: Any = asked.type
        count, _ = w.shape(rows)
        found = w.array(ops.zeros, kind.dtype, count, w.size(args[asked.number].leaves[0]), hint="found")
        gradient = w.derived(GradientForm(asked.number), w.derived(WeightedSum()))
        with w.loop("k", 0, count) as k:
            weights = value_of(w.element(rows, k))
            slope = w.invoke(gradient, *map(w.copied, args), weights)
            w.store(found, w.flat(slope.leaves[0]), k)
        return w.returned(value_of(found))


@dataclass(frozen=True)
class WeightedSum(_Sparse):
    """The sum of the elements of a function's result, an array, each times a weight."""

    def __str__(self) -> str:
        return "weighed"

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments and of the weights."""
        script = self.script(call, list(self.signature(inspect.signature(call.func)).parameters))
        *names, weights = script.parameters
        script.add(f"return np.sum({weights} * {FUNCTION}({', '.join(names)}).ravel())")
        return script.function()


def _only(args: Sequence[LoweredValue], asked: SelectedParameter, change: Operand) -> LoweredValue:
    """Return tangents of the arguments, None for all but the selected one."""
    return tuple_of([value_of(change) if number == asked.number else NOTHING for number in range(len(args))])
