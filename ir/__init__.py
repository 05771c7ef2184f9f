"""The intermediate representation: typed SSA control-flow graphs, independent of differentiation."""

if __name__ != "zygote_py.ir":
    raise ImportError("import zygote_py.ir, not ir: the folder is part of the package zygote_py")
