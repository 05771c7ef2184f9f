"""The state of lowering one Python function: the one that is differentiated, or a callee in the place of its call.

    def g(x): return f(x) + f(2.0 * x)        a frame for `g`, and one for each call of `f` while it is lowered

Variables and labels are those of the frame, blocks of the IR are those of the one function that is made. A label stands
for two blocks where a call or a test in `try` has divided it: `shells` has the first of them, `ends` the last.

Which operand each variable holds in each block:

    x = 1.0                     write("x", %x.1)
    if c: x = f(x)              write("x", %x.2)
    return x                    read("x")                   ->  %x.3 = phi [%x.1, ...], [%x.2, ...]

A variable that is assigned in one place, which dominates its reader, is that operand. All others go through the
construction of Braun et al. (`zygote_py.ir.building.ssa`), one variable for each number and array in their value.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce

from numba import types

from zygote_py.base import leads_out, statements as st
from zygote_py.frontend.expressions.calls import retype_numbers
from zygote_py.frontend.graphs.exceptions import in_parallel_loops, with_divisions_of_numpy
from zygote_py.frontend.graphs.graph import Graph
from zygote_py.frontend.values import (
    Counter,
    Emitter,
    Iteration,
    LoweredValue,
    alternatives,
    is_tuple,
    leaves_of,
)
from zygote_py.ir import (
    Block,
    Const,
    Function,
    Instr,
    Loc,
    Operand,
    Phi,
    SSABuilder,
    Type,
    is_scalar,
    ops,
)
from zygote_py.ir.lazy_dataclass import dataclass

NO_VARIABLE: st.Variable = ""  # to which the result of a statement without one is assigned


@dataclass(eq=False)
class Advancing:
    """The loop of an iterator: what it iterates over, the counter's value, and the variables that hold the element."""

    iteration: Iteration
    count: Operand
    condition: Operand
    loc: Loc
    holders: list[st.Variable] = field(default_factory=list)


class Frame:
    """The state of lowering one Python function in the IR's function."""

    def __init__(
        self,
        typed: st.TypedFunction,
        arguments: Sequence[LoweredValue],
        caller: Frame | None = None,
        loc: Loc | None = None,
        is_library: bool = False,
    ) -> None:
        """`loc` is the location of all statements, if they are not to have their own."""
        self.typed = typed
        self.caller = caller
        self.loc = loc
        self.is_library = is_library
        self.arguments = list(arguments)
        self.types = {**typed.types, NO_VARIABLE: types.none}
        self.methods = methods_of(typed)
        blocks = {label: _without_idle_try(typed.blocks, block) for label, block in typed.blocks.items()}
        # A division by zero yields infinity here, and raises where the function is called.
        self.divides_by_zero: bool = caller is not None and (
            caller.divides_by_zero or (_divides_by_zero(typed) and not _divides_by_zero(caller.typed))
        )
        passing = blocks if self.divides_by_zero else in_parallel_loops(typed)
        blocks = {
            label: with_divisions_of_numpy(block) if label in passing else block for label, block in blocks.items()
        }
        self.graph = Graph(blocks, self.types)
        self.assigned = Multiset(each.target for each in self.graph.assignments())
        self.result_type = typed.return_type
        self.retype(
            each.target
            for each in self.graph.assignments()
            if isinstance(each.value, st.Parameter)
            and each.value.index < len(arguments)
            and is_scalar(arguments[each.value.index].type)
        )
        self.order = self.graph.order()
        self.preds = self.graph.predecessors()
        self.shells = self.graph.make_shells(loc)
        self.ends: dict[st.Label, Block] = {}
        self.raising: dict[st.Label, list[Block]] = {}  # by the handler
        self.handler: st.Label | None = None  # of the block that is being filled
        self.returned: list[tuple[Block, LoweredValue]] = []
        self.iterations: dict[st.Variable, tuple[Iteration, Counter | None]] = {}
        self.static: dict[st.Variable, object] = {}  # the values of variables known while compiling
        self.advancing: dict[st.Variable, Advancing] = {}  # by the variable that holds the pair or the element
        self.bodies: dict[st.Label, list[Advancing]] = {}
        self.single: dict[st.Variable, tuple[Block, LoweredValue]] = {}
        self.never_none: set[st.Variable] = set()  # although Numba types them as if they could be
        self.declared: set[st.Variable] = set()

    def retype(self, variables: Iterable[st.Variable]) -> None:
        """Type variables, those that they are copied to and the result as numbers."""
        blocks = self.graph.blocks.values()
        self.result_type = retype_numbers(blocks, self.types, self.result_type, variables)

    def is_to_come(self, variable: st.Variable) -> bool:
        """Return whether a variable holds the element of a loop in whose header control is."""
        return variable in self.advancing and self.assigned[variable] == 1 and variable not in self.single

    def predecessors(self, label: st.Label) -> list[tuple[Block, st.Label]]:
        """Return the blocks from which control enters a block, with their labels."""
        found: list[tuple[Block, st.Label]] = []
        for pred in self.preds[label]:
            ending = self.graph.blocks[pred].ending
            if isinstance(ending, st.Try) and label == ending.handler:
                found += [(block, pred) for block in self.raising.get(label, ())]
            elif pred in self.ends:
                found.append((self.ends[pred], pred))
        return found

    def catching(self) -> tuple[Frame, st.Label] | None:
        """Return the handler to which an exception goes now, and its frame; None if it leaves the function."""
        if self.handler is not None:
            return self, self.handler
        return None if self.caller is None else self.caller.catching()


