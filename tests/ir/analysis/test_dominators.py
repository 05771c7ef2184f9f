import itertools

from hypothesis import given, settings, strategies as st
from numba import types

from zygote_py.ir import (
    Block,
    Branch,
    Const,
    Function,
    Jump,
    Raise,
    Return,
    dominator_tree,
    postdominator_tree,
    predecessors,
    reverse_postorder,
)

TRUE = Const(True, types.boolean)


def graph(*edges):
    """A function of blocks with the given numbers of successors; one without any returns, -1 raises."""
    blocks = [Block() for _ in edges]
    for block, targets in zip(blocks, edges, strict=True):
        match targets:
            case ():
                block.terminator = Return(())
            case (-1,):
                block.terminator = Raise(ValueError)
            case (target,):
                block.terminator = Jump(blocks[target])
            case (then, orelse):
                block.terminator = Branch(TRUE, blocks[then], blocks[orelse])
    return Function("f", [], blocks)


def idoms(tree, function):
    number = {block: index for index, block in enumerate(function.blocks)}
    return {number[block]: None if idom is None else number[idom] for block, idom in tree.idom.items()}


def test_a_diamond():
    function = graph((1, 2), (3,), (3,), ())
    assert [function.blocks.index(block) for block in reverse_postorder(function)] == [0, 1, 2, 3]
    assert idoms(dominator_tree(function), function) == {0: None, 1: 0, 2: 0, 3: 0}
    assert idoms(postdominator_tree(function), function) == {0: 3, 1: 3, 2: 3, 3: None}


def test_a_loop_with_a_raise():
    function = graph((1,), (2, 4), (3, 5), (1,), (), (-1,))
    tree = dominator_tree(function)
    assert idoms(tree, function) == {0: None, 1: 0, 2: 1, 3: 2, 4: 1, 5: 2}
    b = function.blocks
    assert tree.dominates(b[1], b[5])
    assert tree.dominates(b[2], b[2])
    assert not tree.dominates(b[3], b[4])
    assert tree.children[b[1]] == (b[2], b[4])
    assert tree.preorder()[0] is b[0]
    assert idoms(postdominator_tree(function), function) == {0: 1, 1: 4, 2: 3, 3: 1, 4: None}


def test_two_returns_have_no_common_postdominator():
    function = graph((1, 2), (), ())
    assert idoms(postdominator_tree(function), function) == {0: None, 1: None, 2: None}


def test_blocks_that_cannot_be_reached():
    function = graph((2,), (2,), ())
    tree = dominator_tree(function)
    assert function.blocks[1] not in tree
    assert idoms(tree, function) == {0: None, 2: 0}


def test_a_long_chain():
    function = graph(*((index + 1,) for index in range(5000)), ())
    tree = dominator_tree(function)
    assert tree.dominates(function.blocks[0], function.blocks[-1])


@st.composite
def graphs(draw):
    number = draw(st.integers(1, 9))
    target = st.integers(0, number - 1).filter(lambda index: index or number == 1)
    return [
        draw(st.one_of(st.just(()), st.tuples(target), st.tuples(target, target))) if number > 1 else ()
        for _ in range(number)
    ]


def reachable(start, following, without=None):
    seen = {start} - {without}
    pending = list(seen)
    while pending:
        for block in following(pending.pop()):
            if block not in seen and block is not without:
                seen.add(block)
                pending.append(block)
    return seen


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_against_the_definition(edges):
    function = graph(*edges)
    entry = function.entry
    alive = reachable(entry, lambda block: block.successors)
    tree = dominator_tree(function)
    assert set(tree.order) == alive
    for a, b in itertools.product(alive, alive):
        without = reachable(entry, lambda block: block.successors, without=a)
        assert tree.dominates(a, b) == (b not in without)


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_postdominators_against_the_definition(edges):
    function = graph(*edges)
    returns = [block for block in function.blocks if isinstance(block.terminator, Return)]
    preds = predecessors(function)
    back = {block: set().union(*(reachable(r, preds.__getitem__, block) for r in returns)) for block in function.blocks}
    tree = postdominator_tree(function)
    ending = set().union(*(reachable(r, preds.__getitem__) for r in returns)) if returns else set()
    assert set(tree.order) == ending
    for a, b in itertools.product(ending, ending):
        assert tree.dominates(a, b) == (b not in back[a])
