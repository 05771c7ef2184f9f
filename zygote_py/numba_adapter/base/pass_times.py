"""Numba's passes as stages of a compilation, in the tables that `ZYGOTE_PY_TIMINGS=1` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from zygote_py.base import begin_stage, call_text, compilation, end_stage, timings_are_wanted
from zygote_py.numba_adapter.base.internals import event


class _Passes(event.Listener):
    """Begins and ends a stage with each pass; those of functions that are compiled within a pass are within it."""

    def on_start(self, event: Any) -> None:
        """Begin a stage."""
        begin_stage(_name(event))

    def on_end(self, event: Any) -> None:
        """End a stage."""
        end_stage(_name(event))


def _name(event: Any) -> str:
    return f"Numba: {event.data['name'].partition(' ')[0]}"


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Run what compiles something, by which the user knows it: see `zygote_py.base.timings`."""
    with compilation(what) as is_outermost:
        if not (is_outermost and timings_are_wanted()):
            yield
            return
        with event.install_listener("numba:run_pass", _Passes()):
            yield


def time_compilation(dispatcher: Any, name: str) -> None:
    """Let a dispatcher say how long it compiles."""
    compiler: Any = dispatcher._compiler
    compile: Callable[..., object] = compiler.compile

    def compiling(args: Any, return_type: Any) -> object:
        with timed(f"compiling {call_text(name, args)}"):
            return compile(args, return_type)

    compiler.compile = compiling
