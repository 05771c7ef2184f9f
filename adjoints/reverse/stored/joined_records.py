"""Records of one length in a called function: the rows of one array.

    %a_record = record %n : float64[:]          %rows = record 2, %n : float64[:,:]
    setitem %a_record, %a, %i                   setitem %rows, %a, 0, %i
    ...                                    ->   ...
    %b_record = record %n : float64[:]
    setitem %b_record, %b, %j                   setitem %rows, %b, 1, %j

A function that is called in a loop makes its records anew in each call, and all of them are kept until the reverse
sweep: to get memory takes longer than to write to it. The array is made where the first of them was, which every run
passes that makes another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from numba import types

from zygote_py.ir import (
    Const,
    Function,
    Instr,
    Operand,
    Param,
    Phi,
    Undef,
    Use,
    Value,
    definitions,
    is_left_out,
    loop_nest,
    ops,
    reach,
    uses,
)
from zygote_py.ir.lazy_dataclass import dataclass

_INDEX = types.int64


@dataclass(eq=False)
class _Record:
    """A record of the forward half, the value that crosses, with the phis that it is, and its accesses."""

    made: Instr
    crossing: Value
    param: Param
    phis: tuple[Phi, ...]
    stores: tuple[Instr, ...]
    reads: tuple[Instr, ...]


def join_records(forward: Function, reverse: Function, crossing: Mapping[Value, Param]) -> dict[Value, Param]:
    """Join records that cross from one half to the other, in place. Return what crosses, with the parameters for it."""
    if is_left_out("joined-records"):
        return dict(crossing)
    inside, after = uses(forward), uses(reverse)
    home, nest = definitions(forward), loop_nest(forward)
    crossings = Counter(instr for value in crossing for instr in _made(value))
    found = [
        each
        for value, param in crossing.items()
        if (each := _record(value, param, inside, after)) is not None
        and crossings[each.made] == 1
        and nest.innermost(home[each.made]) is None
    ]
    groups: list[list[_Record]] = []
    order = {value: number for number, value in enumerate(forward.values())}
    for each in sorted(found, key=lambda each: order[each.made]):
        for group in groups:
            first = group[0].made
            if _kind(first) == _kind(each.made) and nest.tree.dominates(home[first], home[each.made]):
                group.append(each)
                break
        else:
            groups.append([each])
    dropped: set[Value] = set()
    for group in groups:
        if len(group) > 1:
            _join(group)
            dropped.update(each.crossing for each in group[1:])
    gone = {value for group in groups for each in group[1:] for value in (each.made, *each.phis)}
    for block in forward.blocks:
        block.phis = [phi for phi in block.phis if phi not in gone]
        block.instrs = [instr for instr in block.instrs if instr not in gone]
    return {value: param for value, param in crossing.items() if value not in dropped}


def _record(
    value: Value, param: Param, inside: Mapping[Value, Sequence[Use]], after: Mapping[Value, Sequence[Use]]
) -> _Record | None:
    """Return the record that a crossing value is wherever it is defined, if all that is done with it is known."""
    reached = _reached(value)
    phis = tuple(each for each in reached if isinstance(each, Phi))
    match [each for each in reached if not isinstance(each, Phi | Undef)]:
        case [Instr(op=ops.record, args=(_,)) as made]:
            pass
        case _:
            return None
    users = [use.user for each in (made, *phis) for use in inside.get(each, ())]
    stores = tuple(each for each in users if isinstance(each, Instr) and _is_element(each, ops.setitem, made))
    later = [use.user for use in after.get(param, ())]
    reads = tuple(each for each in later if isinstance(each, Instr) and _is_element(each, ops.getitem, param))
    if len(reads) < len(later) or any(user not in stores and user not in phis for user in users):
        return None
    return _Record(made, value, param, phis, stores, reads)


def _reached(value: Value) -> list[Operand]:
    """Return what a value may be, with the phis on the way."""
    start: list[Operand] = [value]
    return list(reach(start, lambda each: each.args if isinstance(each, Phi) else ()))


def _made(value: Value) -> list[Instr]:
    return [each for each in _reached(value) if isinstance(each, Instr)]


def _is_element(instr: Instr, op: ops.Op, array: Value) -> bool:
    """Return whether an instruction reads or sets one element of an array of one axis, and does nothing else."""
    first = 2 if op is ops.setitem else 1
    is_one = instr.op is op and len(instr.args) == first + 1 and instr.args[first].type == _INDEX
    return is_one and instr.args[0] is array and array not in instr.args[1:]


def _kind(made: Instr) -> tuple[object, ...]:
    """Return what records have in common that are rows of one array: their type, and how their length is computed."""
    (size,) = made.args
    return (made.type, *((size.op, size.args) if isinstance(size, Instr) and size.op is max else (size,)))


def _join(group: Sequence[_Record]) -> None:
    """Make records the rows of an array in the place of the first."""
    made = group[0].made
    assert isinstance(made.type, types.Array)
    kind = types.Array(made.type.dtype, 2, "C")
    for number, each in enumerate(group):
        row = Const(number, _INDEX)
        for store in each.stores:
            _, value, index = store.args
            store.args = (made, value, row, index)
        for read in each.reads:
            read.args = (group[0].param, row, read.args[1])
    made.args = (Const(len(group), _INDEX), *made.args)
    for value in (made, group[0].param, *group[0].phis):
        value.type, value.hint = kind, "rows"
        if isinstance(value, Phi):
            value.incoming = {
                pred: Undef(kind) if isinstance(operand, Undef) else operand for pred, operand in value.incoming.items()
            }
