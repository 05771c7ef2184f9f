"""Whether a variable is assigned between two places of a function, in Numba's IR and in the bytecode.

    is_reached(blocks, made, assigned, used)        # made ... assigned ... used, and not made again in between

Numba may have dropped assignments to captured variables from its IR, which the bytecode has:

    y = x
    g = lambda v: v * y         # dropped_after(code of all this, code of g, "y", 1): True
    s = g(1.0)
    y = 3.0 * x                 # nothing reads it but `g`, which Numba does not take into account when it inlines
    return s + g(1.0)
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Collection, Mapping
from typing import Any

from zygote_py.numba_adapter.numba_ir import Place


def is_reached(blocks: Mapping[int, Any], start: Place, through: Collection[Place], ends: Collection[Place]) -> bool:
    """Whether control may come from `start` to one of `ends`, through one of `through` and not again by `start`.

    A statement may be both: it is an end first, as it reads before it assigns.
    """
    passing, ending = frozenset(through), frozenset(ends)
    seen: set[tuple[int, bool]] = set()
    pending = [(start.label, start.number + 1, False)]
    while pending:
        label, first, passed = pending.pop()
        for number in range(first, len(blocks[label].body)):
            place = Place(label, number)
            if place == start:
                break
            if passed and place in ending:
                return True
            passed = passed or place in passing
        else:
            for successor in blocks[label].terminator.get_targets():
                if (successor, passed) not in seen:
                    seen.add((successor, passed))
                    pending.append((successor, 0, passed))
    return False


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
