"""Numba types of functions, closures and dataclasses."""
