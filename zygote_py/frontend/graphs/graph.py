"""The control-flow graph of typed statements, made ready for lowering.

The loop of an iterator, whose header asks for the next element, gets a single way back to the header, where its counter
is increased, and a block of its own on the way into the body, where the element is fetched:

    1: p = advance(it)                    1: p = advance(it)
       i = element(p)                        i = element(p)
       choose present(p), 2, 4               choose present(p), 5, 4
    2: choose c, 1, 3              ->     5: goto 2
    3: goto 1                             2: choose c, 6, 3
                                          3: goto 6
                                          6: goto 1

Blocks keep their labels, in the order of the source; new ones follow the block they come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from numba import types

from zygote_py.base import statements as st
from zygote_py.ir import (
    Block,
    Branch,
    Const,
    Function,
    Jump,
    Loc,
    Return,
    Type,
    dominator_tree,
    reach,
    reverse_postorder,
)
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(eq=False)
class Graph:
    """Blocks by label, in their final order."""

    blocks: dict[st.Label, st.TypedBlock]
    types: dict[st.Variable, Type]
    latches: dict[st.Label, st.Label] = field(default_factory=dict)  # of each header of an iterator's loop

    def __post_init__(self) -> None:
        self._drop_idle_choices()
        self._remove_unreachable()
        self._join_split_headers()
        # The position of each block; a new block is placed right after the one it comes from.
        self._place: dict[st.Label, tuple[int, ...]] = {label: (at,) for at, label in enumerate(self.blocks)}
        if headers := [label for label in self.blocks if self._is_header(label)]:
            preds = self.predecessors()
            shells = self.make_shells()
            tree = dominator_tree(Function("", [], list(shells.values())))
            for header in headers:
                back = [pred for pred in preds[header] if tree.dominates(shells[header], shells[pred])]
                self._prepare_loop(header, back, preds)
            self.blocks = {label: self.blocks[label] for label in sorted(self.blocks, key=self._place.__getitem__)}

    def _is_header(self, label: st.Label) -> bool:
        return any(isinstance(each, st.Assign) and isinstance(each.value, st.Advance) for each in self._body(label))

    def successors(self, label: st.Label) -> tuple[st.Label, ...]:
        """Return where control may go from a block."""
        return targets(self.blocks[label].ending)

    def predecessors(self) -> dict[st.Label, list[st.Label]]:
        """Return where control may come from, for each block."""
        found: dict[st.Label, list[st.Label]] = {label: [] for label in self.blocks}
        for label in self.blocks:
            for successor in self.successors(label):
                found[successor].append(label)
        return found

    def _body(self, label: st.Label) -> tuple[st.Statement, ...]:
        return self.blocks[label].statements

    def _drop_idle_choices(self) -> None:
        for label, block in self.blocks.items():
            match block.ending:
                case st.Branch(_, then, orelse, loc) if then == orelse:
                    self.blocks[label] = replace(block, ending=st.Jump(then, loc))

    def _remove_unreachable(self) -> None:
        seen = set(reach([next(iter(self.blocks))], self.successors))
        self.blocks = {label: block for label, block in self.blocks.items() if label in seen}

    def _join_split_headers(self) -> None:
        """Put a block that advances an iterator together with an only predecessor that leads to it alone.

        A loop longer than a byte can jump over has its header in two blocks, the jump's target and the advance. Where
        the iterator is made right before the advance, this is a loop that is always left: no way leads back to it.
        """
        preds = self.predecessors()
        for label in list(self.blocks):
            match preds[label]:
                case [source] if source != label and self._is_header(label) and self._leads_back(source, label):
                    for successor in self.successors(label):
                        self._rename_source(successor, label, source)
                        preds[successor] = [source if pred == label else pred for pred in preds[successor]]
                    statements = (*self._body(source), *self._body(label))
                    ending = self.blocks.pop(label).ending
                    self.blocks[source] = replace(self.blocks[source], statements=statements, ending=ending)

    def _leads_back(self, source: st.Label, header: st.Label) -> bool:
        """Return whether a block leads to a header alone, and makes no iterator for it."""
        makes = any(isinstance(each, st.Assign) and isinstance(each.value, st.Iterate) for each in self._body(source))
        return not makes and self.successors(source) == (header,)

    def make_shells(self, loc: Loc | None = None) -> dict[st.Label, Block]:
        """Return empty blocks of the IR with their edges; the conditions of branches are filled in later."""
        shells = {label: Block(loc or block.loc) for label, block in self.blocks.items()}
        for label, shell in shells.items():
            match self.blocks[label].ending:
                case st.Jump(target):
                    shell.terminator = Jump(shells[target])
                case st.Branch(_, then, orelse) | st.Try(then, orelse):
                    shell.terminator = Branch(Const(True, types.boolean), shells[then], shells[orelse])
                case _:
                    shell.terminator = Return(())
        return shells

    def order(self) -> list[st.Label]:
        """Return the labels in reverse postorder."""
        shells = self.make_shells()
        labels = {shell: label for label, shell in shells.items()}
        return [labels[shell] for shell in reverse_postorder(Function("", [], list(shells.values())))]

    def assignments(self) -> Iterator[st.Assign]:
        """Yield all assignments."""
        for block in self.blocks.values():
            yield from (each for each in block.statements if isinstance(each, st.Assign))

    def _prepare_loop(self, header: st.Label, back: list[st.Label], preds: dict[st.Label, list[st.Label]]) -> None:
        if len(back) == 1 and len(self.successors(back[0])) == 1:
            self.latches[header] = back[0]
        elif back:
            self.latches[header] = self._join(header, back)
        ending = self.blocks[header].ending
        if isinstance(ending, st.Branch) and len(preds[ending.then]) > 1:
            new = self._insert(ending.then, [header], header)
            self._rename_source(ending.then, header, new)

    def _join(self, target: st.Label, sources: list[st.Label]) -> st.Label:
        """Route the edges from `sources` to `target` through one new block, which takes over their merges."""
        new = self._insert(target, sources, max(sources, key=self._place.__getitem__))
        merged: list[st.Statement] = []
        statements: list[st.Statement] = []
        for statement in self._body(target):
            if isinstance(statement, st.Assign) and isinstance(statement.value, st.Phi):
                through = [(label, var) for label, var in statement.value.incoming if label in sources]
                others = [(label, var) for label, var in statement.value.incoming if label not in sources]
                joined = f"{statement.target}.joined"
                self.types[joined] = self.types[statement.target]
                merged.append(st.Assign(joined, st.Phi(tuple(through)), statement.loc))
                statement = st.Assign(statement.target, st.Phi((*others, (new, joined))), statement.loc)
            statements.append(statement)
        self.blocks[target] = replace(self.blocks[target], statements=tuple(statements))
        self.blocks[new] = replace(self.blocks[new], statements=tuple(merged))
        return new

    def _rename_source(self, target: st.Label, old: st.Label, new: st.Label) -> None:
        """Replace the predecessor `old` by `new` in the merges of `target`."""
        self.blocks[target] = st.map_merges(self.blocks[target], {old: new})

    def _insert(self, target: st.Label, sources: list[st.Label], after: st.Label) -> st.Label:
        """Return a new block on the edges from `sources` to `target`."""
        new = -1 - len(self.blocks)
        loc = self.blocks[target].loc
        for source in sources:
            ending = self.blocks[source].ending
            match ending:
                case st.Jump():
                    ending = st.Jump(new, ending.loc)
                case st.Branch(condition, then, orelse):
                    then, orelse = (new if label == target else label for label in (then, orelse))
                    ending = st.Branch(condition, then, orelse, ending.loc)
                case st.Try(handler, following):
                    handler, following = (new if label == target else label for label in (handler, following))
                    ending = st.Try(handler, following, ending.loc)
            self.blocks[source] = replace(self.blocks[source], ending=ending)
        self.blocks[new] = st.TypedBlock((), st.Jump(target, loc), loc)
        self._place[new] = (*self._place[after], len(self._place))
        return new


def targets(ending: st.Ending) -> tuple[st.Label, ...]:
    """Return where control may go from a block with this ending."""
    match ending:
        case st.Jump(target):
            return (target,)
        case st.Branch(_, then, orelse) | st.Try(then, orelse):
            return (then, orelse) if then != orelse else (then,)
        case _:
            return ()
