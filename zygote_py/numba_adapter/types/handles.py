"""Functions that a differentiated function calls: typed by our own inference, to be inlined by the front end.

Numba refuses to call a plain Python function, and compiles a decorated one to native code only to learn what it
returns. In their place the pipeline sees a `Callee`, whose type answers a call with `typed_function` of its own.

    def f(x):                          $1 = global(square: <function square>)
        return square(x) + 1.0         $2 = call $1(x)            # Callee(square), typed for (float64,)
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType, MappingProxyType
from typing import Any

from numba import types

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import Checkpointed, calling, statements as st
from zygote_py.ir import Loc, Type, is_helper, leaf_types
from zygote_py.numba_adapter.base import (
    Decoration,
    definition_of,
    is_always_inlined,
    is_from_source,
    known_type,
    note_calls,
    own_options,
)
from zygote_py.numba_adapter.base.internals import cpu_target, errors, signature
from zygote_py.numba_adapter.sources.python_sources import (
    ResolvedFunction,
    has_source,
    overloaded_function,
    overloaded_member,
    python_source,
    takes_as_given,
)
from zygote_py.numba_adapter.sources.resolution import find, signature_of_source
from zygote_py.numba_adapter.types.callables import HandleType, Same, StandIn, bound_arguments

Typer = Callable[["TypingContext", Callable[..., object], tuple[Type, ...], Decoration | None], st.TypedFunction]
_numbers = itertools.count()


class TypingContext(Same):
    """The typing of one function and of the functions that it calls, each once for the types of its arguments.

    Where all captured values are constants, as those of our own library are, they are `frozen`. Numbers in captured
    tuples are constants as a rule; where gradients may be asked for of these, `tuple_floats_are_inputs`.

    A function that is called while it is being typed, a recursive one, is assumed to return what the paths of it
    return that do not depend on that call; if in the end it returns something else, it is typed again, assuming that.
    """

    def __init__(
        self,
        typer: Typer,
        frozen: bool = False,
        tuple_floats_are_inputs: bool = False,
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self.typer = typer
        self.options = options
        self.frozen = frozen
        self.tuple_floats_are_inputs = tuple_floats_are_inputs
        self.number = next(_numbers)
        self.deriving: set[object] = set()  # the derivatives that are being made
        self.noted: dict[object, st.Capture] = {}  # what functions and classes are made of, which may be assigned to
        self.choosing: dict[object, Callable[..., Any]] = {}  # by the rule, what to make of functions of two paths
        self._made: dict[object, Any] = {}
        self._typed: dict[_Key, st.TypedFunction] = {}
        self._active: list[_Key] = []  # those being typed right now
        self._assumed: dict[_Key, Type] = {}
        self._asked: set[_Key] = set()  # those whose result is being looked for
        self._failed: list[DifferentiationError] = []  # of arguments that are `None`, and may yet not be

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """Return what `make` makes for a key, the same object at each call."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def decoration(self, how: Decoration | None) -> Decoration | None:
        """How a function is compiled; None if that is what is compiled for the session anyway."""
        is_same = how is None or (not how.locals and how.result is None and how.options == own_options(self.options))
        return None if is_same else how

    def typed(
        self, func: Any, argument_types: tuple[Type, ...], how: Decoration | None = None, again: bool = False
    ) -> st.TypedFunction:
        """Return a function for these argument types, and the way it is decorated; with `again` it has a checkpoint.

        Raises DifferentiationError.
        """
        key = func, argument_types, self.decoration(how)
        attempts = 0
        while key not in self._typed:
            before = dict(self._typed)
            self._active.append(key)
            if len(self._active) > _DEEPEST:
                raise refuse(
                    "the calls of these nest too deeply; or a recursive function is called with new types each time",
                    Loc(func.__code__.co_filename, func.__code__.co_firstlineno),
                    f"at most {_DEEPEST} functions may call one another in turn; let `{func.__name__}` keep the types",
                    "def",
                )
            try:
                with _ROOM_FOR_CALLS:
                    typed = self.typer(self, *key)
            except DifferentiationError as error:
                if not self.frozen:
                    note_calls(error, [called for called, *_ in self._active])
                raise
            finally:
                self._active.pop()
            assumed = self._assumed.get(key)
            if assumed is None or assumed == typed.return_type:
                self._typed[key] = typed
            elif (attempts := attempts + 1) == _MOST_ATTEMPTS:
                raise refuse(
                    f"the type that the recursive function `{func.__name__}` returns cannot be found",
                    typed.loc,
                    f"let it return the same type on every path: now {assumed}, and then {typed.return_type}",
                    "def",
                )
            else:
                self._typed = before  # what has been typed since may rest on the assumption
                _forget_failures()
                self._assumed[key] = typed.return_type
        found = self._typed[key]
        return self.once(("again", key), lambda: dataclasses.replace(found, runs_again=True)) if again else found

    def note(self, captures: Iterable[st.Capture]) -> None:
        """Take down what has to be as it is for what is typed to hold."""
        for capture in captures if not self.frozen else ():
            self.noted.setdefault(capture.key, capture)

    def is_active(self, func: object) -> bool:
        """Whether a function is being typed right now."""
        return any(active is func for active, *_ in self._active)

    def united(self, *functions: Type) -> Type | None:
        """The type of a value that is one of several functions in what is being typed; None if there may be none."""
        unite = self.choosing.get(self._active[-1][0]) if self._active else None
        return None if unite is None else unite(*functions)

    def result_type(self, func: Any, argument_types: tuple[Type, ...], how: Decoration | None = None) -> Type:
        """Return the result type for these argument types. Raises numba's TypingError if it cannot be found."""
        key = func, argument_types, self.decoration(how)
        if key not in self._active:
            try:
                return self.typed(*key).return_type
            except DifferentiationError as error:
                if any(isinstance(leaf, types.NoneType) for each in argument_types for leaf in leaf_types(each)):
                    # Numba goes on to type what it can, and may find out that `None` is a value on another path.
                    self._failed.append(error)
                    raise errors.TypingError(f"not for None: failure {len(self._failed)}") from error
                raise
        if how is not None and how.result is not None:
            return how.result
        if key not in self._assumed:
            frames = [frame for frame in cpu_target.typing_context.callstack if frame.func_id.func is func]
            found = None
            if key not in self._asked and frames:
                self._asked.add(key)
                found = frames[0].typeinfer.return_types_from_partial()
                self._asked.remove(key)
                _forget_failures()
            if found is None:
                raise errors.TypingError(
                    f"`{func.__name__}` calls itself, and no path in it returns without doing so; let one return first"
                )
            self._assumed[key] = found
        return self._assumed[key]

    def failure(self, error: Exception) -> DifferentiationError | None:
        """Return the error of a called function, if Numba could not type the call because of it."""
        found = re.search(r"not for None: failure (\d+)", str(error))
        return self._failed[int(found[1]) - 1] if found else None


