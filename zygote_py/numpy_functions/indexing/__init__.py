"""Indexing routines."""
