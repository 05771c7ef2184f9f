"""Fill a matrix column by column: the part of a driver that propagates directions through a function.

    for k_0 in range(0, x.size, 4):                             # four columns at once
        u_0[k_0] = 1.0; ...                                     # the elements of e_0, ...: unit vectors
        t_0, t_1, t_2, t_3 = pushforward(f)((x,), ((e_0,), (e_1,), (e_2,), (e_3,)))
        a[:, k_0] = t_0; ...
        u_0[k_0] = 0.0; ...

The leaves of all arguments are the columns, and the leaves of the result are the rows. Up to `MOST_NUMBERS` scalar
columns share one call; each array has a loop, and so have the scalar columns of a Hessian by many numbers. Of a
Hessian with a known band, columns that have no row in common are computed together (Curtis, Powell and Reid, "On the
Estimation of Sparse Jacobian Matrices", 1974):

    for k_0 in range(0, x.size, 3): e_0[k_0] = 1.0; ...         # three groups of columns: every third
    t_0, t_1, t_2 = pushforward(f)((x,), ((e_0,), (e_1,), (e_2,)))
    a[k_0, k_0] = t_0[k_0]; a[k_0 + 1, k_0] = t_0[k_0 + 1]; ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext

import numpy as np
from numba import types

from zygote_py import frontend
from zygote_py.compiler import MOST_NUMBERS, WIDTH, PushForm
from zygote_py.drivers.forms import SelectedParameter, numbers_in, structured
from zygote_py.frontend.values import NOTHING, LoweredValue, components, named, tuple_of, value_of, with_names
from zygote_py.ir import Const, Operand, Type, ops

_ZERO = Const(0, types.int64)
_ONE = LoweredValue(types.Tuple(()), ())  # the tangent 1 of a number
_MOST_CALLS = 2  # of functions of their own, each for a group of numbers


class Side:
    """The rows or the columns of a matrix: leaves, where each begins (`starts`), and how many there are (`count`)."""

    def __init__(self, w: frontend.Writer, found: Iterable[Operand], hint: str) -> None:
        self.leaves = list(found)
        self.starts: list[Operand] = []
        self.count: Operand = _ZERO
        self._w = w
        for place, leaf in enumerate(self.leaves):
            self.starts.append(self.count)
            self.count = named(w.plus(self.count, w.size(leaf)), f"{hint}_{place}")

    @property
    def is_one(self) -> bool:
        """Whether there is exactly one leaf."""
        return len(self.leaves) == 1

    @property
    def dtype(self) -> Type:
        """The type of derivatives of, or with respect to, all of these leaves."""
        return dtype_of(self.leaves)

    def part(self, place: int) -> Operand:
        """Return the index of a leaf's rows or columns."""
        start, leaf = self.starts[place], self.leaves[place]
        return self._w.slice(start, self._w.plus(start, self._w.size(leaf))) if is_array(leaf) else start


def is_array(leaf: Operand) -> bool:
    """Return whether this is an array, and not a number."""
    return isinstance(leaf.type, types.Array)


def is_vector(leaf: Operand) -> bool:
    """Return whether this is an array of one dimension."""
    return isinstance(leaf.type, types.Array) and leaf.type.ndim == 1


def dtype_of(found: Iterable[Operand]) -> Type:
    """Return the type of derivatives of, or with respect to, all of these leaves."""
    kinds = (leaf.type.dtype if isinstance(leaf.type, types.Array) else leaf.type for leaf in found)
    kind: Type = getattr(types, np.result_type(*map(str, kinds)).name)
    return kind


