"""From a Python function and argument types to the Python function that computes its gradient: every stage in order.

    front end -> simplification, canonical form -> activity, shadows -> adjoint -> joint function -> emission

`compile_gradient` runs the stages for a `Request` and keeps what each made, for inspection. What Numba does with the
emitted function is not its business (see `zygote_py.derivative_function`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.analysis.activity import Activity
from zygote_py.adjoints.analysis.kinds import is_array, is_float
from zygote_py.adjoints.analysis.tuple_leaves import reachable
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.reverse.joint import join, join_halves
from zygote_py.adjoints.routines.derivatives import Derivatives
from zygote_py.adjoints.routines.repeatable import make_repeatable
from zygote_py.auxiliary import copied, split_auxiliary, with_auxiliary
from zygote_py.canonical import make_canonical
from zygote_py.captured import captured_type, fields_of
from zygote_py.closures import put_fields_back, with_fields
from zygote_py.emit import Emitted, emit, load, njit_with
from zygote_py.frontend import Capture, Derived, LoweredFunction, lower, lower_typed, typed_as_derived
from zygote_py.frontend.checks import enum_value
from zygote_py.ir import ops, passes
from zygote_py.ir.analysis.memory import Memory
from zygote_py.ir.analysis.routines import routines_of
from zygote_py.ir.building.builder import Builder, at_exit, inserting, items_of
from zygote_py.ir.building.clone import clone
from zygote_py.ir.building.placeholders import define
from zygote_py.ir.core import (
    Function,
    Instr,
    Operand,
    Param,
    Type,
    Value,
)
from zygote_py.ir.errors import InternalError
from zygote_py.ir.passes.accumulation.lower_guards import write_out_guards
from zygote_py.ir.text.printer import text
from zygote_py.ir.types import components_of, names_of
from zygote_py.ir.walks import replace_uses
from zygote_py.primals import Lower, check_result, checked_arguments, lowered_primal
from zygote_py.requests import Request
from zygote_py.statements import TypedFunction


@dataclass(frozen=True, eq=False)
class Compiled:
    """What the stages made of one request for one signature."""

    lowered: LoweredFunction
    activity: Activity | None  # None of what is no gradient
    adjoint: Function
    emitted: Emitted

    @cached_property
    def function(self) -> Callable[..., object]:
        """The emitted function, as a plain Python function."""
        return _loaded(self.emitted, self.lowered)

    @property
    def primal_text(self) -> str:
        """The primal's IR."""
        return text(self.lowered.function, self.activity.values if self.activity else ())

    @property
    def adjoint_text(self) -> str:
        """The adjoint's IR."""
        return text(self.adjoint)


@dataclass(frozen=True, eq=False)
class CompiledForm(Compiled):
    """A derivative other than a gradient: `adjoint` is what is emitted; `primal` makes the IR of the function."""

    primal: Callable[[], Function]

    @property
    def primal_text(self) -> str:
        """The primal's IR."""
        return text(self.primal())

    @property
    def adjoint_text(self) -> str:
        """The IR of all functions that are emitted, those that are called first."""
        called = [text(routine.function) for routine in reversed(routines_of(self.adjoint))]
        return "\n\n".join([*called, text(self.adjoint)])


@dataclass(frozen=True, eq=False)
class CompiledPullback(Compiled):
    """A pullback: `forward` takes the arguments and the captured values, and returns the value and what it keeps.

    `emitted` takes what is kept, and the seeds, and gives the gradients. There is a seed for the result if it can have
    an adjoint, and one for each of the parameters that `written` names: arrays that the function writes to, and
    structures with such an array.
    """

    forward: Emitted
    result_type: Type
    written: tuple[str, ...]

    @cached_property
    def value(self) -> Callable[..., object]:
        """The forward function, as a plain Python function."""
        return _loaded(self.forward, self.lowered)

    @property
    def written_parameters(self) -> list[tuple[int, str, Type]]:
        """The numbers, names and types of the parameters in `written`, in that order."""
        params = self.lowered.function.params[: self.lowered.argument_count]
        return [(number, each.hint, each.type) for number, each in enumerate(params) if each.hint in self.written]


