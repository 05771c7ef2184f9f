"""Minimum cuts, compared with SciPy's."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from zygote_py.ir.analysis.minimum_cut import source_side

pytestmark = pytest.mark.interpreted


def of_scipy(capacities, source, sink):
    size = 1 + max(max(edge) for edge in capacities)
    rows, columns = (np.array(ends, dtype=np.int32) for ends in zip(*capacities, strict=True))
    network = csr_array((np.array(list(capacities.values()), dtype=np.int32), (rows, columns)), shape=(size, size))
    residual = csr_array(network - maximum_flow(network, source, sink).flow)
    residual.eliminate_zeros()
    return set(breadth_first_order(residual, source, return_predecessors=False).tolist())


def test_an_edge():
    assert source_side({(0, 2): 5, (2, 1): 3}, 0, 1) == {0, 2}
    assert source_side({(0, 2): 2, (2, 1): 3}, 0, 1) == {0}


def test_nothing_flows():
    assert source_side({(0, 2): 2, (3, 1): 3}, 0, 1) == {0, 2}


def test_a_path_that_takes_flow_back():
    ones = dict.fromkeys([(0, 2), (0, 3), (2, 3), (2, 4), (3, 5), (4, 1), (5, 1)], 1)
    assert source_side(ones, 0, 1) == {0}
    assert source_side({**ones, (0, 2): 9, (0, 3): 9}, 0, 1) == {0, 2, 3}


@pytest.mark.parametrize("seed", range(60))
def test_random_networks(seed):
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(2, 40)), int(rng.integers(1, 200))
    edges = {(int(a), int(b)) for a, b in rng.integers(0, size, (count, 2)) if a != b}
    # SciPy has no network without edges.
    capacities = {edge: int(rng.integers(1, 12)) for edge in sorted(edges)} or {(0, 1): 1}
    capacities = {edge: 2**20 if rng.random() < 0.2 else value for edge, value in capacities.items()}
    if not any(size - 1 in edge for edge in capacities):
        capacities[0, size - 1] = 1
    assert source_side(capacities, 0, 1) == of_scipy(capacities, 0, 1)


def test_a_long_chain():
    count = 5000
    chain = {(node, node + 1): 7 for node in range(2, count)} | {(0, 2): 7, (count, 1): 6}
    assert source_side(chain, 0, 1) == {0, *range(2, count + 1)}
