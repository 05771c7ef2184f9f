"""Derivatives in all directions: `jacobian`, `hessian`, `hessian_diagonal`, `value_gradient_hessian`.

    def f_hessian(x, closure_):
        n_0 = x.size
        a = np.empty((n_0, n_0), dtype)
        ...                                     # a[k:, k] = a[k, k:] = the gradient's derivative in direction k
        return a.reshape(x.shape + x.shape)

A matrix is filled by columns in forward mode (`zygote_py.drivers.columns`), or by rows, each of them a gradient. At the
end it is divided into blocks, in the structure of the result and, within that, the structure of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from numba import types

from zygote_py import compiler, numba_adapter
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.compiler import FUNCTION, GradientForm, PushForm, Script, leaves, parts, refuse_aux
from zygote_py.drivers.columns import DiagonalFilling, Filling, Side, SymmetricFilling, dtype_of, plus
from zygote_py.drivers.forms import Driver, SelectedParameter
from zygote_py.ir import Type, components_of
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Hessian(Driver):
    """`hessian`: the blocks of second derivatives, preceded by the value and the gradient if `with_gradient`."""

    with_gradient: bool = False
    has_aux: bool = False

    def __str__(self) -> str:
        return "value_gradient_hessian" if self.with_gradient else "hessian"

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        if self.has_aux:
            return with_aux(self, call)
        script, names, asked, unwrap_single = self.start(call)
        wrt = tuple(each.number for each in asked)
        columns = Side(script, (leaf for each in asked for leaf in each.leaves), "n")
        filling = SymmetricFilling(script, names, asked, columns, "a", script.derived(GradientForm(wrt)), _kind(asked))
        if self.with_gradient:
            filling.once = False
            taken = ", ".join(copied(script, name, kind) for name, kind in zip(names, call.argument_types, strict=True))
            script.add(f"value, found = {script.derived(GradientForm(wrt, with_value=True))}({taken})")
        filling.band = _bandwidth(call, asked)
        dtype = script.named(dtype_of(columns.leaves), "dtype")
        made = "empty" if filling.band is None else "zeros"
        script.add(f"a = np.{made}(({columns.count}, {columns.count}), {dtype})")
        for group in filling.groups():
            filling.put_numbers(group, filling.push_numbers(group), columns)
        for place in filling.arrays():
            filling.fill_array(place, columns)
        rows = [
            in_form(script, asked, unwrap_single, _row(script, columns, columns, place))
            for place in range(len(columns.leaves))
        ]
        blocks = in_form(script, asked, unwrap_single, iter(rows))
        script.add(
            f"return value, found{'[0]' * unwrap_single}, {blocks}" if self.with_gradient else f"return {blocks}"
        )
        return script.function()


@dataclass(frozen=True)
class Diagonal(Hessian):
    """`hessian_diagonal`: the second derivative with respect to each element, in the structure of the arguments."""

    def __str__(self) -> str:
        return "hessian_diagonal"

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        script, names, asked, unwrap_single = self.start(call)
        wrt = tuple(each.number for each in asked)
        columns = Side(script, (leaf for each in asked for leaf in each.leaves), "n")
        filling = DiagonalFilling(script, names, asked, columns, "a", script.derived(GradientForm(wrt)), _kind(asked))
        filling.band = _bandwidth(call, asked)
        found: dict[int, str] = {}
        for group in filling.groups():
            for place, change in zip(group, filling.push_numbers(group), strict=True):
                found[place] = f"d_{place}"
                script.add(f"d_{place} = {list(leaves(change, filling.result))[place].text}")
        for place in filling.arrays():
            leaf = columns.leaves[place]
            filling.matrix = found[place] = f"d_{place}"
            script.add(f"d_{place} = np.empty({leaf.size}, {script.named(dtype_of([leaf]), 'dtype')})")
            filling.fill_array(place, columns)
            if not leaf.is_vector:
                script.add(f"d_{place} = d_{place}.reshape({leaf.text}.shape)")
        script.add(
            f"return {in_form(script, asked, unwrap_single, (found[place] for place in range(len(columns.leaves))))}"
        )
        return script.function()


@dataclass(frozen=True)
class Jacobian(Driver):
    """`jacobian`: the derivatives of all results of a function."""

    mode: str = "auto"
    has_aux: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "forward", "reverse"):
            raise DifferentiationError(f"mode={self.mode!r}", hint="it is 'auto', 'forward' or 'reverse'")

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        if self.has_aux:
            return with_aux(self, call)
        script, names, asked, unwrap_single = self.start(call)
        result, taken = _typed(script, call, names, asked)
        if not list(leaves("y", result)):
            raise refuse(f"the result is of type {result}", call.loc, "return floats, or arrays of floats")
        columns = Side(script, (leaf for each in asked for leaf in each.leaves), "n")
        filling = Filling(script, names, asked, columns, "a", FUNCTION, result)
        groups = list(filling.groups())
        if self.mode == "reverse" or not groups:
            nothing = ", ".join(["None"] * len(names))  # changes; the function works on copies, if they may be made
            pushed = script.derived(PushForm(again=True))
            script.add(f"y, t_0 = {pushed}(({', '.join(names)},), (({nothing},),))")
            first = None
        else:
            first = filling.push_numbers(groups[0], with_value=True)
        rows = Side(script, leaves("y", result), "m")
        if self.mode == "reverse" and any(leaf.is_complex for leaf in rows.leaves):
            raise refuse("a complex result in reverse mode", call.loc, "use mode='forward'")
        dtype = script.named(dtype_of((*rows.leaves, *columns.leaves)), "dtype")
        script.add(f"a = np.empty(({rows.count}, {columns.count}), {dtype})")
        if self.mode == "reverse":
            self._fill_rows(script, names, asked, rows, columns, range(len(columns.leaves)), copies=taken)
        else:
            for number, group in enumerate(groups):
                filling.put_numbers(
                    group, first if number == 0 and first else filling.push_numbers(group, with_value=True), rows
                )
            mode = "forward" if self.mode == "auto" and _has_many_rows(call, asked) else self.mode
            replace(self, mode=mode)._fill_arrays(script, filling, rows, names, asked, taken)
        made = [
            in_form(script, asked, unwrap_single, _row(script, rows, columns, place))
            for place in range(len(rows.leaves))
        ]
        script.add(f"return {script.like(result, iter(made))}")
        return script.function()

    def _fill_arrays(
        self,
        script: Script,
        filling: Filling,
        rows: Side,
        names: list[str],
        asked: Sequence[SelectedParameter],
        copies: str,
    ) -> None:
        """Write code that fills the columns of arrays: in forward mode, or in reverse for fewer rows than columns."""
        arrays = filling.arrays()
        forward_only = self.mode == "forward" or any(leaf.is_complex for leaf in rows.leaves)
        reverse_only = not forward_only and not any(leaf.is_array for leaf in rows.leaves)
        count = plus(*(filling.columns.leaves[place].size for place in arrays))
        if forward_only or not arrays:
            self._fill_columns(filling, rows)
        elif reverse_only:
            self._fill_rows(script, names, asked, rows, filling.columns, arrays, copies)
        else:
            with script.block(f"if 3 * {rows.count} < {count}:"):  # a row costs some three times what a direction costs
                self._fill_rows(script, names, asked, rows, filling.columns, arrays, copies)
            with script.block("else:"):
                self._fill_columns(filling, rows)

    def _fill_columns(self, filling: Filling, rows: Side) -> None:
        """Write code that fills the columns of arrays in forward mode."""
        for place in filling.arrays():
            filling.fill_array(place, rows)

    def _fill_rows(
        self,
        script: Script,
        names: list[str],
        asked: Sequence[SelectedParameter],
        rows: Side,
        columns: Side,
        places: Sequence[int],
        copies: str,
    ) -> None:
        """Write a gradient for each row, with respect to the parameters of the columns in `places`."""
        first = 0
        wanted = []  # the parameters, with their leaves among the columns
        for each in asked:
            own = range(first, first + len(each.leaves))
            if any(place in places for place in own):
                wanted.append((each, own))
            first = own.stop
        wrt = tuple(each.number + 1 for each, _ in wanted)
        parameters = ", ".join(names)
        for number, leaf in enumerate(rows.leaves):
            item = leaf.text.removeprefix("y")
            which = "row" if leaf.is_array else "0"
            flat = ".ravel()" if leaf.is_array and not leaf.is_vector else ""
            script.add(f"def component_{number}(row, {parameters}):")
            script.add(f"    return {FUNCTION}({parameters}){item}{flat}{'[row]' if leaf.is_array else ''}")
            with script.block(f"for row in range({leaf.size}):") if leaf.is_array else nullcontext():
                script.add(f"g = {script.derived(GradientForm(wrt), f'component_{number}')}({which}, {copies})")
                row = plus(rows.starts[number], "row") if leaf.is_array else rows.starts[number]
                for position, (each, own) in enumerate(wanted):
                    for place, part in zip(own, leaves(f"g[{position}]", each.type), strict=True):
                        script.add(f"a[{row}, {columns.part(place)}] = {part.flat}")


def _has_many_rows(call: numba_adapter.DerivedCall, asked: Sequence[SelectedParameter]) -> bool:
    """Return whether the function is a derivative with respect to the same parameters, with an element for each."""
    form = call.inner_form
    if not isinstance(form, GradientForm | Hessian | Jacobian) or isinstance(form.wrt, str):
        return False
    wrt = form.wrt if form.wrt is None or isinstance(form.wrt, tuple) else (form.wrt,)
    return wrt is None or {each.number for each in asked} <= set(wrt)


def with_aux(driver: Hessian | Jacobian, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
    """Return a function of the arguments that returns a matrix of the function's first result, and its second result.

    The function runs once more for this, on copies of its arguments.
    """
    script, names, asked, unwrap_single = driver.start(call)
    result, copies = _typed(script, call, names, asked)
    if not isinstance(result, types.BaseTuple) or len(components_of(result)) != 2:
        raise refuse_aux(result, call.loc)
    wrt = asked[0].number if unwrap_single else tuple(each.number for each in asked)
    matrix = script.derived(replace(driver, wrt=wrt, captured_count=0, has_aux=False), "component_0")
    script.add(f"def component_0({', '.join(names)}):", f"    return {FUNCTION}({', '.join(names)})[0]")
    script.add(f"value = {FUNCTION}({copies})", f"return {matrix}({', '.join(names)}), value[1]")
    return script.function()


def _typed(
    script: Script, call: numba_adapter.DerivedCall, names: list[str], asked: Sequence[SelectedParameter]
) -> tuple[Any, str]:
    """Return the type of the function's result, and copies of its arguments, for the types that are differentiated."""
    kinds = list(call.argument_types)
    for each in asked:
        kinds[each.number] = each.type
    copies = ", ".join(copied(script, name, kind) for name, kind in zip(names, kinds, strict=True))
    return call.typed(tuple(kinds)).return_type, copies


