"""Compiled functions that emitted functions call, on disk for all that call them: NumPy's above all.

    keep_helpers(lambda: Helpers(folder, "Numba 0.68.1, NumPy 2.4.6, ..."))

Numba writes NumPy's functions in Python and compiles them anew in each process, which takes longer than anything else
that an emitted function with linear algebra needs. What emitted functions call of these directly is kept here, and so
are the helpers of this package that emitted modules contain: by what they are made of (`function_content.py`), the
types of their arguments, the flags, the machine and the versions of everything.

A large one is machine code, which is called; LLVM would seldom inline it. A small one is kept before it is optimised,
and linked into its callers as always, so that they are the same functions with this store and without.

A symbol of a large one is the name of its file. Code on disk that calls it carries a `_Needed`, which loads the file
before the code itself is loaded, or raises OSError: to Numba a missing file, upon which it compiles.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import pickle
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import llvmlite.binding as llvm

from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import refresh
from zygote_py.numba_adapter.base.blas import load_blas
from zygote_py.numba_adapter.base.internals import (
    CompileResult,
    Environment,
    cpu_target,
    lookup_environment,
    rtsys,
)
from zygote_py.numba_adapter.linking.by_address import add_entry, entry_by_address, is_by_address, symbol_of_helper
from zygote_py.numba_adapter.linking.function_content import Unknown, words_of, words_of_type

_MOST_INLINED = 100  # instructions, about twice those of the largest function that LLVM inlines anywhere
_SYMBOL = "zygote_py_helper_"
_UNRESOLVED = ".numba.unresolved"
_ENVIRONMENT = "_ZN08NumbaEnv"
_ADDRESS = "numba.dynamic.globals"  # of an object of this process
_ROUTINES = ("numba_xx", "numba_ez_", "numba_raw_")  # how the names of those start that call BLAS and LAPACK
_LOCAL = (llvm.Linkage.internal, llvm.Linkage.private)


class Place(Protocol):
    """Where files are kept by name."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""

    def write(self, name: str, content: bytes) -> bool:
        """Write a file. Returns whether it was written."""


@dataclass(frozen=True, slots=True)
class Helpers:
    """Where compiled helpers are kept, and what else they depend on: the present one with the machine, as a digest."""

    place: Place
    environment: str


_where: Callable[[], Helpers | None] | None = None
_present: Helpers | None = None  # of the compilation that runs
_loaded: dict[str, Any] = {}  # results in this process by key; they stay


def keep_helpers(where: Callable[[], Helpers | None]) -> None:
    """Let compiled helpers be kept where this function says when a compilation begins."""
    global _where
    _where = where


def begin_helpers() -> None:
    """Prepare: look where helpers are kept. Called when the compilation of an emitted function begins."""
    global _present
    load_blas()
    found = None if _where is None else _where()
    if found is not None:
        described = f"{found.environment} {cpu_target.target_context.codegen().magic_tuple()}"
        found = Helpers(found.place, hashlib.sha256(described.encode()).hexdigest())
    _present = found


def key_of(function: Any, arguments: tuple[Any, ...], flags: Any, more: object) -> str | None:
    """Return the key of a compiled function; None if it cannot be kept."""
    return _key(function, arguments, [sorted(map(_option, flags.values().items())), more])


def _key(function: Any, arguments: tuple[Any, ...], more: list[object]) -> str | None:
    if _present is None:
        return None
    try:
        words = [_described(function), *(word for each in arguments for word in words_of_type(each))]
    except Unknown:
        return None
    return hashlib.sha256(repr([*words, _present.environment, *more]).encode()).hexdigest()[:40]


def result_type(function: Any, arguments: tuple[Any, ...], infer: Callable[[], Any]) -> Any:
    """Return the type of the result of a function, as it is kept, or as `infer` finds it."""
    key = _key(function, arguments, ["type"])
    if key is None or _present is None:
        return infer()
    place = _present.place
    if (data := place.read(_file(key))) is not None:
        with contextlib.suppress(Exception):  # of any kind: a file may hold anything
            return pickle.loads(data)
    found = infer()
    with contextlib.suppress(Exception):  # what cannot be pickled
        place.write(_file(key), _pickled(found))
    return found


def _option(option: tuple[str, Any]) -> str:
    name, value = option
    return f"{name}={sorted(value.flags) if hasattr(value, 'flags') else value}"


def _described(function: Any) -> str:
    known = _digests.get(function)
    if known is None:
        known = _digests[function] = hashlib.sha256(repr(words_of(function)).encode()).hexdigest()
    return known


