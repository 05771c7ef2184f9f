"""The cache's folder: small files by name, written whole or not at all, the ones used longest ago deleted first.

    folder = folder_in_use()            # None where there is none
    folder.write("<40 hex digits>.py", data)
    folder.read("<40 hex digits>.py")   # data; None if the file is missing, or is not what was written

Any number of processes may use it at once. Errors of the file system are not raised: a cache that cannot be
used is as good as switched off. Files with other names are left alone. The content of files is opaque here.

Code in the folder is executed, so write access to it means control over the process. It is created for the user alone,
and neither read nor written if others may write to it (`opened_folder`). The digest in each file covers its content and
its name: it detects damage and exchanged files, not malice.

    with opened_folder(path) as folder:     # None if it is missing, another user's, or others may write to it
        content = read_file(folder, name, most)

The conditions are those of `ssh` for its keys: the owner is the user who runs the process, and neither the group nor
others may write. They are checked for the open file rather than for its name, which might denote another file by then;
a file is looked up in the folder that was opened. Pipes are never waited for, and links never followed.

Windows has no such permissions; there the folder is part of the user's profile, and nothing is checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from zygote_py import numba_adapter
from zygote_py.ir.lazy_dataclass import dataclass

DEFAULT_SIZE = 512  # megabytes
_OWN = re.compile(r"[0-9a-f]{40}(\.[0-9a-f]{16})?\.(py|code|helper|sources)(\.\w+\.tmp)?")
_LONGEST = 3600.0  # seconds that writing a file may take
_CHECKED_EACH = 0.01  # of the size: this much is written between two looks at all files
_unchecked: dict[Path, float] = {}  # bytes written by this process since it looked
_OFF = ("0", "off", "no", "false")


@dataclass(frozen=True)
class Info:
    """The content of the cache: the folder, the numbers of gradients and files, and their size in bytes.

    `refusal` says why the folder is not used; None if it is used.
    """

    path: Path
    gradients: int
    files: int
    bytes: int
    refusal: str | None = None


@dataclass(frozen=True)
class Folder:
    """A folder with files of the cache, of at most `most_bytes` in total."""

    path: Path
    most_bytes: float

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is missing or damaged."""
        with opened_folder(self.path) as folder:
            data = None if folder is None else read_file(folder, name, self.most_bytes)
        head, _, content = (data or b"").partition(b"\n")
        return content if head == _head(name, content) else None

    def write(self, name: str, content: bytes) -> bool:
        """Write a file, atomically. Returns whether it was written."""
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
        written = _unchecked.get(self.path, float("inf")) + len(data)
        if written > _CHECKED_EACH * self.most_bytes:
            self._keep_small(name)
            written = 0.0
        _unchecked[self.path] = written
        return True

    def info(self) -> Info:
        """Return a description of the content."""
        found = [(path, size) for path, size, _ in self._files()]
        gradients = sum(path.endswith(".py") for path, _ in found)
        return Info(self.path, gradients, len(found), sum(size for _, size in found), refusal_of(self.path))

    def clear(self) -> Info:
        """Delete all files of the cache, and nothing else. Returns a description of the previous content."""
        before = self.info()
        for path, _, _ in self._files():
            _delete(path)
        with contextlib.suppress(OSError):
            self.path.rmdir()
        return before

    def _keep_small(self, new: str) -> None:
        """Delete the least recently used files while the size exceeds the limit, those of `new` last."""
        key = new.partition(".")[0]
        files = sorted(self._files(), key=lambda file: (os.path.basename(file[0]).startswith(key), file[2]))
        excess = sum(size for _, size, _ in files) - self.most_bytes
        for path, size, used in files:
            is_left_over = path.endswith(".tmp") and used < time.time() - _LONGEST
            if excess > 0 or is_left_over:
                _delete(path)
                excess -= size

    def _files(self) -> Iterator[tuple[str, int, float]]:
        """Yield the path, the size and the time of last use of each file."""
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if _OWN.fullmatch(entry.name):
                    with contextlib.suppress(OSError):
                        found = entry.stat(follow_symlinks=False)
                        yield entry.path, found.st_size, found.st_mtime


def _head(name: str, content: bytes) -> bytes:
    """Return the first line: a comment, so that Python files remain valid."""
    return b"# " + hashlib.sha256(name.encode() + b"\n" + content).hexdigest().encode()


