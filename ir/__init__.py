"""The intermediate representation: typed SSA control-flow graphs, independent of differentiation."""

import lazy_loader

if __name__ != "zygote_py.ir":
    raise ImportError("import zygote_py.ir, not ir: the folder is part of the package zygote_py")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
