"""Functions of vectors, from the C library's libmvec: `exp` of four numbers at once in loops that LLVM has vectorised.

    call fast double @llvm.exp.f64(...)             ->      the same, with the name of `_ZGVdN4v_exp` as its variant
    call fast <4 x double> @llvm.exp.v4f64(...)     ->      call <4 x double> @_ZGVdN4v_exp(...)

llvmlite has no way to tell LLVM of a library of such functions. So each call gets the names of its variants before the
passes, by an attribute that compilers of C use for functions of their own, so that a loop is vectorised if that pays
with these. Calls that LLVM has written itself, which it would take apart into scalar ones again, get the library's
names afterwards.

These functions are off by at most four units in the last place, so that only calls that allow an approximation have
them (`afn`, which is part of `fastmath=True`). The remaining rounds of a loop call the scalar functions. What the
library lacks, or where there is none (musl, macOS, Windows), stays as it is.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterable
from typing import Any

import llvmlite.binding as llvm

from zygote_py.ir import is_left_out
from zygote_py.numba_adapter.base.internals import JITCodeLibrary

# With the number of their arguments.
_FUNCTIONS = {
    **dict.fromkeys(("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "cbrt", "erf", "erfc"), 1),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"), 1),
    **dict.fromkeys(("asinh", "acosh", "atanh"), 1),
    **dict.fromkeys(("pow", "atan2", "hypot"), 2),
}
# The library's letter for the instructions, and what a processor must have, by type and lanes.
_SSE, _AVX2, _AVX512 = ("b", "sse2"), ("d", "avx2"), ("e", "avx512f")
_WIDTHS = {("double", 2): _SSE, ("double", 4): _AVX2, ("double", 8): _AVX512}
_WIDTHS |= {("float", 4): _SSE, ("float", 8): _AVX2, ("float", 16): _AVX512}
_INTRINSIC = re.compile(r"llvm\.(\w+)\.v(\d+)f(32|64)$")
_CALL = re.compile(r"call (?P<flags>[a-z ]*)<(?P<lanes>\d+) x (?P<kind>double|float)> @llvm\.(?P<name>\w+)\.v\d+f\d+\(")
_SCALAR_CALL = re.compile(
    r"(?P<call>call (?P<flags>[a-z ]*)(?P<kind>double|float) @(?P<name>[\w.]+)\((?:(?:double|float) [^,()]+(?:, )?)+\))"
)
_USED = "llvm.compiler.used"


@functools.cache
def _library() -> Any:
    try:
        found = ctypes.CDLL("libmvec.so.1")
        llvm.load_library_permanently("libmvec.so.1")
    except (OSError, RuntimeError):
        return None
    return found


@functools.cache
def _has(feature: str) -> bool:
    return bool(llvm.get_host_cpu_features().get(feature))


@functools.cache
def _symbol(name: str, kind: str, lanes: int) -> str | None:
    """Return the library's name of a function of vectors, None if it has none."""
    if name not in _FUNCTIONS or (kind, lanes) not in _WIDTHS:
        return None
    letter, needed = _WIDTHS[kind, lanes]
    scalar = name if kind == "double" else f"{name}f"
    made = f"_ZGV{letter}N{lanes}{'v' * _FUNCTIONS[name]}_{scalar}"
    return made if _has(needed) and hasattr(_library(), made) else None


@functools.cache
def known_functions() -> str:
    """Return which functions of vectors there are, as text: machine code may call them."""
    if _library() is None:
        return ""
    return " ".join(name for name in _FUNCTIONS if _symbol(name, "double", 2))


def with_variants(module: Any) -> Any:
    """Return a module before its passes, in which calls name their variants for vectors; the same if there are none."""
    if is_left_out("vector-functions") or not any(_scalar_name(name, "") for name in _declared(module)):
        return module
    added: dict[str, str] = {}

    def marked(call: re.Match[str]) -> str:
        name, kind = _scalar_name(call["name"], call["kind"]), call["kind"]
        if name is None or not _is_approximate(call["flags"]):
            return call[0]
        variants = []
        for lanes in (lanes for of, lanes in _WIDTHS if of == kind):
            symbol = _symbol(name, kind, lanes)
            if symbol is not None:
                added[symbol] = _declaration(symbol, name, kind, lanes)
                variants.append(f"_ZGV_LLVM_N{lanes}{'v' * _FUNCTIONS[name]}_{call['name']}({symbol})")
        if not variants:
            return call[0]
        return f'{call["call"]} memory(none) nounwind willreturn "vector-function-abi-variant"="{",".join(variants)}"'

    text = str(module)
    if _USED in text:
        return module
    text = _SCALAR_CALL.sub(marked, text)
    if not added:
        return module
    used = ", ".join(f"ptr @{symbol}" for symbol in added)
    kept = f'@{_USED} = appending global [{len(added)} x ptr] [{used}], section "llvm.metadata"'
    return llvm.parse_assembly("\n".join([text, kept, *added.values()]))


def with_vector_functions(module: Any) -> Any:
    """Return an optimised module whose calls of functions of vectors are those of the library; the same if there are
    none.
    """
    if is_left_out("vector-functions") or not any(map(_is_in_library, _declared(module))):
        return module
    added: dict[str, str] = {}

    def renamed(call: re.Match[str]) -> str:
        name, kind, lanes = call["name"], call["kind"], int(call["lanes"])
        symbol = _symbol(name, kind, lanes)
        if symbol is None or not _is_approximate(call["flags"]):
            return call[0]
        added[symbol] = _declaration(symbol, name, kind, lanes)
        return f"call {call['flags']}<{lanes} x {kind}> @{symbol}("

    text = _CALL.sub(renamed, str(module))
    if not added:
        return module
    known = set(_declared(module))
    return llvm.parse_assembly("\n".join([text, *(line for symbol, line in added.items() if symbol not in known)]))


def _declaration(symbol: str, name: str, kind: str, lanes: int) -> str:
    vector = f"<{lanes} x {kind}>"
    return f"declare {vector} @{symbol}({', '.join([vector] * _FUNCTIONS[name])})"


def _is_approximate(flags: str) -> bool:
    return not {"fast", "afn"}.isdisjoint(flags.split())


def _scalar_name(called: str, kind: str) -> str | None:
    """Return the function that a call of a function of numbers is one of; None if it is not in the table."""
    name = called
    if called.startswith("llvm."):
        name = called.split(".")[1]
    elif kind == "float" or (not kind and called not in _FUNCTIONS):
        name = called.removesuffix("f")
    return name if name in _FUNCTIONS else None


def _declared(module: Any) -> Iterable[str]:
    return (each.name for each in module.functions if each.is_declaration)


def _is_in_library(name: str) -> bool:
    found = _INTRINSIC.match(name)
    if found is None:
        return False
    return _symbol(found[1], "double" if found[3] == "64" else "float", int(found[2])) is not None


_base: Any = JITCodeLibrary


class VectorLibrary(_base):  # type: ignore[misc]
    """The code of a function of the user, in which functions of vectors are those of the library."""

    _final_module: Any

    def _optimize_final_module(self) -> None:
        self._final_module = with_variants(self._final_module)
        super()._optimize_final_module()
        self._final_module = with_vector_functions(self._final_module)
