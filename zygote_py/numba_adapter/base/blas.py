"""The routines of BLAS and LAPACK that Numba calls, without the rest of `scipy.linalg`.

Numba takes their addresses from two of its modules when it compiles the first function, whatever that calls. Their
package, which is imported first, takes 0.3 seconds, a third of the time to a small derivative; the modules themselves
need nothing of it. Who imports the package later finds them in it.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = "scipy.linalg"
_MODULES = ("cython_blas", "cython_lapack")


def load_blas() -> None:
    """Load the two modules, unless their package is there. Without SciPy do nothing: Numba says what is missing."""
    if _PACKAGE in sys.modules or f"{_PACKAGE}.{_MODULES[0]}" in sys.modules:
        return
    try:
        scipy = importlib.import_module("scipy")
        folders = [str(Path(each) / "linalg") for each in scipy.__path__]
        loaded = {name: _load(f"{_PACKAGE}.{name}", folders) for name in _MODULES}
    except Exception:  # of any kind: what SciPy does there is its own affair
        return
    if _PACKAGE in sys.modules:  # imported by them, or by another thread
        return
    sys.meta_path.insert(0, _Finder(loaded))
    sys.modules.update({f"{_PACKAGE}.{name}": module for name, module in loaded.items()})


def _load(name: str, folders: list[str]) -> ModuleType:
    spec = PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Finder:
    """Finds the package as Python does, and puts the modules into it that are loaded."""

    def __init__(self, loaded: dict[str, ModuleType]) -> None:
        self._loaded = loaded

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the description of the package, and None for all else."""
        if name != _PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = functools.partial(self._execute, loader.exec_module)
        return spec

    def _execute(self, execute: Any, module: ModuleType) -> None:
        vars(module).update(self._loaded)
        execute(module)
