"""Machine code on disk: what Numba made of an emitted function, written and read without asking Numba to compile.

    dispatcher._cache = Stored(code_of)     # what `code_of` gives for a signature names and keeps its machine code

Numba's own cache does the same for functions in files, and first imports all that compiling needs. Here nothing of that
is imported: the code needs symbols only. Code is kept only if it can stand by itself in another process: if it holds no
addresses, and every function in it has a name that no function of any other process has.
"""

from __future__ import annotations

import copy
import io
import itertools
import pickle
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any, Protocol

import llvmlite.binding as llvm
import numba
from numba import types

from zygote_py.base import structures
from zygote_py.numba_adapter.base import refresh
from zygote_py.numba_adapter.base.internals import (
    AppDirs,
    _Cache,
    imputils,
    lookup_environment,
    rtsys,
    templates,
)
from zygote_py.numba_adapter.linking import (
    SMALLEST_NUMBER,
    UNRESOLVED,
    environment_named,
    is_loaded,
    known_functions,
    load_together,
    recursive_callees,
    result_of,
)


class Code(Protocol):
    """Where the machine code of a function is kept."""

    def name_of(self, signature: tuple[Any, ...], machine: str) -> str:
        """The name for a signature, and a description of the machine."""

    def read(self, name: str) -> bytes | None:
        """Return the data that was written under a name; None if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Keep something under a name."""


# --------------------------------------------------------------------------------------------------- names of functions

_NUMBER = re.compile(r"B\d+v(\d+)")
# What is the same wherever it has the same name. What is LLVM's own is not in machine code.
_BY_TYPE = re.compile(
    r"llvm\.|NRT_(incref|decref)$|\.dtor\.|_numba_(list|dict)_dtor$|zygote_py\.overlap$|_Dtor\.numba\.KeptType"
)


def _symbols(library: Any) -> Iterator[Any]:
    module = library._final_module
    yield from module.functions
    yield from module.global_variables


def _is_named_uniquely(symbol: str) -> bool:
    found = _NUMBER.search(symbol)
    return bool(_BY_TYPE.match(symbol)) if found is None else int(found[1]) >= SMALLEST_NUMBER


# In machine code, what Numba pickled of the main program: with the whole of its classes, which the next process has.
_OF_MAIN = b"\x8c\x08__main__"

# ----------------------------------------------------------------------------------------------------- writing, reading


class _Holder:
    """Code that is in this process; alive as long as a dispatcher has it. It must not be in it twice."""

    def __init__(self, result: Any, needed: tuple[object, ...]) -> None:
        self.result = result
        self.needed = needed


_held: weakref.WeakValueDictionary[str, _Holder] = weakref.WeakValueDictionary()