def _loaded(emitted: Emitted, lowered: LoweredFunction) -> Callable[..., object]:
    try:
        loaded = load(emitted)
    except (SyntaxError, RecursionError) as error:  # Python allows a hundred levels of indentation, twenty of loops
        if not isinstance(error, RecursionError) and not str(error.args[0]).startswith("too many"):
            raise InternalError(f"emit: {error}", ir=emitted.source) from error
        raise refuse(
            f"the branches and loops of the gradient nest too deeply for Python ({error.args[0]})",
            lowered.function.loc,
            hint="let a loop over an array take the place of a long chain of branches",
        ) from None
    return numba_adapter.entry_of(loaded)


def compile_gradient(
    request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
) -> tuple[Compiled, tuple[Capture, ...]]:
    """Run all stages for one signature, of a gradient or of another derivative. Raises DifferentiationError.

    The emitted function takes the arguments, then captured values: those in `hidden`, and after these what else the
    function captures. Returns also what these are.
    """
    form = request.form
    made = _joint(request, argument_types, lower_of(request)) if form is None else _made(request, argument_types)
    hidden = _take_captured(made.joint, made.lowered, hidden)
    _take_members(made.joint, argument_types)
    finish(made.joint)
    defaults = {} if hidden else request.defaults  # captured values come behind the parameters
    emitted = emit(made.joint, name=request.name, decorator=njit_with(request.options), defaults=defaults)
    if form is None:
        return Compiled(made.lowered, made.activity, made.adjoint, emitted), hidden

    def primal() -> Function:
        lowered = lower_of(replace(request, form=None))(form.kinds(argument_types))
        make_canonical(lowered.function)
        return lowered.function

    return CompiledForm(made.lowered, None, made.adjoint, emitted, primal), hidden


@dataclass(frozen=True, eq=False)
class _Made:
    """A joint function, and what it was made from."""

    lowered: LoweredFunction
    activity: Activity | None
    adjoint: Function
    joint: Function


def _made(request: Request, argument_types: tuple[Type, ...]) -> _Made:
    """What a form other than a gradient makes."""
    typed = numba_adapter.typed_derivative(request.form, request.primal, argument_types, request.options)
    lowered = lower_typed(typed)
    function = lowered.function
    del function.params[lowered.argument_count + len(lowered.hidden) :]  # the function itself, which holds nothing
    return _Made(lowered, None, function, clone(function).function)


def lower_of(request: Request) -> Lower:
    """What makes the IR of what a request asks to be differentiated: a function, or a derivative."""
    inner = request.inner
    if inner is None:
        return lambda taken: lower(request.func, taken, request.options, numbers_vary=request.numbers_vary)

    def derivative(taken: tuple[Type, ...]) -> LoweredFunction:
        made = _joint(inner, taken, lower_of(inner)) if inner.form is None else _made(inner, taken)
        return replace(made.lowered, function=tidy(made.joint), result_type=result_of(made.joint).type)

    return derivative


def _joint(request: Request, argument_types: tuple[Type, ...], lower: Lower) -> _Made:
    """The joint function of a request for one signature: of the arguments and all captured values."""
    given, wrt, lowered = lowered_primal(request, argument_types, lower)
    if request.has_aux:
        lowered = split_auxiliary(request, lowered)
    check_result(request, lowered.result_type)
    parts = checked_arguments(lowered.function, wrt)
    activity, adjoint, shadows = _differentiate(lowered, wrt, parts, ())
    bare = request.bare and not request.closure
    joint = join(adjoint, shadows, wrt, bare=bare, with_value=request.with_value)
    if request.closure:
        _gather_captured(joint, request, lowered)
    if request.has_aux:
        with_auxiliary(joint, request.with_value)
    _take_integers(joint, given)
    return _Made(replace(lowered, has_derivatives=True), activity, adjoint, joint)


def typed_gradient(request: Request, call: numba_adapter.DerivedCall) -> TypedFunction:
    """A gradient in a function that is typed for us, as another function that is called there."""
    named = {one for one in request.wrt or () if isinstance(one, str)}

    def lower(taken: tuple[Type, ...]) -> LoweredFunction:
        lowered = lower_typed(call.typed(taken))
        return with_fields(lowered, call.fields) if named or request.closure else lowered

    made = _joint(request, call.argument_types, lower)
    put_fields_back(made.joint, made.lowered)
    return typed_as_called(call, made.joint, request.name, made.lowered)


