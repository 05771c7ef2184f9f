"""Functions of NumPy, math and Python that Numba's type inference knows, and methods of arrays.

    supported_callables()["np.linalg"]      # {"cholesky": <function cholesky>, "cond": ...}
    array_members()                         # ("T", "all", "any", "argmax", ...)

They are read off the registries of the installed Numba, so that a newer one shows what it brings. In which forms of its
arguments a function is supported, the registries do not say.
"""

from __future__ import annotations

import builtins
import cmath
import inspect
import math
from types import ModuleType
from typing import Any

import numpy as np
from numba import types

from zygote_py.numba_adapter.base import refreshed_context
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
    cpu_target.target_context.refresh()
    context = refreshed_context()
    return {
        module: {
            name: op
            for name, op in inspect.getmembers(namespace, callable)
            if not name.startswith("_") and _is_known(context, op)
        }
        for module, namespace in MODULES.items()
    }


def _is_known(context: Any, op: object) -> bool:
    try:
        return context._lookup_global(op) is not None
    except TypeError:  # it cannot be looked up, as it has no hash
        return False


def _is_of_numba(made: object) -> bool:
    """Whether something is Numba's own, and not of a package that extends it."""
    return (getattr(made, "__module__", None) or "numba").partition(".")[0] == "numba"


def array_members() -> tuple[str, ...]:
    """The names of the attributes and methods of arrays that Numba knows."""
    known = [
        template
        for key, templates in refreshed_context()._attributes.items()
        if isinstance(key, type) and issubclass(types.Array, key)
        for template in templates
        if _is_of_numba(getattr(template, "_overload_func", template))
    ]
    names = {name.removeprefix("resolve_") for each in known for name in dir(each) if name.startswith("resolve_")}
    names |= {getattr(each, "_attr", "") for each in known}
    return tuple(sorted(name for name in names if name and not name.startswith("_")))