class Stored(_Cache):
    """The cache of one dispatcher, in the form that Numba's dispatchers ask for."""

    def __init__(self, code_of: Callable[[tuple[Any, ...]], Code | None]) -> None:
        self._code_of = code_of  # None for what is not kept
        self._holders: list[_Holder] = []

    @property
    def cache_path(self) -> None:
        """Numba asks for a folder, to show it."""
        return None

    def enable(self) -> None:
        """Numba may ask for this."""

    def disable(self) -> None:
        """Numba may ask for this."""

    def flush(self) -> None:
        """Numba may ask for this."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored code for a signature, or None. Numba's lock is held."""
        signature = _argument_types(sig)
        if (code := self._code_of(signature)) is None:
            return None
        name = code.name_of(signature, _machine(target_context))
        holder = known = _held.get(name)
        if known is not None and not all(map(structures.is_current, _classes_in(known.result.signature))):
            return None
        if holder is None and (data := code.read(name)) is not None:
            with suppress(Exception):  # of any kind: a file may hold anything
                holder = _read(data, target_context)
        if holder is None:
            return None
        _held[name] = holder
        self._holders.append(holder)
        return holder.result if known is None else _again(holder.result, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write what was compiled for a signature, if it can be read again."""
        signature = _argument_types(sig)
        if (code := self._code_of(signature)) is None:
            return
        name = code.name_of(signature, _machine(data.target_context))
        if name in _held:
            return
        try:
            written = _written(data)
        except Exception:  # what cannot be pickled
            return
        if written is not None:
            code.write(name, written)
            _held[name] = holder = _Holder(data, ())
            self._holders.append(holder)


def _classes_in(kind: Any) -> Iterator[type]:
    """Yield the classes of structures in a type, or a signature."""
    if isinstance(kind, templates.Signature):
        for each in (kind.return_type, *kind.args):
            yield from _classes_in(each)
    elif isinstance(kind, types.EnumMember):
        yield kind.instance_class
    elif isinstance(kind, types.BaseTuple):
        if isinstance(cls := getattr(kind, "instance_class", None), type):
            yield cls
        for each in getattr(kind, "types", ()):
            yield from _classes_in(each)


def _argument_types(sig: Any) -> tuple[Any, ...]:
    return tuple(sig.args) if hasattr(sig, "args") else tuple(sig)


def _machine(target_context: Any) -> str:
    return repr(target_context.codegen().magic_tuple())


def _written(result: Any) -> bytes | None:
    if result.objectmode or result.lifted or not all(_is_ours(_home(each)) for each in result.reload_init):
        return None
    recursive = recursive_callees(result.library)
    libraries = [result.library, *recursive.values()]
    if any(library.has_dynamic_globals for library in libraries):
        return None
    symbols = [each for library in libraries for each in _symbols(library)]
    local = (llvm.Linkage.internal, llvm.Linkage.private)
    if not all(each.is_declaration or each.linkage in local or _is_named_uniquely(each.name) for each in symbols):
        return None
    needed = {each.name for each in symbols if each.is_declaration}
    names = sorted({each.name for each in symbols if each.name.startswith("_ZN08NumbaEnv")})
    found = {name: lookup_environment(name) for name in names}
    environments = tuple((name, list(each.consts)) for name, each in found.items() if each is not None)
    description = copy.copy(result.fndesc)
    description.typemap = description.calltypes = description.global_dict = None
    needed = {name for name in needed if not name.startswith(("llvm.", UNRESOLVED))}
    codes = [library.serialize_using_object_code() for library in libraries]
    if any(_OF_MAIN in code[2][0] for code in codes):
        return None
    start = {*result.reload_init, *(each for library in recursive.values() for each in library._reload_init)}
    return pickled((codes, list(recursive), description, result.signature, environments, needed, start))


def pickled(value: object) -> bytes:
    """Pickle a value for other processes. Raises PicklingError if it refers to what they do not have."""
    out = io.BytesIO()
    _Pickler(out).dump(value)
    return out.getvalue()


class _Pickler(pickle.Pickler):
    """Of functions and classes only those that are found again by their names."""

    def reducer_override(self, obj: Any) -> Any:
        """Refuse what another process has another of. Structures of the main program count by their fields as well."""
        if isinstance(obj, type | FunctionType) and obj.__module__ == "__main__":
            if (
                isinstance(obj, type)
                and structures.is_current(obj)
                and (fields := structures.fields_of(obj)) is not None
            ):
                return _structure_named, (obj.__module__, obj.__qualname__, fields)
            raise pickle.PicklingError(f"{obj} is of the main program")
        return NotImplemented


def _structure_named(module: str, name: str, fields: tuple[str, ...]) -> Any:
    found = structures.found_by_name(module, name)
    if not isinstance(found, type) or structures.fields_of(found) != fields:
        raise pickle.UnpicklingError(f"{module}.{name} has changed")
    return found


def _read(data: bytes, target_context: Any) -> _Holder | None:
    codes, recursive, description, signature, environments, needed, start = pickle.loads(data)
    rtsys.initialize(target_context)
    for each in start:  # threads, with the symbols of functions that run them
        each()
    if not all(map(is_loaded, needed)):
        refresh()
        if not all(map(is_loaded, needed)):
            return None
    library, *others = load_together(target_context.codegen(), codes, recursive)
    made = []
    for name, constants in environments:
        environment = environment_named(name, constants)
        if not all(map(_is_same, environment.consts, constants)):
            return None
        made.append(environment)
        library.codegen.set_env(name, environment)
    own = next((each for each in made if each.env_name == target_context.get_env_name(description)), None)
    library._reload_init.update(start)  # what callers need as well that Numba writes to its own cache
    entry = target_context.get_executable(library, description, own)
    result = result_of(library, description, signature, tuple(made), entry, own)
    return _Holder(result, (*made, *others))


def _is_same(one: object, other: object) -> bool:
    """Return whether constants are the same, of which classes may have been defined again."""
    return one is other or not (isinstance(one, type) or isinstance(other, type))


def _again(result: Any, target_context: Any) -> Any:
    """Return loaded code for one more dispatcher, with its own entry point, which Numba drops with it."""
    entry = target_context.get_executable(result.library, result.fndesc, result.environment)
    return result._replace(entry_point=entry, metadata=None)


# ----------------------------------------------------------------------------------- what else machine code depends on

_WORDS = """
    DISABLE_JIT CACHE_DIR CACHE_LOCATOR_CLASSES NUMBA_NUM_THREADS NUMBA_DEFAULT_NUM_THREADS COLOR_SCHEME
    RUNNING_UNDER_PROFILER FULL_TRACEBACKS SHOW_HELP GDB_BINARY DEBUG_CACHE FUNCTION_CACHE_SIZE
"""
_HARMLESS = frozenset(_WORDS.split())


def settings() -> str:
    """Numba's settings and the functions of vectors that there are: both may change what is compiled."""
    found = vars(numba.config)
    names = sorted(name for name in found if name.isupper() and name not in _HARMLESS and not name.startswith("CUDA"))
    return f"{[(name, found[name]) for name in names]!r} {known_functions()}"


def is_extended() -> bool:
    """Return whether another package has extended Numba, by `@overload` for one."""
    known, lowered = templates.builtin_registry, imputils.builtin_registry
    of_code = (lowered.functions, lowered.getattrs, lowered.setattrs, lowered.casts, lowered.constants)
    return not (
        _are_ours(known.functions, _module_of)
        and _are_ours(known.attributes, _module_of)
        and _are_ours(known.globals, lambda entry: _module_of(entry[1] if isinstance(entry, tuple) else entry))
        and all(_are_ours(entries, lambda entry: _home(entry[0])) for entries in of_code)
    )


_ours: dict[int, int] = {}  # how many entries at the start of a list of Numba's are, by the identity of the list


def _are_ours(entries: list[Any], home: Callable[[Any], str]) -> bool:
    """Return whether no other package has added to a list that only grows."""
    known = _ours.get(id(entries), 0)
    if not all(_is_ours(home(entry)) for entry in itertools.islice(entries, known, None)):
        return False
    _ours[id(entries)] = len(entries)
    return True


def _module_of(template: Any) -> str:
    function = getattr(template, "_overload_func", None) or getattr(template, "_definition_func", None)
    if function is None and template.__module__ == "abc":  # made by `type_callable`, of a function that it holds
        cells = getattr(template.generic, "__closure__", None) or ()
        function = next((cell.cell_contents for cell in cells if isinstance(cell.cell_contents, FunctionType)), None)
    return _home(template if function is None else function)


def _home(function: Any) -> str:
    """The module of a function or a class; empty if it is not known."""
    found = getattr(function, "__globals__", {}).get("__name__") or getattr(function, "__module__", None)
    return str(found or "")


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("numba", "zygote_py")


def user_cache_folder() -> str:
    """Where this platform wants caches to be."""
    return str(AppDirs(appname="zygote_py", appauthor=False).user_cache_dir)
