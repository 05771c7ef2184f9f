"""What any gradient depends on besides itself: versions, our own source files, settings, what others have registered.

versions()                  # a text, the same for the same installation
registered()                # rules and overloads, functions that have a say in what is compiled
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from zygote_py import given, numba_adapter
from zygote_py.cache.fingerprint import NotCacheable

_BEGAN = time.time()  # this is imported along with the package: source files that are newer are not those that run
_FORMAT = 1  # of what is written; another number makes all that was written before unknown
_PRINTING = ("ZYGOTE_PY_VERIFY", "ZYGOTE_PY_DUMP")


def versions() -> str:
    """Versions of all that takes part in compiling, our own source files, and Numba's settings.

    Raises NotCacheable where somebody wants to see the compiler at work, or its files may not be those that run.
    """
    if any(os.environ.get(name, "") not in ("", "0") for name in _PRINTING):
        raise NotCacheable("the stages are to be watched")
    return f"{_installed()} {numba_adapter.settings()}"


@functools.cache
def _installed() -> str:
    names = ("numba", "llvmlite", "numpy", "astor", "scipy")
    found = [f"{name} {importlib.metadata.version(name)}" for name in names]
    return f"{_FORMAT} {sys.version} {sys.platform} {' '.join(found)} {source_digest()}"


def source_digest() -> str:
    """A digest of our own source files."""
    digest = hashlib.sha256()
    check_unchanged()
    for path in _source_files():
        content = path.read_bytes()
        digest.update(f"{path.parent.name}/{path.name}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def check_unchanged() -> None:
    """Raise NotCacheable if our own source files are not those that run in this process."""
    for path in _source_files():
        if path.stat().st_mtime >= _BEGAN:
            raise NotCacheable(f"{path.name} has changed since it was imported")


def _source_files() -> Iterator[Path]:
    for package in ("zygote_py", "zygote_py.ir", "zygote_py.adjoints"):
        for folder in sys.modules[package].__path__:
            yield from sorted(path for path in Path(folder).rglob("*.py"))


def registered() -> list[object]:
    """Rules, and what they are for; implementations of functions for Numba. Raises NotCacheable if one is unknown."""
    overloads = numba_adapter.foreign_overloads()
    if overloads is None:
        raise NotCacheable("an extension of Numba")
    found: list[object] = list(overloads)
    for each in given.all_given():
        if not (each.target.__module__ or "").startswith("zygote_py"):  # our own, if they have been imported
            found += [each.kind, each.target, each.rule]
    return found
