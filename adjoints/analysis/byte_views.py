"""Views of numbers as numbers of a different type, and which of them are differentiable.

    z.view(np.float64)              of complex128: the same real numbers, so its shadow is the same view
    x.view(np.int64)                no derivative, as for all integers
    k.view(np.float64)              correct if nothing in `k` is computed from the bytes of active numbers
    x.view(np.float32)              refused, if it is active

A value computed from the bytes of active numbers may contain them, however it was computed: it is *tainted*, and must
not be viewed as floating-point numbers again, nor written to their memory as bytes. Information that passes through
control flow does not count.

The arguments of a routine are assumed to be untainted: the caller checks that, if the routine views bytes as floats.
"""

from __future__ import annotations

from collections.abc import Collection
from weakref import WeakKeyDictionary

from numba import types

from zygote_py.adjoints.analysis.flows import Flows
from zygote_py.adjoints.analysis.kinds import carries_adjoint
from zygote_py.adjoints.errors import refuse
from zygote_py.ir import (
    Function,
    Instr,
    Memory,
    Operand,
    Param,
    Phi,
    Routine,
    Type,
    Value,
    components_of,
    has_memory,
    is_fresh,
    is_view,
    ops,
    routines_of,
    writes,
)
from zygote_py.ir.lazy_dataclass import dataclass

_HINT = "compute it from the numbers themselves, or take the bytes of `stop_gradient(x)`, which have no derivative"
_known: WeakKeyDictionary[Routine, _Views] = WeakKeyDictionary()


def is_exact(view: Instr) -> bool:
    """Return whether a view shows the same real numbers, complex ones as two: its derivative is the same view."""
    return _precision(view.type) is not None and _precision(view.type) == _precision(view.args[0].type)


def _precision(type: Type) -> Type | None:
    """Return the real type of the elements of an array or of a number; None for integers and booleans."""
    element: Type = getattr(type, "dtype", type)
    if isinstance(element, types.Complex):
        return element.underlying_float
    return element if isinstance(element, types.Float) else None


@dataclass(frozen=True)
class _Views:
    """The reinterpreting views in a routine and the routines that it may call."""

    shows: bool  # views numbers as a different type
    makes: bool  # views bytes as floating-point numbers


def _views_of(routine: Routine) -> _Views:
    if routine in _known:
        return _known[routine]
    functions = [each.function for each in (routine, *routines_of(routine.function))]
    instrs = [instr for function in functions for instr in function.instrs()]
    inexact = [instr for instr in instrs if instr.op is ops.view and not is_exact(instr)]
    writes_unknown = not all(_is_original(target) for instr in instrs for target in _written(instr))
    found = _Views(bool(inexact), any(map(_is_real, inexact)) or (bool(inexact) and writes_unknown))
    if all(function.blocks for function in functions):  # one under construction has none yet
        _known[routine] = found
    return found


def check_views(
    function: Function, memory: Memory, flows: Flows, varied: Collection[Value], nodes: Collection[Value]
) -> None:
    """Raise DifferentiationError where active numbers would be reinterpreted through their bytes.

    `varied` are the nodes that depend on a differentiated input, `nodes` the active ones among them.
    """
    views: list[Instr] = []
    calls: list[Instr] = []
    for instr in function.instrs():
        if instr.op is ops.view and not is_exact(instr):
            views.append(instr)
        elif isinstance(instr.op, Routine) and _views_of(instr.op).shows:
            calls.append(instr)
    if not views and not calls:
        return
    taint = _Taint(function, memory, flows, varied, views)
    for view in views:
        if flows.node(view) in nodes or (_is_real(view) and taint.holds(view.args[0])):
            raise _refused(view)
    for call in calls:
        assert isinstance(call.op, Routine)
        if _views_of(call.op).makes and any(map(taint.holds, call.args)):
            raise refuse(
                f"`{call.op.__name__}` views numbers as others, and is passed what was computed from the bytes of "
                "numbers that carry a derivative",
                call.loc,
                _HINT,
                call.op.__name__,
            )
    mixed = [view for view in views if _is_real(view) or _is_real(view.args[0])]
    _check_writes(function, memory, taint, [*mixed, *calls])


def _is_real(operand: Operand) -> bool:
    """Return whether this is a floating-point number, or an array of such numbers."""
    return _precision(operand.type) is not None


