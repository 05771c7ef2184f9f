"""Derivatives that a function calls, represented like functions with a body of statements.

    d = gradient(g)(x)          g_gradient: a routine, of which there is IR already

The IR of a derivative is a function of whole arguments; a routine takes the numbers and arrays in them.
"""

from __future__ import annotations

from collections.abc import Callable

from zygote_py import numba_adapter
from zygote_py.adjoints import name_apart
from zygote_py.base import statements as st
from zygote_py.frontend.values import LoweredValue, flatten, is_tuple, join, parameters_of, split
from zygote_py.ir import (
    Builder,
    Const,
    Function,
    Operand,
    Param,
    Routine,
    Type,
    Value,
    clone,
    components_of,
    inserting,
    passes,
    replace_uses,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.passes.cleanup.copy_propagation import copied
from zygote_py.numba_adapter import DerivedCall


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """The IR of a derivative: a parameter per argument and hidden value, and for a closure's captured variables.

    If there are values of type `Lanes` in it, `in_numbers` makes the same derivative without them. A derivative that
    `is_inlined` is put in the place of its calls.
    """

    function: Function
    argument_count: int
    routines: tuple[Routine, ...]
    in_numbers: Callable[[], Derived] | None = None
    is_inlined: bool = False


def typed_as_derived(
    call: DerivedCall,
    derived: Derived,
    name: str,
    result_type: Type,
    hidden: tuple[st.Capture, ...],
    frozen: tuple[st.Capture, ...],
) -> st.TypedFunction:
    """Return the typed function that a call of a derivative calls."""
    names = tuple(call.closure.own_signature().parameters)
    count = derived.argument_count
    kinds = tuple(param.type for param in derived.function.params[count : count + len(hidden)])

    def nothing(*args: object) -> None:
        raise AssertionError(f"`{name}` has no statements")

    return st.TypedFunction(
        name=name,
        loc=call.loc,
        parameters=(*names, numba_adapter.CLOSURE, *(capture.name for capture in hidden)),
        argument_count=count + 1,
        parameter_types=(*call.argument_types, call.closure, *kinds),
        blocks={},
        types={},
        names={},
        return_type=result_type,
        hidden=hidden,
        frozen=frozen,
        options=call.options,
        callee_of=nothing,
        signature_of=nothing,
        accessor_of=nothing,
        member_of=nothing,
        derived=derived,
    )


def set_function(routine: Routine, typed: st.TypedFunction) -> Derived:
    """Let a routine be a derivative, which is returned."""
    derived = typed.derived
    assert isinstance(derived, Derived)
    routine.function = function_of(typed, derived)
    if (made_again := derived.in_numbers) is not None:
        routine.in_numbers = lambda: function_of(typed, made_again())
    return derived


def inlined(typed: st.TypedFunction) -> Derived | None:
    """Return the derivative that is to be put in the place of calls of a function; None for any other function."""
    known = typed.derived
    return known if isinstance(known, Derived) and known.is_inlined else None


def function_of(typed: st.TypedFunction, derived: Derived) -> Function:
    """Return a copy of a derivative's function as that of a routine."""
    function = clone(derived.function).function
    params = function.params
    count, hidden = derived.argument_count, len(typed.hidden)
    names = dict(zip(params, (*typed.parameters[:count], *typed.parameters[count + 1 :]), strict=False))
    function.params = []
    replaced: dict[Value, Operand] = {}
    with inserting(function.entry) as b:
        for param in (*params[:count], *params[count + hidden :], *params[count : count + hidden]):
            leaves = parameters_of(names.get(param, param.hint), param.type, typed.loc)
            if param in params[count + hidden :]:
                for leaf, name in zip(leaves, _names_in(typed.parameter_types[count]), strict=False):
                    leaf.hint = name
            function.params += leaves
            if leaves:
                replaced[param] = join(b, LoweredValue(param.type, tuple(leaves)), operand_of)
        replace_uses(function, replaced)
    for instr in function.entry.instrs:
        if isinstance(own := copied(instr), Param) and instr.hint:
            own.hint = instr.hint  # what the function called it
    name_apart(function.params)
    for block, end in function.returns():
        (value,) = end.args
        b = Builder(block)
        end.args = (flatten(b, split(b, value, typed.return_type)),)
    function.name = typed.name
    passes.run(function, passes.CLEAN_UP)
    return function


def _names_in(closure: Type) -> tuple[str, ...]:
    """Return the names of a closure's captured variables, if these are numbers and arrays."""
    names: tuple[str, ...] = getattr(closure, "fields", ())
    return () if any(map(is_tuple, components_of(closure))) else names


def operand_of(leaf: LoweredValue) -> Operand:
    """Return the operand of a non-tuple: the constant None for one known by its type alone, such as a function."""
    return leaf.leaves[0] if leaf.leaves else Const(None, leaf.type)
