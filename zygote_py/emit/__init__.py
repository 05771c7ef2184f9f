"""Emission: from a function in SSA form to the source of a Python function for Numba or plain Python."""

from zygote_py.emit.target import NJIT, PYTHON, Emitted, Target, emit

__all__ = ["NJIT", "PYTHON", "Emitted", "Target", "emit"]
