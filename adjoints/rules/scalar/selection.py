"""The rules of functions with kinks or steps: absolute value, extrema, selection, rounding.

    rule(np.abs, x="sign(x) * dy")

At a tie the built-in `min` and `max` give the whole adjoint to the argument that they return, `np.minimum` and
`np.maximum` half to each, as PyTorch and JAX do. A selection never multiplies the adjoint by zero: what is not selected
gets 0 even when the adjoint is infinite. docs/kinks.md has the table.
"""

from __future__ import annotations

import cmath
import math

import numpy as np

from zygote_py.adjoints.rules.formulas.rule import Rule, flat, rule, structural
from zygote_py.ir import Instr, ops

rule(abs, math.fabs, np.absolute, np.fabs, x="sign(x) * dy")
rule(math.copysign, np.copysign, a="(sign(a) * copysign(1, b)) * dy", b=None)

# In the form that gives a NaN's adjoint to both arguments.
rule(
    np.maximum,
    a="0.0 if a < b else (0.5 * dy if a == b else dy)",
    b="0.0 if b < a else (0.5 * dy if a == b else dy)",
)
rule(
    np.minimum,
    a="0.0 if a > b else (0.5 * dy if a == b else dy)",
    b="0.0 if b > a else (0.5 * dy if a == b else dy)",
)
# fmax and fmin return the other argument for a NaN.
rule(
    np.fmax,
    a="dy if (a > b) | isnan(b) else (0.5 * dy if a == b else 0.0)",
    b="dy if (b > a) | isnan(a) else (0.5 * dy if a == b else 0.0)",
)
rule(
    np.fmin,
    a="dy if (a < b) | isnan(b) else (0.5 * dy if a == b else 0.0)",
    b="dy if (b < a) | isnan(a) else (0.5 * dy if a == b else 0.0)",
)
rule(
    np.clip,
    x="0.0 if (x < low) | (x > high) else dy",
    low="dy if (x < low) & (low <= high) else 0.0",
    high="dy if (x > high) | (low > high) else 0.0",
)

rule(ops.select, np.where, c=None, a="dy if c else 0.0", b="0.0 if c else dy")

flat(ops.stop)
flat(np.sign, np.signbit, np.angle)
flat(round, np.round, np.around, math.floor, math.ceil, math.trunc, np.floor, np.ceil, np.trunc, np.rint)
flat(cmath.isnan, cmath.isinf, cmath.isfinite)
flat(math.isnan, math.isinf, math.isfinite, np.isnan, np.isinf, np.isfinite, np.isneginf, np.isposinf)


@structural(np.nan_to_num)
def nan_to_num(instr: Instr) -> Rule | None:
    """`nan_to_num(x, copy, nan)`, by position or by keyword: constant where x is not finite."""
    positional = len(instr.args) - len(instr.keywords)
    names = (*("x", "copy", "nan")[:positional], *instr.keywords)
    if len(names) != len(instr.args):
        return None
    adjoints = {"x": "dy if isfinite(x) else 0.0", "nan": "dy if isnan(x) else 0.0"}
    return Rule(names, tuple(map(adjoints.get, names)))


def _extremum(instr: Instr, beats: str) -> Rule | None:
    """Return the rule of `max` or `min` of several scalars: later ones replace an equal one only if they beat it.

    A NaN is the result, and gets the adjoint, only if it comes first.
    """
    names = tuple(f"x{k}" for k in range(len(instr.args)))
    match names:
        case (x,):
            return Rule((x,), ("dy",))
        case (a, b):
            return Rule(names, (f"0.0 if {b} {beats} {a} else dy", f"dy if {b} {beats} {a} else 0.0"))
    first = f"0.0 if y {beats} x0 else dy"
    firsts = (" & ".join([f"(y == x{k})", *(f"(y != x{j})" for j in range(k))]) for k in range(1, len(names)))
    return Rule(names, (first, *(f"dy if {condition} else 0.0" for condition in firsts)))


structural(max)(lambda instr: _extremum(instr, ">"))
structural(min)(lambda instr: _extremum(instr, "<"))
