"""Emission: from a function in SSA form to the source of a Python function for Numba or plain Python."""

from zygote_py.emit.source import Emitted, emit, load, njit_with

__all__ = ["Emitted", "emit", "load", "njit_with"]
