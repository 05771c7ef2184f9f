"""Copies of lists, as loops: a list of floats, of arrays or of lists is copied item by item, which has an adjoint.

%t = copied %s : list(f64)          b0: %t = stack : list(f64)
                                        %n = len %s
                                        jump b1
                                    b1: %k = phi b0: 0, b2: %j
                                        %c = lt %k, %n
                                        branch %c, b2, b3
                                    b2: %each = getitem %s, %k : f64
                                        push %t, %each
                                        %j = add %k, 1
                                        jump b1
"""

from __future__ import annotations

import builtins
import operator

import numpy as np
from numba import types

from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, element_of
from zygote_py.frontend.values import INT, ZERO, Emitter
from zygote_py.ir import (
    Block,
    Branch,
    Builder,
    Const,
    Function,
    Jump,
    Operand,
    Phi,
    Routine,
    Type,
    copied_type,
    ops,
    rename_incoming,
    replace_uses,
)


def with_own_items(at: Emitter, leaf: Operand) -> Operand:
    """Return a copy of a list, or of the slots of a dict; anything else as it is."""
    if isinstance(leaf.type, types.DictType):
        return at.emit(ops.copied_slots, (leaf,), leaf.type)
    return at.emit(ops.copied, (leaf,), leaf.type) if isinstance(leaf.type, types.List) else leaf


def check_unwritten(routine: Routine) -> None:
    """Refuse a routine that is given copies of lists and writes to one."""
    for number in sorted(routine.writes):
        param = routine.function.params[number]
        if isinstance(param.type, types.List | types.DictType):
            loc = routine.function.loc
            message = f"`{routine.__name__}` has a checkpoint, and changes `{param.hint}`, a list or a dict"
            raise refuse(message, loc, "let it change a copy, or use an array", "def")


def expand_copies(function: Function) -> None:
    """Write the copies of lists that may have adjoints as loops."""
    for block in function.blocks:  # to which blocks are added
        for place, instr in enumerate(block.instrs):
            if instr.op is ops.copied and (carries_adjoint(instr.type) or _copy_of_items(instr.type) is not None):
                _expand(function, block, place)
                break


def _copy_of_items(list_type: Type) -> ops.Op | None:
    """Return how the items of a list are copied; None if they need no copy."""
    item = element_of(list_type)
    if isinstance(item, types.Array):
        return np.copy
    return ops.copied if isinstance(item, types.List) else None


def _expand(function: Function, block: Block, place: int) -> None:
    copy = block.instrs[place]
    (source,) = copy.args
    header, body, after = (Block(copy.loc) for _ in range(3))
    after.instrs, after.terminator = block.instrs[place + 1 :], block.terminator
    for successor in after.successors:
        rename_incoming(successor, block, after)
    block.instrs = block.instrs[:place]
    function.blocks += [header, body, after]

    b = Builder(block, copy.loc)
    made = b.call(ops.stack, type=copy.type, hint=copy.hint)
    length = b.call(builtins.len, source, type=INT)
    block.terminator = Jump(header)

    k = Phi(INT, "k", copy.loc)
    header.phis = [k]
    header.terminator = Branch(Builder(header, copy.loc).call(operator.lt, k, length, type=types.boolean), body, after)

    b = Builder(body, copy.loc)
    each: Operand = b.call(ops.getitem, source, k, type=element_of(copy.type))
    if (op := _copy_of_items(copy.type)) is not None:
        each = b.call(op, each, type=copied_type(each.type))
    b.call(ops.push, made, each, type=types.none)
    k.incoming = {block: ZERO, body: b.call(operator.add, k, Const(1, INT), type=INT)}
    body.terminator = Jump(header)
    replace_uses(function, {copy: made})
