"""Derivatives over arrays of inputs."""
