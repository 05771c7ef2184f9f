"""The cache's folder: small files by name, written whole or not at all, the ones used longest ago deleted first.

    folder = folder_in_use()            # None where there is none
    folder.write("ab12.code", data)
    folder.read("ab12.code")            # data; None if the file is missing, or is not what was written

Any number of processes may use it at once. No error of the file system leaves this module: a cache that cannot be used
is no cache. What is in the files, it does not know.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zygote_py import numba_adapter

DEFAULT_SIZE = 512  # megabytes
_KINDS = (".record", ".code", ".py")
_OFF = ("0", "off", "no", "false")


@dataclass(frozen=True)
class Info:
    """What is in the cache: the folder, the number of gradients, of files, and the bytes in these."""

    path: Path
    gradients: int
    files: int
    bytes: int


class Folder:
    """A folder with files of the cache, of at most so many bytes together."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self.most_bytes = most_bytes

    def read(self, name: str) -> bytes | None:
        """What was written under a name; None for what is not there or damaged."""
        path = self.path / name
        try:
            data = path.read_bytes()
        except OSError:
            return None
        digest, content = data[:32], data[32:]
        if hashlib.sha256(content).digest() != digest:
            return None
        self.touch(name)
        return content

    def touch(self, name: str) -> None:
        """Note that a file has been used."""
        with contextlib.suppress(OSError):
            os.utime(self.path / name)

    def write(self, name: str, content: bytes, plain: bool = False) -> bool:
        """Put a file in the place of what is there, at once; `plain` as it is, with no digest. Says if it is there."""
        data = content if plain else hashlib.sha256(content).digest() + content
        if len(data) > self.most_bytes:
            return False
        temporary = ""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=f"{name}.", suffix=".tmp", dir=self.path)
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, self.path / name)
        except OSError:
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return False
        self._keep_small(name)
        return True

    def info(self) -> Info:
        """What is in the folder."""
        found = [(path, size) for path, size, _ in self._files()]
        records = sum(path.suffix == ".record" for path, _ in found)
        return Info(self.path, records, len(found), sum(size for _, size in found))

    def clear(self) -> Info:
        """Delete all files of the cache, and nothing else. Gives what there was."""
        before = self.info()
        for path, _, _ in self._files():
            _delete(path)
        for path in self._entries(".tmp"):
            _delete(path)
        with contextlib.suppress(OSError):
            self.path.rmdir()
        return before

    def _keep_small(self, new: str) -> None:
        """Delete the files that were used longest ago while there are too many bytes; those of `new` last."""
        files = sorted(self._files(), key=lambda file: (file[0].name.split(".")[0] == new.split(".")[0], file[2]))
        excess = sum(size for _, size, _ in files) - self.most_bytes
        for path, size, _ in files:
            if excess <= 0:
                return
            _delete(path)
            excess -= size

    def _files(self) -> Iterator[tuple[Path, int, float]]:
        for kind in _KINDS:
            for path in self._entries(kind):
                with contextlib.suppress(OSError):
                    found = path.stat()
                    yield path, found.st_size, found.st_mtime

    def _entries(self, suffix: str) -> Iterator[Path]:
        try:
            with os.scandir(self.path) as entries:
                yield from [Path(entry.path) for entry in entries if entry.name.endswith(suffix)]
        except OSError:
            return


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


_switched_on = True


def switch(on: bool) -> None:
    """Switch the cache on or off for this process; `ZYGOTE_PY_CACHE=0` does it for those that it starts as well."""
    global _switched_on
    _switched_on = on


def folder_in_use() -> Folder | None:
    """The folder that the environment names, or that of the platform; None if the cache is switched off."""
    if not _switched_on or os.environ.get("ZYGOTE_PY_CACHE", "").strip().lower() in _OFF:
        return None
    return folder_named()


def folder_named() -> Folder:
    """The folder that is used where the cache is not switched off."""
    named = os.environ.get("ZYGOTE_PY_CACHE_DIR", "").strip()
    path = Path(named) if named else Path(numba_adapter.user_cache_folder())
    try:
        size = float(os.environ.get("ZYGOTE_PY_CACHE_SIZE", "") or DEFAULT_SIZE)
    except ValueError:
        size = DEFAULT_SIZE
    return Folder(path.expanduser(), int(size * 1e6))
