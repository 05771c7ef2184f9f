"""Calls of functions with a custom rule (see `zygote_py.base.custom_rules`): they keep their type, and stay calls.

    @adjoint(f)                             $1 = global(f: <function f>)
    def rule(x): ...                        $2 = call $1(x)               # CustomRuleType(f), typed as f

The type of such a call is that of the function itself: by our own inference if it is a Python function that this can
type, else by Numba's, which knows functions of NumPy, intrinsics, `cfunc`s, and what runs in object mode. What the
front end gets to see of the function and of its rule, `zygote_py.numba_adapter.reading.custom_rules` says.
"""

from __future__ import annotations

import inspect
import types as python_types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numba import types
from numba.extending import overload, typeof_impl

from zygote_py.adjoints import DifferentiationError
from zygote_py.base import CustomRule, Ignored, given_for, is_observed, parts_of_function, python_function
from zygote_py.ir import Type, components_of
from zygote_py.numba_adapter.base import Decoration, chosen, is_from_source, known_type, refresh, statements
from zygote_py.numba_adapter.base.internals import _Intrinsic, cpu_target, errors, ir, signature
from zygote_py.numba_adapter.target.dispatch import is_dispatcher, jit_enabled
from zygote_py.numba_adapter.target.njit import decorated
from zygote_py.numba_adapter.types import HandleType, StandIn, TypingContext, fold


class CustomRuleType(HandleType, types.Opaque):
    """The type of a callable for which something is given."""

    def __init__(self, given: CustomRule, func: Any, session: TypingContext) -> None:
        self.given = given
        self.func = func
        self.session = session
        super().__init__(f"function {given.name} with {id(given)} in {session.number}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        given = self.given
        if given.kind in ("stop", "hook"):
            pysig = inspect.signature(self.func)
            taken = fold(pysig, self.func, args, kws)
            result = taken[0]
        else:
            pysig, target = signature_of_given(given, len(args)), python_function(given.target)
            taken = fold(pysig, target, args, kws, name=given.name, note=", as its rule has them")
            result, _ = result_of(given, taken, self.session)
        return signature(result, *taken).replace(pysig=pysig)


def given_callee(value: Any, session: TypingContext) -> StandIn | None:
    """Return the replacement of a callable with a custom rule; None in the package's own library."""
    given = None if session.frozen else given_for(value)
    if given is not None and inspect.isfunction(target := python_function(given.target)) and is_observed(target):
        session.note(parts_of_function(target))
    return None if given is None else StandIn(CustomRuleType(given, value, session))


def take_given(state: Any) -> None:
    """Put in callees for what no variable of the user's holds: built-in functions, and functions in NumPy's modules."""
    modules: dict[str, Any] = {}
    for _, statement in statements(state.func_ir):
        is_variable = False  # of the user's: it is handled as a captured variable
        match statement:
            case ir.Assign(value=ir.Global(value=StandIn())):
                continue
            case ir.Assign(value=ir.Global(name=name, value=held) | ir.FreeVar(name=name, value=held)):
                is_variable = not isinstance(held, python_types.BuiltinFunctionType | type)
            case ir.Assign(value=ir.Expr(op="getattr") as read) if read.value.name in modules:
                name, held = read.attr, getattr(modules[read.value.name], read.attr, None)
            case _:
                continue
        if isinstance(held, python_types.ModuleType):
            modules[statement.target.name] = held
        elif (callee := given_callee(held, state.session)) is not None and not is_variable:
            statement.value = ir.Global(name, callee, statement.loc)


# ---------------------------------------------------------------------------------------------- signatures and types


def signature_of_given(given: CustomRule, count: int) -> inspect.Signature:
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
    return inspect.Signature(
        [inspect.Parameter(name, _PLAIN, default=each.default) for name, each in zip(names, taken, strict=True)]
    )


_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, _PLAIN)


def star_of(given: CustomRule) -> int | None:
    """Which of the parameters of a function takes all further arguments, as a tuple; None if there is none."""
    return star_among(inspect.signature(python_function(given.target))) if is_python(given.target) else None


def star_among(pysig: inspect.Signature) -> int | None:
    """Return the number of the parameter that takes all further arguments; None if there is none."""
    parameters = enumerate(pysig.parameters.values())
    return next((place for place, each in parameters if each.kind is each.VAR_POSITIONAL), None)


def spread(given: CustomRule, values: Sequence[Any], parts: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """Return items per parameter as items per argument; `parts` splits the item of `*args`."""
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
    return inspect.isfunction(python_function(target)) and (is_dispatcher(target) or known_type(target) is None)


def result_of(given: CustomRule, taken: tuple[Type, ...], session: TypingContext) -> tuple[Type, tuple[Type, ...]]:
    """Return the result type of a call, and its parameter types. Raises numba's TypingError."""
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
    raise problem or errors.TypingError(f"`{given.name}` cannot be called with ({', '.join(map(str, taken))})")


def taken_by(target: Any, given: tuple[Type, ...]) -> tuple[tuple[Type, ...], Decoration | None]:
    """The types that a Python function takes arguments of these types as, and how it is compiled for them."""
    return chosen(target, given) if is_from_source(target) else (given, None)


def compiled_by_numba(given: CustomRule) -> Any:
    """The callable as compiled code can call it."""
    code = getattr(given.target, "__code__", None)
    if given not in _compiled or _compiled[given][0] is not code:
        target: Any = given.target
        if inspect.isfunction(target) and known_type(target) is None:
            with jit_enabled():
                target = decorated(target, {})
        _compiled[given] = code, target
    return _compiled[given][1]


# With the code that was compiled. Numba refers to dispatchers weakly.
_compiled: weakref.WeakKeyDictionary[CustomRule, tuple[Any, Any]] = weakref.WeakKeyDictionary()


def _by_numba(given: CustomRule, taken: tuple[Type, ...]) -> tuple[Type, tuple[Type, ...]] | None:
    context = cpu_target.typing_context
    args = tuple(each for each in spread(given, taken, components_of) if not isinstance(each, types.Omitted))
    with jit_enabled():
        try:
            held = context.resolve_value_type(compiled_by_numba(given))
            found = held.signature if isinstance(held, types.FunctionType) else None
            found = found or context.resolve_function_type(held, args, {})
        except Exception:  # of several kinds
            return None
    if found is None or len(found.args) < len(args):
        return None
    return found.return_type, taken if star_of(given) is not None else tuple(found.args[: len(args)])


def can_call(given: CustomRule, kinds: tuple[Type, ...]) -> bool:
    """Return whether Numba itself can call a function with arguments of these types."""
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
        return cpu_target.typing_context.resolve_value_type(compiled_by_numba(value.given))
