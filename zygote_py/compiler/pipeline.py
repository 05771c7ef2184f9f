"""The stages of compilation in order: from a Python function and argument types to the Python function of its gradient.

    front end -> simplification, canonical form -> activity, shadows -> adjoint -> joint function -> emission

`compile_gradient` runs the stages for a `Request` and keeps the result of each, for inspection. Numba compiles the
emitted function elsewhere (see `zygote_py.runtime.compiled_function`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import join, join_halves, refuse
from zygote_py.adjoints.analysis import Activity, carries_adjoint, is_array, reachable
from zygote_py.adjoints.routines import Derivatives, make_repeatable
from zygote_py.adjoints.rules.arrays.gathered import gather_products
from zygote_py.base import Capture, Names, TypedFunction, captured_type, stage
from zygote_py.compiler.border import (
    give_gradients,
    give_whole,
    give_whole_gradients,
    is_fresh,
    refuse_in_pullback,
    refuse_writes,
    shapes_gradient,
    take_arguments,
    take_integers,
)
from zygote_py.compiler.forward import (
    activity_of,
    cheaper_gradient,
    forward_gradient,
    may_go_forward,
)
from zygote_py.compiler.free_variables import fields_of, put_fields_back, with_fields
from zygote_py.compiler.jvp import refuse_draws, typed_pushforward, typed_trace
from zygote_py.compiler.prepare import (
    Lower,
    check_result,
    checked_arguments,
    copied,
    finish,
    lowered_primal,
    result_of,
    split_auxiliary,
    tidy,
    typed_as_called,
    with_auxiliary,
    within,
    write_in_numbers,
)
from zygote_py.compiler.request import PullbackInterface, Request, make_request, star_of
from zygote_py.compiler.transforms import CheckedForm, GradientForm, PushForm, TraceForm
from zygote_py.emit import Emitted, emit_and_widen
from zygote_py.frontend import LoweredFunction, lower, lower_typed
from zygote_py.ir import (
    NONE,
    Builder,
    Function,
    Instr,
    InternalError,
    Memory,
    Operand,
    Param,
    Type,
    Value,
    at_exit,
    clone,
    components_of,
    define,
    inserting,
    items_of,
    make_canonical,
    ops,
    replace_uses,
    routines_of,
    uses,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.text.printer import text
from zygote_py.numba_adapter import DerivedCall


@dataclass(frozen=True, eq=False)
class Compiled:
    """The results of the stages for one request and one signature."""

    lowered: LoweredFunction
    activity: Activity | None  # of a gradient; None for other derivatives
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
    """A derivative other than a gradient: `adjoint` is emitted as it is, and `primal` makes the IR of the function."""

    primal: Callable[[], Function]

    @property
    def primal_text(self) -> str:
        """The primal's IR."""
        return text(self.primal())

    @property
    def adjoint_text(self) -> str:
        """The IR of all emitted functions, callees first."""
        called = [text(routine.function) for routine in reversed(routines_of(self.adjoint))]
        return "\n\n".join([*called, text(self.adjoint)])


@dataclass(frozen=True, eq=False)
class CompiledPullback(Compiled):
    """A pullback: `forward` takes the arguments and the captured values, and returns the value and the saved values.

    `emitted` takes the saved values and the seeds, and returns the gradients.
    """

    forward: Emitted
    interface: PullbackInterface

    @cached_property
    def value(self) -> Callable[..., object]:
        """The forward function, as a plain Python function."""
        return _loaded(self.forward, self.lowered)


def _loaded(emitted: Emitted, lowered: LoweredFunction) -> Callable[..., object]:
    try:
        return numba_adapter.entry_of(numba_adapter.load(emitted))
    except (SyntaxError, RecursionError) as error:  # Python allows a hundred levels of indentation, twenty of loops
        if not isinstance(error, RecursionError) and not str(error.args[0]).startswith("too many"):
            raise InternalError(f"emit: {error}", ir=emitted.source) from error
        raise refuse(
            f"the branches and loops of the gradient nest too deeply for Python ({error.args[0]})",
            lowered.function.loc,
            hint="let a loop over an array take the place of a long chain of branches",
        ) from None


