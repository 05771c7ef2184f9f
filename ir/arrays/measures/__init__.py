"""Lengths, elements and memory of arrays: what is known of them, and loops that it makes one."""
