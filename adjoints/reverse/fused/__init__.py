"""Loops that are reversed round by round, as they run."""
