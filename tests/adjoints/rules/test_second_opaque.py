"""Second derivatives through products and decompositions: forward over reverse, reverse over reverse, differences.

The emitted source runs in plain Python. Most are marked `long`: the second derivative of a decomposition is long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zygote_py as zg
from tests.adjoints.rules.opaque_cases import Case, draw
from tests.adjoints.rules.test_forward_opaque import chosen
from tests.checking.second import again, along, slopes
from tests.plain import plain

QUICK = ("inv", "solve", "dot")


def cases() -> list[Any]:
    """The first case of each quick operation, and all others as long ones."""
    found = []
    seen = set()
    for case in chosen():
        quick = case.op.__name__ in QUICK and case.op not in seen
        seen.add(case.op)
        found.append(pytest.param(case, marks=() if quick else pytest.mark.long, id=case.name))
    return found


@pytest.mark.parametrize("case", cases())
def test_second_derivatives(case: Case) -> None:
    rng = np.random.default_rng(5)
    arguments = case.arguments(rng, np.float64)
    place = next(n for n, x in enumerate(arguments) if isinstance(x, np.ndarray))
    results = case.op(*arguments, **case.keywords)
    several = isinstance(results, tuple)
    kinds = [np.asarray(y).dtype.kind for y in (results if several else (results,))]
    f = objective(case, arguments, place, [n for n, kind in enumerate(kinds) if kind == "f"], several)
    x = arguments[place]
    v = draw(rng, np.float64, *x.shape)
    symmetric = case.op.__name__ in ("eigh", "eigvalsh", "cholesky")
    if symmetric:
        v = v + v.T
    expected = slopes(plain(zg.gradient(f).source(x)), x, v)
    scale = np.max(np.abs(expected))
    assert scale > 0
    for way in (along, again):
        found = way(f, x, v)
        if symmetric and way is again:  # of a matrix that is read in one half only, the gradient may be in either
            found, wanted = found + found.T, expected + expected.T
        else:
            wanted = expected
        assert np.max(np.abs(found - wanted)) <= 1e-7 * scale, (way.__name__, found, wanted)


def objective(case: Case, arguments: Any, place: int, numbers: list[int], several: bool) -> Any:
    """A function of one array: the cubes of all results that are floats, weighed."""
    call = ", ".join("x" if n == place else f"x{n}" for n in range(len(arguments)))
    items = [f"r[{n}]" if several else "r" for n in numbers]
    lines = [
        "def objective(x):",
        *(f"    x{n} = {constant(given)}" for n, given in enumerate(arguments) if n != place),
        f"    r = op({call})",
        f"    return {' + '.join(f'np.sum({item} * {item} * {item} * {1 + 0.5 * n})' for n, item in enumerate(items))}",
    ]
    namespace: dict[str, Any] = {"op": case.op, "np": np}
    exec("\n".join(lines), namespace)
    return namespace["objective"]


def constant(given: Any) -> str:
    """How to write an argument."""
    return f"np.array({given.tolist()!r})" if isinstance(given, np.ndarray) else repr(given)
