"""Fill a matrix column by column: the part of a driver that propagates directions through a function.

    for k_0 in range(0, x.size, 4):                             # four columns at once
        u_0[k_0] = 1.0; ...                                     # the elements of e_0, ...: unit vectors
        t_0, t_1, t_2, t_3 = pushforward(f)((x,), ((e_0,), (e_1,), (e_2,), (e_3,)))
        a[:, k_0] = t_0; ...
        u_0[k_0] = 0.0; ...

The leaves of all arguments are the columns, and the leaves of the result are the rows. Up to `MOST_NUMBERS` scalar
columns share one call; each array has a loop. Of a Hessian with a known band, columns that have no row in common are
computed together (Curtis, Powell and Reid, "On the Estimation of Sparse Jacobian Matrices", 1974):

    for k_0 in range(0, x.size, 3): e_0[k_0] = 1.0; ...         # three groups of columns: every third
    t_0, t_1, t_2 = pushforward(f)((x,), ((e_0,), (e_1,), (e_2,)))
    a[k_0, k_0] = t_0[k_0]; a[k_0 + 1, k_0] = t_0[k_0 + 1]; ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext

import numpy as np

from zygote_py.compiler import MOST_NUMBERS, WIDTH, Leaf, PushForm, Script, leaves
from zygote_py.drivers.forms import SelectedParameter
from zygote_py.ir import Type


class Side:
    """The rows or the columns of a matrix: leaves, where each begins (`starts`), and how many there are (`count`)."""

    def __init__(self, script: Script, found: Iterable[Leaf], name: str) -> None:
        self.leaves = list(found)
        self.starts: list[str] = []
        self.count = "0"
        for place, leaf in enumerate(self.leaves):
            self.starts.append(self.count)
            script.add(f"{name}_{place} = {plus(self.count, leaf.size)}")
            self.count = f"{name}_{place}"

    @property
    def is_one(self) -> bool:
        """Whether there is exactly one leaf."""
        return len(self.leaves) == 1

    def part(self, place: int) -> str:
        """Return the index of a leaf's rows or columns, as text."""
        start, leaf = self.starts[place], self.leaves[place]
        return f"{start} : {plus(start, leaf.size)}" if leaf.is_array else start


def plus(*terms: object) -> str:
    """Return a sum, as text."""
    return " + ".join(shown for term in terms if (shown := str(term)) != "0") or "0"


def dtype_of(found: Iterable[Leaf]) -> type:
    """Return the dtype of derivatives of, or with respect to, all of these leaves."""
    return np.result_type(*(np.dtype(leaf.dtype) for leaf in found)).type


class Filling:
    """Writes the code that fills `matrix` with the derivatives of `function`, whose result has the type `result`."""

    def __init__(
        self,
        script: Script,
        names: Sequence[str],
        asked: Sequence[SelectedParameter],
        columns: Side,
        matrix: str,
        function: str,
        result: Type,
    ) -> None:
        self.script = script
        self.names = names
        self.asked = asked
        self.columns = columns
        self.matrix = matrix
        self.function = function
        self.result = result
        self.once = not self.arrays() and len(list(self.groups())) < 2  # whether the function runs once

    def groups(self) -> Iterator[list[int]]:
        """Return the scalar columns, grouped into those that share a call."""
        found = [place for place, leaf in enumerate(self.columns.leaves) if not leaf.is_array]
        for start in range(0, len(found), MOST_NUMBERS):
            yield found[start : start + MOST_NUMBERS]

    def arrays(self) -> list[int]:
        """Return the columns that are arrays."""
        return [place for place, leaf in enumerate(self.columns.leaves) if leaf.is_array]

    def push_numbers(self, group: Sequence[int], *, with_value: bool = False) -> list[str]:
        """Write the call in the directions of scalars and return the names of its tangents. The value is called `y`.

        The tangent of a scalar is the empty tuple, which stands for 1, or None, for 0.
        """
        return self._push([self._direction({place: "()"}) for place in group], with_value=with_value)

    def put_numbers(self, group: Sequence[int], changes: Sequence[str], rows: Side) -> None:
        """Write these tangents to the matrix."""
        for place, change in zip(group, changes, strict=True):
            found = list(leaves(change, self.result))
            for number in self._rows(place, rows):
                cells = self._cells(rows.part(number), self.columns.starts[place])
                self.script.add(f"{cells} = {found[number].flat}")

    def fill_array(self, place: int, rows: Side) -> None:
        """Write the loop over the elements of an array."""
        script = self.script
        leaf, first = self.columns.leaves[place], self.columns.starts[place]
        lanes = range(WIDTH)
        dtype = script.named(dtype_of([leaf]), "dtype")
        self._add_directions(leaf, WIDTH, dtype)
        script.add(*(f"u_{lane} = e_{lane}{'' if leaf.is_vector else '.reshape(-1)'}" for lane in lanes))
        with script.block(f"for k_0 in range(0, {leaf.size}, {WIDTH}):"):
            # at the end, the last one in several lanes
            script.add(*(f"k_{lane} = min(k_0 + {lane}, {leaf.size} - 1)" for lane in lanes[1:]))
            script.add(*(f"u_{lane}[k_{lane}] = 1.0" for lane in lanes))
            changes = self._push([self._direction({place: f"e_{lane}"}) for lane in lanes])
            found = [list(leaves(change, self.result)) for change in changes]
            for number in self._rows(place, rows):
                self._put([each[number] for each in found], rows.starts[number], first)
            script.add(*(f"u_{lane}[k_{lane}] = 0.0" for lane in lanes))

    def _add_directions(self, leaf: Leaf, count: int, dtype: str) -> None:
        """Write the tangents of an array in several directions, zeros.

        Those of a vector are views of one matrix, which `ops.interleaved` takes as it is. For other arrays, which take
        longer to compile than to copy, they are arrays of their own.
        """
        if leaf.is_vector:
            self.script.add(f"e = np.zeros(({leaf.size}, {count}), {dtype})")
        for lane in range(count):
            made = f"e[:, {lane}]" if leaf.is_vector else f"np.zeros({leaf.text}.shape, {dtype})"
            self.script.add(f"e_{lane} = {made}")

    def _push(self, directions: Sequence[str], *, with_value: bool = False) -> list[str]:
        """Write the call of the pushforward."""
        changes = [f"t_{number}" for number in range(len(directions))]
        args, tangents = ", ".join(self.names), ", ".join(directions)
        found = f"{'y, ' if with_value else ''}({', '.join(changes)},)"
        pushed = self.script.derived(PushForm(with_value, again=not self.once), self.function)
        self.script.add(f"{found} = {pushed}(({args},), ({tangents},))")
        return changes

    def _direction(self, changes: dict[int, str]) -> str:
        """Return the tangents of the arguments in one direction: `changes` for those leaves, None for others."""
        tangents = ["None"] * len(self.names)
        place = 0
        for each in self.asked:
            own = range(place, place + len(each.leaves))
            if any(number in changes for number in own):
                items = (changes.get(number, "None") for number in own)
                tangents[each.number] = self.script.like(each.type, items, plain=True)
            place = own.stop
        return f"({', '.join(tangents)},)"

    def _rows(self, place: int, rows: Side) -> range:
        """Return the leaves of the rows that are written for the column of a leaf."""
        return range(len(rows.leaves))

    def _cells(self, row: str, column: str) -> str:
        """Return the targets of an assignment to a row and a column, as text."""
        return f"{self.matrix}[{row}, {column}]"

    def _first_row(self, row: str, first: str) -> str:
        """Return the first row that is written for these columns, of a leaf that begins at `row`."""
        return "0"

    def _put(self, found: Sequence[Leaf], row: str, first: str) -> None:
        """Write the tangents of one leaf of the result to the matrix; the columns of the array begin at `first`."""
        columns = [plus(first, f"k_{lane}") for lane in range(len(found))]
        if not found[0].is_array:
            pairs = zip(columns, found, strict=True)
            self.script.add(*(f"{self._cells(row, column)} = {leaf.text}" for column, leaf in pairs))
            return
        self.script.add(*(f"r_{lane} = {leaf.flat}" for lane, leaf in enumerate(found)))
        self.script.add(f"for i in range({self._first_row(row, first)}, r_0.size):")
        cells = (self._cells(plus(row, "i"), column) for column in columns)
        self.script.add(*(f"    {cell} = r_{lane}[i]" for lane, cell in enumerate(cells)))


