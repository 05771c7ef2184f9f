"""Reverse-mode automatic differentiation for Numba functions."""