def _forget_failures() -> None:
    """Let Numba try again what it could not type, now that more is known."""
    cpu_target.typing_context.callstack._fail_cache.clear()


_Key = tuple[Any, tuple[Type, ...], Decoration | None]
_MOST_ATTEMPTS = 8
_DEEPEST = 200  # of functions that call one another
_FRAMES = 50  # of Python's, at most, that Numba needs to type a function within another


class _RoomForCalls:
    """Within this, Python's calls nest as deeply as Numba needs it for the functions that call one another.

    The last thread that leaves restores the limit that the first one found: it is that of all threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._entered == 0:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _DEEPEST * _FRAMES + 2000))
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0:
                sys.setrecursionlimit(self._before)


_ROOM_FOR_CALLS = _RoomForCalls()


_sessions: list[TypingContext] = []  # those at work: one, under Numba's lock, but for sessions within sessions


@contextmanager
def at_work(session: TypingContext) -> Iterator[None]:
    """While Numba types a function for this session: methods are typed as functions that are to be inlined."""
    _sessions.append(session)
    try:
        yield
    finally:
        _sessions.pop()


def current_session() -> TypingContext | None:
    """The session that Numba types a function for; None where Numba compiles for itself."""
    return _sessions[-1] if _sessions else None


class FunctionHandleType(HandleType, types.Opaque):
    """The type of a function that may be called: each function has its own, so that it is known what is called.

    `source` is what it is if not that function itself: a decorated function, or what else has a source (see `sources`).
    Of a function that is compiled as its caller is, `how` says how that is. With `again` it has a checkpoint (see
    `zygote_py.base.checkpoints`): its calls are to be told from others.
    """

    def __init__(
        self, func: Any, session: TypingContext, source: Any = None, how: Decoration | None = None, again: bool = False
    ) -> None:
        self.func = func
        self.source = source
        self.how = session.decoration(how)
        self.again = again
        self._session = session
        what = f"{'checkpoint of ' if again else ''}function {func.__qualname__} at {id(source or func)}"
        super().__init__(f"{what}{'' if self.how is None else f' {self.how}'} in {session.number}")

    def checkpointed(self) -> FunctionHandleType:
        """Return the type of the function with a checkpoint."""
        return FunctionHandleType(self.func, self._session, self.source, self.how, again=True)

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """The function for these argument types."""
        found = self.found(argument_types)
        return self._session.typed(found.func, found.types, found.how, self.again)

    def found(self, given: tuple[Type, ...]) -> ResolvedFunction:
        """Return the Python function that is called with arguments of these types, and its parameter types."""
        if self.source is None:
            return ResolvedFunction(self.func, tuple(map(types.unliteral, given)), self.how)
        found = find(self.source, given, self._session)
        return dataclasses.replace(found, how=self.how) if is_always_inlined(self.source) else found

    @property
    def caller(self) -> Any:
        """A Python function that calls it, where it takes its arguments in ways of its own; else the function."""
        is_called = self.source is None or takes_as_given(self.source)
        return self.func if is_called else self._session.once(self.source, lambda: calling(self.source, self.func))

    def signature(self) -> inspect.Signature | None:
        """The parameters; None if arguments are taken by their places only."""
        return inspect.signature(self.func) if self.source is None else signature_of_source(self.source)

    def unify(self, context: object, other: Type) -> Type | None:
        """Numba asks for a type that holds values of both."""
        return self._session.united(self, other)

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        pysig, folded = self.signature(), tuple(args)
        if pysig is not None:
            folded = fold(pysig, self.func, args, kws, literals=True)
        elif kws:
            raise errors.TypingError(f"`{self.func.__name__}` takes its arguments by their places, without names")
        found = self.found(folded)
        result = self._session.result_type(found.func, found.types, found.how)
        return signature(result, *(found.asked or found.types)).replace(pysig=pysig)


def fold(
    pysig: inspect.Signature,
    func: Any,
    args: Sequence[Type],
    kws: Mapping[str, Type],
    defaults: Mapping[str, Type] = MappingProxyType({}),
    *,
    literals: bool = False,
    name: str = "",
    note: str = "",
) -> tuple[Type, ...]:
    """Return the types of the arguments for the parameters `pysig` of a function, or of what is made of it.

    `defaults` are those that are not constants. With `literals`, it is told of a constant that it is one. Raises
    numba's TypingError, with the `name` of the function and a `note`, for arguments that it does not take.
    """
    bound = bound_arguments(pysig, name or func.__name__, args, kws, note)
    folded: list[Type] = []
    for each, parameter in pysig.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            folded.append(types.BaseTuple.from_types([*map(types.unliteral, bound.get(each, ()))]))
        elif parameter.kind is parameter.VAR_KEYWORD:
            raise refuse(
                "`**kwargs` is not supported", definition_of(func.__code__), "give every parameter a name", "**"
            )
        elif each in bound:
            folded.append(bound[each] if literals else types.unliteral(bound[each]))
        else:
            held = defaults.get(default_of(each))
            folded.append(types.Omitted(parameter.default) if held is None else held)
    return tuple(folded)


def default_of(parameter: str) -> str:
    """The name of the component that holds the default of a parameter."""
    return f"default_of_{parameter}"


def callee_type(function: Any, session: TypingContext) -> FunctionHandleType:
    """The type of a function, decorated or not, that is called without being held by a variable: a method."""
    source = function if has_source(function) else None
    return FunctionHandleType(function if source is None else python_source(function), session, source)


def callee_for(value: Any, session: TypingContext, loc: Loc, how: Decoration | None = None) -> StandIn | None:
    """Return the replacement of a captured function; None for functions that Numba should see themselves.

    A function that is not decorated is compiled as that which captures it: `how` says how that is.
    """
    source = None
    again = isinstance(value, Checkpointed)
    if again:
        value = value.func
    overloaded = None if session.frozen else overloaded_function(value)
    if overloaded is not None:
        source = session.once(("overload", value), lambda: overloaded)
    elif has_source(value):
        source, value = value, python_source(value)
    elif not isinstance(value, FunctionType) or known_type(value) is not None:
        if not again:
            return None
        raise refuse("a checkpoint is for a Python function", loc, "write a function that calls it", "checkpoint")
    if (value.__module__ or "").startswith("_pytest."):
        raise refuse(
            "pytest has rewritten this `assert` into something that is not supported",
            loc,
            "put the function into a module that is not a test",
            "assert",
        )
    return StandIn(FunctionHandleType(value, session, source, how, again))


def checkpoint_type(function: Any, session: TypingContext) -> Type:
    """Return the type of a function of this type with a checkpoint. Raises numba's TypingError if it can have none."""
    handle = handle_of(function, session)
    if handle is None:
        kinds = {"given": "a function with a rule", "this": "a method"}
        what = next((kind for name, kind in kinds.items() if hasattr(function, name)), f"a value of type `{function}`")
        raise errors.TypingError(f"`checkpoint` of {what} is not supported: pass a function that calls it")
    return handle.checkpointed()  # type: ignore[no-any-return]


