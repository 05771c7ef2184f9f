"""Transformations of a joint function that is not differentiated any more."""
