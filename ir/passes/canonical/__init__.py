"""Passes that bring loops, branches and returns into canonical form."""