def compile_gradient(
    request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
) -> tuple[Compiled, tuple[Capture, ...]]:
    """Run all stages for one signature, of a gradient or of another derivative. Raises DifferentiationError.

    The emitted function takes the arguments, then captured values: those in `hidden`, and after these the other ones.
    Returns these captured variables, too.
    """
    form = request.form
    made, hidden = derivative_of(request, argument_types, hidden)
    defaults = {} if hidden else request.defaults  # captured values follow the parameters
    notes = [f"{FLAT}: {name} (see docs/implicit.md)" for name in made.flat]
    emitted = emit_and_widen(made.joint, request.name, request.options, defaults, notes)
    if form is None:
        return Compiled(made.lowered, made.activity, made.adjoint, emitted), hidden

    def primal() -> Function:
        lowered = lower_of(replace(request, form=None))(form.kinds(argument_types))
        make_canonical(lowered.function)
        return lowered.function

    return CompiledForm(made.lowered, None, made.adjoint, emitted, primal), hidden


def derivative_of(
    request: Request,
    argument_types: tuple[Type, ...],
    hidden: tuple[Capture, ...],
    lower: Lower | None = None,
    in_lanes: bool = True,
) -> tuple[JointResult, tuple[Capture, ...]]:
    """Return the function that is to be emitted for one signature, and its captured variables; see above.

    `lower` lowers what is differentiated, if not `lower_of(request)`. Without `in_lanes`, no value is several numbers,
    and no vectors are kept for products.
    """
    form = request.form
    if form is None:
        made = _joint(request, argument_types, lower or lower_of(request), True, in_lanes)
    else:
        made = _made(request, argument_types)
    hidden = _take_captured(made.joint, made.lowered, hidden)
    take_arguments(made.joint, (*argument_types, *_types_of(hidden)))
    if form is not None:
        give_whole(made.joint, made.lowered.result_type)
    if not in_lanes:
        write_in_numbers(made.joint)
    finish(made.joint)
    if in_lanes:
        gather_products(made.joint)
    return made, hidden


@dataclass(frozen=True, eq=False)
class JointResult:
    """A joint function, and what it was made from."""

    lowered: LoweredFunction
    activity: Activity | None
    adjoint: Function
    joint: Function
    flat: tuple[str, ...] = ()  # the parameters that are used, and whose gradient is zero everywhere
    kind: Type | None = None  # of the result, if that is not what the joint function returns
    mode: tuple[str, str] = ("", "")  # and why


def _made(request: Request, argument_types: tuple[Type, ...]) -> JointResult:
    """Return the function that a form other than a gradient makes."""
    typed = numba_adapter.typed_derivative(request.form, request.primal, argument_types, request.options)
    lowered = lower_typed(typed)
    function = lowered.function
    del function.params[lowered.argument_count + len(lowered.hidden) :]  # the function itself, which holds nothing
    return JointResult(lowered, None, function, clone(function).function)


def lower_of(request: Request) -> Lower:
    """Return the function that lowers what a request differentiates: a function, or a derivative."""
    inner = request.inner
    if inner is None:
        return lambda taken: lower(
            request.func, taken, request.options, tuple_floats_are_inputs=request.tuple_floats_are_inputs
        )

    def derivative(taken: tuple[Type, ...]) -> LoweredFunction:
        made = _joint(inner, taken, lower_of(inner)) if inner.form is None else _made(inner, taken)
        return replace(made.lowered, function=tidy(made.joint), result_type=made.kind or result_of(made.joint).type)

    return derivative


