"""Undo the loop rotation of Python's compiler: the test of a `while` loop occurs once, in the header.

Python compiles `while n > 0: n -= 1` like `if n > 0:` around `do: n -= 1; while n > 0`. Before and after:

    b0:  %c0 = gt %n, 0                               b0:  jump b3
         branch %c0, b1, b2                           b3:  %n1 = phi b0: %n, b1: %n2
    b1:  %n1 = phi b0: %n, b1: %n2                         %c = gt %n1, 0
         %n2 = sub %n1, 1                     ->           branch %c, b1, b2
         %c1 = gt %n2, 0                              b1:  %n2 = sub %n1, 1
         branch %c1, b1, b2                                jump b3
    b2:  %n3 = phi b0: %n, b1: %n2                    b2:  (%n1 for %n3)

Tests of several blocks (`while a and b`) are supported, and so is a `continue` that leads back to the first test. The
two copies of a test must match, instruction for instruction, and come from the same lines; a loop without this shape is
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from zygote_py.ir.analysis import DominatorTree, Loop, LoopNest, effect, loop_nest
from zygote_py.ir.core import (
    Block,
    Branch,
    Function,
    Instr,
    Jump,
    Operand,
    Phi,
    Value,
    predecessors,
    retarget,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import Effect, of
from zygote_py.ir.types import common_type
from zygote_py.ir.walks import Use, replace_uses, uses

_Uses = Mapping[Value, Sequence[Use]]


def unrotate_loops(function: Function) -> None:
    """Rewrite every loop whose test occurs both before it and at its end to have the test in its header, in place."""
    while _round(function):
        pass


def _round(function: Function) -> bool:
    """Change as many loops as one computation of the loop nest allows."""
    nest = loop_nest(function)
    preds = predecessors(function)
    used = uses(function)
    touched: set[Block] = set()
    replacement: dict[Value, Operand] = {}
    for loop in reversed(nest.loops):
        near = (loop.header, *loop.entering, *loop.latches)
        if touched.isdisjoint(near) and (match := _find(loop, preds, used, nest.tree)) is not None:
            touched |= _rewrite(function, loop.header, match, replacement)
            _fold_first_test(function, match, nest, replacement)
            touched |= set(preds[loop.header]) | {loop.header}
    replace_uses(function, replacement)
    return bool(touched)


@dataclass(eq=False)
class _Match:
    """The blocks and instructions of the test at the end, each with its counterpart before the loop.

    In the two `roots`, where the tests begin, only the last instructions belong to the test; the other blocks contain
    nothing else.
    """

    roots: tuple[Block, Block]
    blocks: dict[Block, Block] = field(default_factory=dict)
    values: dict[Instr, Instr] = field(default_factory=dict)
    exits: list[Block] = field(default_factory=list)

    def counterpart(self, first: Operand, last: Operand) -> bool:
        """Return whether two operands are equal: computed by the two copies or before both."""
        return self.values[last] is first if isinstance(last, Instr) and last in self.values else first == last


def _find(loop: Loop, preds: dict[Block, list[Block]], used: _Uses, tree: DominatorTree) -> _Match | None:
    """Return the largest match of tests that decide on entering `loop` and on its next iteration."""
    for entering in loop.entering:
        for latch in loop.latches:
            found: _Match | None = None
            first: Block | None = entering
            last: Block | None = latch
            while first is not None and last is not None and _might_match(first, last, loop):
                found = _match(first, last, loop, preds, used) or found
                first, last = tree.idom[first], tree.idom[last]
            if found is not None:
                return found
    return None


def _might_match(first: Block, last: Block, loop: Loop) -> bool:
    """Return whether the two copies of a test might begin in two blocks."""
    if first in loop or last not in loop:
        return False
    match first.terminator, last.terminator:
        case Branch(Instr() as a, _, _), Branch(Instr() as b, _, _):
            return a.op is b.op and a.loc == b.loc
        case Branch(a, _, _), Branch(b, _, _):
            return a == b
        case _:
            return False


def _match(first: Block, last: Block, loop: Loop, preds: dict[Block, list[Block]], used: _Uses) -> _Match | None:
    match = _Match((first, last))
    if not _match_blocks(match, first, last, loop) or loop.header not in match.exits:
        return None
    first_blocks, last_blocks = set(match.blocks.values()), set(match.blocks)
    if any(pred not in first_blocks | last_blocks for pred in preds[loop.header]):
        return None
    for inner_last, inner_first in match.blocks.items():
        if inner_last is last:
            continue
        if not last_blocks.issuperset(preds[inner_last]) or not first_blocks.issuperset(preds[inner_first]):
            return None
        if inner_last.phis or inner_first.phis or len(inner_last.instrs) != len(inner_first.instrs):
            return None
        if any(instr not in match.values for instr in inner_last.instrs):
            return None
    matched = (set(match.values.values()), set(match.values))
    if not all(_ends_with(block, test) for block, test in zip(match.roots, matched, strict=True)):
        return None
    return match if _stay_inside(match, used) else None


def _match_blocks(match: _Match, first: Block, last: Block, loop: Loop) -> bool:
    """Extend the match by two blocks and their successors, up to where the two paths meet."""
    if first in loop or last not in loop:
        return False
    match.blocks[last] = first
    if not isinstance(first.terminator, Branch) or not isinstance(last.terminator, Branch):
        return False
    conditions = first.terminator.condition, last.terminator.condition
    if not _match_values(match, first, last, *conditions) and conditions[0] != conditions[1]:
        return False
    for to_first, to_last in (
        (first.terminator.then, last.terminator.then),
        (first.terminator.orelse, last.terminator.orelse),
    ):
        if to_first is to_last:
            if to_last not in match.exits:
                match.exits.append(to_last)
        elif to_last in match.blocks:
            if match.blocks[to_last] is not to_first:
                return False
        elif not _match_blocks(match, to_first, to_last, loop):
            return False
    return True


def _match_values(match: _Match, first: Block, last: Block, a: Operand, b: Operand) -> bool:
    """Match two instructions of the blocks, and their operands where these match; return whether they match."""
    if not isinstance(a, Instr) or not isinstance(b, Instr):
        return False
    if b in match.values:
        return match.values[b] is a
    if a not in first.instrs or b not in last.instrs:
        return False
    if (a.op, a.type, a.keywords, a.loc) != (b.op, b.type, b.keywords, b.loc) or (
        [arg.type for arg in a.args] != [arg.type for arg in b.args]
    ):
        return False
    for x, y in zip(a.args, b.args, strict=True):
        if not _match_values(match, first, last, x, y) and isinstance(y, Instr) and y in match.values:
            return False
    match.values[b] = a
    return True


def _ends_with(block: Block, test: set[Instr]) -> bool:
    """Return whether all instructions of the test can move to the end of the block."""
    for index, instr in enumerate(block.instrs):
        if instr not in test:
            continue
        rest = [other for other in block.instrs[index + 1 :] if other not in test]
        if any(instr in other.args for other in rest):
            return False
        effects = {effect(other) for other in rest}
        if effect(instr) is Effect.WRITE and (effects - {Effect.PURE} or any(of(other.op).may_raise for other in rest)):
            return False
        if (effect(instr) is not Effect.PURE or of(instr.op).may_raise) and Effect.WRITE in effects:
            return False
    return True


def _stay_inside(match: _Match, used: _Uses) -> bool:
    """Return whether the values of the tests are used only by the tests and by the phis where the two paths meet."""
    tests: set[Value] = set(match.values) | set(match.values.values())
    inside = set(match.blocks) | set(match.blocks.values())
    for test in tests:
        for use in used.get(test, ()):
            match use.user:
                case Phi():
                    fine = use.at in inside and use.block in match.exits
                case Instr():
                    fine = use.user in tests
                case _:
                    fine = use.block in inside
            if not fine:
                return False
    # A phi must not get a value of one copy and a different one on the other path: it could not be named.
    pairs = ((phi.incoming[first], phi.incoming[last]) for phi, first, last in _meeting(match))
    return all(tests.isdisjoint(pair) or match.counterpart(*pair) for pair in pairs)


def _meeting(match: _Match) -> Iterator[tuple[Phi, Block, Block]]:
    """Yield the phis where the two paths meet, with the two blocks."""
    for exit_block in match.exits:
        for phi in exit_block.phis:
            for last, first in match.blocks.items():
                if first in phi.incoming and last in phi.incoming:
                    yield phi, first, last


def _rewrite(function: Function, body: Block, match: _Match, replacement: dict[Value, Operand]) -> set[Block]:
    """Move a single copy of the test before `body`; return the removed blocks."""
    first_root, last_root = match.roots
    made = {block: Block(block.loc) for block in function.blocks if block in match.blocks}
    header = made[last_root]
    copies: dict[Operand, Instr] = {
        instr: instr.copy((), with_origin=False)
        for last in match.blocks
        for instr in last.instrs
        if instr in match.values
    }
    phis: dict[tuple[Operand, Operand], Phi] = {}

    def merged(first: Operand, last: Operand, hint: str) -> Operand:
        if last in copies:
            return copies[last]
        if first == last:
            return first
        if (first, last) not in phis:
            kind = common_type(first.type, last.type)
            phi = phis[first, last] = Phi(kind, hint, last.loc if isinstance(last, Value) else None)
            phi.incoming = {first_root: first, last_root: last}
            header.phis.append(phi)
        return phis[first, last]

    for phi, first, last in list(_meeting(match)):
        phi.incoming[first] = merged(phi.incoming[first], phi.incoming[last], phi.hint)
    for last, first in match.blocks.items():
        copy = made[last]
        for instr in last.instrs:
            if instr in match.values:
                pairs = zip(match.values[instr].args, instr.args, strict=True)
                copies[instr].args = tuple(merged(a, b, _hint(a) or _hint(b)) for a, b in pairs)
                copy.instrs.append(copies[instr])
        old, other = last.terminator, first.terminator
        assert isinstance(old, Branch)
        assert isinstance(other, Branch)
        condition = merged(other.condition, old.condition, "c")
        # The last root may be the body itself, which is then an exit of the test and not part of it.
        then, orelse = (way if way in match.exits else made[way] for way in (old.then, old.orelse))
        copy.terminator = Branch(condition, then, orelse)
    for exit_block in match.exits:
        for phi in exit_block.phis:
            renamed = {first: made[last] for last, first in match.blocks.items()}
            kept = ((pred, operand) for pred, operand in phi.incoming.items() if pred not in match.blocks)
            phi.incoming = {renamed.get(pred, pred): operand for pred, operand in kept}
    tests = set(match.values) | set(match.values.values())
    for root in match.roots:
        root.instrs = [instr for instr in root.instrs if instr not in tests]
        root.terminator = Jump(header)
    gone = (set(match.blocks) | set(match.blocks.values())) - set(match.roots)
    function.blocks = [block for block in function.blocks if block not in gone]
    place = function.blocks.index(body)
    function.blocks[place:place] = made.values()
    _drop_single_phis(match.exits, replacement)
    return gone


def _hint(operand: Operand) -> str:
    return operand.hint if isinstance(operand, Value) else ""


def _drop_single_phis(blocks: list[Block], replacement: dict[Value, Operand]) -> None:
    """Remove the phis of blocks that now have a single predecessor."""
    for block in blocks:
        for phi in block.phis:
            if len(phi.incoming) == 1:
                (replacement[phi],) = phi.incoming.values()
        block.phis = [phi for phi in block.phis if phi not in replacement]


def _fold_first_test(function: Function, match: _Match, nest: LoopNest, replacement: dict[Value, Operand]) -> None:
    """Redirect a `continue` from the first test to the new header, if the first test is empty now."""
    first_root = match.roots[0]
    jump = first_root.terminator
    if first_root.instrs or not isinstance(jump, Jump) or all(loop.header is not first_root for loop in nest.loops):
        return
    header = jump.target
    before = predecessors(function)[first_root]
    used = uses(function)
    others = [
        phi
        for phi in first_root.phis
        if any(not (use.block is header and isinstance(use.user, Phi)) for use in used[phi])
    ]
    for phi in header.phis:
        operand = phi.incoming.pop(first_root)
        given = operand.incoming if isinstance(operand, Phi) and operand in first_root.phis else None
        phi.incoming = {pred: given[pred] if given else operand for pred in before} | phi.incoming
    for old in others:
        new = Phi(old.type, old.hint, old.loc)
        latches = [pred for pred in predecessors(function)[header] if pred is not first_root]
        new.incoming = old.incoming | dict.fromkeys(latches, new)
        header.phis.append(new)
        replacement[old] = new
    for pred in before:
        retarget(pred, first_root, header)
    function.blocks.remove(first_root)
