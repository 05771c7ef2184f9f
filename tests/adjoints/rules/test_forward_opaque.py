"""The tangents of products and decompositions, by the dot product with their adjoints: <J v, w> = <v, J^T w>.

The emitted source runs in plain Python, at the points of the tests of the adjoints.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import zygote_py as zg
from tests.adjoints.rules.opaque_cases import CASES, Case, draw
from tests.modes import one_in
from tests.plain import plain
from zygote_py.api.directions import pushforward

pytestmark = pytest.mark.interpreted

# Others have the same rule, for another number or size.
SKIPPED = (
    *("matrix_power0", "matrix_power1", "matrix_power2", "matrix_power4", "matrix_power7", "matrix_power8"),
    *("matrix_power-1", "matrix_power-5", "norm-vector-2", "norm-5x3", "norm-4x4", "cond--2", "cond-2"),
)


def chosen() -> list[Case]:
    """One case of each operation and number of axes."""
    found: dict[Any, Case] = {}
    for case in CASES:
        if case.op is operator.matmul or case.name.startswith(SKIPPED) or case.name.endswith("-0"):
            continue
        arguments = case.arguments(np.random.default_rng(0), np.float64)
        found.setdefault((case.op, *(getattr(x, "ndim", x) for x in arguments)), case)
    return list(found.values())


SLOW = (
    "svd4x4-True",
    "svd6x3-False",
    "lstsq6x3-(6,)",
    "lstsq6x3-(6, 2)",
)  # to compile; others of the same operations are not


@pytest.mark.parametrize(
    "case",
    one_in(2, [pytest.param(each, marks=pytest.mark.long if each.name in SLOW else ()) for each in chosen()]),
    ids=lambda case: case.name,
)
def test_tangents_and_adjoints(case: Case) -> None:
    rng = np.random.default_rng(3)
    arguments = case.arguments(rng, np.float64)
    base = case.op(*arguments, **case.keywords)
    several = isinstance(base, tuple)
    results = base if several else (base,)
    numbers = [n for n, y in enumerate(results) if np.asarray(y).dtype.kind == "f"]
    drawn = tuple(draw(rng, np.float64, *np.shape(y)) if n in numbers else None for n, y in enumerate(results))
    seeds = [case.seeds(drawn, tuple(results))[n] for n in numbers]
    given = tuple(x for x in arguments if isinstance(x, np.ndarray))
    function, product = written(case, arguments, numbers, several)

    tangents = tuple(draw(rng, np.float64, *x.shape) for x in given)
    if "eig" in case.name and "h" in case.name:
        tangents = tuple(t + t.T for t in tangents)
    found = plain(pushforward(function).source(given, tangents))(given, tangents)[1]
    changes = found if several else (found,)
    taken = (*given, *seeds)
    gradients = plain(zg.gradient(product, wrt=tuple(range(len(given)))).source(*taken))(*taken)
    forward = sum(np.sum(a * b) for a, b in zip(changes, seeds, strict=True))
    backward = [a * b for a, b in zip(gradients, tangents, strict=True)]
    size = sum(np.sum(np.abs(each)) for each in backward)
    assert size > 0
    assert abs(forward - sum(map(np.sum, backward))) <= 1e-12 * size


def written(case: Case, arguments, numbers, several) -> tuple[Any, Any]:
    """A function of the arrays that returns the float results, and one of their product with seeds."""
    names = [f"x{k}" for k, x in enumerate(arguments) if isinstance(x, np.ndarray)]
    call = ", ".join(f"x{k}" if isinstance(x, np.ndarray) else repr(x) for k, x in enumerate(arguments))
    items = [f"r[{n}]" if several else "r" for n in numbers]
    taken = [f"r[{place}]" if several else "r" for place in range(len(items))]
    seeds = [f"w{n}" for n in numbers]
    lines = [
        f"def function({', '.join(names)}):",
        f"    r = op({call})",
        f"    return {', '.join(items)}{',' * several}",
        f"def product({', '.join([*names, *seeds])}):",
        f"    r = function({', '.join(names)})",
        f"    return {' + '.join(f'np.sum({item} * {w})' for item, w in zip(taken, seeds, strict=True))}",
    ]
    namespace: dict[str, Any] = {"op": case.op, "np": np}
    exec("\n".join(lines), namespace)
    return namespace["function"], namespace["product"]
