"""Passes that recognize, promote and lower accumulations into arrays, and the guards of products."""
