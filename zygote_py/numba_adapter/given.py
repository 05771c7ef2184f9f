"""Calls of functions for which something is given (see `zygote_py.given`): they are typed as what they are, and stay.

    @adjoint(f)                             $1 = global(f: <function f>)
    def rule(x): ...                        $2 = call $1(x)               # GivenCallee(f), typed as f

The type of such a call is that of the function itself: by our own inference if it is a Python function that this can
type, else by Numba's, which knows functions of NumPy, intrinsics, `cfunc`s, and what runs in object mode. What the
front end gets to see of the function and of its rule, `zygote_py.numba_adapter.ruled` says.
"""

from __future__ import annotations

import inspect
import types as python_types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numba
from numba import types
from numba.extending import overload, register_model, typeof_impl

from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.capture import parts_of_function
from zygote_py.given import Given, Ignored, given_for, python_function
from zygote_py.ir.core import Type
from zygote_py.ir.errors import InternalError
from zygote_py.ir.types import components_of
from zygote_py.numba_adapter.callees import Callee, Session, fold
from zygote_py.numba_adapter.decorations import Decoration, chosen, is_from_source
from zygote_py.numba_adapter.dispatch import is_dispatcher, refresh
from zygote_py.numba_adapter.internals import _Intrinsic, config, cpu_target, errors, ir, models, signature
from zygote_py.numba_adapter.same import Same


class GivenCallee(Callee):
    """What stands in a function that is being typed for a callable for which something is given."""

    def __init__(self, given: Given, func: Any, session: Session) -> None:
        super().__init__(func, session)
        self.given = given


class GivenType(Same, types.Callable, types.Opaque):
    """The type of a `GivenCallee`."""

    def __init__(self, callee: GivenCallee) -> None:
        self.given = callee.given
        self.func = callee.func
        self.session = callee.session
        super().__init__(f"function {callee.given.name} with {id(callee.given)} in {callee.session.number}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        if self.given.kind in ("stop", "hook"):
            pysig, folded = fold(self.func, args, kws, {})
            return signature(folded[0], *folded).replace(pysig=pysig)
        pysig = signature_of_given(self.given, len(args))
        try:
            bound = pysig.bind(*args, **dict(kws)).arguments
        except TypeError as error:
            raise errors.TypingError(
                f"wrong arguments for `{self.given.name}`, as its rule has them: {error}"
            ) from None
        star = star_of(self.given)
        taken = tuple(
            types.BaseTuple.from_types([types.unliteral(each) for each in bound.get(name, ())])
            if place == star
            else types.unliteral(bound[name])
            if name in bound
            else types.Omitted(parameter.default)
            for place, (name, parameter) in enumerate(pysig.parameters.items())
        )
        found, _ = result_of(self.given, taken, self.session)
        return signature(found, *taken).replace(pysig=pysig)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return [], False

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile; it does not come to that."""
        raise InternalError(f"the call of `{self.given.name}` is to be compiled")


register_model(GivenType)(models.OpaqueModel)


@typeof_impl.register(GivenCallee)
def _typeof_given(value: GivenCallee, context: object) -> Type:
    return GivenType(value)


def given_callee(value: Any, session: Session) -> GivenCallee | None:
    """What to put in the place of a callable for which something is given; our own library knows of nothing given."""
    given = None if session.frozen else given_for(value)
    if given is not None and inspect.isfunction(target := python_function(given.target)):
        session.note(parts_of_function(target))
    return None if given is None else GivenCallee(given, value, session)


def take_given(state: Any) -> None:
    """Put in callees for what no variable of the user's holds: built-in functions, and functions in NumPy's modules."""
    modules: dict[str, Any] = {}
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            if not isinstance(statement, ir.Assign):
                continue
            match statement.value:
                case ir.Global(value=Callee()):
                    continue
                case ir.Global(value=held) | ir.FreeVar(value=held):
                    name = statement.value.name
                case ir.Expr(op="getattr") as read if read.value.name in modules:
                    name, held = read.attr, getattr(modules[read.value.name], read.attr, None)
                case _:
                    continue
            if isinstance(held, python_types.ModuleType):
                modules[statement.target.name] = held
            elif (callee := given_callee(held, state.session)) is not None and not _is_variable(statement.value):
                statement.value = ir.Global(name, callee, statement.loc)


def _is_variable(value: Any) -> bool:
    """Whether the user's own variable holds this: it is looked at as what the function captures."""
    return isinstance(value, ir.Global | ir.FreeVar) and not isinstance(
        value.value, python_types.BuiltinFunctionType | type
    )


# ---------------------------------------------------------------------------------------------- signatures and types


def signature_of_given(given: Given, count: int) -> inspect.Signature:
    """The parameters of a function as they are called, with the names that they have there and the rule's defaults.

    Where nothing else says how many it takes, it has as many parameters as there are arguments, `count`.
    A function that is not written in Python may have parameters that its rule knows nothing of: they are left out.
    """
    target = python_function(given.target)
    if (inspect.isfunction(target) and given.rule is None) or is_python(given.target):
        return inspect.signature(target)
    own = [each.name for each in parameters_of(target) or ()]
    taken = [] if given.rule is None else list(inspect.signature(python_function(given.rule)).parameters.values())
    if not taken or any(each.kind is each.VAR_POSITIONAL for each in taken):
        taken = [inspect.Parameter(f"x{number}", _PLAIN) for number in range(count)]
    names = [*own[: len(taken)], *(each.name for each in taken[len(own) :])]
    made = [inspect.Parameter(name, _PLAIN, default=each.default) for name, each in zip(names, taken, strict=True)]
    return inspect.Signature(made)


_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, _PLAIN)


