"""The verifier: checks that a function is well formed, or in canonical form.

`verify` reports all faults at once, each below the line of the text that it concerns:

    b2:
      %n2 = sub %n1, 1 : i64
    ^ %n1 does not dominate this use

A well-formed function:

 1. has a block; no block is in it twice; every jump and branch leads to one of its blocks;
 2. the entry has no predecessors, and no phis;
 3. every block can be reached from the entry;
 4. the operands of a phi are those of exactly the predecessors of its block;
 5. a phi, and each of its operands, have the same type; for an array in any order, one in C or Fortran order is
    allowed, and for a read-only array, a writable one;
 6. the condition of a branch is a `bool`;
 7. each value is defined once: a parameter, a phi or an instruction of one block;
 8. each used value is defined in the function, and its definition dominates the use; the operand of a phi is used
    at the end of the predecessor;
 9. a primal returns one value, and may return a second, the aux output, which is not differentiated; an adjoint returns
    one for each parameter of its primal; all returns of a function agree in number and types, except that arrays may
    differ in order;
10. an adjoint has a primal; alphas and `came_from` occur in adjoints only, an alpha is of a value of the primal, and
    `came_from` names a block of the primal and one of its predecessors; so does `mirror`, if it is set;
11. `add`, `sub` and `mul` of scalars: if a float or a complex number is involved, operands and result are of one type
    (casts are instructions);
12. a constant is a plain Python value of its type: a float for `f64` and `f32`, an int for `i64`, a bool for `bool`;
13. an instruction has no more keywords than arguments.

A function is in canonical form, which `verify_canonical` checks, if in addition:

 1. it is reducible: a loop is entered at its header only;
 2. a loop has one preheader: a single block outside of it leads to the header, and nowhere else;
 3. a loop has one latch, which leads to the header and nowhere else;
 4. only the header of a loop has an edge out of it, one of the two of its branch (edges to blocks that cannot reach
    the return do not count);
 5. there is no critical edge, from a block with several successors to one with several predecessors;
 6. there is one `Return`;
 7. a merge that is not the header of a loop has two predecessors.

Neither checks what an instruction computes, or that types fit operations beyond the above.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache, cached_property

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis import DominatorTree, dominator_tree, loop_nest
from zygote_py.ir.core import (
    Alpha,
    Block,
    Branch,
    CameFrom,
    Const,
    Function,
    Instr,
    InternalError,
    Jump,
    Operand,
    Param,
    Phi,
    Return,
    Terminator,
    Type,
    Value,
    predecessors,
)
from zygote_py.ir.text.printer import Names, lines
from zygote_py.ir.types import common_type, is_a, type_text

Subject = Function | Block | Value | Terminator


def verify(function: Function, pass_name: str = "") -> None:
    """Raise InternalError, with all faults below their lines, if `function` is not well formed."""
    _Verifier(function).check(pass_name)


def verify_canonical(function: Function, pass_name: str = "") -> None:
    """Raise InternalError if `function` is not well formed and in canonical form."""
    verify(function, pass_name)
    faults = _Faults(function)
    _check_canonical(function, faults)
    faults.report(pass_name)


def verify_orders(function: Function) -> None:
    """Raise InternalError if a phi of arrays has an operand of another type, as one in another order in memory."""
    for block in function.blocks:
        for phi in block.phis:
            if isinstance(phi.type, types.Array | types.BaseTuple) and not all(
                is_a(each.type, phi.type) for each in phi.args
            ):
                raise InternalError(f"{function.name}: arrays of several types in a variable of {type_text(phi.type)}")


class _Faults:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.of: defaultdict[Subject, list[str]] = defaultdict(list)

    @cached_property
    def names(self) -> Names:
        """Return the names in the text, which only messages need."""
        return Names(self.function)

    def add(self, subject: Subject, message: str) -> None:
        if message not in self.of[subject]:
            self.of[subject].append(message)

    def report(self, pass_name: str) -> None:
        if not self.of:
            return
        shown: list[str] = []
        for line in lines(self.function, self.names):
            shown.append(line.text)
            shown += (f"^ {message}" for message in self.of.get(line.subject, ()))
        number = sum(map(len, self.of.values()))
        summary = f"{self.function.kind} {self.function.name} has {number} fault{'s' if number > 1 else ''}"
        raise InternalError(summary, pass_name, "\n".join(shown))


class _Verifier:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.faults = _Faults(function)
        self.own_blocks = set(function.blocks)
        self.defined: dict[Value, tuple[Block | None, int]] = {}
        primal = function.primal if function.kind == "adjoint" else None
        self.primal_blocks = {} if primal is None else {block: set[Block]() for block in primal.blocks}
        if primal is not None:
            for block in primal.blocks:
                for successor in block.successors:
                    self.primal_blocks.setdefault(successor, set()).add(block)

    @property
    def names(self) -> Names:
        return self.faults.names

    def check(self, pass_name: str) -> None:
        """Check every invariant; dominance only if the control-flow graph is valid."""
        self._check_values_are_defined_once()
        if self._check_graph():
            preds = predecessors(self.function)
            tree = dominator_tree(self.function)
            for block in self.function.blocks:
                if block not in tree:
                    self.faults.add(block, "this block cannot be reached")
                self._check_phis(block, preds[block], tree)
                self._check_uses(block, tree)
        for block in self.function.blocks:
            self._check_block(block)
        self._check_returns()
        self.faults.report(pass_name)

    def _check_graph(self) -> bool:
        function = self.function
        if not function.blocks:
            self.faults.add(function, "the function has no block")
            return False
        for block, number in Counter(function.blocks).items():
            if number > 1:
                self.faults.add(block, "this block is in the function twice")
        whole = True
        for block in function.blocks:
            for successor in block.successors:
                if successor not in self.own_blocks:
                    self.faults.add(block.terminator, "this leads to a block that is not in the function")
                    whole = False
                if successor is function.entry:
                    self.faults.add(block.terminator, "this leads to the entry")
        if function.entry.phis:
            self.faults.add(function.entry.phis[0], "the entry has a phi")
        return whole

    def _check_values_are_defined_once(self) -> None:
        for param in self.function.params:
            self._define(param, None, 0)
        for block in dict.fromkeys(self.function.blocks):
            for phi in block.phis:
                self._define(phi, block, -1)
            for index, instr in enumerate(block.instrs):
                self._define(instr, block, index)

    def _define(self, value: Value, block: Block | None, index: int) -> None:
        if value in self.defined:
            self.faults.add(value, f"{self.names.value(value)} is defined more than once")
        self.defined[value] = (block, index)
        if isinstance(value, Param) != (block is None) or isinstance(value, Phi) != (index == -1):
            self.faults.add(value, f"a {type(value).__name__} is in the wrong place")

    def _check_phis(self, block: Block, preds: list[Block], tree: DominatorTree) -> None:
        for phi in block.phis:
            if missing := [pred for pred in preds if pred not in phi.incoming]:
                self.faults.add(phi, f"there is no operand for {self._list(missing)}")
            if extra := [pred for pred in phi.incoming if pred not in preds]:
                self.faults.add(phi, f"{self._list(extra)} is not a predecessor")
            for pred, operand in phi.incoming.items():
                if isinstance(operand, Value) and pred in preds:
                    self._check_dominates(operand, phi, pred, len(pred.instrs), tree)

    def _check_uses(self, block: Block, tree: DominatorTree) -> None:
        for index, instr in enumerate(block.instrs):
            for operand in instr.args:
                if isinstance(operand, Value):
                    at, position = self.defined.get(operand, (None, 0))
                    if at is not block or position >= index:
                        self._check_dominates(operand, instr, block, index, tree)
        for operand in block.terminator.args:
            if isinstance(operand, Value):
                self._check_dominates(operand, block.terminator, block, len(block.instrs), tree)

    def _check_dominates(self, used: Value, user: Subject, block: Block, index: int, tree: DominatorTree) -> None:
        if used not in self.defined:
            self.faults.add(user, f"{self.names.value(used)} is not defined in this function")
            return
        at, position = self.defined[used]
        if at is None or block not in tree:
            return
        dominates = position < index if at is block else at in tree and tree.dominates(at, block)
        if not dominates:
            self.faults.add(user, f"{self.names.value(used)} does not dominate this use")

    def _check_block(self, block: Block) -> None:
        if block.mirror is not None and self.function.kind == "adjoint" and block.mirror not in self.primal_blocks:
            self.faults.add(block, "this reverses a block that is not in the primal")
        for value in (*block.phis, *block.instrs):
            self._check_operands(value, value.args)
            match value:
                case Phi():
                    self._check_phi_types(value)
                case CameFrom():
                    self._check_came_from(value)
                case Instr():
                    self._check_instruction(value)
        self._check_operands(block.terminator, block.terminator.args)
        match block.terminator:
            case Branch(condition, _, _) if condition.type != types.boolean:
                self.faults.add(block.terminator, f"the condition is of type {type_text(condition.type)}, not bool")

    def _check_operands(self, user: Subject, used: Iterable[Operand]) -> None:
        for operand in used:
            match operand:
                case Const():
                    if _class_of_constants(operand.type) not in (type(operand.value), object):
                        shown = f"{operand.value!r} ({type(operand.value).__name__})"
                        self.faults.add(user, f"the constant {shown} is not of type {type_text(operand.type)}")
                case Alpha(value):
                    if self.function.kind != "adjoint":
                        self.faults.add(user, f"{self.names.operand(operand)}: an alpha outside of an adjoint")
                    elif self.names.primal is not None and value not in self.names.primal:
                        self.faults.add(user, f"{self.names.operand(operand)} is not a value of the primal")

    def _check_phi_types(self, phi: Phi) -> None:
        for pred, operand in phi.incoming.items():
            if not is_a(operand.type, phi.type):
                self.faults.add(
                    phi,
                    f"the operand for {self.names.block(pred)} is of type {type_text(operand.type)}, "
                    f"not {type_text(phi.type)}",
                )

    def _check_instruction(self, instr: Instr) -> None:
        if len(instr.keywords) > len(instr.args):
            self.faults.add(instr, "there are more keywords than arguments")
        record = ops.of(instr.op)
        is_arithmetic = (
            record.syntax and record.family is ops.Family.ARITHMETIC
        )  # of Python, as NumPy's takes any types
        if not is_arithmetic or all(arg.type is instr.type for arg in instr.args):
            return
        taking_part = [operand.type for operand in instr.args] + [instr.type]
        if not all(isinstance(t, types.Number | types.Boolean) for t in taking_part):
            return  # arrays, tuples and strings have their own arithmetic
        inexact = any(isinstance(t, types.Float | types.Complex) for t in taking_part)
        if inexact and len(set(taking_part)) > 1:
            shown = ", ".join(type_text(t) for t in taking_part[:-1])
            self.faults.add(instr, f"{ops.name_of(instr.op)} of {shown} to {type_text(instr.type)}")

    def _check_came_from(self, value: CameFrom) -> None:
        if self.function.kind != "adjoint":
            self.faults.add(value, "came_from outside of an adjoint")
        elif value.block not in self.primal_blocks:
            self.faults.add(value, "came_from names a block that is not in the primal")
        elif value.pred not in self.primal_blocks[value.block]:
            names = self.names.primal or self.names
            self.faults.add(value, f"{names.block(value.pred)} is not a predecessor of {names.block(value.block)}")

    def _check_returns(self) -> None:
        function = self.function
        primal = function.primal
        if function.kind == "adjoint" and primal is None:
            self.faults.add(function, "an adjoint without a primal")
        first: list[Type] | None = None
        for block in function.blocks:
            match block.terminator:
                case Return(values):
                    returned = [operand.type for operand in values]
                case _:
                    continue
            if function.kind == "primal" and len(returned) not in (1, 2):
                self.faults.add(block.terminator, f"a primal returns one value or two, not {len(returned)}")
            if function.kind == "adjoint" and primal is not None and len(returned) != len(primal.params):
                expected = f"{len(primal.params)} value{'s' if len(primal.params) != 1 else ''}"
                self.faults.add(block.terminator, f"this adjoint returns {expected}, not {len(returned)}")
            first = returned if first is None else first
            if not _are_alike(returned, first):
                shown = ", ".join(map(type_text, returned)), ", ".join(map(type_text, first))
                self.faults.add(block.terminator, f"this returns ({shown[0]}), another return ({shown[1]})")

    def _list(self, blocks: Iterable[Block]) -> str:
        return ", ".join(map(self.names.block, blocks))


def _are_alike(returned: list[Type], others: list[Type]) -> bool:
    """Return whether two returns have the same types, or arrays that differ in order."""
    return len(returned) == len(others) and all(
        is_a(type, common := common_type(type, other)) and is_a(other, common)
        for type, other in zip(returned, others, strict=True)
    )


@cache
def _class_of_constants(t: Type) -> type:
    # NumPy scalars are rejected: they print, compare and compute differently.
    match t:
        case types.Boolean():
            return bool
        case types.Integer():
            return int
        case types.Float():
            return float
        case types.Complex():
            return complex
        case types.UnicodeType():
            return str
        case types.NoneType():
            return type(None)
        case _:
            return object


def _check_canonical(function: Function, faults: _Faults) -> None:
    try:
        nest = loop_nest(function)
    except InternalError as error:
        faults.add(function, error.message)
        return
    preds = predecessors(function)
    headers = {loop.header for loop in nest.loops}
    for loop in nest.loops:
        for what, blocks in (("preheader", loop.entering), ("latch", loop.latches)):
            if len(blocks) != 1:
                shown = ", ".join(map(faults.names.block, blocks))
                faults.add(loop.header, f"the loop has no single {what}: {shown}")
            elif not isinstance(blocks[0].terminator, Jump):
                faults.add(blocks[0].terminator, f"the {what} of {faults.names.block(loop.header)} has two successors")
        for block, _ in loop.exits:
            if block is not loop.header:
                header = faults.names.block(loop.header)
                faults.add(block.terminator, f"an exit of the loop at {header} besides its header's")
    for block in function.blocks:
        if len(preds[block]) > 2 and block not in headers:
            faults.add(block, f"a merge of {len(preds[block])} predecessors")
        for successor in block.successors:
            if len(block.successors) > 1 and len(preds[successor]) > 1:
                faults.add(block.terminator, f"the edge to {faults.names.block(successor)} is critical")
    if (count := len(function.returns())) != 1:
        faults.add(function, f"the function has {count} returns, not one")
