"""The front end: a Python function and its argument types become a `Function` of the IR.

    lowered = lower(f, (types.float64, types.int64), {})
    lowered.function                  # kind "primal"; a parameter for each argument, then one for each hidden value
    [capture.read() for capture in lowered.hidden]    # the arguments to pass for those, at this moment

Numba reads and types the function (`zygote_py.numba_adapter`); here its statements become SSA. Loops over ranges,
arrays, tuples, `zip` and `enumerate` become loops that count; tuples are taken apart; implicit casts become explicit;
called functions are inlined unless they are large or recursive. The front end does not know about derivatives: a call
of a callable without a rule is passed through as an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from zygote_py import numba_adapter
from zygote_py.base import Capture, TypedFunction, calling, given_for, stage
from zygote_py.frontend import custom_calls
from zygote_py.frontend.derived import Derived, set_function
from zygote_py.frontend.expressions.list_copies import check_unwritten
from zygote_py.frontend.expressions.shared_copies import separate
from zygote_py.frontend.inlining import program_of
from zygote_py.frontend.lowering import Lowering
from zygote_py.frontend.program import Program
from zygote_py.ir import Function, Routine, Type, check_after, clone, find_effects
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class LoweredFunction:
    """The IR of a function, and what else its caller must know.

    `function.params` are the `argument_count` arguments and then the `hidden` values, captured floats and arrays, to be
    read at each call. `frozen` are the captured values that are constants of this compilation. A tuple that is returned
    stands in the IR as a `Return` of its components; `result_type` is its type. The `routines` are the functions that
    it calls and that are not inlined; in the IR they have a parameter for each number or array in their arguments.
    """

    function: Function
    argument_count: int
    result_type: Type
    hidden: tuple[Capture, ...]
    frozen: tuple[Capture, ...]
    routines: tuple[Routine, ...] = ()
    has_derivatives: bool = False  # among the routines, or it is one
    fields: tuple[
        str, ...
    ] = ()  # variables in a closure that are parameters after it (see `zygote_py.compiler.free_variables`)

    @property
    def functions(self) -> list[Function]:
        """Return the function and those of the routines."""
        return [self.function, *(routine.function for routine in self.routines)]


@stage("lowering to SSA form")
def lower(
    func: Callable[..., object],
    argument_types: Sequence[Type],
    options: Mapping[str, object] | None = None,
    *,
    tuple_floats_are_inputs: bool = False,
) -> LoweredFunction:
    """Return the IR of `func`, a plain Python function, for these Numba types.

    Numbers in captured tuples are constants, unless `tuple_floats_are_inputs`.

    Raises DifferentiationError for what the IR cannot represent or Numba cannot type.
    """
    if given_for(func) is not None:  # then what is given is to be seen where it is called
        func = calling(func)
    return lower_typed(
        numba_adapter.typed_function(
            func, argument_types, options or {}, tuple_floats_are_inputs=tuple_floats_are_inputs
        )
    )


def lower_typed(typed: TypedFunction) -> LoweredFunction:
    """Return the IR of a typed function. The captured variables of a closure are its last parameter, after `hidden`."""
    if isinstance(known := typed.derived, Derived):
        if known.in_numbers is not None:
            known = known.in_numbers()
        return LoweredFunction(
            clone(known.function).function,
            known.argument_count,
            typed.return_type,
            typed.hidden,
            typed.frozen,
            known.routines,
            has_derivatives=True,
        )
    program = program_of(typed)
    lowering = Lowering(typed, program)
    function = lowering.run()
    frozen = lowering.frozen
    made: dict[Routine, None] = {}
    while waiting := [each for each in program.routines().items() if each[1] not in made]:
        for callee, routine in waiting:
            made[routine] = None
            if callee.given is not None:
                routine.function = custom_calls.function_of(callee, program, _lowered_routine)
            elif callee.derived is not None:
                known = set_function(routine, callee)
                frozen |= {capture.key: capture for capture in callee.frozen}
                made |= dict.fromkeys(known.routines)
            else:
                routine.function, found = _lowered_routine(callee, program)
                frozen |= {capture.key: capture for capture in found}
    for callee, routine in program.routines().items():
        if callee.given is not None:
            custom_calls.add_rule(callee, routine, program)
    for known in program.inlined.values():
        made |= dict.fromkeys(known.routines)
    find_effects(tuple(made))
    for callee, routine in program.routines().items():
        if callee.runs_again:
            check_unwritten(routine)
    functions = (function, *(routine.function for routine in made))
    separate(functions, tuple(made))
    check_after("lower", *functions)
    count = typed.argument_count
    if typed.parameters[count - 1 : count] == (numba_adapter.CLOSURE,):
        count -= 1
        function.params.append(function.params.pop(count))
    return LoweredFunction(
        function,
        count,
        lowering.frame.result_type,
        tuple(capture for capture, _ in lowering.captured.values()),
        tuple(frozen.values()),
        tuple(made),
        has_derivatives=bool(program.inlined) or any(callee.derived is not None for callee in program.routines()),
    )


def with_ir(typed: TypedFunction) -> TypedFunction:
    """Return a derivative as a typed function with IR; if it has statements, their IR takes the place of its calls."""
    if typed.derived is not None:
        return typed
    lowered = lower_typed(typed)
    count, arguments, hidden = typed.argument_count, lowered.argument_count, lowered.hidden
    kinds = (param.type for param in lowered.function.params[arguments : arguments + len(hidden)])
    return replace(
        typed,
        parameters=(*typed.parameters[:count], *(capture.name for capture in hidden)),
        parameter_types=(*typed.parameter_types[:count], *kinds),
        hidden=hidden,
        frozen=lowered.frozen,
        derived=Derived(lowered.function, arguments, lowered.routines, is_inlined=True),
    )


def _lowered_routine(callee: TypedFunction, program: Program) -> tuple[Function, tuple[Capture, ...]]:
    """Return the IR of a routine, and the captured values that are constant in it."""
    lowering = Lowering(callee, program, is_routine=True)
    return lowering.run(), tuple(lowering.frozen.values())
