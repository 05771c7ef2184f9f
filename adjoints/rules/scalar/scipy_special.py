"""The rules of the functions of `scipy.special`, by their names.

    special.jv(v, x)            dx = (0.5 * (special.jv(v - 1, x) - special.jv(v + 1, x))) * dy;  in v it is refused

The text may call functions of SciPy too: `special.jv` is that for doubles. What has no derivative that could be
computed, in the order of a Bessel function, say, is `UNKNOWN`: a parameter that must not carry a derivative. The forms
are chosen to not cancel; docs/kinks.md lists their values at poles and ends.

The formulas are those of the NIST Handbook of Mathematical Functions, 5, 6, 7, 8, 10, 13, 15 and 19.
"""

from __future__ import annotations

import math

from zygote_py.adjoints.rules.formulas.rule import UNKNOWN, Rule, row, rule, structural
from zygote_py.adjoints.rules.helpers import scipy_helpers
from zygote_py.adjoints.rules.scalar.arithmetic import constant_value
from zygote_py.ir import Instr

SQRT_2 = math.sqrt(2.0)
SQRT_PI = math.sqrt(math.pi)
SQRT_2_PI = math.sqrt(2.0 * math.pi)
DEGREE = math.pi / 180.0

_BY_NAME: dict[str, Rule] = {}


def rule_of(name: str) -> Rule | None:
    """Return the rule of a function of SciPy; None if there is none."""
    return _BY_NAME.get(name)


def names() -> tuple[str, ...]:
    """Return the functions that have rules, in the order of this file."""
    return tuple(_BY_NAME)


def _rule(*functions: str, **adjoints: str | None) -> None:
    for name in functions:
        assert name not in _BY_NAME, name
        _BY_NAME[name] = row(**adjoints)


# -------------------------------------------------------------------------------------------- the gamma function

_rule("gamma", x="(y * digamma(x)) * dy")
_rule("gammaln", x="digamma(x) * dy")
_rule("loggamma", x="(digamma(x) if x >= 0 else y) * dy")  # nan for x < 0
# Below 1/2 by reflection, 1 / gamma(x) = gamma(1 - x) sin(pi x) / pi, which is smooth at the zeros.
_PI_X = f"{math.pi} * (x - 2 * rint(0.5 * x))"
_rule(
    "rgamma",
    x=f"(special.gamma(1 - x) * (cos({_PI_X}) - sin({_PI_X}) * digamma(1 - x) / {math.pi}) "
    "if x < 0.5 else -(y * digamma(x))) * dy",
)
_rule("psi", x="polygamma(1, x) * dy")
_rule("beta", a="(y * digamma_gap(a, b)) * dy", b="(y * digamma_gap(b, a)) * dy")
_rule("betaln", a="digamma_gap(a, b) * dy", b="digamma_gap(b, a) * dy")
_rule(
    "binom",
    n="-(y * digamma_gap(n - k + 1, k)) * dy",
    k="(y * (digamma(n - k + 1) - digamma(k + 1))) * dy",
)
_rule("poch", a="-(y * digamma_gap(a, m)) * dy", m="(y * digamma(a + m)) * dy")
_rule("gammainc", a=UNKNOWN, x="gamma_density(a, x) * dy")
_rule("gammaincc", a=UNKNOWN, x="-(gamma_density(a, x) * dy)")
_rule("gammaincinv", a=UNKNOWN, p="dy / gamma_density(a, y)")
_rule("gammainccinv", a=UNKNOWN, p="-(dy / gamma_density(a, y))")
_rule("betainc", a=UNKNOWN, b=UNKNOWN, x="beta_density(a, b, x) * dy")
_rule("betaincc", a=UNKNOWN, b=UNKNOWN, x="-(beta_density(a, b, x) * dy)")
_rule("betaincinv", a=UNKNOWN, b=UNKNOWN, p="dy / beta_density(a, b, y)")
_rule("betainccinv", a=UNKNOWN, b=UNKNOWN, p="-(dy / beta_density(a, b, y))")

# ---------------------------------------------------------------------------------- distributions made of these two

