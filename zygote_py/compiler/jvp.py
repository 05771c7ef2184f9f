"""The pushforward of a function as a function of the arguments and of their tangents, in several directions at once.

    value, (dy_1, dy_2) = pushforward(f)((x, n), ((dx_1, None), (dx_2, None)))

Its form is `PushForm`; without `with_value` it returns the tangents alone. All derivatives in forward mode are made of
it (`zygote_py.drivers`). A tangent is like its argument; None stands for one that does not change, and the empty tuple
for the number 1. Arrays among the arguments, and their tangents, are left as they are.

    _, (sets, unions, same) = dependence(f)((x, n), ((indices, None),))

determines which elements of an argument the result depends on. Its form is `TraceForm`; it is called where the
pushforward is. `indices` is like the one argument that is asked for, an array, and holds the numbers of the sets that
its elements begin with. `sets` is like the result, an array, `same` is whether the function goes the same way for all
numbers. `zygote_py.adjoints.forward.dependence` explains the numbers of sets.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints import Dependences, NotInLanes, Pushed, Pushforwards, Transposed, push_in_lanes, refuse
from zygote_py.adjoints.analysis import carries_adjoint, expose_leaves, has_shadow, is_number, reachable
from zygote_py.adjoints.routines import refuse_shared_arguments, routines_behind
from zygote_py.base import TypedFunction, stage
from zygote_py.compiler.border import check_returned, formed_tangents, refuse_writes, without_keys
from zygote_py.compiler.prepare import (
    as_derived,
    lowered_helper,
    lowered_primal,
    take_as_primal,
    typed_as_called,
    within,
)
from zygote_py.compiler.request import make_request
from zygote_py.compiler.transforms import Form, PushForm, TraceForm
from zygote_py.frontend import Derived, LoweredFunction, Writer, lower_typed
from zygote_py.frontend.values import (
    NOTHING,
    LoweredValue,
    cast_op,
    component,
    components,
    holds_container,
    structure,
    tuple_of,
    value_of,
    with_names,
)
from zygote_py.ir import (
    Builder,
    Const,
    Function,
    Instr,
    Memory,
    Operand,
    Param,
    Type,
    Value,
    clone,
    components_of,
    copied_type,
    draws,
    functions_of,
    inserting,
    is_a,
    make_canonical,
    ops,
    replace_uses,
    routines_of,
    zero,
)
from zygote_py.numba_adapter import DerivedCall

ONE = types.Tuple(())  # the type of the tangent 1, as NoneType is that of 0
_LARGE = 800  # operations of functions whose directions are taken one by one


@stage("differentiation")
def typed_pushforward(form: PushForm, call: DerivedCall) -> TypedFunction:
    """Return the pushforward for arguments and tangents of these types, as a typed function."""
    given, directions = call.argument_types
    kinds, tangents = components_of(given), tuple(map(components_of, components_of(directions)))
    wrt = tuple(number for number, kind in enumerate(kinds) if _changes(kind, [each[number] for each in tangents]))
    name, wrt, lowered = lowered_on_copies(form, call, kinds, wrt)
    several = len(tangents) > 1
    if form.again:
        refuse_draws(lowered.function)

    def together(pushed: Pushed) -> Type | None:
        result = lowered.result_type
        return take_together(pushed.function, given, directions, wrt, pushed.tangents, result, form.with_value)

    functions = functions_of(lowered.function)
    if several and not has_threads_in_text(lowered.function, call.options) and not _has_linear_algebra(functions):
        in_lanes = _in_lanes(lowered, wrt, tangents)
        if in_lanes is not None:
            kind = together(in_lanes)
            results = [end.args[0].type for _, end in in_lanes.function.returns()]

            @functools.cache  # as the function is changed
            def in_numbers() -> Derived:
                pushed = _in_numbers(lowered, wrt, tangents)
                together(pushed)
                for (block, end), wanted in zip(pushed.function.returns(), results, strict=True):
                    end.args = (_of_type(Builder(block), end.args[0], wanted),)
                return as_derived(call, pushed.function)

            return typed_as_called(call, in_lanes.function, name, lowered, kind, in_numbers)
    if several and _is_large(functions, may_repeat=form.again):
        refuse_draws(lowered.function)
        return _one_by_one(form, call, name)
    pushed = _in_numbers(lowered, wrt, tangents)
    return typed_as_called(call, pushed.function, name, lowered, together(pushed))


def has_threads_in_text(function: Function, options: Mapping[str, object]) -> bool:
    """Return whether the text of a function asks Numba for threads, whose passes do not compile lanes."""
    every = (options, *(routine.function.options for routine in routines_of(function)))
    return any(each.get("parallel") for each in every)


def _of_type(b: Builder, value: Operand, kind: Type) -> Operand:
    """Return a value with arrays that are in any order where those of a type are."""
    if isinstance(kind, types.BaseTuple):
        items = zip(b.items(value), components_of(kind), strict=True)
        return b.call(ops.pack, *(_of_type(b, item, each) for item, each in items), type=kind)
    if not isinstance(kind, types.Array) or value.type == kind:
        return value
    nothing, one = Const(None, types.none), Const(1, types.int64)
    every = b.call(slice, nothing, nothing, one, type=types.slice3_type)  # Numba takes `x[:]` to be in order
    return b.call(ops.getitem, value, *[every] * kind.ndim, type=kind)


def _in_lanes(lowered: LoweredFunction, wrt: Sequence[int], tangents: Sequence[tuple[Type, ...]]) -> Pushed | None:
    """Return the pushforward with the tangents of all directions as one value; None where that is not possible."""
    function = clone(lowered.function).function
    asked = [function.params[number] for number in wrt]
    try:
        return push_in_lanes(lowered.routines, function, asked, len(tangents), _known(function, wrt, tangents))
    except NotInLanes:
        return None


def _in_numbers(lowered: LoweredFunction, wrt: Sequence[int], tangents: Sequence[tuple[Type, ...]]) -> Pushed:
    """Return the pushforward with a tangent of each value for each direction; the function is changed."""
    function = lowered.function
    made = Pushforwards(lowered.routines, len(tangents), Transposed(lowered_helper, make_canonical))
    return made.push(function, [function.params[number] for number in wrt], known=_known(function, wrt, tangents))


def lowered_on_copies(
    form: Form, call: DerivedCall, kinds: tuple[Type, ...], wrt: tuple[int, ...]
) -> tuple[str, tuple[int, ...], LoweredFunction]:
    """Return the name of what a form makes, the parameters asked for, and the function, which writes to copies."""
    request = within(call, form, make_request(call.func, wrt, with_value=False))
    is_pushed = isinstance(form, PushForm)

    def lower(taken: tuple[Type, ...]) -> LoweredFunction:
        lowered = lower_typed(call.typed(taken))
        if lowered.has_derivatives:  # of the routines that helpers become it is known what memory they give
            take_as_primal(lowered.function, is_pushed)
        work_on_copies(lowered.function, lowered.argument_count)
        return lowered

    _, wrt, lowered = lowered_primal(request, kinds, lower, is_pushed)
    refuse_writes(lowered.function, kinds)
    return request.name, wrt, lowered


def refuse_draws(
    function: Function,
    message: str = "a function that draws random numbers is differentiated in more directions than one run has",
    hint: str = "draw them before, and pass them, or ask for the gradient, `jvp` or `hvp`",
) -> None:
    """Refuse random numbers in a function that runs several times, rules included: they would differ."""
    for each in (function, *(routine.function for routine in routines_behind(function))):
        for instr in each.instrs():
            if draws(instr):
                raise refuse(message, instr.loc, hint)


def _has_linear_algebra(functions: Sequence[Function]) -> bool:
    instrs = (instr for each in functions for instr in each.instrs())
    return any(str(getattr(instr.op, "__module__", "")).startswith("numpy.linalg") for instr in instrs)


def _is_large(functions: Sequence[Function], *, may_repeat: bool) -> bool:
    """Return whether the tangents in several directions at once would take long to compile.

    That is so for operations whose tangents are whole programs, those of linear algebra, and for many operations. The
    latter are run once if they print or draw random numbers, unless they are run several times anyway.
    """
    instrs = [instr for each in functions for instr in each.instrs()]
    if _has_linear_algebra(functions):
        return True
    if len(instrs) <= _LARGE:
        return False
    if may_repeat:
        return True
    behind = [instr for each in routines_behind(functions[0]) for instr in each.function.instrs()]  # those of rules too
    return not any(draws(instr) or instr.op is print for instr in (*instrs, *behind))


def _one_by_one(form: PushForm, call: DerivedCall, name: str) -> TypedFunction:
    """Return a function that gives the tangents by a call for each direction: there is less to compile."""
    w = Writer(call, name, ("args", "tangents"))
    args, directions = w.parameters
    pushed = w.derived(PushForm(form.with_value))
    value, found = NOTHING, []
    for number, tangent in enumerate(components(directions)):
        result = w.invoke(pushed, args, tuple_of([_alike(tangent, components_of(directions.type))]))
        value, result = components(result) if form.with_value else (value, result)
        found.append(with_names(component(result, 0), f"t_{number}"))
    return w.returned(tuple_of([value, tuple_of(found)]) if form.with_value else tuple_of(found))


def _alike(tangent: LoweredValue, others: Sequence[Type]) -> LoweredValue:
    """Return a tangent, of the same type in each direction: the function is compiled for one of them."""
    own = tangent.type
    if len({*others}) == 1:
        return tangent
    if all(isinstance(each, types.BaseTuple) and components_of(each) for each in others):
        items = zip(components(tangent), zip(*map(components_of, others), strict=True), strict=True)
        return tuple_of([_alike(item, rest) for item, rest in items])
    if isinstance(own, types.NoneType) and any(isinstance(each, types.Number) or each == ONE for each in others):
        return value_of(Const(0.0, types.float64))
    return value_of(Const(1.0, types.float64)) if own == ONE else tangent


def _known(
    function: Function, wrt: Sequence[int], tangents: Sequence[tuple[Type, ...]]
) -> dict[Param, list[Const | None]]:
    """Return the tangents of numbers, one for each direction, that are known, or of which one is."""
    params = function.params
    return {
        params[number]: [_known_tangent(params[number].type, each[number]) for each in tangents]
        for number in wrt
        if is_number(params[number].type)
    }


def _known_tangent(kind: Type, tangent: Type) -> Const | None:
    """Return a tangent of a number that is 0 or 1, if it is known: nothing is computed with it."""
    if isinstance(tangent, types.NoneType):
        return zero(kind)
    return one(kind) if tangent == ONE else None


def one(kind: Type) -> Const:
    """Return 1 as a number of a type."""
    return Const(complex(1.0) if isinstance(kind, types.Complex) else 1.0, kind)


def _changes(kind: Type, tangents: Sequence[Type]) -> bool:
    """Return whether an argument has a tangent in some direction."""
    return carries_adjoint(kind) and not all(isinstance(each, types.NoneType) for each in tangents)


def work_on_copies(function: Function, count: int) -> None:
    """Let a function write to copies of its arguments; those that it writes to must not share memory."""
    params = function.params[:count]
    parts = expose_leaves(function, params)
    checked = {check: check.args for check in refuse_shared_arguments(function)}
    memory = Memory(function)
    written = [
        leaf for leaf in reachable(params, parts) if isinstance(leaf.type, types.Array) and memory.is_written(leaf)
    ]
    copies = {leaf: Instr(np.copy, (leaf,), copied_type(leaf.type), leaf.hint, leaf.loc) for leaf in written}
    replace_uses(function, copies)
    for check, args in checked.items():
        check.args = args  # whether the arguments themselves share memory, which copies never do
    entry = function.entry.instrs
    start = max((entry.index(leaf) + 1 for leaf in written if leaf in entry), default=0)
    entry[start:start] = copies.values()


def take_together(
    function: Function,
    given: Type,
    directions: Type,
    wrt: Sequence[int],
    tangents: Sequence[Operand],
    result: Type,
    with_value: bool = True,
) -> Type | None:
    """Let a pushforward take its arguments as one tuple, and their tangents as one tuple for each direction.

    It returns the value and a tuple of its tangents, or the tangents only. `result` is the type of the value; where
    this holds lists or the like, the type of what is returned is given back.
    """
    check_returned(result, function.loc)
    kind: Type | None = None
    count = len(components_of(given))
    whole = Param(structure(given), "args", function.loc)
    changes = Param(structure(directions), "tangents", function.loc)
    taken: dict[Value, Operand] = {}
    with inserting(function.entry) as b:
        values = [b.item(whole, number, param.hint) for number, param in enumerate(function.params[:count])]
        taken |= zip(function.params, values, strict=False)
        width = len(components_of(directions))
        for direction in range(width):
            of_direction = b.item(changes, direction)
            for place, number in enumerate(wrt):
                param = tangents[place * width + direction]
                if not isinstance(param, Param):
                    continue
                item = without_keys(b, components_of(given)[number], b.item(of_direction, number, param.hint))
                taken[param] = _converted(b, item, param.type, values[number])
    replace_uses(function, taken)
    rest = [param for param in function.params[count:] if param not in taken]
    function.params = [whole, changes, *rest]
    for block, end in function.returns():
        (packed,) = end.args
        b = Builder(block)
        value, *found_in_all = b.unpack_all(packed, 1 + len(components_of(directions)))
        changes_of: list[Operand] = [*found_in_all]
        if holds_container(result):
            changes_of, kinds = formed_tangents(b, result, value, changes_of)
            kind = types.Tuple((result, types.Tuple(kinds))) if with_value else types.Tuple(kinds)
        found = b.pack(changes_of)
        end.args = (b.pack([value, found]) if with_value else found,)
    return kind


def _converted(b: Builder, item: Operand, kind: Type, of: Operand) -> Operand:
    """Return the tangent of a value, converted to a type: numbers are cast, None is zero; tuples part by part.

    The fields of an object come as a tuple, and become the contents of the memory that the object is.
    """
    if item.type == ONE and not isinstance(kind, types.BaseTuple):
        item = Const(1.0, types.float64)
    if isinstance(kind, types.BaseTuple) and isinstance(item.type, types.NoneType):
        parts = [_converted(b, item, want, b.item(of, number)) for number, want in enumerate(components_of(kind))]
        return b.call(ops.pack, *parts, type=kind)
    if isinstance(kind, types.Array) and isinstance(item.type, types.Number):
        cell = b.call(ops.zeros, Const(1, types.int64), type=kind)
        b.call(ops.setitem, cell, _converted(b, item, kind.dtype, of), Const(0, types.int64), type=types.none)
        return cell
    if isinstance(kind, types.List) and isinstance(item.type, types.Array):
        box = b.call(ops.stack, type=kind)
        b.call(ops.push, box, item, type=types.none)
        return box
    if isinstance(kind, types.BaseTuple) and isinstance(item.type, types.BaseTuple):
        parts = [
            _converted(b, b.item(item, number), want, b.item(of, number))
            for number, want in enumerate(components_of(kind))
        ]
        return b.call(ops.pack, *parts, type=kind)
    if isinstance(item.type, types.NoneType) and is_number(kind):
        return zero(kind)
    if isinstance(item.type, types.NoneType) and has_shadow(kind):
        return b.call(np.zeros_like, of, type=kind)
    if isinstance(kind, types.Array) and not is_a(item.type, kind) and isinstance(item.type, types.Array):
        return b.copy(item)
    if isinstance(kind, types.Number) and isinstance(item.type, types.Number | types.Boolean) and item.type != kind:
        return b.call(cast_op(item.type, kind), item, type=kind)
    return item


@stage("differentiation")
def typed_trace(form: TraceForm, call: DerivedCall) -> TypedFunction:
    """Return the function that detects sparsity, for these types, as a typed function."""
    given, directions = call.argument_types
    indices = components_of(components_of(directions)[0])
    wrt = tuple(number for number, kind in enumerate(indices) if not isinstance(kind, types.NoneType))
    name, (number,), lowered = lowered_on_copies(form, call, components_of(given), wrt)
    function = lowered.function
    refuse_draws(function)
    traced = Dependences(function, lowered.routines).trace(function, function.params[number])
    take_together(function, given, directions, (number,), (traced.indices,), types.none)
    return typed_as_called(call, function, name, lowered)
