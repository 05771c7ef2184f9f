"""Split each stack of tuples into several stacks, one per item: differentiation requires stacks of numbers.

    push %s, %t        (%t = pack %a, %b)       push %s_0, %a        push %s_1, %b
    %r = pop %s                           ->    %r_0 = pop %s_0      %r_1 = pop %s_1
    %v = getitem %r, 0                          %v = %r_0

A stack of stacks of tuples becomes several stacks of stacks. Stacks are passed to routines and returned by them, so all
functions of a program are processed at once. This is not a pass over a single function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.effects import has_memory
from zygote_py.ir.building.builder import Builder, items_of, rewrite
from zygote_py.ir.checks.debug import check_after
from zygote_py.ir.core import Const, Function, Instr, InternalError, Operand, Param, Phi, Routine, Type, Undef, Value
from zygote_py.ir.passes.cleanup.dead_code import remove_dead_code
from zygote_py.ir.types import components_of

_list_of: Callable[[Type], Type] = types.List


def split_stacks(function: Function, routines: Collection[Routine]) -> None:
    """Split the stacks of tuples of a function and of the routines that it calls, in place."""
    functions = (function, *(routine.function for routine in routines))
    while depth := max((_depth(value.type) for each in functions for value in each.values()), default=0):
        before = [value for each in functions for value in each.values() if _depth(value.type) == depth]
        places = {routine: _new_places(routine.function.params, depth) for routine in routines}
        for each in functions:
            _Split(each, depth).run()
        for routine, place in places.items():
            routine.writes = _moved(routine.writes, place)
            routine.shares = _moved(routine.shares, place)
            moved = _moved(routine.may_alias_after, place)
            routine.may_alias_after = frozenset(n for n in moved if _can_alias(routine.function.params[n].type))
        for each in functions:
            remove_dead_code(each)  # tuples with such stacks, whose items have been extracted
        if not set(before).isdisjoint(value for each in functions for value in each.values()):
            raise InternalError("split_stacks: a stack of tuples is left")
    check_after("split_stacks", *functions)


def _depth(kind: Type) -> int:
    """Return the nesting depth of the tuples on a stack, including stacks in them; 0 if it is not a stack of tuples."""

    def depth(of: Type) -> int:
        if isinstance(of, types.List):
            return depth(of.dtype)
        return 1 + max(map(depth, components_of(of)), default=0) if isinstance(of, types.BaseTuple) else 0

    return depth(kind) if isinstance(kind, types.List) else 0


def _kinds(kind: Type, depth: int) -> tuple[Type, ...]:
    """Return the types a value is split into: stacks of the items of the deepest tuples; these are split later."""
    if not isinstance(kind, types.List) or _depth(kind) != depth:
        return (kind,)
    items = _kinds(kind.dtype, depth) if isinstance(kind.dtype, types.List) else components_of(kind.dtype)
    return tuple(map(_list_of, items))


def _new_places(params: list[Param], depth: int) -> list[range]:
    """Return the new positions of each parameter."""
    found: list[range] = []
    for param in params:
        at = found[-1].stop if found else 0
        found.append(range(at, at + len(_kinds(param.type, depth))))
    return found


def _can_alias(kind: Type) -> bool:
    """Return whether a parameter may alias others after a call: stacks of numbers stay what they were."""
    return not isinstance(kind, types.List) or has_memory(kind.dtype)


def _moved(numbers: frozenset[int], places: list[range]) -> frozenset[int]:
    return frozenset(new for number in numbers for new in places[number])


class _Split:
    """The change of one function. `parts` are the stacks that each stack is split into."""

    def __init__(self, function: Function, depth: int) -> None:
        self.function = function
        self.depth = depth
        self.parts: dict[Value, tuple[Operand, ...]] = {}
        self.popped: dict[Value, tuple[Operand, ...]] = {}  # from the split stacks
        self.returned: dict[Value, tuple[Type, ...]] = {}  # by routines, in tuples of these types

    def run(self) -> None:
        function = self.function
        params: list[Param] = []
        for param in function.params:
            new = [Param(kind, f"{param.hint}_{n}") for n, kind in enumerate(self.kinds(param.type))]
            if self.is_stack(param.type):
                self.parts[param] = tuple(new)
            params += new if self.is_stack(param.type) else [param]
        function.params = params
        merges: dict[Phi, list[Phi]] = {}
        for block in function.blocks:
            for instr in block.instrs:
                if instr.op is ops.stack and self.is_stack(instr.type):
                    self.parts[instr] = tuple(
                        Instr(ops.stack, (), kind, f"{instr.hint}_{n}", instr.loc)
                        for n, kind in enumerate(self.kinds(instr.type))
                    )
            for phi in [phi for phi in block.phis if self.is_stack(phi.type)]:
                merges[phi] = [Phi(kind, f"{phi.hint}_{n}", phi.loc) for n, kind in enumerate(self.kinds(phi.type))]
                self.parts[phi] = tuple(merges[phi])
                block.phis.remove(phi)
                block.phis += merges[phi]
        rewrite(function, self.change)
        for block, end in function.returns():
            items = items_of(end.args[0])
            if any(self.is_stack(item.type) for item in items):
                end.args = (Builder(block).pack(self.expanded(items)),)
        for phi, made in merges.items():
            for number, part in enumerate(made):
                part.incoming = {pred: self.parts_of(operand)[number] for pred, operand in phi.incoming.items()}

    def change(self, b: Builder, instr: Instr) -> Operand | None:
        """Append the replacement of an instruction; return the operand that replaces an item of a split tuple."""
        b.loc = instr.loc
        match instr:
            case Instr(op=ops.stack) if instr in self.parts:
                b.block.instrs += [each for each in self.parts[instr] if isinstance(each, Instr)]
            case Instr(op=ops.push, args=(stack, item)) if self.is_stack(stack.type):
                for number, each in enumerate(self.parts_of(stack)):
                    value = (
                        self.parts_of(item)[number] if self.is_stack(item.type) else Builder(b.block).item(item, number)
                    )
                    b.call(ops.push, each, value, type=types.none)
            case Instr(op=ops.pop, args=(stack,)) if self.is_stack(stack.type):
                (self.parts if self.is_stack(instr.type) else self.popped)[instr] = tuple(
                    b.call(ops.pop, each, type=each.type.dtype, hint=f"{instr.hint}_{n}")  # type: ignore[attr-defined]
                    for n, each in enumerate(self.parts_of(stack))
                )
            case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in self.popped:
                return self.popped[whole][number]
            case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(number)))) if whole in self.returned:
                start = sum(len(self.kinds(kind)) for kind in self.returned[whole][:number])
                taken = self.taken(b, whole, range(start, start + len(self.kinds(instr.type))), instr.hint)
                if not self.is_stack(instr.type):
                    return taken[0]
                self.parts[instr] = taken
            case Instr(op=ops.copied, args=(stack,)) if self.is_stack(stack.type):
                b.loc = None
                self.parts[instr] = tuple(
                    b.call(ops.copied, each, type=each.type, hint=getattr(each, "hint", ""))
                    for each in self.parts_of(stack)
                )
            case Instr(op=ops.pack, args=args) if any(self.is_stack(arg.type) for arg in args):
                b.add(instr)  # it is dead: the tuple is pushed or returned, and is split there
            case Instr(op=Routine()):
                instr.args = self.expanded(instr.args)
                kinds = components_of(instr.type) if isinstance(instr.type, types.BaseTuple) else (instr.type,)
                if not any(map(self.is_stack, kinds)):
                    b.add(instr)
                    return None
                together = types.Tuple(tuple(new for kind in kinds for new in self.kinds(kind)))
                if isinstance(instr.type, types.BaseTuple):
                    self.returned[instr] = kinds
                    instr.type = together
                    b.add(instr)
                else:
                    call = b.call(instr.op, *instr.args, type=together, hint=instr.hint)
                    self.parts[instr] = self.taken(b, call, range(len(together)), instr.hint)
            case _:
                b.add(instr)
        return None

    def is_stack(self, kind: Type) -> bool:
        """Return whether this is a stack that is split now."""
        return _depth(kind) == self.depth

    def kinds(self, kind: Type) -> tuple[Type, ...]:
        return _kinds(kind, self.depth)

    def expanded(self, args: Iterable[Operand]) -> tuple[Operand, ...]:
        """Return the operands, with each stack replaced by its parts."""
        return tuple(new for arg in args for new in (self.parts_of(arg) if self.is_stack(arg.type) else (arg,)))

    def parts_of(self, stack: Operand) -> tuple[Operand, ...]:
        """Return the parts of a stack."""
        if isinstance(stack, Undef):
            return tuple(map(Undef, self.kinds(stack.type)))
        if not isinstance(stack, Value) or stack not in self.parts:
            raise InternalError("split_stacks: a stack of tuples that is neither made, passed nor merged")
        return self.parts[stack]

    def taken(self, b: Builder, whole: Value, numbers: range, hint: str) -> tuple[Operand, ...]:
        """Return items of the result of a routine."""
        b.loc = None
        return tuple(b.item(whole, number, hint) for number in numbers)
