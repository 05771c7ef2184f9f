"""The adjoint transformation: from a primal function to its adjoint, and to both in one joint function."""

import lazy_loader

if __name__ != "zygote_py.adjoints":
    raise ImportError("import zygote_py.adjoints, not adjoints: the folder is part of the package zygote_py")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
