"""Public functions: derivatives, custom rules, checks, and the interfaces to SciPy and sparse matrices."""
