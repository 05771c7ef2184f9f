"""The lowering of emitted functions to LLVM's terms: variables, loops, elements of arrays, calls, lists of records."""
