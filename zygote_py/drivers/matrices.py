"""Derivatives in all directions: `jacobian`, `hessian`, `hessian_diagonal`, `value_gradient_hessian`.

    def f_hessian(x, closure_):
        n_0 = x.size
        a = np.empty((n_0, n_0), dtype)
        ...                                     # a[k:, k] = a[k, k:] = the gradient's derivative in direction k
        return a.reshape(x.shape + x.shape)

A matrix is filled by columns in forward mode (`zygote_py.drivers.columns`), or by rows, each of them a gradient. At the
end it is divided into blocks, in the structure of the result and, within that, the structure of the arguments. The
functions are written as IR; the docstrings show them as Python.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from numba import types

from zygote_py import base, compiler, frontend, numba_adapter
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import free
from zygote_py.compiler import FUNCTION, GradientForm, PushForm, leaves, refuse_aux, signature_of
from zygote_py.drivers.columns import DiagonalFilling, Filling, Side, SymmetricFilling, dtype_of, is_array, is_vector
from zygote_py.drivers.forms import Driver, SelectedParameter, in_form, numbers_in, structured
from zygote_py.frontend.values import (
    NOTHING,
    LoweredValue,
    component,
    components,
    named,
    tuple_of,
    value_of,
    with_names,
)
from zygote_py.ir import Const, Operand, components_of, ops
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Hessian(Driver):
    """`hessian`: the blocks of second derivatives, preceded by the value and the gradient if `with_gradient`."""

    with_gradient: bool = False
    has_aux: bool = False

    def __str__(self) -> str:
        return "value_gradient_hessian" if self.with_gradient else "hessian"

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments."""
        if self.has_aux:
            return with_aux(self, call)
        w, args, asked, unwrap_single = self.start(call)
        gradient = GradientForm(tuple(each.number for each in asked))
        columns = Side(w, _selected(args, asked), "n")
        filling = SymmetricFilling(w, args, asked, columns, w.derived(gradient))
        found: tuple[LoweredValue, ...] = ()
        if self.with_gradient:
            filling.once = False
            value, slope = components(w.invoke(w.derived(replace(gradient, with_value=True)), *map(w.copied, args)))
            slope = component(slope, 0) if unwrap_single else slope
            found = (with_names(value, "value"), with_names(slope, "found"))
        filling.band = _bandwidth(call, asked)
        made = ops.record if filling.band is None else ops.zeros
        filling.matrix = w.array(made, columns.dtype, columns.count, columns.count, hint="a")
        if filling.has_many_numbers:
            filling.fill_numbers(columns)
        else:
            for group in filling.groups():
                _, changes = filling.push_numbers(group)
                filling.put_numbers(group, changes, columns)
            for place in filling.arrays():
                filling.fill_array(place, columns)
        rows = [
            in_form(asked, unwrap_single, _row(w, filling.matrix, columns, columns, place))
            for place in range(len(columns.leaves))
        ]
        blocks = in_form(asked, unwrap_single, iter(rows))
        return w.returned(tuple_of([*found, blocks]) if self.with_gradient else blocks)


