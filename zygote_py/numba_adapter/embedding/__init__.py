"""Derivatives and custom rules in functions that the user compiles."""
