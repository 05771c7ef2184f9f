"""The benchmarks compute what they should, and the size of the emitted code is linear in that of the source."""

from __future__ import annotations

import pytest

from benchmarks.cases import CASES
from benchmarks.code_size import FAMILIES, code_sizes, growth
from benchmarks.measure import check, interleaved


@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_those_by_hand_and_with_differences(name):
    check(CASES[name](False))


def test_variants_are_timed_turn_about():
    order = []
    times = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3, seconds=1e-9)
    assert {name: len(samples) for name, samples in times.items()} == {"a": 3, "b": 3}
    assert order[-6:] == ["a", "b"] * 3


@pytest.mark.parametrize("family", FAMILIES)
def test_emitted_code_grows_linearly(family):
    sizes = code_sizes((family,))[family]
    assert growth(sizes) < 1.3, sizes
