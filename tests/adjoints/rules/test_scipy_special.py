"""The rules of SciPy's functions against mpmath: first derivatives to some ulps, and derivatives of these.

What SciPy gives for the functions that a rule calls is SciPy's affair; the points are such that it is right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
from mpmath import mp, mpf
from numba import njit

from tests.adjoints.rules.evaluator import expand_instr, f64, instruction
from tests.modes import one_in
from zygote_py.adjoints import rule_for
from zygote_py.adjoints.rules import Rule
from zygote_py.adjoints.rules.helpers.scipy_helpers import HELPERS
from zygote_py.adjoints.rules.scalar import scipy_special
from zygote_py.ir import Alpha, Const, Instr, Operand, Special, ops, special
from zygote_py.ir.ops import helpers

rng = np.random.default_rng(11)
POSITIVE = [1e-6, 0.3, 1.0, 1.7, 4.2, 25.0, 170.0]
REAL = [*(-x for x in POSITIVE[:5]), *POSITIVE]
SMALL = [-3.1, -1.0, -0.2, 1e-8, 0.5, 1.0, 2.9]
PROBABILITIES = [1e-12, 0.01, 0.3, 0.5, 0.8, 0.999]
INDEX = [0.0, 1.0, 2.5, 7.5]


@dataclass(frozen=True)
class Case:
    """A function of SciPy, the same in mpmath, points, and the error allowed, relative to a value plus its change."""

    name: str
    function: Callable[..., Any]
    points: list[tuple[float, ...]]
    error: float = 1e-13
    second_error: float = 1e-11


def singles(points: list[float]) -> list[tuple[float, ...]]:
    return [(x,) for x in points]


def pairs(one: list[float], other: list[float]) -> list[tuple[float, ...]]:
    return [(x, y) for x in one for y in other]


def inverse(function: Callable[..., Any], approximate: Callable[..., Any]) -> Callable[..., Any]:
    """The inverse of a function in its last argument, by Newton's method from what SciPy has."""

    def found(*args: Any) -> Any:
        *parameters, p = args
        start = mpf(float(approximate(*map(float, args))))
        return mpmath.findroot(lambda x: function(*parameters, x) - p, start, tol=mpf(10) ** -100)

    return found


def lower_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, regularized=True)


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def upper_beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(b, a, 0, 1 - x, regularized=True)


def student(df: Any, t: Any) -> Any:
    tail = lower_beta(df / 2, mpf(1) / 2, df / (df + t * t)) / 2
    return 1 - tail if t > 0 else tail


