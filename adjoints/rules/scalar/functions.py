"""The rules of the elementary and special functions of `math` and NumPy.

    rule(math.sin, np.sin, x="cos(x) * dy")

The forms are chosen to neither cancel nor overflow where the derivative itself does not; docs/kinks.md lists their
values at poles and branch points.
"""

from __future__ import annotations

import math

import numpy as np

from zygote_py.adjoints.rules.formulas.rule import Rule, row, rule, structural
from zygote_py.adjoints.rules.helpers import special
from zygote_py.adjoints.rules.scalar.arithmetic import constant_value
from zygote_py.ir import Instr, ops

LN2 = math.log(2.0)
LOG2_E = math.log2(math.e)
LOG10_E = math.log10(math.e)
TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)

rule(math.sin, np.sin, ops.fast_sin, x="cos(x) * dy")
rule(math.cos, np.cos, ops.fast_cos, x="-(sin(x) * dy)")
rule(math.tan, np.tan, ops.fast_tan, x="(1 + y * y) * dy")
rule(math.asin, np.arcsin, x="dy / sqrt((1 - x) * (1 + x))")
rule(math.acos, np.arccos, x="-(dy / sqrt((1 - x) * (1 + x)))")
rule(math.atan, np.arctan, x="dy / (1 + x * x)")
# At the origin these are 0. Two divisions by the radius: its square would overflow and underflow.
_RADIUS = "(1.0 if hypot(a, b) == 0 else hypot(a, b))"
rule(math.atan2, np.arctan2, a=f"(b / {_RADIUS} / {_RADIUS}) * dy", b=f"-((a / {_RADIUS} / {_RADIUS}) * dy)")
rule(math.hypot, np.hypot, a="(a / (1.0 if y == 0 else y)) * dy", b="(b / (1.0 if y == 0 else y)) * dy")

rule(math.sinh, np.sinh, x="cosh(x) * dy")
rule(math.cosh, np.cosh, x="sinh(x) * dy")
rule(math.tanh, np.tanh, x="(1 - y * y) * dy")
rule(math.asinh, np.arcsinh, x="dy / hypot(x, 1)")
rule(math.acosh, np.arccosh, x="dy / (sqrt(x - 1) * sqrt(x + 1))")
rule(math.atanh, np.arctanh, x="dy / ((1 - x) * (1 + x))")

rule(math.exp, np.exp, ops.fast_exp, x="y * dy")
rule(math.exp2, np.exp2, x=f"({LN2} * y) * dy")
rule(math.expm1, np.expm1, x="(y + 1) * dy")
rule(math.log, np.log, ops.fast_log, x="dy / x")
rule(math.log2, np.log2, ops.fast_log2, x=f"{LOG2_E} * (dy / x)")
rule(math.log10, np.log10, ops.fast_log10, x=f"{LOG10_E} * (dy / x)")
rule(ops.fast_exp10, x=f"({math.log(10.0)} * y) * dy")
rule(math.log1p, np.log1p, x="dy / (1 + x)")
# Of the difference: exp(a - y) loses the digits that y has before the point, and is 1 for both of large a = b. That of
# two infinite ones is taken for 0; of two finite ones, which may be equal, it has a derivative.
rule(
    np.logaddexp,
    a="dy / (1 + exp(0.0 if (a == b) & isinf(a) else b - a))",
    b="dy / (1 + exp(0.0 if (a == b) & isinf(a) else a - b))",
)
rule(
    np.logaddexp2,
    a="dy / (1 + exp2(0.0 if (a == b) & isinf(a) else b - a))",
    b="dy / (1 + exp2(0.0 if (a == b) & isinf(a) else a - b))",
)

rule(math.sqrt, np.sqrt, x="(0.5 / y) * dy")
rule(np.cbrt, x="dy / (3 * (y * y))")

rule(math.degrees, np.degrees, np.rad2deg, x=f"{180.0 / math.pi} * dy")
rule(math.radians, np.radians, np.deg2rad, x=f"{math.pi / 180.0} * dy")
rule(math.ldexp, np.ldexp, x="ldexp(dy, i)", i=None)


def sinc(far: str) -> str:
    """Return the derivative of sin(pi x) / (pi x): by its series near 0, where cos(pi x) - y cancels.

    The series is the sum of (-1)^k 2k pi^2k x^(2k-1) / (2k+1)!, in Horner's form.
    """
    near = "(x if abs(x) < 0.3 else 0.0)"  # far from 0 the series would overflow, for nothing
    series = "0.0"
    for k in range(9, 0, -1):
        coefficient = (-1) ** k * 2 * k * math.pi ** (2 * k) / math.factorial(2 * k + 1)
        series = f"({series} * ({near} * {near}) + {coefficient})" if k < 9 else f"{coefficient}"
    return f"({series} * {near} if abs(x) < 0.3 else {far}) * dy"


# The argument of the cosine is reduced before it is multiplied by pi.
rule(np.sinc, x=sinc(f"(cos({math.pi} * (x - 2 * rint(0.5 * x))) - y) / (1.0 if abs(x) < 0.3 else x)"))

rule(math.gamma, x="(y * digamma(x)) * dy")
rule(math.lgamma, x="digamma(x) * dy")
rule(special.digamma, x="polygamma(1, x) * dy")
rule(math.erf, x=f"({TWO_OVER_SQRT_PI} * exp(-(x * x))) * dy")
rule(math.erfc, x=f"-(({TWO_OVER_SQRT_PI} * exp(-(x * x))) * dy)")


@structural(special.polygamma)
def polygamma(instr: Instr) -> Rule | None:
    """Return the rule in x; the order is a constant, as rules write it."""
    order = constant_value(instr.args[0])
    return row(n=None, x=f"polygamma({order + 1}, x) * dy") if isinstance(order, int) else None
