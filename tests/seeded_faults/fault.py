"""A fault: a text that stands once in a file, and another one for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A text that stands once in a file, another one for it, and the files of tests that are run first."""

    what: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


def fault(what: str, path: str, old: str, new: str, *tests: str) -> Fault:
    return Fault(what, path, old, new, tuple(f"tests/{test}.py" for test in tests))
