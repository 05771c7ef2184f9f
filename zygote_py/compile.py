"""From a Python function and argument types to the Python function that computes its gradient: every stage in order.

    front end -> simplification, canonical form -> activity, shadows -> adjoint -> joint function -> emission

`compile_gradient` runs the stages for a `Request` and keeps what each made, for inspection. What Numba does with the
emitted function is not its business (see `zygote_py.gradient_function`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.activity import Activity
from zygote_py.adjoints.derivatives import Derivatives
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.inverses import check_steps
from zygote_py.adjoints.joint import join, join_halves
from zygote_py.adjoints.kinds import carries_adjoint, is_array, is_float
from zygote_py.adjoints.leaves import expose_leaves, reachable
from zygote_py.adjoints.long_loops import check_returned, divide_loops
from zygote_py.adjoints.nothing import define
from zygote_py.adjoints.outlined import written_after_return
from zygote_py.adjoints.packing import pack_all, unpack_all
from zygote_py.adjoints.repeatable import make_repeatable
from zygote_py.adjoints.reversible import has_reversible_steps, outline_reversible_loops
from zygote_py.adjoints.sharing import refuse_shared_arguments
from zygote_py.captured import captured_type, fields_of, numbers_asked_for
from zygote_py.emit import Emitted, emit, load
from zygote_py.frontend import Capture, LoweredFunction, lower
from zygote_py.ir import ops, passes
from zygote_py.ir.arrays import expand_arrays
from zygote_py.ir.clone import clone
from zygote_py.ir.core import (
    Const,
    Function,
    Instr,
    Operand,
    Param,
    Raise,
    Return,
    Routine,
    Type,
    Value,
    replace_values,
)
from zygote_py.ir.inline import inline_calls, shares_what_it_writes
from zygote_py.ir.memory import Memory
from zygote_py.ir.routines import calls_in, cycles, find_effects
from zygote_py.ir.text import text
from zygote_py.ir.types import components_of
from zygote_py.requests import MoreCaptured, Request


@dataclass(frozen=True, eq=False)
class Compiled:
    """What the stages made of one request for one signature."""

    lowered: LoweredFunction
    activity: Activity
    adjoint: Function
    emitted: Emitted

    @cached_property
    def function(self) -> Callable[..., object]:
        """The emitted function, as a plain Python function."""
        return _loaded(self.emitted, self.lowered)

    @property
    def primal_text(self) -> str:
        """The primal's IR."""
        return text(self.lowered.function, self.activity.values)

    @property
    def adjoint_text(self) -> str:
        """The adjoint's IR."""
        return text(self.adjoint)


@dataclass(frozen=True, eq=False)
class CompiledPullback(Compiled):
    """A pullback: `forward` takes the arguments and the captured values, `emitted` gives the gradients.

    If the pullback is `split`, `forward` returns the value and what it keeps, and `emitted` takes that and the seeds.
    Else `forward` returns the value, and `emitted` takes copies of the arguments and captured values, and the seeds.

    There is a seed for the result if it can have an adjoint, and one for each of the parameters that `written` names:
    arrays that the function writes to, and structures with such an array.
    """

    forward: Emitted
    result_type: Type
    written: tuple[str, ...]
    split: bool

    @cached_property
    def value(self) -> Callable[..., object]:
        """The function itself as a plain Python function of the arguments and the captured values."""
        return _loaded(self.forward, self.lowered)


def _loaded(emitted: Emitted, lowered: LoweredFunction) -> Callable[..., object]:
    try:
        loaded = load(emitted)
    except (SyntaxError, RecursionError) as error:  # Python allows a hundred levels of indentation, twenty of loops
        raise refuse(
            f"the branches and loops of the gradient nest too deeply for Python ({error.args[0]})",
            lowered.function.loc,
            hint="let a loop over an array take the place of a long chain of branches",
        ) from None
    return numba_adapter.py_func_of(loaded)


