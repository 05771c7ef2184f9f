"""The cache: what was made of a function is kept in a folder, and found again by the next process.

    kernel, hidden = find(request, argument_types, ())      # from the folder, or else made by the stages and kept
    dispatcher = make_dispatcher(stub, implement, options, MachineCode(kernel_of))

A gradient is known by what it depends on (`fingerprint.py`, `environment.py`), and kept as three files (`folder.py`):
the emitted module, a record of what it captures (`records.py`), and the machine code for each signature, which
`zygote_py.numba_adapter.stored` reads and writes. What cannot be kept is compiled, as if there were no cache.

`ZYGOTE_PY_CACHE_DIR` names the folder, `ZYGOTE_PY_CACHE_SIZE` the most megabytes in it, `ZYGOTE_PY_CACHE=0` switches
the cache off, and so does `switch(False)` for the process.
"""

from __future__ import annotations

from zygote_py.cache.folder import Folder, Info, folder_in_use, folder_named, switch
from zygote_py.cache.records import Kernel, Link, MachineCode, as_captured, find

__all__ = [
    "Folder",
    "Info",
    "Kernel",
    "Link",
    "MachineCode",
    "as_captured",
    "find",
    "folder_in_use",
    "folder_named",
    "switch",
]
