"""The command line: `python -m tests.seeded_faults` (see `tests.seeded_faults`)."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.seeded_faults.fault import Fault
from tests.seeded_faults.faults import FAULTS

ROOT = Path(__file__).parents[2]
IGNORED = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__", ".pytest_cache")


def seeded(fault: Fault | None, folder: Path) -> Path:
    """A copy of the checkout with a fault, or without one."""
    copy = folder / "checkout"
    shutil.copytree(ROOT, copy, ignore=IGNORED)
    for part in ("ir", "adjoints"):  # so that they are found there, and not where the package is installed
        (copy / "zygote_py" / part).symlink_to(copy / part)
    if fault is not None:
        path = copy / fault.path
        text = path.read_text(encoding="utf-8")
        assert text.count(fault.old) == 1, f"{fault.path} does not hold this once: {fault.old}"
        path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    return copy


def first_failure(copy: Path, tests: Sequence[str], workers: int) -> str | None:
    """The first test that fails there; None if none does."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no", "-rfE", *tests]
    if workers:
        command += ["-n", str(workers)]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    if run.returncode not in (0, 1, 2) or (run.returncode and not found):
        raise RuntimeError(run.stdout[-3000:] + run.stderr[-3000:])
    return found[1] if found else None


def found_by(fault: Fault | None, workers: int, likely_only: bool) -> str | None:
    """The test that finds a fault."""
    with tempfile.TemporaryDirectory(prefix="seeded-fault-") as folder:
        copy = seeded(fault, Path(folder))
        name = first_failure(copy, fault.tests, 0) if fault is not None and fault.tests else None
        return name or (None if likely_only else first_failure(copy, (), workers))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.seeded_faults", description=__doc__)
    parser.add_argument("words", nargs="*", help="only faults whose descriptions hold one of these")
    parser.add_argument("--list", action="store_true", help="list the faults, and run nothing")
    parser.add_argument("--likely", action="store_true", help="run the likeliest tests only")
    parser.add_argument("--sound", action="store_true", help="run the copy without a fault, too, which has to pass")
    parser.add_argument("-n", type=int, default=2, help="processes for the other tests (default: 2)")
    options = parser.parse_args()
    chosen = [each for each in FAULTS if not options.words or any(word in each.what for word in options.words)]
    if options.list:
        print(*(f"{each.path}: {each.what}" for each in chosen), sep="\n")
        return 0
    if options.sound and (name := found_by(None, options.n, False)):
        print(f"without a fault, {name} fails")
        return 1
    missed = 0
    for each in chosen:
        start = time.perf_counter()
        name = found_by(each, options.n, options.likely)
        missed += name is None
        print(f"{time.perf_counter() - start:6.0f} s  {each.what}: {name or 'NOT FOUND'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