def methods_of(typed: st.TypedFunction) -> dict[st.Variable, st.Attribute]:
    """Return the variables that hold attributes of values, such as methods, and of what."""
    found: dict[st.Variable, st.Attribute] = {}
    for block in typed.blocks.values():
        for statement in block.statements:
            match statement:
                case st.Assign(target, st.Attribute(value) as method) if not isinstance(
                    typed.types[value], types.Module
                ):
                    found[target] = method
                case st.Assign(target, st.Copy(source)) if source in found:
                    found[target] = found[source]
    return found


def _divides_by_zero(function: st.TypedFunction) -> bool:
    """Return whether a division by zero is not an error in a function."""
    return function.options.get("error_model") == "numpy"


def _without_idle_try(blocks: Mapping[st.Label, st.TypedBlock], block: st.TypedBlock) -> st.TypedBlock:
    """Return a block without its handler, if that does nothing but let the exception leave the function."""
    match block.ending:
        case st.Try(handler, target, loc) if leads_out(blocks, handler):
            return st.TypedBlock(block.statements, st.Jump(target, loc), block.loc)
        case _:
            return block


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
        depth = self.dominator[block][0]
        while self.dominator[other][0] > depth:
            other = self.dominator[other][1]
        return other is block

    def read(self, variable: st.Variable) -> LoweredValue:
        """Return the value of a variable here; if it may be `None`, there must be a value."""
        value = self.read_whole(variable)
        return alternatives.present(self, value) if alternatives.is_optional(value.type) else value

    def read_whole(self, variable: st.Variable) -> LoweredValue:
        """Return the value of a variable here."""
        frame = self.frame
        type_ = frame.types[variable]
        if variable in frame.single:
            block, bundle = frame.single[variable]
            if self.dominates(block, self.block):
                return bundle
        self._declare(variable)
        leaves = tuple(self.ssa.read((frame, variable, index), self.block) for index in range(len(leaves_of(type_))))
        return LoweredValue(
            type_, leaves, None if leaves else frame.static.get(variable), frame.iterations.get(variable)
        )

    def write(self, variable: st.Variable, bundle: LoweredValue) -> None:
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
        if variable not in frame.declared:
            frame.declared.add(variable)
            for index, leaf in enumerate(leaves_of(frame.types[variable])):
                self.ssa.declare((frame, variable, index), leaf, self.hint(variable))

    def hint(self, variable: st.Variable) -> str:
        """Return the name that a variable has in the source; none for temporaries."""
        name = self.frame.typed.names.get(variable, "")
        return name if name.strip("_") else ""

    def assign(self, variable: st.Variable, bundle: LoweredValue, by_name: bool = True) -> None:
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

    def cast_bundle(self, bundle: LoweredValue, type: Type) -> LoweredValue:
        """Return a value as one of another type: numbers are converted, also those in tuples."""
        return alternatives.cast(self, bundle, type)
