"""The rules of operations on whole arrays."""
