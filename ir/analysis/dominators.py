"""Dominator and postdominator trees, after Cooper, Harvey and Kennedy.

A block dominates another if every path from the entry to the other contains it. In

    b0:  branch %c, b1, b2      b1:  jump b3      b2:  jump b3      b3:  return %x

b0 is the immediate dominator of the three others, and b3 is the immediate postdominator of b0, b1 and b2.

The trees describe the function at the time of their construction: a pass that changes the graph rebuilds them.
Unreachable blocks are in no tree; blocks from which no `Return` can be reached are not in the postdominator tree.

Keith D. Cooper, Timothy J. Harvey and Ken Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from zygote_py.ir.core import Block, Function, predecessors
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class DominatorTree:
    """A (post)dominator tree.

    `order` is a reverse postorder of the graph; `idom` of a root is None; `children` are in that order too."""

    order: tuple[Block, ...]
    idom: Mapping[Block, Block | None]
    children: Mapping[Block, tuple[Block, ...]]
    _entered: Mapping[Block, int]  # preorder number in a walk of the tree
    _left: Mapping[Block, int]  # preorder number of the last descendant

    def __contains__(self, block: Block) -> bool:
        return block in self.idom

    def dominates(self, a: Block, b: Block) -> bool:
        """Return whether `a` dominates `b`; each block dominates itself."""
        return self._entered[a] <= self._entered[b] <= self._left[a]

    def nearest(self, blocks: Iterable[Block]) -> Block:
        """Return the nearest block that dominates all of `blocks`, of which there is at least one."""
        found, *others = dict.fromkeys(blocks)
        for other in others:
            while not self.dominates(found, other):
                above = self.idom[found]
                assert above is not None
                found = above
        return found

    def preorder(self) -> list[Block]:
        """Return the blocks in preorder: each after its dominators."""
        return sorted(self.idom, key=self._entered.__getitem__)


def reverse_postorder(
    function: Function, ways: Callable[[Block], Sequence[Block]] = lambda block: block.successors
) -> list[Block]:
    """Return the reachable blocks, each before its successors except along back edges; `then` before `orelse`.

    `ways` returns the successors of a block in a different order: the last of them is visited first, and so comes last.
    """
    return _reverse_postorder([function.entry], ways)


def dominator_tree(function: Function) -> DominatorTree:
    """Return the dominator tree of the reachable blocks."""
    if len(function.blocks) == 1:
        (block,) = function.blocks
        return DominatorTree((block,), {block: None}, {block: ()}, {block: 0}, {block: 0})
    return _tree(reverse_postorder(function), [function.entry], predecessors(function).__getitem__)


def postdominator_tree(function: Function) -> DominatorTree:
    """Return the postdominator tree of the blocks from which a `Return` can be reached.

    With more than one `Return`, the tree has more than one root: their common postdominator is outside the function.
    """
    roots = [block for block, _ in function.returns()]
    order = _reverse_postorder(roots, predecessors(function).__getitem__)
    return _tree(order, roots, lambda block: block.successors)


def _reverse_postorder(roots: Sequence[Block], following: Callable[[Block], Sequence[Block]]) -> list[Block]:
    seen: set[Block] = set()
    postorder: list[Block] = []
    for root in reversed(roots):
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, list(following(root)))]
        while stack:
            block, rest = stack[-1]
            while rest:
                successor = rest.pop()  # from the last, since the block finished first comes last
                if successor not in seen:
                    seen.add(successor)
                    stack.append((successor, list(following(successor))))
                    break
            else:
                postorder.append(block)
                stack.pop()
    return postorder[::-1]


def _tree(order: list[Block], roots: Sequence[Block], before: Callable[[Block], Iterable[Block]]) -> DominatorTree:
    """Return the tree of a graph in reverse postorder; `before` returns the predecessors of a block in it."""
    # Number 0 is a virtual root above the actual ones.
    number = {block: index for index, block in enumerate(order, 1)}
    preds = [[], *([number[pred] for pred in before(block) if pred in number] for block in order)]
    for root in roots:
        preds[number[root]].append(0)
    idom = [0] + [-1] * len(order)  # -1: not computed yet
    changed = True
    while changed:
        changed = False
        for block in range(1, len(idom)):
            new = -1
            for pred in preds[block]:
                if idom[pred] >= 0:
                    new = pred if new < 0 else _meet(new, pred, idom)
            if new != idom[block]:
                idom[block] = new
                changed = True
    children: list[list[int]] = [[] for _ in idom]
    for block in range(1, len(idom)):
        children[idom[block]].append(block)
    entered, left = _walk(children)
    return DominatorTree(
        tuple(order),
        {block: order[idom[n] - 1] if idom[n] else None for n, block in enumerate(order, 1)},
        {block: tuple(order[child - 1] for child in children[n]) for n, block in enumerate(order, 1)},
        {block: entered[n] for n, block in enumerate(order, 1)},
        {block: left[n] for n, block in enumerate(order, 1)},
    )


def _meet(a: int, b: int, idom: list[int]) -> int:
    """Return the nearest common dominator; a dominator has the smaller number."""
    while a != b:
        if a > b:
            a = idom[a]
        else:
            b = idom[b]
    return a


def _walk(children: list[list[int]]) -> tuple[list[int], list[int]]:
    """Return the preorder number of each node of a tree, and the largest one in its subtree."""
    entered = [0] * len(children)
    left = [0] * len(children)
    preorder: list[int] = []
    stack = [0]
    while stack:
        node = stack.pop()
        entered[node] = left[node] = len(preorder)
        preorder.append(node)
        stack.extend(reversed(children[node]))
    for node in reversed(preorder):
        for child in children[node]:
            left[node] = max(left[node], left[child])
    return entered, left
