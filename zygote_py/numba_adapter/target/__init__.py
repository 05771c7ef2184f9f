"""Compilation by Numba: of emitted modules, and of what compiled callers of derivatives call."""
