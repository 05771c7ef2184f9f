"""Analyses of functions, which change nothing: dominators, loops, data flow, memory, subscripts, and calls."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
