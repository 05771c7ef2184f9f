"""Loops of independent iterations, in chunks of neighbouring ones, each in a thread."""
