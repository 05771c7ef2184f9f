"""Loops of independent iterations, several iterations at a time."""
