"""`pullback`: the value of a function, and the function from the adjoints of its results to those of its arguments.

    value, back = pullback(kernel, x, out)      # runs kernel(x, out), which writes to `out`
    dx, dout = back(out=seed)                   # seed: the adjoint of what `out` holds after the call

What `back` needs it has from copies of the arguments as they were: it may be called several times, and after the
arguments have changed. It runs the function again, on the copies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.adjoints.kinds import carries_adjoint
from zygote_py.api import GradientFunction
from zygote_py.compile import CompiledPullback, compile_pullback
from zygote_py.given import watch
from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of, item_texts
from zygote_py.structures import parts, with_parts


def pullback(f: Callable[..., Any], *args: Any) -> tuple[Any, Pullback]:
    """The value of `f(*args)`, and the function that takes adjoints of its results back to its arguments.

    Parameters:
        f: a Python function that Numba can compile, plain or decorated with `numba.njit`. It may write to its
            arguments, and to arrays in them, and return a number, an array, a tuple, a NamedTuple or a frozen dataclass
            of these, or nothing.
        args: its arguments. Arrays that `f` writes to hold afterwards what `f` leaves there.

    Returns:
        The value, None if `f` returns nothing, and a `Pullback`.

    Raises:
        DifferentiationError: for what cannot be differentiated.
        ValueError: for arguments, or arrays in them, that share memory where one of them is written to.

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
    return _function(f)(*args)


@functools.lru_cache(maxsize=256)
def _function(f: Callable[..., Any]) -> _PullbackFunction:
    """What is compiled for a function; of the last ones only, so that lambdas made in a loop do not pile up."""
    return _PullbackFunction(f)


class Pullback:
    """From the adjoints of a function's results to those of its arguments, as they were when it was called.

    `back(seed)` takes the adjoint of the returned value, `back(name=seed)` that of what the argument `name` holds after
    the call: an array that the function writes to, or a structure with such an array. A seed has the form, the shapes
    and the dtypes of what it is for; what is not given, and None in a structure, is zero. What is in a structure and
    not written to holds what it held before, and its seed is a part of its gradient: pullbacks can be chained. The
    answer is a tuple with one gradient for each parameter, None for those that can have none.
    """

    def __init__(self, made: _Made, args: tuple[Any, ...], captured: tuple[Any, ...], value: Any) -> None:
        """`value` is what the function returned, or what `_like` makes of it."""
        self._made = made
        self._args = args
        self._captured = captured
        self._value = _like(value)

    def __reduce__(self) -> Any:
        """Pickled as the function and the arguments; the code is made anew where it is unpickled."""
        return _restored, (self._made.of, self._made.argument_types, self._args, self._captured, self._value)

    def __call__(self, /, *seed: Any, **seeds: Any) -> tuple[Any, ...]:
        """The gradients for these seeds."""
        compiled = self._made.compiled
        given: list[Any] = []
        if len(seed) > 1:
            raise DifferentiationError(f"{len(seed)} seeds for one returned value", hint="call it as back(seed)")
        if carries_adjoint(compiled.result_type):
            given.append(_Seed("", "", compiled.result_type, self._value).of(seed[0] if seed else None))
        elif seed:
            raise DifferentiationError(
                f"a seed for the returned value, which is of type {compiled.result_type}",
                hint=f"name the seed: {', '.join(f'back({name}=...)' for name in compiled.written) or 'there is none'}",
            )
        names = [param.hint for param in compiled.lowered.function.params]
        for name in seeds:
            if name not in compiled.written:
                what = "the function does not write to" if name in names else "is no parameter of the function"
                written = ", ".join(f"`{each}`" for each in compiled.written)
                raise DifferentiationError(
                    f"a seed for `{name}`, which {what}", hint=f"it writes to {written or 'none of its arguments'}"
                )
        for name in compiled.written:
            old = self._args[names.index(name)]
            given.append(_Seed(name, "", numba_adapter.typeof(old), old).of(seeds.get(name)))
        back: Any = self._made.back
        result: tuple[Any, ...] = back(*map(_copied, (*self._args, *self._captured)), *given)
        return result


