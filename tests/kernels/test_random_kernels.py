"""Random kernels and their adjoints, in the simulator: some here, two thousand with `-m long`; and their generator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.kernels.random_kernels.case import FEATURES, OTHERS
from tests.kernels.random_kernels.families import FAMILIES, generate


def campaign(*options: str) -> str:
    """Run a campaign in a process of its own, whose CUDA is the simulator, and return its report."""
    command = [sys.executable, "-m", "tests.kernels.random_kernels", *options]
    env = {**os.environ, "ZYGOTE_PY_VERIFY": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    return done.stdout


def with_feature(report: str, feature: str) -> int:
    (count,) = re.findall(rf"^ *(\d+) with {feature}$", report, re.MULTILINE)
    return int(count)


def test_some_kernels_are_right():
    report = campaign("--count", "16", "--seed", "1000000")
    assert "16 kernels compared, 0 wrong" in report
    assert all(with_feature(report, feature) for feature in FEATURES)


@pytest.mark.long
def test_two_thousand_kernels_are_right():
    report = campaign("--count", "2000", "--seed", "0", "--jobs", "2")
    assert "2000 kernels compared, 0 wrong" in report
    assert {feature: count for feature in FEATURES if (count := with_feature(report, feature)) < 300} == {}


def test_a_seed_is_a_kernel():
    assert generate(7) == generate(7)
    assert len({generate(seed).text for seed in range(50)}) == 50


def test_each_feature_is_in_one_kernel_of_six():
    kernels = [generate(seed) for seed in range(400)]
    counts = Counter(feature for kernel in kernels for feature in kernel.features)
    assert not {feature: counts[feature] for feature in FEATURES if counts[feature] < 400 / 6}
    assert all(counts[feature] for feature in OTHERS)
    assert {kernel.family for kernel in kernels} == {family.family for family in FAMILIES}


def test_kernels_have_what_they_are_to_have():
    text = "".join(generate(seed).text for seed in range(400))
    forms = (
        "for |while |break|continue|else:|elif |return\n|and |or |not |cuda.grid(2)|cuda.grid(3)|cuda.gridsize(|"
        "cuda.shared.array(0, |cuda.shared.array((|cuda.shared.array(shape=|cuda.local.array(|float32|int64)|"
        "cuda.atomic.add(|cuda.atomic.sub(|cuda.atomic.max(|cuda.atomic.min(|perm[|idx[|cnt[|TAB[|dev0(|update(|"
        "block_sum(|publish(|scale(|.shape[1]|.size|len(|, ::2]|, -1):|max(|min(|abs(|-1 - "
    )
    assert [form for form in forms.split("|") if form not in text] == []