def typed_as_called(
    call: numba_adapter.DerivedCall, function: Function, name: str, lowered: LoweredFunction
) -> TypedFunction:
    """A derivative as a function that is called in one that is typed for us, once it is cleaned up."""
    tidy(function)
    derived = Derived(function, len(call.argument_types), routines_of(function))
    return typed_as_derived(call, derived, name, result_of(function).type, lowered.hidden, lowered.frozen)


def tidy(joint: Function) -> Function:
    """Clean a derivative up, in place."""
    passes.run(joint, (*passes.CLEAN_UP, passes.promote_accumulations, *passes.CLEAN_UP))
    return joint


def finish(function: Function) -> Function:
    """Make ready what is to be emitted, and the routines that it calls, in place: nothing differentiates it again."""
    for each in (*(routine.function for routine in routines_of(function)), function):
        if write_out_guards(each):
            passes.run(each, passes.CLEAN_UP)
    return tidy(function)


def result_of(function: Function) -> Operand:
    """What a function in canonical form returns."""
    _, end = function.exit()
    return end.args[0]


def compile_pullback(
    request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
) -> tuple[CompiledPullback, tuple[Capture, ...]]:
    """Run all stages for the pullback of a function, with respect to all parameters, for one signature.

    Captured values are passed to the forward function as `compile_gradient` has it.
    """
    given, wrt, lowered = lowered_primal(request, argument_types, lower_of(request))
    primal = lowered.function
    parts = checked_arguments(primal, wrt)
    memory = Memory(primal)
    parameters = primal.params[: lowered.argument_count]
    written = [
        param
        for param in parameters
        if any(is_array(leaf.type) and memory.is_written(leaf) for leaf in reachable((param,), parts))
    ]
    activity, adjoint, shadows = _differentiate(lowered, wrt, parts, written)
    names = tuple(param.hint for param in written)
    halves = _repeatable_halves(adjoint, shadows, wrt) or _halves_that_run_again(primal, adjoint, shadows, wrt)
    forward = halves[0]
    _take_integers(forward, given)
    hidden = _take_captured(forward, lowered, hidden)
    _take_members(forward, given)
    texts = [
        emit(finish(half), name=f"{primal.name}_{which}", decorator=njit_with(request.options))
        for half, which in zip(halves, ("forward", "reverse"), strict=True)
    ]
    return CompiledPullback(lowered, activity, adjoint, texts[1], texts[0], lowered.result_type, names), hidden


def _repeatable_halves(
    adjoint: Function, shadows: Mapping[Value, Value], wrt: tuple[int, ...]
) -> tuple[Function, Function] | None:
    """A forward function that returns the result and what it keeps, and a reverse function of that and of the seeds.

    The second may be called several times. None if there are no such two.
    """
    halves, value = join_halves(adjoint, shadows, wrt)
    define(halves.crossing, halves.forward.entry)
    found = make_repeatable(halves, items_of(value))
    if found is None:
        return None
    last = Builder(found.last)
    kept = last.pack_all(found.crossing)
    last.return_packed([value, kept])
    _take_kept(found.reverse, kept.type, len(found.crossing))
    b, end = at_exit(found.reverse)
    end.args = (b.pack_all(end.args),)
    return found.forward, found.reverse


def _halves_that_run_again(
    primal: Function, adjoint: Function, shadows: Mapping[Value, Value], wrt: tuple[int, ...]
) -> tuple[Function, Function]:
    """Two such functions of which the first keeps copies of its arguments, and the second runs the whole again."""
    forward = clone(primal).function
    with inserting(forward.entry) as b:
        kept = b.pack_all([copied(b, param) for param in forward.params])
    b, end = at_exit(forward)
    b.return_packed([end.args[0], kept])
    reverse = join(adjoint, shadows, wrt, bare=False, with_value=False, seeded=True)
    _take_kept(reverse, kept.type, len(forward.params), copied)
    return forward, reverse


