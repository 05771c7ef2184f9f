"""Emitted modules as Numba compiles them: the only target there is now (see `zygote_py.emit.target`).

    function = entry_of(load(emitted))              # a Python function, by which its module is entered
    dispatcher = make_dispatcher(stub, implement, {"fastmath": True})
    dispatcher(2.0)                                 # implement((float64,)) gives the function to compile
    llvm_text(dispatcher, (types.float64,))

Numba makes a wrapper of every function through which Python calls it, which takes the arguments out of Python's objects
and makes such of the results. For a function of some arrays that takes longer to compile than the function itself, so
only the function by which a module is entered has one.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numba

from zygote_py.base import execute
from zygote_py.ir import Type
from zygote_py.ir.ops.helpers import HELPERS
from zygote_py.numba_adapter.base import time_compilation
from zygote_py.numba_adapter.base.internals import CPUDispatcher, Dispatcher, errors
from zygote_py.numba_adapter.emitted.pipeline import EmittedPipeline
from zygote_py.numba_adapter.linking import (
    EMITTED,
    callees,
    code_text,
    is_recursive,
    keep_writes,
    link_callees,
    link_only,
)
from zygote_py.numba_adapter.target import records as _records  # noqa: F401 (teaches Numba `ops.array_of_record`)
from zygote_py.numba_adapter.target.dispatch import (
    COMPILER_LOCK,
    bounds_are_checked,
    is_dispatcher,
    is_plain,
    jit_is_disabled,
)
from zygote_py.numba_adapter.target.stored import Code, Stored

if TYPE_CHECKING:
    from zygote_py.emit import Emitted

Options = Mapping[str, object]
_OF_RULES = "<functions of rules>"  # under which a module holds the names of its functions that are derived from rules


def decorated(function: Callable[..., object], options: Options) -> Any:
    """Return a function decorated with `numba.njit`."""
    return numba.njit(**options)(function)  # type: ignore[call-overload]


def load(emitted: Emitted) -> Any:
    """Execute an emitted module and return its function, decorated as its text says.

    The source is registered with `linecache`, so that tracebacks, `inspect.getsource` and Numba's messages show it.
    """
    if emitted.compiled is not None and not (jit_is_disabled() or bounds_are_checked()):
        emitted = emitted.compiled
    digest = hashlib.sha256(emitted.source.encode()).hexdigest()[:12]
    # Without a `__name__`, since Numba can resolve a recursive function only if its module can be imported or is
    # missing.
    namespace: dict[str, object] = {"__name__": None, _OF_RULES: emitted.of_rules, **emitted.globals}
    keep_writes()
    execute(emitted.source, f"{EMITTED}{emitted.name} {digest}>", namespace)
    namespace["__name__"] = __name__  # the functions have no module, but cached callers require one
    return namespace[emitted.name]


def entry_of(loaded: Any) -> Callable[..., object]:
    """Return the Python function of what `load` returned; the others of its module are called from it alone."""
    hide_warnings_of_emitted()
    if not isinstance(loaded, Dispatcher):  # Numba is disabled
        return loaded  # type: ignore[no-any-return]
    from zygote_py.numba_adapter.target.native_helpers import native  # which loads more of Numba

    entry: Callable[..., object] = loaded.py_func
    module = entry.__globals__
    of_rules = module.get(_OF_RULES, ())
    for name, each in tuple(module.items()):
        if type(each) is CPUDispatcher and each is not loaded and each.py_func.__globals__ is module:
            made = _OfRule if name in of_rules else _CalledFromCode
            options = _without_threads(each.targetoptions) | _NO_WRAPPERS
            module[name] = native(each.py_func) or made(each.py_func, each.locals, options, EmittedPipeline)
    return entry


def callee(function: Callable[..., object], options: Options) -> Any:
    """Return a function that only compiled code calls, as a compiled function."""
    made = decorated(function, options)
    if not isinstance(made, Dispatcher):  # Numba is disabled
        return made
    return _CalledFromCode(made.py_func, made.locals, made.targetoptions | _NO_WRAPPERS, EmittedPipeline)


def hide_warnings_of_emitted() -> None:
    """Hide Numba's remarks on the performance of emitted functions: the user has no such file, and cannot change it.

    Said anew before each compilation, as who catches warnings may have forgotten it.
    """
    kind = errors.NumbaPerformanceWarning
    warnings.filterwarnings("ignore", "(?s).*<zygote_py ", kind)  # which say where in their text
    warnings.filterwarnings("ignore", "", kind, EMITTED)


def _without_threads(options: Options) -> dict[str, object]:
    """Return options without `parallel`: emitted modules have threads of their own, and Numba's passes find none."""
    return {name: value for name, value in options.items() if name != "parallel"}


_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _CalledFromCode(CPUDispatcher):
    """A function that runs in the interpreter if Python calls it: what is compiled has no entry for that."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        link_only(self, is_stored=self._is_stored())
        callees.add(self)

    def _is_stored(self) -> bool:
        """Return whether it is kept on disk; others are optimised with what calls them."""
        known: Any = HELPERS.get(self.py_func.__name__)
        return known is not None and code_text(known) == code_text(self.py_func)

    def add_overload(self, cres: Any) -> None:
        """Keep what was compiled for compiled code alone."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: Any, **keywords: Any) -> Any:
        return self.py_func