def _joint(
    request: Request, argument_types: tuple[Type, ...], lower: Lower, is_emitted: bool = False, in_lanes: bool = False
) -> JointResult:
    """Return the joint function of a request for one signature: of the arguments and all captured values."""
    given, wrt, lowered = lowered_primal(request, argument_types, lower)
    refuse_writes(lowered.function, given)
    if request.has_aux:
        lowered = split_auxiliary(request, lowered)
    check_result(request, lowered.result_type)
    parts = checked_arguments(lowered.function, wrt)
    read = _read_leaves(lowered, wrt, parts)
    used = {} if request.has_aux else read  # auxiliary output may depend on the others
    activity, adjoint, joint, mode = _by_mode(request, lowered, wrt, parts, is_emitted, in_lanes)
    flat = tuple(name for name, leaves in used.items() if not any(leaf in activity for leaf in leaves))
    unwrap_single = request.unwrap_single and not request.closure
    kinds = (*given, *_types_of(lowered.hidden))
    kind = give_gradients(joint, wrt, kinds, unwrap_single, request.with_value, is_emitted)
    if request.closure:
        _gather_captured(joint, request, lowered)
        kind = kind and _gathered(kind, request, lowered)
    if request.has_aux:
        with_auxiliary(joint, request.with_value)
    take_integers(joint, given)
    return JointResult(replace(lowered, has_derivatives=True), activity, adjoint, joint, flat, kind, mode)


def _by_mode(
    request: Request,
    lowered: LoweredFunction,
    wrt: tuple[int, ...],
    parts: Mapping[Value, tuple[Instr, ...]],
    is_emitted: bool,
    in_lanes: bool,
) -> tuple[Activity, Function, Function, tuple[str, str]]:
    """Return the active values, the adjoint, and the joint function; with mode="forward", the same function twice.

    The mode comes last, and why it is this one.

    If the request leaves the mode open, forward mode takes the place of a reverse mode that records values, in what is
    not differentiated again.
    """
    if request.mode == "forward":
        activity = activity_of(lowered, wrt)
        made = forward_gradient(request, lowered, wrt, in_lanes)
        return activity, clone(made).function, made, ("forward", "as asked")
    is_open = is_emitted and request.mode == "auto" and may_go_forward(request, lowered, wrt)
    before = replace(lowered, function=clone(lowered.function).function) if is_open else None
    activity, adjoint, shadows = _differentiate(lowered, wrt, parts, ())
    unwrap_single = request.unwrap_single and not request.closure
    joint = join(adjoint, shadows, wrt, unwrap_single=unwrap_single, with_value=request.with_value)
    if before is not None:
        cheaper = cheaper_gradient(request, before, wrt, joint, in_lanes)
        if cheaper is not None:
            few = "as there are few numbers to differentiate by, and reverse mode would keep values of each round"
            return activity, adjoint, cheaper, ("forward", few)
    return activity, adjoint, joint, ("reverse", "as asked" if request.mode == "reverse" else "whatever the inputs")


# What is said of a parameter that affects the result only by what has no derivative.
FLAT = "zero gradient, since nothing differentiable depends on it"


def _read_leaves(
    lowered: LoweredFunction, wrt: tuple[int, ...], parts: Mapping[Value, tuple[Instr, ...]]
) -> dict[str, list[Value]]:
    """Return the numbers and arrays in each selected parameter, if the function reads any of them."""
    function, used = lowered.function, uses(lowered.function)
    found = {}
    for param in (function.params[number] for number in wrt if number < lowered.argument_count):
        leaves = [leaf for leaf in reachable((param,), parts) if leaf not in parts and carries_adjoint(leaf.type)]
        if any(_reads(use.user) for leaf in leaves for use in used.get(leaf, ())):
            found[param.hint] = leaves
    return found


def _reads(user: Any) -> bool:
    return not isinstance(user, Instr) or ops.of(user.op).role is not ops.Role.LENGTH


def derive(form: Any, call: DerivedCall) -> TypedFunction:
    """Return the derivative that a form makes of a function, for the types of a call in a function that is typed."""
    match form:
        case GradientForm() if form.closure or not star_of(call.func):
            return _typed_gradient(form, call)
        case PushForm():
            return typed_pushforward(form, call)
        case TraceForm():
            return typed_trace(form, call)
        case CheckedForm():
            return _typed_checked(form, call)
        case _:
            return form.typed(call)  # type: ignore[no-any-return]


numba_adapter.derive_with(derive)


def _typed_gradient(form: GradientForm, call: DerivedCall) -> TypedFunction:
    request = within(call, form, form.request(call.func))
    named = {one for one in request.wrt or () if isinstance(one, str)}

    def lower(taken: tuple[Type, ...]) -> LoweredFunction:
        lowered = lower_typed(call.typed(taken))
        return with_fields(lowered, call.fields) if named or request.closure else lowered

    made = _joint(request, call.argument_types, lower)
    put_fields_back(made.joint, made.lowered)
    return typed_as_called(call, made.joint, request.name, made.lowered, made.kind)


