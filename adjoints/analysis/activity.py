"""Activity analysis: the values of a primal that depend on the differentiated inputs and influence the result.

Only active values get an adjoint. In

    def f(x, n):            # with respect to x
        k = n + 1           # not active: an integer
        a = math.sin(x)     # active
        b = math.cos(x)     # not active: it does not reach the result
        return a * k

`a` and the product are active. Memory that may alias is active as a whole or not at all (see `flows.py`). The
analysis also refuses what cannot be differentiated: an operation that propagates derivatives and has no rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from numba import types

from zygote_py.adjoints.analysis.byte_views import check_views
from zygote_py.adjoints.analysis.diagnosis import cause
from zygote_py.adjoints.analysis.flows import Flows, sources, through
from zygote_py.adjoints.analysis.kinds import can_have_adjoint, carries_adjoint, has_shadow, is_array, is_number
from zygote_py.adjoints.analysis.tuple_leaves import reachable
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.rules import rule_for
from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.adjoints.rules.refused import DRAWN, REFUSED
from zygote_py.ir import (
    Block,
    Function,
    Instr,
    InternalError,
    Memory,
    Operand,
    Param,
    Return,
    Routine,
    Terminator,
    Value,
    draws,
    effect,
    grouped,
    is_view,
    liveness,
    ops,
    reach,
    writes,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import FILLS, Effect, Role

# Roles whose pullback does not come from a rule.
_STRUCTURAL = frozenset(
    {
        *(Role.READ, Role.CHOOSE, Role.GUARD, Role.PACK, Role.STORE, Role.APPEND, Role.POP, Role.ALLOCATE),
        *(Role.RELEASE, Role.BARRIER, Role.EXTREME),
    }
)


@dataclass(frozen=True, eq=False)
class Activity:
    """The active values, and the arrays that need a shadow.

    `nodes` are the active nodes of the flow graph (see `Flows`), `asked` the requested parameters, and their parts.
    """

    values: frozenset[Value]
    shadowed: frozenset[Value]
    asked: frozenset[Value]
    nodes: frozenset[Value]

    def __contains__(self, operand: Operand) -> bool:
        return isinstance(operand, Value) and operand in self.values


def find_active(
    function: Function,
    wrt: Collection[Param],
    parts: Mapping[Value, tuple[Instr, ...]] = MappingProxyType({}),
    results: Collection[Param] = (),
) -> Activity:
    """Find the active values of a primal. Raises DifferentiationError for operations that cannot be differentiated.

    `results` are the parameters whose final contents are results too.
    """
    memory = Memory(function)
    flows = Flows(memory)
    asked = frozenset(wrt).union(*(parts[whole] for whole in parts))
    edges = [edge for value in function.values() for edge in flows.edges(value)]
    forward, backward = grouped(edges), grouped((target, source) for source, target in edges)
    varied = _reached(filter(None, map(flows.node, asked)), forward)
    ends = [value for _, end in function.returns() for value in end.args[:1]]  # aux outputs are only passed on
    useful = _reached(filter(None, map(flows.node, (*ends, *reachable(results, parts)))), backward)
    nodes = frozenset(varied & useful)
    values = frozenset(value for value in function.values() if flows.node(value) in nodes)
    for instr in function.instrs():
        _check(instr, flows, nodes)
    _check_counts(function, flows, varied, set())
    check_views(function, memory, flows, varied, nodes)
    for value in values:
        if not isinstance(value, Instr):
            _check_type(value, value.hint or "a value")
    shadowed = frozenset(value for value in (*function.values(), *asked) if has_shadow(value.type))
    return Activity(values, shadowed & (values | asked), asked, nodes)


def live_at_ends(
    function: Function,
    order: tuple[Block, ...],
    activity: Activity,
    calls: Collection[Instr],
    results: Sequence[Value],
) -> dict[Block, set[Value]]:
    """Return the active numbers that are used after each block, other than by phis of its successors.

    `calls` use their arguments, `results` are used at the end. Only the blocks in `order` count. A phi's operands are
    used in the predecessors.
    """

    def reads(node: Instr | Terminator) -> tuple[Operand, ...]:
        if isinstance(node, Return):
            return (*node.args[:1], *results)
        if not isinstance(node, Instr):
            return ()
        if node in calls:
            return node.args
        if node in activity or (ops.of(node.op).role in FILLS and node.args[0] in activity):
            return tuple(sources(node))
        return ()

    number = {value: index for index, value in enumerate(v for v in activity.values if is_number(v.type))}
    live = liveness(function, number=number, reads=reads, order=order[::-1])
    at_start = {block: live.before(block) for block in live.live_in}
    return {block: {value for after in block.successors for value in at_start.get(after, ())} for block in order}


def _reached(starts: Iterator[Value], edges: Mapping[Value, list[Value]]) -> set[Value]:
    return set(reach(starts, lambda value: edges.get(value, ())))


def _check_counts(function: Function, flows: Flows, varied: Collection[Value], seen: set[object]) -> None:
    """Refuse draws of integers with parameters that vary, in routines too: counts jump where the parameters change.

    They carry no derivative, so that the flow of derivatives does not lead to them.
    """
    for instr in function.instrs():
        if not any(flows.node(arg) in varied for arg in instr.args):
            continue
        if draws(instr) and not carries_adjoint(instr.type):
            _refuse(instr)
        if not isinstance(instr.op, Routine) or instr.op.is_custom or instr.op.passes == frozenset():
            continue
        inner = instr.op.function
        pairs = zip(inner.params, instr.args, strict=True)
        given = tuple(number for number, (_, arg) in enumerate(pairs) if flows.node(arg) in varied)
        if (instr.op, given) not in seen:
            seen.add((instr.op, given))
            own = Flows(Memory(inner))
            edges = grouped(edge for value in inner.values() for edge in own.edges(value))
            starts = filter(None, (own.node(inner.params[number]) for number in given))
            _check_counts(inner, own, _reached(starts, edges), seen)


def _check(instr: Instr, flows: Flows, nodes: Collection[Value]) -> None:
    """Refuse an instruction that propagates derivatives without a known rule."""
    if isinstance(instr.op, Routine):
        if instr.op.passes is not None and any(flows.node(target) in nodes for target in writes(instr)):
            raise refuse(
                f"`{instr.op.__name__}` is not differentiated, and writes to an array that carries a derivative",
                instr.loc,
                hint="return the values instead, or write to an array of integers",
            )
        if any(source in nodes and target in nodes for source, target in flows.edges(instr)):
            _check_arguments(instr, flows, nodes)
        return  # its own effects are checked when it is differentiated
    record = ops.of(instr.op)
    structural = record.role in _STRUCTURAL or bool(record.contents)
    known = structural or effect(instr) is not Effect.WRITE
    if not known and any(flows.node(target) in nodes for target in writes(instr)):
        _refuse(instr)
    if not any(source in nodes and target in nodes for source, target in _within(instr, flows)):
        return
    if instr.op is ops.getitem and isinstance(instr.args[0].type, types.BaseTuple) and not _has_parts(instr.args[0]):
        raise InternalError(f"{instr.loc}: a part of a tuple that has no parts of its own is read from it")
    if record.role is Role.STORE:
        _check_store(instr)
    elif instr.op is ops.getitem:
        _check_index(instr)
    elif not structural and not is_view(instr) and rule_for(instr) is None and opaque_for(instr) is None:
        _refuse(instr)
    else:
        _check_unknown(instr, flows, nodes)
    if flows.node(instr) in nodes:
        _check_type(instr, f"the result of {ops.name_of(instr.op)}")


def _check_unknown(instr: Instr, flows: Flows, nodes: Collection[Value]) -> None:
    """Refuse an active argument for which a rule has no formula."""
    rule = rule_for(instr)
    for number, argument in enumerate(instr.args if rule is not None else ()):
        assert rule is not None
        if rule.is_unknown(number) and flows.node(argument) in nodes:
            name, parameter = instr.op.__name__, rule.names[number]
            raise refuse(
                f"`{name}` is not differentiated in its argument `{parameter}`: no formula for that is known",
                instr.loc,
                hint=f"leave what it depends on out of `wrt`, or pass it as `stop_gradient({parameter})`",
                token=name,
            )


def _has_parts(whole: Operand) -> bool:
    """Return whether the parts of a tuple have adjoints: those of parameters and of operations with several results."""
    if isinstance(whole, Instr) and not isinstance(whole.op, Routine) and opaque_for(whole) is None:
        return whole.op is ops.getitem and _is_of_parameter(whole.args[0])
    return isinstance(whole, Param | Instr)


def _is_of_parameter(whole: Operand) -> bool:
    if isinstance(whole, Instr) and whole.op is ops.getitem:
        return _is_of_parameter(whole.args[0])
    return isinstance(whole, Param)


def _check_arguments(call: Instr, flows: Flows, nodes: Collection[Value]) -> None:
    """Refuse to pass to a routine, or take from it, an active value that cannot have an adjoint."""
    assert isinstance(call.op, Routine)
    for argument in (call.args[number] for number in through(call)):
        if isinstance(argument, Value) and flows.node(argument) in nodes:
            _check_type(argument, f"an argument of `{call.op.__name__}`")
    if flows.node(call) in nodes:
        _check_type(call, f"the result of `{call.op.__name__}`")


def _within(instr: Instr, flows: Flows) -> Iterator[tuple[Value, Value]]:
    """Yield the flows of an instruction, and its own node if it may share memory with an argument, within one node."""
    yield from flows.edges(instr)
    if (node := flows.node(instr)) is not None and any(flows.node(arg) is node for arg in instr.args):
        yield node, node


def _refuse(instr: Instr) -> None:
    if instr.op in REFUSED or draws(instr):
        reason, hint = REFUSED.get(instr.op, DRAWN)
        raise refuse(f"{ops.name_of(instr.op)} is not differentiated: {reason}", instr.loc, hint)
    message, hint = cause(instr.op, [arg.type for arg in instr.args])
    raise refuse(message, instr.loc, hint)


def _check_type(value: Value, what: str) -> None:
    if carries_adjoint(value.type) and not can_have_adjoint(value.type):
        raise refuse(
            f"{what} is of type {value.type}, which cannot carry a derivative",
            value.loc,
            hint="use floating-point numbers, arrays of them, or tuples of both",
        )


def _check_store(instr: Instr) -> None:
    """Check a store; by now only numbers are stored, one at a time, but arrays may be added to arrays."""
    array, item, *index = instr.args
    if isinstance(array.type, types.List) or (instr.op is ops.accumulate and is_array(item.type)):
        return
    if not isinstance(array.type, types.Array) or not is_number(item.type) or len(index) != array.type.ndim:
        raise refuse(
            f"writing a value of type {item.type} into one of type {array.type} is not differentiated",
            instr.loc,
            hint="write the elements in a loop",
        )


def _check_index(instr: Instr) -> None:
    if not isinstance(instr.args[0].type, types.Array):
        return
    for index in instr.args[1:]:
        kind = index.type
        if not isinstance(kind, types.Integer | types.Boolean | types.SliceType | types.EllipsisType | types.NoneType):
            raise refuse(
                f"reading an array by an index of type {kind} is not differentiated",
                instr.loc,
                hint="index with integers and slices, in a loop over the elements",
            )