class Filling:
    """Writes the code that fills `matrix` with the derivatives of `function`."""

    matrix: Operand

    def __init__(
        self,
        w: frontend.Writer,
        args: Sequence[LoweredValue],
        asked: Sequence[SelectedParameter],
        columns: Side,
        function: LoweredValue,
    ) -> None:
        self.w = w
        self.args = args
        self.asked = asked
        self.columns = columns
        self.function = function
        self.once = not self.arrays() and len(list(self.groups())) < 2  # whether the function runs once

    def groups(self) -> Iterator[list[int]]:
        """Return the scalar columns, grouped into those that share a call."""
        found = [place for place, leaf in enumerate(self.columns.leaves) if not is_array(leaf)]
        for start in range(0, len(found), MOST_NUMBERS):
            yield found[start : start + MOST_NUMBERS]

    def arrays(self) -> list[int]:
        """Return the columns that are arrays."""
        return [place for place, leaf in enumerate(self.columns.leaves) if is_array(leaf)]

    def push_numbers(
        self, group: Sequence[int], *, with_value: bool = False
    ) -> tuple[LoweredValue, list[list[Operand]]]:
        """Write the call in the directions of scalars; return the value, or None, and the leaves of each tangent."""
        return self._push([self._direction({place: _ONE}) for place in group], with_value=with_value)

    def put_numbers(self, group: Sequence[int], changes: Sequence[Sequence[Operand]], rows: Side) -> None:
        """Write these tangents to the matrix."""
        for place, found in zip(group, changes, strict=True):
            for number in self._rows(place, rows):
                self._put_cells(self.w.flat(found[number]), rows.part(number), self.columns.starts[place])

    @property
    def has_many_numbers(self) -> bool:
        """Whether the columns are so many floats, and nothing else, that all calls should be of one function."""
        kinds = {leaf.type for leaf in self.columns.leaves}
        return kinds == {types.float64} and len(self.columns.leaves) > _MOST_CALLS * MOST_NUMBERS

    def fill_numbers(self, rows: Side) -> None:
        """Write the loop over the columns of floats.

        Each round has a tangent for each of them, most of which are zero, so that the function is the same for all. One
        for each group of columns would compute less, and take as long to compile as there are groups.
        """
        w, places = self.w, range(len(self.columns.leaves))
        size = Const(len(places), types.int64)
        directions = w.array(ops.zeros, types.float64, size, MOST_NUMBERS, hint="e")
        one, zero, lanes = Const(1.0, types.float64), Const(0.0, types.float64), range(MOST_NUMBERS)
        with w.loop("k_0", 0, size, MOST_NUMBERS) as k:
            last = w.last(size)
            # at the end, the last one in several lanes
            ks = [k, *(named(w.least(w.plus(k, lane), last), f"k_{lane}") for lane in lanes[1:])]
            for lane, index in enumerate(ks):
                w.store(directions, one, index, lane)
            tangents = [{place: value_of(w.element(directions, place, lane)) for place in places} for lane in lanes]
            _, changes = self._push([self._direction(each) for each in tangents])
            for number, start in enumerate(rows.starts):
                self._put([each[number] for each in changes], start, _ZERO, ks)
            for lane, index in enumerate(ks):
                w.store(directions, zero, index, lane)

    def fill_array(self, place: int, rows: Side) -> None:
        """Write the loop over the elements of an array."""
        w = self.w
        leaf, first = self.columns.leaves[place], self.columns.starts[place]
        directions = self._add_directions(leaf, WIDTH)
        flat = [named(w.flat(each), f"u_{lane}") for lane, each in enumerate(directions)]
        size, one, zero = w.size(leaf), _number(1.0, leaf), _number(0.0, leaf)
        with w.loop("k_0", 0, size, WIDTH) as k:
            last = w.last(size)
            # at the end, the last one in several lanes
            ks = [k, *(named(w.least(w.plus(k, lane), last), f"k_{lane}") for lane in range(1, WIDTH))]
            for each, index in zip(flat, ks, strict=True):
                w.store(each, one, index)
            _, changes = self._push([self._direction({place: value_of(each)}) for each in directions])
            for number in self._rows(place, rows):
                self._put([each[number] for each in changes], rows.starts[number], first, ks)
            for each, index in zip(flat, ks, strict=True):
                w.store(each, zero, index)

    def _add_directions(self, leaf: Operand, count: int) -> list[Operand]:
        """Write the tangents of an array in several directions, zeros.

        Those of a vector are views of one matrix, which `ops.interleaved` takes as it is. For other arrays, which take
        longer to compile than to copy, they are arrays of their own.
        """
        w, dtype = self.w, dtype_of([leaf])
        if not is_vector(leaf):
            return [w.array(ops.zeros, dtype, *w.shape(leaf), hint=f"e_{lane}") for lane in range(count)]
        together = w.array(ops.zeros, dtype, w.size(leaf), count, hint="e")
        return [w.element(together, w.slice(), lane, hint=f"e_{lane}") for lane in range(count)]

    def _push(
        self, directions: Sequence[LoweredValue], *, with_value: bool = False
    ) -> tuple[LoweredValue, list[list[Operand]]]:
        """Write the call of the pushforward."""
        pushed = self.w.derived(PushForm(with_value, again=not self.once), self.function)
        result = self.w.invoke(pushed, tuple_of(self.args), tuple_of(directions))
        value, changes = components(result) if with_value else (NOTHING, result)
        tangents = (with_names(change, f"t_{number}") for number, change in enumerate(components(changes)))
        return value, [list(numbers_in(change)) for change in tangents]

    def _direction(self, changes: dict[int, LoweredValue]) -> LoweredValue:
        """Return the tangents of the arguments in one direction: `changes` for those leaves, None for others."""
        tangents = [NOTHING] * len(self.args)
        place = 0
        for each in self.asked:
            own = range(place, place + len(list(numbers_in(self.args[each.number]))))
            if any(number in changes for number in own):
                items = (changes.get(number, NOTHING) for number in own)
                tangents[each.number] = structured(each.type, items, plain=True)
            place = own.stop
        return tuple_of(tangents)

    def _rows(self, place: int, rows: Side) -> range:
        """Return the leaves of the rows that are written for the column of a leaf."""
        return range(len(rows.leaves))

    def _put_cells(self, value: Operand, row: Operand, column: Operand) -> None:
        """Write an assignment to a row and a column."""
        self.w.store(self.matrix, value, row, column)

    def _first_row(self, row: Operand, first: Operand, k: Operand) -> Operand:
        """Return the first row that is written for columns from `k` on, of a leaf that begins at `row`."""
        return _ZERO

    def _put(self, found: Sequence[Operand], row: Operand, first: Operand, ks: Sequence[Operand]) -> None:
        """Write the tangents of one leaf of the result to the columns `ks` of an array that begin at `first`."""
        w = self.w
        columns = [w.plus(first, k) for k in ks]
        if not is_array(found[0]):
            for column, leaf in zip(columns, found, strict=True):
                self._put_cells(leaf, row, column)
            return
        flat = [named(w.flat(leaf), f"r_{lane}") for lane, leaf in enumerate(found)]
        with w.loop("i", self._first_row(row, first, ks[0]), w.size(flat[0])) as i:
            for column, leaf in zip(columns, flat, strict=True):
                self._put_cells(w.element(leaf, i), w.plus(row, i), column)


