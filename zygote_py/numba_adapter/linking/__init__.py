"""The functions that emitted ones call: typed without being compiled, linked only, numbered, and kept on disk."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
