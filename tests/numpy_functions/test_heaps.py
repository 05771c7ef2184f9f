"""Heaps of numbers and of tuples: the functions of `heapq`.

Which of equal elements comes first is that of Numba and Python, which the second items of the tuples show.
"""

from __future__ import annotations

import heapq

import numba
import numpy as np
import pytest
from numba.typed import List

from tests.checking.derivatives import check_derivatives
from tests.modes import one_in
from zygote_py import gradient

pytestmark = pytest.mark.interpreted

X = np.array([1.5, 0.7, 2.3, 0.4, 1.1])


def numbers(x):
    heap = [v * v for v in x]
    heapq.heapify(heap)
    a = heapq.heappop(heap)
    heapq.heappush(heap, a * x[2])
    b = heapq.heapreplace(heap, x[0] * x[1])
    c = heapq.heappushpop(heap, x[3] * 0.1)
    d = heapq.heappushpop(heap, x[3] * x[4] * 9.0)
    return a + 2.0 * b + 3.0 * c * d + heap[0] * heap[1] + 5.0 * heap[-1] * heap[-2]


def shortest_ways(x):
    """Dijkstra's algorithm: the lengths of the shortest ways from node 0 through a graph of five nodes."""
    n = 5
    far = np.full(n, np.inf)
    far[0] = 0.0
    heap = [(0.0, 0)]
    while len(heap) > 0:
        d, i = heapq.heappop(heap)
        if d > far[i]:
            continue
        for step in (1, 2):
            j = (i + step) % n
            new = d + x[i] * x[j] * step**0.5
            if new < far[j]:
                far[j] = new
                heapq.heappush(heap, (new, j))
    return np.sum(far * far)


def merged(x):
    """Huffman's sum: the two smallest numbers are replaced by their sum, until one is left."""
    heap = [(x[k], k, x[k] * x[k]) for k in range(len(x))]
    heapq.heapify(heap)
    total = 0.0
    while len(heap) > 1:
        a, i, p = heapq.heappop(heap)
        b, j, q = heapq.heappop(heap)
        total += (a + b) * (1 + i % 2) + p * q
        heapq.heappush(heap, (a + b, i + j, p + q))
    return total


def the_least(x):
    a = heapq.nsmallest(2, [v * v for v in x])
    b = heapq.nlargest(3, [(v, v * v) for v in x])
    c = heapq.nsmallest(9, x)
    return a[0] * a[1] + b[2][1] * b[0][0] + c[4] * len(c) + len(heapq.nlargest(0, x)) + heapq.nlargest(1, x)[0] ** 3


def typed(x):
    heap = List([(v, 1) for v in x])
    heapq.heapify(heap)
    heapq.heappush(heap, (x[0] * 0.1, 2))
    (a, i), (b, j) = heapq.heappop(heap), heapq.heappop(heap)
    return a * i + b * b * j


@pytest.mark.parametrize(
    "program", one_in(2, [numbers, shortest_ways, merged, the_least]), ids=lambda each: each.__name__
)
def test_programs(program):
    check_derivatives(program, X.copy())


@pytest.mark.compiled
def test_typed_lists():
    np.testing.assert_allclose(gradient(typed)(X.copy()), [0.2, 0.0, 0.0, 0.8, 0.0], rtol=1e-12)


def emptied(x, places):
    heap = [(x * (place % 3), place) for place in places]
    heapq.heapify(heap)
    total, weight = 0.0, 1.0
    while heap:
        first, place = heapq.heappop(heap)
        weight *= 1.1
        total += weight * (place + first)
        if place > 5:
            heapq.heappush(heap, (first, place - 5))
    return total


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10, 31])
def test_equal_elements(count):
    places = np.random.default_rng(count).integers(0, 12, count)
    expected = [numba.njit(emptied)(x, places) for x in (1.5, 1.500001)]
    slope = (expected[1] - expected[0]) / 1e-6
    np.testing.assert_allclose(gradient(emptied, wrt="x")(1.5, places), slope, rtol=1e-6, atol=1e-6)


def test_heaps_without_elements():
    def f(x):
        heap = [x]
        heapq.heappop(heap)
        return heapq.heappop(heap)

    with pytest.raises(IndexError, match="empty"):
        gradient(f)(2.0)
