"""The door to numba-cuda; imported only where CUDA is asked for."""
