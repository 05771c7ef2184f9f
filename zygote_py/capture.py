"""Captured variables: what a function reads that is neither a parameter nor its own.

    SCALE = 2.0
    def f(x):                   Capture("SCALE", "global", read, key, float64, 2.0)
        return SCALE * x

Which of them become parameters, Numba's adapter says; who calls reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zygote_py.ir.core import Type

# Modules whose floats are constants of nature, not variables.
CONSTANT_MODULES = frozenset({"math", "cmath", "numpy", "scipy"})


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """A captured variable: `kind` is "global" or "freevar", `read` gives its value at this moment.

    The `key` says which variable it is: functions of several modules may capture variables of the same name. `source`
    is the name that it has in the function `owner`; its parameter may have to have another `name`.
    """

    name: str
    kind: str
    read: Callable[[], object]
    key: object
    type: Type | None = None  # None for those that are frozen into the compiled code
    value: object = None  # what it was when the function was compiled
    source: str = ""
    owner: str = ""
