"""`python -m benchmarks cuda`: its results in the simulator, its tables, and what it says without a device."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

from benchmarks.cuda.case import Bar, Case
from benchmarks.cuda.measure import Measured, check, fastest
from benchmarks.cuda.table import as_json, bars_table, notes, times_table

ROOT = Path(__file__).parents[2]
VARIANTS = {
    "Lotka-Volterra": ("primal", "gradient", "hand-written"),
    "elementwise": ("primal", "gradient", "hand-written", "copy"),
    "N-body, float64": ("primal", "gradient", "primal, one order", "gradient, one order", "hand-written"),
    "N-body, float32": ("primal", "gradient", "primal, one order", "gradient, one order", "hand-written"),
}


def run(*options, simulator):
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1" if simulator else "0"}
    command = [sys.executable, "-m", "benchmarks", "cuda", *map(str, options)]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_all_of_it_runs_in_the_simulator(tmp_path):
    """The results of all variants, and of the libraries that are installed, are compared with references."""
    file = tmp_path / "out.json"
    has_pyperf = importlib.util.find_spec("pyperf") is not None
    done = run("--quick", *(["--json", file] if has_pyperf else []), simulator=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "times mean nothing" in done.stdout
    assert not re.search(r"\b(met|missed)\b", done.stdout)
    for case, variants in VARIANTS.items():
        (text,) = re.findall(rf"^\| {case} .*\n(?:\|.*\n)+", done.stdout, re.MULTILINE)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        assert {"seconds", "on the device", "/ primal", "first call", "error"} <= set(rows[0])
        assert ("/ copy" in rows[0]) == (case == "elementwise")
        found = {row[0]: row[1:] for row in rows[2:]}
        assert all("-" not in found[name] for name in variants)
        assert {"JAX", "PyTorch"} <= set(found)
        for name, library in (("JAX", "jax"), ("PyTorch", "torch")):
            if importlib.util.find_spec(library) is None:
                assert set(found[name]) == {"-"}
                assert re.search(rf"^{case}: .*{name}\b.*: not installed$", done.stdout, re.MULTILINE)
    if has_pyperf:
        document = json.loads(file.read_text())
        assert [each["case"] for each in document["zygote_py"]["cuda"]["cases"]] == list(VARIANTS)
        assert len(document["benchmarks"]) >= sum(map(len, VARIANTS.values()))


@pytest.mark.skipif(cuda.is_available(), reason="there is a device, or the simulator")
def test_without_a_device_it_says_so():
    done = run(simulator=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert re.match("no (numba-cuda|CUDA device)", line)
    assert "NUMBA_ENABLE_CUDASIM=1" in line
    assert not done.stdout


def some_case():
    bars = [
        Bar("at most 4 x the primal kernel", "gradient", "primal", 4.0, is_least=False, by_events=True),
        Bar("ahead of JAX by 5 x", "JAX", "gradient", 5.0, is_least=True, by_events=False),
        Bar("ahead of PyTorch", "PyTorch", "gradient", 1.0, is_least=True, by_events=False),
    ]
    references = {"primal": [np.array([1.0])], "gradient": [np.array([2.0, 4.0])]}
    runners = dict.fromkeys(("primal", "gradient"))
    peers = dict.fromkeys(("JAX", "JAX, in blocks", "PyTorch", "PyTorch, compiled"))
    return Case("some", "a case", runners, peers, references, np.array([0, 2]), 1e-9, bars)


def test_bars_are_met_or_missed_by_the_fastest_variants():
    found = Measured(
        some_case(),
        calls={"primal": [1.0, 2.0, 9.0], "gradient": [3.0], "JAX": [30.0], "JAX, in blocks": [14.0]},
        device={"primal": [0.5, 0.5, 0.5], "gradient": [2.0]},
        first=dict.fromkeys(("primal", "gradient", "JAX", "JAX, in blocks"), 1.0),
        errors=dict.fromkeys(("primal", "gradient", "JAX", "JAX, in blocks"), 1e-16),
        missing=dict.fromkeys(("PyTorch", "PyTorch, compiled"), "not installed"),
    )
    assert fastest(found.calls, "JAX") == 14.0
    assert fastest(found.calls, "primal") == 2.0
    assert [line.split("|")[-2].strip() for line in bars_table([found]).splitlines()[2:]] == ["met", "missed", "-"]
    assert {line.split("|")[-2].strip() for line in bars_table([found], is_simulated=True).splitlines()[2:]} == {"-"}
    assert notes(found) == ["some: PyTorch; PyTorch, compiled: not installed"]
    rows = {line.split("|")[1].strip(): line for line in times_table(found).splitlines()}
    assert "| 4.00 |" in " ".join(rows["gradient"].split())
    assert "| 15.00 |" in " ".join(rows["JAX"].split())  # no time on the device: of calls
    (document,) = as_json([found])
    assert [each["met"] for each in document["bars"]] == [True, False, None]


def test_wrong_results_are_not_timed():
    case, expected = some_case(), {}
    assert check(case, "a", "gradient", [np.array([2.0, 7.0, 4.0])], expected) == 0.0
    with pytest.raises(AssertionError, match="b differs from the reference by"):
        check(case, "b", "gradient", [np.array([2.0, 7.0, 4.1])], expected)
    with pytest.raises(AssertionError, match="c differs from the first variant by"):
        check(case, "c", "gradient", [np.array([2.0, 7.1, 4.0])], expected)
    with pytest.raises(AssertionError, match="not finite"):
        check(case, "d", "gradient", [np.array([2.0, np.nan, 4.0])], expected)