def normal(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def quantile(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


log_quantile = inverse(lambda x: mpmath.log(normal(x)), scipy.special.ndtri_exp)


def erfcx(x: Any) -> Any:
    return mpmath.exp(x * x) * mpmath.erfc(x)


def owens(h: Any, a: Any) -> Any:
    return mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mpmath.pi)


def pseudo_huber(a: Any, r: Any) -> Any:
    return a * a * (mpmath.sqrt(1 + (r / a) ** 2) - 1)


def huber(a: Any, r: Any) -> Any:
    return r * r / 2 if abs(r) <= a else a * (abs(r) - a / 2)


def degrees(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x * mpmath.pi / 180)


def scaled(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
    return lambda v, x: function(v, x) * mpmath.exp(sign * (x if sign > 0 else abs(x)))


LARGE = [0.3, 12.0, 29.9, 31.1, 90.0, 3e4]
SHAPES = [(0.5, 0.3), (1.0, 2.0), (1.5, 1e-3), (3.0, 2.5), (40.0, 55.0), (1200.0, 1150.0)]
BETAS = [(0.5, 0.5, 0.3), (1.0, 2.5, 0.1), (2.0, 1.0, 0.7), (30.0, 12.0, 0.8), (700.0, 300.0, 0.69), (1.5, 0.7, 1e-4)]
LINE = [(a, p) for a in (0.5, 3.0, 40.0) for p in (0.01, 0.4, 0.97)]
AMOS = 3e-12  # what the functions of complex order are good to

CASES = [
    Case("gamma", mpmath.gamma, singles([-3.4, -0.7, 1e-6, 0.5, 1.5, 9.0, 100.0])),
    Case("gammaln", lambda x: mpmath.log(abs(mpmath.gamma(x))), singles([-3.4, -0.7, *POSITIVE, 1e8])),
    Case("loggamma", mpmath.loggamma, singles([*POSITIVE, 1e8])),
    Case("rgamma", mpmath.rgamma, singles([-4.0, -2.3, -1.0, 0.0, 0.4, 0.6, 1.0, 3.3, 20.0])),
    Case("psi", mpmath.digamma, singles([-3.4, -0.7, *POSITIVE, 1e8])),
    Case("beta", mpmath.beta, pairs([0.3, 2.0, 50.0], [0.01, 1.0, 7.5])),
    Case("betaln", lambda a, b: mpmath.log(mpmath.beta(a, b)), pairs([0.3, 2.0, 5e6], [0.01, 1.0, 7.5]), 1e-13, 1e-6),
    Case("binom", mpmath.binomial, pairs([5.5, 10.0, 30.0], [0.5, 2.0, 4.7])),
    Case("poch", mpmath.rf, pairs([0.5, 3.0, 12.0], [0.3, 2.0, 5.5])),
    Case("gammainc", lower_gamma, SHAPES, 3e-13),
    Case("gammaincc", upper_gamma, SHAPES, 3e-13),
    Case("gammaincinv", inverse(lower_gamma, scipy.special.gammaincinv), LINE, 1e-12),
    Case("gammainccinv", inverse(upper_gamma, scipy.special.gammainccinv), LINE, 1e-12),
    Case("betainc", lower_beta, BETAS, 3e-13),
    Case("betaincc", upper_beta, BETAS, 3e-13),
    Case("betaincinv", inverse(lower_beta, scipy.special.betaincinv), [(2.0, 3.5, 0.2), (0.6, 4.0, 0.7)], 1e-12),
    Case("betainccinv", inverse(upper_beta, scipy.special.betainccinv), [(2.0, 3.5, 0.2), (0.6, 4.0, 0.7)], 1e-12),
    Case("chdtr", lambda v, x: lower_gamma(v / 2, x / 2), SHAPES, 3e-13),
    Case("chdtrc", lambda v, x: upper_gamma(v / 2, x / 2), SHAPES, 3e-13),
    Case("chdtri", inverse(lambda v, x: upper_gamma(v / 2, x / 2), scipy.special.chdtri), LINE, 1e-12),
    Case("gdtr", lambda a, b, x: lower_gamma(b, a * x), [(0.5, 2.0, 3.0), (3.0, 10.0, 2.5)]),
    Case("gdtrc", lambda a, b, x: upper_gamma(b, a * x), [(0.5, 2.0, 3.0), (3.0, 10.0, 2.5)]),
    Case("pdtr", lambda k, m: upper_gamma(mpmath.floor(k) + 1, m), [(0.0, 0.3), (3.0, 2.0), (40.0, 55.0)]),
    Case("pdtrc", lambda k, m: lower_gamma(mpmath.floor(k) + 1, m), [(0.0, 0.3), (3.0, 2.0), (40.0, 55.0)]),
    Case("stdtr", student, pairs([0.7, 3.0, 50.0], [-8.0, -0.3, 1.2]), 1e-12),
    Case("stdtrit", inverse(student, scipy.special.stdtrit), [(3.0, 0.2), (12.0, 0.9)], 1e-12),
    Case("erf", mpmath.erf, singles(SMALL)),
    Case("erfc", mpmath.erfc, singles([*SMALL, 20.0])),
    Case("erfi", mpmath.erfi, singles(SMALL)),
    Case("erfcx", erfcx, singles([-5.0, -0.7, 0.0, 0.9, 1.49, 1.51, 6.0, 40.0, 1e4, 1e6])),
    Case("erfinv", mpmath.erfinv, singles([-0.999, -0.3, 1e-9, 0.5, 0.99])),
    Case("erfcinv", lambda x: mpmath.erfinv(1 - x), singles([1e-20, 1e-3, 0.5, 1.0, 1.9])),
    Case(
        "dawsn",
        lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x),
        singles([*SMALL, 9.0, -11.0, 26.0]),
    ),
    Case("ndtr", normal, singles([*SMALL, -20.0])),
    Case("ndtri", quantile, singles(PROBABILITIES)),
    Case("log_ndtr", lambda x: mpmath.log(normal(x)), singles([-1e5, -300.0, -40.0, *SMALL, 9.0])),
    Case("ndtri_exp", log_quantile, singles([-3e4, -400.0, -30.0, -3.0, -0.7, -0.1, -1e-4]), 1e-12),
    Case("owens_t", owens, [(0.3, -0.5)]),
    Case("expit", lambda x: 1 / (1 + mpmath.exp(-x)), singles([-700.0, -30.0, *SMALL, 30.0])),
    Case("log_expit", lambda x: -mpmath.log(1 + mpmath.exp(-x)), singles([-700.0, -30.0, *SMALL, 30.0])),
    Case("logit", lambda p: mpmath.log(p / (1 - p)), singles(PROBABILITIES)),
    Case("exp1", mpmath.e1, singles(POSITIVE)),
    Case("expi", mpmath.ei, singles([-9.0, -0.5, 1e-3, 0.5, 30.0])),
    Case("expn", lambda n, x: mpmath.expint(n, x), pairs([0.0, 1.0, 2.0, 5.0], [0.1, 2.0, 30.0])),
    Case("exprel", lambda x: mpmath.expm1(x) / x, singles([-800.0, -25.0, -5.0, -1e-7, 1e-9, 0.5, 18.0, 40.0])),
    Case("exp2", lambda x: mpf(2) ** x, singles(SMALL)),
    Case("exp10", lambda x: mpf(10) ** x, singles(SMALL)),
    Case("expm1", mpmath.expm1, singles([*SMALL, -40.0])),
    Case("log1p", mpmath.log1p, singles([-0.9999, -0.3, 1e-9, 3.0, 1e9])),
    Case("cosm1", lambda x: mpmath.cos(x) - 1, singles([*SMALL, 12.0])),
    Case("cbrt", mpmath.cbrt, singles(POSITIVE)),
    Case("powm1", lambda a, b: a**b - 1, pairs([0.5, 1.0, 3.0], [-0.7, 1e-6, 2.0])),
    Case("boxcox", lambda x, k: (x**k - 1) / k, pairs([0.2, 1.1, 9.0], [-0.5, 1e-3, 2.0])),
    Case("boxcox1p", lambda x, k: ((1 + x) ** k - 1) / k, pairs([-0.5, 1e-5, 9.0], [-0.5, 1e-3, 2.0])),
    Case("inv_boxcox", lambda x, k: (k * x + 1) ** (1 / k), pairs([-0.4, 1e-5, 1.7], [-0.5, 1e-3, 2.0])),
    Case("inv_boxcox1p", lambda x, k: (k * x + 1) ** (1 / k) - 1, pairs([-0.4, 1e-5, 1.7], [-0.5, 1e-3, 2.0])),
    Case("wrightomega", lambda x: mpmath.lambertw(mpmath.exp(x)).real, singles([-30.0, -2.0, 0.5, 9.0])),
    Case("xlogy", lambda a, b: a * mpmath.log(b), pairs([-1.0, 0.0, 2.0], [1e-5, 0.5, 9.0])),
    Case("xlog1py", lambda a, b: a * mpmath.log1p(b), pairs([-1.0, 0.0, 2.0], [-0.9, 1e-9, 9.0])),
    Case("entr", lambda x: -x * mpmath.log(x), singles([1e-9, 0.3, 5.0])),
    Case("rel_entr", lambda a, b: a * mpmath.log(a / b), pairs([1e-9, 1.0, 5.0], [0.3, 0.999999, 4.0])),
    Case("kl_div", lambda a, b: a * mpmath.log(a / b) - a + b, pairs([1e-9, 1.0, 5.0], [0.3, 0.999999, 4.0])),
    Case("huber", huber, pairs([0.5, 2.0], [-3.0, 0.1, 1.2])),
    Case("pseudo_huber", pseudo_huber, pairs([0.5, 2.0], [-3.0, 0.1, 1e5]), 1e-13, 1e-10),
    Case("spence", lambda x: mpmath.polylog(2, 1 - x).real, singles([0.1, 0.6, 1.0, 1.4, 1.6, 9.0])),
    Case("sindg", degrees(mpmath.sin), singles([-100.0, 0.0, 30.0, 1e3])),
    Case("cosdg", degrees(mpmath.cos), singles([-100.0, 1e-4, 30.0, 1e3])),
    Case("tandg", degrees(mpmath.tan), singles([-100.0, 0.0, 30.0, 1e3])),
    Case("cotdg", degrees(mpmath.cot), singles([-100.0, 1e-3, 30.0, 1e3]), 1e-11, 1e-10),
    Case("j0", lambda x: mpmath.besselj(0, x), singles([-2.0, 0.0, 0.5, 7.7, 90.0]), 1e-12),
    Case("j1", lambda x: mpmath.besselj(1, x), singles([-2.0, 0.0, 0.5, 7.7, 90.0]), 1e-12),
    Case("y0", lambda x: mpmath.bessely(0, x), singles([1e-3, 0.5, 7.7, 90.0]), 1e-12),
    Case("y1", lambda x: mpmath.bessely(1, x), singles([1e-3, 0.5, 7.7, 90.0]), 1e-12),
    Case("jv", mpmath.besselj, pairs(INDEX, [0.01, 0.5, 7.7, 90.0]), AMOS),
    Case("jve", mpmath.besselj, pairs(INDEX, [0.5, 7.7]), AMOS),
    Case("yn", mpmath.bessely, pairs([0.0, 3.0], [0.01, 7.7]), AMOS),
    Case("yv", mpmath.bessely, pairs([0.0, 0.5, 7.5], [0.01, 7.7, 90.0]), AMOS),
    Case("yve", mpmath.bessely, pairs(INDEX, [0.5, 7.7]), AMOS),
    Case("i0", lambda x: mpmath.besseli(0, x), singles([-9.0, 0.0, 0.5, 40.0, 600.0]), 1e-12),
    Case("i1", lambda x: mpmath.besseli(1, x), singles([-9.0, 0.0, 0.5, 40.0, 600.0]), 1e-12),
    Case("iv", mpmath.besseli, pairs(INDEX, [0.01, 0.5, 7.7, 90.0]), AMOS),
    Case("k0", lambda x: mpmath.besselk(0, x), singles([1e-3, 0.5, 7.7, 300.0]), 1e-12),
    Case("k1", lambda x: mpmath.besselk(1, x), singles([1e-3, 0.5, 7.7, 300.0]), 1e-12),
    Case("kn", mpmath.besselk, pairs([0.0, 3.0], [0.01, 7.7]), AMOS),
    Case("kv", mpmath.besselk, pairs([1.0, 0.5, 7.5], [0.01, 7.7, 90.0]), AMOS),
    Case("i0e", lambda x: scaled(mpmath.besseli, -1)(0, x), singles([-9.0, -50.0, *LARGE]), 1e-12),
    Case("i1e", lambda x: scaled(mpmath.besseli, -1)(1, x), singles([-9.0, -50.0, 0.0, *LARGE]), 1e-12, 1e-10),
    Case("ive", scaled(mpmath.besseli, -1), pairs(INDEX, LARGE), AMOS, 1e-9),
    Case("k0e", lambda x: scaled(mpmath.besselk, 1)(0, x), singles([0.3, 3e4]), 1e-12, 1e-10),
    Case("k1e", lambda x: scaled(mpmath.besselk, 1)(1, x), singles([0.3, 3e4]), 1e-12, 1e-10),
    Case("kve", scaled(mpmath.besselk, 1), pairs([0.5, 7.5], LARGE), AMOS, 1e-9),
    Case("struve", mpmath.struveh, pairs([0.0, 1.0, 2.5], [0.01, 0.5, 7.7]), 1e-11),
    Case("modstruve", mpmath.struvel, pairs([0.0, 1.0, 2.5], [0.01, 0.5, 7.7]), 1e-11),
    Case("hyp0f1", mpmath.hyp0f1, pairs([0.5, 2.5], [-3.0, 0.1, 4.0]), 1e-12),
    Case("hyp1f1", mpmath.hyp1f1, [(0.5, 1.5, -2.0), (2.0, 3.5, 1.2)], 1e-12),
    Case("hyp2f1", mpmath.hyp2f1, [(0.5, 1.5, 2.5, -0.4), (2.0, 0.5, 3.5, 0.6)], 1e-12),
    Case("hyperu", mpmath.hyperu, [(0.5, 1.5, 2.0), (2.0, 0.5, 1.2)], 1e-11, 1e-9),
    Case("ellipk", mpmath.ellipk, singles([-3.0, 0.0, 0.4, 0.99]), 1e-12),
    Case("ellipkm1", lambda p: mpmath.ellipk(1 - p), singles([1e-6, 0.3, 1.0]), 1e-12),
    Case("ellipe", mpmath.ellipe, singles([-3.0, 0.0, 0.4, 0.99]), 1e-12),
    Case("ellipkinc", mpmath.ellipf, pairs([-0.5, 0.3, 1.2], [-1.0, 0.5])),
    Case("ellipeinc", mpmath.ellipe, pairs([-0.5, 0.3, 1.2], [-1.0, 0.5])),
]
NO_SECOND = ("ellipk", "ellipkm1", "ellipe")


def call_of(case: Case) -> Instr:
    count = len(case.points[0])
    return instruction(special(case.name, *("double",) * count), (f64,) * count, f64)


def derivative(function: Callable[..., Any], point: tuple[Any, ...], *places: int) -> Any:
    """The derivative in some arguments, one after the other, by central differences."""
    step = mpf(10) ** -14

    def value(numbers: list[Any], left: tuple[int, ...]) -> Any:
        if not left:
            return mpf(mpmath.re(function(*numbers)))
        place, *rest = left
        h = (
            step * max(1, abs(numbers[place]))
            if abs(numbers[place]) > mpf("1e-3") or numbers[place] == 0
            else step * abs(numbers[place])
        )
        ends = []
        for sign in (2, 1, -1, -2):
            moved = list(numbers)
            moved[place] = numbers[place] + sign * h
            ends.append(value(moved, tuple(rest)))
        return (8 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / (12 * h)

    with mp.workdps(60):
        return value([mpf(x) for x in point], places)


class Forward:
    """The values of instructions and their derivatives in one argument, by the rules."""

    def __init__(self, call: Instr, point: tuple[float, ...], place: int) -> None:
        self.value: dict[Operand, Any] = dict(zip(call.args, point, strict=True))
        self.slope: dict[Operand, float] = {arg: float(n == place) for n, arg in enumerate(call.args)}
        self.run(call)

    def get(self, operand: Operand) -> tuple[Any, float]:
        if isinstance(operand, Const):
            return operand.value, 0.0
        operand = operand.value if isinstance(operand, Alpha) else operand
        return self.value[operand], self.slope[operand]

    def run(self, instr: Instr) -> None:
        args = [self.get(arg) for arg in instr.args]
        plain = Instr(instr.op, tuple(arg.value if isinstance(arg, Alpha) else arg for arg in instr.args), instr.type)
        with np.errstate(all="ignore"):
            self.value[instr] = instr.op(*(value for value, _ in args))
        self.slope[instr] = 0.0
        if instr.op is ops.select:
            self.slope[instr] = args[1 if args[0][0] else 2][1]
            return
        for number, (_, slope) in enumerate(args):
            if slope and (rule := rule_for(plain)) is not None and rule.passes(number):
                adjoint = expand_instr(plain, number, rule)
                self.slope[instr] += self.evaluate(adjoint, plain, instr, slope)

    def evaluate(self, adjoint: Any, plain: Instr, instr: Instr, slope: float) -> float:
        known: dict[Operand, Any] = {}
        (dy,) = (each for each, name in adjoint.arguments.items() if name == "dy" and each not in plain.args)

        def read(operand: Operand) -> Any:
            if isinstance(operand, Const):
                return operand.value
            operand = operand.value if isinstance(operand, Alpha) else operand
            if operand in known:
                return known[operand]
            if operand is plain:
                return self.value[instr]
            return slope if operand is dy else self.value[operand]

        for inner in adjoint.instrs:
            with np.errstate(all="ignore"):
                known[inner] = inner.op(*map(read, inner.args))
        return float(read(adjoint.result))


@pytest.mark.parametrize("case", one_in(3, CASES), ids=lambda case: case.name)
def test_first_and_second_derivatives(case: Case) -> None:
    call = call_of(case)
    rule = rule_for(call)
    assert rule is not None
    for point in case.points:
        for place in range(len(point)):
            if rule.is_unknown(place) or not rule.passes(place):
                continue
            got = Forward(call, point, place).slope[call]
            want = derivative(case.function, point, place)
            assert abs(got - want) <= case.error * abs(want) + 1e-300, (point, place, got, float(want))
            if case.name not in NO_SECOND:
                check_second(case, call, point, place, rule, want)


def check_second(case: Case, call: Instr, point: tuple[float, ...], place: int, rule: Rule, first: Any) -> None:
    adjoint = expand_instr(call, place)
    for other in range(len(point)):
        if rule.is_unknown(other) or not rule.passes(other):
            continue
        forward = Forward(call, point, other)
        (dy,) = (value for value, name in adjoint.arguments.items() if name == "dy")
        forward.value[dy], forward.slope[dy] = 1.0, 0.0
        for instr in adjoint.instrs:
            forward.run(instr)
        got = forward.get(adjoint.result)[1]
        want = derivative(case.function, point, place, other)
        scale = abs(want) + 1e-4 * abs(first) / max(abs(mpf(point[other])), 1)
        assert abs(got - want) <= case.second_error * scale + 1e-300, (point, place, other, got, float(want))


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "kinks.md").read_text("utf-8")
ROWS = re.findall(r"^\| SciPy's `(\w+)\((.*?)\)` \| `(.*?)` \| `(.*?)` \|", PAGE, re.MULTILINE)


def numbers(text: str) -> dict[str, float]:
    pairs = (part.split("=") for part in text.split(","))
    return {name.strip(): eval(value, {"inf": math.inf, "nan": math.nan}) for name, value in pairs}


@pytest.mark.parametrize(("name", "names", "at", "gradient"), ROWS)
def test_kinks_poles_and_ends(name: str, names: str, at: str, gradient: str) -> None:
    args = names.split(", ")
    point = tuple(float(numbers(at)[each]) for each in args)
    call = instruction(special(name, *("double",) * len(args)), (f64,) * len(args), f64)
    rule = rule_for(call)
    assert rule is not None
    for each, want in numbers(gradient).items():
        place = args.index(each.removeprefix("d"))
        got = Forward(call, point, place).slope[call] if rule.passes(place) else 0.0
        np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=f"{name} at {at}")


