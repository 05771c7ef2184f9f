"""The primal of a request for one signature: the user's function in the form that is differentiated.

    given, wrt, lowered = lowered_primal(request, (float64, int64), lower)

The function is lowered for the types to which the request converts its arguments. Reversible loops and loops with
checkpoints become routines, and the rest is brought into canonical form. Arguments and results that do not permit
differentiation are refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import (
    check_returned,
    divide_loops,
    has_reversible_steps,
    outline_reversible_loops,
    refuse,
    written_after_return,
)
from zygote_py.adjoints.analysis import carries_adjoint, expose_leaves, is_float
from zygote_py.adjoints.routines import check_steps, refuse_shared_arguments
from zygote_py.compiler.free_variables import numbers_asked_for
from zygote_py.compiler.higher_order import take_as_primal
from zygote_py.compiler.request import Request
from zygote_py.frontend import LoweredFunction
from zygote_py.ir import (
    Const,
    Function,
    Instr,
    Memory,
    Operand,
    Raise,
    Return,
    Routine,
    Type,
    Value,
    components_of,
    cycles,
    find_effects,
    inline_calls,
    make_canonical,
    passes,
    shares_what_it_writes,
)

# Makes the IR of what is to be differentiated, for the types of its arguments.
Lower = Callable[[tuple[Type, ...]], LoweredFunction]


def lowered_primal(
    request: Request, argument_types: tuple[Type, ...], lower: Lower
) -> tuple[tuple[Type, ...], tuple[int, ...], LoweredFunction]:
    """Return the argument types, the numbers of the parameters asked for, and the primal in canonical form."""
    given = tuple(map(_without_default, argument_types))
    taken = tuple(_taken_as(request, number, type) for number, type in enumerate(given))
    lowered = lower(taken)
    if lowered.has_derivatives:
        called = take_as_primal(lowered.function)  # rules are not called
        lowered = replace(lowered, routines=(*called, *(each for each in lowered.routines if each not in called)))
    parameters = tuple(request.signature.parameters)[: len(given)]
    wrt = numbers_asked_for(request.wrt, request.closure, parameters, lowered, request.loc, request.held)
    recursive = {routine for routine, others in cycles(lowered.routines).items() if others}
    for function in lowered.functions:
        _inline_shared(function, recursive)
    lowered = _with_reversible_loops(lowered)
    for function in lowered.functions:
        make_canonical(function)
        _check_returns(function)
    return given, wrt, _with_divided_loops(lowered)


def _with_reversible_loops(lowered: LoweredFunction) -> LoweredFunction:
    """Turn reversible loops into routines, in the function and in its routines."""
    if all(routine.inverse is None for routine in lowered.routines):
        return lowered
    check_steps(lowered.routines)
    together = cycles(lowered.routines)
    routines = list(lowered.routines)
    functions = lowered.functions
    if written_after_return(functions, [each for each in routines if has_reversible_steps(each.function)]):
        return lowered
    for caller in (None, *lowered.routines):
        function = lowered.function if caller is None else caller.function
        if has_reversible_steps(function):
            passes.run(function, (*passes.CLEAN_UP, *passes.CANONICAL))
            routines += outline_reversible_loops(function, () if caller is None else together[caller])
    return _with_routines(lowered, routines)


def _with_routines(lowered: LoweredFunction, routines: list[Routine]) -> LoweredFunction:
    """Return a function that calls further routines, whose effects are found out."""
    find_effects(routines)
    return replace(lowered, routines=tuple(routines))


def _with_divided_loops(lowered: LoweredFunction) -> LoweredFunction:
    """Divide the loops that have checkpoints, in the function and in its routines."""
    routines = list(lowered.routines)
    functions = lowered.functions
    check_returned(functions, routines)
    for function in functions:
        if made := divide_loops(function):
            for each in (function, *(routine.function for routine in made)):
                make_canonical(each)
            routines += made
    return lowered if len(routines) == len(lowered.routines) else _with_routines(lowered, routines)


def _inline_shared(function: Function, recursive: Collection[Routine]) -> None:
    """Inline the calls whose arguments may share memory that is written to, which routines assume not to happen."""
    while True:
        memory = Memory(function)
        candidates = [call for call, routine in function.calls() if routine not in recursive]
        calls = [call for call in candidates if shares_what_it_writes(memory, call)]
        if not calls:
            return
        inline_calls(function, calls.__contains__)


def checked_arguments(primal: Function, wrt: tuple[int, ...]) -> dict[Value, tuple[Instr, ...]]:
    """Let a primal refuse arguments that share memory; return the parts of the tuples among those asked for."""
    parts = expose_leaves(primal, [primal.params[number] for number in wrt])
    refuse_shared_arguments(primal)
    return parts


def _without_default(type: Type) -> Type:
    """Return the type of an argument, or of its default if it was not passed."""
    return numba_adapter.typeof(type.value) if isinstance(type, types.Omitted) else types.unliteral(type)


def _taken_as(request: Request, number: int, type: Type) -> Type:
    """Return the type that the primal takes for an argument: a float for an integer that is differentiated."""
    name = tuple(request.signature.parameters)[number]
    _check_argument(request, name, type)
    named = request.wrt is not None and number in request.wrt
    single = len(request.signature.parameters) - request.held == 1
    if isinstance(type, types.Integer) and number >= request.held and (named or single):
        return types.float64
    if named and not carries_adjoint(type):
        raise refuse(
            f"no gradient with respect to `{name}`, which is of type {type}",
            request.loc,
            hint=f"pass floats for `{name}`, or leave it out of wrt",
        )
    return type


_ALLOWED = (
    types.Integer,
    types.Float,
    types.Complex,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.EnumMember,
)


def _check_argument(request: Request, name: str, type: Type) -> None:
    if isinstance(type, types.BaseTuple):
        for item in components_of(type):
            _check_argument(request, name, item)
    elif isinstance(type, types.Array):
        _check_argument(request, name, type.dtype)
    elif isinstance(type, types.Callable):
        return
    elif type == types.float16:
        raise refuse(f"the argument `{name}` is of type float16, which is not supported", request.loc, "pass float32")
    elif isinstance(type, types.Optional):
        raise refuse(
            f"the argument `{name}` of a derivative is a value that may be `None`, which is not supported",
            request.loc,
            hint=f"call it with `None` in one branch of an `if`, and with {_definite(name, type.type)} in the other",
        )
    elif not isinstance(type, _ALLOWED):
        raise refuse(
            f"the argument `{name}` is {_kind(type)}, which is not supported",
            request.loc,
            hint="pass a tuple, a NamedTuple, a dataclass or an array"
            if isinstance(type, types.List | types.ListType | types.DictType)
            else "use a number, an array, a tuple, a NamedTuple or a frozen dataclass",
        )


def _definite(name: str, type: Type) -> str:
    """Return an expression for a variable that may be `None` which Numba knows not to be."""
    if isinstance(type, types.Array):
        return f"`{name}.copy()`"
    return f"`1 * {name}`" if isinstance(type, types.Number) else "a value"


def _kind(type: Type) -> str:
    if isinstance(type, types.PyObject):
        return "a Python object that Numba has no type for"
    if isinstance(type, types.List | types.ListType):
        return "a list"
    return "a dict" if isinstance(type, types.DictType) else f"of type {type}"


def check_result(request: Request, type: Type) -> None:
    """Raise a DifferentiationError for a result that has no gradient."""
    if is_float(type) or isinstance(type, types.Integer):
        return
    others = "`jacobian` gives the derivatives of all of it, `pullback` their product with a vector"
    hints = {
        types.Array: f"return one number, such as the sum; {others}",
        types.BaseTuple: f"return one number, or with `has_aux=True` a pair of it and the rest; {others}",
        types.NoneType: "return the number to be differentiated; `pullback` takes what is written to arguments",
        types.Boolean: "return a float, not a comparison",
        types.Complex: "return a real number, such as the squared absolute value; `pullback` takes complex results",
    }
    hint = next((hint for kind, hint in hints.items() if isinstance(type, kind)), "return one real number")
    raise refuse(f"the result is of type {type}, not a real number", request.loc, hint=hint)


def _check_returns(primal: Function) -> None:
    ends = [block.terminator for block in primal.blocks]
    if any(isinstance(end, Return) for end in ends):
        return
    raises = [end for end in ends if isinstance(end, Raise)]
    raised = "; ".join(f"{end.exception.__name__}{_texts(end.args)}" for end in raises if end.exception is not None)
    raise refuse(
        f"the function never returns{raised and f': it raises {raised}'}",
        primal.loc,
        hint="let it return a result for some arguments",
    )


def _texts(args: tuple[Operand, ...]) -> str:
    return f"({', '.join(repr(arg.value) if isinstance(arg, Const) else '...' for arg in args)})"
