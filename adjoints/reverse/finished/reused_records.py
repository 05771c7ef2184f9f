"""Gradients that are stored where the records were that they are computed from.

    t_record = np.empty(n)                      the forward sweep stores t_record[i]
    dx = np.empty_like(x)
    for i in range(n - 1, -1, -1):      ->      for i in range(n - 1, -1, -1):
        dx[i] = t_record[i] * ds                    t_record[i] = t_record[i] * ds
    return dx                                   return t_record

Both have the same type and shape. The loops visit each element once, and read the record of one in the round that
stores its gradient, before it; nothing reads the record later, or the gradient earlier.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import (
    Block,
    Function,
    Instr,
    LoopNest,
    Operand,
    Use,
    Value,
    definitions,
    is_left_out,
    is_scalar,
    loop_nest,
    ops,
    reach,
    replace_uses,
    uses,
)
from zygote_py.ir.arrays.measures.coverage import Visit, visit_of
from zygote_py.ir.arrays.shapes import Shapes

_UNSET = (np.empty_like, ops.record)


def reuse_records(function: Function) -> bool:
    """Let arrays take the place of records, in place. Return whether any do."""
    made = [instr for instr in function.instrs() if instr.op in _UNSET and isinstance(instr.type, types.Array)]
    if len(made) < 2 or is_left_out("reused-records") or any(ops.is_of_threads(each.op) for each in function.instrs()):
        return False
    return _Reuse(function).run(made)


class _Reuse:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._nest: LoopNest = loop_nest(function)
        self._home = definitions(function)
        self._used = uses(function)
        self._shapes = Shapes()

    def run(self, made: list[Instr]) -> bool:
        """Store arrays where others were; each is stored anew, or makes room, once."""
        outside = [each for each in made if self._nest.innermost(self._home[each]) is None]
        taken: set[Value] = set()
        for array in outside:
            store = self._only_store(array)
            if store is None or array in taken:
                continue
            for record in outside:
                if record not in taken and record is not array and self._may_replace(record, array, store):
                    taken |= {record, array}
                    record.hint = array.hint
                    assert isinstance(store.user, Instr)
                    store.user.op = ops.setitem  # which may overwrite what was read
                    replace_uses(self._function, {array: record})
                    self._home[array].instrs.remove(array)
                    break
        return bool(taken)

    def _only_store(self, array: Instr) -> Use | None:
        """Return the store to an array in loops if there is one only, and all else comes after these."""
        stores = [use for use in self._used.get(array, ()) if _is_store(use.user, array) and self._visit(use)]
        if len(stores) != 1:
            return None
        (store,) = stores
        visit = self._visit(store)
        assert visit is not None
        others = [use for use in self._used[array] if use is not store and not is_length(use.user)]
        return store if all(self._is_after(use.block, visit) for use in others) else None

    def _may_replace(self, record: Instr, array: Instr, store: Use) -> bool:
        """Return whether a record is read for the last time where an array is stored, element by element."""
        visit = self._visit(store)
        keys = [[length.key for length in self._shapes.of(each)] for each in (record, array)]
        if record.type != array.type or keys[0] != keys[1] or visit is None:
            return False
        uses_ = [use for use in self._used[record] if not is_length(use.user)]
        within = [use for use in uses_ if use.block in visit.loop]
        later = self._after(visit)
        return (
            bool(within)
            and all(is_access(use.user, record) and use.block not in later for use in uses_)
            and all(self._is_read_for(use, store) for use in within)
        )

    def _is_read_for(self, use: Use, store: Use) -> bool:
        """Return whether an element is read before the one at the same index is stored."""
        assert isinstance(use.user, Instr)
        assert isinstance(store.user, Instr)
        instrs = store.block.instrs
        is_same = use.user.op is ops.getitem and use.user.args[1:] == store.user.args[2:]
        return is_same and use.block is store.block and instrs.index(use.user) < instrs.index(store.user)

    def _visit(self, store: Use) -> Visit | None:
        """Return how a store visits all elements of its array, in loops that are within no other."""
        assert isinstance(store.user, Instr)
        shape = self._shapes.of(store.user.args[0])
        found = visit_of(self._nest, self._shapes, store.user.args[2:], store.block, shape)
        return found if found is not None and found.is_whole and found.loop.parent is None else None

    def _after(self, visit: Visit) -> set[Block]:
        """Return the blocks that may run after loops which are within no other."""
        return set(reach([after for _, after in visit.loop.exits], lambda block: block.successors))

    def _is_after(self, block: Block, visit: Visit) -> bool:
        ((_, after),) = visit.loop.exits
        return self._nest.tree.dominates(after, block)


def _is_store(user: object, array: Operand) -> bool:
    return isinstance(user, Instr) and user.op in (ops.setitem, ops.initialize) and user.args[0] is array


def is_access(user: object, array: Operand) -> bool:
    """Return whether this reads or stores an element of an array; a row of it would be a view."""
    if not isinstance(user, Instr) or user.args[0] is not array:
        return False
    kind: Any = array.type
    is_element = is_scalar(user.type) if user.op is ops.getitem else len(user.args) - 2 == kind.ndim
    return is_element and (user.op is ops.getitem or _is_store(user, array))


def is_length(user: object) -> bool:
    """Return whether an instruction only asks for the length of an axis."""
    return isinstance(user, Instr) and ops.of(user.op).role is ops.Role.LENGTH
