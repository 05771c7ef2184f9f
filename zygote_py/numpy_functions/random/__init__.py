"""Random sampling."""
