"""Modules that all other parts of the package may use, and that need none of them."""
