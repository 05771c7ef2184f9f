"""`pullback`: the value of a function, and the function from the adjoints of its results to those of its arguments.

    value, back = pullback(kernel, x, out)      # runs kernel(x, out), which writes to `out`
    dx, dout = back(out=seed)                   # seed: the adjoint of what `out` holds after the call

What `back` needs it has from copies, made when the function ran: it may be called several times, and after the
arguments have changed. Where such copies cannot be made (see `zygote_py.adjoints.routines.repeatable`) it runs the
function again, on copies of the arguments.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.analysis.kinds import carries_adjoint
from zygote_py.cache import Kernel, Link
from zygote_py.capture import Capture
from zygote_py.compile import CompiledPullback, compile_pullback
from zygote_py.compiled_pullback import entry_function, known_of
from zygote_py.derivative_function import DerivativeFunction, kept_derivative
from zygote_py.forms import Form
from zygote_py.generations import Fewer
from zygote_py.ir.core import Type
from zygote_py.requests import Request, make_request
from zygote_py.seeds import Seed, check_seeds, like
from zygote_py.tracebacks import is_of_the_user, shortened, shortening

P = ParamSpec("P")
R = TypeVar("R")


@shortening
def pullback(f: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> tuple[R, Pullback]:
    """The value of `f(*args)`, and the function that takes adjoints of its results back to its arguments.

    Parameters:
        f: a Python function that Numba can compile, plain or decorated with `numba.njit`. It may write to its
            arguments, and to arrays in them, and return a number, an array, a tuple, a NamedTuple or a frozen dataclass
            of these, or nothing.
        args: its arguments. Arrays that `f` writes to hold afterwards what `f` leaves there.
        kwargs: arguments that are given by name.

    Returns:
        The value, None if `f` returns nothing, and a `Pullback`.

        It may be called in a function that `numba.njit` compiles, for a function that is known there: a global, an
        inner function or lambda, or a compiled function that is an argument. The pullback is then a value of compiled
        code, which may be called, passed on, returned, and put into tuples and lists. Captured globals are constants
        there, as everywhere in Numba; what an inner function captures is read when `pullback` is called.

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
        >>> from numba import njit
        >>> @njit
        ... def slope(x, w):
        ...     value, back = pullback(lambda x: x**2 * w, x)
        ...     (dx,) = back(1.0)
        ...     return value, dx
        >>> slope(3.0, 2.0)
        (18.0, 12.0)

    Source: M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.
    """
    made: tuple[R, Pullback] = _pullback_of(f)(*args, **kwargs)
    return made


@functools.lru_cache(maxsize=512)
def _pullback_of(f: Callable[..., Any], held: int = 0) -> DerivativeFunction[..., Any]:
    """What is compiled for a function; of the last ones only, so that lambdas made in a loop do not pile up."""
    return DerivativeFunction(f, PullbackForm(), held)


class Pullback:
    """From the adjoints of a function's results to those of its arguments, as they were when it was called.

    `back()` gives the gradient of a function that returns a real number, whose seed is then 1.0; for any other function
    it is refused. `back(seed)` takes the adjoint of the returned value, `back(name=seed)` that of what the argument
    `name` holds after the call: an array that the function writes to, or a structure with such an array. A seed has the
    form, the shapes and the dtypes of what it is for. As soon as one seed is given, those that are missing are zero,
    and so is None. What is in a structure and not written to holds what it held before, and its seed is a part of its
    gradient: pullbacks can be chained. The answer is a tuple with one gradient for each parameter, None for those that
    can have none.
    """

    __slots__ = ("_args", "_kept", "_kernel", "_quick", "_value")

    def __init__(self, kernel: PullbackKernel, args: tuple[Any, ...], value: Any, kept: Any, quick: Any = None) -> None:
        """`value` is what the function returned, or what `like` makes of it, `args` are what `like` makes of them."""
        self._kernel = kernel
        self._args = args
        self._kept = kept
        self._quick = quick  # what may be called with one float for a seed
        self._value = value if type(value) is float else like(value)

    def __reduce__(self) -> Any:
        """Pickled as the function and what it keeps; the code is made anew where it is unpickled."""
        kernel = self._kernel
        sealed = numba_adapter.is_sealed(self._kept)
        kept = sealed, numba_adapter.taken_out(self._kept) if sealed else self._kept
        return _restored, (_pullback_of(*kernel.of), kernel.argument_types, self._args, self._value, kept)

    @property
    def written(self) -> tuple[str, ...]:
        """The names of the arguments that the function writes to, which seeds may be given for."""
        return self._kernel.compiled.written

    def __repr__(self) -> str:
        primal = self._kernel.of[0]
        return f"<pullback of {getattr(primal, '__qualname__', primal)}>"

    def __call__(self, /, *seed: Any, **seeds: Any) -> tuple[Any, ...]:
        """The gradients for these seeds."""
        if self._quick is not None and not seeds and (not seed or (len(seed) == 1 and type(seed[0]) is float)):
            quick: tuple[Any, ...] = self._quick(self._kept, seed[0] if seed else 1.0)
            return quick
        try:
            return self._back(seed, seeds)
        except Exception as error:
            if is_of_the_user(error):
                raise shortened(error) from None
            raise

    def _back(self, seed: tuple[Any, ...], seeds: Mapping[str, Any]) -> tuple[Any, ...]:
        compiled = self._kernel.compiled
        check_seeds(compiled, len(seed), seeds)
        given: list[Any] = []
        if carries_adjoint(compiled.result_type):
            missing = None if seeds else 1.0  # no seed at all is 1.0; what may do without, `check_seeds` knows
            given.append(Seed("", "", compiled.result_type, self._value).of(seed[0] if seed else missing))
        for number, name, kind in compiled.written_parameters:
            given.append(Seed(name, "", kind, self._args[number]).of(seeds.get(name)))
        result: tuple[Any, ...] = self._kernel.back(self._kept)(self._kept, *given)
        return result


class PullbackKernel(Kernel):
    """What was compiled for one signature: `function` gives the value and what is kept, `back` takes that and seeds."""

    compiled: CompiledPullback

    def __init__(self, request: Request, argument_types: tuple[Type, ...], compiled: CompiledPullback) -> None:
        self.of = request.primal, request.held
        self.argument_types = argument_types
        self.number = next(_numbers)
        self._options = request.options
        self._opened: Any = None
        lowered = compiled.lowered
        super().__init__(compiled.emitted.standalone, lowered.hidden, lowered.frozen, self._sealed, compiled)
        _by_number[self.number] = self

    def _sealed(self) -> Callable[..., object]:
        """The forward function as Numba compiles it, and with it what takes back what it keeps."""
        self._opened = numba_adapter.opened(self.compiled.function, self._options)
        return numba_adapter.sealed(self.compiled.value, self.number, self._options)

    def back(self, kept: Any) -> Any:
        """The function that takes what was kept, and seeds: the compiled one, unless the forward function was not."""
        if not numba_adapter.is_sealed(kept):
            return self.compiled.function
        if self._opened is None:  # unpickled
            self._opened = numba_adapter.opened(self.compiled.function, self._options)
        return self._opened

    @property
    def interpreted(self) -> Callable[..., Any]:
        """The function to call from Python where Numba is switched off."""

        def call(*args: Any) -> tuple[Any, Pullback]:
            result: Any = self.compiled.value(*args)
            value, kept = result
            return value, self.pullback(args, value, kept)

        return call

    def entry(self, request: Request, captured: Sequence[object], link: Link) -> Callable[..., object]:
        """The function that compiled code calls."""
        entry, back = entry_function(self.compiled, request, captured, self.restored, self.number)
        link(back)
        return entry

    def pullback(self, args: tuple[Any, ...], value: Any, kept: Any) -> Pullback:
        """The pullback of a call."""
        likes = tuple(map(like, args)) if self.compiled.written else ()
        return Pullback(self, likes, value, kept, self.quick_for(kept))

    def quick_for(self, kept: Any) -> Any:
        """What takes what is kept and one float for the seed; None if there is more to a seed."""
        if not numba_adapter.is_sealed(kept) or self.compiled.result_type != types.float64 or self.compiled.written:
            return None
        return numba_adapter.entry_of_seed(self.back(kept), kept)

    def restored(self, kept: Any, likes: tuple[Any, ...]) -> Pullback:
        """A pullback that comes out of compiled code."""
        compiled, items = self.compiled, iter(likes)
        result = known_of(compiled.result_type, items) if carries_adjoint(compiled.result_type) else None
        params = compiled.lowered.function.params[: compiled.lowered.argument_count]
        known = tuple(known_of(param.type, items) if param.hint in compiled.written else None for param in params)
        return self.pullback(known, result, kept)


_numbers = itertools.count()
_by_number: weakref.WeakValueDictionary[int, PullbackKernel] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class PullbackForm(Form):
    """`pullback`. It is made and called at once, and cannot be differentiated."""

    has_own_entry = True
    entry_options = MappingProxyType({"no_cpython_wrapper": True})

    def __str__(self) -> str:
        return "pullback"

    def request(self, primal: Any, held: int, inner: Request | None) -> Request:
        """What is asked for: the adjoints of all parameters."""
        return replace(make_request(primal, None, with_value=False, held=held, inner=inner), primal=primal)

    def kernel(
        self, request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
    ) -> tuple[Kernel, tuple[Capture, ...]]:
        """What is compiled for a signature. It is not kept on disk."""
        compiled, hidden = compile_pullback(request, argument_types, hidden)
        return PullbackKernel(request, argument_types, compiled), hidden

    def finishing(self, function: Callable[..., Any], count: int) -> Callable[..., Any]:
        """What makes a pullback of what the compiled function keeps."""
        by_kind: dict[int, tuple[Any, PullbackKernel, Any]] = {}  # by the type of what is kept: what takes it back

        def call(*args: Any) -> tuple[Any, Pullback]:
            if len(args) != count:
                raise Fewer
            value, kept = function(*args)
            kind = kept._type
            found = by_kind.get(id(kind))
            if found is None:
                kernel = _by_number[numba_adapter.function_of(kept)]
                found = by_kind[id(kind)] = kind, kernel, kernel.quick_for(kept)  # which keeps the type, and so its id
            _, kernel, back = found
            likes = tuple(map(like, args)) if kernel.compiled.written else ()
            return value, Pullback(kernel, likes, value, kept, back)

        return call


def _restored(
    of: DerivativeFunction[..., Any], argument_types: tuple[Type, ...], args: tuple[Any, ...], value: Any, kept: Any
) -> Pullback:
    """A pullback that was pickled."""
    _, kernel = _pullback_of(of.primal, of.held)._compile(argument_types)
    assert isinstance(kernel, PullbackKernel)
    sealed, items = kept
    return Pullback(kernel, args, value, numba_adapter.put_back(*items) if sealed else items)


numba_adapter.embed(
    pullback, lambda f, options: kept_derivative(f, PullbackForm(), options.get("held", 0)), applied=True
)
