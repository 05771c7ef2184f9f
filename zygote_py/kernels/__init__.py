"""Derivatives over arrays of inputs, and in kernels for CUDA."""
