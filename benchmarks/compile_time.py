"""The time to the first derivative in a fresh process, compared with Numba's for the function.

    found = compile_times(rounds=3)
    found["kalman"]["gradient"]         # [Sample(cpu=11.2, peak=351 MB), ...]

Times are CPU seconds of the process and its children, from after `import numba` to the end of the first call: they
include the import of zygote_py and whatever is compiled on the way. Each round has a cache of its own, which is empty
at first. "again" is a second process, which finds what the first has kept. Python's compiled files are there, as an
installation leaves them.

`growth` compares programs of 10, 40 and 160 pieces: a cost that is linear has the same slope from 40 to 160 as from 10
to 40.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np

from benchmarks.compile_programs import ROWS, Program

LEAST = 0.5  # seconds: rows for which Numba takes less count as this
SIZES = (10, 40, 160)
AGAIN = " again"


class Sample(NamedTuple):
    """The CPU seconds of a first call, and the peak memory of its process in bytes."""

    cpu: float
    peak: int


Samples = dict[str, dict[str, list[Sample]]]


def compile_times(rounds: int, names: Iterable[str] = tuple(ROWS)) -> Samples:
    """Return the samples of each row, by what is compiled: numba, gradient, hessian; the last two in a second process
    as well.
    """
    found: Samples = {}
    with tempfile.TemporaryDirectory() as folder:
        bytecode = Path(folder) / "bytecode"
        _in_a_process("ode", "hessian", bytecode, Path(folder) / "first")
        for name in names:
            found[name] = {}
            for number in range(rounds):
                cache = Path(folder) / f"{name} {number}"
                for how in ("numba", "gradient", "hessian")[: 3 if ROWS[name].hessian else 2]:
                    for again in ("", AGAIN)[: 1 if how == "numba" else 2]:
                        sample = _in_a_process(name, how, bytecode, cache / how)
                        found[name].setdefault(how + again, []).append(sample)
    return found


def growth(rounds: int = 1, families: Iterable[str] | None = None) -> dict[str, dict[str, dict[int, float]]]:
    """Return the median CPU seconds of programs of each family and size, for numba and for the gradient."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        bytecode = Path(folder) / "bytecode"
        _in_a_process("ode", "gradient", bytecode, Path(folder) / "first")
        for family in families or FAMILIES:
            found[family] = {"numba": {}, "gradient": {}}
            for how, by_size in found[family].items():
                for size in SIZES:
                    samples = [
                        _in_a_process(f"{family} {size}", how, bytecode, Path(folder) / f"{family} {size} {number}")
                        for number in range(rounds)
                    ]
                    by_size[size] = median(sample.cpu for sample in samples)
    return found


def slope(by_size: Mapping[int, float]) -> float:
    """Return the slope between the two largest sizes as a multiple of that between the two smallest: 1 if linear."""
    small, middle, large = SIZES
    late = (by_size[large] - by_size[middle]) / (large - middle)
    return late / ((by_size[middle] - by_size[small]) / (middle - small))


def _in_a_process(name: str, how: str, bytecode: Path, cache: Path) -> Sample:
    return in_a_process(f"measure({name!r}, {how!r})", bytecode, cache)


def in_a_process(
    call: str, bytecode: Path, cache: Path, module: str = "benchmarks.compile_time", first: str = "numba"
) -> Sample:
    """Return the sample that a call of a function of a module prints, in a process that has imported `first`."""
    program = f"import {first}\nfrom {module} import {call.partition('(')[0]}\n{call}"
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "PYTHONDONTWRITEBYTECODE": "",
        "ZYGOTE_PY_CACHE": "",
        "ZYGOTE_PY_CACHE_DIR": str(cache),
        "ZYGOTE_PY_VERIFY": "",
    }
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{call}:\n{done.stderr}")
    return Sample(*json.loads(done.stdout.splitlines()[-1]))


def measure(name: str, how: str) -> None:
    """Print the sample of this process, in which only Numba has been imported."""
    function, arguments = ROWS[name].program() if name in ROWS else _of_family(name)

    def run() -> None:
        if how == "numba":
            made: Any = function if hasattr(function, "py_func") else numba.njit(function)
        else:
            import zygote_py

            made = getattr(zygote_py, how)(function)
        made(*arguments)

    print_sample(run)


def print_sample(run: Callable[[], object]) -> None:
    """Print the CPU seconds of a call and the peak memory of this process."""
    began = _cpu()
    run()
    seconds = _cpu() - began
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))


def _cpu() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


# ------------------------------------------------------------------------------------------------------------- families


def _statements(size: int) -> list[str]:
    return [f"    r = math.sin(r) * x + {k}.5" for k in range(size)]


def _loops(size: int) -> list[str]:
    return [
        line for k in range(size) for line in ("    for _ in range(n):", f"        r = r * x + math.cos(r) + {k}.5")
    ]


def _calls(size: int) -> list[str]:
    return [f"    r = r + called(r, x + {k}.5)" for k in range(size)]


_OVER_VALUES = ["    for value in values:", "        r = r * x + math.sin(value)"]


def _arrays(size: int) -> list[str]:
    written = [f"        a_{k}[i] = a_{(k + 1) % size}[i] * x + r" for k in range(size)]
    return ["    for i in range(n):", *written, "        r += a_0[i]"]


FAMILIES: Mapping[str, Callable[[int], list[str]]] = {
    "items of a tuple": lambda size: list(_OVER_VALUES),
    "statements": _statements,
    "arrays written": _arrays,
    "calls": _calls,
    "loops in a row": _loops,
}


def _of_family(name: str) -> Program:
    family, _, size = name.rpartition(" ")
    count = int(size)
    more: dict[str, Any] = {}
    if family == "arrays written":
        more = {f"a_{k}": np.linspace(0.1, 0.2, 4) for k in range(count)}
    elif family == "items of a tuple":
        more = {"values": tuple(np.linspace(0.1, 0.2, count).tolist())}
    called = ["def called(r, x):", "    for _ in range(3):", "        r = math.sin(r) * x", "    return r"]
    head = f"def f({', '.join(['x', 'n', *more])}):"
    lines = ["import math", *called, head, "    r = x", *FAMILIES[family](count), "    return r"]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    namespace["called"] = numba.njit(namespace["called"])
    return namespace["f"], (0.01, 4, *more.values())
