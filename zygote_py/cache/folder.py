"""The cache's folder: small files by name, written whole or not at all, the ones used longest ago deleted first.

    folder = folder_in_use()            # None where there is none
    folder.write("<40 hex digits>.py", data)
    folder.read("<40 hex digits>.py")   # data; None if the file is missing, or is not what was written

Any number of processes may use it at once. No error of the file system leaves this module: a cache that cannot be used
is no cache. Files whose names are not of its own kind it leaves alone. What is in the files, it does not know.

There is code in the folder that is run, so that who may write to it may run anything. It is made for the user alone,
and neither read nor written where others may write to it (`ownership.py`). The digest in each file covers its content
and its name: it finds damage, and files that were exchanged, not ill will.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zygote_py import numba_adapter
from zygote_py.cache.ownership import opened_folder, read_file, refusal_of

DEFAULT_SIZE = 512  # megabytes
_OWN = re.compile(r"[0-9a-f]{40}(\.[0-9a-f]{16})?\.(py|code)(\.\w+\.tmp)?")
_LONGEST = 3600.0  # seconds that anybody may take to write a file
_OFF = ("0", "off", "no", "false")


@dataclass(frozen=True)
class Info:
    """What is in the cache: the folder, the number of gradients, of files, and the bytes in these.

    `refusal` says why the folder is not used; None if it is.
    """

    path: Path
    gradients: int
    files: int
    bytes: int
    refusal: str | None = None


@dataclass(frozen=True)
class Folder:
    """A folder with files of the cache, of at most so many bytes together."""

    path: Path
    most_bytes: float

    def read(self, name: str) -> bytes | None:
        """What was written under a name; None for what is not there or damaged."""
        with opened_folder(self.path) as folder:
            data = None if folder is None else read_file(folder, name, self.most_bytes)
        head, _, content = (data or b"").partition(b"\n")
        return content if head == _head(name, content) else None

    def write(self, name: str, content: bytes) -> bool:
        """Put a file in the place of what is there, at once. Says if it is there."""
        data = _head(name, content) + b"\n" + content
        if len(data) > self.most_bytes:
            return False
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return False
        with opened_folder(self.path) as folder:
            if folder is None:
                return False
            temporary = ""
            try:
                handle, temporary = tempfile.mkstemp(prefix=f"{name}.", suffix=".tmp", dir=self.path)
                with open(handle, "wb") as file:
                    file.write(data)
                old = folder.place(os.path.basename(temporary))  # which is not there if the folder is another by now
                os.replace(old, folder.place(name), src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
            except OSError:
                if temporary:
                    _delete(temporary)
                return False
        self._keep_small(name)
        return True

    def info(self) -> Info:
        """What is in the folder."""
        found = [(path, size) for path, size, _ in self._files()]
        gradients = sum(path.endswith(".py") for path, _ in found)
        return Info(self.path, gradients, len(found), sum(size for _, size in found), refusal_of(self.path))

    def clear(self) -> Info:
        """Delete all files of the cache, and nothing else. Gives what there was."""
        before = self.info()
        for path, _, _ in self._files():
            _delete(path)
        with contextlib.suppress(OSError):
            self.path.rmdir()
        return before

    def _keep_small(self, new: str) -> None:
        """Delete the files that were used longest ago while there are too many bytes; those of `new` last."""
        key = new.partition(".")[0]
        files = sorted(self._files(), key=lambda file: (os.path.basename(file[0]).startswith(key), file[2]))
        excess = sum(size for _, size, _ in files) - self.most_bytes
        for path, size, used in files:
            is_left_over = path.endswith(".tmp") and used < time.time() - _LONGEST
            if excess > 0 or is_left_over:
                _delete(path)
                excess -= size

    def _files(self) -> Iterator[tuple[str, int, float]]:
        """The files: path, size, and when they were used."""
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if _OWN.fullmatch(entry.name):
                    with contextlib.suppress(OSError):
                        found = entry.stat(follow_symlinks=False)
                        yield entry.path, found.st_size, found.st_mtime


def _head(name: str, content: bytes) -> bytes:
    """The first line: a comment, so that Python's files are what they were."""
    return b"# " + hashlib.sha256(name.encode() + b"\n" + content).hexdigest().encode()


def _delete(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


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
    path = os.path.expanduser(named) if named else numba_adapter.user_cache_folder()
    try:
        size = float(os.environ.get("ZYGOTE_PY_CACHE_SIZE", "") or DEFAULT_SIZE)
    except ValueError:
        size = DEFAULT_SIZE
    return Folder(Path(path), size * 1e6 if size >= 0 else 0.0)
