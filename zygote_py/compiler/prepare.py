"""The primal of a request for one signature: the user's function in the form that is differentiated.

    given, wrt, lowered = lowered_primal(request, (float64, int64), lower)

The function is lowered for the types to which the request converts its arguments. Reversible loops and loops with
checkpoints become routines, and the rest is brought into canonical form. Arguments and results that do not permit
differentiation are refused here.

    routines = take_as_primal(joint)        # the joint function is in canonical form now, and so are its routines

The IR of a derivative is ordinary IR, except for what a second differentiation does not support: helpers without a rule
become routines, nested tuples that routines return become flat, stacks of tuples become stacks of
numbers, and sums of whole arrays become loops.

    typed_as_called(call, function, request)    # a derivative that is called in a differentiated function
    lowered_helper(inv_a, (float64[:, ::1], float64[:, ::1]))       # a `Routine` whose function is in canonical form

With `has_aux=True`, only the first value that a primal returns is differentiated; the joint function passes the second
on. Its arrays are copied, since the reverse sweep may rewind what the function has written.

    primal f(%x: f64) -> (f64, f64[:])              b3:  return %whole
    ->  primal f(%x: f64) -> f64                    b3:  %copied = copy %pred
                                                         return %loss, %copied
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from numba import types

import zygote_py.numpy_functions  # noqa: F401 (it registers the functions that `lower` knows)
from zygote_py import numba_adapter
from zygote_py.adjoints import (
    DifferentiationError,
    check_returned,
    check_rules,
    divide_loops,
    has_reversible_steps,
    is_differentiated,
    matters,
    number_matters,
    opaque_for,
    outline_reversible_loops,
    refuse,
    rule_for,
    unless_zero,
    written_after_return,
)
from zygote_py.adjoints.analysis import carries_adjoint, expose_leaves, hessian_bandwidth, is_float
from zygote_py.adjoints.reverse.finished.broadcast_records import reuse_broadcast_vectors
from zygote_py.adjoints.reverse.finished.elements import keep_elements_in_variables
from zygote_py.adjoints.reverse.finished.first_contributions import assign_first_contributions
from zygote_py.adjoints.reverse.finished.late_arrays import allocate_late
from zygote_py.adjoints.reverse.finished.returned_copies import return_copied_arrays
from zygote_py.adjoints.reverse.finished.reused_records import reuse_records
from zygote_py.adjoints.reverse.finished.slices_of_rounds import make_slices_in_rounds
from zygote_py.adjoints.routines import check_steps, refuse_shared_arguments, routines_behind
from zygote_py.adjoints.rules.arrays.accumulated import accumulate_products
from zygote_py.base import TypedFunction, stage
from zygote_py.compiler.free_variables import numbers_asked_for
from zygote_py.compiler.request import Request, refuse_aux
from zygote_py.frontend import Derived, LoweredFunction, lower, lower_typed, typed_as_derived
from zygote_py.frontend.values import holds_container, is_whole, leaves_of
from zygote_py.ir import (
    Builder,
    Const,
    Function,
    Instr,
    Lanes,
    Memory,
    Objects,
    Operand,
    Raise,
    Return,
    Routine,
    Summary,
    Type,
    Value,
    at_exit,
    components_of,
    cycles,
    find_effects,
    flatten_results,
    inline_calls,
    is_helper,
    is_view,
    join_stacks,
    make_canonical,
    ops,
    passes,
    replace_uses,
    routines_of,
    shares_what_it_writes,
    split_stacks,
    summaries_of,
    write_out_guards,
    write_out_whole_accumulations,
)
from zygote_py.ir.arrays.product_checks import drop_product_checks
from zygote_py.numba_adapter import DerivedCall

# Makes the IR of what is to be differentiated, for the types of its arguments.
Lower = Callable[[tuple[Type, ...]], LoweredFunction]


@stage("preparation")
def lowered_primal(
    request: Request, argument_types: tuple[Type, ...], lower: Lower, is_pushed: bool = False
) -> tuple[tuple[Type, ...], tuple[int, ...], LoweredFunction]:
    """Return the argument types, the numbers of the parameters asked for, and the primal in canonical form.

    A primal that `is_pushed`, forward, may accumulate into whole arrays.
    """
    given = tuple(map(_without_default, argument_types))
    taken = tuple(_taken_as(request, number, type) for number, type in enumerate(given))
    lowered = lower(taken)
    check_rules(lowered.routines)
    if lowered.has_derivatives:
        called = take_as_primal(lowered.function, is_pushed)  # rules are not called
        others = (each for each in lowered.routines if each not in called and not _is_in_lanes(each))
        lowered = replace(lowered, routines=(*called, *others))
    parameters = tuple(request.signature.parameters)[: len(given)]
    wrt = numbers_asked_for(request.wrt, request.closure, parameters, lowered, request.loc, request.captured_count)
    recursive = {routine for routine, others in cycles(lowered.routines).items() if others}
    summaries = functools.cache(lambda: summaries_of(lowered.routines))
    for function in lowered.functions:
        _inline_shared(function, recursive, summaries)
    lowered = _with_reversible_loops(lowered)
    for function in lowered.functions:
        passes.run(function, [passes.forward_stacks])
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


def _inline_shared(
    function: Function, recursive: Collection[Routine], summaries: Callable[[], Mapping[Routine, Summary]]
) -> None:
    """Inline the calls whose arguments may share memory that is written to, which routines assume not to happen."""
    while True:
        memory = Memory(function)
        candidates = [call for call, routine in function.calls() if routine not in recursive]
        calls = [call for call in candidates if shares_what_it_writes(memory, call)]
        if calls:
            objects = Objects(function, summaries())
            calls = [call for call in calls if objects.share_what_is_written(call)]
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
    single = len(request.signature.parameters) - request.captured_count == 1
    if isinstance(type, types.Integer) and number >= request.captured_count and (named or single):
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
    types.NumPyRandomGeneratorType,
)


def _check_argument(request: Request, name: str, type: Type) -> None:
    if isinstance(type, types.BaseTuple):
        for item in components_of(type):
            _check_argument(request, name, item)
    elif isinstance(type, types.Array):
        _check_argument(request, name, type.dtype)
    elif is_whole(type):
        for leaf in leaves_of(type):
            if not isinstance(leaf, types.DictType):
                _check_argument(request, name, leaf.dtype if isinstance(leaf, types.List) else leaf)
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
            hint="use a number, an array, a tuple, a NamedTuple or a frozen dataclass",
        )


def _definite(name: str, type: Type) -> str:
    """Return an expression for a variable that may be `None` which Numba knows not to be."""
    if isinstance(type, types.Array):
        return f"`{name}.copy()`"
    return f"`1 * {name}`" if isinstance(type, types.Number) else "a value"


def _kind(type: Type) -> str:
    if isinstance(type, types.PyObject):
        return "a Python object that Numba has no type for"
    return f"of type {type}"


def check_result(request: Request, type: Type) -> None:
    """Raise a DifferentiationError for a result that has no gradient."""
    if is_float(type) or isinstance(type, types.Integer):
        return
    others = "`jacobian` gives the derivatives of all of it, `pullback` their product with a vector"
    forward = "`jvp` and `derivative` give lists and dicts of derivatives"
    hints: dict[Any, str] = {
        types.Array: f"return one number, such as the sum; {others}",
        types.List | types.ListType: f"return one number, such as the sum; {forward}",
        types.DictType: f"return one number; {forward}",
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


# ----------------------------------------------------------------------------------------------- derivatives as primals


def take_as_primal(function: Function, is_pushed: bool = False) -> tuple[Routine, ...]:
    """Bring a derivative and the routines that it calls into the form that is differentiated. Returns the routines.

    Where it `is_pushed`, forward, the accumulations into whole arrays are left: the tangents accumulate alike. Custom
    rules are pushed by transposing their pullbacks.
    """
    write_in_numbers(function)
    for routine in routines_behind(function):
        take_as_routines(routine.function)
    take_as_routines(function)
    routines = routines_behind(function)
    flatten_results(function, routines)
    split_stacks(function, routines)
    is_transposed = any(each.is_custom for each in routines)
    for each in (function, *(routine.function for routine in routines)):
        each.kind = "primal"
        if is_transposed or not is_pushed:
            write_out_whole_accumulations(each)
        make_canonical(each)
    find_effects(routines)
    return routines


def _is_in_lanes(routine: Routine) -> bool:
    return any(isinstance(getattr(param.type, "dtype", param.type), Lanes) for param in routine.function.params)


def write_in_numbers(function: Function) -> None:
    """Let a function, and the rules of what it calls, call derivatives that have no values of type `Lanes`."""
    while lanes := [each for each in routines_behind(function) if each.in_numbers is not None]:
        for routine in lanes:
            assert routine.in_numbers is not None
            routine.function, routine.in_numbers = routine.in_numbers(), None


_MOST_INSTRUCTIONS = 5000  # of a function whose calls are written out to be analyzed


@stage("preparation")
def bandwidth_of(call: DerivedCall, argument_types: tuple[Type, ...], number: int) -> int | None:
    """Return the bandwidth of the Hessian of a function of a vector, the parameter of a number; None if not known."""
    try:
        lowered = lower_typed(call.typed(argument_types))
    except DifferentiationError:  # which is raised again, with what it is about, where the gradient is made
        return None
    function, together = lowered.function, cycles(lowered.routines)

    @functools.cache
    def size(each: Function) -> int:
        """Return the number of instructions with all calls that are written out."""
        called = [routine.function for _, routine in each.calls() if not (routine.is_custom or together[routine])]
        return sum(len(block.instrs) for block in each.blocks) + sum(map(size, called))

    if lowered.has_derivatives or (function.calls() and size(function) > _MOST_INSTRUCTIONS):
        return None
    while calls := {each for each, routine in function.calls() if not (routine.is_custom or together[routine])}:
        inline_calls(function, calls.__contains__)
    make_canonical(function)
    return hessian_bandwidth(function, function.params[number])


def within(call: DerivedCall, form: Any, request: Request) -> Request:
    """Return the request for a form that is applied in a function during its type inference."""
    return replace(request, options=call.options, name=f"{call.name}_{form}")


def typed_as_called(
    call: DerivedCall,
    function: Function,
    name: str,
    lowered: LoweredFunction,
    kind: Type | None = None,
    in_numbers: Callable[[], Derived] | None = None,
) -> TypedFunction:
    """Clean up a derivative and return it as a typed function, which is called in another one.

    `kind` is the type of the result, if that is not what the function returns: of a dict, of which there are parts.
    """
    derived = as_derived(call, function, in_numbers)
    return typed_as_derived(call, derived, name, kind or result_of(function).type, lowered.hidden, lowered.frozen)


def as_derived(call: DerivedCall, function: Function, in_numbers: Callable[[], Derived] | None = None) -> Derived:
    """Clean up the IR of a derivative that is called in another function."""
    tidy(function)
    return Derived(function, len(call.argument_types), routines_of(function), in_numbers)


@stage("simplification")
def tidy(joint: Function, *last: passes.Pass) -> Function:
    """Clean a derivative up, in place; run also the `last` passes."""
    passes.run(joint, (*passes.CLEAN_UP, passes.promote_accumulations, *last, *passes.CLEAN_UP))
    return joint


def result_of(function: Function) -> Operand:
    """Return the operand that a function in canonical form returns."""
    _, end = function.exit()
    return end.args[0]


@functools.cache
def lowered_helper(function: Callable[..., object], argument_types: tuple[Type, ...]) -> Routine:
    """Return the routine of a helper that takes and returns numbers and arrays, for the types of its arguments."""
    lowered = lower(function, argument_types, {})
    routine = Routine(function.__name__)
    routine.function = lowered.function
    for each in (*lowered.routines, routine):
        _let_adjoints_matter(each.function)
        take_as_routines(each.function)
        make_canonical(each.function)
    find_effects((*routines_of(routine.function), routine))
    return routine


def _let_adjoints_matter(function: Function) -> None:
    """Remove the shortcuts that a helper takes where an adjoint is zero, since they have no derivative by that adjoint.

    If the helper has a path for this purpose, it takes that. Terms that are left out have the derivatives of products.
    """
    asked = [i for i in function.instrs() if i.op in (matters, number_matters, is_differentiated)]
    replace_uses(function, {instr: Const(True, types.boolean) for instr in asked})
    for instr in function.instrs():
        if instr.op is unless_zero:
            instr.op = ops.guarded


def take_as_routines(function: Function) -> None:
    """Let a function call routines where it calls helpers that have no rule."""
    for instr in function.instrs():
        if not is_helper(instr.op) or instr.keywords or ops.of(instr.op).role is ops.Role.CHECK or is_view(instr):
            continue
        if carries_adjoint(instr.type) and rule_for(instr) is None and opaque_for(instr) is None:
            instr.op = lowered_helper(instr.op, tuple(arg.type for arg in instr.args))


# ----------------------------------------------------------------------------------------------------- auxiliary output


def split_auxiliary(request: Request, lowered: LoweredFunction) -> LoweredFunction:
    """Let a primal in canonical form return the loss, then the rest, in place. Raises DifferentiationError."""
    kind = lowered.result_type
    parts = components_of(kind) if isinstance(kind, types.BaseTuple) else ()
    if len(parts) != 2:
        raise refuse_aux(kind, request.loc)
    if holds_container(parts[1]):
        what = "with `has_aux=True` the function returns a list, a dict, a record, a structured array or an object"
        raise refuse(what, request.loc, hint="return an array or a tuple")
    b, end = at_exit(lowered.function)
    loss, aux = b.items(end.args[0])
    end.args = (loss, copied(b, aux))
    return replace(lowered, result_type=parts[0])


def with_auxiliary(joint: Function, with_value: bool) -> None:
    """Let a joint function return one value: `(gradient, aux)`, or `((value, aux), gradient)`; in place."""
    b, end = at_exit(joint)
    result, aux = end.args
    if with_value:
        value, gradient = b.items(result)
        end.args = (b.pack([b.pack([value, aux]), gradient]),)
    else:
        end.args = (b.pack([result, aux]),)


def copied(b: Builder, value: Operand) -> Operand:
    """Return a value with copies of the arrays in it."""
    kind = value.type
    if isinstance(kind, types.Array):
        return b.copy(value, getattr(value, "hint", ""))
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.Callable):
        return b.pack([copied(b, item) for item in b.items(value)], kind)
    return value


@stage("simplification")
def finish(*functions: Function, in_threads: bool = False) -> None:
    """Prepare functions and their routines for emission, in place; afterwards they cannot be differentiated.

    Of a kernel, which others run as well, `in_threads`, sums will be atomic, and stay in memory.
    """
    routines = tuple(dict.fromkeys(routine for function in functions for routine in routines_of(function)))
    every = (*(routine.function for routine in routines), *functions)
    for each in every:
        if write_out_guards(each):
            passes.run(each, passes.CLEAN_UP)
        passes.run(each, [passes.store_whole_tuples, passes.forward_stacks])
    join_stacks(functions, routines)
    for each in every:
        if not in_threads and make_slices_in_rounds(each):
            passes.run(each, passes.CLEAN_UP)
        assign_first_contributions(each)
        accumulate_products(each)
    for routine in routines:
        if keep_elements_in_variables(routine.function):
            passes.run(routine.function, passes.CLEAN_UP)
    for function in functions:
        tidy(function, keep_elements_in_variables)
    left = dict.fromkeys(routine.function for function in functions for routine in routines_of(function))
    for each in (*left, *functions):
        if drop_product_checks(each):
            passes.remove_dead_code(each)
        if return_copied_arrays(each):
            passes.run(each, passes.CLEAN_UP)
        reuse_records(each)
        if reuse_broadcast_vectors(each):
            passes.run(each, passes.CLEAN_UP)
        if not in_threads and passes.keep_invariant_elements(each):
            passes.run(each, passes.CLEAN_UP)
        if not in_threads:
            allocate_late(each)
