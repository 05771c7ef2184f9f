"""Implementations that depend on a number of arrays or axes, written out as text.

    first = written(["def first(a):", "    return a[0] * scale"], scale=2)
    first((1, 2))                               # 2

Numba has no loop over arrays of several types, nor an index of as many places as an array has axes; a function whose
lines are made for the case at hand has neither need. NumPy is there as `np`; everything else has to be given, and is
captured as in any closure. The lines are put where tracebacks find them. No text of a user ever comes into them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from zygote_py.base import python_text

_numbers = itertools.count(1)


def written(lines: Iterable[str], **captured: object) -> Callable[..., Any]:
    """The function that these lines define; `captured` are the names in them that it does not define itself."""
    filename = f"<zygote_py.library, text {next(_numbers)}>"
    function: Callable[..., Any] = python_text.captured(list(lines), captured, filename=filename, np=np)
    return function


def indented(lines: Iterable[str]) -> list[str]:
    """Lines one level further in."""
    return [f"    {line}" for line in lines]


def choice(variable: str, cases: list[list[str]]) -> list[str]:
    """`if variable == 0: ... if variable == 1: ...`, the last case without a test; each case ends in a `return`."""
    lines: list[str] = []
    for number, case in enumerate(cases[:-1]):
        lines += [f"if {variable} == {number}:", *indented(case)]
    return [*lines, *cases[-1]]


def checked_axis(variable: str, ndim: int, error: str) -> list[str]:
    """Count a negative axis from the end, and raise `error` for one that is not there."""
    return [
        f"if {variable} < 0:",
        f"    {variable} = {variable} + {ndim}",
        f"if {variable} < 0 or {variable} >= {ndim}:",
        f"    raise {error}",
    ]


def tuple_text(items: Iterable[object]) -> str:
    """The text of a tuple of these texts."""
    parts = [str(item) for item in items]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
