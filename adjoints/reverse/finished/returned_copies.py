"""Arrays that are returned after being filled with the elements of another one: that one is returned itself.

    dx = np.empty_like(x)                       the gradient by an argument, of which the function makes
    dx_1 = np.zeros(n)                          a copy that it writes to, `x = x.copy()`
    ...
    for i in range(n - 1, -1, -1):      ->
        dx[i] = dx_1[i]
    return dx                                   return dx_1

The other array is made by the function outside of its loops, of the same type and shape, nothing writes to it
afterwards, and it is not returned by another name or kept in what is returned. The copy is a result and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import types

from zygote_py.ir import (
    Block,
    Function,
    Instr,
    Loop,
    LoopNest,
    Memory,
    Operand,
    Return,
    Use,
    Value,
    definitions,
    has_memory,
    is_fresh,
    is_left_out,
    loop_nest,
    ops,
    reach,
    replace_uses,
    uses,
    writes,
)
from zygote_py.ir.arrays.measures.coverage import visit_of
from zygote_py.ir.arrays.shapes import Shapes

_UNSET = (np.empty_like, ops.record)


def return_copied_arrays(function: Function) -> bool:
    """Return arrays themselves and not copies that are made at the end, in place. Return whether there were any."""
    ends = function.returns()
    if len(ends) != 1 or is_left_out("returned-copies"):
        return False
    made = [instr for instr in function.instrs() if instr.op in _UNSET and isinstance(instr.type, types.Array)]
    if not made or any(ops.is_of_threads(each.op) for each in function.instrs()):
        return False
    copies = _Copies(function)
    return sum(copies.replace(each) for each in made) > 0


class _Copies:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._nest: LoopNest = loop_nest(function)
        self._home = definitions(function)
        self._used = uses(function)
        self._memory = Memory(function)
        self._shapes = Shapes()
        (_, end) = function.exit()
        # The memory that the caller sees.
        self._returned = {self._memory.root(each) for each in end.args}
        self._returned |= {self._memory.root(param) for param in function.params if has_memory(param.type)}

    def replace(self, copy: Instr) -> bool:
        """Return the source of an array in its place, if it is a copy that is made at the end."""
        found = self._filled(copy)
        if found is None:
            return False
        store, block, loop, source = found
        root = self._memory.root(source)
        if root in self._returned or any(self._writes_to(root, later) for later in self._after(loop)):
            return False
        if not all(self._is_result(use) for use in self._used[copy] if use.user is not store):
            return False
        self._returned.add(root)
        block.instrs.remove(store)
        replace_uses(self._function, {copy: source})
        self._home[copy].instrs.remove(copy)
        return True

    def _filled(self, copy: Instr) -> tuple[Instr, Block, Loop, Instr] | None:
        """Return the only store to an array, if it is one of each element of another array, with its outermost loop."""
        stores = [use for use in self._used.get(copy, ()) if _is_store_to(use.user, copy)]
        if len(stores) != 1 or self._nest.innermost(self._home[copy]) is not None:
            return None
        ((store, block),) = ((use.user, use.block) for use in stores)
        assert isinstance(store, Instr)
        _, value, *index = store.args
        if not isinstance(value, Instr) or value.op is not ops.getitem or list(value.args[1:]) != index:
            return None
        source = value.args[0]
        if not isinstance(source, Instr) or not is_fresh(source) or source.type != copy.type or source is copy:
            return None
        if self._nest.innermost(self._home[source]) is not None or self._home.get(value) is not block:
            return None
        shape = self._shapes.of(copy)
        if [each.key for each in shape] != [each.key for each in self._shapes.of(source)]:
            return None
        visit = visit_of(self._nest, self._shapes, index, block, shape)
        if visit is None or not visit.is_whole or visit.loop.parent is not None:
            return None
        written = any(self._writes_to(self._memory.root(source), each) for each in visit.loop.order)
        return None if written else (store, block, visit.loop, source)

    def _after(self, loop: Loop) -> Iterable[Block]:
        """Return the blocks that may run after a loop."""
        return reach([after for _, after in loop.exits], lambda block: block.successors)

    def _writes_to(self, root: Value | None, block: Block) -> bool:
        """Return whether a block may write to memory with a root."""
        return any(
            self._memory.root(target) is root
            for instr in block.instrs
            if instr in self._home
            for target in writes(instr)
            if isinstance(target, Value)
        )

    def _is_result(self, use: Use) -> bool:
        """Return whether an array is used as a result, or for its lengths."""
        if isinstance(use.user, Instr):
            if use.user.op is ops.pack:
                return all(self._is_result(each) for each in self._used.get(use.user, ()))
            return ops.of(use.user.op).role is ops.Role.LENGTH
        return isinstance(use.user, Return)


def _is_store_to(user: object, array: Operand) -> bool:
    return isinstance(user, Instr) and ops.of(user.op).role is ops.Role.STORE and user.args[0] is array
