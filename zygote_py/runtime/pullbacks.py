"""`pullback`: the value of a function, and the function from the adjoints of its results to those of its arguments.

    value, back = pullback(kernel, x, out)      # runs kernel(x, out), which writes to `out`
    dx, dout = back(out=seed)                   # seed: the adjoint of what `out` holds after the call

`back` uses copies that were made when the function ran: it may be called several times, and after the arguments have
changed. Where such copies cannot be made (see `zygote_py.adjoints.routines.repeatable`) it runs the function again, on
copies of the arguments.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from numba import types

from zygote_py import compiler, numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.base import Capture
from zygote_py.cache import Found, Kernel, Link, find, loaded, pickled_in, text_of_pickled
from zygote_py.compiler import Form, PullbackInterface, Request, make_request
from zygote_py.drivers.inner_pullback import InnerPullback
from zygote_py.ir import Type
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.runtime.compiled_function import DerivativeFunction, kept_derivative
from zygote_py.runtime.compiled_pullback import PullbackCode, entry_function, known_of
from zygote_py.runtime.cotangents import Seed, check_seeds, like
from zygote_py.runtime.records import as_record, holds_record
from zygote_py.runtime.state import Fewer
from zygote_py.runtime.tracebacks import is_of_the_user, shortened, shortening

if TYPE_CHECKING:
    from zygote_py.compiler import CompiledPullback
    from zygote_py.emit import Emitted

P = ParamSpec("P")
R = TypeVar("R")


@shortening
def pullback(f: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> tuple[R, Pullback]:
    """Return the value of `f(*args)` and the function that maps cotangents of its results to those of its arguments.

    Parameters
    ----------
    f : callable
        A Python function that Numba can compile, plain or decorated with `numba.njit`. It may write to its arguments,
        and to arrays in them, and return a number, an array, a tuple, a NamedTuple or a frozen dataclass of these, or
        nothing.
    *args : object
        Its arguments. Arrays that `f` writes to are modified.
    **kwargs : object
        Keyword arguments.

    Returns
    -------
    value : object
        The result of `f`; None if it returns nothing.
    back : Pullback
        The pullback at these arguments.

    Raises
    ------
    DifferentiationError
        If the function cannot be differentiated.
    ValueError
        If arguments, or arrays in them, share memory and one of them is written to.

    Notes
    -----
    `pullback` can be called in a function that `numba.njit` compiles, for a function that is known there: a global, an
    inner function or lambda, or a compiled function that is an argument. The pullback is then a value of compiled code,
    which can be called, passed on, returned, and put into tuples and lists. Captured globals are constants there, as
    everywhere in Numba; captured variables of an inner function are read when `pullback` is called.

    The method is that of M. Innes, "Don't Unroll Adjoint: Differentiating SSA-Form Programs", 2018.

    Examples
    --------
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
    """
    made: tuple[R, Pullback] = _pullback_of(f)(*args, **kwargs)
    return made


@functools.lru_cache(maxsize=512)
def _pullback_of(f: Callable[..., Any], captured_count: int = 0) -> DerivativeFunction[..., Any]:
    """Return the compiled function; only recent ones are kept, so that lambdas made in a loop do not pile up."""
    return DerivativeFunction(f, PullbackForm(), captured_count)


class Pullback:
    """The map from cotangents of a function's results to those of its arguments, at the arguments of one call.

    `back()` returns the gradient of a function that returns a real number, whose seed is then 1.0; any other function
    needs a seed. `back(seed)` takes the cotangent of the returned value, and `back(name=seed)` that of the argument
    `name` after the call: an array that the function writes to, or a structure with such an array. The result is a
    tuple with one gradient for each parameter, None for those that cannot have one.

    Attributes
    ----------
    written : tuple of str
        The names of the arguments that the function writes to, which take a seed.

    Notes
    -----
    A seed has the structure, the shapes and the dtypes of the value that it is the cotangent of. If any seed is passed,
    missing ones and None are zero. The parts of a structure that are not written to keep their values, so their seeds
    are part of their gradients: pullbacks can be chained.

    Examples
    --------
    >>> import numpy as np
    >>> from zygote_py import pullback
    >>> value, back = pullback(lambda a, x: a @ x, np.eye(2), np.array([1.0, 2.0]))  # shapes (m, n) and (n,)
    >>> da, dx = back(np.array([1.0, 0.0]))  # the seed has shape (m,)
    >>> da, dx
    (array([[1., 2.],
           [0., 0.]]), array([1., 0.]))
    """

    __slots__ = ("_args", "_kept", "_kernel", "_quick", "_value")

    def __init__(self, kernel: PullbackKernel, args: tuple[Any, ...], value: Any, kept: Any, quick: Any = None) -> None:
        """Create the pullback of a call; `args`, and `value` unless it is the result, come from `like`."""
        self._kernel = kernel
        self._args = args
        self._kept = kept
        self._quick = quick  # what may be called with one float for a seed
        self._value = value if type(value) is float else like(value)

    def __reduce__(self) -> Any:
        """Pickle the function and the saved values; the code is compiled again where it is unpickled."""
        kernel = self._kernel
        sealed = numba_adapter.is_sealed(self._kept)
        kept = sealed, numba_adapter.taken_out(self._kept) if sealed else self._kept
        return _restored, (
            _pullback_of(*kernel.of),
            kernel.argument_types,
            kernel.number,
            self._args,
            self._value,
            kept,
        )

    @property
    def written(self) -> tuple[str, ...]:
        """The names of the arguments that the function writes to, which take a seed."""
        return self._kernel.interface.written

    def __repr__(self) -> str:
        primal = self._kernel.of[0]
        return f"<pullback of {getattr(primal, '__qualname__', primal)}>"

    def __call__(self, /, *seed: Any, **seeds: Any) -> tuple[Any, ...]:
        """Return the gradients for these seeds."""
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
        compiled = self._kernel.interface
        check_seeds(compiled, len(seed), seeds)
        given: list[Any] = []
        if carries_adjoint(compiled.result_type):
            missing = None if seeds else 1.0  # no seed at all is 1.0; what may do without, `check_seeds` knows
            given.append(Seed("", "", compiled.result_type, self._value).of(seed[0] if seed else missing))
        for number, name, kind in compiled.written_parameters:
            given.append(Seed(name, "", kind, self._args[number]).of(seeds.get(name)))
        result: tuple[Any, ...] = self._kernel.back(self._kept)(self._kept, *given)
        kinds = self._kernel.argument_types
        return tuple(map(as_record, result, kinds)) if holds_record(kinds) else result


_COMMENT = re.compile(r"  # .*")  # which tell where the function is


class PullbackKernel(Kernel):
    """The code for one signature: `function` returns the value and the saved values, `back` takes these and seeds."""

    def __init__(
        self,
        request: Request,
        argument_types: tuple[Type, ...],
        modules: Sequence[Emitted],
        interface: PullbackInterface,
        hidden: tuple[Capture, ...],
        frozen: tuple[Capture, ...],
        compiled: CompiledPullback | None = None,
    ) -> None:
        self.of = request.primal, request.captured_count
        self.argument_types = argument_types
        self.interface = interface
        self._modules = modules
        self._options = request.options
        # The same for the same code, so that its machine code may be kept: it is part of the type of what is saved.
        content = "".join([*(_COMMENT.sub("", each.source) for each in modules), *map(str, argument_types)])
        self.number = int(hashlib.sha256(content.encode()).hexdigest()[:15], 16)
        super().__init__(modules[1].standalone, hidden, frozen, self._sealed, compiled)

    @functools.cached_property
    def parts(self) -> PullbackCode:
        """The forward and the reverse function."""
        if (compiled := cast("CompiledPullback | None", self.compiled)) is not None:
            return PullbackCode(compiled.value, compiled.function, self.interface)
        forward, reverse = map(loaded, self._modules)
        return PullbackCode(forward, reverse, self.interface)

    def _sealed(self) -> Callable[..., object]:
        """Return the forward function as Numba compiles it."""
        return numba_adapter.sealed(self.parts.forward, self.number, self._options)

    @functools.cached_property
    def _opened(self) -> Any:
        code = self.code and replace(self.code, content=f"reverse of {self.code.content}")
        return numba_adapter.opened(self.parts.reverse, self._options, code)

    def back(self, kept: Any) -> Any:
        """Return the function of the saved values and seeds: the compiled one, unless the forward function was not."""
        return self._opened if numba_adapter.is_sealed(kept) else self.parts.reverse

    @property
    def interpreted(self) -> Callable[..., Any]:
        """The function to call from Python if Numba is disabled."""

        def call(*args: Any) -> tuple[Any, Pullback]:
            result: Any = self.parts.forward(*args)
            value, kept = result
            return value, self.pullback(args, value, kept)

        return call

    def entry(self, request: Request, captured: Sequence[object], link: Link) -> Callable[..., object]:
        """Return the function that compiled code calls."""
        entry, back = entry_function(self.parts, request, captured, self.restored, self.number)
        link(back)
        return entry

    def pullback(self, args: tuple[Any, ...], value: Any, kept: Any) -> Pullback:
        """Return the pullback of a call."""
        likes = tuple(map(like, args)) if self.interface.written else ()
        return Pullback(self, likes, value, kept, self.quick_for(kept))

    def quick_for(self, kept: Any) -> Any:
        """Return a function of the saved values and one float as the seed; None if a seed is anything else."""
        if not numba_adapter.is_sealed(kept) or self.interface.result_type != types.float64 or self.interface.written:
            return None
        if holds_record(self.argument_types):
            return None
        return numba_adapter.entry_of_seed(self.back(kept), kept)

    def restored(self, kept: Any, likes: tuple[Any, ...]) -> Pullback:
        """Return a pullback that compiled code returned."""
        interface, items = self.interface, iter(likes)
        kind = interface.result_type
        result = known_of(kind, next(items)) if carries_adjoint(kind) else None
        known = tuple(
            known_of(kind, next(items)) if name in interface.written else None for name, kind in interface.parameters
        )
        return self.pullback(known, result, kept)


class _Making:
    """Pullbacks are two modules, and an interface."""

    kind = "pullback"

    def compiled(
        self, request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
    ) -> tuple[CompiledPullback, tuple[Capture, ...]]:
        return compiler.compile_pullback(request, argument_types, hidden)

    def kernel(self, request: Request, argument_types: tuple[Type, ...], compiled: CompiledPullback) -> PullbackKernel:
        modules, lowered = (compiled.forward, compiled.emitted), compiled.lowered
        return PullbackKernel(
            request, argument_types, modules, compiled.interface, lowered.hidden, lowered.frozen, compiled
        )

    def described(self, compiled: CompiledPullback) -> tuple[list[Emitted], object]:
        return [compiled.forward, compiled.emitted], text_of_pickled(compiled.interface)

    def restored(
        self,
        request: Request,
        argument_types: tuple[Type, ...],
        modules: list[Emitted],
        known: str,
        hidden: tuple[Capture, ...],
        frozen: tuple[Capture, ...],
    ) -> PullbackKernel:
        return PullbackKernel(request, argument_types, modules, pickled_in(known), hidden, frozen)


_MAKING = _Making()


@dataclass(frozen=True, slots=True)
class PullbackForm(Form):
    """The form of `pullback`, which is made and called at once, and cannot be differentiated."""

    has_own_entry = True
    entry_options = MappingProxyType({"no_cpython_wrapper": True})

    def __str__(self) -> str:
        return "pullback"

    def request(self, primal: Any, captured_count: int, inner: Request | None) -> Request:
        """Return the request: for the adjoints of all parameters."""
        return replace(
            make_request(primal, None, with_value=False, captured_count=captured_count, inner=inner), primal=primal
        )

    def kernel(self, request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]) -> Found:
        """Return the kernel for a signature."""
        return find(request, argument_types, hidden, _MAKING)

    def finishing(
        self, function: Callable[..., Any], count: int, kernels: Callable[[int], PullbackKernel]
    ) -> Callable[..., Any]:
        """Return a function that makes a pullback of the values that the compiled function saves."""
        by_kind: dict[int, tuple[Any, PullbackKernel, Any]] = {}  # by the type of what is kept: what takes it back

        def call(*args: Any) -> tuple[Any, Pullback]:
            if len(args) != count:
                raise Fewer
            value, kept = function(*args)
            kind = kept._type
            found = by_kind.get(id(kind))
            if found is None:
                kernel = kernels(numba_adapter.owner_of(kept))
                found = by_kind[id(kind)] = kind, kernel, kernel.quick_for(kept)  # which keeps the type, and so its id
            _, kernel, back = found
            likes = tuple(map(like, args)) if kernel.interface.written else ()
            return value, Pullback(kernel, likes, value, kept, back)

        return call


def _restored(
    of: DerivativeFunction[..., Any],
    argument_types: tuple[Type, ...],
    number: int,
    args: tuple[Any, ...],
    value: Any,
    kept: Any,
) -> Pullback:
    """Return a pullback that was pickled. Raises DifferentiationError if its function is another by now."""
    _, kernel = _pullback_of(of.function, of.captured_count)._compile(argument_types)
    if not isinstance(kernel, PullbackKernel) or kernel.number != number:
        raise DifferentiationError(
            f"the pullback of `{getattr(of.primal, '__name__', of.primal)}` was made with other code or constants than "
            "the function has now",
            hint="pickle it before captured variables change, as those of a loop do",
        )
    sealed, items = kept
    return Pullback(kernel, args, value, numba_adapter.put_back(*items) if sealed else items)


numba_adapter.embed(
    pullback,
    lambda f, options: kept_derivative(f, PullbackForm(), options.get("captured_count", 0)),
    applied=True,
    form=lambda options: InnerPullback(),
)
