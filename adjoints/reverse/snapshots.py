"""Copies of the contents of arrays that the reverse sweep needs whole and that may be overwritten before it.

    %y = np.dot %a, %x : f64[:]                 %x_kept = np.copy %x : f64[:]
    setitem %x, 0.0, 0                  ->      %y = np.dot %a, %x : f64[:]
                                                setitem %x, 0.0, 0

Single elements need no copy: an element that was read is saved as a number, if necessary (see `stored/plan.py`).
"""

from __future__ import annotations

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import Activity
from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.ir import Function, Instr, Memory, Operand, Value, items_read

Kept = dict[tuple[Value, Value], Value]


def keep_contents(function: Function, activity: Activity) -> Kept:
    """Add the copies to a primal; return a map from each operation and array it needs later to the copy."""
    memory = Memory(function)
    kept: Kept = {}
    before: dict[Value, list[Instr]] = {}
    behind: dict[Value, list[Instr]] = {}
    for block in function.blocks:
        for instr in block.instrs:
            for operand, made_by in _needed(instr, activity, function):
                if (instr, operand) in kept or not memory.may_be_written_after(made_by or instr, (operand,)):
                    continue
                assert isinstance(operand.type, types.Array)
                kind = operand.type.copy(layout="C", readonly=False)
                copy = Instr(np.copy, (operand,), kind, f"{operand.hint or 't'}_kept", instr.loc)
                kept[instr, operand] = copy
                copies = before.setdefault(instr, []) if made_by is None else behind.setdefault(made_by, [])
                copies.append(copy)
    for block in function.blocks:
        block.instrs = [new for old in block.instrs for new in (*before.get(old, ()), old, *behind.get(old, ()))]
    return kept


def _needed(instr: Instr, activity: Activity, function: Function) -> list[tuple[Value, Instr | None]]:
    """Return the arrays that the pullback of an operation needs: arguments, and results with their definitions."""
    rule = opaque_for(instr)
    if rule is None:
        return []
    names = rule.needed([number for number in rule.adjoints if instr.args[number] in activity])
    found: list[tuple[Operand, Instr | None]] = [
        (argument, None) for name, argument in zip(rule.names, instr.args, strict=False) if name in names
    ]
    if "y" in names:
        found.append((instr, instr))
    found += [(user, user) for number, user in items_read(function, instr).items() if f"y{number}" in names]
    return [(v, by) for v, by in found if isinstance(v, Value) and isinstance(v.type, types.Array)]