_digests: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def find(key: str) -> Any:
    """Return what Numba made of a function, in the form that it has in this process; None if it is not kept."""
    found = _loaded.get(key)
    if found is None and _present is not None and (data := _present.place.read(_file(key))) is not None:
        found = _read(key, data)
    return found


def keep(key: str, result: Any) -> Any:
    """Keep what Numba made of a function. Return what to use of it from now on."""
    if _present is None:
        return result
    library = result.library
    if result.objectmode or result.lifted or not are_helpers(library._reload_init):
        return result
    module = library._get_module_for_linking()
    symbols = (*module.functions, *module.global_variables)
    if any(each.name.startswith(_UNRESOLVED) for each in symbols):
        return result
    code = _machine_code(key, result, module)
    is_called = code is not None
    description = copy.copy(result.fndesc)
    description.typemap = description.calltypes = description.global_dict = None
    environments = []
    if code is None:
        if any(each.name.startswith(_ADDRESS) for each in symbols):
            return result
        code = module.as_bitcode()
        names = [each.name for each in symbols if each.name.startswith(_ENVIRONMENT)]
        found = {name: lookup_environment(name) for name in names}
        environments = [(name, list(each.consts)) for name, each in found.items() if each is not None]
    else:
        description.mangled_name = _SYMBOL + key
    needed = sorted({each.name for each in symbols if each.is_declaration and not each.name.startswith("llvm.")})
    has_second_entry = is_called and any(map(is_by_address, description.argtypes))
    try:
        rest = _pickled((description, result.signature, environments))
        data = _pickled(_Kept(code, is_called, has_second_entry, needed, rest))
    except Exception:  # what cannot be pickled
        return result
    _present.place.write(_file(key), data)
    if not is_called:
        _loaded[key] = result._replace(metadata=None)
        return result
    return _read(key, data) or result


def _pickled(value: object) -> bytes:
    """Pickle a value. Raises PicklingError if something is of the main program, which another process has otherwise."""
    data = pickle.dumps(value)
    if b"__main__" in data:
        raise pickle.PicklingError("something of the main program")
    return data


def _file(key: str) -> str:
    return f"{key}.helper"


# -------------------------------------------------------------------------------------------------------- machine code


def _machine_code(key: str, result: Any, module: Any) -> bytes | None:
    """Return machine code of a function and all that it calls, with one symbol; None if it is small.

    One that calls another one is not small, since calls are most of what it does.
    """
    calls_another = any(each.is_declaration and each.name.startswith(_SYMBOL) for each in module.functions)
    if not calls_another and sum(_size(each) for each in module.functions) <= _MOST_INLINED:
        return None
    codegen = result.library.codegen
    module = llvm.parse_bitcode(module.as_bitcode())
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.linkage not in _LOCAL:
            each.linkage = "internal"
    entry = module.get_function(result.fndesc.mangled_name)
    entry.name = _SYMBOL + key
    entry.linkage = "external"
    description = result.fndesc
    if any(map(is_by_address, description.argtypes)):
        add_entry(module, cpu_target.target_context, entry.name, description.restype, description.argtypes)
    library = codegen.create_library(entry.name)
    library.is_linked_only = False
    library._final_module = module
    library._optimize_functions(module)
    library._optimize_final_module()
    module = library._final_module
    own = (each for each in module.functions if each.name != entry_by_address(entry.name))
    if not calls_another and sum(map(_size, own)) <= _MOST_INLINED:
        return None
    if any(each.name.startswith((_ENVIRONMENT, _ADDRESS)) for each in module.global_variables):
        return None  # it asks for Python objects
    # A function within may have other arguments than before, and would be taken for another module's of the same name.
    for number, each in enumerate((*module.functions, *module.global_variables)):
        if each.linkage in _LOCAL:
            each.name = f"{_SYMBOL}{key}.{number}"
    module.verify()
    return bytes(codegen._tm.emit_object(module))


def _size(function: Any) -> int:
    return sum(1 for block in function.blocks for _ in block.instructions)


# ------------------------------------------------------------------------------------------------------------- reading


class _Kept(NamedTuple):
    """The content of a file. The `rest`, pickled, is what Numba asks for where a new function calls the helper."""

    code: bytes
    is_called: bool
    has_second_entry: bool
    needed: list[str]
    rest: bytes


def _read(key: str, data: bytes) -> Any:
    kept = _with_code(key, data)
    if kept is None:
        return None
    try:
        description, signature, environments = pickle.loads(kept.rest)
        codegen = cpu_target.target_context.codegen()
        library = _called(codegen, key) if kept.is_called else _linked(codegen, key, kept.code)
        library._reload_init.update(_Needed(each) for each in kept.needed if each.startswith(_SYMBOL))
    except Exception:  # of any kind: a file may hold anything
        return None
    made = tuple(environment_named(name, constants) for name, constants in environments)
    _loaded[key] = found = result_of(library, description, signature, made)
    return found


