"""Machine code of recursive functions: what calls one of them by its address reads this from a place in memory.

Numba compiles a recursive function before its name is defined, and calls it by way of a pointer, `.numba.unresolved$f`,
which it sets when `f` is compiled. The code of `f` is in a library of its own where `f` was compiled for other types
than those of the first call.

    recursive_callees(library)              {"f": its library, ...}: what is to be stored along with a library
    load_together(codegen, codes, ["f"])    the libraries again, in another process, with the pointers set
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

from zygote_py.numba_adapter.base.internals import RuntimeLinker

UNRESOLVED: str = RuntimeLinker.PREFIX

callees: weakref.WeakSet[Any] = weakref.WeakSet()  # the dispatchers of emitted functions that emitted functions call
_addresses: dict[str, ctypes.c_void_p] = {}  # by name; for good, as the code that reads them


def is_recursive(library: Any) -> bool:
    """Return whether a library calls functions by such pointers, which Numba cannot set when it reads its own cache."""
    modules = (library._final_module, getattr(library, "_shared_module", None))  # the first is empty if it was read
    return any(_called(module) for module in modules if module is not None)


def _called(module: Any) -> list[str]:
    names = (each.name for each in module.global_variables)
    return [name.removeprefix(UNRESOLVED) for name in names if name.startswith(UNRESOLVED)]


def recursive_callees(library: Any) -> dict[str, Any]:
    """Return the libraries of the functions that a library calls by pointers, and those that they call, by name.

    Raises KeyError if one is not known. Numba's lock is held.
    """
    found: dict[str, Any] = {}
    to_do = _called(library._final_module)
    if to_do:
        overloads = [each for dispatcher in callees for each in dispatcher.overloads.values()]
        known = {each.fndesc.mangled_name: each.library for each in overloads}
        while to_do:
            name = to_do.pop()
            if name not in found:
                found[name] = known[name]
                to_do += _called(found[name]._final_module)
    return found


def load_together(codegen: Any, codes: Sequence[Any], recursive: Sequence[str]) -> list[Any]:
    """Return the libraries of these codes, and let the functions of these names find one another."""
    for name in recursive:
        if name not in _addresses:
            _addresses[name] = ctypes.c_void_p()
            llvm.add_symbol(UNRESOLVED + name, ctypes.addressof(_addresses[name]))
            codegen._engine._defined_symbols.add(UNRESOLVED + name)  # which Numba then does not set for callers
    libraries = [codegen.unserialize_library(code) for code in codes]
    for name in recursive:
        _addresses[name].value = codegen._engine.get_function_address(name)
    return libraries
