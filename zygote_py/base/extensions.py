"""Rules from other packages: the entry points of the group `zygote_py_extensions` that are named `init`.

    [project.entry-points.zygote_py_extensions]
    init = "orbits.derivatives:register"

`register`, a function without parameters, is called once in a process, before the first derivative is compiled or read
from the cache; it calls `zygote_py.adjoint`, `zygote_py.inverse` and the like. Numba loads the group `numba_extensions`
in the same way.
"""

from __future__ import annotations

import warnings
from importlib.metadata import EntryPoint, entry_points

GROUP = "zygote_py_extensions"
_is_loaded = False


def load_extensions() -> None:
    """Call the functions that other packages registered; the second call does nothing.

    A function that fails is warned about, and left out.
    """
    global _is_loaded
    if _is_loaded:
        return
    _is_loaded = True  # at once: the functions may compile derivatives themselves
    for entry_point in entry_points(group=GROUP, name="init"):
        _load(entry_point)


def _load(entry_point: EntryPoint) -> None:
    try:
        entry_point.load()()
    except Exception as error:
        warnings.warn(
            f"the extension `{entry_point.value}` of zygote_py failed with {type(error).__name__}: {error}",
            stacklevel=3,
        )
