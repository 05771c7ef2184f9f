"""The adjoint transformation: from a primal function to its adjoint, and to both in one joint function."""

if __name__ != "zygote_py.adjoints":
    raise ImportError("import zygote_py.adjoints, not adjoints: the folder is part of the package zygote_py")
