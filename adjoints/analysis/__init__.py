"""Analyses that differentiation needs: activity, linearity, aliasing of bytes, and values that are masked."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
