"""`numba.njit` with functions of vectors in vectorised loops (see `linking/vector_functions.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from zygote_py.numba_adapter.base.internals import FunctionCache, compiler
from zygote_py.numba_adapter.linking import VectorLibrary, known_functions
from zygote_py.numba_adapter.target.dispatch import jit_is_disabled

_compiler: Any = compiler.Compiler
_cache: Any = FunctionCache


class VectorPipeline(_compiler):  # type: ignore[misc]
    """Numba's pipeline, which compiles a function into a `VectorLibrary`."""

    def compile_extra(self, func: Callable[..., object]) -> Any:
        """Compile a function."""
        library = VectorLibrary(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()
        self.state.library = library
        return super().compile_extra(func)


class VectorCache(_cache):  # type: ignore[misc]
    """Numba's cache, in which code is found only where there are the functions of vectors that it may call."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), known_functions())


def vector_njit(*args: Any, **options: Any) -> Any:
    """As `numba.njit`."""
    given = {"pipeline_class": VectorPipeline, **options}
    if args and callable(args[0]):
        return _made(args[0], None, given)
    signatures = args[0] if args else given.pop("signature_or_function", None)
    return lambda function: _made(function, signatures, given)


def _made(function: Callable[..., object], signatures: Any, options: dict[str, Any]) -> Any:
    decorate: Any = numba.njit(**options)
    made = decorate(function)
    if jit_is_disabled():
        return made
    if options.get("cache"):
        made._cache = VectorCache(function)
    if signatures is not None:
        for each in signatures if isinstance(signatures, list) else [signatures]:
            made.compile(each)
        made.disable_compile()
    return made
