"""Functions for the threads of a device: without allocation, exceptions and lists."""
