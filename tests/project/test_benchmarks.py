"""The benchmarks compute what they should, and the size of the emitted code is linear in that of the source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cases import CASES
from benchmarks.code_size import FAMILIES, code_sizes, growth
from benchmarks.measure import check, interleaved
from benchmarks.report import by_size_table
from benchmarks.second import SECOND, check_second
from benchmarks.sizes import SIZED, size_times
from benchmarks.threads import thread_times
from tests.modes import one_in

ROOT = Path(__file__).parents[2]
SLOW = ("nbody", "pairs", "mixture", "mixture_hessian")  # to compile


def quick_ones(names, n=1):
    quick = [name for name in names if name not in SLOW]
    return one_in(n, quick) + [pytest.param(name, marks=pytest.mark.long) for name in names if name in SLOW]


@pytest.mark.parametrize("name", quick_ones(CASES, 4))
def test_gradients_agree_with_those_by_hand_and_with_differences(name):
    check(CASES[name](False))


@pytest.mark.parametrize("name", quick_ones(SECOND))
def test_second_derivatives_are_those_by_hand_or_by_differences(name):
    check_second(SECOND[name]())


OF_SIZES = [name if name == "evalpoly" else pytest.param(name, marks=pytest.mark.long) for name in SIZED]


@pytest.mark.parametrize("name", OF_SIZES)
def test_cost_by_size(name):
    """The gradients of all sizes are compared with the hand-written ones before they are timed."""
    found = size_times(1, 1e-3, (name,), 2)
    assert [len(times) for times in found[name].values()] == [3, 3]
    assert name in by_size_table(found)


def test_the_peak_of_memory():
    """In a process of its own: the allocator stays another one."""
    program = """
import numba, numpy as np
from benchmarks.memory import peak

@numba.njit
def f(n):
    a = np.ones(n)
    b = a + 1.0
    a = b * 2.0
    kept = [a[0]]
    for i in range(n):
        kept.append(b[i])
    return a, kept[-1]

print(peak(lambda: f(100_000)))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 3 * 800_000 <= int(done.stdout) <= 4 * 800_000  # two or three arrays, and a list that grows by parts


def test_variants_are_timed_turn_about():
    order = []
    times = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3, seconds=1e-9)
    assert {name: len(samples) for name, samples in times.items()} == {"a": 3, "b": 3}
    assert order[-6:] == ["a", "b"] * 3


@pytest.mark.parametrize("family", FAMILIES)
def test_emitted_code_grows_linearly(family):
    sizes = code_sizes((family,))[family]
    assert growth(sizes) < 1.3, sizes


@pytest.mark.long
def test_gradients_in_threads_are_those_in_order():
    assert all(min(each["threads"]) > 0.0 for each in thread_times(1, 1e-9, quick=True).values())
