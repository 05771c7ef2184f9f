"""Lowering of expressions, by kind."""