_rule("chdtr", v=UNKNOWN, x="0.5 * gamma_density(0.5 * v, 0.5 * x) * dy")
_rule("chdtrc", v=UNKNOWN, x="-0.5 * gamma_density(0.5 * v, 0.5 * x) * dy")
_rule("chdtri", v=UNKNOWN, p="-2.0 / gamma_density(0.5 * v, 0.5 * y) * dy")
_rule("gdtr", a="x * gamma_density(b, a * x) * dy", b=UNKNOWN, x="a * gamma_density(b, a * x) * dy")
_rule("gdtrc", a="-(x * gamma_density(b, a * x)) * dy", b=UNKNOWN, x="-(a * gamma_density(b, a * x)) * dy")
_rule("pdtr", k=None, m="-gamma_density(floor(k) + 1, m) * dy")
_rule("pdtrc", k=None, m="gamma_density(floor(k) + 1, m) * dy")
_T = "special.beta(0.5, 0.5 * df) * sqrt(df)"
_rule("stdtr", df=UNKNOWN, t=f"exp(-0.5 * (df + 1) * log1p(t * t / df)) / ({_T}) * dy")
_rule("stdtrit", df=UNKNOWN, p=f"exp(0.5 * (df + 1) * log1p(y * y / df)) * ({_T}) * dy")

# ------------------------------------------------------------------------------------- error functions and the normal

_rule("erf", x=f"({2.0 / SQRT_PI} * exp(-(x * x))) * dy")
_rule("erfc", x=f"-(({2.0 / SQRT_PI} * exp(-(x * x))) * dy)")
_rule("erfi", x=f"({2.0 / SQRT_PI} * exp(x * x)) * dy")
_rule("erfcx", x="(-2 * erfc_moment(1, x, y)) * dy")
_rule("erfinv", x=f"({0.5 * SQRT_PI} * exp(y * y)) * dy")
_rule("erfcinv", x=f"-(({0.5 * SQRT_PI} * exp(y * y)) * dy)")
_rule("dawsn", x="(1 - 2 * x * y if abs(x) < 10 else dawsn_far(1, x)) * dy")
_rule("ndtr", x=f"({1.0 / SQRT_2_PI} * exp(-0.5 * (x * x))) * dy")
_rule("ndtri", p=f"({SQRT_2_PI} * exp(0.5 * (y * y))) * dy")
_rule(
    "log_ndtr",
    x=f"({math.sqrt(2.0 / math.pi)} / special.erfcx({-1.0 / SQRT_2} * x) if x < 0 "
    f"else {1.0 / SQRT_2_PI} * exp(-0.5 * (x * x) - y)) * dy",
)
_rule(
    "ndtri_exp",
    p=f"({math.sqrt(0.5 * math.pi)} * special.erfcx({-1.0 / SQRT_2} * y) if y < 0 "
    f"else {SQRT_2_PI} * exp(p + 0.5 * (y * y))) * dy",
)
_rule(
    "owens_t",
    h=f"({-0.5 / SQRT_2_PI} * exp(-0.5 * (h * h)) * special.erf({1.0 / SQRT_2} * a * h)) * dy",
    a=f"({0.5 / math.pi} * exp(-0.5 * (h * h) * (1 + a * a)) / (1 + a * a)) * dy",
)

# ------------------------------------------------------------------------------------------ exponentials and logarithms

_rule("expit", x="(y * special.expit(-x)) * dy")
_rule("log_expit", x="special.expit(-x) * dy")
_rule("logit", p="dy / (p * (1 - p))")
_rule("exp1", x="-(exp(-x) / x) * dy")
_rule("expi", x="(exp(x) / x) * dy")
_rule("expn", n=UNKNOWN, x="-(special.expn(n - 1, x) if n >= 1 else y * (1 + 1 / x)) * dy")
_rule("exprel", x="exp_moment(1, x) * dy")
_rule("exp2", x=f"({math.log(2.0)} * y) * dy")
_rule("exp10", x=f"({math.log(10.0)} * y) * dy")
_rule("expm1", x="exp(x) * dy")
_rule("log1p", x="dy / (1 + x)")
_rule("cosm1", x="-(sin(x) * dy)")
_rule("cbrt", x="dy / (3 * (y * y))")
_rule("powm1", a="(b * power(a, b - 1)) * dy", b="(log(a) * (y + 1)) * dy")
_rule("boxcox", x="power(x, k - 1) * dy", k="(log(x) * log(x) * exp_moment(1, k * log(x))) * dy")
_rule(
    "boxcox1p",
    x="exp((k - 1) * log1p(x)) * dy",
    k="(log1p(x) * log1p(x) * exp_moment(1, k * log1p(x))) * dy",
)
# By the logarithm of the result, which does not cancel near 1.
for _name, _less_one in (("inv_boxcox", "special.inv_boxcox1p(x, k)"), ("inv_boxcox1p", "y")):
    _log = f"log1p({_less_one})"
    _factor = f"exp((1 - k) * {_log})"
    _rule(_name, x=f"{_factor} * dy", k=f"-(({_log} * {_log}) * exp_moment(1, k * {_log}) * {_factor}) * dy")
