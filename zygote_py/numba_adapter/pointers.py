"""Functions that Numba knows by an address and a signature alone, as the pointers of `ctypes` that they are.

    class Erf(types.WrapperAddressProtocol):            as_pointer(Erf())
        def __wrapper_address__(self): ...              CFUNCTYPE(c_double, c_double)(address)
        def signature(self): return float64(float64)

What is known of pointers then holds for such objects too: rules for the functions of SciPy, no source for any other.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba import types

from zygote_py.numba_adapter.internals import to_ctypes


def as_pointer(value: Any) -> Any:
    """The pointer of `ctypes` that a value stands for; the value itself if there is none."""
    if not isinstance(value, types.WrapperAddressProtocol):
        return value
    own: Any = value
    signature = own.signature()
    try:
        kinds = [to_ctypes(each) for each in (signature.return_type, *signature.args)]
    except TypeError:  # arrays and other structures have no C type
        return value
    return ctypes.CFUNCTYPE(*kinds)(own.__wrapper_address__())
