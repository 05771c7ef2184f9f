"""The cache: what was made of a function is kept in a folder, and found again by the next process.

    found = recall(request, argument_types, hidden)     # None if the gradient cannot be kept
    found.kernel                                        # what was made of it before, or None
    found.store(compiled, hidden)                       # for the next time

A gradient is known by what it depends on (`fingerprint.py`, `environment.py`), and kept as three files (`folder.py`):
the emitted module, a record of what it captures (`records.py`), and the machine code for each signature, which
`zygote_py.numba_adapter.stored` reads and writes. What cannot be kept is compiled, as if there were no cache.

`ZYGOTE_PY_CACHE_DIR` names the folder, `ZYGOTE_PY_CACHE_SIZE` the most megabytes in it, `ZYGOTE_PY_CACHE=0` switches
the cache off, and so does `switch(False)` for the process.
"""

from __future__ import annotations

from zygote_py.cache.folder import Folder, Info, folder_in_use, folder_named, switch
from zygote_py.cache.records import Found, Kernel, MachineCode, as_captured, made_by_stages, recall

__all__ = [
    "Folder",
    "Found",
    "Info",
    "Kernel",
    "MachineCode",
    "as_captured",
    "folder_in_use",
    "folder_named",
    "made_by_stages",
    "recall",
    "switch",
]
