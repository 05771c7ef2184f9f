"""The expansion of the array instructions of a function, block by block (see `ir.arrays`)."""

from __future__ import annotations

import numpy as np
from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import Memory, loop_nest
from zygote_py.ir.arrays.aliasing import are_apart, same_elements
from zygote_py.ir.arrays.boolean_indexing import find_positions, replace_masks
from zygote_py.ir.arrays.classify import Kind, element, is_numeric, is_of_numbers_in_arrays, ndim
from zygote_py.ir.arrays.elementwise import compute
from zygote_py.ir.arrays.fusion import Group, Node, Plan, find_groups
from zygote_py.ir.arrays.kernels import Kernel
from zygote_py.ir.arrays.product_checks import check_products
from zygote_py.ir.arrays.shapes import Shapes
from zygote_py.ir.arrays.writer import Writer
from zygote_py.ir.building.cfg import order_blocks, rename_incoming
from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Type, Undef, Value
from zygote_py.ir.walks import replace_uses

_COUNTERS = "ijklmnopqr"


def expand_arrays(function: Function) -> None:
    """Replace the array instructions of `function` by loops, in place."""
    _make_undefined(function)
    _read_numbers(function)
    check_products(function)
    replace_masks(function)
    memory = Memory(function)
    shapes = Shapes()
    plan = find_groups(function, shapes, memory)
    if plan.nodes:
        _Expansion(function, shapes, memory, plan).run()


def _make_undefined(function: Function) -> None:
    """Take arrays that are read where none has been made for arrays without elements: these have a shape."""
    made: dict[Type, Instr] = {}

    def defined(operand: Operand) -> Operand:
        if not isinstance(operand, Undef) or not isinstance(operand.type, types.Array):
            return operand
        empty = Instr(ops.record, (Const(0, types.int64),) * operand.type.ndim, operand.type, "no_array")
        return made.setdefault(operand.type, empty)

    for block in function.blocks:
        for instr in block.instrs:
            if any(isinstance(arg, Undef) for arg in instr.args):
                instr.args = tuple(map(defined, instr.args))
    function.entry.instrs[:0] = made.values()


def _read_numbers(function: Function) -> None:
    """Read the elements of arrays without axes that are arguments of operations with a scalar result."""
    python_errors = _has_python_errors(function)
    replaced: dict[Value, Operand] = {}
    for block in function.blocks:
        instrs, block.instrs = block.instrs, []
        writer = Writer(block, [], python_errors)
        for instr in instrs:
            if not is_of_numbers_in_arrays(instr):
                block.instrs.append(instr)
                continue
            writer.loc = instr.loc
            args = [
                writer.add(ops.getitem, arg, type=element(arg)) if is_numeric(arg.type) else arg for arg in instr.args
            ]
            replaced[instr] = compute(writer.add, instr.op, tuple(args), instr.type, python_errors)
    replace_uses(function, replaced)


def _has_python_errors(function: Function) -> bool:
    return function.options.get("error_model", "python") == "python"


class _Expansion:
    def __init__(self, function: Function, shapes: Shapes, memory: Memory, plan: Plan) -> None:
        self.function = function
        self.shapes = shapes
        self.memory = memory
        self.plan = plan
        self.python_errors = _has_python_errors(function)
        self.replaced: dict[Value, Operand] = {}

        self.nest = loop_nest(function)

    def run(self) -> None:
        blocks: list[Block] = []
        for block in self.function.blocks:
            blocks.append(block)
            blocks += self._expand(block)
        self.function.blocks = blocks
        replace_uses(self.function, self.replaced)
        order_blocks(self.function)
        check_after("expand_arrays", self.function)

    def _expand(self, block: Block) -> list[Block]:
        """Expand one block and return the new blocks that follow it."""
        instrs, terminator = block.instrs, block.terminator
        successors = block.successors
        writer = Writer(block, self._counters(block), self.python_errors)
        block.instrs = []
        added: list[Block] = []
        for instr in instrs:
            writer.loc = instr.loc
            if instr in self.plan.groups:
                added += self._make(self.plan.groups[instr], writer)
            if instr not in self.plan.nodes and not (instr.op is ops.dim and self._answer(instr, writer)):
                writer.block.instrs.append(instr)
        writer.block.terminator = terminator
        if writer.block is not block:
            for successor in successors:
                rename_incoming(successor, block, writer.block)
        return added

    def _counters(self, block: Block) -> list[str]:
        """Return names for loop counters that the loops around a block do not use."""
        taken = {phi.hint for loop in self.nest.around(block) for phi in loop.header.phis}
        return [name for name in _COUNTERS if name not in taken]

    def _answer(self, instr: Instr, writer: Writer) -> bool:
        """Replace a query for a length that is already known, or whose array will be removed."""
        array, axis = instr.args
        if not isinstance(axis, Const) or not isinstance(axis.value, int):
            return False
        length = self.shapes.of(array)[axis.value]
        if length.array is array:
            writer.know(length, instr)
            return False
        self.replaced[instr] = writer.length(length)
        return True

    def _make(self, group: Group, writer: Writer) -> list[Block]:
        added: list[Block] = []
        for node in group.nodes:
            added += self._copy_overlapping(node, group, writer)
        if group.roots[0].kind is Kind.POSITIONS:
            (root,) = group.roots
            blocks, found = find_positions(root.instr, self.shapes.of(root.instr.args[0])[0], writer)
            self.replaced[root.instr] = found
            return added + blocks
        kernel = Kernel(group, writer, self.shapes, self.replaced)
        added += kernel.make()
        self.replaced |= kernel.results
        return added

    def _copy_overlapping(self, node: Node, group: Group, writer: Writer) -> list[Block]:
        """Copy an array that a store reads directly and would overwrite before it has read all of it.

        Of `x[mask] = 0.0` Numba reads the mask as it goes.
        """
        target = node.target
        if target is None:
            return []
        added: list[Block] = []
        own = {fused.instr for fused in group.fused}
        for place, part in enumerate(node.instr.args):
            if place == 0 or part in own or part not in node.parts or not self.memory.may_share(part, target):
                continue
            if are_apart(part, target) or (node.kind is not Kind.SCATTER and same_elements(part, target)):
                continue
            if node.kind is Kind.MASKED_STORE and place == 2 and ndim(part) == ndim(target):
                continue
            copy = Instr(np.copy, (part,), part.type, "", node.instr.loc)
            made = Group([Node(copy, Kind.ELEMENTWISE, node.position)], self.shapes.of(copy), False, node.position)
            kernel = Kernel(made, writer, self.shapes, self.replaced)
            added += kernel.make()
            result = kernel.results[copy]
            node.instr.args = (*node.instr.args[:place], result, *node.instr.args[place + 1 :])
        return added
