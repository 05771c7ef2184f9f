"""How a function was decorated: its options, the types of its local variables, and the signatures that it is fixed to.

    @njit("f8(f8)", fastmath=True)      chosen(f, (int64,))     # (float64,), Decoration(fastmath, result=float64)
    def f(x): ...

A function with signatures is compiled for these and for no others. What a call of it does is chosen as Numba chooses
it: the signature whose conversions are the cheapest, the first of equals; arguments are converted to its types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numba import types

from zygote_py.ir import Type, leaf_types
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base.internals import (
    CPUDispatcher,
    Dispatcher,
    cpu_target,
    dispatcher,
    errors,
    make_concrete_template,
)

# The options that steer what the code computes; the others are about how it is compiled.
SEMANTIC_OPTIONS = ("fastmath", "error_model", "boundscheck")
_OFF = {"fastmath": False, "error_model": "python", "boundscheck": False, "parallel": False}
_DEFAULTS = (None, False, "python")
_PLAIN_COMPILER: object = vars(dispatcher)["_FunctionCompiler"]


@dataclass(frozen=True, slots=True)
class Decoration:
    """The options of a function besides its source: `result` is None where Numba infers it."""

    options: tuple[tuple[str, object], ...] = ()
    locals: tuple[tuple[str, Type], ...] = ()
    result: Type | None = None

    @property
    def inherited(self) -> Decoration:
        """The part that applies to inner functions, and to undecorated ones that are called."""
        return Decoration(self.options)


def own_options(options: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """The options of a function that its caller's do not replace: `parallel` too, for its loops over `prange`."""
    return (*semantic(options), *((("parallel", True),) if options.get("parallel") else ()))


def semantic(options: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """The options that steer what is computed, as far as they are not what Numba does anyway."""
    found = {name: _hashable(options.get(name)) for name in SEMANTIC_OPTIONS}
    return tuple((name, option) for name, option in found.items() if option not in _DEFAULTS)


def _hashable(option: object) -> object:
    """Return an option whose flags, if it has any, are a frozen set."""
    match option:
        case dict():
            return frozenset(flag for flag, is_set in option.items() if is_set)
        case set():
            return frozenset(option)
        case _:
            return option


def options_within(options: Mapping[str, object], how: Decoration) -> dict[str, object]:
    """The options of a function in what is compiled with others: those of how it is computed are its own."""
    own = {name: set(each) if isinstance(each, frozenset) else each for name, each in how.options}
    return {name: own.get(name, _OFF[name]) if name in _OFF else option for name, option in options.items()} | own


def py_func_of(value: Any) -> Callable[..., object]:
    """Return the Python function of a dispatcher; a plain function is returned as it is."""
    return value.py_func if isinstance(value, Dispatcher) else value  # type: ignore[no-any-return]


def is_from_source(value: Any) -> bool:
    """Whether this is a decorated function whose Python source says what it does."""
    if not isinstance(value, CPUDispatcher):
        return False
    known: Any = value
    plain = type(known._compiler) is _PLAIN_COMPILER and "_get_implementation" not in vars(known._compiler)
    return plain and inspect.isfunction(known.py_func) and bool(known._can_compile or known.nopython_signatures)


def signatures_of(value: Any) -> tuple[Any, ...] | None:
    """The signatures that a decorated function is fixed to; None if Numba compiles it for any types."""
    return None if value._can_compile or is_always_inlined(value) else tuple(value.nopython_signatures)


def locals_of(value: Any) -> tuple[tuple[str, Type], ...]:
    """The types of local variables that a decorated function was given."""
    return tuple(sorted(value._compiler.locals.items()))


def is_always_inlined(value: Any) -> bool:
    """Whether Numba puts the source into the place of a call, so that nothing else of the function matters."""
    return isinstance(value, Dispatcher) and value.targetoptions.get("inline") == "always"


def is_plainly_decorated(value: Any) -> bool:
    """Whether a decorated function takes any types, and its local variables too."""
    return signatures_of(value) is None and not locals_of(value)


def is_as_undecorated(value: Any) -> bool:
    """Whether a decorated function is compiled as one is that is not decorated."""
    return is_plainly_decorated(value) and decoration_of(value) in (None, Decoration())


def decoration_of(value: Any) -> Decoration | None:
    """How a decorated function is compiled, whatever its arguments; None for what is compiled as its caller is."""
    return None if is_always_inlined(value) else Decoration(own_options(value.targetoptions), locals_of(value))


def chosen(value: Any, given: tuple[Type, ...]) -> tuple[tuple[Type, ...], Decoration | None]:
    """The types that a decorated function takes arguments of these types as, and how it is compiled for them.

    Raises numba's TypingError if there is no signature that they can be converted to.
    """
    decoration = decoration_of(value)
    signatures = signatures_of(value)
    if signatures is None or decoration is None:
        return tuple(map(types.unliteral, given)), decoration
    name = value.py_func.__name__
    template: Any = make_concrete_template(f"CallTemplate({name})", key=name, signatures=list(signatures))
    found = template(cpu_target.typing_context).apply(given, {})
    if found is None:
        raise errors.TypingError(misfit_text(name, [each.args for each in signatures], given))
    # functions have types of this package in a session
    is_function = any(isinstance(leaf, types.Callable | types.FunctionType) for leaf in leaf_types(found.return_type))
    return tuple(found.args), replace(decoration, result=None if is_function else found.return_type)


def misfit_text(name: str, known: Sequence[Sequence[Type]], given: Sequence[Type]) -> str:
    """Return the message for a call that fits none of the signatures of a function."""
    shown = " and ".join(f"({', '.join(map(str, each))})" for each in known)
    asked = ", ".join(str(types.unliteral(each)) for each in given)
    return f"`{name}` was compiled for {shown} only, and is called with ({asked})"


def is_ambiguous(value: Any, given: tuple[Type, ...]) -> bool:
    """Whether several signatures fit arguments equally well: called from Python, Numba raises an error then."""
    signatures = signatures_of(value) if is_from_source(value) else None
    try:
        if signatures:
            name = value.py_func.__name__
            cpu_target.typing_context.resolve_overload(name, signatures, given, {}, allow_ambiguous=False)
    except TypeError:
        return True
    return False
