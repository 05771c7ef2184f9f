"""From a function in SSA form to the source of a Python function that Numba compiles and that plain Python runs."""

from zygote_py.emit.source import Emitted, emit, load, njit_with

__all__ = ["Emitted", "emit", "load", "njit_with"]
