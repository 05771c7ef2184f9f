"""`pullback`: the value of a function, and the function from the adjoints of its results to those of its arguments.

    value, back = pullback(kernel, x, out)      # runs kernel(x, out), which writes to `out`
    dx, dout = back(out=seed)                   # seed: the adjoint of what `out` holds after the call

What `back` needs it has from copies of the arguments as they were: it may be called several times, and after the
arguments have changed. It runs the function again, on the copies.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.adjoints.kinds import carries_adjoint
from zygote_py.adjoints.sharing import refuse_shared
from zygote_py.api import GradientFunction
from zygote_py.compile import CompiledPullback, compile_pullback
from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of

_known: weakref.WeakKeyDictionary[Any, _PullbackFunction] = weakref.WeakKeyDictionary()


def pullback(f: Callable[..., Any], *args: Any) -> tuple[Any, Pullback]:
    """The value of `f(*args)`, and the function that takes adjoints of its results back to its arguments.

    Parameters:
        f: a Python function that Numba can compile, plain or decorated with `numba.njit`. It may write to its
            arguments, and return a number, an array, a tuple of these, or nothing.
        args: its arguments. Arrays that `f` writes to hold afterwards what `f` leaves there.

    Returns:
        The value, None if `f` returns nothing, and a `Pullback`.

    Raises:
        DifferentiationError: for what cannot be differentiated, and for arguments that share memory where one of them
            is written to.

    Example:
        >>> import numpy as np
        >>> from zygote_py import pullback
        >>> def kernel(x, out):
        ...     for i in range(len(x)):
        ...         out[i] = x[i] ** 2
        >>> out = np.zeros(2)
        >>> value, back = pullback(kernel, np.array([1.0, 3.0]), out)
        >>> out
        array([1., 9.])
        >>> back(out=np.array([1.0, 1.0]))
        (array([2., 6.]), array([0., 0.]))

    Source: M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.
    """
    function = _known.get(f)
    if function is None:
        function = _known[f] = _PullbackFunction(f)
    return function(*args)


class Pullback:
    """From the adjoints of a function's results to those of its arguments, as they were when it was called.

    `back(seed)` takes the adjoint of the returned value, of its shape and dtype, `back(name=seed)` that of what the
    array argument `name` holds after the call, if the function writes to it; what is not given is zero. The answer is a
    tuple with one gradient for each parameter, None for those that can have none.
    """

    def __init__(self, made: _Made, args: tuple[Any, ...], captured: tuple[Any, ...], value: Any) -> None:
        self._made = made
        self._args = args
        self._captured = captured
        self._value = _like(value)

    def __call__(self, *seed: Any, **seeds: Any) -> tuple[Any, ...]:
        """The gradients for these seeds."""
        compiled = self._made.compiled
        given: list[Any] = []
        if len(seed) > 1:
            raise DifferentiationError(f"{len(seed)} seeds for one returned value", hint="call it as back(seed)")
        if carries_adjoint(compiled.result_type):
            given.append(_checked("the returned value", compiled.result_type, seed[0] if seed else None, self._value))
        elif seed:
            raise DifferentiationError(
                f"a seed for the returned value, which is of type {compiled.result_type}",
                hint=f"name the seed: {', '.join(f'back({name}=...)' for name in compiled.written) or 'there is none'}",
            )
        for name in seeds:
            if name not in compiled.written:
                raise DifferentiationError(
                    f"a seed for `{name}`, which is no array that the function writes to",
                    hint=f"give seeds for {', '.join(compiled.written)}" if compiled.written else "it writes to none",
                )
        names = [param.hint for param in compiled.lowered.function.params]
        for name in compiled.written:
            array: Any = self._args[names.index(name)]
            given.append(_checked(f"`{name}`", numba_adapter.typeof(array), seeds.get(name), array))
        back: Any = self._made.back
        result: tuple[Any, ...] = back(*map(_copied, (*self._args, *self._captured)), *given)
        return result


class _Made:
    """What was compiled for one signature."""

    def __init__(self, compiled: CompiledPullback, options: Mapping[str, object]) -> None:
        self.compiled = compiled
        decorate: Callable[..., Any] = numba.njit
        native = not numba_adapter.jit_is_disabled()
        self.value = decorate(**options)(compiled.value) if native else compiled.value
        self.back = decorate(**options)(compiled.function) if native else compiled.function


class _PullbackFunction:
    """The pullbacks of one function, compiled for each signature that it is called with."""

    def __init__(self, primal: Callable[..., Any]) -> None:
        self._of = GradientFunction(primal, None, with_value=False)
        self._made: dict[tuple[Type, ...], _Made] = {}
        self._lock = threading.RLock()

    def __call__(self, *args: Any) -> tuple[Any, Pullback]:
        args = self._of._bind(args, {})
        made = self._compile(self._of._types(args))
        self._refuse_shared(made.compiled, args)
        captured = tuple(capture.read() for capture in made.compiled.lowered.hidden)
        kept = tuple(map(_copied, args)), tuple(map(_copied, captured))
        value = made.value(*args, *captured)
        return value, Pullback(made, *kept, value)

    def _compile(self, argument_types: tuple[Type, ...]) -> _Made:
        with self._lock:
            made = self._made.get(argument_types)
            if made is None or any(capture.read() is not capture.value for capture in made.compiled.lowered.frozen):
                request = self._of._request
                made = _Made(compile_pullback(request, argument_types), request.options)
                self._made[argument_types] = made
            return made

    def _refuse_shared(self, compiled: CompiledPullback, args: tuple[Any, ...]) -> None:
        """Refuse overlapping arguments here: `back` works on copies, which do not overlap."""
        names = [param.hint for param in compiled.lowered.function.params]
        arrays = [(name, arg) for name, arg in zip(names, args, strict=False) if isinstance(arg, np.ndarray)]
        for (one, x), (other, y) in combinations(arrays, 2):
            if one in compiled.written or other in compiled.written:
                try:
                    refuse_shared(x, y, "")  # type: ignore[no-untyped-call]
                except ValueError:
                    raise refuse(
                        f"the arguments `{one}` and `{other}` share memory, and one of them is written to",
                        self._of._request.loc,
                        hint="pass a copy of one of them",
                    ) from None


def _copied(value: Any) -> Any:
    """A copy of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, tuple):
        items = [_copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _like(value: Any) -> Any:
    """What is to be known of a value to check a seed: a number, or arrays of no memory."""
    if isinstance(value, np.ndarray):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if isinstance(value, tuple):
        return tuple(map(_like, value))
    return value


def _checked(what: str, type: Type, seed: Any, value: Any) -> Any:
    """A seed of the type and the shape of `value`, zero if it was not given. Raises DifferentiationError."""
    if isinstance(type, types.BaseTuple):
        parts = components_of(type)
        if seed is not None and (not isinstance(seed, tuple) or len(seed) != len(parts)):
            raise DifferentiationError(f"the seed for {what} is no tuple of {len(parts)} items: {seed!r}")
        items = seed if seed is not None else (None,) * len(parts)
        return tuple(
            _checked(f"{what}[{number}]", part, item, old) if carries_adjoint(part) else old
            for number, (part, item, old) in enumerate(zip(parts, items, value, strict=True))
        )
    if isinstance(type, types.Array):
        if seed is None:
            return np.zeros(value.shape, value.dtype)
        if not isinstance(seed, np.ndarray) or seed.shape != value.shape or seed.dtype != value.dtype:
            given = f"shape {seed.shape} and dtype {seed.dtype}" if isinstance(seed, np.ndarray) else repr(seed)
            raise DifferentiationError(
                f"the seed for {what} has {given}; it needs shape {value.shape} and dtype {value.dtype}",
                hint="a seed has the shape and the dtype of what it is the adjoint of",
            )
        return seed
    if seed is None:
        return value * 0
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, int | float | complex | np.number):
        raise DifferentiationError(f"the seed for {what} is {seed!r}; it needs a number of type {type}")
    if isinstance(seed, complex | np.complexfloating) and not isinstance(type, types.Complex):
        raise DifferentiationError(f"the seed for {what} is {seed!r}; it needs a real number of type {type}")
    number: Any = getattr(np, str(type))(seed)
    return float(number) if type == types.float64 else number