class _OfRule(_CalledFromCode):
    """Such a function that is derived from one that rules call. Other programs have the same one."""

    def _is_stored(self) -> bool:
        return True


def make_dispatcher(
    stub: Callable[..., object],
    implement: Callable[[tuple[Type, ...]], Callable[..., object]],
    options: Options,
    code_of: Callable[[tuple[Type, ...]], Code | None] | None = None,
    misfit: Callable[[Sequence[Any], Mapping[str, Any]], Exception] | None = None,
) -> Any:
    """Return a dispatcher with the signature of `stub` that compiles `implement(argument types)` for each signature.

    Among the argument types may be `types.Omitted` for a default that was not given. Machine code is kept
    in what `code_of` gives for a signature.
    If compiled code calls it with arguments that do not fit the signature, it raises what `misfit` returns for them.
    """
    dispatcher: Any = decorated(stub, _without_threads(options))
    if misfit is not None:
        fold = dispatcher._compiler.fold_argument_types
        signature = inspect.signature(stub)

        def checked(args: tuple[Type, ...], keywords: dict[str, Type]) -> object:
            try:
                signature.bind(*args, **keywords)
            except TypeError:
                raise misfit(args, keywords) from None
            return fold(args, keywords)

        dispatcher._compiler.fold_argument_types = checked

    def implementation(args: tuple[Type, ...], keywords: object) -> Callable[..., object]:
        found = implement(tuple(args))
        hide_warnings_of_emitted()
        return found

    dispatcher._compiler._get_implementation = implementation
    if is_dispatcher(dispatcher):
        link_callees(dispatcher)
        dispatcher._compiler.pipeline_class = EmittedPipeline
        vars(dispatcher)["get_compile_result"] = functools.partial(_compiled_as_value, dispatcher, {})
        time_compilation(dispatcher, stub.__name__)
    if code_of is not None and isinstance(dispatcher, Dispatcher):
        vars(dispatcher)["_cache"] = Stored(code_of)
    return dispatcher


def _compiled_as_value(dispatcher: Any, made: dict[tuple[Type, ...], tuple[Any, Any]], signature: Any) -> Any:
    """Return what is compiled for a signature, as Numba asks for it where a dispatcher becomes a value."""
    from zygote_py.numba_adapter.emitted.entries import with_entry_for_c  # which loads more of Numba

    result = type(dispatcher).get_compile_result(dispatcher, signature)
    with COMPILER_LOCK:
        known = made.get(tuple(signature.args))
        if known is None or known[0] is not result:
            known = made[tuple(signature.args)] = (result, with_entry_for_c(result))
    return known[1]


def refuse_functions(dispatcher: Any) -> None:
    """Let a dispatcher that is called from Python refuse functions as arguments: they must be wrapped first."""
    if is_dispatcher(dispatcher) and "_compile_for_args" not in vars(dispatcher):
        compile_for = dispatcher._compile_for_args
        vars(dispatcher)["_compile_for_args"] = functools.partial(_compiled_for, compile_for)


def _compiled_for(compile_for: Callable[..., object], *args: Any, **kwargs: Any) -> object:
    if not all(map(is_plain, args)):
        from zygote_py.numba_adapter.types import holds_functions

        if any(map(holds_functions, args)):
            raise TypeError("functions as arguments are to be wrapped")
    return compile_for(*args, **kwargs)


def link_along(dispatcher: Any, make: Callable[[tuple[Type, ...], bool], Callable[[], None]]) -> None:
    """Attach what `make` returns for a signature to its machine code, which Numba keeps on disk with that of callers.

    It is pickled with the code of a caller, and called when that has been read. `make` is told whether the code can be
    read at all: Numba links functions that call one another when they are compiled, and not when they are read.
    """
    if not is_dispatcher(dispatcher):
        return
    add = dispatcher.add_overload

    def adding(compiled: Any) -> None:
        if not compiled.objectmode:
            is_whole = not is_recursive(compiled.library)
            compiled.library._reload_init.add(make(tuple(compiled.signature.args), is_whole))
        add(compiled)

    vars(dispatcher)["add_overload"] = adding


def is_from_cache(dispatcher: Any, signature: tuple[Type, ...]) -> bool:
    """Return whether the machine code for a signature was read rather than compiled, so that it has no LLVM IR."""
    return bool(dispatcher._cache_hits[signature])


def _function_text(text: str, name: str, start: str, end: str) -> str:
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if line.startswith(start) and name in line:
            last = next(i for i in range(index, len(lines)) if lines[i].startswith(end))
            return "\n".join(lines[index : last + 1])
    raise KeyError(name)


def llvm_text(dispatcher: Any, signature: tuple[Type, ...]) -> str:
    """Return the optimised LLVM IR of the native function for a signature, without its CPython wrappers."""
    compiled = dispatcher.overloads[signature]
    return _function_text(compiled.library.get_llvm_str(), compiled.fndesc.mangled_name, "define ", "}")


def asm_text(dispatcher: Any, signature: tuple[Type, ...]) -> str:
    """Return the machine code of the native function for a signature, without its CPython wrappers."""
    compiled = dispatcher.overloads[signature]
    name = compiled.fndesc.mangled_name
    return _function_text(compiled.library.get_asm_str(), name, name, "\t.size\t" + name)