class SymmetricFilling(Filling):
    """Fills a symmetric matrix: entries below the diagonal are written above it, too.

    If columns of one call overlap, the entry that is written last holds, on both sides. If there is a `band`, entries
    farther from the diagonal are zero, and are not written.
    """

    band: int | None = None

    def fill_array(self, place: int, rows: Side) -> None:
        """Write the loop over the elements of an array, or over those that have no row in common."""
        if self.band is None:
            super().fill_array(place, rows)
        else:
            self._fill_band(place, self.band)

    def _fill_band(self, place: int, band: int) -> None:
        """Write the code for a vector, the only leaf of the columns and of the rows: every so many columns at once."""
        script = self.script
        leaf = self.columns.leaves[place]
        dtype = script.named(dtype_of([leaf]), "dtype")
        count = 2 * band + 1
        lanes = range(min(count, WIDTH))
        in_groups = count > WIDTH
        self._add_directions(leaf, len(lanes), dtype)
        groups = script.block(f"for k_0 in range(0, min({count}, {leaf.size}), {WIDTH}):")
        columns = [f"for k in range({plus('k_0' if in_groups else 0, lane)}, {leaf.size}, {count}):" for lane in lanes]
        with groups if in_groups else nullcontext():
            for lane in lanes:
                script.add(columns[lane], f"    e_{lane}[k] = 1.0")
            changes = self._push([self._direction({place: f"e_{lane}"}) for lane in lanes])
            for lane, change in zip(lanes, changes, strict=True):
                (found,) = leaves(change, self.result)
                with script.block(columns[lane]):
                    self._put_in_band(found, leaf.size, band)
            if in_groups:
                for lane in lanes:
                    script.add(columns[lane], f"    e_{lane}[k] = 0.0")

    def _rows(self, place: int, rows: Side) -> range:
        return range(place, len(rows.leaves))

    def _cells(self, row: str, column: str) -> str:
        below = f"{self.matrix}[{row}, {column}]"
        return below if row == column else f"{self.matrix}[{column}, {row}] = {below}"

    def _first_row(self, row: str, first: str) -> str:
        return "k_0" if row == first else "0"

    def _put_in_band(self, found: Leaf, size: str, band: int) -> None:
        self.script.add(f"for i in range(k, min(k + {band + 1}, {size})):")
        self.script.add(f"    {self._cells('i', 'k')} = {found.text}[i]")


class DiagonalFilling(SymmetricFilling):
    """Fills a vector with the diagonal of a matrix."""

    def _put(self, found: Sequence[Leaf], row: str, first: str) -> None:
        if row == first:
            self.script.add(*(f"{self.matrix}[k_{n}] = {leaf.flat}[k_{n}]" for n, leaf in enumerate(found)))

    def _put_in_band(self, found: Leaf, size: str, band: int) -> None:
        self.script.add(f"{self.matrix}[k] = {found.text}[k]")
