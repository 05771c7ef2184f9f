"""Assignments to captured variables, as the bytecode has them: Numba may have dropped some from its IR.

y = x
g = lambda v: v * y         # dropped_after(code of all this, code of g, "y", 1): True
s = g(1.0)
y = 3.0 * x                 # nothing reads it but `g`, which Numba does not take into account when it inlines
return s + g(1.0)
"""

from __future__ import annotations

import dis
import inspect
from typing import Any


def dropped_after(owner: Any, inner: Any, name: str, known: int) -> bool:
    """Whether an assignment to a variable is missing that may follow on the making of an inner function.

    `owner` is the code of the function whose variable `name` is, `inner` that of the inner function, and `known` says
    how many assignments there are in the IR, that of an argument included.
    """
    instructions = list(dis.get_instructions(owner))
    made = min(
        (each.offset for each in instructions if inspect.iscode(each.argval) and each.argval == inner), default=0
    )
    jumps = [each for each in instructions if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs]
    in_loop = any(each.argval <= made < each.offset for each in jumps)
    stores = [each.offset for each in instructions if each.opname == "STORE_DEREF" and each.argval == name]
    if not in_loop and not any(offset > made for offset in stores):
        return False
    count = owner.co_argcount + owner.co_kwonlyargcount + bool(owner.co_flags & inspect.CO_VARARGS)
    return known < len(stores) + (name in owner.co_varnames[:count])