def _bandwidth(call: numba_adapter.DerivedCall, asked: Sequence[SelectedParameter]) -> int | None:
    """Return how far from the diagonal the Hessian of a vector has entries, if the function's loops say so."""
    if len(asked) != 1 or not isinstance(asked[0].type, types.Array) or asked[0].type.ndim != 1:
        return None
    kinds = list(call.argument_types)
    kinds[asked[0].number] = asked[0].type
    return compiler.bandwidth_of(call, tuple(kinds), asked[0].number)


def _kind(asked: Sequence[SelectedParameter]) -> Type:
    """Return the type of a gradient with respect to these parameters."""
    kind: Type = types.BaseTuple.from_types([each.type for each in asked])
    return kind


def _row(script: Script, rows: Side, columns: Side, place: int) -> Iterator[str]:
    """Return the blocks of one leaf of the rows, as text."""
    row = rows.leaves[place]
    for number, column in enumerate(columns.leaves):
        if not row.is_array and not column.is_array:
            yield f"a[{rows.part(place)}, {columns.part(number)}]"
            continue
        shape = " + ".join(f"{leaf.text}.shape" for leaf in (row, column) if leaf.is_array)
        whole = rows.is_one and columns.is_one and row.is_array and column.is_array
        taken = "a" if whole else f"a[{rows.part(place)}, {columns.part(number)}].copy()"
        vectors = all(leaf.is_vector for leaf in (row, column) if leaf.is_array)
        yield taken if vectors else f"{taken}.reshape({shape})"


def in_form(script: Script, asked: Sequence[SelectedParameter], unwrap_single: bool, items: Iterator[str]) -> str:
    """Return one item for each leaf, in the structure of the selected arguments, as text."""
    made = [script.like(each.type, items) for each in asked]
    return made[0] if unwrap_single else f"({', '.join(made)},)"


def copied(script: Script, text: str, kind: Type) -> str:
    """Return a value that the function may mutate, its arrays copied, as text."""
    if isinstance(kind, types.BaseTuple):
        if not any(leaf.is_array for leaf in leaves(text, kind)):
            return text
        return script.built(kind, (copied(script, one, inner) for one, inner in parts(text, kind)))
    return f"{text}.copy()" if isinstance(kind, types.Array) else text
