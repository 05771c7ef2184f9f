"""Functions of NumPy, math and Python that Numba's type inference knows, and methods of arrays.

    supported_callables()["np.linalg"]      # {"cholesky": <function cholesky>, "cond": ...}
    array_members()                         # ("T", "all", "any", "argmax", ...)

They are read off the registries of the installed Numba, so that a newer one shows what it brings. In which forms of its
arguments a function is supported, the registries do not say.
"""

from __future__ import annotations

import builtins
import cmath
import math
from types import ModuleType

import numpy as np
from numba import types

from zygote_py.numba_adapter.base.internals import cpu_target

MODULES: dict[str, ModuleType] = {
    "np": np,
    "np.linalg": np.linalg,
    "np.random": np.random,
    "math": math,
    "cmath": cmath,
    "builtins": builtins,
}


def supported_callables() -> dict[str, dict[str, object]]:
    """By module, the public callables that Numba knows, by their names; several may name one object."""
    context = cpu_target.typing_context
    cpu_target.target_context.refresh()
    context.refresh()
    found: dict[str, dict[str, object]] = {}
    for module, namespace in MODULES.items():
        names = (name for name in sorted(dir(namespace)) if not name.startswith("_"))
        objects = {name: getattr(namespace, name) for name in names}
        known = {name: op for name, op in objects.items() if callable(op) and _is_known(context, op)}
        found[module] = known
    return found


def _is_known(context: object, op: object) -> bool:
    try:
        return context._lookup_global(op) is not None  # type: ignore[attr-defined]
    except TypeError:  # it cannot be looked up, as it has no hash
        return False


def _is_of_numba(made: object) -> bool:
    """Whether something is Numba's own, and not of a package that extends it."""
    return (getattr(made, "__module__", None) or "numba").partition(".")[0] == "numba"


def array_members() -> tuple[str, ...]:
    """The names of the attributes and methods of arrays that Numba knows."""
    context = cpu_target.typing_context
    context.refresh()
    names: set[str] = set()
    for key, templates in context._attributes.items():
        if not (isinstance(key, type) and issubclass(types.Array, key)):
            continue
        for template in templates:
            if not _is_of_numba(getattr(template, "_overload_func", template)):
                continue
            names |= {name.removeprefix("resolve_") for name in dir(template) if name.startswith("resolve_")}
            names |= {name for name in (getattr(template, "_attr", None),) if name}
    return tuple(sorted(name for name in names if not name.startswith("_")))
