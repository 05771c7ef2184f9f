"""Called derivatives: the state of a derivative function, pullbacks, cotangents, and flattened structures."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
