"""Activity analysis: which values depend on the parameters asked for and reach the result, both differentiably.

Only active values get an adjoint. In

    def f(x, n):            # with respect to x
        k = n + 1           # not active: an integer
        a = math.sin(x)     # active
        b = math.cos(x)     # not active: it does not reach the result
        return a * k

`a` and the product are active. Here too what cannot be differentiated is refused: an operation on an active value that
has no rule, and anything that may write to memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from numba import types

from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.rules import rule_for
from zygote_py.adjoints.rules.refused import REFUSED
from zygote_py.ir import ops
from zygote_py.ir.core import Function, Instr, Operand, Param, Phi, Return, Type, Value
from zygote_py.ir.types import components_of

# Instructions that give a part of an array, or one of several arrays: what they give shares memory with an argument.
SELECTING: frozenset[ops.Op] = frozenset({ops.getitem, ops.pick, ops.select})


@dataclass(frozen=True, eq=False)
class Activity:
    """The active values, and the arrays that need a shadow: the active ones and what they are merged with."""

    values: frozenset[Value]
    shadowed: frozenset[Value]
    asked: frozenset[Value]  # the parameters asked for, and their parts

    def __contains__(self, operand: Operand) -> bool:
        return isinstance(operand, Value) and operand in self.values


def is_float(type: Type) -> bool:
    """Whether a value of this type is a real floating-point number."""
    return isinstance(type, types.Float)


def is_float_array(type: Type) -> bool:
    """Whether a value of this type is an array of real floating-point numbers."""
    return isinstance(type, types.Array) and isinstance(type.dtype, types.Float)


# What has no derivative by nature. A type that is not listed may carry one: a list of floats, say.
_DISCRETE = (
    types.Integer,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.Literal,
    types.SliceType,
    types.EllipsisType,
    types.DType,
    types.NumberClass,
    types.Function,
    types.Module,
)


def carries_adjoint(type: Type) -> bool:
    """Whether values of this type may have an adjoint: everything but integers, truth values, strings and the like."""
    match type:
        case types.BaseTuple():
            return any(carries_adjoint(item) for item in components_of(type))
        case types.Array():
            return carries_adjoint(type.dtype)
        case _:
            return not isinstance(type, _DISCRETE)


def _has_adjoint(type: Type) -> bool:
    """Whether values of this type can be given an adjoint."""
    if isinstance(type, types.BaseTuple):
        return all(_has_adjoint(item) for item in components_of(type) if carries_adjoint(item))
    return is_float(type) or is_float_array(type)


def find_active(
    function: Function, wrt: Collection[Param], parts: Mapping[Value, tuple[Instr, ...]] = MappingProxyType({})
) -> Activity:
    """Find the active values of a primal. Raises DifferentiationError for what cannot be differentiated."""
    asked = frozenset(wrt).union(*(parts[whole] for whole in parts))
    users = _users(function)
    varied = _varied(function, wrt, users)
    _refuse_writes(function)
    useful = _useful(function, varied)
    values = frozenset(varied & useful)
    for value in function.values():
        if value in values:
            _check(value)
    return Activity(values, _shadowed(values, asked), asked)


def differentiable_inputs(value: Value) -> Iterator[Operand]:
    """The operands that an instruction or a phi passes a derivative through to its result."""
    if not carries_adjoint(value.type):
        return
    match value:
        case Phi():
            yield from value.incoming.values()
        case Instr(op=ops.getitem):
            yield value.args[0]
        case Instr(op=ops.pick | ops.select):
            yield from value.args[1:]
        case Instr():
            rule = rule_for(value)
            for index, argument in enumerate(value.args):
                # Without a rule: taken as depending on everything, to be refused if the result matters.
                if rule is None or rule.passes(index):
                    yield argument


def _users(function: Function) -> dict[Value, list[Value]]:
    users: dict[Value, list[Value]] = {}
    for value in function.values():
        for operand in differentiable_inputs(value):
            if isinstance(operand, Value):
                users.setdefault(operand, []).append(value)
    return users


def _varied(function: Function, wrt: Collection[Param], users: dict[Value, list[Value]]) -> set[Value]:
    """What depends on the parameters asked for."""
    pending: list[Value] = [param for param in function.params if param in wrt and carries_adjoint(param.type)]
    varied = set(pending)
    while pending:
        for user in users.get(pending.pop(), ()):
            if user not in varied:
                varied.add(user)
                pending.append(user)
    return varied


def _useful(function: Function, varied: set[Value]) -> set[Value]:
    """What the result depends on."""
    pending: list[Operand] = []
    for block in function.blocks:
        if isinstance(block.terminator, Return):
            pending += block.terminator.values
    useful: set[Value] = set()
    while pending:
        value = pending.pop()
        if not isinstance(value, Value) or value in useful or value not in varied:
            continue
        useful.add(value)
        pending += differentiable_inputs(value)
    return useful


def _shadowed(active: frozenset[Value], asked: frozenset[Value]) -> frozenset[Value]:
    """The arrays that need a shadow: where an active array is chosen among several, all of them do."""
    pending = [value for value in active | asked if is_float_array(value.type)]
    shadowed = set(pending)
    while pending:
        for operand in differentiable_inputs(pending.pop()):
            if isinstance(operand, Value) and is_float_array(operand.type) and operand not in shadowed:
                shadowed.add(operand)
                pending.append(operand)
    return frozenset(shadowed)


def _check(value: Value) -> None:
    """Refuse an active value that cannot have an adjoint, or whose operation has no rule."""
    if not isinstance(value, Instr):
        _check_type(value, value.hint or "a value")
        return
    instr = value
    name = ops.name_of(instr.op)
    if instr.op is ops.getitem:
        _check_index(instr)
    elif instr.op in REFUSED and rule_for(instr) is None:
        reason, hint = REFUSED[instr.op]
        raise refuse(f"{name} is not differentiated: {reason}", instr.loc, hint)
    elif instr.op not in SELECTING and rule_for(instr) is None:
        raise refuse(
            f"no derivative is known of {name}({', '.join(str(arg.type) for arg in instr.args)})",
            instr.loc,
            hint="write it with operations that have one (scalar arithmetic, math, NumPy's scalar functions, x[i])",
        )
    _check_type(instr, f"the result of {name}")
    if is_float_array(instr.type) and instr.op not in SELECTING:
        raise refuse(
            f"{name} on arrays is not differentiated yet: arrays can be read by element",
            instr.loc,
            hint="write the operation as a loop over the elements",
        )


def _check_type(value: Value, what: str) -> None:
    if not _has_adjoint(value.type):
        raise refuse(
            f"{what} is of type {value.type}, which cannot carry a derivative",
            value.loc,
            hint="use real floating-point numbers, arrays of them, or tuples of both",
        )


def _check_index(instr: Instr) -> None:
    if not isinstance(instr.args[0].type, types.Array):
        return
    for index in instr.args[1:]:
        kind = index.type
        if not isinstance(kind, types.Integer | types.Boolean | types.SliceType | types.EllipsisType | types.NoneType):
            raise refuse(
                f"reading an array by an index of type {kind} is not differentiated yet",
                instr.loc,
                hint="index with integers and slices, in a loop over the elements",
            )


def _refuse_writes(function: Function) -> None:
    """Anything that may write to memory that other operations read is refused, active or not."""
    for block in function.blocks:
        for instr in block.instrs:
            if not isinstance(instr, Instr) or ops.effect_of(instr.op) is not ops.Effect.WRITE:
                continue
            if instr.op is not ops.setitem and not any(_is_mutable(arg.type) for arg in instr.args):
                continue
            what = "writing to an array" if instr.op is ops.setitem else f"calling {ops.name_of(instr.op)} on an array"
            raise refuse(
                f"{what} is not differentiated yet: arrays can only be read",
                instr.loc,
                hint="keep the value in scalar variables, or compute it without the array",
            )


def _is_mutable(type: Type) -> bool:
    if isinstance(type, types.BaseTuple):
        return any(_is_mutable(item) for item in components_of(type))
    return isinstance(type, types.Array | types.List | types.Set | types.DictType | types.ListType)
