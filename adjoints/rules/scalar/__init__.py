"""The rules of operations on numbers."""
