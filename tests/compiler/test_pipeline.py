"""The path of a call as ARCHITECTURE.md lists it: each stage is entered once, in that order."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numba
import numpy as np
import pytest

import zygote_py as zg

TEXT = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
STAGES = re.findall(r"^\d+\. `(zygote_py\.[\w.]+)`", TEXT, re.MULTILINE)
FROM_DISK = STAGES[:4]

scale, offsets = 2.0, np.array([1.0, 2.0])


def square(x):
    return x * x


def captures(x):
    return x * scale * offsets[0]


def calls(x):
    return square(x) + captures(x)


def with_aux(x):
    return x * x, x


@numba.njit
def fibonacci(x, n):
    return x if n < 2 else fibonacci(x, n - 1) * fibonacci(x, n - 2)


def recursive(x):
    return fibonacci(x, 4)


def code_of(stage: str) -> CodeType:
    parts = stage.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for name in parts[count:]:
            found = getattr(found, name)
        return inspect.unwrap(found).__code__
    raise LookupError(stage)


def entered(run: Callable[[], object]) -> list[str]:
    """Return the stages that `run` enters, in order."""
    stages = {code_of(stage): stage for stage in STAGES}
    found: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in stages:
            found.append(stages[frame.f_code])

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def test_the_list_has_at_most_twelve_modules():
    assert 8 <= len(STAGES) <= 12
    assert len(set(STAGES)) == len(STAGES)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (square, {}),
        (captures, {}),
        (captures, {"closure": True}),
        (calls, {}),
        (with_aux, {"has_aux": True}),
    ],
)
def test_a_first_call_passes_each_stage_once(function, options):
    assert entered(lambda: zg.gradient(function, **options)(2.0)) == STAGES


@pytest.mark.interpreted
def test_a_function_that_remains_a_call_has_a_canonical_form_and_an_adjoint_of_its_own():
    stages = entered(lambda: zg.gradient(recursive)(2.0))
    assert list(dict.fromkeys(stages)) == STAGES
    again = [stage for position, stage in enumerate(stages) if stage in stages[:position]]
    assert again == STAGES[7:9]


def test_a_compiled_call_passes_each_stage_once_and_the_second_call_none_but_the_first_two():
    derivative = []

    def first():
        derivative.append(zg.gradient(captures))
        derivative[0](2.0)

    assert entered(first) == STAGES
    assert entered(lambda: derivative[0](3.0)) == STAGES[1:2]


IN_A_PROCESS = """
from tests.compiler.test_pipeline import captures, entered
import zygote_py as zg
print(*entered(lambda: zg.gradient(captures)(2.0)))
"""


def test_a_second_process_finds_machine_code_in_the_cache(tmp_path):
    def run() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", IN_A_PROCESS],
            env={**os.environ, "ZYGOTE_PY_CACHE_DIR": str(tmp_path), "ZYGOTE_PY_VERIFY": "", "NUMBA_OPT": "3"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert run() == STAGES
    assert run() == FROM_DISK
