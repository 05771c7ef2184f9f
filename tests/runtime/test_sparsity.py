"""Patterns and colourings by themselves: no function, no derivative."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from zygote_py.adjoints import as_array, joined, joined_all, no_sets
from zygote_py.runtime import Pattern, colour_columns, colour_symmetric, dense_rows, pattern_of, rows_of


def pattern(dense) -> Pattern:
    dense = np.asarray(dense)
    rows, columns = np.nonzero(dense)
    return pattern_of(dense.shape, rows, columns)


def as_dense(found: Pattern) -> np.ndarray:
    dense = np.zeros(found.shape, bool)
    dense[found.rows, found.columns] = True
    return dense


def banded(n: int, width: int) -> Pattern:
    rows = np.repeat(np.arange(n), 2 * width + 1)
    columns = rows + np.tile(np.arange(-width, width + 1), n)
    inside = (columns >= 0) & (columns < n)
    return pattern_of((n, n), rows[inside], columns[inside])


def some(seed: int, shape: tuple[int, int], density: float) -> np.ndarray:
    return random_array(shape, density=density, random_state=np.random.default_rng(seed)).toarray() != 0.0


def test_a_pattern_takes_entries_in_any_order_and_twice():
    found = pattern_of((3, 4), np.array([2, 0, 2, 0]), np.array([3, 1, 0, 1]))
    assert found.starts.tolist() == [0, 1, 1, 3]
    assert found.columns.tolist() == [1, 0, 3]
    assert found.rows.tolist() == [0, 2, 2]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_small_patterns(shape):
    found = pattern(np.ones(shape, bool))
    assert as_dense(found).all()
    colours, count = colour_columns(found, np.zeros(shape[0], bool))
    assert count == (shape[1] if shape[0] else 0)
    assert (colours >= 0).all() == (count == shape[1])


def test_sets_are_unions_of_unions():
    sets = no_sets()
    one = joined(sets, -1, -3)
    two = joined(sets, one, -2)
    assert joined(sets, one, -3) == one  # it is seen to be in it
    assert joined(sets, 0, two) == joined(sets, two, 0) == joined(sets, two, two) == two
    every = joined_all(sets, np.array([[-1, 0], [two, -5]]))
    found = rows_of(np.array([0, one, two, -4, every, two]), as_array(sets), 5)
    rows = [found.columns[start:end].tolist() for start, end in zip(found.starts, found.starts[1:], strict=False)]
    assert rows == [[], [0, 2], [0, 1, 2], [3], [0, 1, 2, 4], [0, 1, 2]]


def test_long_chains_of_unions():
    """As deep as they are, and each reached from the next: the rows of a sum that goes on."""
    n = 400
    sets = no_sets()
    rows = [-1]
    for k in range(2, n + 1):
        rows.append(joined(sets, rows[-1], -k))
    assert (as_dense(rows_of(np.array(rows), as_array(sets), n)) == np.tri(n, dtype=bool)).all()


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_a_colour_share_no_row(seed):
    matrix = some(seed, (40, 30), 0.1)
    dense = np.arange(40) % 7 == 0
    colours, count = colour_columns(pattern(matrix), dense)
    for colour in range(count):
        assert matrix[~dense][:, colours == colour].sum(axis=1).max() == 1
    assert not matrix[~dense][:, colours < 0].any()


@pytest.mark.parametrize("seed", range(5))
def test_every_entry_of_a_symmetric_matrix_or_its_mirror_image_is_alone(seed):
    matrix = some(seed, (40, 40), 0.05)
    matrix[:, 3] = matrix[:, 20] = True
    matrix |= matrix.T
    colours, count, dense = colour_symmetric(pattern(matrix))
    assert set(colours[dense]).isdisjoint(colours[~dense])
    assert dense[[3, 20]].all()
    assert count < 40

    def alone(i, j):
        return colours[j] >= 0 and matrix[i, colours == colours[j]].sum() == 1

    assert all(alone(i, j) or alone(j, i) for i, j in np.argwhere(matrix))


@pytest.mark.parametrize("width", [0, 1, 2, 5])
def test_a_band_needs_as_many_colours_as_it_is_wide(width):
    n = 100_000
    assert colour_columns(banded(n, width), np.zeros(n, bool))[1] == 2 * width + 1
    assert colour_symmetric(banded(n, width))[1] == 2 * width + 1


def test_an_arrow_head_needs_two():
    n = 100_000
    k = np.arange(n)
    zeros = np.zeros(n, np.int64)
    arrow = pattern_of((n, n), np.concatenate((k, k, zeros)), np.concatenate((k, zeros, k)))
    assert colour_symmetric(arrow)[1] == 2
    assert np.flatnonzero(dense_rows(arrow, 4, 16)).tolist() == [0]


def test_a_dense_matrix_has_no_dense_rows_to_leave_out():
    assert colour_symmetric(pattern(np.ones((9, 9))))[1] == 9
    assert not dense_rows(pattern(np.ones((9, 9))), 4, 16).any()


def test_the_smallest_symmetric_pattern():
    matrix = some(7, (12, 12), 0.2)
    assert (as_dense(pattern(matrix).symmetric()) == (matrix | matrix.T)).all()
    assert csr_array(as_dense(pattern(matrix))).nnz == matrix.sum()
