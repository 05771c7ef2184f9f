"""Opening of the cache's folder and files, only if no other user can have written them.

    with opened_folder(path) as folder:     # None if it is missing, another user's, or others may write to it
        content = read_file(folder, name, most)

The conditions are those of `ssh` for its keys: the owner is the user who runs the process, and neither the group nor
others may write. They are checked for the open file rather than for its name, which might denote another file by then;
a file is looked up in the folder that was opened. Pipes are never waited for, and links never followed.

Windows has no such permissions; there the folder is part of the user's profile, and nothing is checked.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
