"""Shared by several families of NumPy functions: the registration of overloads, and selection by comparison."""
