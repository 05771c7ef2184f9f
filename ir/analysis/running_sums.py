"""Numbers that the iterations of a loop add to: `total += x[i]`, in any of its blocks."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from zygote_py.ir.analysis.loops import Loop
from zygote_py.ir.core import Instr, Phi, Value
from zygote_py.ir.walks import Use

_SUMS = (operator.add, operator.sub)


def running_sum(loop: Loop, phi: Phi, used: Mapping[Value, Sequence[Use]]) -> dict[Phi | Instr, None] | None:
    """Return the phis and additions of the sum that a phi of the header stands for; None if it is another value.

    Within the loop nothing else uses them, and after it the phi alone is used.
    """
    members: dict[Phi | Instr, None] = {phi: None}
    pending: list[Phi | Instr] = [phi]
    while pending:
        each = pending.pop()
        for use in used.get(each, ()):
            user = use.user
            if use.block not in loop:
                if each is not phi:
                    return None
                continue
            is_sum = isinstance(user, Phi) or (
                isinstance(user, Instr)
                and user.op in _SUMS
                and user.type == phi.type
                and (user.args[0] is each) != (user.op is operator.add and user.args[1] is each)
            )
            if not is_sum:
                return None
            assert isinstance(user, Phi | Instr)
            if user not in members:
                members[user] = None
                pending.append(user)
    for member in members:
        operands = [each in members for each in member.args]
        if isinstance(member, Phi) and member is not phi and not all(operands):
            return None
        if isinstance(member, Instr) and sum(operands) != 1:
            return None
        if any(each.type != phi.type for each in member.args):
            return None
    return members if phi.incoming[loop.latches[0]] in members else None