@dataclass(frozen=True)
class Diagonal(Hessian):
    """`hessian_diagonal`: the second derivative with respect to each element, in the structure of the arguments."""

    def __str__(self) -> str:
        return "hessian_diagonal"

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments."""
        w, args, asked, unwrap_single = self.start(call)
        columns = Side(w, _selected(args, asked), "n")
        gradient = w.derived(GradientForm(tuple(each.number for each in asked)))
        filling = DiagonalFilling(w, args, asked, columns, gradient)
        filling.band = _bandwidth(call, asked)
        found: dict[int, Operand] = {}
        for group in filling.groups():
            _, changes = filling.push_numbers(group)
            found |= {place: named(change[place], f"d_{place}") for place, change in zip(group, changes, strict=True)}
        for place in filling.arrays():
            leaf = columns.leaves[place]
            filling.matrix = w.array(ops.record, dtype_of([leaf]), w.size(leaf), hint=f"d_{place}")
            filling.fill_array(place, columns)
            found[place] = filling.matrix if is_vector(leaf) else w.reshaped(filling.matrix, w.shape(leaf))
        return w.returned(in_form(asked, unwrap_single, (value_of(found[place]) for place in sorted(found))))


@dataclass(frozen=True)
class Jacobian(Driver):
    """`jacobian`: the derivatives of all results of a function."""

    mode: str = "auto"
    has_aux: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "forward", "reverse"):
            raise DifferentiationError(f"mode={self.mode!r}", hint="it is 'auto', 'forward' or 'reverse'")

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments."""
        if self.has_aux:
            return with_aux(self, call)
        w, args, asked, unwrap_single = self.start(call)
        result = _result_type(call, args)
        if not any(leaves("y", result)):
            raise refuse(f"the result is of type {result}", call.loc, "return floats, or arrays of floats")
        columns = Side(w, _selected(args, asked), "n")
        filling = Filling(w, args, asked, columns, w.closure)
        groups = list(filling.groups())
        changes: list[list[Operand]] = []
        if self.mode == "reverse" or not groups:
            unchanged = tuple_of([NOTHING] * len(args))  # the function works on copies, if they may be made
            pushed = w.derived(PushForm(again=True))
            value = component(w.invoke(pushed, tuple_of(args), tuple_of([unchanged])), 0)
        else:
            value, changes = filling.push_numbers(groups[0], with_value=True)
        rows = Side(w, numbers_in(with_names(value, "y")), "m")
        is_complex = isinstance(rows.dtype, types.Complex)
        if self.mode == "reverse" and is_complex:
            raise refuse("a complex result in reverse mode", call.loc, "use mode='forward'")
        dtype = dtype_of((*rows.leaves, *columns.leaves))
        filling.matrix = w.array(ops.record, dtype, rows.count, columns.count, hint="a")
        if self.mode == "reverse":
            _fill_rows(filling, rows, range(len(columns.leaves)))
        else:
            for number, group in enumerate(groups):
                if number:
                    _, changes = filling.push_numbers(group, with_value=True)
                filling.put_numbers(group, changes, rows)
            forward_only = self.mode == "forward" or is_complex or _has_many_rows(call, asked)
            _fill_arrays(filling, rows, forward_only=forward_only)
        made = [
            in_form(asked, unwrap_single, _row(w, filling.matrix, rows, columns, place))
            for place in range(len(rows.leaves))
        ]
        return w.returned(structured(result, iter(made)))


def _fill_arrays(filling: Filling, rows: Side, *, forward_only: bool) -> None:
    """Write code that fills the columns of arrays: in forward mode, or in reverse for fewer rows than columns."""
    w, arrays = filling.w, filling.arrays()
    fill_columns, fill_rows = partial(_fill_columns, filling, rows), partial(_fill_rows, filling, rows, arrays)
    if forward_only or not arrays:
        fill_columns()
    elif not any(map(is_array, rows.leaves)):
        fill_rows()
    else:  # a row costs some three times what a direction costs
        cost = w.call(operator.mul, Const(3, types.int64), rows.count, type=types.int64)
        count = w.plus(*(w.size(filling.columns.leaves[place]) for place in arrays))
        w.either(w.call(operator.lt, cost, count, type=types.boolean), fill_rows, fill_columns)


def _fill_columns(filling: Filling, rows: Side) -> None:
    """Write code that fills the columns of arrays in forward mode."""
    for place in filling.arrays():
        filling.fill_array(place, rows)


def _fill_rows(filling: Filling, rows: Side, places: Sequence[int]) -> None:
    """Write a gradient for each row, with respect to the parameters of the columns in `places`."""
    w, columns = filling.w, filling.columns
    first = 0
    wanted = []  # the parameters, with their leaves among the columns
    for each in filling.asked:
        own = range(first, first + len(list(numbers_in(filling.args[each.number]))))
        if any(place in places for place in own):
            wanted.append((each, own))
        first = own.stop
    form = GradientForm(tuple(each.number + 1 for each, _ in wanted))
    for number, leaf in enumerate(rows.leaves):
        gradient = w.derived(form, w.derived(Component(leaf=number)))
        loop = w.loop("row", 0, w.size(leaf)) if is_array(leaf) else nullcontext(Const(0, types.int64))
        with loop as row:
            found = with_names(w.invoke(gradient, value_of(row), *map(w.copied, filling.args)), "g")
            place = w.plus(rows.starts[number], row)
            for (_, own), part in zip(wanted, components(found), strict=True):
                for column, slope in zip(own, numbers_in(part), strict=True):
                    w.store(filling.matrix, w.flat(slope), place, columns.part(column))