def star_of(given: Given) -> int | None:
    """Which of the parameters of a function takes all further arguments, as a tuple; None if there is none."""
    if not is_python(given.target):
        return None
    parameters = inspect.signature(python_function(given.target)).parameters.values()
    return next((place for place, each in enumerate(parameters) if each.kind is each.VAR_POSITIONAL), None)


def spread(given: Given, values: Sequence[Any], parts: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """What there is for each parameter as what there is for each argument; `parts` takes that of `*args` apart."""
    star = star_of(given)
    return [each for place, value in enumerate(values) for each in (parts(value) if place == star else [value])]


def parameters_of(target: object) -> list[inspect.Parameter] | None:
    """The parameters, of what is not written in Python those with a place; None if there may be any number."""
    try:
        found = inspect.signature(target).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_POSITIONAL for each in found):
        return None
    words = inspect.isfunction(target)
    taken = [each for each in found if each.kind in _PLACED or (words and each.kind is each.KEYWORD_ONLY)]
    return taken[1:] if isinstance(target, _Intrinsic) else taken  # the first of an intrinsic is the typing context


def is_python(target: Any) -> bool:
    """Whether a callable is a Python function, decorated or not, of which Numba does not know something else."""
    if is_dispatcher(target):
        return inspect.isfunction(python_function(target))
    return inspect.isfunction(target) and not is_known(target)


def is_known(target: object) -> bool:
    """Whether Numba has a type for a callable: somebody may have told it what a Python function means."""
    try:
        cpu_target.typing_context.resolve_value_type(target)
    except Exception:  # Numba raises errors of several kinds for what it does not know
        return False
    return True


def result_of(given: Given, taken: tuple[Type, ...], session: Session) -> tuple[Type, tuple[Type, ...]]:
    """What a call gives, and the types that the arguments are taken as. Raises numba's TypingError."""
    problem: DifferentiationError | None = None
    if is_python(given.target):
        try:
            accepted, how = taken_by(given.target, taken)
            return session.result_type(python_function(given.target), accepted, how), accepted
        except DifferentiationError as error:
            problem = error
    found = _by_numba(given, taken)
    if found is not None:
        return found
    if problem is not None:
        raise problem
    shown = ", ".join(str(each) for each in taken)
    raise errors.TypingError(f"`{given.name}` cannot be called with ({shown})")


def taken_by(target: Any, given: tuple[Type, ...]) -> tuple[tuple[Type, ...], Decoration | None]:
    """The types that a Python function takes arguments of these types as, and how it is compiled for them."""
    return chosen(target, given) if is_from_source(target) else (given, None)


@contextmanager
def _jit_enabled() -> Iterator[None]:
    settings: Any = config
    disabled, settings.DISABLE_JIT = settings.DISABLE_JIT, 0
    try:
        yield
    finally:
        settings.DISABLE_JIT = disabled


def compiled_by_numba(given: Given) -> Any:
    """The callable as compiled code can call it."""
    code = getattr(given.target, "__code__", None)
    if given not in _compiled or _compiled[given][0] is not code:
        target: Any = given.target
        if inspect.isfunction(target) and not is_known(target):
            decorate: Any = numba.njit
            with _jit_enabled():
                target = decorate(target)
        _compiled[given] = code, target
    return _compiled[given][1]


# With the code that was compiled. Numba refers to dispatchers weakly.
_compiled: weakref.WeakKeyDictionary[Given, tuple[Any, Any]] = weakref.WeakKeyDictionary()


def _by_numba(given: Given, taken: tuple[Type, ...]) -> tuple[Type, tuple[Type, ...]] | None:
    context: Any = cpu_target.typing_context
    args = tuple(each for each in spread(given, taken, components_of) if not isinstance(each, types.Omitted))
    with _jit_enabled():
        try:
            held = context.resolve_value_type(compiled_by_numba(given))
            found = held.signature if isinstance(held, types.FunctionType) else None
            found = found or context.resolve_function_type(held, args, {})
        except Exception:  # of several kinds
            return None
    if found is None or len(found.args) < len(args):
        return None
    return found.return_type, taken if star_of(given) is not None else tuple(found.args[: len(args)])


def can_call(given: Given, kinds: tuple[Type, ...]) -> bool:
    """Whether Numba can call a function with arguments of these types, whatever we make of it."""
    return _by_numba(given, kinds) is not None


# --------------------------------------------------------------------------------------- for what Numba compiles itself


def make_identities(stop_gradient: Any, hook: Any) -> None:
    """Let the functions be the identity in functions that are compiled without being differentiated."""
    overload(stop_gradient)(lambda x: lambda x: x)
    overload(hook)(lambda x, fn: lambda x, fn: x)
    refresh()


def make_ignored_known(cls: type[Ignored]) -> None:
    """Let ignored functions be called from compiled code."""

    @typeof_impl.register(cls)
    def type_of_ignored(value: Ignored, context: Any) -> Any:
        if value.compiled is None:
            value.compiled = compiled_by_numba(value.given)
        return cpu_target.typing_context.resolve_value_type(value.compiled)