def _typed_checked(form: CheckedForm, call: DerivedCall) -> TypedFunction:
    request = within(call, form, make_request(call.func, (), with_value=True))
    _, _, lowered = lowered_primal(request, call.argument_types, lambda taken: lower_typed(call.typed(taken)))
    checked_arguments(lowered.function, tuple(range(len(lowered.function.params))))
    return typed_as_called(call, lowered.function, request.name, lowered)


def compile_pullback(
    request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
) -> tuple[CompiledPullback, tuple[Capture, ...]]:
    """Run all stages for the pullback of a function, with respect to all parameters, for one signature.

    Captured values are passed to the forward function as in `compile_gradient`.
    """
    given, wrt, lowered = lowered_primal(request, argument_types, lower_of(request))
    primal = lowered.function
    refuse_writes(primal, given)
    parts = checked_arguments(primal, wrt)
    memory = Memory(primal)
    parameters = primal.params[: lowered.argument_count]
    written = [
        param
        for param in parameters
        if any(is_array(leaf.type) and memory.is_written_to(leaf) for leaf in reachable((param,), parts))
    ]
    places = [number for number, param in enumerate(parameters) if param in written]
    refuse_in_pullback(given, places, lowered.result_type, request.loc)
    activity, adjoint, shadows = _differentiate(lowered, wrt, parts, written)
    halves = _repeatable_halves(adjoint, shadows, wrt, given) or _halves_that_run_again(
        primal, adjoint, shadows, wrt, given
    )
    forward = halves[0]
    take_integers(forward, given)
    hidden = _take_captured(forward, lowered, hidden)
    take_arguments(forward, (*given, *_types_of(hidden)), copies=True)
    finish(*halves)
    texts = [
        emit_and_widen(gather_products(half), f"{primal.name}_{which}", request.options, {}, ())
        for half, which in zip(halves, ("forward", "reverse"), strict=True)
    ]
    known = tuple((param.hint, param.type) for param in parameters)
    interface = PullbackInterface(known, lowered.result_type, tuple(param.hint for param in written))
    return CompiledPullback(lowered, activity, adjoint, texts[1], texts[0], interface), hidden


def _repeatable_halves(
    adjoint: Function, shadows: Mapping[Value, Value], wrt: tuple[int, ...], given: Sequence[Type]
) -> tuple[Function, Function] | None:
    """Return a forward function, of the result and the saved values, and a reverse function of these and of the seeds.

    The second may be called several times. Returns None if there are no such functions.
    """
    halves, value = join_halves(adjoint, shadows, wrt)
    define(halves.crossing, halves.forward.entry)
    params = halves.forward.params
    own = [param for param, type in zip(params, given, strict=False) if is_fresh(type)]
    found = make_repeatable(halves, items_of(value), own)
    if found is None:
        return None
    last = Builder(found.last)
    shaping = [number for number in wrt if number < len(given) and shapes_gradient(given[number])]
    taken = {number: Param(params[number].type, params[number].hint, params[number].loc) for number in shaping}
    count = len(found.crossing)
    found.reverse.params[count:count] = taken.values()
    kept = last.pack_all([*found.crossing, *(params[number] for number in shaping)])
    last.return_packed([value, kept])
    b, end = at_exit(found.reverse)
    arguments = [taken.get(number, NONE) for number in wrt]
    end.args = (b.pack(give_whole_gradients(b, wrt, given, end.args, arguments)),)
    _take_kept(found.reverse, kept.type, count + len(shaping))
    return found.forward, found.reverse


