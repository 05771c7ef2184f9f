"""The gain from each transformation: gradients made without it, one at a time, timed beside those with all.

    effects("lstm", fastmath=False, rounds=10, seconds=0.02)["gathered-products"]    # {"with": [...], "without": [...]}

The transformations are those that `ZYGOTE_PY_WITHOUT` leaves out (`ir/checks/debug.py`). Only those count that change
the machine code of the gradient.
"""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from benchmarks.case import Case
from benchmarks.cases import CASES
from benchmarks.measure import Times, interleaved
from zygote_py.ir import OPTIONAL

WITH, WITHOUT = "with", "without"
_NAME = re.compile(r'^[-\w.$]+:.*|[%@!#][-\w.$]+|[%@!]"[^"]*"|c"[^"]*"', re.MULTILINE)


@contextmanager
def left_out(step: str) -> Iterator[None]:
    """Leave out a transformation while the context lasts."""
    os.environ["ZYGOTE_PY_WITHOUT"] = step
    try:
        yield
    finally:
        del os.environ["ZYGOTE_PY_WITHOUT"]


def effects(name: str, fastmath: bool, rounds: int, seconds: float) -> dict[str, Times]:
    """Return the seconds for a run of a case, with and without each transformation that changes its gradient."""
    os.environ["ZYGOTE_PY_CACHE"] = "0"  # machine code from there does not show how it was made
    whole = CASES[name](fastmath)
    code = _code(whole)
    runs: dict[str, Callable[[], object]] = {WITH: whole.runs["gradient"]}
    for step in OPTIONAL:
        with left_out(step):
            case = CASES[name](fastmath)
            if _code(case) != code:
                runs[step] = case.runs["gradient"]
                runs[step]()  # which compiles what is around it
    times = interleaved(runs, rounds, seconds)
    return {step: {WITH: times[WITH], WITHOUT: times[step]} for step in runs if step != WITH}


def _code(case: Case) -> str:
    """Return the code of a gradient without the names in it, which are numbered in each process."""
    text: str = case.gradients["gradient"].inspect_llvm(*case.arguments)  # type: ignore[attr-defined]
    return _NAME.sub("%", text)


def effects_in_process(name: str, fastmath: bool, rounds: int, seconds: float) -> dict[str, Times]:
    """Return the same from a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(effects, name, fastmath, rounds, seconds).result()
