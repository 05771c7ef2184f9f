"""Explanations why an operation has no derivative, with the remedy: a custom rule.

    intr(x)             `intr` is an intrinsic of Numba, written for LLVM: there is no Python source to differentiate
                        give it a rule: `@zg.adjoint(intr)` above `def rule(x): return intr(x), lambda dy: (dy * ...,)`

Not decided here: which operations have a derivative (see `zygote_py.adjoints.analysis.activity`).
"""

from __future__ import annotations

import inspect
import types as python_types
from collections.abc import Callable, Sequence

import numpy as np
from numba import extending, types

from zygote_py.ir import Foreign, Type, ops

_OURS = ("math", "cmath", "operator", "builtins", "_operator", "random")
_INTRINSIC: type = vars(extending)["_Intrinsic"]
_NO_SOURCE = "there is no Python source to differentiate"


def cause(op: Callable[..., object], argument_types: Sequence[Type]) -> tuple[str, str]:
    """Return the reason why an operation on arguments of these types has no derivative, and a hint."""
    name = _name_of(op)
    reason = _reason(op.function if isinstance(op, Foreign) else op)
    if reason:
        return f"`{name}` is {reason}", f"give it a rule: {_rule(name, len(argument_types))}"
    shown = ", ".join(map(str, argument_types))
    start, named = "use what docs/numpy.md lists, or give it", name
    if _is_operator(op):
        start, named = "write it as a function and give that", "f"
    return f"there is no rule for {name}({shown})", f"{start} a rule: {_rule(named, len(argument_types))}"


def _reason(op: object) -> str:
    """Return the kind of callable that prevents differentiation; empty for an operation that merely has no rule."""
    if hasattr(op, "restype") and hasattr(op, "argtypes"):
        return f"a C function: {_NO_SOURCE}"
    if isinstance(op, types.ExternalFunction):
        return f"an external function, machine code that is linked: {_NO_SOURCE}"
    if isinstance(op, _INTRINSIC):
        return f"an intrinsic of Numba, written for LLVM: {_NO_SOURCE}"
    if hasattr(op, "native_name") and hasattr(op, "address"):
        return f"a C callback (`cfunc`), called by its address: {_NO_SOURCE}"
    if _is_library(op):
        return ""
    if hasattr(op, "py_func"):
        return "a compiled function that cannot be compiled again: its Python source is not looked into"
    if hasattr(op, "ufunc") or isinstance(op, np.ufunc):
        return f"a ufunc of machine code: {_NO_SOURCE}"
    if isinstance(op, python_types.BuiltinFunctionType):
        return f"a function of a C extension: {_NO_SOURCE}"
    if isinstance(op, python_types.FunctionType):
        return "given to Numba by an extension (`overload`, `type_callable`), which is not looked into"
    return "" if inspect.isroutine(op) or isinstance(op, type) else "an object that Numba calls without its source"


def _is_library(op: object) -> bool:
    module = getattr(op, "__module__", None) or ""
    own = isinstance(op, np.ufunc) and getattr(np, op.__name__, None) is op
    return own or module.partition(".")[0] in ("numpy", "zygote_py", *_OURS)


def _is_operator(op: object) -> bool:
    return (getattr(op, "__module__", None) or "").lstrip("_") == "operator"


def _name_of(op: object) -> str:
    """Return the name of a callable as users write it: `np.sign`, `erf`, `numpy.ndarray.dot`."""
    if callable(op) and hasattr(op, "__name__"):
        if _is_library(op) or isinstance(op, python_types.MethodDescriptorType):
            return ops.name_of(op)
        return str(op.__name__)
    return getattr(op, "symbol", None) or type(op).__name__


def _rule(name: str, count: int) -> str:
    """Return an example of a rule for a function of `count` arguments, in one line."""
    name = name if name.replace(".", "_").isidentifier() else "f"
    if count == 1:
        return f"`@zg.adjoint({name})` above `def rule(x): return {name}(x), lambda dy: (dy * ...,)`"
    names = ", ".join(f"x{number}" for number in range(1, count + 1))
    return f"`@zg.adjoint({name})` above `def rule({names}): return {name}({names}), lambda dy: (dy * ..., ...)`"
