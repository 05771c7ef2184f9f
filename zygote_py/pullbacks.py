"""`pullback`: the value of a function, and the function from the adjoints of its results to those of its arguments.

    value, back = pullback(kernel, x, out)      # runs kernel(x, out), which writes to `out`
    dx, dout = back(out=seed)                   # seed: the adjoint of what `out` holds after the call

What `back` needs it has from copies, made when the function ran: it may be called several times, and after the
arguments have changed. Where such copies cannot be made (see `zygote_py.adjoints.repeatable`) it runs the function
again, on copies of the arguments.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.kinds import carries_adjoint
from zygote_py.capture import are_unchanged
from zygote_py.compile import CompiledPullback, compile_pullback
from zygote_py.compiled_pullback import entry_function, known_of
from zygote_py.derivative_function import DerivativeFunction, stub_of
from zygote_py.forms import GradientForm
from zygote_py.frontend import Capture, LoweredFunction
from zygote_py.given import watch
from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of, with_components
from zygote_py.requests import check_fit, misfit
from zygote_py.seeds import Seed, check_seeds, like
from zygote_py.starred import expanded, star_of, starred_dispatcher
from zygote_py.structures import parts, with_parts
from zygote_py.tracebacks import is_of_the_user, shortened

P = ParamSpec("P")
R = TypeVar("R")


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
    try:
        function = _function(f)
        if function.star:
            check_fit(f, args, kwargs)
            function = _function(f, len(args))
        function._of._request.check_positional(len(args))
        return function(*(function._of._bind(args, kwargs) if kwargs else args))
    except Exception as error:
        if is_of_the_user(error):
            raise shortened(error) from None
        raise


@functools.lru_cache(maxsize=256)
def _function(f: Callable[..., Any], count: int = -1, held: int = 0) -> _PullbackFunction:
    """What is compiled for a function; of the last ones only, so that lambdas made in a loop do not pile up.

    If it takes any number of arguments, `count` says how many it is called with. The first `held` parameters are
    captured variables.
    """
    return _PullbackFunction(f if count < 0 else expanded(f, count), held)


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

    __slots__ = ("_args", "_captured", "_kept", "_made", "_quick", "_value")

    def __init__(
        self,
        made: _Made,
        args: tuple[Any, ...],
        captured: tuple[Any, ...],
        value: Any,
        kept: Any = None,
        quick: Any = None,
    ) -> None:
        """`value` is what the function returned, or what `like` makes of it."""
        self._made = made
        self._args = args
        self._captured = captured
        self._kept = kept
        self._quick = quick  # what may be called with one float for a seed
        self._value = value if type(value) is float else like(value)

    def __reduce__(self) -> Any:
        """Pickled as the function and what it keeps; the code is made anew where it is unpickled."""
        kept = numba_adapter.taken_out(self._kept) if self._made.native and self._made.compiled.split else self._kept
        held = self._args, self._captured, self._value, kept
        return _restored, (self._made.of, self._made.argument_types, *held)

    @property
    def written(self) -> tuple[str, ...]:
        """The names of the arguments that the function writes to, which seeds may be given for."""
        return self._made.compiled.written

    def __repr__(self) -> str:
        primal = self._made.of.primal
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
        made = self._made
        compiled = made.compiled
        given = self._seeds(compiled, seed, seeds)
        kept = (self._kept,) if compiled.split else map(_copied, (*self._args, *self._captured))
        result: tuple[Any, ...] = made.back(*kept, *given)
        return result

    def _seeds(self, compiled: CompiledPullback, seed: tuple[Any, ...], seeds: Mapping[str, Any]) -> list[Any]:
        """What is passed on for the seeds as they were given."""
        check_seeds(compiled, len(seed), seeds)
        given: list[Any] = []
        if carries_adjoint(compiled.result_type):
            missing = None if seeds else 1.0  # no seed at all is 1.0; what may do without, `check_seeds` knows
            given.append(Seed("", "", compiled.result_type, self._value).of(seed[0] if seed else missing))
        params = compiled.lowered.function.params
        names = [param.hint for param in params]
        for name in compiled.written:
            number = names.index(name)
            given.append(Seed(name, "", params[number].type, like(self._args[number])).of(seeds.get(name)))
        return given


class _Made:
    """What was compiled for one signature."""

    def __init__(
        self,
        of: DerivativeFunction[..., Any],
        argument_types: tuple[Type, ...],
        compiled: CompiledPullback,
        options: Mapping[str, object],
    ) -> None:
        self.of = of
        self.argument_types = argument_types
        self.compiled = compiled
        self.number = next(_numbers)
        self.native = not numba_adapter.jit_is_disabled()
        decorate: Callable[..., Any] = numba.njit
        self.value: Any = compiled.value  # for Numba still to compile, if it is split
        self.back: Any = compiled.function
        if self.native and compiled.split:
            self.value = numba_adapter.sealed(compiled.value, self.number, options)
            self.back = numba_adapter.opened(compiled.function, options)
        elif self.native:
            self.value, self.back = decorate(**options)(self.value), decorate(**options)(self.back)

    @functools.cached_property
    def forward(self) -> Any:
        """The compiled function that gives the value, and what is kept if it is split."""
        decorate: Any = numba.njit
        split = self.native and self.compiled.split
        return decorate(**self.compiled.lowered.function.options)(self.value) if split else self.value

    def pullback(self, args: tuple[Any, ...], value: Any, kept: Any) -> Pullback:
        """The pullback of a split function."""
        return Pullback(self, self.likes(args), (), value, kept, self.quick_for(kept))

    def likes(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the seeds for the arguments have to be like, if there are such seeds."""
        return tuple(map(like, args)) if self.compiled.written else ()

    def quick_for(self, kept: Any) -> Any:
        """What takes what is kept and one float for the seed; None if there is more to a seed."""
        if not self.native or self.compiled.result_type != types.float64 or self.compiled.written:
            return None
        return numba_adapter.entry_of_seed(self.back, kept)

    def restored(self, kept: Any, likes: tuple[Any, ...]) -> Pullback:
        """A pullback that comes out of compiled code."""
        compiled, items = self.compiled, iter(likes)
        result = known_of(compiled.result_type, items) if carries_adjoint(compiled.result_type) else None
        params = compiled.lowered.function.params[: compiled.lowered.argument_count]
        known = tuple(known_of(param.type, items) if param.hint in compiled.written else None for param in params)
        if compiled.split:
            return self.pullback(known, result, kept)
        captured = tuple(_copied(capture.read()) for capture in compiled.lowered.hidden)
        return Pullback(self, kept, captured, result)


