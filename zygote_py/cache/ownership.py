"""The cache's folder and its files are opened here, and only if nobody else can have written what is in them.

    with opened_folder(path) as folder:     # None if it is missing, another user's, or others may write to it
        content = read_file(folder, name, most)

The same is asked as `ssh` asks of its keys: the owner is the user who runs the process, and neither the group nor
others may write. It is asked of what was opened and not of a name, which might mean something else by then; a file is
looked up in the folder that was opened. Whatever is no ordinary file, a pipe or a link for one, is never waited for or
followed.

Windows has no such rights, and there the folder lies in the user's profile: nothing is asked.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HAS_RIGHTS = hasattr(os, "geteuid")
# What does not exist on a platform is 0 there. Without O_NONBLOCK, opening a pipe waits for somebody who writes to it.
_SAFELY = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK", "O_BINARY"))
_OF_FILES = os.O_RDONLY | _SAFELY | getattr(os, "O_NOFOLLOW", 0)
_OF_FOLDERS = os.O_RDONLY | _SAFELY | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True, slots=True)
class OpenedFolder:
    """A folder that may be used: its path and, where files can be looked up in it, what it was opened as."""

    path: Path
    descriptor: int | None

    def place(self, name: str) -> str | Path:
        """What to call a file in the folder, along with `descriptor`."""
        return self.path / name if self.descriptor is None else name


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[OpenedFolder | None]:
    """The folder, for as long as it is used; None where it cannot be or must not be."""
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
    """What is in a file of at most so many bytes, and note that it was used; None where it must not be read."""
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
    """Why a folder or a file must not be used; None if it may be."""
    if not _HAS_RIGHTS:
        return None
    if found.st_uid != os.geteuid():
        return f"it belongs to the user {found.st_uid}, and this process runs as {os.geteuid()}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (its mode is {stat.S_IMODE(found.st_mode):o}): `chmod go-w` forbids it"
    return None


def refusal_of(path: Path) -> str | None:
    """Why a folder must not be used, if there is one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return refusal(found) if stat.S_ISDIR(found.st_mode) else "it is not a folder"
