"""Reverse-mode automatic differentiation for Numba functions.

from zygote_py import gradient

@gradient
def df(x, y): ...
"""

import lazy_loader

import zygote_py.api.gradient  # noqa: F401 (it registers dataclasses and embedded derivatives with Numba)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
