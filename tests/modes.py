"""Whether derivatives are compiled or interpreted, for a while.

with interpreter():
    gradient(f)(2.0)            # the emitted source, in plain Python

with unless_native():
    gradient(f)(2.0)            # the same, but compiled if everything is to be compiled

with optimiser():
    gradient(f)(2.0)            # compiled as in earnest, where little depends on so much

A derivative that has been compiled stays so: take a new one. Of many cases some are enough for the default run:

@pytest.mark.parametrize("case", one_in(3, CASES))                  # the others run for long only
@pytest.mark.parametrize("case", one_in(3, CASES, "compiled"))      # the others as the module says
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numba
import pytest
from numba.core.registry import CPUDispatcher

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
def _without_jit(value: int) -> Iterator[None]:
    before, _settings.DISABLE_JIT = _settings.DISABLE_JIT, value
    try:
        yield
    finally:
        _settings.DISABLE_JIT = before


def interpreter() -> Any:
    """Run emitted functions, and functions that are decorated meanwhile, in plain Python: nothing is compiled."""
    return _without_jit(1)


def compiler() -> Any:
    """Compile emitted functions, and those that are decorated meanwhile, also in a test that interprets them."""
    return _without_jit(0)


def _compiling(compile_it: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that was decorated before: Numba decorates functions of its own for it, which must count."""

    @functools.wraps(compile_it)
    def compile_for(self: Any, sig: Any) -> Any:
        with compiler():
            return compile_it(self, sig)

    return compile_for


_dispatcher: Any = CPUDispatcher
_dispatcher.compile = _compiling(_dispatcher.compile)


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


def one_in(n: int, cases: Iterable[Any], mark: str | None = None) -> list[Any]:
    """All cases for `parametrize`: every n-th, from the first on, with a mark; without one, the others are `long`.

    Cases made by `pytest.param` keep their marks and ids.
    """
    found = []
    for k, case in enumerate(cases):
        chosen = k % n == 0
        marks = [getattr(pytest.mark, mark or "long")] if chosen == (mark is not None) else []
        held = case if hasattr(case, "marks") else pytest.param(*(case if type(case) is tuple else (case,)))
        found.append(pytest.param(*held.values, marks=(*held.marks, *marks), id=held.id))
    return found