def compile_gradient(request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]) -> Compiled:
    """Run all stages for one signature. Raises DifferentiationError for what cannot be differentiated.

    The emitted function takes the arguments, and behind them the captured values that `hidden` lists. Raises
    MoreCaptured if it needs others too.
    """
    given, wrt, lowered = _lowered(request, argument_types)
    known = {capture.key for capture in hidden}
    if new := tuple(capture for capture in lowered.hidden if capture.key not in known):
        raise MoreCaptured((*hidden, *new))
    _check_result(request, lowered.result_type)
    parts = _checked_arguments(lowered.function, wrt)
    activity, adjoint, shadows = _differentiate(lowered, wrt, parts, ())
    bare = request.bare and not request.closure
    joint = join(adjoint, shadows, wrt, bare=bare, with_value=request.with_value)
    if request.closure:
        _gather_captured(joint, request, lowered)
    _take_integers(joint, given)
    _take_captured(joint, lowered, hidden)
    passes.run(joint, (*passes.CLEAN_UP, passes.promote_accumulations, *passes.CLEAN_UP))
    defaults = {} if hidden else request.defaults  # captured values come behind the parameters
    emitted = emit(joint, name=request.name, decorator=_decorator(request.options), defaults=defaults)
    return Compiled(lowered, activity, adjoint, emitted)


def compile_pullback(request: Request, argument_types: tuple[Type, ...]) -> CompiledPullback:
    """Run all stages for the pullback of a function, with respect to all parameters, for one signature."""
    given, wrt, lowered = _lowered(request, argument_types)
    primal = lowered.function
    parts = _checked_arguments(primal, wrt)
    memory = Memory(primal)
    parameters = primal.params[: lowered.argument_count]
    written = [
        param
        for param in parameters
        if any(is_array(leaf.type) and memory.is_written(leaf) for leaf in reachable((param,), parts))
    ]
    activity, adjoint, shadows = _differentiate(lowered, wrt, parts, written)
    names = tuple(param.hint for param in written)
    halves = _repeatable_halves(adjoint, shadows, wrt, given)
    if halves is not None:
        texts = [
            emit(half, name=f"{primal.name}_{which}", decorator=_decorator(request.options))
            for half, which in zip(halves, ("forward", "reverse"), strict=True)
        ]
        return CompiledPullback(lowered, activity, adjoint, texts[1], texts[0], lowered.result_type, names, True)
    forward = clone(primal).function
    _take_integers(forward, given)
    passes.run(forward, passes.CLEAN_UP)
    emitted_forward = emit(forward, name=primal.name, decorator=_decorator(request.options))
    joint = join(adjoint, shadows, wrt, bare=False, with_value=False, seeded=True)
    _take_integers(joint, given)
    passes.run(joint, (*passes.CLEAN_UP, passes.promote_accumulations, *passes.CLEAN_UP))
    emitted = emit(joint, name=request.name, decorator=_decorator(request.options))
    return CompiledPullback(lowered, activity, adjoint, emitted, emitted_forward, lowered.result_type, names, False)


def _repeatable_halves(
    adjoint: Function, shadows: Mapping[Value, Value], wrt: tuple[int, ...], given: tuple[Type, ...]
) -> tuple[Function, Function] | None:
    """A forward function that returns the result and what it keeps, and a reverse function of that and of the seeds.

    The second may be called several times. None if there are no such two.
    """
    halves, value = join_halves(adjoint, shadows, wrt)
    define(halves.crossing, halves.forward.entry)
    items = value.args if isinstance(value, Instr) and value.op is ops.pack else (value,)
    found = make_repeatable(halves, items)
    if found is None:
        return None
    kept = pack_all(found.last, found.crossing)
    found.last.terminator = Return((pack_all(found.last, (value, kept)),))
    reverse = found.reverse
    record = Param(kept.type, "kept")
    made, taken = unpack_all(record, len(found.crossing))
    replace_values(reverse, dict(zip(reverse.params, taken, strict=False)))
    for param, item in zip(reverse.params, taken, strict=False):
        item.hint = param.hint
    reverse.entry.instrs[:0] = made
    reverse.params[: len(taken)] = [record]
    for block in reverse.blocks:
        if isinstance(block.terminator, Return):
            block.terminator.values = (pack_all(block, block.terminator.values),)
    _take_integers(found.forward, given)
    for half in (found.forward, reverse):
        passes.run(half, (*passes.CLEAN_UP, passes.promote_accumulations, *passes.CLEAN_UP))
    return found.forward, reverse


