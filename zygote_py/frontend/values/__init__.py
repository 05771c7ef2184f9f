"""Values during lowering: bundles of operands, their trees, iterations over them, and the interface of the builder."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