_rule("wrightomega", x="(y / (1 + y)) * dy")
# At (0, 0) the value does not depend on the second argument.
_rule("xlogy", a="log(b) * dy", b="(a / (1.0 if (a == 0) & (b == 0) else b)) * dy")
_rule("xlog1py", a="log1p(b) * dy", b="(a / (1.0 if (a == 0) & (b == -1) else 1 + b)) * dy")
_rule("entr", x="-(log(x) + 1) * dy")
_RATIO = "(log1p((a - b) / b) if (a < 2 * b) & (b < 2 * a) else log(a) - log(b))"
_rule("rel_entr", a=f"({_RATIO} + 1) * dy", b="-(a / (1.0 if (a == 0) & (b == 0) else b)) * dy")
_rule("kl_div", a=f"{_RATIO} * dy", b="((b - a) / (1.0 if (a == 0) & (b == 0) else b)) * dy")
_rule("huber", a="(0.0 if abs(r) <= a else abs(r) - a) * dy", r="(r if abs(r) <= a else a * sign(r)) * dy")
_U = "(r / (1.0 if a == 0 else a))"
_S = f"sqrt(1 + {_U} * {_U})"
_rule(
    "pseudo_huber",
    a=f"(a * (({_U} * ({_U} / ({_S} + 1))) * (({_U} * ({_U} / ({_S} + 1))) / {_S})) if a > 0 else abs(r)) * dy",
    r=f"(r / {_S} if a > 0 else 0.0) * dy",
)
_rule("spence", x="-(special.hyp2f1(1, 1, 2, 1 - x) if abs(x - 1) < 0.5 else log(x) / (x - 1)) * dy")
_rule("sindg", x=f"({DEGREE} * special.cosdg(x)) * dy")
_rule("cosdg", x=f"-(({DEGREE} * special.sindg(x)) * dy)")
_rule("tandg", x=f"({DEGREE} * (1 + y * y)) * dy")
_rule("cotdg", x=f"-(({DEGREE} * (1 + y * y)) * dy)")
_rule("gammasgn", x=None)
_rule("round", x=None)

# ---------------------------------------------------------------------------------------------------- Bessel functions

_rule("j0", x="-(special.j1(x) * dy)")
_rule("j1", x="(0.5 * (special.j0(x) - special.jv(2, x))) * dy")
_rule("y0", x="-(special.y1(x) * dy)")
_rule("y1", x="(0.5 * (special.y0(x) - special.yv(2, x))) * dy")
_rule("jv", "jve", v=UNKNOWN, x="(0.5 * (special.jv(v - 1, x) - special.jv(v + 1, x))) * dy")
_rule("yn", "yv", "yve", v=UNKNOWN, x="(0.5 * (special.yv(v - 1, x) - special.yv(v + 1, x))) * dy")
_rule("i0", x="special.i1(x) * dy")
_rule("i1", x="(0.5 * (special.i0(x) + special.iv(2, x))) * dy")
_rule("iv", v=UNKNOWN, x="(0.5 * (special.iv(v - 1, x) + special.iv(v + 1, x))) * dy")
_rule("k0", x="-(special.k1(x) * dy)")
_rule("k1", x="(-0.5 * (special.k0(x) + special.kv(2, x))) * dy")
_rule("kn", "kv", v=UNKNOWN, x="(-0.5 * (special.kv(v - 1, x) + special.kv(v + 1, x))) * dy")
# Those with an exponential factor: where both terms are nearly the same, by the asymptotic series. At 0 the factor
# exp(-|x|) has a kink, and the derivative of its sign is taken to be 0.
_rule("i0e", x="(special.i1e(x) - sign(x) * y if abs(x) < 30 else sign(x) * bessel_far(1, -1, 0.0, abs(x))) * dy")
_rule(
    "i1e",
    x="(0.5 * (special.i0e(x) + special.ive(2, x)) - sign(x) * y if abs(x) < 31 "
    "else bessel_far(1, -1, 1.0, abs(x))) * dy",
)
_rule(
    "ive",
    v=UNKNOWN,
    x="(0.5 * (special.ive(v - 1, x) + special.ive(v + 1, x)) - sign(x) * y if x < 30 + v * v "
    "else bessel_far(1, -1, v, x)) * dy",
)
_rule("k0e", x="(y - special.k1e(x) if x < 30 else bessel_far(1, 1, 0.0, x)) * dy")
_rule("k1e", x="(y - 0.5 * (special.k0e(x) + special.kve(2, x)) if x < 31 else bessel_far(1, 1, 1.0, x)) * dy")
_rule(
    "kve",
    v=UNKNOWN,
    x="(y - 0.5 * (special.kve(v - 1, x) + special.kve(v + 1, x)) if x < 30 + v * v else bessel_far(1, 1, v, x)) * dy",
)
_POWER = f"power(0.5 * x, v) * special.rgamma(v + 1.5) / {SQRT_PI}"
_rule("struve", v=UNKNOWN, x=f"(0.5 * (special.struve(v - 1, x) - special.struve(v + 1, x) + {_POWER})) * dy")
_rule("modstruve", v=UNKNOWN, x=f"(0.5 * (special.modstruve(v - 1, x) + special.modstruve(v + 1, x) + {_POWER})) * dy")

