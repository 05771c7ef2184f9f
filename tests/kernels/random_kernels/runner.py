"""Many random kernels on several processes: `python -m tests.kernels.random_kernels --count 2000 --seed 0 --jobs 2`.

Seed `s` is one kernel. Seeds are run until there are `--count` kernels that are neither refused nor discarded, since
their own threads race, they fail, or they jump at the point. The report says how many of those have each feature, and
how many were refused, with which message. `--show SEED` prints a kernel and what comes of it. Exit code 1 if a value or
a gradient was wrong, threads raced or anything crashed.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing as mp
import os
import time
from collections.abc import Iterator

from tests.kernels.random_kernels.case import FEATURES, OTHERS
from tests.kernels.random_kernels.check import Kind, Outcome, check
from tests.kernels.random_kernels.families import FAMILIES, generate

Result = tuple[int, Outcome, frozenset[str], str]
KERNELS = 200  # that a process runs before a fresh one takes over
MOST_SHOWN = 20


def run_seed(seed: int) -> Result:
    """Run the kernel of a seed."""
    case = generate(seed)
    return seed, check(case, seed), case.features, case.family


def describe(seed: int, outcome: Outcome) -> str:
    """A report of one kernel."""
    case = generate(seed)
    arrays = ", ".join(f"{name}: {array.kind}{list(array.shape)}" for name, array in case.arrays.items())
    head = f"---- seed {seed}: {outcome.kind} {outcome.detail.rstrip()}"
    return f"{head}\n\n{case.text}\nkernel[{case.launched}], n = {case.size}, {arrays}\n"


class Campaign:
    """The outcomes of the kernels of a run, counted."""

    def __init__(self) -> None:
        self.kinds: collections.Counter[Kind] = collections.Counter()
        self.features: collections.Counter[str] = collections.Counter()
        self.families: collections.Counter[str] = collections.Counter()
        self.reasons: dict[Kind, collections.Counter[str]] = {kind: collections.Counter() for kind in Kind}

    @property
    def compared(self) -> int:
        """How many kernels were compared with the reference."""
        return self.kinds[Kind.OK] + self.kinds[Kind.WRONG]

    def add(self, result: Result) -> None:
        seed, outcome, features, family = result
        self.kinds[outcome.kind] += 1
        if outcome.kind in (Kind.OK, Kind.WRONG):
            self.features.update(features)
            self.families[family] += 1
        else:
            self.reasons[outcome.kind][outcome.signature] += 1
        if outcome.kind is Kind.WRONG and self.kinds[Kind.WRONG] <= MOST_SHOWN:
            print(describe(seed, outcome), flush=True)

    def report(self) -> str:
        lines = [f"{self.compared:6} kernels compared, {self.kinds[Kind.WRONG]} wrong"]
        lines += [f"{self.features[name]:6} with {name}" for name in (*FEATURES, *OTHERS)]
        lines += [f"{self.families[family.family]:6} of the family {family.family}" for family in FAMILIES]
        for kind in (Kind.REFUSED, Kind.DISCARDED):
            lines.append(f"{self.kinds[kind]:6} {kind}")
            lines += [f"{number:12} {reason}" for reason, number in self.reasons[kind].most_common()]
        return "\n".join(lines)


def results(first: int, jobs: int) -> Iterator[Result]:
    """Yield what comes of seeds, in order, without end."""
    seeds = iter(range(first, 2**31))
    if jobs == 1:
        yield from map(run_seed, seeds)
        return
    with mp.get_context("fork").Pool(jobs, maxtasksperchild=KERNELS) as pool:
        waiting = collections.deque(pool.apply_async(run_seed, (next(seeds),)) for _ in range(8 * jobs))
        while True:
            result = waiting.popleft().get()
            waiting.append(pool.apply_async(run_seed, (next(seeds),)))
            yield result


def main() -> int:
    """Run kernels and report."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.kernels.random_kernels", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--count", type=int, default=200, help="how many kernels (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first one (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--show", type=int, metavar="SEED", help="print one kernel and what comes of it")
    options = parser.parse_args()
    for name, value in (("ZYGOTE_PY_CACHE", "0"), ("ZYGOTE_PY_VERIFY", "1")):
        os.environ.setdefault(name, value)
    if options.show is not None:
        _, outcome, _, _ = run_seed(options.show)
        print(describe(options.show, outcome))
        return int(outcome.kind is Kind.WRONG)
    campaign, started, shown = Campaign(), time.monotonic(), time.monotonic()
    for result in results(options.seed, options.jobs):
        campaign.add(result)
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"{shown - started:6.0f} s  {dict(campaign.kinds)}", flush=True)
        if campaign.compared == options.count:
            break
    print(campaign.report())
    print(f"{time.monotonic() - started:.0f} s on {options.jobs} processes, the last seed is {result[0]}")
    return int(campaign.kinds[Kind.WRONG] > 0)
