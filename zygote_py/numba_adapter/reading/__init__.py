"""From a Python function to typed statements, by way of Numba's IR and type inference."""
