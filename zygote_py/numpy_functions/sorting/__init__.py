"""Sorting, searching and counting."""
