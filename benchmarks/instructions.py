"""Count the instructions that a call executes, with Valgrind's callgrind: a number that does not depend on the load of
the machine.

    counts("rk4", fastmath=False)       # {"primal": 1_360_220, "gradient": ..., "hand-written": ...}, per call

A case is built and its functions are compiled in a process under Valgrind, for one kind of processor and one thread,
before callgrind looks at anything. Then it counts one call of each variant, and one of a function that does nothing,
which is subtracted: the process itself tells it to start and to stop.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import which

from llvmlite import binding as llvm

from benchmarks.cases import CASES

Counts = dict[str, int]

KEPT = Path(__file__).with_suffix(".json")  # of each case, without fastmath: what the tests compare with

# Valgrind knows AVX2; and the machine code must depend neither on the processor nor on what else is set.
SETTINGS = {
    "NUMBA_OPT": "3",
    "ZYGOTE_PY_VERIFY": "0",
    "NUMBA_CPU_NAME": "haswell",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


def is_installed() -> bool:
    """Return whether Valgrind is there."""
    return which("valgrind") is not None and which("callgrind_control") is not None


def kept() -> dict[str, Counts]:
    """Return the counts that the tests compare with."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}  # type: ignore[no-any-return]


def keep(found: Mapping[str, Counts]) -> None:
    """Let the tests compare with these counts from now on, and for other cases with those that they had."""
    KEPT.write_text(json.dumps({**kept(), **found}, indent=4) + "\n")


def counts(name: str, fastmath: bool, chosen: Sequence[str] = ()) -> Counts:
    """Return the instructions of a call of each variant of a case, or of those chosen.

    Raises CalledProcessError if Valgrind fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        program = [sys.executable, "-m", "benchmarks.instructions", name, str(int(fastmath)), *chosen]
        environment = {**os.environ, **SETTINGS}
        done = subprocess.run(
            ["valgrind", "--quiet", *options, *program], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
        calls, *variants = done.stdout.splitlines()[-1].split("\t")
        files = [Path(f"{out}.{number}") for number in range(1, len(variants) + 1)]
        found = {variant: _total(file.read_text()) for variant, file in zip(variants, files, strict=True)}
    return {variant: round((found[variant] - found["nothing"]) / int(calls)) for variant in variants[1:]}


def _total(text: str) -> int:
    """Return the instructions that a file of callgrind's counts."""
    found = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"callgrind's file has no total: {text[:200]}")
    return int(found[1])


def _count(variants: Mapping[str, Callable[[], object]]) -> None:
    """Call each variant while callgrind counts, and let it write a file for each."""
    for run in variants.values():
        for _ in range(3):  # the second call makes the way of later ones
            run()
    tell = _client()
    for run in variants.values():
        tell(_START)
        tell(_ZERO)
        run()
        tell(_DUMP)
        tell(_STOP)


# The requests of valgrind/callgrind.h, in its order, and the instructions by which valgrind/valgrind.h makes one.
_DUMP, _ZERO, _, _, _START, _STOP = range(0x43540000, 0x43540006)
_ASK = """
define i64 @ask(i64 %request) {
    %words = alloca [6 x i64]
    store [6 x i64] zeroinitializer, ptr %words
    store i64 %request, ptr %words
    %answer = call i64 asm sideeffect
        "rolq $$3, %rdi; rolq $$13, %rdi; rolq $$61, %rdi; rolq $$51, %rdi; xchgq %rbx, %rbx",
        "={rdx},{rax},{rdx},~{cc},~{memory}"(ptr %words, i64 0)
    ret i64 %answer
}
"""


def _client() -> Callable[[int], int]:
    """Return a function that makes a request of Valgrind, compiled; without Valgrind, it does nothing."""
    llvm.initialize_native_asmparser()
    module = llvm.parse_assembly(_ASK)
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine(jit=True))
    engine.finalize_object()
    made = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("ask"))
    made.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return made


def _main(name: str, fastmath: bool, chosen: Sequence[str]) -> None:
    case = CASES[name](fastmath)
    runs = {variant: run for variant, run in case.runs.items() if variant in (chosen or case.runs)}
    variants = {"nothing": lambda: None, **runs}
    _count(variants)
    print(case.calls, *variants, sep="\t")


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2] == "1", sys.argv[3:])
