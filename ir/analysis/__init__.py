"""Analyses of functions, which change nothing: dominators, loops, data flow, memory, subscripts, and calls."""
