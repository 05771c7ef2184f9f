"""The state of lowering one Python function: the one that is differentiated, or a callee in the place of its call.

    def g(x): return f(x) + f(2.0 * x)        a frame for `g`, and one for each call of `f` while it is lowered

Variables and labels are those of the frame, blocks of the IR are those of the one function that is made. A label stands
for two blocks where a call or a test in `try` has divided it: `shells` has the first of them, `ends` the last.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from numba import types

from zygote_py.base import statements as st
from zygote_py.base.exception_edges import leads_out
from zygote_py.frontend.expressions.calls import retype_numbers
from zygote_py.frontend.graphs.exceptions import with_divisions_of_numpy
from zygote_py.frontend.graphs.graph import Graph
from zygote_py.frontend.values.bundles import Bundle
from zygote_py.frontend.values.emitter import Counter, Iteration
from zygote_py.ir.core import Block, Loc, Operand
from zygote_py.ir.types import is_scalar

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
        arguments: Sequence[Bundle],
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
        if self.divides_by_zero:
            blocks = {label: with_divisions_of_numpy(block) for label, block in blocks.items()}
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
        self.returned: list[tuple[Block, Bundle]] = []
        self.iterations: dict[st.Variable, tuple[Iteration, Counter | None]] = {}
        self.static: dict[st.Variable, object] = {}  # the values of variables known while compiling
        self.advancing: dict[st.Variable, Advancing] = {}  # by the variable that holds the pair or the element
        self.bodies: dict[st.Label, list[Advancing]] = {}
        self.single: dict[st.Variable, tuple[Block, Bundle]] = {}
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
            return st.TypedBlock(block.statements, st.GoTo(target, loc), block.loc)
        case _:
            return block
