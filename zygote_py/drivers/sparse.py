"""Parts of sparse Jacobians and Hessians: the dependence of results on inputs, and products with several directions.

    def f_dependences(x, n, indices, closure_):
        _, (sets, unions, same) = dependence(closure_)((x, n), ((indices, None),))
        return sets, unions, same

`order` is 1 for the function, whose result is an array, and 2 for its gradient with respect to the same argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import is_array
from zygote_py.base import free
from zygote_py.compiler import FUNCTION, WIDTH, GradientForm, PushForm, Script, TraceForm, signature_of
from zygote_py.drivers.forms import Driver, SelectedParameter
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class _Sparse(Driver):
    """A driver with an additional array as its last argument."""

    order: int = 1

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature of the arguments and the array."""
        names = list(of.parameters)
        return signature_of(*names, free("given", names))

    def _begun(self, call: numba_adapter.DerivedCall) -> tuple[Script, SelectedParameter, str, str]:
        """Return a new script, the selected parameter, the name of the last parameter, and the text of the function."""
        script = self.script(call, (*call.parameters, free("given", call.parameters)))
        (asked,), _ = self.asked(call)
        result: Any = call.typed(call.argument_types[:-1]).return_type if self.order == 1 else None
        if self.order == 1 and not (is_array(result) and isinstance(result.dtype, types.Float)):
            raise refuse(
                f"a sparse Jacobian of `{call.name}`, whose result is of type {result}",
                call.loc,
                hint="return an array of floats",
            )
        of = FUNCTION if self.order == 1 else script.derived(GradientForm(asked.number - self.captured_count))
        return script, asked, script.parameters[-1], of


@dataclass(frozen=True)
class Dependence(_Sparse):
    """The elements of the argument on which each element of the result depends; the array contains their numbers."""

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments and of the numbers."""
        script, asked, indices, of = self._begun(call)
        names = script.parameters[:-1]
        changes = [indices if number == asked.number else "None" for number in range(len(names))]
        traced = f"{script.derived(TraceForm(), of)}(({', '.join(names)},), (({', '.join(changes)},),))"
        script.add(f"y, (sets, unions, same) = {traced}", "return sets, unions, same")
        return script.function()


@dataclass(frozen=True)
class Products(_Sparse):
    """Derivatives of the result in directions, the rows of a matrix; returns one row for each.

    There is at least one direction.
    """

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments and of the directions."""
        script, asked, rows, of = self._begun(call)
        names = script.parameters[:-1]
        kind: Any = asked.type
        dtype = script.named(getattr(script.namespace["np"], str(kind.dtype)), "dtype")
        called = f"{script.derived(PushForm(with_value=False, again=True), of)}(({', '.join(names)},), "
        taken = ", ".join(f"dy_{number}" for number in range(WIDTH))

        def carry(start: str) -> None:
            """Write a call in several directions; the last group repeats its last direction."""
            changes = []
            for number in range(WIDTH):
                at = start if number == 0 else f"min({start} + {number}, count - 1)"
                script.add(f"v_{number} = {rows}[{at}].reshape({names[asked.number]}.shape)")
                tangents = [f"v_{number}" if place == asked.number else "None" for place in range(len(names))]
                changes.append(f"({', '.join(tangents)},)")
            script.add(f"{taken} = {called}({', '.join(changes)},))")

        def put(start: str) -> None:
            """Write the assignment of the tangents."""
            script.add(f"found[{start}] = dy_0.ravel()")
            for number in range(1, WIDTH):
                script.add(f"if {start} + {number} < count:", f"    found[{start} + {number}] = dy_{number}.ravel()")

        script.add(f"count = {rows}.shape[0]")
        carry("0")  # by itself: it says how many elements there are
        script.add(f"found = np.empty((count, dy_0.size), {dtype})")
        put("0")
        with script.block(f"for start in range({WIDTH}, count, {WIDTH}):"):
            carry("start")
            put("start")
        script.add("return found")
        return script.function()


@dataclass(frozen=True)
class Weighed(_Sparse):
    """Gradients of weighted sums of the result's elements, one for each row of a matrix of weights."""

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments and of the weights."""
        script, asked, rows, _ = self._begun(call)
        names = script.parameters[:-1]
        dtype = script.named(getattr(script.namespace["np"], str(cast(Any, asked.type).dtype)), "dtype")
        function = free("function", [*names, rows])
        inner = Script(f"{call.name}_weighed", (*names, rows), (function,), namespace={"np": script.namespace["np"]})
        inner.add(f"return np.sum({rows} * {function}({', '.join(names)}).ravel())")
        weighed = script.named(inner.function(), "weighed")
        script.add(f"count = {rows}.shape[0]", f"found = np.zeros((count, {names[asked.number]}.size), {dtype})")
        taken = ", ".join(script.copied(name, kind) for name, kind in zip(names, call.argument_types, strict=False))
        gradient = script.derived(GradientForm(asked.number), weighed)
        script.add("for k in range(count):", f"    dx = {gradient}({taken}, {rows}[k], {FUNCTION})")
        script.add("    found[k] = dx.ravel()", "return found")
        return script.function()
