"""Benchmarks: `python -m benchmarks` in a checkout; needs the extra `dev`."""
