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
from pathlib import Path

import llvmlite
import numba
import numpy

from zygote_py import numba_adapter
from zygote_py.base import Capture, custom_rules as given
from zygote_py.cache.fingerprint import Fingerprint, fingerprint
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
    """Return a digest of the source files. Raises NotCacheable if they are not those that run in this process."""
    digest = hashlib.sha256()
    files = list(_source_files())
    _check_unchanged(files)
    for folder, path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def check_unchanged() -> None:
    """Raise NotCacheable if this process does not run the package's present source files."""
    _check_unchanged(_source_files())


def _check_unchanged(files: Iterable[tuple[Path, Path]]) -> None:
    for _, path in files:
        found = path.stat()
        if max(found.st_mtime, found.st_ctime) >= _BEGAN:  # the former may be set to any time, as installers do
            raise NotCacheable(f"{path.name} has changed since it was imported")


def _source_files() -> Iterator[tuple[Path, Path]]:
    """Yield the files of the package, each with its folder: those that say what is imported from where as well."""
    for package in ("zygote_py", "zygote_py.ir", "zygote_py.adjoints"):
        for name in sys.modules[package].__path__:
            found = (path for path in Path(name).rglob("*.py*") if path.suffix in (".py", ".pyi"))
            yield from ((Path(name), path) for path in sorted(found))


def registered() -> list[object]:
    """Return the rules and inverses with their functions; those of `hook` and `stop_gradient` are in our files."""
    chosen = [made for made in given.all_given() if made.kind in ("rule", "inverse")]
    return [each for made in chosen for each in (made.target, made.rule, made.inverse)]
