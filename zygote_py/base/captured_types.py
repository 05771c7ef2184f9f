"""The NamedTuples that hold the gradients of captured variables.

captured_type("w", "b")             # one class for the same names; `Captured(w=..., b=...)` can be pickled
"""

from __future__ import annotations

import functools
import re
from collections import namedtuple
from typing import Any


@functools.cache
def captured_type(*names: str) -> Any:
    """Return the class of NamedTuples `Captured` with these fields: one for the same names, which can be pickled."""
    made = namedtuple("Captured", names, module=__name__)  # type: ignore[misc]
    made.__qualname__ = f"Captured({', '.join(names)})"  # under which pickle looks for it here
    made.__doc__ = "The gradients of captured variables, by name."
    return made


def __getattr__(name: str) -> Any:
    found = re.fullmatch(r"Captured\(([^()]*)\)", name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return captured_type(*(found[1].split(", ") if found[1] else ()))


def is_captured_type(value: object) -> bool:
    """Return whether `captured_type` made this class."""
    return isinstance(value, type) and value.__module__ == __name__ and hasattr(value, "_fields")
