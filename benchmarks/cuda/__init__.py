"""Gradients on a CUDA device, compared with the primal kernel, hand-written kernels, a copy, JAX and PyTorch."""
