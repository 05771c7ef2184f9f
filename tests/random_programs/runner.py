"""Many random programs on several processes: `python -m tests.random_programs --count 10000 --seed 0 --jobs 2`.

Seed `s` is one program: of four in a row one has no arrays, one reads them, and two write to them (`--arrays` draws
others); every second four call functions. One in `--every` is run compiled and the others in plain Python (`--compiled`
and `--plain` run all in one mode). One in four is steered by arrays that it changes, and one in eight has callees of
each kind of `tests.random_programs.callees` that `--features` names; how often each was right, refused or wrong is
counted. `--features dicts --always` puts dicts into all programs, and `containers` gives all of them their arguments in
lists, dicts, records, structured arrays and objects; these are not among the features by default. With
`--order 2` second derivatives are checked, in every way there is of computing them, and with `--nested` the programs
take derivatives themselves. `--show SEED` prints a program and what comes of it. Numba optimises nothing
(`NUMBA_OPT=0`), nothing is cached and all IR is verified, unless the environment says otherwise. The processes are
forked from one that has run some programs. One that dies is a crash of the seed it was working on. Exit code 1 if any
gradient was wrong or anything crashed.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing as mp
import os
import random
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait

from tests.random_programs.callees import FEATURES, STEERING
from tests.random_programs.check import Kind, Outcome, check
from tests.random_programs.containers import CONTAINERS
from tests.random_programs.entries import DICTS
from tests.random_programs.generator import Program, generate
from tests.random_programs.shrink import shrink

BATCH = 125  # programs a process runs before a fresh one takes over: compiled code is never freed
# Programs run in plain Python before the processes are forked, so that all have what Numba compiles only to type the
# functions of NumPy, which takes it twice as long as all else that is done for a program.
WARM = range(10**9, 10**9 + 16)
SHRUNK = 3  # failures shrunk for each kind of failure
DEADLINE = 1800.0  # seconds without an answer after which a process is given up; a program has less, of processor time
BAD = (Kind.WRONG, Kind.CRASH, Kind.INVALID)


@dataclass(frozen=True)
class Settings:
    """How the programs are run."""

    every: int
    shrink: float
    arrays: str = "mixed"
    order: int = 1
    nested: bool = False
    features: tuple[str, ...] = ()
    always: bool = False


RATES = {STEERING: 4, DICTS: 2, CONTAINERS: 2}  # one program in so many has a feature
RATE = 8
ON_DEMAND = (DICTS, CONTAINERS)  # what programs have only if it is named, so that the programs of seeds stay the same
KINDS = ("none", "read", "written")  # what programs do with arrays


def features_of(seed: int, features: Sequence[str] = FEATURES, always: bool = False) -> tuple[str, ...]:
    """Which of some features the program of a seed has, whichever others there are; `always` one, these in turn."""
    if always and features:
        return (features[seed // 8 % len(features)],)
    rng = random.Random(f"features of {seed}")
    drawn = [feature for feature in (*FEATURES, *ON_DEMAND) if rng.random() < 1 / RATES.get(feature, RATE)]
    return tuple(feature for feature in drawn if feature in features)


def program_of(
    seed: int,
    arrays: str = "mixed",
    nested: bool = False,
    features: Sequence[str] = FEATURES,
    always: bool = False,
) -> Program:
    """The program of a seed, of one of KINDS; what is steered writes to arrays."""
    has = () if nested else features_of(seed, features, always)
    kind = ("none", "read", "written", "written")[seed % 4] if arrays == "mixed" else arrays
    if STEERING in has:
        kind = "written"
    calls = nested or seed // 4 % 2 == 1
    rng = random.Random(seed)
    made = generate(rng, arrays=kind == "read", writes=kind == "written", functions=calls, nested=nested, features=has)
    return replace(made, held=seed, features=(*made.features, CONTAINERS)) if CONTAINERS in has else made


def is_compiled(seed: int, every: int) -> bool:
    """Whether the program of a seed is run compiled: one in `every`, of each kind in turn."""
    return every > 0 and (seed // 8) % every == 0


def run_seed(seed: int, settings: Settings) -> Outcome:
    """Run the program of a seed."""
    return check(_program(seed, settings), is_compiled(seed, settings.every), settings.order)


def _program(seed: int, settings: Settings) -> Program:
    return program_of(seed, settings.arrays, settings.nested, _features(settings), settings.always)


def _features(settings: Settings) -> tuple[str, ...]:
    """The features that programs may have: of those asked for, the ones of which second derivatives are checked."""
    return tuple(each for each in settings.features if settings.order == 1 or each in ("dicts", "containers"))


def shrunk(seed: int, outcome: Outcome, settings: Settings) -> Program:
    """The program of a seed that failed, made small."""
    compiled = is_compiled(seed, settings.every)

    def fails(candidate: Program) -> bool:
        found = check(candidate, compiled, settings.order)
        return found.signature == outcome.signature

    return shrink(_program(seed, settings), fails, settings.shrink)


def _work(connection: Connection, seeds: range, settings: Settings) -> None:
    """A process: run seeds and send what comes of them; the parent says which failures to shrink."""
    for seed in seeds:
        outcome = run_seed(seed, settings)
        connection.send((seed, outcome, None))
        if outcome.kind is not Kind.OK and outcome.kind is not Kind.DISCARDED and connection.recv():
            small = shrunk(seed, outcome, settings)
            connection.send((seed, check(small, is_compiled(seed, settings.every), settings.order), small))
    connection.send(None)


class _Run:
    """The state of a run: what is to do, who does it, and what came of it."""

    def __init__(self, first: int, count: int, jobs: int, settings: Settings) -> None:
        self.todo = [range(s, min(s + BATCH, first + count)) for s in range(first, first + count, BATCH)][::-1]
        self.settings = settings
        self.jobs = jobs
        self.context = mp.get_context("fork")
        self.active: dict[Connection, tuple[mp.process.BaseProcess, range, float]] = {}
        self.shrinking: dict[Connection, tuple[int, Outcome]] = {}
        self.counts: collections.Counter[Kind] = collections.Counter()
        self.by_feature = {feature: collections.Counter[Kind]() for feature in settings.features}
        self.reasons: collections.Counter[str] = collections.Counter()
        self.failures: list[tuple[int, Outcome, Program]] = []

    def run(self) -> None:
        started, shown = time.monotonic(), 0.0
        while self.todo or self.active:
            while self.todo and len(self.active) < self.jobs:
                self.start(self.todo.pop())
            for connection in wait(list(self.active), timeout=5.0):
                assert isinstance(connection, Connection)
                self.receive(connection)
            for connection, (_, seeds, heard) in list(self.active.items()):
                if time.monotonic() - heard > DEADLINE + self.settings.shrink:
                    self.died(connection, seeds, f"no answer for {DEADLINE:.0f} s")
            if time.monotonic() - shown > 15:
                shown = time.monotonic()
                counts = ", ".join(f"{n} {kind}" for kind, n in self.counts.most_common())
                print(f"{shown - started:6.0f} s  {sum(self.counts.values())} programs: {counts}", flush=True)
        self.seconds = time.monotonic() - started
        self.cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

    def start(self, seeds: range) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_work, args=(theirs, seeds, self.settings), daemon=True)
        process.start()
        theirs.close()
        self.active[ours] = (process, seeds, time.monotonic())

    def receive(self, connection: Connection) -> None:
        process, seeds, _ = self.active[connection]
        try:
            message = connection.recv()
        except EOFError:
            process.join()
            self.died(connection, seeds, f"the process ended with code {process.exitcode}")
            return
        if message is None:
            del self.active[connection]
            process.join()
            return
        seed, outcome, small = message
        self.active[connection] = (process, range(seed + 1, seeds.stop), time.monotonic())
        self.shrinking.pop(connection, None)
        if small is not None:
            self.report(seed, outcome, small)
            return
        self.note(seed, outcome.kind)
        if outcome.kind is Kind.OK:
            return
        self.reasons[outcome.signature] += 1
        if outcome.kind is not Kind.DISCARDED:
            small_wanted = self.reasons[outcome.signature] <= SHRUNK
            if small_wanted:
                self.shrinking[connection] = seed, outcome
            connection.send(small_wanted)

    def note(self, seed: int, kind: Kind) -> None:
        self.counts[kind] += 1
        for feature in features_of(seed, () if self.settings.nested else _features(self.settings)):
            self.by_feature[feature][kind] += 1

    def died(self, connection: Connection, seeds: range, why: str) -> None:
        """The program that a process died of is the first of what it had still to do, or it was shrinking one."""
        process = self.active.pop(connection)[0]
        process.kill()
        if connection in self.shrinking:
            seed, outcome = self.shrinking.pop(connection)
            self.report(seed, outcome, _program(seed, self.settings))
            if seeds:
                self.todo.append(seeds)
        elif seeds:
            outcome = Outcome(Kind.CRASH, why)
            self.note(seeds.start, Kind.CRASH)
            self.reasons[outcome.signature] += 1
            self.report(seeds.start, outcome, _program(seeds.start, self.settings))
            if seeds[1:]:
                self.todo.append(seeds[1:])

    def report(self, seed: int, outcome: Outcome, program: Program) -> None:
        self.failures.append((seed, outcome, program))
        print(describe(seed, outcome, program, is_compiled(seed, self.settings.every)), flush=True)


def describe(seed: int, outcome: Outcome, program: Program, compiled: bool) -> str:
    """A report of one program."""
    mode = "compiled" if compiled else "plain"
    lines = [
        f"---- seed {seed} ({mode}): {outcome.kind}",
        outcome.detail.rstrip(),
        "",
        program.text.partition("\n\n\n")[2].rstrip(),
    ]
    lines += [f"f(*{args!r})" for args in program.inputs]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run programs and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many programs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first one (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--every", type=int, default=10, help="one in so many is compiled (default: %(default)s)")
    parser.add_argument("--compiled", dest="every", action="store_const", const=1, help="compile all")
    parser.add_argument("--plain", dest="every", action="store_const", const=0, help="compile none")
    parser.add_argument("--arrays", choices=("mixed", *KINDS), default="mixed", help="what the programs do with arrays")
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds for shrinking a failure, 0 for none")
    parser.add_argument("--order", type=int, choices=(1, 2), default=1, help="check gradients, or second derivatives")
    parser.add_argument("--nested", action="store_true", help="let the programs take derivatives themselves")
    parser.add_argument(
        "--features",
        default=",".join(FEATURES),
        help=f"what programs may have, of {', '.join((*FEATURES, *ON_DEMAND))}; 'all' or 'none' (default: %(default)s)",
    )
    parser.add_argument("--always", action="store_true", help="let each program have one of the features, in turn")
    parser.add_argument("--show", type=int, metavar="SEED", help="print one program and what comes of it")
    options = parser.parse_args()
    named = {"all": FEATURES, "none": ()}
    features = named.get(options.features, tuple(options.features.split(",")))
    if unknown := set(features) - {*FEATURES, *ON_DEMAND}:
        parser.error(f"no such feature: {', '.join(sorted(unknown))}")
    settings = Settings(
        options.every, options.shrink, options.arrays, options.order, options.nested, features, options.always
    )
    for name, value in (("NUMBA_OPT", "0"), ("ZYGOTE_PY_CACHE", "0"), ("ZYGOTE_PY_VERIFY", "1")):
        os.environ.setdefault(name, value)
    if options.show is not None:
        outcome = run_seed(options.show, settings)
        print(
            describe(options.show, outcome, _program(options.show, settings), is_compiled(options.show, options.every))
        )
        return int(outcome.kind in BAD)
    if options.count > BATCH:
        for seed in WARM:
            check(_program(seed, settings), compiled=False, order=settings.order)
    run = _Run(options.seed, options.count, options.jobs, settings)
    run.run()
    print(f"\n{sum(run.counts.values())} programs")
    for kind, number in run.counts.most_common():
        print(f"{number:7d}  {kind}")
    for signature, number in run.reasons.most_common():
        print(f"{number:7d}  {signature}")
    for feature, counts in run.by_feature.items():
        found = ", ".join(f"{number} {kind}" for kind, number in counts.most_common())
        print(f"{sum(counts.values()):7d}  with {feature}: {found}")
    each = run.cpu / max(sum(run.counts.values()), 1)
    print(f"{run.seconds:.0f} s on {options.jobs} processes, {each:.2f} CPU seconds a program")
    return int(any(run.counts[kind] for kind in BAD))
