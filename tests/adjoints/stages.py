"""Runs the stages up to the joint function, for the tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass

from numba import typeof

from zygote_py.adjoints import Prepared, add_shadows, join, keep_contents, make_adjoint
from zygote_py.adjoints.analysis import Activity, Summaries, expose_leaves, find_active, find_left_out
from zygote_py.frontend import lower
from zygote_py.ir import Function, Instr, ops, passes, verify


@dataclass(frozen=True)
class Stages:
    primal: Function
    activity: Activity
    adjoint: Function
    joint: Function

    def count(self, op, function=None):
        """How many instructions of the joint function call `op`."""
        blocks = (function or self.joint).blocks
        return sum(isinstance(i, Instr) and i.op is op for block in blocks for i in block.instrs)

    @property
    def records(self):
        return self.count(ops.record)

    @property
    def stacks(self):
        return self.count(ops.stack)


def stages(func, *args, wrt=None) -> Stages:
    """All stages for the types of `args`, each verified."""
    primal = lower(func, tuple(map(typeof, args))).function
    passes.run(primal, passes.CLEAN_UP)
    passes.run(primal, (*passes.CANONICAL, passes.recognise_accumulations))
    numbers = tuple(range(len(args))) if wrt is None else wrt
    asked = [primal.params[number] for number in numbers]
    parts = expose_leaves(primal, asked)
    activity = find_active(primal, asked, parts)
    left_out = find_left_out(primal, activity, Summaries())
    kept = keep_contents(primal, activity)
    shadows = add_shadows(primal, activity)
    verify(primal)
    adjoint = make_adjoint(Prepared(primal, activity, shadows, parts, kept, left_out=left_out))
    verify(adjoint)
    joint = join(adjoint, shadows, numbers, unwrap_single=False, with_value=False)
    verify(joint)
    passes.run(joint, passes.CLEAN_UP)
    return Stages(primal, activity, adjoint, joint)