def _take_kept(
    reverse: Function,
    kind: Type,
    count: int,
    taking: Callable[[Builder, Operand], Operand] = lambda b, item: item,
) -> None:
    """Let a reverse function take the first `count` of its parameters as one value, in which they were packed."""
    record = Param(kind, "kept")
    with inserting(reverse.entry) as b:
        items = b.unpack_all(record, count)
        for param, item in zip(reverse.params, items, strict=False):
            item.hint = param.hint
        taken = [taking(b, item) for item in items]
    replace_uses(reverse, dict(zip(reverse.params, taken, strict=False)))
    reverse.params[:count] = [record]


def _differentiate(
    lowered: LoweredFunction, wrt: tuple[int, ...], parts: Mapping[Value, tuple[Instr, ...]], written: Collection[Param]
) -> tuple[Activity, Function, dict[Value, Value]]:
    """The active values of a primal in canonical form, its adjoint and its shadows; `written` are results too."""
    primal = lowered.function
    found = Derivatives(lowered.routines).differentiate(primal, [primal.params[n] for n in wrt], parts, written)
    return found.activity, found.adjoint, found.shadows


def _take_integers(joint: Function, given: tuple[Type, ...]) -> None:
    """Where an integer is taken as a float, let the joint function take the integer and make it a float itself."""
    for number, type in enumerate(given):
        param = joint.params[number]
        if isinstance(type, types.Integer) and is_float(param.type):
            joint.params[number] = new = Param(type, param.hint, param.loc)
            with inserting(joint.entry) as b:
                replace_uses(joint, {param: b.call(float, new, type=param.type, hint=param.hint)})


def _take_members(function: Function, given: tuple[Type, ...]) -> None:
    """Let an emitted function take members of enumerations, of which it needs what stands for them."""
    for number, param in enumerate(list(function.params)):
        type = given[number] if number < len(given) else param.type
        type = numba_adapter.typeof(type.value) if isinstance(type, types.Omitted) else type
        if _holds_member(type):
            function.params[number] = new = Param(type, param.hint, param.loc)
            with inserting(function.entry) as b:
                replace_uses(function, {param: _with_values(b, new, type, param.type)})


def _with_values(b: Builder, given: Operand, type: Type, wanted: Type) -> Operand:
    """What is given, with the values of the members of enumerations in their places."""
    hint = getattr(given, "hint", "")
    if isinstance(type, types.EnumMember):
        return b.call(enum_value, given, type=wanted, hint=hint)
    if not _holds_member(type):
        return given
    components = zip(names_of(type), components_of(type), components_of(wanted), strict=True)
    parts = [
        _with_values(b, b.item(given, number, f"{hint}_{name}"), kind, own)
        for number, (name, kind, own) in enumerate(components)
    ]
    return b.call(ops.pack, *parts, type=wanted, hint=hint)


def _holds_member(type: Type) -> bool:
    if isinstance(type, types.BaseTuple):
        return any(map(_holds_member, components_of(type)))
    return isinstance(type, types.EnumMember)


def _gather_captured(joint: Function, request: Request, lowered: LoweredFunction) -> None:
    """Take the gradients of what is captured, the last that are returned, together in a NamedTuple of their own."""
    b, end = at_exit(joint)
    result = end.args[0]
    value: tuple[Operand, ...] = ()
    if request.with_value:
        assert isinstance(result, Instr)
        value, result = (result.args[0],), result.args[1]
    assert isinstance(result, Instr)
    fields = fields_of(lowered)
    own, captured = result.args[: len(result.args) - len(fields)], result.args[len(result.args) - len(fields) :]

    given = own[0] if request.bare else b.pack(own)
    kinds = [each.type for each in captured]
    result = b.pack([given, b.pack(captured, types.BaseTuple.from_types(kinds, captured_type(*fields)))])
    end.args = (b.pack([*value, result]) if request.with_value else result, *end.args[1:])


def _take_captured(function: Function, lowered: LoweredFunction, hidden: tuple[Capture, ...]) -> tuple[Capture, ...]:
    """Give a function a parameter for each captured value in `hidden`, needed or not, and for what else it captures.

    Returns these, in that order.
    """
    known = {capture.key for capture in hidden}
    hidden = (*hidden, *(capture for capture in lowered.hidden if capture.key not in known))
    count = lowered.argument_count
    needed = {capture.key: param for capture, param in zip(lowered.hidden, function.params[count:], strict=True)}
    function.params[count:] = [
        needed.get(capture.key) or Param(capture.type or types.none, capture.name) for capture in hidden
    ]
    return hidden
