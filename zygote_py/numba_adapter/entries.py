"""Modules that are entered in one place: what else is in them is only called from compiled code.

entry_of(load(emitted))     # the Python function; the others of its module are compiled without a way in from Python

That way in, which Numba makes of every function, takes arguments out of Python's objects and makes such of what comes
back. For a function of some arrays that takes longer to compile than the function itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from zygote_py.numba_adapter.internals import CPUDispatcher, Dispatcher, errors


def entry_of(loaded: Any) -> Callable[..., object]:
    """The Python function of what a module of emitted functions has for its last one."""
    hide_warnings_of_emitted()
    if not isinstance(loaded, Dispatcher):  # Numba is disabled
        return loaded  # type: ignore[no-any-return]
    entry: Callable[..., object] = loaded.py_func
    module = entry.__globals__
    for name, each in tuple(module.items()):
        if type(each) is CPUDispatcher and each is not loaded and each.py_func.__globals__ is module:
            module[name] = _CalledFromCode(each.py_func, each.locals, each.targetoptions | _NO_WRAPPERS)
    return entry


def hide_warnings_of_emitted() -> None:
    """Hide Numba's remarks on the performance of emitted functions: the user has no such file, and cannot change it.

    Said anew before each compilation, as who catches warnings may have forgotten it.
    """
    kind = errors.NumbaPerformanceWarning
    warnings.filterwarnings("ignore", "(?s).*<zygote_py ", kind)  # which say where in their text
    warnings.filterwarnings("ignore", "", kind, "<zygote_py ")


_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _CalledFromCode(CPUDispatcher):
    """A function that runs in the interpreter if Python calls it: what is compiled has no entry for that."""

    def add_overload(self, cres: Any) -> None:
        """Keep what was compiled for compiled code alone."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: Any, **keywords: Any) -> Any:
        return self.py_func
