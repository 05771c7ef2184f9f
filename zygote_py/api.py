"""The public functions: `gradient`, `value_and_gradient`, and the `GradientFunction` that both give.

    from zygote_py import gradient

    df = gradient(lambda x, y: x * y)
    df(2.0, 3.0)                            # (3.0, 2.0)
    print(df.source(2.0, 3.0))              # the Python source of the gradient

A gradient function is compiled at the first call for each signature, by Numba's own dispatch, and is callable from
compiled code.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.compile import Compiled, MoreCaptured, Request, compile_gradient
from zygote_py.frontend import Capture
from zygote_py.given import watch
from zygote_py.ir.core import Loc, Type
from zygote_py.starred import expanded, names_of, star_of

Wrt = str | int | Sequence[str | int] | None


class GradientFunction:
    """The gradient of a function of real numbers and arrays, compiled for each signature that it is called with.

    It takes the arguments of the function. What it returns, `gradient` and `value_and_gradient` say.

    Attributes:
        primal: the function that was differentiated, as it was given.
    """

    def __init__(self, primal: Callable[..., Any], wrt: Wrt, *, with_value: bool) -> None:
        functools.update_wrapper(self, primal)
        self.primal = primal
        self._wrt = wrt
        self._with_value = with_value
        self._star = star_of(primal)
        self._of = functools.lru_cache(maxsize=None)(self._expanded)
        self._lock = threading.RLock()
        self._kept: list[Any] = []
        self._reset()
        watch(self)

    def rules_have_changed(self) -> None:
        """Compile again at the next call: a function may have got a rule. Compiled callers keep what they have."""
        with self._lock:
            self._reset()

    def _reset(self) -> None:
        """Forget what was compiled."""
        self._compiled: dict[tuple[Type, ...], Compiled] = {}
        self._hidden: tuple[Capture, ...] = ()  # captured values that are passed at each call
        self._frozen: dict[object, Capture] = {}  # those that are constants of what was compiled
        self._passing: Any = None  # the dispatcher that takes the hidden values behind the arguments
        self._entry: Any = None  # the dispatcher that takes the arguments alone
        self._quick: Any = None  # that one too, if nothing is captured

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient at these arguments."""
        quick = self._quick
        if quick is None or kwargs:
            return self._call(args, kwargs)
        try:
            return quick(*args)
        except Exception as error:
            if any(map(numba_adapter.holds_functions, args)):
                return self._call(args, kwargs)
            self._diagnose(args, kwargs, error)
            raise

    def __repr__(self) -> str:
        kind = "value_and_gradient" if self._with_value else "gradient"
        return f"<{kind} of {getattr(self.primal, '__qualname__', self.primal)}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def primal_ir(self, *args: Any) -> str:
        """The IR of the function for these arguments, or Numba types: typed SSA, in canonical form."""
        return self._inspect(args).primal_text

    def adjoint_ir(self, *args: Any) -> str:
        """The IR of the adjoint for these arguments, or Numba types; `@v` is what `%v` held."""
        return self._inspect(args).adjoint_text

    def source(self, *args: Any) -> str:
        """The Python source that computes the gradient for these arguments, or Numba types.

        It needs NumPy and Numba only, and without the decorator NumPy only.
        """
        return self._inspect(args).emitted.source

    def inspect_llvm(self, *args: Any) -> str:
        """The optimised LLVM IR of the gradient for these arguments, or Numba types."""
        return self._native(numba_adapter.llvm_text, args)

    def inspect_asm(self, *args: Any) -> str:
        """The machine code of the gradient for these arguments, or Numba types."""
        return self._native(numba_adapter.asm_text, args)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with all that the quick way has no time for: keywords, captured values, the interpreter."""
        if self._star:
            return self._of(len(args))(*args, **kwargs)
        if kwargs or len(args) != self._request.func.__code__.co_argcount:
            args = self._bind(args, kwargs)
        args = numba_adapter.with_functions(args)
        if any(capture.read() is not capture.value for capture in self._frozen.values()):
            with self._lock:
                self._reset()
        while True:
            try:
                if not self._compiled:  # what is captured has to be known before the call
                    self._compile(self._types(args))
                hidden = self._hidden
                captured = [capture.read() for capture in hidden]
                if numba_adapter.jit_is_disabled():
                    kinds = tuple(map(numba_adapter.typeof, captured))
                    function = self._implement(self._types(args), hidden, kinds)
                else:
                    function = self._dispatcher()
                if self._hidden is hidden:
                    return function(*args, *captured)
            except MoreCaptured:
                continue
            except Exception as error:
                self._diagnose(args, {}, error)
                raise

    def _compile(self, argument_types: tuple[Type, ...]) -> Compiled:
        """Run the stages for a signature, and note what the function captures."""
        with self._lock:
            while argument_types not in self._compiled:
                try:
                    compiled = compile_gradient(self._request, argument_types, self._hidden)
                except MoreCaptured as more:
                    self._compiled, self._passing, self._quick = {}, None, None
                    self._hidden = more.hidden
                    continue
                for capture in compiled.lowered.frozen:
                    self._frozen[capture.key] = capture
                    self._quick = None
                self._compiled[argument_types] = compiled
            return self._compiled[argument_types]

    def _dispatcher(self) -> Any:
        """The dispatcher for calls from Python: it takes the arguments, and behind them the hidden values."""
        with self._lock:
            if not self._hidden:
                entry = self._entry_dispatcher()
                if not self._frozen:
                    self._quick = entry
                return entry
            if self._passing is None:
                hidden = self._hidden

                def implement(given: tuple[Type, ...]) -> Callable[..., object]:
                    return self._implement(given[: -len(hidden)], hidden, given[-len(hidden) :])

                stub = _stub(self._request, _distinct(f"captured_{capture.name}" for capture in hidden))
                self._passing = numba_adapter.make_dispatcher(stub, implement, self._request.options)
            return self._passing

    def _implement(
        self, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...], hidden_types: tuple[Type, ...]
    ) -> Callable[..., object]:
        """The emitted function for a signature and the types that the captured values have at this moment."""
        with self._lock:
            now = dict(zip((capture.key for capture in hidden), hidden_types, strict=True))
            compiled = self._compile(argument_types)
            if any(now.get(capture.key) != capture.type for capture in compiled.lowered.hidden):
                del self._compiled[argument_types]
                compiled = self._compile(argument_types)
            if self._hidden is not hidden:
                raise MoreCaptured(self._hidden)
            return compiled.function

    def _entry_dispatcher(self) -> Any:
        """The dispatcher for calls from compiled code; captured values are constants there, as Numba has them."""
        with self._lock:
            if self._entry is None:
                stub = _stub(self._request, [])
                self._entry = numba_adapter.make_dispatcher(stub, self._implement_entry, self._request.options)
                self._kept.append(self._entry)  # Numba refers to it weakly
            return self._entry

    def _implement_entry(self, argument_types: tuple[Type, ...]) -> Callable[..., object]:
        with self._lock:
            compiled = self._compile(argument_types)
            if not self._hidden:
                return compiled.function
            inner = numba_adapter.make_dispatcher(
                compiled.function, lambda given: compiled.function, self._request.options
            )
            return _with_constants(self._request, inner, [capture.read() for capture in self._hidden])

    @functools.cached_property
    def _request(self) -> Request:
        primal = self.primal
        func = numba_adapter.py_func_of(primal)
        if isinstance(primal, GradientFunction):
            raise DifferentiationError(
                "derivatives of derivatives are not supported yet",
                hint="write the first derivative out, for example from its source(), and differentiate that",
            )
        if not inspect.isfunction(func):
            raise DifferentiationError(
                f"`{primal!r}` is not a Python function",
                hint="write a function or a lambda that calls it, and differentiate that",
            )
        loc = Loc(func.__code__.co_filename, func.__code__.co_firstlineno)
        parameters = inspect.signature(func).parameters
        for parameter in parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise refuse(
                    f"the parameter `{parameter}` is not supported", loc, hint="give each parameter a place of its own"
                )
        wrt = None if self._wrt is None else _numbers(self._wrt, list(parameters), loc)
        bare = len(parameters) == 1 if self._wrt is None else isinstance(self._wrt, str | int | np.integer)
        name = func.__name__ if func.__name__.isidentifier() else "function"
        suffix = "value_and_gradient" if self._with_value else "gradient"
        return Request(
            func,
            f"{name}_{suffix}",
            wrt,
            bare,
            self._with_value,
            numba_adapter.options_of(primal),
            {name: p.default for name, p in parameters.items() if p.default is not p.empty},
        )

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters, defaults filled in."""
        request = self._request
        try:
            bound = inspect.signature(request.func).bind(*args, **kwargs)
        except TypeError as error:
            raise refuse(
                f"wrong arguments: {error}", request.loc, hint=f"call it as {_call_form(request.func)}"
            ) from None
        bound.apply_defaults()
        return bound.args

    def _types(self, args: tuple[Any, ...]) -> tuple[Type, ...]:
        """The Numba types of arguments, each a value or a type already."""
        found = []
        for name, arg in zip(inspect.signature(self._request.func).parameters, args, strict=False):
            try:
                (value,) = numba_adapter.with_functions((arg,))
                found.append(arg if isinstance(arg, types.Type) else numba_adapter.typeof(value))
            except DifferentiationError as error:
                raise refuse(f"the argument `{name}`: {error.message}", self._request.loc, error.hint) from None
        return tuple(found)

    def _diagnose(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> None:
        """Raise a DifferentiationError if it is the arguments that are to blame for `error`."""
        if not isinstance(error, DifferentiationError) and not self._star:
            self._types(self._bind(args, kwargs))

    def _expanded(self, count: int) -> GradientFunction:
        """The gradient function for so many arguments of a function that takes `*args`."""
        wrt = names_of(self._wrt, self.primal, count)
        return GradientFunction(expanded(self.primal, count), wrt, with_value=self._with_value)

    def _inspect(self, args: tuple[Any, ...]) -> Compiled:
        if self._star:
            return self._of(len(args))._inspect(args)
        return self._compile(self._types(self._bind(args, {})))

    def _native(self, show: Callable[[Any, tuple[Type, ...]], str], args: tuple[Any, ...]) -> str:
        if self._star:
            return self._of(len(args))._native(show, args)
        argument_types = self._types(self._bind(args, {}))
        self._compile(argument_types)
        dispatcher = self._dispatcher()
        signature = (*argument_types, *(numba_adapter.typeof(capture.read()) for capture in self._hidden))
        dispatcher.compile(signature)
        return show(dispatcher, signature)


def _stub(request: Request, hidden: Sequence[str]) -> Callable[..., object]:
    """A function with the parameters of the emitted ones, for the dispatcher to know them by."""
    code = request.func.__code__
    names = [*code.co_varnames[: code.co_argcount], *hidden]
    namespace: dict[str, Any] = {}
    exec(f"def {request.name}({', '.join(names)}): pass", namespace)
    stub: Callable[..., object] = namespace[request.name]
    if not hidden:  # with hidden parameters behind them, defaults are filled in before the call
        stub.__defaults__ = request.func.__defaults__
    return stub


def _distinct(names: Iterable[str]) -> list[str]:
    """The names, those that were there already with a number behind them."""
    found: list[str] = []
    for name in names:
        found.append(f"{name}_{len(found)}" if name in found else name)
    return found


def _numbers(wrt: Wrt, names: list[str], loc: Loc) -> tuple[int, ...]:
    found = []
    for one in wrt if isinstance(wrt, tuple | list) else (wrt,):
        if isinstance(one, str) and one in names:
            found.append(names.index(one))
        elif isinstance(one, int | np.integer) and not isinstance(one, bool) and -len(names) <= one < len(names):
            found.append(int(one) % len(names))
        else:
            raise refuse(
                f"wrt={one!r} is no parameter of the function",
                loc,
                hint=f"name one of {', '.join(names)}" if names else "the function has no parameters",
            )
    return tuple(found)


def _call_form(func: Callable[..., object]) -> str:
    return f"{func.__name__}{inspect.signature(func)}"


@overload
def gradient(f: Callable[..., Any], *, wrt: Wrt = None) -> GradientFunction: ...
@overload
def gradient(f: None = None, *, wrt: Wrt = None) -> Callable[[Callable[..., Any]], GradientFunction]: ...
def gradient(f: Callable[..., Any] | None = None, *, wrt: Wrt = None) -> Any:
    """The function that computes the exact gradient of `f`, a function of numbers and arrays that returns a number.

    Parameters:
        f: a Python function that Numba can compile, plain or decorated with `numba.njit`. Left out, a decorator is
            returned: `@gradient(wrt="x")`.
        wrt: the parameter or parameters to differentiate with respect to, by name or number. By default, all.

    Returns:
        A `GradientFunction`. It returns the gradient of the one parameter asked for, or a tuple of gradients, in the
        order of `wrt`, or of the parameters. A gradient has the shape and the dtype of its argument; where the argument
        does not matter it is zero. Integers, truth values and strings have None; but an integer that is the only
        parameter, or named in `wrt`, is taken as a float.

    Raises:
        DifferentiationError: at the first call for the types of its arguments, for what cannot be differentiated.

    Example:
        >>> from zygote_py import gradient
        >>> def pow(x, n):
        ...     r = 1.0
        ...     while n > 0:
        ...         n -= 1
        ...         r *= x
        ...     return r
        >>> gradient(pow, wrt="x")(2.0, 5)
        80.0

    Source: M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.
    """
    if f is None:
        return functools.partial(gradient, wrt=wrt)
    return GradientFunction(f, wrt, with_value=False)


@overload
def value_and_gradient(f: Callable[..., Any], *, wrt: Wrt = None) -> GradientFunction: ...
@overload
def value_and_gradient(f: None = None, *, wrt: Wrt = None) -> Callable[[Callable[..., Any]], GradientFunction]: ...
def value_and_gradient(f: Callable[..., Any] | None = None, *, wrt: Wrt = None) -> Any:
    """The function that computes the value of `f` and its gradient together; see `gradient`.

    Returns:
        A `GradientFunction` that returns the pair of the value and what `gradient(f, wrt=wrt)` returns.

    Example:
        >>> from zygote_py import value_and_gradient
        >>> value_and_gradient(lambda x, y: x * y)(2.0, 3.0)
        (6.0, (3.0, 2.0))
    """
    if f is None:
        return functools.partial(value_and_gradient, wrt=wrt)
    return GradientFunction(f, wrt, with_value=True)


def _with_constants(request: Request, inner: Any, captured: Sequence[object]) -> Callable[..., object]:
    """A function of the arguments alone that calls `inner` with the captured values as they are now."""
    code = request.func.__code__
    arguments = code.co_varnames[: code.co_argcount]
    names = [f"captured_{number}" for number in range(len(captured))]
    namespace: dict[str, Any] = {"inner": inner, **dict(zip(names, captured, strict=True))}
    exec(f"def {request.name}({', '.join(arguments)}): return inner({', '.join((*arguments, *names))})", namespace)
    function: Callable[..., object] = namespace[request.name]
    return function


numba_adapter.register_as_dispatcher(GradientFunction, GradientFunction._entry_dispatcher)
