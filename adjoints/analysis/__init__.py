"""Analyses that differentiation needs: activity, linearity, aliasing of bytes, and values that are masked."""
