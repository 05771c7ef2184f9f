"""The cache: compiled derivatives are kept in a folder, where the next process finds them.

    kernel, hidden = find(request, argument_types, ())      # from the folder, or else made by the stages and kept
    kernel.code                                             # where its machine code is kept; None if it is not

The rest of the package imports this module only.

A derivative is identified by all that it depends on (`fingerprint.py`, `environment.py`). In the folder (`folder.py`)
are the emitted module, which begins with a record of its captured variables (`records.py`), and the machine code for
each signature, which `zygote_py.numba_adapter.target.stored` reads and writes. What cannot be kept is compiled each
time.

`ZYGOTE_PY_CACHE_DIR` names the folder, `ZYGOTE_PY_CACHE_SIZE` the most megabytes in it, `ZYGOTE_PY_CACHE=0` switches
the cache off, and so does `switch(False)` for the process.
"""

from __future__ import annotations

from zygote_py.cache import helpers as _helpers  # noqa: F401 (says where they are kept)
from zygote_py.cache.folder import PROCESS, Folder, Info, folder_in_use, folder_named, switch
from zygote_py.cache.linked import guard_callers
from zygote_py.cache.records import (
    Found,
    Kernel,
    Link,
    MachineCode,
    as_captured,
    code_of_helper,
    find,
    loaded,
    pickled_in,
    text_of_pickled,
)

__all__ = [
    "PROCESS",
    "Folder",
    "Found",
    "Info",
    "Kernel",
    "Link",
    "MachineCode",
    "as_captured",
    "code_of_helper",
    "find",
    "folder_in_use",
    "folder_named",
    "guard_callers",
    "loaded",
    "pickled_in",
    "switch",
    "text_of_pickled",
]