def _lowered(
    request: Request, argument_types: tuple[Type, ...]
) -> tuple[tuple[Type, ...], tuple[int, ...], LoweredFunction]:
    """The argument types, the numbers of the parameters asked for, and the primal in canonical form."""
    given = tuple(map(_without_default, argument_types))
    taken = tuple(_taken_as(request, number, type) for number, type in enumerate(given))
    lowered = lower(request.func, taken, request.options, numbers_vary=request.numbers_vary)
    parameters = request.func.__code__.co_varnames[: len(given)]
    wrt = numbers_asked_for(request.wrt, request.closure, parameters, lowered, request.loc, request.held)
    functions = [lowered.function, *(routine.function for routine in lowered.routines)]
    recursive = {routine for routine, others in cycles(lowered.routines).items() if others}
    for function in functions:
        _inline_shared(function, recursive)
    lowered = _with_reversible_loops(lowered)
    functions = [lowered.function, *(routine.function for routine in lowered.routines)]
    for function in functions:
        _make_canonical(function)
        _check_returns(function)
    return given, wrt, _with_divided_loops(lowered)


def _make_canonical(function: Function) -> None:
    passes.run(function, passes.CLEAN_UP)
    expand_arrays(function)
    passes.run(function, (*passes.CLEAN_UP, *passes.CANONICAL, passes.recognise_accumulations))


def _with_reversible_loops(lowered: LoweredFunction) -> LoweredFunction:
    """Make routines of the loops that can walk back, in the function and in its routines."""
    if all(routine.inverse is None for routine in lowered.routines):
        return lowered
    check_steps(lowered.routines)
    together = cycles(lowered.routines)
    routines = list(lowered.routines)
    functions = [lowered.function, *(routine.function for routine in routines)]
    if written_after_return(functions, [each for each in routines if has_reversible_steps(each.function)]):
        return lowered
    for caller in (None, *lowered.routines):
        function = lowered.function if caller is None else caller.function
        if has_reversible_steps(function):
            passes.run(function, (*passes.CLEAN_UP, *passes.CANONICAL))
            routines += outline_reversible_loops(function, () if caller is None else together[caller])
    find_effects(routines)
    return replace(lowered, routines=tuple(routines))


def _with_divided_loops(lowered: LoweredFunction) -> LoweredFunction:
    """Divide the loops that have checkpoints, in the function and in its routines."""
    routines = list(lowered.routines)
    functions = [lowered.function, *(routine.function for routine in lowered.routines)]
    check_returned(functions, routines)
    for function in functions:
        if made := divide_loops(function):
            for each in (function, *(routine.function for routine in made)):
                _make_canonical(each)
            routines += made
    if len(routines) == len(lowered.routines):
        return lowered
    find_effects(routines)
    return replace(lowered, routines=tuple(routines))


def _inline_shared(function: Function, recursive: Collection[Routine]) -> None:
    """Inline the calls whose arguments may share memory that is written to: a routine takes them to share none."""
    while True:
        memory = Memory(function)
        candidates = [call for call in calls_in(function) if call.op not in recursive]
        calls = [call for call in candidates if shares_what_it_writes(memory, call)]
        if not calls:
            return
        inline_calls(function, calls.__contains__)


def _checked_arguments(primal: Function, wrt: tuple[int, ...]) -> dict[Value, tuple[Instr, ...]]:
    """Let a primal refuse arguments that share memory; give the parts of the tuples among those asked for."""
    parts = expose_leaves(primal, [primal.params[number] for number in wrt])
    refuse_shared_arguments(primal)
    return parts


def _differentiate(
    lowered: LoweredFunction, wrt: tuple[int, ...], parts: Mapping[Value, tuple[Instr, ...]], written: Collection[Param]
) -> tuple[Activity, Function, dict[Value, Value]]:
    """The active values of a primal in canonical form, its adjoint and its shadows; `written` are results too."""
    primal = lowered.function
    found = Derivatives(lowered.routines).differentiate(primal, [primal.params[n] for n in wrt], parts, written)
    return found.activity, found.adjoint, found.shadows


