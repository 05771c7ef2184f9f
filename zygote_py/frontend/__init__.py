"""The front end: from a Python function and the types of its arguments to the IR (see `lowered`)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