_numbers = itertools.count()


class _NotSplit(Exception):
    """What is called has to be run again by its pullback, or captures something else now: there is no quick way."""


class _PullbackFunction:
    """The pullbacks of one function, compiled for each signature that it is called with."""

    def __init__(self, primal: Callable[..., Any], held: int = 0) -> None:
        """The first `held` parameters are captured variables: they get no gradient."""
        self._of: DerivativeFunction[..., Any] = DerivativeFunction(primal, GradientForm(None, False, False), held)
        self._held = held
        self._entry: Any = None  # for calls from compiled code
        self._kept: list[Any] = []
        self._made: dict[tuple[Type, ...], _Made] = {}
        self._by_number: dict[int, _Made] = {}
        self._by_kind: dict[int, tuple[Any, _Made, Any]] = {}  # by the type of what is kept: what takes it back
        self._quick: Any = None  # the dispatcher of the forward functions, which takes the hidden values too
        self._hidden: tuple[Capture, ...] = ()
        self._readers: tuple[Callable[[], object], ...] = ()  # of what has to hold `_values`
        self._values: tuple[object, ...] = ()
        watch(self)

    @property
    def star(self) -> bool:
        """Whether the function takes any number of arguments: it is another one for each number."""
        return bool(star_of(self._of.primal))

    def rules_have_changed(self) -> None:
        """Compile again at the next call: a function may have got a rule."""
        with numba_adapter.COMPILER_LOCK:
            self._made, self._quick, self._entry = {}, None, None

    def __call__(self, *args: Any) -> tuple[Any, Pullback]:
        quick = self._quick
        if quick is None or not all(map(numba_adapter.is_plain, args)):
            return self._call(args)
        if not are_unchanged(self._readers, self._values):
            return self._call(args)
        try:
            value, kept = quick(*args, *[capture.read() for capture in self._hidden]) if self._hidden else quick(*args)
        except _NotSplit:
            return self._call(args)
        except Exception as error:
            self._of._diagnose(args, {}, error)
            raise
        kind = kept._type
        found = self._by_kind.get(id(kind))
        if found is None:
            made = self._by_number[numba_adapter.function_of(kept)]
            found = self._by_kind[id(kind)] = kind, made, made.quick_for(kept)  # which keeps the type, and so its id
        _, made, back = found
        return value, Pullback(made, () if back is not None else made.likes(args), (), value, kept, back)

    def _call(self, args: tuple[Any, ...]) -> tuple[Any, Pullback]:
        """A call with all that the quick way has no time for: defaults, captured values, the interpreter."""
        args = self._of._bind(args, {})
        plain = all(map(numba_adapter.is_plain, args))
        if not plain:
            args = numba_adapter.with_functions(args)
        made = self._compile(self._of._types(args))
        captured = tuple(capture.read() for capture in made.compiled.lowered.hidden)
        if made.compiled.split:
            if made.native and plain and self._quick is None:
                quick = self._quick_for(made.compiled.lowered)
                try:
                    value, kept = quick(*args, *captured)
                    return value, made.pullback(args, value, kept)
                except _NotSplit:
                    self._quick = None
            value, kept = made.forward(*args, *captured)
            return value, made.pullback(args, value, kept)
        copies = tuple(map(_copied, args)), tuple(map(_copied, captured))
        value = made.forward(*args, *captured)
        return value, Pullback(made, *copies, value)

    def _quick_for(self, lowered: LoweredFunction) -> Any:
        """Call the forward functions by Numba's own dispatch from now on, for what is captured as it is here."""
        with numba_adapter.COMPILER_LOCK:
            self._hidden = lowered.hidden
            self._readers = self._values = ()
            self._freeze(lowered)
            request = self._of._request
            stub = stub_of(request, [f"captured_{n}_{capture.name}" for n, capture in enumerate(lowered.hidden)])
            self._quick = numba_adapter.make_dispatcher(stub, self._implement, request.options)
            return self._quick

    def _freeze(self, lowered: LoweredFunction) -> None:
        """Note what has to hold the same for the quick way to be right."""
        self._readers = (*self._readers, *(capture.read for capture in lowered.frozen))
        self._values = (*self._values, *(capture.value for capture in lowered.frozen))

    def _implement(self, given: tuple[Type, ...]) -> Callable[..., object]:
        count = len(given) - len(self._hidden)
        made = self._compile(given[:count])
        lowered = made.compiled.lowered
        same = [capture.key for capture in lowered.hidden] == [capture.key for capture in self._hidden]
        if not made.compiled.split or not same or not all(map(_is_of_type, given[count:], lowered.hidden)):
            raise _NotSplit
        self._freeze(lowered)
        function: Callable[..., object] = made.value
        return function

    def _entry_dispatcher(self) -> Any:
        """The dispatcher for calls from compiled code; captured values are constants there, as Numba has them."""
        with numba_adapter.COMPILER_LOCK:
            if any(_is_stale(made.compiled.lowered) for made in self._made.values()):
                self.rules_have_changed()
            if self._entry is None:
                if star_of(self._of.primal):
                    self._entry = starred_dispatcher(self._of.primal, self._entry_for)
                else:
                    request = self._of._request
                    options = {**request.options, "no_cpython_wrapper": True}
                    wrong = functools.partial(misfit, request)
                    stub = stub_of(request, [])
                    self._entry = numba_adapter.make_dispatcher(stub, self._implement_entry, options, misfit=wrong)
                    numba_adapter.link_along(self._entry, self._linked)
                self._kept.append(self._entry)  # Numba refers to it weakly
            return self._entry

    def _linked(self, argument_types: tuple[Type, ...], is_whole: bool) -> Callable[[], None]:
        """What goes with the compiled code of callers that are kept on disk, so that they are not read when stale."""
        from zygote_py.cache.linked import linked

        made = self._made.get(_with_types_of_defaults(argument_types))

        def holds() -> bool:
            return made in self._made.values() and made is not None and not _is_stale(made.compiled.lowered)

        has_constants = made is None or bool(made.compiled.lowered.hidden)
        return linked(self._of, argument_types, holds, is_whole=is_whole, has_constants=has_constants)

    def _entry_for(self, count: int) -> Any:
        """The same for so many arguments of a function that takes any number of them."""
        made = _PullbackFunction(expanded(self._of.primal, count), self._held)
        self._kept.append(made)
        return made._entry_dispatcher()

    def _implement_entry(self, given: tuple[Type, ...]) -> Callable[..., object]:
        made = self._compile(_with_types_of_defaults(given))
        entry, back = entry_function(made.compiled, self._of._request, made.restored, made.number)
        numba_adapter.link_along(back, lambda _, is_whole: self._linked(given, is_whole))
        return entry

    def _compile(self, argument_types: tuple[Type, ...]) -> _Made:
        with numba_adapter.COMPILER_LOCK:
            made = self._made.get(argument_types)
            if made is None or _is_stale(made.compiled.lowered):
                self._of.rules_have_changed()  # what was asked for, of the function as it is now
                request = self._of._request
                made = _Made(self._of, argument_types, compile_pullback(request, argument_types), request.options)
                if argument_types in self._made:
                    self._quick = self._entry = None  # a dispatcher does not forget what it has compiled
                self._made[argument_types] = made
                self._by_number[made.number] = made
            return made


