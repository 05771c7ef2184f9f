"""The tangents of operations on whole arrays whose rules give them directly.

    %y = dot %a, %b : f64[:, :]                 %y = dot %a, %b : f64[:, :]
                                      ->        %ty = dot %ta, %b : f64[:, :]
                                                %t = dot %a, %tb : f64[:, :]
                                                accumulate %ty, %t
    %z = np.linalg.inv %y : f64[:, :]F          %z = np.linalg.inv %y : f64[:, :]F
                                                %tz = inv_tangent %z, %ty : f64[:, :]F

There are no terms for arguments that are not active. Other rules are transposed (`transposed.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

from numba import types

from zygote_py.adjoints.analysis import is_array, is_number
from zygote_py.adjoints.rules.formulas.opaque import OpaqueRule, OpaqueTangent
from zygote_py.ir import Builder, Instr, Operand, ops, writable, zero

_ADD: ops.Op = operator.add


def direct_tangents(
    b: Builder, instr: Instr, rule: OpaqueRule, items: Mapping[int, Instr], changes: Mapping[int, Operand]
) -> dict[int, Operand]:
    """Return the tangents of the results (`items`, or the only one as 0) for tangents of arguments, by index."""
    found: dict[int, Operand] = {}
    for place, item in items.items():
        if not (is_number(item.type) or is_array(item.type)):
            continue
        hint = f"t{item.hint}" if item.hint else ""
        total: Operand | None = None
        for term in _terms(b, instr, rule, items, changes, place):
            if total is None:
                total = term
            elif is_array(item.type):
                b.accumulate(total, term)
            else:
                total = b.call(_ADD, total, term, type=item.type)
        if isinstance(total, Instr):
            total.hint = hint
        elif total is None:
            total = b.zeros_like(item, hint) if is_array(item.type) else zero(item.type)
        found[place] = total
    return found


def _terms(
    b: Builder,
    instr: Instr,
    rule: OpaqueRule,
    items: Mapping[int, Instr],
    changes: Mapping[int, Operand],
    place: int,
) -> list[Operand]:
    """Append the terms of the tangent of one result: one for all of the active arguments, or one for each of them."""
    kind = writable(items[place].type)
    known = dict(zip(rule.names, instr.args, strict=False))
    known |= {f"t{rule.names[number]}": change for number, change in changes.items()}
    if isinstance(instr.type, types.BaseTuple):
        known |= {f"y{number}": item for number, item in items.items()}
    else:
        known["y"] = items[place]
    own = {tangent.active: tangent for tangent in rule.tangents if tangent.result == place}

    def given(tangent: OpaqueTangent) -> Operand:
        return b.call(tangent.function, *(known[name] for name in tangent.needs), type=kind)

    def alone(number: int) -> Operand:
        args = [changes[number] if n == number else arg for n, arg in enumerate(instr.args)]
        return b.call(instr.op, *args, type=kind, keywords=instr.keywords)

    together = own.get(frozenset(changes))
    if together is not None:
        return [given(together)]
    return [
        alone(number) if number in rule.linear else given(own[frozenset({number})])
        for number in changes
        if number in rule.linear or frozenset({number}) in own
    ]
