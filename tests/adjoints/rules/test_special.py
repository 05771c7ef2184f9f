"""The helper functions of the rules against mpmath, compiled, and as the source text that modules include."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numba import njit

from tests.docs.pages import scalar_operations
from tests.modes import one_in
from zygote_py.adjoints.rules.helpers import special
from zygote_py.ir import ops
from zygote_py.ir.ops import helpers

rng = np.random.default_rng(7)
POSITIVE = [
    *rng.uniform(0, 20, 300),
    *np.exp(rng.uniform(-600, 600, 100)),
    *(1.4616321449683622 + rng.uniform(-0.3, 0.3, 100)),
]
NEGATIVE = [*rng.uniform(-20, 0, 300), *-np.exp(rng.uniform(-20, 12, 100))]
digamma, polygamma = njit(special.digamma), njit(special.polygamma)


def relative(got: float, want: mpmath.mpf, around: mpmath.mpf) -> float:
    """The error, where a root of the function is near as a fraction of what the two parts there cancel from."""
    return float(abs(mpmath.mpf(got) - want) / (abs(want) + around))


def test_digamma() -> None:
    with mpmath.workdps(40):
        for x in map(float, POSITIVE):
            assert relative(digamma(x), mpmath.digamma(x), mpmath.mpf(0)) < 2e-14, x
        for x in map(float, NEGATIVE):
            assert relative(digamma(x), mpmath.digamma(x), mpmath.mpf(1e-2)) < 2e-14, x
            assert relative(special.digamma(x), mpmath.digamma(x), mpmath.mpf(1e-2)) < 2e-14, x


@pytest.mark.parametrize("n", one_in(2, [1, 2, 3, 4, 7, 12]))
def test_polygamma(n: int) -> None:
    with mpmath.workdps(40):
        for x in map(float, POSITIVE[:: 6 if n == 1 else 12]):
            want = mpmath.polygamma(n, x)
            if 1e-290 < abs(want) < 1e290:
                assert relative(polygamma(n, x), want, mpmath.mpf(0)) < 2e-14, x
        for x in map(float, NEGATIVE[:: 6 if n == 1 else 12]):
            want = mpmath.polygamma(n, x)
            if abs(want) < 1e290:
                around = math.pi ** (n + 1) * mpmath.mpf(0.1)
                assert relative(polygamma(n, x), want, around) < 2e-14, x


def test_poles_and_ends() -> None:
    with np.errstate(invalid="ignore"):
        for f in (digamma, special.digamma):
            assert (f(0.0), f(-0.0), f(math.inf)) == (-math.inf, math.inf, math.inf)
            assert all(map(math.isnan, (f(-1.0), f(-math.inf), f(math.nan))))
        for g in (polygamma, special.polygamma):
            assert (g(1, 0.0), g(1, -3.0), g(1, math.inf)) == (math.inf, math.inf, 0.0)
            assert all(map(math.isnan, (g(2, -1.0), g(1, -math.inf), g(1, math.nan), g(2, math.nan))))


@pytest.mark.parametrize("helper", special.HELPERS.values(), ids=ops.name_of)
def test_source_stands_by_itself(helper: Callable[..., float]) -> None:
    namespace: dict[str, object] = {"np": np}
    exec(helpers.source(helper), namespace)
    again = namespace[helper.__name__]
    args = (2.5,) if helper is special.digamma else (2, -2.5)
    assert again(*args) == helper(*args)  # type: ignore[operator]
    assert ops.named(ops.name_of(helper)) is helper
    assert ops.of(helper).effect is ops.Effect.PURE


def test_the_page_of_rules_is_up_to_date() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "scalar-operations.md"
    assert page.read_text() == scalar_operations.text(), "run: python -m tests.docs.pages docs"
