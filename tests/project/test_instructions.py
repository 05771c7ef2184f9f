"""Gradients execute no more instructions than they did: a measure of speed that does not depend on the machine's load.

`python -m benchmarks instructions --keep` makes the counts to compare with anew; review the change.
"""

from __future__ import annotations

import pytest

from benchmarks.cases import CASES
from benchmarks.instructions import counts, is_installed, kept

SLACK = 0.03  # libraries of mathematical functions differ a little between systems
SLACK_OF_LISTS = 0.2  # which grow in place, or not

pytestmark = pytest.mark.skipif(not is_installed(), reason="Valgrind is not installed")


@pytest.mark.parametrize(
    "name", [name if name == "loop" else pytest.param(name, marks=pytest.mark.long) for name in CASES]
)
def test_gradients_execute_no_more_instructions(name):
    before, now = kept()[name], counts(name, False, ("primal", "gradient"))
    slack = SLACK_OF_LISTS if name == "stack" else SLACK
    assert now["primal"] == pytest.approx(before["primal"], rel=slack)  # else something else has changed
    assert now["gradient"] <= before["gradient"] * (1.0 + slack)
