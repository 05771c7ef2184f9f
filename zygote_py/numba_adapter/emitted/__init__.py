"""How Numba compiles emitted functions: its passes, with some in place of its own, and its lowering."""