def _with_types_of_defaults(given: tuple[Type, ...]) -> tuple[Type, ...]:
    return tuple(numba_adapter.typeof(each.value) if isinstance(each, types.Omitted) else each for each in given)


def _is_stale(lowered: LoweredFunction) -> bool:
    """Whether something else is captured now, or something of another type."""
    frozen = lowered.frozen
    if not are_unchanged((each.read for each in frozen), (each.value for each in frozen)):
        return True
    return not all(_is_of_type(numba_adapter.typeof(capture.read()), capture) for capture in lowered.hidden)


def _is_of_type(type: Type, capture: Capture) -> bool:
    """Whether a captured variable was compiled for a type, but for that nobody may write to a captured array."""
    return capture.type is not None and _writable(type) == _writable(capture.type)


def _writable(type: Type) -> Type:
    if isinstance(type, types.Array):
        return types.Array(type.dtype, type.ndim, type.layout)
    if isinstance(type, types.BaseTuple):
        return with_components(type, tuple(map(_writable, components_of(type))))
    return type


def _restored(
    of: DerivativeFunction[..., Any],
    argument_types: tuple[Type, ...],
    args: tuple[Any, ...],
    captured: tuple[Any, ...],
    value: Any,
    kept: Any,
) -> Pullback:
    """A pullback that was pickled, its function by way of the gradient of it."""
    made = _function(of.primal, held=of.held)._compile(argument_types)
    if made.native and made.compiled.split:
        kept = numba_adapter.put_back(*kept)
    return Pullback(made, args, captured, value, kept)


def _copied(value: Any) -> Any:
    """The same with copies of the arrays, in any structure.

    Arrays that share memory are copied apart: where one of them is written to, the function has refused them.
    """
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    held = parts(value)
    return value if held is None else with_parts(value, map(_copied, held))


@functools.cache
def _in_code(f: Callable[..., Any], held: int) -> _PullbackFunction:
    """What compiled code calls for the pullback of a function; it is kept, as Numba does not."""
    return _PullbackFunction(f, held)


numba_adapter.register_as_dispatcher(_PullbackFunction, _PullbackFunction._entry_dispatcher)
numba_adapter.embed(pullback, lambda f, options: _in_code(f, options.get("held", 0)), applied=True)