def _with_code(key: str, data: bytes) -> _Kept | None:
    """Return the content of a file, once what the code needs is loaded, and the code itself if it is called."""
    try:
        kept = pickle.loads(data)
        if any(each.startswith(_ROUTINES) for each in kept.needed):
            load_blas()
        context = cpu_target.target_context
        rtsys.initialize(context)
        if not all(map(is_loaded, kept.needed)):
            refresh()
            if not all(map(is_loaded, kept.needed)):
                return None
        if kept.is_called:
            _add_code(context.codegen(), _SYMBOL + key, kept.code, kept.has_second_entry)
    except Exception:  # of any kind: a file may hold anything
        return None
    return kept  # type: ignore[no-any-return]


def result_of(
    library: Any,
    description: Any,
    signature: Any,
    environments: tuple[Any, ...],
    entry_point: Any = None,
    environment: Any = None,
) -> Any:
    """Return what Numba would have returned for a function whose code was read."""
    return CompileResult(  # type: ignore[call-arg]
        typing_context=cpu_target.typing_context,
        target_context=cpu_target.target_context,
        entry_point=entry_point,
        typing_error=None,
        type_annotation="",
        signature=signature,
        library=library,
        call_helper=None,
        environment=environment,
        metadata=None,
        lifted=(),
        fndesc=description,
        objectmode=False,
        reload_init=list(library._reload_init),
        referenced_envs=environments,
    )


def environment_named(name: str, constants: list[object]) -> Any:
    """Return the environment of a symbol, which is made if there is none."""
    environment = lookup_environment(name)
    if environment is None:
        environment = Environment({"__name__": __name__})  # a module that can be imported, as callers are written too
        environment.consts.extend(constants)
        environment.env_name = name
        Environment._memo[name] = environment
    return environment


def is_loaded(symbol: str) -> bool:
    """Return whether there is a symbol; machine code of a helper is loaded for it."""
    if llvm.address_of_symbol(symbol) is not None:
        return True
    if not is_called_helper(symbol):
        return False
    if _present is None:
        begin_helpers()
    key = symbol_of_helper(symbol).removeprefix(_SYMBOL)
    data = None if _present is None else _present.place.read(_file(key))
    return data is not None and _with_code(key, data) is not None and llvm.address_of_symbol(symbol) is not None


def is_called_helper(symbol: str) -> bool:
    """Return whether a symbol is one of a helper that is called."""
    return symbol.startswith(_SYMBOL)


def _add_code(codegen: Any, name: str, code: bytes, has_second_entry: bool) -> None:
    """Load machine code and make its entries known, once in a process."""
    if llvm.address_of_symbol(name) is not None:
        return
    engine = codegen._engine
    engine._ee.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    for symbol in (name, entry_by_address(name))[: 2 if has_second_entry else 1]:
        llvm.add_symbol(symbol, engine._ee.get_function_address(symbol))


def _called(codegen: Any, key: str) -> Any:
    """Return a library whose function is called by its address."""
    name = _SYMBOL + key
    library = codegen.create_library(name)
    library.is_linked_only = True
    library._shared_module = _nothing()
    library._reload_init.add(_Needed(name))
    library._finalized = True
    return library


def _linked(codegen: Any, key: str, code: bytes) -> Any:
    """Return a library that is linked into its callers."""
    library = codegen.create_library(_SYMBOL + key)
    library.is_linked_only = True
    library._final_module = llvm.parse_bitcode(code)
    library._finalized = library._is_bare = True
    return library


@functools.cache
def _nothing() -> Any:
    """Return a module that adds nothing to what it is linked into."""
    return llvm.parse_assembly("declare void @llvm.donothing()")


@dataclass(frozen=True, slots=True)
class _Needed:
    """A helper that machine code calls; it is pickled with that."""

    symbol: str

    def __call__(self) -> None:
        """Do nothing: Numba calls objects that are stored with machine code when it has been read."""

    def __reduce__(self) -> Any:
        return _load_needed, (self.symbol,)


def is_kept(library: Any) -> bool:
    """Return whether a library cannot do without helpers on disk."""
    return any(type(each) is _Needed for each in library._reload_init)


def are_helpers(loaded_before: Iterable[object]) -> bool:
    """Return whether what has to be loaded before some machine code are helpers only."""
    return all(type(each) is _Needed for each in loaded_before)


def _load_needed(symbol: str) -> _Needed:
    if not is_loaded(symbol):
        raise OSError(f"{symbol} is not there")
    return _Needed(symbol)
