"""Run the benchmarks.

python -m benchmarks                          everything, with fastmath off and on
python -m benchmarks loop rk4 --json out.json these two cases, and a file for pyperf
python -m benchmarks compile                  the time to the first derivative in fresh processes
python -m benchmarks growth                   how it grows with the size of the function
python -m benchmarks code                     code size only
python -m benchmarks split                    the cost of `pullback` compared with a gradient
python -m benchmarks sizes                    cost of five gradients as a function of the size
python -m benchmarks threads                  gradients of functions with `parallel=True`
python -m benchmarks instructions             instructions of a call, counted by Valgrind's callgrind
python -m benchmarks transformations          the cases without each transformation, one at a time
python -m benchmarks second                   Hessians, Hessian-vector products, a Jacobian
python -m benchmarks cuda                     gradients on a CUDA device, also compared with JAX and PyTorch
python -m benchmarks --quick                  a rough answer within two minutes, without "compile" and "growth"

"transformations", "instructions" and "cuda" run only if they are named. The first two take the cases that are named
beside them, or all; `--keep` makes the counts of "instructions" those that the tests compare with.
NUMBA_ENABLE_CUDASIM=1 runs "cuda" without a device, with tiny sizes, to check the results.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import numba

from benchmarks import instructions, report
from benchmarks.array_cases import ARRAY_CASES
from benchmarks.cases import CASES
from benchmarks.code_size import code_sizes
from benchmarks.compile_peers import warm_times
from benchmarks.compile_time import Samples, compile_times, growth
from benchmarks.measure import Times, interleaved, time_in_processes
from benchmarks.memory import peak_in_process
from benchmarks.second import SECOND, check_second, compile_second
from benchmarks.sizes import size_times
from benchmarks.split import split_times
from benchmarks.step_cases import STEP_CASES
from benchmarks.threads import thread_times
from benchmarks.transformations import effects_in_process

OTHERS = ("split", "sizes", "threads", "second", "compile", "growth", "code")
IF_NAMED = ("transformations", "instructions", "cuda")


def main() -> None:
    """Run the benchmarks named on the command line and print the tables."""
    names = [*CASES, *OTHERS, *IF_NAMED]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare the run time of gradients with that of hand-written ones."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write samples and ratios, in pyperf's format")
    parser.add_argument("--quick", action="store_true", help="one process and few samples per case")
    parser.add_argument("--fastmath", choices=("off", "on", "both"), default="both")
    parser.add_argument("--keep", action="store_true", help='keep the counts of "instructions" for the tests')
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(names)):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(names)}")
    left_out = [*IF_NAMED, *(("compile", "growth") if options.quick else ())]
    wanted = options.names or [name for name in names if name not in left_out]
    if "cuda" in wanted:
        from benchmarks.cuda.device import missing

        if why := missing():
            sys.exit(why)
    processes, rounds, seconds = (1, 10, 0.01) if options.quick else (3, 15, 0.02)
    flags = {"off": (False,), "on": (True,), "both": (False, True)}[options.fastmath]
    named = [name for name in CASES if name in wanted] or list(CASES)
    if "instructions" in wanted:
        _count_instructions(named, options.keep)
        return
    if "transformations" in wanted:
        gains = {(name, on): effects_in_process(name, on, rounds, seconds) for name in named for on in flags}
        print(report.effect_table(gains))
        return

    print(f"{_processor()}; Python {platform.python_version()}, Numba {numba.__version__}\n")
    results: dict[tuple[str, bool], Times] = {}
    for name in (name for name in CASES if name in wanted):
        for fastmath in flags:
            print(f"{name}, fastmath {'on' if fastmath else 'off'} ...", file=sys.stderr, flush=True)
            results[name, fastmath] = time_in_processes(name, fastmath, processes, rounds, seconds)
    peaks = {name: peak_in_process(name) for name in (*ARRAY_CASES, *STEP_CASES) if name in wanted}
    if results:
        print(report.speed_table(results), *report.notes(results), sep="\n", end="\n\n", flush=True)
    if peaks:
        print(report.memory_table(peaks), end="\n\n", flush=True)
    if "split" in wanted:
        rows = {name: split_times(name, rounds, seconds) for name in CASES}
        print(report.split_table(rows), end="\n\n", flush=True)
    if "sizes" in wanted:
        print(report.by_size_table(size_times(rounds, seconds)), end="\n\n", flush=True)
    if "threads" in wanted:
        print(f"{numba.get_num_threads()} threads")
        print(report.thread_table(thread_times(rounds, seconds, options.quick)), end="\n\n", flush=True)
    if "second" in wanted:
        cases = [make() for make in SECOND.values()]
        for case in cases:
            check_second(case)
        seconds_ = {case.name: interleaved(case.runs, rounds, seconds) for case in cases}
        print(report.second_table(seconds_), end="\n\n", flush=True)
        print(report.compile_second_table(compile_second(3 if options.quick else 7)), end="\n\n", flush=True)
    compiled: Samples | None = None
    sizes = None
    if "compile" in wanted:
        compiled = compile_times(1 if options.quick else 3)
        print(report.compile_table(compiled), end="\n\n", flush=True)
        print(report.warm_table(warm_times(1 if options.quick else 3)), end="\n\n", flush=True)
    if "growth" in wanted:
        print(report.growth_table(growth(1 if options.quick else 3)), end="\n\n", flush=True)
    if "code" in wanted:
        sizes = code_sizes()
        print(report.size_table(sizes), flush=True)
    on_device: dict[str, Times] = {}
    device = None
    if "cuda" in wanted:
        from benchmarks.cuda.run import run

        on_device, device = run(options.quick)
    if options.json:
        report.write_json(options.json, results, compiled, sizes, peaks, on_device, device)


def _count_instructions(names: list[str], are_kept: bool) -> None:
    if not instructions.is_installed():
        sys.exit("instructions: Valgrind is not installed")
    found = {name: instructions.counts(name, False) for name in names}
    print(report.instruction_table(found, instructions.kept()))
    if are_kept:
        instructions.keep(found)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
