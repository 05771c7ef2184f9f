"""Where compiled implementations of NumPy's functions are kept: in the folder of the cache, for all derivatives.

`zygote_py.numba_adapter.linking.helper_store` reads and writes them. They depend on the versions and settings in the
environment, and on nothing of the user's.
"""

from __future__ import annotations

from zygote_py import numba_adapter
from zygote_py.cache import environment
from zygote_py.cache.folder import folder_in_use
from zygote_py.cache.inspection import NotCacheable


def _where() -> numba_adapter.Helpers | None:
    folder = folder_in_use()
    if folder is None:
        return None
    try:
        return numba_adapter.Helpers(folder, environment.versions())
    except (NotCacheable, OSError):
        return None


numba_adapter.keep_helpers(_where)