def _halves_that_run_again(
    primal: Function, adjoint: Function, shadows: Mapping[Value, Value], wrt: tuple[int, ...], given: Sequence[Type]
) -> tuple[Function, Function]:
    """Return two such functions: the first saves copies of its arguments, and the second runs everything again."""
    refuse_draws(
        primal,
        "the pullback of a function that draws random numbers cannot run it again, as this one requires",
        "use `value_and_gradient`, or draw the numbers beforehand and pass them",
    )
    forward = clone(primal).function
    with inserting(forward.entry) as b:
        kept = b.pack_all([copied(b, param) for param in forward.params])
    b, end = at_exit(forward)
    b.return_packed([end.args[0], kept])
    reverse = join(adjoint, shadows, wrt, unwrap_single=False, with_value=False, seeded=True)
    give_gradients(reverse, wrt, given, False, False, True)
    _take_kept(reverse, kept.type, len(forward.params), copied)
    return forward, reverse


def _take_kept(
    reverse: Function,
    kind: Type,
    count: int,
    taking: Callable[[Builder, Operand], Operand] = lambda b, item: item,
) -> None:
    """Replace the first `count` parameters of a reverse function by one parameter that contains them."""
    record = Param(kind, "kept")
    with inserting(reverse.entry) as b:
        items = b.unpack_all(record, count)
        for param, item in zip(reverse.params, items, strict=False):
            item.hint = param.hint
        taken = [taking(b, item) for item in items]
    replace_uses(reverse, dict(zip(reverse.params, taken, strict=False)))
    reverse.params[:count] = [record]


@stage("differentiation")
def _differentiate(
    lowered: LoweredFunction, wrt: tuple[int, ...], parts: Mapping[Value, tuple[Instr, ...]], written: Collection[Param]
) -> tuple[Activity, Function, dict[Value, Value]]:
    """Return the active values of a primal in canonical form, its adjoint and its shadows; `written` are results."""
    primal = lowered.function
    found = Derivatives(lowered.routines).differentiate(primal, [primal.params[n] for n in wrt], parts, written)
    return found.activity, found.adjoint, found.shadows


def _types_of(captures: Sequence[Capture]) -> Iterator[Type]:
    """Yield the types of captured variables."""
    for capture in captures:
        yield capture.type or types.none


def _gather_captured(joint: Function, request: Request, lowered: LoweredFunction) -> None:
    """Gather the gradients of captured variables, the last that are returned, in a NamedTuple."""
    b, end = at_exit(joint)
    result = end.args[0]
    value: tuple[Operand, ...] = ()
    if request.with_value:
        assert isinstance(result, Instr)
        value, result = (result.args[0],), result.args[1]
    assert isinstance(result, Instr)
    fields = fields_of(lowered)
    own, captured = result.args[: len(result.args) - len(fields)], result.args[len(result.args) - len(fields) :]

    given = own[0] if request.unwrap_single else b.pack(own)
    kinds = [each.type for each in captured]
    result = b.pack([given, b.pack(captured, types.BaseTuple.from_types(kinds, captured_type(*fields)))])
    end.args = (b.pack([*value, result]) if request.with_value else result, *end.args[1:])


def _gathered(kind: Type, request: Request, lowered: LoweredFunction) -> Type:
    """Return the type of a result with the gradients of captured variables, the last in `kind`, so gathered."""
    value, result = components_of(kind) if request.with_value else (None, kind)
    fields, parts = fields_of(lowered), components_of(result)
    own, captured = parts[: len(parts) - len(fields)], parts[len(parts) - len(fields) :]
    given = own[0] if request.unwrap_single else types.Tuple(own)
    gathered = types.Tuple((given, types.BaseTuple.from_types(captured, captured_type(*fields))))
    return types.Tuple((value, gathered)) if request.with_value else gathered


def _take_captured(function: Function, lowered: LoweredFunction, hidden: tuple[Capture, ...]) -> tuple[Capture, ...]:
    """Add a parameter for each captured variable: first for those in `hidden`, needed or not, then for the others.

    Returns the captured variables in that order.
    """
    known = {capture.key for capture in hidden}
    hidden = (*hidden, *(capture for capture in lowered.hidden if capture.key not in known))
    count = lowered.argument_count
    needed = {capture.key: param for capture, param in zip(lowered.hidden, function.params[count:], strict=True)}
    names = Names(param.hint for param in function.params)
    function.params[count:] = [
        needed.get(capture.key) or Param(capture.type or types.none, names.fresh(capture.name)) for capture in hidden
    ]
    return hidden
