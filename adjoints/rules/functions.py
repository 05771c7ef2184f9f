"""The rules of the elementary and special functions of `math` and NumPy.

    rule(math.sin, np.sin, x="cos(x) * dy")

The forms are chosen to neither cancel nor overflow where the derivative itself does not; docs/kinks.md says what they
give at poles and branch points.
"""

from __future__ import annotations

import math

import numpy as np
from zygote_py.adjoints.rules.rule import rule

LN2 = math.log(2.0)
LOG2_E = math.log2(math.e)
LOG10_E = math.log10(math.e)
TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)

rule(math.sin, np.sin, x="cos(x) * dy")
rule(math.cos, np.cos, x="-(sin(x) * dy)")
rule(math.tan, np.tan, x="(1 + y * y) * dy")
rule(math.asin, np.arcsin, x="dy / sqrt((1 - x) * (1 + x))")
rule(math.acos, np.arccos, x="-(dy / sqrt((1 - x) * (1 + x)))")
rule(math.atan, np.arctan, x="dy / (1 + x * x)")
# Two divisions by the radius: its square would overflow and underflow.
rule(
    math.atan2,
    np.arctan2,
    a="(0.0 if hypot(a, b) == 0 else b / hypot(a, b) / hypot(a, b)) * dy",
    b="-((0.0 if hypot(a, b) == 0 else a / hypot(a, b) / hypot(a, b)) * dy)",
)
rule(math.hypot, np.hypot, a="(0.0 if y == 0 else a / y) * dy", b="(0.0 if y == 0 else b / y) * dy")

rule(math.sinh, np.sinh, x="cosh(x) * dy")
rule(math.cosh, np.cosh, x="sinh(x) * dy")
rule(math.tanh, np.tanh, x="(1 - y * y) * dy")
rule(math.asinh, np.arcsinh, x="dy / hypot(x, 1)")
rule(math.acosh, np.arccosh, x="dy / (sqrt(x - 1) * sqrt(x + 1))")
rule(math.atanh, np.arctanh, x="dy / ((1 - x) * (1 + x))")

rule(math.exp, np.exp, x="y * dy")
rule(math.exp2, np.exp2, x=f"({LN2} * y) * dy")
rule(math.expm1, np.expm1, x="(y + 1) * dy")
rule(math.log, np.log, x="dy / x")
rule(math.log2, np.log2, x=f"{LOG2_E} * (dy / x)")
rule(math.log10, np.log10, x=f"{LOG10_E} * (dy / x)")
rule(math.log1p, np.log1p, x="dy / (1 + x)")
# Of the difference: exp(a - y) loses the digits that y has before the point, and is 1 for both of large a = b.
rule(
    np.logaddexp,
    a="dy / (1 + exp(0.0 if a == b else b - a))",
    b="dy / (1 + exp(0.0 if a == b else a - b))",
)
rule(
    np.logaddexp2,
    a="dy / (1 + exp2(0.0 if a == b else b - a))",
    b="dy / (1 + exp2(0.0 if a == b else a - b))",
)

rule(math.sqrt, np.sqrt, x="(0.5 / y) * dy")
rule(np.cbrt, x="dy / (3 * (y * y))")

rule(math.degrees, np.degrees, np.rad2deg, x=f"{180.0 / math.pi} * dy")
rule(math.radians, np.radians, np.deg2rad, x=f"{math.pi / 180.0} * dy")
rule(math.ldexp, np.ldexp, x="ldexp(dy, i)", i=None)

rule(math.erf, x=f"({TWO_OVER_SQRT_PI} * exp(-(x * x))) * dy")
rule(math.erfc, x=f"-(({TWO_OVER_SQRT_PI} * exp(-(x * x))) * dy)")