def _without_default(type: Type) -> Type:
    """The type of an argument; that of its default where it was not given."""
    return numba_adapter.typeof(type.value) if isinstance(type, types.Omitted) else types.unliteral(type)


def _taken_as(request: Request, number: int, type: Type) -> Type:
    """The type that the primal gets for an argument: an integer that is to be differentiated is taken as a float."""
    name = request.func.__code__.co_varnames[number]
    _check_argument(request, name, type)
    named = request.wrt is not None and number in request.wrt
    single = request.func.__code__.co_argcount - request.held == 1
    if isinstance(type, types.Integer) and number >= request.held and (named or single):
        return types.float64
    if named and not carries_adjoint(type):
        raise refuse(
            f"no gradient with respect to `{name}`, which is of type {type}",
            request.loc,
            hint=f"pass floats for `{name}`, or leave it out of wrt",
        )
    return type


_ALLOWED = (types.Integer, types.Float, types.Complex, types.Boolean, types.NoneType, types.UnicodeType)


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
    elif not isinstance(type, _ALLOWED):
        raise refuse(
            f"the argument `{name}` is {_kind(type)}, which is not supported",
            request.loc,
            hint="pass a tuple, a NamedTuple, a dataclass or an array"
            if isinstance(type, types.List | types.ListType | types.DictType)
            else "use a number, an array, a tuple, a NamedTuple or a frozen dataclass",
        )


def _kind(type: Type) -> str:
    if isinstance(type, types.List | types.ListType):
        return "a list"
    return "a dict" if isinstance(type, types.DictType) else f"of type {type}"


def _check_result(request: Request, type: Type) -> None:
    if is_float(type) or isinstance(type, types.Integer):
        return
    hints = {
        types.Array: "return one number: add the elements up, with weights for a product with a vector",
        types.BaseTuple: "return one number, and the others from another function",
        types.NoneType: "return the number to be differentiated",
        types.Boolean: "return a float, not a comparison",
        types.Complex: "return a real number, such as the squared absolute value",
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


def _take_integers(joint: Function, given: tuple[Type, ...]) -> None:
    """Where an integer is taken as a float, let the joint function take the integer and make it a float itself."""
    for number, type in enumerate(given):
        param = joint.params[number]
        if isinstance(type, types.Integer) and is_float(param.type):
            joint.params[number] = new = Param(type, param.hint, param.loc)
            cast = Instr(float, (new,), param.type, param.hint)
            replace_values(joint, {param: cast})
            joint.entry.instrs.insert(0, cast)


def _gather_captured(joint: Function, request: Request, lowered: LoweredFunction) -> None:
    """Take the gradients of what is captured, the last that are returned, together in a NamedTuple of their own."""
    block = next(block for block in joint.blocks if isinstance(block.terminator, Return))
    end = block.terminator
    assert isinstance(end, Return)
    result = end.values[0]
    value: tuple[Operand, ...] = ()
    if request.with_value:
        assert isinstance(result, Instr)
        value, result = (result.args[0],), result.args[1]
    assert isinstance(result, Instr)
    fields = fields_of(lowered)
    own, captured = result.args[: len(result.args) - len(fields)], result.args[len(result.args) - len(fields) :]

    def packed(items: tuple[Operand, ...], cls: type = tuple) -> Instr:
        made = Instr(ops.pack, items, types.BaseTuple.from_types([item.type for item in items], cls))
        block.instrs.append(made)
        return made

    given = own[0] if request.bare else packed(own)
    result = packed((given, packed(captured, captured_type(*fields))))
    end.values = (packed((*value, result)) if request.with_value else result,)


def _take_captured(joint: Function, lowered: LoweredFunction, hidden: tuple[Capture, ...]) -> None:
    """Give the joint function a parameter for each captured value in `hidden`, in that order, needed or not."""
    count = lowered.argument_count
    needed = {capture.key: param for capture, param in zip(lowered.hidden, joint.params[count:], strict=True)}
    joint.params[count:] = [
        needed.get(capture.key) or Param(capture.type or types.none, capture.name) for capture in hidden
    ]


def _decorator(options: Mapping[str, object]) -> str:
    return f"njit({', '.join(f'{name}={value!r}' for name, value in options.items())})" if options else "njit"
