"""Private names of Numba, messages, walks over its IR, and facts about its types."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