@dataclass(frozen=True)
class Component(Driver):
    """A number in the result of a function: the first argument says which one, if there are several in the `leaf`."""

    leaf: int = 0

    def __str__(self) -> str:
        return f"component_{self.leaf}"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the number first."""
        return signature_of(free("row", of.parameters), *of.parameters)

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the number and the arguments."""
        script = self.script(call, list(self.signature(inspect.signature(call.func)).parameters))
        row, *names = script.parameters
        result = call.typed(call.argument_types[1:]).return_type
        leaf = list(leaves(f"{FUNCTION}({', '.join(names)})", result))[self.leaf]
        script.add(f"return {leaf.flat}{f'[{row}]' if leaf.is_array else ''}")
        return script.function()


@dataclass(frozen=True)
class First(Driver):
    """The first of the values that a function returns."""

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        script = self.script(call, call.parameters)
        script.add(f"return {FUNCTION}({', '.join(script.parameters)})[0]")
        return script.function()


def with_aux(driver: Hessian | Jacobian, call: numba_adapter.DerivedCall) -> base.TypedFunction:
    """Return a function of the arguments that returns a matrix of the function's first result, and its second result.

    The function runs once more for this, on copies of its arguments.
    """
    w, args, asked, unwrap_single = driver.start(call)
    result = _result_type(call, args)
    if not isinstance(result, types.BaseTuple) or len(components_of(result)) != 2:
        raise refuse_aux(result, call.loc)
    wrt = asked[0].number if unwrap_single else tuple(each.number for each in asked)
    matrix = w.derived(replace(driver, wrt=wrt, captured_count=0, has_aux=False), w.derived(First()))
    value = with_names(component(w.run(*map(w.copied, args)), 1), "value")
    return w.returned(tuple_of([w.invoke(matrix, *args), value]))


def _result_type(call: numba_adapter.DerivedCall, args: Sequence[LoweredValue]) -> Any:
    """Return the type of the function's result, for the types that are differentiated."""
    return call.typed(tuple(each.type for each in args)).return_type


def _selected(args: Sequence[LoweredValue], asked: Sequence[SelectedParameter]) -> Iterator[Operand]:
    """Yield the numbers and arrays in the selected arguments."""
    for each in asked:
        yield from numbers_in(args[each.number])


def _has_many_rows(call: numba_adapter.DerivedCall, asked: Sequence[SelectedParameter]) -> bool:
    """Return whether the function is a derivative with respect to the same parameters, with an element for each."""
    form = call.inner_form
    if not isinstance(form, GradientForm | Hessian | Jacobian) or isinstance(form.wrt, str):
        return False
    wrt = form.wrt if form.wrt is None or isinstance(form.wrt, tuple) else (form.wrt,)
    return wrt is None or {each.number for each in asked} <= set(wrt)


def _bandwidth(call: numba_adapter.DerivedCall, asked: Sequence[SelectedParameter]) -> int | None:
    """Return how far from the diagonal the Hessian of a vector has entries, if the function's loops say so."""
    if len(asked) != 1 or not isinstance(asked[0].type, types.Array) or asked[0].type.ndim != 1:
        return None
    kinds = list(call.argument_types)
    kinds[asked[0].number] = asked[0].type
    return compiler.bandwidth_of(call, tuple(kinds), asked[0].number)


def _row(w: frontend.Writer, matrix: Operand, rows: Side, columns: Side, place: int) -> Iterator[LoweredValue]:
    """Return the blocks of one leaf of the rows."""
    row = rows.leaves[place]
    for number, column in enumerate(columns.leaves):
        if not is_array(row) and not is_array(column):
            yield value_of(w.element(matrix, rows.part(place), columns.part(number)))
            continue
        whole = rows.is_one and columns.is_one and is_array(row) and is_array(column)
        taken = matrix if whole else w.copy(w.element(matrix, rows.part(place), columns.part(number)))
        vectors = all(is_vector(leaf) for leaf in (row, column) if is_array(leaf))
        yield value_of(taken if vectors else w.reshaped(taken, (*w.shape(row), *w.shape(column))))