def _delete(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


class Place(Protocol):
    """Where small files are kept by name."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""

    def write(self, name: str, content: bytes) -> bool:
        """Write a file. Returns whether it was written."""


class _Process:
    """The place where this process keeps what it cannot write to a folder: its memory."""

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes = most_bytes
        self._files: dict[str, bytes] = {}  # those used last at the end
        self._lock = threading.Lock()

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        with self._lock:
            content = self._files.pop(name, None)
            if content is not None:
                self._files[name] = content
            return content

    def write(self, name: str, content: bytes) -> bool:
        """Keep a file, and drop those used longest ago if there are too many."""
        with self._lock:
            self._files.pop(name, None)
            self._files[name] = content
            while sum(map(len, self._files.values())) > self._most_bytes:
                del self._files[next(iter(self._files))]
            return name in self._files

    def clear(self) -> None:
        """Drop all files."""
        with self._lock:
            self._files.clear()


PROCESS = _Process(64e6)
_switched_on = True


@dataclass(frozen=True, slots=True)
class _FolderOrProcess:
    """The folder, and the memory of this process for what cannot be written to it."""

    folder: Folder

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        content = self.folder.read(name)
        return PROCESS.read(name) if content is None else content

    def write(self, name: str, content: bytes) -> bool:
        """Write a file. Returns whether it was written."""
        return self.folder.write(name, content) or PROCESS.write(name, content)


def place_in_use() -> Place:
    """Return where equal derivatives find one another: the folder that is in use, or the memory of this process."""
    folder = folder_in_use()
    return PROCESS if folder is None else _FolderOrProcess(folder)


def switch(on: bool) -> None:
    """Switch the cache on or off for this process; `ZYGOTE_PY_CACHE=0` also applies to processes that it starts."""
    global _switched_on
    _switched_on = on


def folder_in_use() -> Folder | None:
    """Return the folder that the environment names, or that of the platform; None if the cache is switched off."""
    if not _switched_on or os.environ.get("ZYGOTE_PY_CACHE", "").strip().lower() in _OFF:
        return None
    return folder_named()


def folder_named() -> Folder:
    """Return the folder that is used unless the cache is switched off."""
    named = os.environ.get("ZYGOTE_PY_CACHE_DIR", "").strip()
    path = os.path.expanduser(named) if named else numba_adapter.user_cache_folder()
    try:
        size = float(os.environ.get("ZYGOTE_PY_CACHE_SIZE", "") or DEFAULT_SIZE)
    except ValueError:
        size = DEFAULT_SIZE
    return Folder(Path(path), size * 1e6 if size >= 0 else 0.0)


_HAS_RIGHTS = hasattr(os, "geteuid")
# Flags that do not exist on a platform are 0. Without O_NONBLOCK, opening a pipe waits for a writer.
_SAFELY = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK", "O_BINARY"))
_OF_FILES = os.O_RDONLY | _SAFELY | getattr(os, "O_NOFOLLOW", 0)
_OF_FOLDERS = os.O_RDONLY | _SAFELY | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True, slots=True)
class OpenedFolder:
    """A folder that may be used: its path and, if files can be looked up in it, its descriptor."""

    path: Path
    descriptor: int | None

    def place(self, name: str) -> str | Path:
        """Return the path of a file, to be used with `descriptor`."""
        return self.path / name if self.descriptor is None else name


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[OpenedFolder | None]:
    """Return the open folder, as a context; None if it cannot or must not be used."""
    if not _HAS_RIGHTS:
        yield OpenedFolder(path, None)
        return
    try:
        descriptor = os.open(path, _OF_FOLDERS)
    except OSError:
        yield None
        return
    try:
        yield OpenedFolder(path, descriptor) if refusal(os.fstat(descriptor)) is None else None
    finally:
        os.close(descriptor)


def read_file(folder: OpenedFolder, name: str, most: float) -> bytes | None:
    """Return the content of a file of at most `most` bytes, and record its use; None if it must not be read."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder.place(name), _OF_FILES, dir_fd=folder.descriptor)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size > most or refusal(found) is not None:
                return None
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read()
            with contextlib.suppress(OSError):
                os.utime(descriptor if os.utime in os.supports_fd else folder.place(name))
            return data
        finally:
            os.close(descriptor)
    return None


def refusal(found: os.stat_result) -> str | None:
    """Return why a folder or a file must not be used; None if it may be."""
    if not _HAS_RIGHTS:
        return None
    if found.st_uid != os.geteuid():
        return f"it belongs to the user {found.st_uid}, and this process runs as {os.geteuid()}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (its mode is {stat.S_IMODE(found.st_mode):o}): `chmod go-w` forbids it"
    return None


def refusal_of(path: Path) -> str | None:
    """Return why a folder must not be used; None if it may be, or does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return refusal(found) if stat.S_ISDIR(found.st_mode) else "it is not a folder"