def _number(value: float, leaf: Operand) -> Const:
    """Return a number of an array's type."""
    return Const(value, dtype_of([leaf]))


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
        w = self.w
        leaf = self.columns.leaves[place]
        size, count = w.size(leaf), 2 * band + 1
        lanes = range(min(count, WIDTH))
        in_groups = count > WIDTH
        directions = self._add_directions(leaf, len(lanes))
        groups = w.loop("k_0", 0, w.least(Const(count, types.int64), size), WIDTH) if in_groups else nullcontext(_ZERO)
        with groups as first:
            for lane in lanes:
                with w.loop("k", w.plus(first, lane), size, count) as k:
                    w.store(directions[lane], _number(1.0, leaf), k)
            _, changes = self._push([self._direction({place: value_of(each)}) for each in directions])
            for lane, (found,) in zip(lanes, changes, strict=True):
                with w.loop("k", w.plus(first, lane), size, count) as k:
                    self._put_in_band(found, k, w.least(w.plus(k, band + 1), size))
            for lane in lanes if in_groups else ():
                with w.loop("k", w.plus(first, lane), size, count) as k:
                    w.store(directions[lane], _number(0.0, leaf), k)

    def _rows(self, place: int, rows: Side) -> range:
        return range(place, len(rows.leaves))

    def _put_cells(self, value: Operand, row: Operand, column: Operand) -> None:
        if row != column:
            self.w.store(self.matrix, value, column, row)
        self.w.store(self.matrix, value, row, column)

    def _first_row(self, row: Operand, first: Operand, k: Operand) -> Operand:
        return k if row == first else _ZERO

    def _put_in_band(self, found: Operand, k: Operand, stop: Operand) -> None:
        with self.w.loop("i", k, stop) as i:
            self._put_cells(self.w.element(found, i), i, k)


class DiagonalFilling(SymmetricFilling):
    """Fills a vector with the diagonal of a matrix."""

    def _put(self, found: Sequence[Operand], row: Operand, first: Operand, ks: Sequence[Operand]) -> None:
        for k, leaf in zip(ks, found, strict=True) if row == first else ():
            self.w.store(self.matrix, self.w.element(self.w.flat(leaf), k), k)

    def _put_in_band(self, found: Operand, k: Operand, stop: Operand) -> None:
        self.w.store(self.matrix, self.w.element(found, k), k)
