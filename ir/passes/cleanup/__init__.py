"""Passes that simplify: constants, copies, common subexpressions, dead code, and empty blocks."""