class _Made:
    """What was compiled for one signature."""

    def __init__(
        self,
        of: GradientFunction,
        argument_types: tuple[Type, ...],
        compiled: CompiledPullback,
        options: Mapping[str, object],
    ) -> None:
        self.of = of
        self.argument_types = argument_types
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
        watch(self)

    def rules_have_changed(self) -> None:
        """Compile again at the next call: a function may have got a rule."""
        with numba_adapter.COMPILER_LOCK:
            self._made = {}

    def __call__(self, *args: Any) -> tuple[Any, Pullback]:
        args = self._of._bind(args, {})
        made = self._compile(self._of._types(args))
        captured = tuple(capture.read() for capture in made.compiled.lowered.hidden)
        kept = tuple(map(_copied, args)), tuple(map(_copied, captured))
        value = made.value(*args, *captured)
        return value, Pullback(made, *kept, value)

    def _compile(self, argument_types: tuple[Type, ...]) -> _Made:
        with numba_adapter.COMPILER_LOCK:
            made = self._made.get(argument_types)
            if made is None or any(capture.read() is not capture.value for capture in made.compiled.lowered.frozen):
                request = self._of._request
                made = _Made(self._of, argument_types, compile_pullback(request, argument_types), request.options)
                self._made[argument_types] = made
            return made


def _restored(
    of: GradientFunction, argument_types: tuple[Type, ...], args: tuple[Any, ...], captured: tuple[Any, ...], value: Any
) -> Pullback:
    """A pullback that was pickled, its function by way of the gradient of it."""
    return Pullback(_function(of.primal)._compile(argument_types), args, captured, value)


def _copied(value: Any) -> Any:
    """The same with copies of the arrays, in any structure.

    Arrays that share memory are copied apart: where one of them is written to, the function has refused them.
    """
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    held = parts(value)
    return value if held is None else with_parts(value, map(_copied, held))


def _like(value: Any) -> Any:
    """What is to be known of a value to check a seed: numbers, arrays of no memory, structures of these."""
    if isinstance(value, np.ndarray):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    held = parts(value)
    return value if held is None else with_parts(value, map(_like, held))


@dataclass(frozen=True)
class _Seed:
    """What a seed is for: a result, by its name (empty: the returned value), or an item of it, and what it was."""

    name: str
    path: str
    type: Type
    value: Any

    def __str__(self) -> str:
        if self.name:
            return f"the seed for `{self.name}{self.path}`"
        return f"the seed for {f'`{self.path}` of ' if self.path else ''}the returned value"

    def of(self, given: Any) -> Any:
        """What is passed on for a seed as it was given; None is zero. What does not fit is refused."""
        if not carries_adjoint(self.type):
            return self.value  # nothing looks at it
        if isinstance(self.type, types.BaseTuple):
            return self._structure(given)
        return self._array(given) if isinstance(self.type, types.Array) else self._number(given)

    def _structure(self, given: Any) -> Any:
        held = parts(self.value)
        assert held is not None
        if given is None:
            given = with_parts(self.value, (None,) * len(held))
        seeds = parts(given) if type(given) is type(self.value) else None
        if seeds is None or len(seeds) != len(held):
            kind = type(self.value)
            needed = f"a tuple of {len(held)} items" if kind is tuple else f"a `{kind.__name__}`"
            raise DifferentiationError(f"{self} is {_described(given)}; it needs {needed}", hint=_HINT)
        items = zip(item_texts(self.type), components_of(self.type), held, seeds, strict=True)
        made = [_Seed(self.name, self.path + text, kind, old).of(seed) for text, kind, old, seed in items]
        return with_parts(self.value, made)

    def _array(self, given: Any) -> Any:
        if given is None:
            return np.zeros(self.value.shape, self.value.dtype)
        fits = isinstance(given, np.ndarray) and (given.shape, given.dtype) == (self.value.shape, self.value.dtype)
        if not fits:
            raise DifferentiationError(f"{self} is {_described(given)}; it needs {_described(self.value)}", hint=_HINT)
        return given

    def _number(self, given: Any) -> Any:
        given = 0 if given is None else given
        is_complex = isinstance(given, complex | np.complexfloating) and isinstance(self.type, types.Complex)
        is_real = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
        if not is_complex and not is_real:
            raise DifferentiationError(f"{self} is {_described(given)}; it needs a {self.type}", hint=_HINT)
        number: Any = getattr(np, str(self.type))(given)
        return float(number) if self.type == types.float64 else number


_HINT = "a seed has the form, the shapes and the dtypes of what it is the adjoint of; None is zero"


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, tuple) and type(value) is tuple:
        return f"a tuple of {len(value)} items"
    return f"{value!r} of type `{type(value).__name__}`"
