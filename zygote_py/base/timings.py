"""The seconds of the stages of a compilation, and a sign of life while a long one runs.

    with compilation("compiling f_gradient(float64)"):      # those within it are part of it
        with stage("emission"):
            ...

A compilation of more than two seconds says so on the standard error stream if that is a terminal:

    zygote_py: compiling f_gradient(float64), since 14:03:22
    zygote_py: compiling f_gradient(float64): 7.4 s

`ZYGOTE_PY_PROGRESS=0` turns that off. With `ZYGOTE_PY_TIMINGS=1`, each compilation is followed by a table of its
stages, with seconds of the wall clock: what a stage takes does not include the stages within it.

One thread compiles at a time, as Numba's lock has it. Meanwhile Python collects garbage less often.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

_PATIENCE = 2.0  # seconds without a word
_LEAST = 0.001  # seconds: of the rows of a table
_WIDTH = 80  # characters of argument types, at most
_PAUSE = 0.1  # seconds between deriving a function and compiling it, at most
_MOST_PROMOTED = 1_000_000  # objects: those of some small derivatives, or of a large one


def timings_are_wanted() -> bool:
    """Return whether tables are printed."""
    return os.environ.get("ZYGOTE_PY_TIMINGS", "") not in ("", "0")


class _Run:
    """A compilation, and the stages in it."""

    def __init__(self, what: str, began: float) -> None:
        self.what = what
        self.began = began  # the time by which patience is measured
        self.entered = time.perf_counter()
        self.seconds: dict[str, list[float]] = {}  # of each stage: seconds, and how often it began
        self.said = False
        self._stack = [(OTHER, self.entered)]
        self._timer: threading.Timer | None = None

    def watch(self) -> None:
        """Say that this runs once it has taken too long."""
        self._timer = threading.Timer(max(0.0, _PATIENCE - (self.entered - self.began)), self._speak)
        self._timer.daemon = True
        self._timer.start()

    def _speak(self) -> None:
        since = time.localtime(time.time() - (time.perf_counter() - self.began))
        self.said = True
        _say(f"{self.what}, since {time.strftime('%H:%M:%S', since)}")

    def begin(self, name: str) -> None:
        """Begin a stage within the present one."""
        self._pass()
        self._stack.append((name, time.perf_counter()))
        self.seconds.setdefault(name, [0.0, 0])[1] += 1

    def end(self, name: str) -> None:
        """End a stage, and what was begun in it and not ended."""
        self._pass()
        while len(self._stack) > 1 and self._stack.pop()[0] != name:
            pass
        self._stack[-1] = (self._stack[-1][0], time.perf_counter())

    def _pass(self) -> None:
        name, since = self._stack[-1]
        self.seconds.setdefault(name, [0.0, 0])[0] += time.perf_counter() - since

    def finish(self) -> None:
        """Say what is to be said at the end."""
        if self._timer is not None:
            self._timer.cancel()
        self._pass()
        took = time.perf_counter() - self.entered
        if timings_are_wanted():
            _say(f"{self.what}: {took:.2f} s\n{self._table()}")
        elif self.said:
            _say(f"{self.what}: {took:.1f} s")

    def _table(self) -> str:
        longest = sorted(self.seconds.items(), key=lambda each: each[1], reverse=True)
        width = max(map(len, self.seconds))
        return "\n".join(
            f"    {name:{width}} {seconds:8.3f} s" + (f"  x {count}" if count > 1 else "")
            for name, (seconds, count) in longest
            if seconds >= _LEAST
        )


OTHER = "other"
_run: _Run | None = None
_last = -1.0, -1.0  # when the last one began and ended


@contextmanager
def _outermost(what: str) -> Iterator[bool]:
    global _run, _last
    now = time.perf_counter()
    began, ended = _last
    _run = run = _Run(what, began if now - ended < _PAUSE else now)
    if _progress_is_wanted():
        run.watch()
    try:
        with _fewer_collections():
            yield True
    finally:
        _run = None
        run.finish()
        _last = run.began, time.perf_counter()


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Let Python look for cycles less often: most of what a compiler makes is kept.

    What the first compilations of a process made it does not look through even afterwards, which would take a twentieth
    of their time, but takes as old: the next full collection finds the cycles.
    """
    known = gc.get_threshold()
    rare = (max(known[0], 300_000), known[1], max(known[2], 10_000))
    if known[0]:  # otherwise it does not look at all
        gc.set_threshold(*rare)
    try:
        yield
    finally:
        if gc.get_threshold() == rare:  # it was not set by others
            _promote()
            gc.set_threshold(*known)


_promoted = 0


def _promote() -> None:
    """Make all objects old ones, unless that was done with many, or the program has frozen objects of its own."""
    global _promoted
    _promoted += gc.get_count()[0]
    if _promoted > _MOST_PROMOTED:
        return
    if gc.get_freeze_count():
        _promoted = _MOST_PROMOTED  # to count them takes long
        return
    gc.freeze()
    gc.unfreeze()


def compilation(what: str) -> AbstractContextManager[bool]:
    """Return a context for compiling something, by which the user knows it: whether it is within no other."""
    return nullcontext(False) if _run is not None else _outermost(what)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Count the time of what runs within this context for a stage."""
    begin_stage(name)
    try:
        yield
    finally:
        end_stage(name)


def begin_stage(name: str) -> None:
    """Begin a stage of the present compilation, if there is one."""
    if _run is not None:
        _run.begin(name)


def end_stage(name: str) -> None:
    """End a stage; see `begin_stage`."""
    if _run is not None:
        _run.end(name)


def _progress_is_wanted() -> bool:
    if os.environ.get("ZYGOTE_PY_PROGRESS", "") == "0":
        return False
    try:
        return sys.stderr.isatty()
    except Exception:  # None, closed, or an object of another kind
        return False


def call_text(name: str, argument_types: Iterable[object]) -> str:
    """Return how a compilation of a function for some types is named: briefly."""
    listed = ", ".join(map(str, argument_types))
    return f"{name}({listed if len(listed) <= _WIDTH else listed[:_WIDTH] + '...'})"


def _say(text: str) -> None:
    with suppress(Exception):
        print(f"zygote_py: {text}", file=sys.stderr, flush=True)