def test_the_rows_of_the_page_are_read() -> None:
    assert len(ROWS) == PAGE.count("| SciPy's ") > 20


def test_helpers_compiled() -> None:
    """Compiled, the helpers give what they give in plain Python, and raise nowhere that they do not."""
    points = [
        (0.3, 2.5),
        (3.0, 1e-3),
        (40.0, 55.0),
        (1.0, 0.0),
        (0.0, 2.0),
        (-1.5, 0.4),
        (math.nan, 1.0),
        (2.0, math.inf),
    ]
    functions = {
        "digamma_gap": lambda a, b: (a, b),
        "gamma_density": lambda a, b: (a, b),
        "beta_density": lambda a, b: (a, b, b / 60.0),
        "erfc_moment": lambda a, b: (2, b, a),
        "bessel_far": lambda a, b: (2, -1, a, 20.0 * b),
        "dawsn_far": lambda a, b: (1, 10.0 * b),
        "exp_moment": lambda a, b: (1, b - 10.0 * a),
    }
    assert set(functions) == set(HELPERS)
    for name, arguments in functions.items():
        namespace: dict[str, Any] = {"np": np}
        for each in (*helpers.called_by(HELPERS[name]), HELPERS[name]):
            for inner in helpers.called_by(each):
                exec(helpers.source(inner), namespace)
                namespace[inner.__name__] = njit(namespace[inner.__name__])
            exec(helpers.source(each), namespace)
            namespace[each.__name__] = njit(namespace[each.__name__])
        for point in points:
            with np.errstate(all="ignore"):
                want = HELPERS[name](*arguments(*point))
            np.testing.assert_allclose(namespace[name](*arguments(*point)), want, rtol=1e-14, err_msg=f"{name}{point}")


def test_every_function_with_a_rule_is_here() -> None:
    flat = {"gammasgn", "round"}
    assert {case.name for case in CASES} | flat == set(scipy_special.names())
    for name in scipy_special.names():
        rule = scipy_special.rule_of(name)
        assert rule is not None
        assert isinstance(special(name, *("double",) * len(rule.names)), Special)
    assert math.isfinite(special("jv", "double", "double")(2.0, 1.5))
