"""The compiler's stages in order, from a request to emitted source, for gradients and other transforms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
