"""Emission: from a function in SSA form to the source of a Python function for Numba or plain Python."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
