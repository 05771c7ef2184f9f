"""Arrays of a derivative that a thread of a device does not allocate.

    %dw = np.zeros_like %w : f64[::1]               for %i in the axes of %dw: setitem %dw, 0.0, %i
    ...                                     ->      ...
    %r = pack %dw, %dx                              %r = pack None, %dx          (%dw is a parameter)

    %a = zeros 3 : f64[::1]                 ->      %a = record 3 : f64[::1]
                                                    setitem %a, 0.0, 0 ...

Gradients of arrays are stored where the caller wants them. Zeros of a number of elements that is a constant become an
array of the thread's own. Neither is set to zero first if the derivative sets all of the elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.device.records import ACCESSES, is_small
from zygote_py.adjoints.errors import refuse
from zygote_py.ir import (
    NONE,
    Block,
    Builder,
    Const,
    Function,
    Instr,
    Jump,
    Nest,
    Operand,
    Param,
    Routine,
    Undef,
    Use,
    Value,
    functions_of,
    is_view,
    leaf_types,
    loop_nest,
    ops,
    rename_incoming,
    replace_uses,
    uses,
    with_components,
)

_INDEX = types.int64
Place = tuple[int, ...]  # the number of a parameter, and the items of tuples that lead to an array in it
_ZEROS = (ops.zeros, np.zeros_like)
_LIKE = (np.zeros_like, np.empty_like)


def give_arrays(function: Function, place: int) -> tuple[Place, ...]:
    """Make parameters of the arrays that a function returns, in place, in the order of the results, from a place on.

    The results are None in their place. Returns for each where, among the arguments, the array is whose shape it has.
    """
    given: list[Param] = []
    like: list[Place] = []
    returns = list(function.returns())
    if len(returns) == 1:
        ((block, end),) = returns
        (value,) = end.args
        end.args = (_without_arrays(function, Builder(block), value, given, like),)
    function.params[place:place] = given
    return tuple(like)


def record_zeros(function: Function) -> None:
    """Make arrays of zeros, of which single elements are read and written and no more, records, in place.

    Their elements are set to zero one by one.
    """
    used = uses(function)
    for block in list(function.blocks):
        _record_zeros(function, block, used)


def _record_zeros(function: Function, block: Block, used: Mapping[Value, Sequence[Use]]) -> None:
    for index, instr in enumerate(block.instrs):
        is_zero = instr.op in _ZEROS
        if not is_zero and instr.op is not np.empty_like:
            continue
        if isinstance(instr.type, types.Array) and not is_small(instr) and _stays(instr, used):
            if instr.op in _LIKE:
                lengths = [_dim(instr.args[0], axis) for axis in range(instr.type.ndim)]
                block.instrs[index:index] = lengths
                instr.args, instr.keywords = tuple(lengths), ()
                index += len(lengths)
            instr.op = ops.record
            if not is_zero:
                _record_zeros(function, block, used)
                return
            rest = fill(function, block, index + 1, instr, instr.args, dims_are_known=True)
            _record_zeros(function, rest, used)
            return


def use_own_arrays(function: Function) -> None:
    """Make small arrays of zeros arrays of a thread's own, in place.

    Such an array is one place in memory, however often the line that makes it runs, and is gone when the function
    returns. Raises DifferentiationError for one that is returned, or that a loop keeps for its next round.
    """
    for each in functions_of(function):
        _check_own_arrays(each)
        for block in list(each.blocks):
            _use_own_arrays(each, block)
        _make_at_the_start(each)


def _check_own_arrays(function: Function) -> None:
    nest, used = loop_nest(function), uses(function)
    for block, end in function.returns():
        if any(isinstance(kind, types.Array) for value in end.args for kind in leaf_types(value.type)):
            raise refuse("a thread cannot return an array that it has made", block.loc or function.loc)
    for block in function.blocks:
        for instr in block.instrs if nest.innermost(block) is not None else ():
            made = isinstance(instr.type, types.Array) and ops.of(instr.op).effect is ops.Effect.ALLOCATE
            if made and not _stays(instr, used):
                raise refuse(
                    "an array that is made in a loop and kept for another round cannot be used in a CUDA kernel",
                    instr.loc or function.loc,
                    "make the arrays before the loop, and copy their elements",
                )


def _make_at_the_start(function: Function) -> None:
    """Make the arrays of a thread's own that no loop makes where the function starts.

    Then they need no stand-in on the paths that do without them.
    """
    nest = loop_nest(function)
    made: list[Instr] = []
    for block in function.blocks:
        if nest.innermost(block) is None:
            own = [instr for instr in block.instrs if instr.op is ops.record and _has_elements(instr)]
            block.instrs = [instr for instr in block.instrs if instr not in own]
            made += own
    function.entry.instrs[:0] = made
    for block in function.blocks:
        for phi in [each for each in block.phis if isinstance(each.type, types.Array)]:
            arrays = {each for each in phi.args if not isinstance(each, Undef) and _has_elements(each)}
            if len(arrays) == 1 and arrays <= set(made):
                block.phis.remove(phi)
                replace_uses(function, {phi: arrays.pop()})
    used = uses(function)
    for block in function.blocks:
        block.instrs = [
            each for each in block.instrs if each.op is not ops.record or _has_elements(each) or each in used
        ]


def _has_elements(array: Operand) -> bool:
    """Return whether an array is not one of no elements, which stands for one that is not there."""
    return not (isinstance(array, Instr) and array.op is ops.record and Const(0, _INDEX) in array.args)


def _stays(array: Value, used: Mapping[Value, Sequence[Use]]) -> bool:
    """Return whether only elements of an array are read and written, here and in the functions that it is passed to."""
    for use in used.get(array, ()):
        user = use.user
        if not isinstance(user, Instr):
            return False
        is_access = user.op in ACCESSES and user.args[0] is array and array not in user.args[1:]
        if is_view(user) or (user.op is ops.getitem and isinstance(user.type, types.Array)):
            if not _stays(user, used):
                return False
        elif not (is_access or user.op is ops.dim or isinstance(user.op, Routine)):
            return False
    return True


def _without_arrays(function: Function, b: Builder, value: Operand, given: list[Param], like: list[Place]) -> Operand:
    """Return a result without the arrays in it, which become parameters."""
    if isinstance(value, Instr) and value.op is ops.pack:
        items = [_without_arrays(function, b, item, given, like) for item in value.args]
        if all(new is old for new, old in zip(items, value.args, strict=True)):
            return value
        kind = with_components(value.type, tuple(item.type for item in items))
        return b.call(ops.pack, *items, type=kind, hint=value.hint)
    is_made = isinstance(value, Instr) and value.op in (*_ZEROS, np.empty_like, ops.record)
    if isinstance(value, Instr) and is_made and isinstance(value.type, types.Array):
        of = _place_of(function, _of_shape(value))
        if of is None:
            return value
        like.append(of)
        home = next(block for block in function.blocks if value in block.instrs)  # in no loop, as it is returned
        array: types.Array = value.type
        param = Param(array.copy(layout="A"), value.hint or "gradient", value.loc)
        given.append(param)
        index = home.instrs.index(value)
        home.instrs.remove(value)
        replace_uses(function, {value: param})
        if value.op in _ZEROS:
            fill(function, home, index, param, [_dim(param, axis) for axis in range(array.ndim)])
        return NONE
    return value


def _place_of(function: Function, array: Any) -> Place | None:
    """Return where an array is among the arguments; None if it is made here."""
    match array:
        case Param() if array in function.params:
            return (function.params.index(array),)
        case Instr(op=ops.getitem, args=(whole, Const(value=int(number)))) if isinstance(whole.type, types.BaseTuple):
            found = _place_of(function, whole)
            return found and (*found, number)
        case _:
            return None


def _of_shape(zeros: Instr) -> Any:
    """Return the array whose shape a new array has, if that can be seen."""
    if zeros.op in _LIKE:
        return zeros.args[0]
    arrays = [
        length.args[0]
        for axis, length in enumerate(zeros.args)
        if isinstance(length, Instr) and length.op is ops.dim and length.args[1] == Const(axis, _INDEX)
    ]
    known = len(arrays) == len(zeros.args) and all(each is arrays[0] for each in arrays)
    return arrays[0] if known else None


def _dim(array: Operand, axis: int) -> Instr:
    return Instr(ops.dim, (array, Const(axis, _INDEX)), _INDEX)


def _use_own_arrays(function: Function, block: Block) -> None:
    """Let small arrays of zeros in a block be arrays whose elements are set one by one."""
    for index, instr in enumerate(block.instrs):
        if instr.op is ops.zeros and all(isinstance(each, Const) for each in instr.args):
            instr.op = ops.record
            rest = fill(function, block, index + 1, instr, instr.args)
            _use_own_arrays(function, rest)
            return


def fill(
    function: Function,
    block: Block,
    index: int,
    array: Value,
    lengths: Sequence[Operand],
    dims_are_known: bool = False,
) -> Block:
    """Set all elements of an array to zero before an instruction of a block. Return the block of that instruction.

    `dims_are_known` says that the lengths are computed before.
    """
    kind: types.Array = array.type  # type: ignore[assignment]
    rest = Block(block.loc, block.mirror)
    rest.instrs, block.instrs = block.instrs[index:], block.instrs[:index]
    rest.terminator = block.terminator
    for after in rest.successors:
        rename_incoming(after, block, rest)
    if not dims_are_known:
        block.instrs += [each for each in lengths if isinstance(each, Instr) and each.op is ops.dim]
    nest = Nest(block, lengths, ["i"] * len(lengths), getattr(array, "loc", None))
    number = 0 if isinstance(kind.dtype, types.Integer) else False if isinstance(kind.dtype, types.Boolean) else 0.0
    zero = Const(complex(number) if isinstance(kind.dtype, types.Complex) else number, kind.dtype)
    Builder(nest.bodies[-1]).call(ops.setitem, array, zero, *nest.counters, type=types.none)
    new = nest.finish()
    nest.after.terminator = Jump(rest)
    place = function.blocks.index(block) + 1
    function.blocks[place:place] = [*new, rest]
    return rest
