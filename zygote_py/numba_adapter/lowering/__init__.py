"""From Numba's typed IR to LLVM's, for emitted functions: in place of Numba's class, which it extends."""
