"""Remove loops that only count, and loops that never run.

    b0:  jump b1                                b0:  jump b3
    b1:  %i = phi b0: 0, b2: %i2
         %c = lt %i, %n                 ->
         branch %c, b2, b3
    b2:  %i2 = add %i, 1
         jump b1
    b3:  ...                                    b3:  ...

Such loops remain where their results turn out to be unused. A loop that does not count may not terminate and is kept,
unless its test fails the first time, as that of `while k < 0` does after `k = 0`. (Numba prunes such a loop too, and
then cannot infer the types of lists that only the loop appends to.)
"""

from __future__ import annotations

from zygote_py.ir import ops
from zygote_py.ir.analysis import Loop, counted, effect, loop_nest
from zygote_py.ir.building.cfg import drop_unreachable
from zygote_py.ir.core import Branch, Const, Function, Instr, Jump, Operand, Phi
from zygote_py.ir.passes.cleanup.dead_code import can_raise
from zygote_py.ir.walks import uses


def remove_dead_loops(function: Function) -> None:
    """Bypass loops that never run, and those that only count and define nothing that is used later."""
    for loop in loop_nest(function).loops:
        if _never_runs(loop):
            _bypass(loop)
    drop_unreachable(function)
    candidates = [loop for loop in loop_nest(function).loops if _does_nothing(loop, function)]
    used = uses(function) if candidates else {}
    for loop in candidates:
        if all(use.block in loop and use.at in loop for value in loop.values for use in used.get(value, ())):
            _bypass(loop)
    drop_unreachable(function)


def _bypass(loop: Loop) -> None:
    ((_, after),) = loop.exits
    loop.header.terminator = Jump(after)


def _does_nothing(loop: Loop, function: Function) -> bool:
    if loop.raising_exits or any(counted(each, function) is None for each in (loop, *_inside(loop))):
        return False
    python_errors = function.options.get("error_model", "python") == "python"
    return all(
        effect(instr) is not ops.Effect.WRITE and not (python_errors and can_raise(instr))
        for block in loop.order
        for instr in block.instrs
    )


def _inside(loop: Loop) -> list[Loop]:
    return [found for child in loop.children for found in (child, *_inside(child))]


def _never_runs(loop: Loop) -> bool:
    """Return whether the test in the header fails when the loop is entered."""
    branch = loop.header.terminator
    if len(loop.exits) != 1 or loop.exits[0][0] is not loop.header or not isinstance(branch, Branch):
        return False
    goes_on = _at_entry(branch.condition, loop)
    return goes_on is not None and bool(goes_on) is (branch.then not in loop)


def _at_entry(operand: Operand, loop: Loop) -> object:
    """Return the constant value of a header operand on entry to the loop; None if it is not known."""
    match operand:
        case Const(value) | Instr(op=ops.const, args=(Const(value),)):
            return value
        case Phi() if operand in loop.header.phis and len(loop.entering) == 1:
            start = operand.incoming[loop.entering[0]]
            return None if isinstance(start, Phi) else _at_entry(start, loop)
        case Instr() if ops.of(operand.op).truth:
            values = [_at_entry(arg, loop) for arg in operand.args]
            return None if any(value is None for value in values) else operand.op(*values)
    return None
