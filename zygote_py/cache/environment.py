"""The environment of a gradient: versions, the source files of this package, settings, rules of the user.

versions()                  # a text, the same for the same installation
registered()                # rules, and what they are for
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import llvmlite
import numba
import numpy

from zygote_py import numba_adapter
from zygote_py.base import Capture, custom_rules as given
from zygote_py.cache.fingerprint import Fingerprint, fingerprint
from zygote_py.cache.folder import folder_in_use
from zygote_py.cache.inspection import NotCacheable
from zygote_py.compiler import Request
from zygote_py.ir import Type

_BEGAN = time.time()  # this is imported along with the package: source files that are newer are not those that run
_FORMAT = 4  # of what is written; another number makes all that was written before unknown
_PRINTING = ("ZYGOTE_PY_VERIFY", "ZYGOTE_PY_DUMP", "ZYGOTE_PY_WITHOUT")


def key_of(
    request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...], kind: str = ""
) -> Fingerprint:
    """Return the fingerprint of a derivative of a kind in this environment. Raises NotCacheable."""
    return fingerprint(request, argument_types, hidden, f"{kind} {versions()}", registered())


def versions() -> str:
    """Return the versions of everything that takes part in compiling, a digest of our source files, Numba's settings.

    Raises NotCacheable if the compiler is to show its work, if others have extended it, or if the source files may not
    be those that run.
    """
    if any(os.environ.get(name, "") not in ("", "0") for name in _PRINTING):
        raise NotCacheable("the stages are to be watched")
    if numba_adapter.is_extended():
        raise NotCacheable("an extension of Numba")
    if not all(template.__module__.startswith("zygote_py.") for template in _templates()):
        raise NotCacheable("an extension of the library")
    return f"{_installed()} {_stack()} {numba_adapter.settings()}"


def _templates() -> Iterator[object]:
    registry = sys.modules.get("zygote_py.frontend.values.registry")  # empty if it is not imported
    yield from () if registry is None else itertools.chain(*registry.implemented().values())


@functools.cache
def _installed() -> str:
    found = [f"{module.__name__} {module.__version__}" for module in (numba, llvmlite, numpy)]
    try:
        found += [f"{name} {importlib.metadata.version(name)}" for name in ("astor", "scipy")]
    except importlib.metadata.PackageNotFoundError as error:
        raise NotCacheable(f"the version of {error}") from None
    extensions = sorted(str(each) for each in importlib.metadata.entry_points(group="numba_extensions"))
    python = f"{sys.version} {sys.platform} {sys.flags.optimize}"
    return f"{_FORMAT} {python} {' '.join(found)} {extensions} {source_digest()}"


def _stack() -> str:
    """Return the size of the stack, which limits recursion."""
    try:
        import resource
    except ImportError:  # on Windows
        return ""
    return str(resource.getrlimit(resource.RLIMIT_STACK)[0])


def source_digest() -> str:
    """Return a digest of the source files. Raises NotCacheable if they are not those that run in this process.

    To read them takes a tenth of the time of finding a derivative in the cache. The folder of the cache therefore has
    the digests of files of these sizes, written to at these times.
    """
    files = _source_files()
    _check_unchanged(files)
    facts = [(each.path, each.state.st_size, each.state.st_mtime_ns, each.state.st_ctime_ns) for each in files]
    name = f"{hashlib.sha256(repr(facts).encode()).hexdigest()[:40]}.sources"
    folder = folder_in_use()
    if folder is not None and (known := folder.read(name)) is not None:
        return known.decode()
    digest = hashlib.sha256()
    for each in files:
        with open(each.path, "rb", buffering=0) as file:
            content = file.readall()
        digest.update(f"{each.name}:{len(content)}:".encode() + content)
    found = digest.hexdigest()
    if folder is not None:
        _check_unchanged(_source_files())  # while they were read
        folder.write(name, found.encode())
    return found


def check_unchanged() -> None:
    """Raise NotCacheable if this process does not run the package's present source files."""
    _check_unchanged(_source_files())


def _check_unchanged(files: Iterable[_File]) -> None:
    for each in files:
        if max(each.state.st_mtime, each.state.st_ctime) >= _BEGAN:  # installers set the former to any time
            raise NotCacheable(f"{each.name} has changed since it was imported")


class _File(NamedTuple):
    """A source file: its name in its package, its path and its state."""

    name: str
    path: str
    state: os.stat_result


def _source_files() -> list[_File]:
    """Return the files of the package, those that say what is imported from where as well."""
    found = []
    for package in ("zygote_py", "zygote_py.ir", "zygote_py.adjoints"):
        for top in sys.modules[package].__path__:
            found += [_File(entry.path[len(top) + 1 :], entry.path, entry.stat()) for entry in _entries(top)]
    return found


def _entries(top: str) -> list[os.DirEntry[str]]:
    """Return the source files in a folder and in those that it contains, in order."""
    found, folders = [], [top]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".pyi")):
                    found.append(entry)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return sorted(found, key=lambda entry: entry.path)


def registered() -> list[object]:
    """Return the rules and inverses with their functions; those of `hook` and `stop_gradient` are in our files."""
    chosen = [made for made in given.all_given() if made.kind in ("rule", "inverse")]
    return [each for made in chosen for each in (made.target, made.rule, made.inverse)]
