"""The variables of the function that is being lowered: which operand each holds in each block.

    x = 1.0                     write("x", %x.1)
    if c: x = f(x)              write("x", %x.2)
    return x                    read("x")                   ->  %x.3 = phi [%x.1, ...], [%x.2, ...]

A variable that is assigned in one place, which dominates its reader, is that operand. All others go through the
construction of Braun et al. (`zygote_py.ir.building.ssa`), one variable for each number and array in their value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.frontend.frames import Frame
from zygote_py.frontend.values import alternatives
from zygote_py.frontend.values.bundles import Bundle, components, is_tuple, leaves_of
from zygote_py.frontend.values.emitter import Emitter
from zygote_py.ir import ops
from zygote_py.ir.building.ssa import SSABuilder
from zygote_py.ir.core import Block, Const, Function, Instr, Loc, Operand, Phi, Type
from zygote_py.ir.types import components_of, is_scalar


class Variables(Emitter):
    """The reading and writing of variables, in the frame and in the block at hand."""

    frame: Frame

    def __init__(self, function: Function, loc: Loc) -> None:
        super().__init__(Block(), loc)
        self.function = function
        self.ssa = SSABuilder(function)
        self.dominator: dict[Block, tuple[int, Block]] = {}  # the depth in their tree, and the immediate one

    def enter(self, frame: Frame) -> None:
        """Go on with the variables of a frame."""
        self.frame = frame
        self.types = frame.types
        self.iterations = frame.iterations

    def begin(self, block: Block, preds: Sequence[Block], seal: bool = True) -> None:
        """Go on in a block; these are all its predecessors except those of back edges."""
        if seal:
            self.ssa.seal(block, preds)
        nearest = reduce(self._common_dominator, preds) if preds else block
        self.dominator[block] = self.dominator[nearest][0] + 1 if preds else 0, nearest
        self.block = block

    def _common_dominator(self, one: Block, other: Block) -> Block:
        while one is not other:
            if self.dominator[one][0] < self.dominator[other][0]:
                one, other = other, one
            one = self.dominator[one][1]
        return one

    def dominates(self, block: Block, other: Block) -> bool:
        """Return whether control passes the first of two blocks before it enters the second."""
        return self._common_dominator(block, other) is block

    def read(self, variable: st.Variable) -> Bundle:
        """Return the value of a variable here; if it may be `None`, there must be a value."""
        value = self.read_whole(variable)
        return alternatives.present(self, value) if alternatives.is_optional(value.type) else value

    def read_whole(self, variable: st.Variable) -> Bundle:
        """Return the value of a variable here."""
        frame = self.frame
        type_ = frame.types[variable]
        if variable in frame.single:
            block, bundle = frame.single[variable]
            if self.dominates(block, self.block):
                return bundle
        self._declare(variable)
        leaves = tuple(self.ssa.read((frame, variable, index), self.block) for index in range(len(leaves_of(type_))))
        return Bundle(type_, leaves, None if leaves else frame.static.get(variable), frame.iterations.get(variable))

    def write(self, variable: st.Variable, bundle: Bundle) -> None:
        """Make a variable hold a value of its own type."""
        frame = self.frame
        if bundle.static is not None:
            frame.static[variable] = bundle.static
        if bundle.iterator is not None:
            frame.iterations[variable] = bundle.iterator
        elif variable in frame.iterations:
            bundle = replace(bundle, iterator=frame.iterations[variable])
        if frame.assigned[variable] == 1:
            frame.single[variable] = self.block, bundle
        self._declare(variable)
        for index, leaf in enumerate(bundle.leaves):
            self.ssa.write((frame, variable, index), self.block, leaf)

    def _declare(self, variable: st.Variable) -> None:
        frame = self.frame
        if variable in frame.declared:
            return
        frame.declared.add(variable)
        for index, leaf in enumerate(leaves_of(frame.types[variable])):
            self.ssa.declare((frame, variable, index), leaf, self.hint(variable))

    def hint(self, variable: st.Variable) -> str:
        """Return the name that a variable has in the source; none for temporaries."""
        name = self.frame.typed.names.get(variable, "")
        return name if name.strip("_") else ""

    def assign(self, variable: st.Variable, bundle: Bundle, by_name: bool = True) -> None:
        """Make a variable hold a value, cast to its type; a literal gets a named constant, if wanted."""
        type_ = self.types[variable]
        bundle = self.cast_bundle(bundle, type_)
        hint = self.hint(variable)
        by_name = by_name and not is_tuple(type_)
        leaves = (
            self._name(leaf, hint) if hint and (by_name or not isinstance(leaf, Const)) else leaf
            for leaf in bundle.leaves
        )
        self.write(variable, replace(bundle, leaves=tuple(leaves)))

    def _name(self, operand: Operand, hint: str) -> Operand:
        match operand:
            case Const(_, type_) if is_scalar(type_):
                named = self.emit(ops.const, (operand,), type_, hint)
                self.homes[named] = self.block
                return named
            case Instr() | Phi() if operand.hint in ("", "c"):
                operand.hint = hint
        return operand

    def cast_bundle(self, bundle: Bundle, type: Type) -> Bundle:
        """Return a value as one of another type: numbers are converted, also those in tuples."""
        if bundle.type == type:
            return bundle
        if isinstance(type, types.Optional):
            return alternatives.held(self, bundle, type)
        if alternatives.is_optional(bundle.type):
            return self.cast_bundle(alternatives.present(self, bundle), type)
        if numba_adapter.is_choice(type):
            return alternatives.chosen(self, bundle, type)
        if is_tuple(type) and is_tuple(bundle.type):
            parts = zip(components(bundle), components_of(type), strict=True)
            cast = [self.cast_bundle(part, to) for part, to in parts]
            return Bundle(type, tuple(leaf for part in cast for leaf in part.leaves), bundle.static)
        if len(bundle.leaves) == 1 and len(leaves_of(type)) == 1:
            return replace(bundle, type=type, leaves=(self.cast(bundle.leaves[0], type),))
        return replace(bundle, type=type)
