"""What is known of numba-cuda; imported only where CUDA is asked for."""
