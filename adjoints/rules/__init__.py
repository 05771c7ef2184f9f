"""The rules: the contribution of each callable to the adjoint of each of its inputs.

    rule = rule_for(instr)                             None: the callable has no rule
    rule.adjoints[k]                                   the expression for argument k; None: no gradient flows there
    uses(rule, k)                                      the arguments, and `y`, that it reads
    expand(rule, k, instr, dy, emit, alpha)            its instructions

A callable without derivative by nature (a comparison, `floor`, `int`) has a rule whose adjoints are all None. Only
scalars, real and complex, have rules here; arrays do not.
"""

from __future__ import annotations

from numba import types

from zygote_py.adjoints.rules.arrays import (
    linalg,  # noqa: F401 (they fill the tables)
    products,  # noqa: F401 (they fill the tables)
    spectra,  # noqa: F401 (they fill the tables)
)
from zygote_py.adjoints.rules.formulas.expand import expand, push_forward
from zygote_py.adjoints.rules.formulas.rule import ROWS, STRUCTURAL, Rule, uses
from zygote_py.adjoints.rules.scalar import (
    functions,  # noqa: F401 (they fill the tables)
    selection,  # noqa: F401 (they fill the tables)
)
from zygote_py.adjoints.rules.scalar.complex import complex_row, has_complex
from zygote_py.adjoints.rules.scalar.scipy_special import rule_of
from zygote_py.ir import Instr, Special, is_scalar

__all__ = ["Rule", "expand", "push_forward", "rule_for", "uses"]


def rule_for(instr: Instr) -> Rule | None:
    """Return the rule of an instruction, by its callable, its arguments and their types; None if there is none.

    Only float and complex arguments have adjoints, and only those of an instruction whose result is such a number.
    """
    found = _row(instr)
    if found is None:
        return None
    if not isinstance(instr.type, _CONTINUOUS):
        adjoints: tuple[str | None, ...] = (None,) * len(instr.args)
        return Rule(found.names, adjoints) if _is_flat(instr) else None
    if not all(is_scalar(arg.type) for arg in instr.args):
        return None
    kept = zip(found.adjoints, instr.args, strict=True)
    return Rule(found.names, tuple(text if isinstance(arg.type, _CONTINUOUS) else None for text, arg in kept))


_CONTINUOUS = (types.Float, types.Complex)


def _row(instr: Instr) -> Rule | None:
    if isinstance(instr.type, _CONTINUOUS) and has_complex(instr):
        return complex_row(instr)
    if instr.op in STRUCTURAL:
        return STRUCTURAL[instr.op](instr)
    if isinstance(instr.op, Special):
        found = rule_of(instr.op.__name__)
        return found if found is not None and len(found.names) == len(instr.args) else None
    rows = ROWS.get(instr.op, [])
    return next((row for row in rows if len(row.names) == len(instr.args)), None)


def _is_flat(instr: Instr) -> bool:
    """Return whether the result is of a type that carries no derivative."""
    return isinstance(instr.type, types.Integer | types.Boolean)