# ----------------------------------------------------------------------------------- hypergeometric, elliptic integrals

_rule("hyp0f1", v=UNKNOWN, x="(special.hyp0f1(v + 1, x) / v) * dy")
_rule("hyp1f1", a=UNKNOWN, b=UNKNOWN, x="(a / b * special.hyp1f1(a + 1, b + 1, x)) * dy")
_rule("hyp2f1", a=UNKNOWN, b=UNKNOWN, c=UNKNOWN, x="(a * b / c * special.hyp2f1(a + 1, b + 1, c + 1, x)) * dy")
_rule("hyperu", a=UNKNOWN, b=UNKNOWN, x="-(a * special.hyperu(a + 1, b + 1, x)) * dy")
_rule("ellipk", m="(special.elliprd(0, 1, 1 - m) / 6) * dy")
_rule("ellipkm1", p="-(special.elliprd(0, 1, p) / 6) * dy")
_rule("ellipe", m="-(special.elliprd(0, 1 - m, 1) / 6) * dy")
_rule("ellipkinc", phi="dy / sqrt(1 - m * sin(phi) * sin(phi))", m=UNKNOWN)
_rule("ellipeinc", phi="sqrt(1 - m * sin(phi) * sin(phi)) * dy", m=UNKNOWN)

# ------------------------------------------------------------------------------------------------------------ helpers

rule(scipy_helpers.digamma_gap, a="(polygamma(1, a) - polygamma(1, a + b)) * dy", b="-(polygamma(1, a + b) * dy)")
rule(
    scipy_helpers.gamma_density,
    a=UNKNOWN,
    x="(gamma_density(a - 1, x) - y if a >= 1 else y * ((a - 1) / x - 1)) * dy",
)
rule(
    scipy_helpers.beta_density,
    a=UNKNOWN,
    b=UNKNOWN,
    x="((a + b - 1) * (beta_density(a - 1, b, x) - beta_density(a, b - 1, x)) if (a >= 1) & (b >= 1) "
    "else y * ((a - 1) / x - (b - 1) / (1 - x))) * dy",
)


def _order(instr: Instr) -> int | None:
    """Return the order that is the first argument of a helper: a constant, as rules write it."""
    order = constant_value(instr.args[0])
    return order if isinstance(order, int) else None


@structural(scipy_helpers.erfc_moment)
def erfc_moment(instr: Instr) -> Rule | None:
    """Return the rule in x; the argument passed as `y` follows from x, and is not independent."""
    n = _order(instr)
    return None if n is None else row(n=None, x=f"({-2 * (n + 1)} * erfc_moment({n + 1}, x, y0)) * dy", y0=None)


@structural(scipy_helpers.bessel_far)
def bessel_far(instr: Instr) -> Rule | None:
    """The next derivative."""
    n = _order(instr)
    sign = None if n is None else constant_value(instr.args[1])
    return None if n is None else row(n=None, sign=None, v=UNKNOWN, x=f"bessel_far({n + 1}, {sign}, v, x) * dy")


@structural(scipy_helpers.dawsn_far, scipy_helpers.exp_moment)
def next_derivative(instr: Instr) -> Rule | None:
    """The next derivative."""
    n = _order(instr)
    return None if n is None else row(n=None, x=f"{instr.op.__name__}({n + 1}, x) * dy")
