"""`DerivativeFunction`: a derivative of a function, compiled for each signature that it is called with.

    df = DerivativeFunction(lambda x: x * x, GradientForm())
    df(3.0)                                 # 6.0
    pickle.loads(pickle.dumps(df))          # for a function that can be imported; cloudpickle takes any

Which derivative it is, its form says: a gradient (`DerivativeFunction`), a Jacobian, ... (see
`zygote_py.compiler.transforms`).

Threads may share one: what compiles holds Numba's own lock, calls of what is compiled hold none. It is pickled, copied
and compared as the function that it came from; compiled code is not copied. It compiles nothing itself (see
`zygote_py.compiler.pipeline`).
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import weakref
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any, Generic, ParamSpec, Self, TypeVar

from numba import types

from zygote_py import compiler, numba_adapter
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import PARTS, Capture, Names, are_unchanged, call_text, load_extensions, stub, variable_of, watch
from zygote_py.cache import Kernel, MachineCode, find, guard_callers
from zygote_py.compiler import Form, Request, check_fit, expanded, misfit, named_in_module, star_of, starred_dispatcher
from zygote_py.ir import Type
from zygote_py.runtime.inspection import Inspected
from zygote_py.runtime.records import holds_record, with_records
from zygote_py.runtime.state import Fewer, Generation, Outdated, passing
from zygote_py.runtime.tracebacks import is_of_the_user, name_arrays, shortened, warn_of_zeros

P = ParamSpec("P")
R = TypeVar("R")


class DerivativeFunction(Inspected, numba_adapter.DirectCalls, Generic[P, R]):
    """A derivative of a function of numbers and arrays, compiled for each signature that it is called with.

    Its arguments and its result are documented with the function that makes it: `gradient`, `jacobian`, `hessian`, ...
    It is a function like any other: it can be called from compiled code and by several threads at once, copied,
    pickled, and differentiated. For type checkers it is generic in its parameters and its result.

    Attributes
    ----------
    primal : callable
        The callable that was differentiated, as it was passed.
    function : callable
        The Python function, or the compiled one, that does what `primal` does; they differ for bound methods, partials,
        objects with `__call__` and functions that are not written in Python.
    form : Form
        The kind of derivative, with its options.
    captured_count : int
        The number of leading parameters that are captured variables; they get a gradient only if they are named.

    Examples
    --------
    >>> import numpy as np
    >>> from zygote_py import gradient
    >>> df = gradient(lambda x: np.sum(x**3))  # x: shape (n,)
    >>> df(np.array([1.0, 2.0]))  # shape (n,)
    array([ 3., 12.])
    >>> df
    <gradient of <lambda>>
    """

    def __init__(self, primal: Callable[..., Any], form: Form, captured_count: int = 0) -> None:
        functools.update_wrapper(self, primal, updated=("__dict__",) if inspect.isfunction(primal) else ())
        self.primal = primal
        is_function = isinstance(primal, FunctionType | DerivativeFunction) or numba_adapter.is_dispatcher(primal)
        self._bound = () if is_function else numba_adapter.bound_by(primal)
        self.form = form
        self.captured_count = captured_count
        self._of = functools.lru_cache(maxsize=None)(self._expanded)
        self._kept: list[Any] = []
        self._of_instances: dict[int, DerivativeFunction[..., Any]] = {}  # as methods, the last used at the end
        self._take(primal if is_function else numba_adapter.as_function(primal))
        self._reset()
        watch(self)

    def rules_have_changed(self) -> None:
        """Compile again at the next call, since rules have changed. Compiled callers remain as they are."""
        with numba_adapter.COMPILER_LOCK:
            self._reset()

    def _take(self, of: Any) -> None:
        self.function: Any = of
        # The Python function, which may be changed in place, as `%autoreload` does.
        self._root: Any = of._root if isinstance(of, DerivativeFunction) else numba_adapter.py_func_of(of)

    def _is_as_bound(self) -> bool:
        """Return whether the callable, if it is a partial or an object, still binds and calls what it did."""
        now = numba_adapter.bound_by(self.primal)
        return len(now) == len(self._bound) and all(map(operator.is_, now, self._bound))

    def _reset(self) -> None:
        """Discard the compiled code."""
        if self._bound and not self._is_as_bound():
            self._bound = numba_adapter.bound_by(self.primal)
            self._take(numba_adapter.as_function(self.primal))
        self._code = getattr(self._root, "__code__", None)
        self._star = star_of(self.function)
        self._of.cache_clear()
        self._requested: tuple[list[object], Request] | None = None
        self._now = Generation((), {})
        self._choose_quick()

    def _choose_quick(self) -> None:
        """Determine the dispatcher that calls from Python may use directly, and what must be unchanged for that."""
        now = self._now
        self._quick: Any = None
        passed = now.dispatcher is not None and not self._request.keyword_only
        if passed and not any(map(_takes_functions, now.compiled)):
            # The code of the function is looked at anyway, defaults only where it has some.
            others = [
                capture
                for capture in now.frozen.values()
                if capture.key[0] != id(self._root) or (capture.source != "__code__" and capture.value is not None)
            ]
            self._readers: tuple[Any, ...] = tuple(capture.read for capture in others)
            self._values: tuple[object, ...] = tuple(capture.value for capture in others)
            if self._bound:
                self._readers, self._values = (self._is_as_bound, *self._readers), (True, *self._values)
            count = len(self._request.signature.parameters)
            entry = passing(now, count) if now.hidden else now.dispatcher
            self._quick = self._finished(entry, count, now)
            self._passes_more = bool(now.hidden) and self._quick is entry
        self.directly(None, None, None)
        self._may_be_direct = self._quick is not None
        self._tries = _MOST_TRIES

    def _finished(self, function: Callable[..., Any], count: int, now: Generation) -> Callable[..., Any]:
        """Return the function that calls from Python run, given the compiled function of `count` arguments."""
        return self._giving_records(self.form.finishing(function, count, now.numbered))

    def _giving_records(self, function: Callable[..., Any]) -> Callable[..., Any]:
        takes_records = any(map(holds_record, self._now.compiled))
        return functools.partial(self._called_with_records, function) if takes_records else function

    def _called_with_records(self, function: Callable[..., Any], *args: Any) -> Any:
        count = len(self._request.signature.parameters)
        kinds = tuple(map(numba_adapter.typeof, args[:count]))
        return with_records(function(*args), self.form, self._request, kinds)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the derivative at these arguments."""
        quick = self._quick
        try:
            if quick is None or kwargs or self._root.__code__ is not self._code:
                return self._call(args, kwargs)  # type: ignore[no-any-return]
            if self._readers and not are_unchanged(self._readers, self._values):
                return self._call(args, kwargs)  # type: ignore[no-any-return]
            try:
                result: R = quick(*args)
                if self._may_be_direct:
                    self._make_direct(quick)
                return result
            except Exception as error:
                if self._is_to_be_called_otherwise(args, error):
                    return self._call(args, kwargs)  # type: ignore[no-any-return]
                raise
        except Exception as error:
            if is_of_the_user(error):
                raise shortened(error) from None
            raise

    def _make_direct(self, quick: Any) -> None:
        """Let calls go to a function that has been called a second time, unless another thread replaces it meanwhile.

        Calls do not wait for the lock: who replaces it, takes away what is installed, and what is installed late goes
        again here.
        """
        root, code, now = self._root, self._code, self._now
        if self._quick is quick and _is_made_direct():
            self._tries -= 1
            with_captured = self._seen_variables(now.hidden) if self._passes_more and self._tries > 0 else None
            self._may_be_direct = with_captured is not None
            seen = with_captured or self._seen_variables(())
            if seen is not None:
                self.directly(now.dispatcher if with_captured else quick, root, code, seen)
            if self._quick is not quick:
                self.directly(None, None, None)

    def _seen_variables(self, passed: tuple[Capture, ...]) -> numba_adapter.Sights | None:
        """Return what must be unchanged, with captured values that are `passed`, which are as now until one changes.

        None if there are readers that do more than look for a variable.
        """
        more = tuple(capture.read() for capture in passed)
        places = [variable_of(read) for read in (*self._readers, *(capture.read for capture in passed))]
        values = (*self._values, *more)
        seen = [(*place, value) for place, value in zip(places, values, strict=True) if place is not None]
        count = len(self._request.signature.parameters)
        return numba_adapter.sights(seen, count, more) if len(seen) == len(places) else None

    def _is_to_be_called_otherwise(self, args: tuple[Any, ...], error: Exception) -> bool:
        """Return whether an error of the quick way does not count; raise another one if the arguments are its cause."""
        # Functions are wrapped first; and a function that has changed may have other parameters.
        if isinstance(error, Outdated | Fewer) or self._is_outdated() or any(map(numba_adapter.holds_functions, args)):
            return True
        self._diagnose(args, {}, error)
        return False

    def failed(self, args: tuple[Any, ...], error: BaseException) -> Any:
        """Return the derivative nevertheless, or raise what is to be raised, after an error of a direct call."""
        context = error.__context__
        try:
            if isinstance(error, Exception) and self._is_to_be_called_otherwise(args, error):
                return self._call(args, {})
            try:
                raise error
            finally:
                error.__context__ = context  # and not an exception that the caller handles
        except Exception as final:
            if is_of_the_user(final):
                raise shortened(final) from None
            raise
        finally:
            del args, error, context  # which the traceback would keep alive

    def __repr__(self) -> str:
        aux = ", has_aux=True" if getattr(self.form, "has_aux", False) else ""
        return f"<{self.form} of {getattr(self.primal, '__qualname__', self.primal)}{aux}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return the derivative as a method: of the bound method, where Numba does not know the object."""
        if instance is None:
            return self
        if not numba_adapter.is_plain_object(instance):
            return functools.partial(self, instance)  # type: ignore[arg-type]
        # By identity, since equal objects may hold different numbers; an entry keeps its object, and so the identity.
        made = self._of_instances.pop(id(instance), None)
        if made is None:
            made = DerivativeFunction(MethodType(self.primal, instance), self.form)
        self._of_instances[id(instance)] = made
        if len(self._of_instances) > _MOST_INSTANCES:
            del self._of_instances[next(iter(self._of_instances))]
        return made

    def __copy__(self) -> Self:
        return self  # as a function is its own copy

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        primal, options = self.primal, None
        named = named_in_module(numba_adapter.py_func_of(primal))
        if (
            isinstance(named, DerivativeFunction) and named.primal is primal
        ):  # decorated: the name is not the function's
            if protocol < 4 and named is self:
                return self.__qualname__  # type: ignore[attr-defined]
            if numba_adapter.is_dispatcher(primal):
                options = numba_adapter.arguments_of_decorator(primal)
            primal = named._under_own_name
        return _restored, (primal, options, self.form, self.captured_count)

    @functools.cached_property
    def _under_own_name(self) -> Callable[..., object]:
        """Return the function under the name `f._under_own_name`, where `f` is the name of this gradient in its module.

        Pickle finds a function by its name, and the name is taken by the gradient if that came of a decorator. Picklers
        that write a function out in full do so with this one as well.
        """
        func: Any = numba_adapter.py_func_of(self.primal)
        made = compiler.under_name(func, func.__qualname__ + _OWN)
        _named[made] = self
        return made

    def circumstances(self) -> tuple[object, tuple[Any, ...]] | None:
        """Return all that a call depends on besides its arguments: the compiled code, by identity, and captured values.

        Returns None if that is unknown before the call.
        """
        now = self._now
        return None if self._star or not now.compiled or now.is_outdated() else (now, now.captured())

    def _is_outdated(self) -> bool:
        """Return whether compiling now would yield other code."""
        if self._bound and not self._is_as_bound():
            return True
        return self._now.is_outdated() or getattr(self._root, "__code__", None) is not self._code

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call with everything that the quick path leaves out: keywords, captured values, the interpreter."""
        if self._is_outdated():
            self.rules_have_changed()
        if self._star:
            if self.form.count(args) == len(args):  # they are the function's
                check_fit(self.function, args, kwargs)
            return self._of(self.form.count(args))(*args, **kwargs)
        self._request.check_positional(len(args))
        if kwargs or len(args) != len(self._request.signature.parameters):
            args = self._bind(args, kwargs)
        if not all(map(numba_adapter.is_plain, args)):
            args = numba_adapter.with_functions(args)
        while True:
            now = self._now
            try:
                if not now.compiled:  # the captured variables must be known before the call
                    now, _ = self._compile(self._types(args))
                captured = now.captured()
                if numba_adapter.jit_is_disabled():
                    types_ = (*self._types(args), *map(numba_adapter.typeof, captured))
                    return self._giving_records(self._kernel_of(now, types_).interpreted)(*args, *captured)
                function = self._finished(now.dispatcher or self._dispatcher(now), len(args) + len(captured), now)
                return function(*args, *captured)
            except Outdated:
                continue
            except Exception as error:
                self._diagnose(args, {}, error)
                raise

    def _compile(self, argument_types: tuple[Type, ...]) -> tuple[Generation, Kernel]:
        """Run the stages for a signature, or find their earlier result, and note the captured variables."""
        with numba_adapter.COMPILER_LOCK:
            load_extensions()
            if self._is_outdated():
                self._reset()
            while argument_types not in self._now.compiled:
                with numba_adapter.timed(f"deriving {call_text(self._request.name, argument_types)}"):
                    kernel, hidden = (self.form.kernel or find)(self._request, argument_types, self._now.hidden)
                if [capture.key for capture in hidden] != [capture.key for capture in self._now.hidden]:
                    self._now = Generation(hidden, self._now.frozen, self._now)
                self._now.add(argument_types, kernel)
                warn_of_zeros(self._request.func.__name__, kernel.source)
                self._choose_quick()
            return self._now, self._now.compiled[argument_types]

    def _dispatcher(self, now: Generation) -> Any:
        """Return the dispatcher for calls from Python: it takes the arguments, then the captured values."""
        with numba_adapter.COMPILER_LOCK:
            if now.dispatcher is None:
                if now.hidden or self.form.has_own_entry:
                    kernel_of = functools.partial(self._kernel_of, now)
                    stub = stub_of(self._request, now.hidden)
                    now.dispatcher = numba_adapter.make_dispatcher(
                        stub,
                        lambda given: kernel_of(given).function,
                        self._request.options,
                        lambda given: kernel_of(given).code,
                    )
                else:
                    now.dispatcher = self._entry_of(now)
                numba_adapter.refuse_functions(now.dispatcher)  # which the quick way has not wrapped
            self._choose_quick()
            return now.dispatcher

    def _kernel_of(self, now: Generation, given: tuple[Type, ...]) -> Kernel:
        """Return the kernel for the types of the arguments, followed by the current types of the captured values."""
        count = len(given) - len(now.hidden)
        with numba_adapter.COMPILER_LOCK:
            for _ in range(2):  # what was compiled before may be for captured values of other types
                present, kernel = self._compile(given[:count])
                if present is not now:
                    break
                if now.fits(kernel, given[count:]):
                    return kernel
                del now.compiled[given[:count]]
            raise Outdated

    def _entry_dispatcher(self) -> Any:
        """Return the dispatcher for calls from compiled code, where captured values are constants, as in Numba."""
        with numba_adapter.COMPILER_LOCK:
            if self._is_outdated():
                self._reset()
            elif self._now.has_other_constants():
                self._now.renew_entry()
            return self._entry_of(self._now)

    def _entry_of(self, now: Generation) -> Any:
        if now.entry is None:
            if self._star:
                now.entry = starred_dispatcher(self.function, functools.partial(self._entered, now))
            else:
                stub = stub_of(self._request, [])
                wrong = functools.partial(misfit, self._request)

                def code_of(given: tuple[Type, ...]) -> MachineCode | None:
                    present, kernel = self._compile(given)
                    # With constants, or if Python enters another function, it is not what the kernel says.
                    return None if present.hidden or self.form.has_own_entry else kernel.code

                now.entry = numba_adapter.make_dispatcher(
                    stub,
                    functools.partial(self._implement_entry, now),
                    {**self._request.options, **self.form.entry_options},
                    code_of,
                    misfit=wrong,
                )
                numba_adapter.link_along(now.entry, functools.partial(self._guard, now))
            self._kept.append(now.entry)  # Numba refers to it weakly
        return now.entry

    def _entered(self, now: Generation, count: int) -> Any:
        """Return the dispatcher for a number of arguments, for compiled code that calls a function of any number."""
        of = self._of(self.form.count(range(count)))
        now.entered.append(lambda: of._now.has_other_constants())
        return of._entry_dispatcher()

    def _guard(self, now: Generation, argument_types: tuple[Type, ...], is_whole: bool) -> Callable[[], None]:
        """Return the guard of callers that Numba keeps on disk, so that stale ones are not read."""

        def holds() -> bool:
            return self._now.entry is now.entry and not self._is_outdated()

        return guard_callers(self, argument_types, holds, is_whole=is_whole, has_constants=bool(self._now.hidden))

    def _implement_entry(self, entered: Generation, argument_types: tuple[Type, ...]) -> Callable[..., object]:
        def link(dispatcher: Any) -> None:
            guard = functools.partial(self._guard, entered)
            numba_adapter.link_along(dispatcher, lambda _, is_whole: guard(argument_types, is_whole))

        with numba_adapter.COMPILER_LOCK:
            now, kernel = self._compile(argument_types)
            return kernel.entry(self._request, now.as_constants(), link)

    @property
    def _request(self) -> Request:
        """The request, for the function as it is, or as it was when it was compiled."""
        if self._requested is None or not self._now.compiled:
            parts = [getattr(self._root, name, None) for name in PARTS]
            if self._requested is None or not all(map(operator.is_, parts, self._requested[0])):
                self._requested = parts, self._made_request()
        return self._requested[1]

    def _made_request(self) -> Request:
        inner = self.function._made_request() if isinstance(self.function, DerivativeFunction) else None
        return self.form.request(self.function, self.captured_count, inner)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in the order of the parameters, with defaults filled in."""
        request = self._request
        try:
            bound = request.signature.bind(*args, **kwargs)
        except TypeError:
            raise misfit(request, args, kwargs) from None
        bound.apply_defaults()
        return bound.args

    def _types(self, args: tuple[Any, ...], lists: bool = True) -> tuple[Type, ...]:
        """Return the Numba types of arguments, each of which is a value or a type already; refuse lists if asked to."""
        found = []
        for name, arg in zip(self._request.signature.parameters, args, strict=False):
            if isinstance(arg, types.Type):
                found.append(arg)
                continue
            (value,) = (arg,) if numba_adapter.is_plain(arg) else numba_adapter.with_functions((arg,))
            if (unsuitable := numba_adapter.unsuitable(value, name, lists=lists)) is not None:
                place, what, hint = unsuitable
                text = self.form.argument_text(self._request, name + place)
                raise refuse(f"{text} is {what}, which is not supported", self._request.loc, hint)
            found.append(numba_adapter.typeof(value))
        return tuple(found)

    def _diagnose(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> None:
        """Raise another error if the arguments are the cause of `error`: their values say more than their types."""
        if not self._star:
            is_of_list = isinstance(error, DifferentiationError) and re.match(r"Numba.*(list|Record)\(", error.message)
            bound = self._bind(args, kwargs)
            self._types(bound, lists=not is_of_list)  # where Numba takes an array, but no list
            name_arrays(error, dict(zip(self._request.signature.parameters, bound, strict=False)))

    def _expanded(self, count: int) -> DerivativeFunction[..., Any]:
        """Return the derivative for `count` arguments of a function that takes `*args`."""
        return DerivativeFunction(
            expanded(self.function, count), self.form.expanded(self.function, count), self.captured_count
        )

    def _ready(self, argument_types: tuple[Type, ...]) -> tuple[Kernel, Any, tuple[Type, ...]]:
        """Return the kernel for a signature, with the dispatcher and the signature for which that has compiled it."""
        while True:
            try:
                now, kernel = self._compile(argument_types)
                dispatcher = self._dispatcher(now)
                signature = (*argument_types, *map(numba_adapter.typeof, now.captured()))
                dispatcher.compile(signature)
                return kernel, dispatcher, signature
            except Outdated:
                continue

    def _without_cache(self, dispatcher: Any, kernel: Kernel) -> Any:
        """Return a new dispatcher for a signature whose machine code was in the cache, without its LLVM IR."""
        return numba_adapter.make_dispatcher(dispatcher.py_func, lambda given: kernel.function, self._request.options)


def _takes_functions(argument_types: tuple[Type, ...]) -> bool:
    """Return whether functions are among the arguments, or in structures among them."""
    structured = any(isinstance(each, types.BaseTuple | types.Callable) for each in argument_types)
    return structured and numba_adapter.takes_functions(argument_types)


_MOST_INSTANCES = 128
_OWN = "._under_own_name"
_named: weakref.WeakKeyDictionary[Any, DerivativeFunction[..., Any]] = weakref.WeakKeyDictionary()


def _restored(
    primal: Any, options: dict[str, object] | None, form: Form, captured_count: int = 0
) -> DerivativeFunction[..., Any]:
    """Return the derivative that was pickled: the one of the module if it is the same."""
    named = _named.get(primal) if isinstance(primal, FunctionType) else None
    if named is not None:
        if named.form == form:
            return named
        primal = named.primal
    elif isinstance(primal, FunctionType):
        primal.__qualname__ = primal.__qualname__.removesuffix(_OWN)
        if options is not None:
            primal = numba_adapter.decorated(primal, options)
    return DerivativeFunction(primal, form, captured_count)


def stub_of(request: Request, hidden: Iterable[Capture]) -> Callable[..., object]:
    """Return a function with the parameters of the emitted ones, for the dispatcher to know them by."""
    names = Names(request.signature.parameters)
    captured = [names.fresh(f"captured_{capture.name}") for capture in hidden]
    # With captured values after them, defaults are filled in before the call.
    defaults = () if captured else tuple(request.defaults.values())
    return stub(request.name, [*request.signature.parameters, *captured], defaults)


@functools.cache
def kept_derivative(f: Callable[..., Any], form: Form, captured_count: int) -> DerivativeFunction[..., Any]:
    """Return a derivative that compiled code calls, kept for good since Numba refers to it weakly."""
    return DerivativeFunction(f, form, captured_count)


_MOST_TRIES = 16  # how often captured values that are passed may change until they are read at each call


@functools.cache
def _is_made_direct() -> bool:
    """Let calls from Python do without `__call__`, from the first derivative on. Return whether that is possible."""
    return numba_adapter.make_direct(DerivativeFunction)


numba_adapter.register_as_dispatcher(DerivativeFunction, DerivativeFunction._entry_dispatcher)
