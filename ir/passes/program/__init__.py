"""Transformations of several functions at once: inlining, outlining, and the types of what calls return."""
