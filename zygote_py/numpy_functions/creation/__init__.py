"""Array creation routines."""
