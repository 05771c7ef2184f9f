"""Loops that follow one another, as one."""
