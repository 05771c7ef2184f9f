"""Benchmarks: run `python -m benchmarks` in a checkout; requires the extra `dev`."""