def overloaded_type(type: Type, name: str, session: TypingContext, accessor: bool = False) -> FunctionHandleType | None:
    """The type of the function that another package gave Numba for a method or an attribute; None if there is none."""
    found = overloaded_member(type, name, accessor)
    if found is None or session.frozen:
        return None
    return callee_type(session.once(found.templates, lambda: found), session)


def handle_of(type: Type, session: TypingContext) -> Any:
    """Return the type of a function that is to be inlined; None for what Numba calls."""
    if isinstance(type, types.Dispatcher) and is_from_source(type.dispatcher):
        return callee_type(type.dispatcher, session)
    return type if isinstance(type, HandleType) and hasattr(type, "typed") else None


def typed_callee(type: Type, argument_types: tuple[Type, ...], session: TypingContext) -> st.TypedFunction | None:
    """The body of a function that a variable of this type holds, if it is to be inlined; a helper is called."""
    handle = handle_of(type, session)
    return None if handle is None or is_helper(handle.func) else handle.typed(argument_types)


def signature_of(type: Any) -> inspect.Signature | None:
    """Return the parameters of a function that is to be inlined; None if arguments are taken by their places only."""
    if isinstance(type, types.Dispatcher):
        return inspect.signature(type.dispatcher.py_func)
    return type.signature()  # type: ignore[no-any-return]


def constant_key(value: Any) -> object:
    """Return a key that distinguishes functions of the same code by their captured values, which are constants."""
    match value:
        case FunctionType():
            cells = tuple(constant_key(cell.cell_contents) for cell in value.__closure__ or ())
            return value.__code__, cells, repr(value.__defaults__)
        case tuple():
            return tuple(map(constant_key, value))
        case int() | float() | complex() | str() | None:
            return type(value), repr(value)  # 1, 1.0 and True are equal, nan is not equal to itself
        case _:
            return value
