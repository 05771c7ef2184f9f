"""Dispatchers, and what Numba says of values and types.

dispatcher = make_dispatcher(stub, implement, {"fastmath": True})
dispatcher(2.0)                                  # implement((float64,)) gives the function to compile
llvm_text(dispatcher, (types.float64,))
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import typeof_impl

from zygote_py.adjoints.errors import refuse
from zygote_py.given import calling
from zygote_py.ir.core import Type
from zygote_py.numba_adapter import late  # noqa: F401 (makes dataclasses known)
from zygote_py.numba_adapter.decorations import is_from_source, is_plainly_decorated, locals_of, signatures_of
from zygote_py.numba_adapter.entries import hide_warnings_of_emitted
from zygote_py.numba_adapter.internals import CPUDispatcher, Dispatcher, cpu_target, errors, global_compiler_lock
from zygote_py.numba_adapter.internals import typeof as numba_typeof
from zygote_py.numba_adapter.stored import Code, Stored
from zygote_py.numba_adapter.unknown import unknown

Options = Mapping[str, object]

# Held by whoever compiles, Numba and we; there is no other, or two threads might wait for each other.
COMPILER_LOCK: Any = global_compiler_lock


def make_dispatcher(
    stub: Callable[..., object],
    implement: Callable[[tuple[Type, ...]], Callable[..., object]],
    options: Options,
    code: Code | None = None,
    misfit: Callable[[Sequence[Any], Mapping[str, Any]], Exception] | None = None,
) -> Any:
    """A Numba dispatcher with the signature of `stub` that compiles `implement(argument types)` for each signature.

    Among the argument types may be `types.Omitted` for a default that was not given. Machine code is kept in `code`.
    Where compiled code calls it with arguments that do not fit the signature, it raises what `misfit` gives for them.
    """
    dispatcher: Any = decorated(stub, options)
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
    if code is not None and isinstance(dispatcher, Dispatcher):
        vars(dispatcher)["_cache"] = Stored(code)
    return dispatcher


def refuse_functions(dispatcher: Any) -> None:
    """Let a dispatcher that is called from Python refuse functions as arguments: they are to be wrapped before."""
    if is_dispatcher(dispatcher) and "_compile_for_args" not in vars(dispatcher):
        compile_for = dispatcher._compile_for_args
        vars(dispatcher)["_compile_for_args"] = functools.partial(_compiled_for, compile_for)


def _compiled_for(compile_for: Callable[..., object], *args: Any, **kwargs: Any) -> object:
    if not all(map(is_plain, args)):
        from zygote_py.numba_adapter.functions import holds_functions

        if any(map(holds_functions, args)):
            raise TypeError("functions as arguments are to be wrapped")
    return compile_for(*args, **kwargs)


def warn(message: str) -> None:
    """Warn as Numba does."""
    warnings.warn(message, errors.NumbaWarning, stacklevel=3)


def link_along(dispatcher: Any, make: Callable[[tuple[Type, ...], bool], Callable[[], None]]) -> None:
    """Let what `make` gives for a signature go with its machine code, into what Numba keeps on disk for callers.

    It is pickled with the code of a caller, and called when that has been read. `make` is told whether the code can be
    read at all: Numba links functions that call one another when they are compiled, and not when they are read.
    """
    if not is_dispatcher(dispatcher):
        return
    add = dispatcher.add_overload

    def adding(compiled: Any) -> None:
        if not compiled.objectmode:
            module = compiled.library._final_module
            names = (each.name for each in (*module.functions, *module.global_variables))
            is_whole = not any(name.startswith(".numba.unresolved") for name in names)
            compiled.library._reload_init.add(make(tuple(compiled.signature.args), is_whole))
        add(compiled)

    vars(dispatcher)["add_overload"] = adding


def is_from_cache(dispatcher: Any, signature: tuple[Type, ...]) -> bool:
    """Whether the machine code for a signature was read and not compiled: then there is no LLVM IR of it."""
    return bool(dispatcher._cache_hits[signature])


_overruled: list[bool] = []  # what `DISABLE_JIT` was before it was set aside


def jit_is_disabled() -> bool:
    """Whether `NUMBA_DISABLE_JIT` is set: functions run in the interpreter then."""
    return bool(numba.config.DISABLE_JIT) or any(_overruled)  # type: ignore[attr-defined]


@contextmanager
def jit_enabled() -> Iterator[None]:
    """Enable Numba for a while, for the thread that holds the lock: `jit_is_disabled` still says what the user set."""
    settings: Any = numba.config
    disabled = settings.DISABLE_JIT
    _overruled.append(bool(disabled))
    settings.DISABLE_JIT = 0
    try:
        yield
    finally:
        settings.DISABLE_JIT = disabled
        _overruled.pop()


def decorated(function: Callable[..., object], options: Options) -> Any:
    """A function decorated with `numba.njit`."""
    decorate: Any = numba.njit
    return decorate(**options)(function)


def typeof(value: object) -> Type:
    """The Numba type of a value. Raises DifferentiationError if Numba has none for it."""
    try:
        found: Type = numba_typeof(value)
        return found
    except (ValueError, errors.NumbaError):
        what, hint = unknown(value)
        raise refuse(f"{what} is not supported", None, hint) from None


_PLAIN = frozenset({float, int, bool, str, complex, type(None), np.ndarray})


def is_plain(value: object) -> bool:
    """Whether a value is a number, an array or a text: nothing that has to be wrapped, and no structure."""
    return type(value) in _PLAIN or isinstance(value, np.generic)


_COMPILE_TIME = (
    types.Callable,
    types.Module,
    types.DType,
    types.EnumClass,
    types.ExceptionInstance,
    types.IteratorType,
    types.Pair,
    types.MakeFunctionLiteral,
    types.TypeRef,
)


def is_compile_time(type: Type) -> bool:
    """Whether values of this type are known while compiling, as functions, modules and the state of loops are."""
    known = isinstance(type, _COMPILE_TIME) or type == types.code_type
    return known and not isinstance(type, types.FunctionType)


def object_of(type: Type) -> object:
    """The Python object that is the only value of a compile-time type; None if there is no such object."""
    match type:
        case types.Dispatcher():
            return type.dispatcher
        case types.Module():
            return type.pymod
        case types.NumberClass():
            return getattr(np, type.instance_type.name, None) if type.instance_type != types.boolean else bool
        case types.DType():
            return np.dtype(str(type.dtype))
        case types.NamedTupleClass() | types.EnumClass():
            return type.instance_class
        case types.ExceptionClass():
            return type.exc_class
        case types.Function():
            return type.typing_key
        case types.TypeRef() if type.instance_type is types.ListType:
            return numba.typed.List
        case _:
            return None


def is_dispatcher(value: object) -> bool:
    """Whether `value` is a function that was decorated with `numba.njit`."""
    return isinstance(value, Dispatcher)


def is_plain_dispatcher(value: Any) -> bool:
    """Whether a decorated function is compiled from its Python function, and from nothing else."""
    return type(value) is CPUDispatcher and is_from_source(value)


def py_func_of(value: Any) -> Callable[..., object]:
    """The Python function behind a dispatcher; a plain function is its own."""
    return value.py_func if isinstance(value, Dispatcher) else value  # type: ignore[no-any-return]


def called_function(value: Any) -> Any:
    """What to call for the source of a function: the Python function, or what takes arguments in a way of its own."""
    from zygote_py.numba_adapter.sources import has_source, takes_as_given

    return value if has_source(value) and not takes_as_given(value) else py_func_of(value)


def differentiated_function(value: Any) -> Callable[..., object]:
    """The Python function to differentiate for a callable: its source, or a function that calls it."""
    from zygote_py.numba_adapter.sources import has_source, python_source

    called = called_function(value)
    if called is not value or not has_source(value):
        return called  # type: ignore[no-any-return]
    made: Any = calling(value, python_source(value))
    made.called_directly = value
    return made  # type: ignore[no-any-return]


def arguments_of_decorator(value: Any) -> dict[str, object]:
    """What `numba.njit` was given besides the function, for a decorated one."""
    found = options_of(value)
    if is_from_source(value) and not is_plainly_decorated(value):
        signatures = signatures_of(value)
        found |= {"locals": dict(locals_of(value))}
        found |= {} if signatures is None else {"signature_or_function": list(signatures)}
    return found


def options_of(value: Any) -> dict[str, object]:
    """The Numba options that a dispatcher was made with, `nopython` apart; none for a plain function."""
    if not isinstance(value, Dispatcher):
        return {}
    options: dict[str, object] = value.targetoptions
    return {name: option for name, option in options.items() if name != "nopython" and option is not None}


def register_as_dispatcher(cls: type, getter: Callable[[Any], Any]) -> None:
    """Make the objects of a class callable from compiled code, each as the dispatcher that `getter` gives for it."""

    @typeof_impl.register(cls)
    def type_of_object(value: object, context: object) -> Type:
        dispatcher = getter(value)
        _made_for[dispatcher] = weakref.ref(value)
        return types.Dispatcher(dispatcher)

    _made_classes.append(cls)


_made_classes: list[type] = []
_made_for: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = weakref.WeakKeyDictionary()


def is_made(value: object) -> bool:
    """Whether a value is an object of a class that was registered as a dispatcher."""
    return isinstance(value, tuple(_made_classes))


def made_for(dispatcher: object) -> Any:
    """The object whose dispatcher in compiled code this is; None for any other."""
    found = _made_for.get(dispatcher) if isinstance(dispatcher, Dispatcher) else None
    return None if found is None else found()


def refresh() -> None:
    """Let Numba look at what it has been told: it may be compiling just now a function that asks for it."""
    context: Any = cpu_target
    context.typing_context.refresh()
    context.target_context.refresh()


def _function_text(text: str, name: str, start: str, end: str) -> str:
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if line.startswith(start) and name in line:
            last = next(i for i in range(index, len(lines)) if lines[i].startswith(end))
            return "\n".join(lines[index : last + 1])
    raise KeyError(name)


def llvm_text(dispatcher: Any, signature: tuple[Type, ...]) -> str:
    """The optimised LLVM IR of the native function that was compiled for a signature, without its CPython wrappers."""
    compiled = dispatcher.overloads[signature]
    return _function_text(compiled.library.get_llvm_str(), compiled.fndesc.mangled_name, "define ", "}")


def asm_text(dispatcher: Any, signature: tuple[Type, ...]) -> str:
    """The machine code of the native function that was compiled for a signature, without its CPython wrappers."""
    compiled = dispatcher.overloads[signature]
    name = compiled.fndesc.mangled_name
    return _function_text(compiled.library.get_asm_str(), name, name, "\t.size\t" + name)