def _refused(view: Instr) -> Exception:
    (source,) = view.args
    viewed = f"{source.type} viewed as {view.type}"
    own, held = "have no derivative, and one is required here", "may hold the bytes of numbers that carry a derivative"
    return refuse(f"the bytes of {viewed} {own}" if _is_real(source) else f"{viewed} {held}", view.loc, _HINT, "view")


class _Taint:
    """The values that may have been computed from the bytes of active numbers."""

    def __init__(
        self, function: Function, memory: Memory, flows: Flows, varied: Collection[Value], views: Collection[Instr]
    ) -> None:
        self._memory = memory
        self._varied = varied
        self._flows = flows
        # Memory whose bytes are visible: integers read from it are tainted, floats are not.
        self._seen_as_bytes = {root for view in views if (root := memory.root(view)) is not None and root in varied}
        self._found: set[Value] = set()
        before = -1
        while len(self._found) > before:
            before = len(self._found)
            for value in function.values():
                self._follow(value)

    def holds(self, operand: Operand) -> bool:
        """Return whether a value, or an element read from it, is tainted."""
        if not isinstance(operand, Value):
            return False
        root = self._memory.root(operand)
        if root is None:
            return operand in self._found
        return root in self._found or (root in self._seen_as_bytes and _may_show_bytes(operand.type))

    def varies(self, operand: Operand) -> bool:
        """Return whether a value, or the memory it reaches, depends on a differentiated input."""
        return isinstance(operand, Value) and (self._memory.root(operand) or operand) in self._varied

    def _follow(self, value: Value) -> None:
        handle = isinstance(value, Instr) and (is_view(value) or value.op is ops.dim)
        if handle or not self._comes_from_bytes(value):
            return
        for target in (value, *(writes(value) if isinstance(value, Instr) else ())):
            if isinstance(target, Value):
                self._found.add(self._memory.root(target) or target)

    def _comes_from_bytes(self, value: Value) -> bool:
        taken = value.args
        if isinstance(value, Phi) and has_memory(value.type):
            return False  # shares a root with all its operands
        match value:
            case Instr(op=ops.view, args=(number,)) if not has_memory(value.type):
                return self.holds(number) or (self._flows.node(number) in self._varied and not is_exact(value))
            case Instr(op=Routine() as routine) if _views_of(routine).shows and any(map(self.varies, taken)):
                return True
        return any(map(self.holds, taken))


def _may_show_bytes(type: Type) -> bool:
    """Return whether a value of this type may reach memory as integers."""
    if isinstance(type, types.BaseTuple):
        return any(_may_show_bytes(item) for item in components_of(type) if has_memory(item))
    return not carries_adjoint(type)


def _check_writes(function: Function, memory: Memory, taint: _Taint, makers: Collection[Instr]) -> None:
    """Refuse writes of the bytes of active numbers through a reinterpreting view."""
    roots = {memory.root(made) for made in makers if has_memory(made.type)}
    for instr in function.instrs():
        for target in _written(instr):
            root = memory.root(target)
            if root in roots and (taint.varies(target) or taint.holds(target)) and not _is_original(target):
                raise refuse(
                    f"this writes to memory that is viewed as {target.type} and as numbers that carry a derivative",
                    instr.loc,
                    "write to the array itself, or to a copy of the view: `x.view(t).copy()`",
                )


def _written(instr: Instr) -> tuple[Operand, ...]:
    """Return the arrays an instruction writes numbers to: appending to a list leaves the numbers in it unchanged."""
    targets = writes(instr)
    if isinstance(instr.op, Routine):
        return targets
    return tuple(target for target in targets if isinstance(target.type, types.Array))


def _is_original(target: Operand) -> bool:
    """Return whether an array is certainly not a view of other numbers."""
    pending, seen = [target], set[Operand]()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        match each:
            case Param():
                pass
            case Phi():
                pending += each.incoming.values()
            case Instr(op=ops.view) if not is_exact(each):
                return False
            case Instr() if is_view(each):
                pending.append(each.args[0])
            case Instr(op=ops.getitem, args=(Param(type=types.BaseTuple()), _)):
                pass
            case Instr() if is_fresh(each):
                pass
            case _:
                return False
    return True
