"""Whether derivatives are compiled or interpreted, for a while.

with interpreter():
    gradient(f)(2.0)            # the emitted source, in plain Python

with unless_native():
    gradient(f)(2.0)            # the same, but compiled if everything is to be compiled

with optimiser():
    gradient(f)(2.0)            # compiled as in earnest, where little depends on so much

A derivative that has been compiled stays so: take a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numba

_settings: Any = numba.config
_everything_native = False


def compile_everything() -> None:
    """From now on `unless_native` interprets nothing."""
    global _everything_native
    _everything_native = True


def is_interpreted() -> bool:
    """Whether emitted functions run in plain Python now."""
    return bool(_settings.DISABLE_JIT)


@contextmanager
def interpreter() -> Iterator[None]:
    """Run emitted functions, and functions that are decorated meanwhile, in plain Python: nothing is compiled."""
    before, _settings.DISABLE_JIT = _settings.DISABLE_JIT, 1
    try:
        yield
    finally:
        _settings.DISABLE_JIT = before


@contextmanager
def optimiser() -> Iterator[None]:
    """Let Numba optimise what is compiled meanwhile, as it does by default."""
    before = _settings.OPT
    _settings.OPT = type(before)(max(int(before), 3))
    try:
        yield
    finally:
        _settings.OPT = before


def unless_native() -> Any:
    """The interpreter, unless everything is to be compiled."""
    return nullcontext() if _everything_native else interpreter()
