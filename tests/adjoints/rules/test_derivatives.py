"""Every rule against a central difference of mpmath's own function at 80 digits, which owes nothing to the library."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from numba import types

from tests.adjoints.rules.evaluator import expand_rule, f32, f64, i64
from zygote_py.adjoints import ROWS, STRUCTURAL, digamma, rule_for
from zygote_py.adjoints.rules.helpers import scipy_helpers
from zygote_py.adjoints.rules.helpers.special import polygamma
from zygote_py.ir import Const, Instr, Param, ops

Op = ops.Op
rng = np.random.default_rng(20240229)


def log_uniform(low: float, high: float, count: int) -> list[float]:
    return list(np.exp(rng.uniform(math.log(low), math.log(high), count)))


POSITIVE = [*log_uniform(1e-3, 1e3, 20), *log_uniform(1e-250, 1e250, 20)]
REAL = [*POSITIVE, *(-x for x in POSITIVE)]
MODERATE = [*rng.uniform(-4, 4, 20), *log_uniform(1e-8, 1e4, 10), *(-x for x in log_uniform(1e-8, 1e4, 10))]
SMALL = [*rng.uniform(-20, 20, 30), *log_uniform(1e-200, 1, 10)]
EXPONENTS = [*rng.uniform(-700, 700, 20), *SMALL]
UNIT = [*rng.uniform(-1, 1, 20), 1 - 1e-14, -1 + 1e-15, 0.999, *log_uniform(1e-200, 1, 10)]
ABOVE_ONE = [1 + 1e-14, *rng.uniform(1, 2, 10), *log_uniform(1, 1e250, 10)]
ABOVE_MINUS_ONE = [-1 + 1e-14, *rng.uniform(-1, 2, 10), *log_uniform(1e-200, 1e200, 10)]


def pairs(a: list[float], b: list[float], count: int = 40) -> list[tuple[float, ...]]:
    found = zip(rng.choice(a, count), rng.choice(b, count), strict=True)
    return [(x, y) for x, y in found if x != y]


def singles(a: list[float]) -> list[tuple[float, ...]]:
    return [(x,) for x in a]


@dataclass(frozen=True)
class Case:
    """Callables that compute one function, the function in mpmath, points, and errors allowed: relative, and of dy."""

    ops: tuple[Op, ...]
    function: Callable[..., mpf]
    points: list[tuple[float, ...]]
    rtol: float = 3e-15
    atol: float = 0.0


def fmod(a: mpf, b: mpf) -> mpf:
    return abs(a) % abs(b) * mpmath.sign(a)


CASES = [
    Case((operator.add, np.add), lambda a, b: a + b, pairs(REAL, REAL)),
    Case((operator.sub, np.subtract), lambda a, b: a - b, pairs(REAL, REAL)),
    Case((operator.mul, np.multiply), lambda a, b: a * b, pairs(REAL, REAL)),
    Case((operator.truediv, np.divide, ops.fast_divide), lambda a, b: a / b, pairs(MODERATE, MODERATE)),
    Case(
        (operator.mod, np.remainder), lambda a, b: a - mpmath.floor(a / b) * b, [(1.0, 0.1), *pairs(MODERATE, MODERATE)]
    ),
    Case((np.fmod,), fmod, [(1.0, 0.1), *pairs(MODERATE, MODERATE)]),
    Case((operator.neg, np.negative), lambda x: -x, singles(REAL)),
    Case((operator.pos, np.positive, float, np.float64, ops.const, np.real, np.conjugate), lambda x: x, singles(REAL)),
    Case(
        (np.sum, np.prod, np.mean, np.average, np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin, np.nan_to_num),
        lambda x: x,
        singles(REAL),
    ),
    Case((np.square,), lambda x: x * x, singles(REAL)),
    Case((np.reciprocal,), lambda x: 1 / x, singles(log_uniform(1e-150, 1e150, 20))),
    Case((math.sin, np.sin, ops.fast_sin), mpmath.sin, singles(MODERATE)),
    Case((math.cos, np.cos, ops.fast_cos), mpmath.cos, singles(MODERATE)),
    Case((math.tan, np.tan, ops.fast_tan), mpmath.tan, singles(MODERATE)),
    Case((math.asin, np.arcsin), mpmath.asin, singles(UNIT)),
    Case((math.acos, np.arccos), mpmath.acos, singles(UNIT)),
    Case((math.atan, np.arctan), mpmath.atan, singles(log_uniform(1e-150, 1e150, 20) + MODERATE)),
    Case((math.atan2, np.arctan2), mpmath.atan2, [*pairs(MODERATE, MODERATE), (1e200, -1e190), (1e-200, 1e-220)]),
    Case((math.hypot, np.hypot), mpmath.hypot, pairs(REAL, REAL)),
    Case((math.sinh, np.sinh), mpmath.sinh, singles(EXPONENTS)),
    Case((math.cosh, np.cosh), mpmath.cosh, singles(EXPONENTS)),
    Case((math.tanh, np.tanh), mpmath.tanh, singles(EXPONENTS), atol=3e-16),
    Case((math.asinh, np.arcsinh), mpmath.asinh, singles(REAL)),
    Case((math.acosh, np.arccosh), mpmath.acosh, singles(ABOVE_ONE)),
    Case((math.atanh, np.arctanh), mpmath.atanh, singles(UNIT)),
    Case((math.exp, np.exp, ops.fast_exp), mpmath.exp, singles(EXPONENTS)),
    Case((math.exp2, np.exp2), lambda x: mpf(2) ** x, singles(EXPONENTS)),
    Case((math.expm1, np.expm1), mpmath.expm1, singles(EXPONENTS), atol=3e-16),
    Case((math.log, np.log, ops.fast_log), mpmath.log, singles(POSITIVE)),
    Case((ops.fast_exp10,), lambda x: mpmath.power(10, x), singles(SMALL)),
    Case((math.log2, np.log2, ops.fast_log2), lambda x: mpmath.log(x, 2), singles(POSITIVE)),
    Case((math.log10, np.log10, ops.fast_log10), mpmath.log10, singles(POSITIVE)),
    Case((math.log1p, np.log1p), mpmath.log1p, singles(ABOVE_MINUS_ONE)),
    Case((np.logaddexp,), lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)), pairs(SMALL, SMALL), rtol=1e-14),
    Case((np.logaddexp2,), lambda a, b: mpmath.log(mpf(2) ** a + mpf(2) ** b, 2), pairs(SMALL, SMALL), rtol=1e-14),
    Case((math.sqrt, np.sqrt), mpmath.sqrt, singles(POSITIVE)),
    Case((np.cbrt,), lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), singles(REAL)),
    Case((math.degrees, np.degrees, np.rad2deg), mpmath.degrees, singles(MODERATE)),
    Case((math.radians, np.radians, np.deg2rad), mpmath.radians, singles(MODERATE)),
    Case((np.sinc,), mpmath.sincpi, singles([*SMALL, *rng.uniform(-0.4, 0.4, 40)]), atol=1e-15),
    Case((math.gamma,), mpmath.gamma, singles([*rng.uniform(-15, 150, 60)]), rtol=3e-14),
    Case((math.lgamma,), mpmath.loggamma, singles([*rng.uniform(0.1, 20, 30), *log_uniform(1e-100, 1e200, 20)])),
    Case((math.lgamma,), lambda x: mpmath.log(abs(mpmath.gamma(x))), singles([*rng.uniform(-20, 0, 30)]), atol=1e-14),
    Case((digamma,), mpmath.digamma, singles([*rng.uniform(-20, 20, 40)]), rtol=1e-14),
    Case((math.erf,), mpmath.erf, singles([*rng.uniform(-5, 5, 40)]), rtol=1e-14),
    Case((math.erfc,), mpmath.erfc, singles([*rng.uniform(-5, 5, 40)]), rtol=1e-14),
    Case((abs, math.fabs, np.absolute, np.fabs), abs, singles(REAL)),
    Case((math.copysign, np.copysign), lambda a, b: abs(a) * mpmath.sign(b), pairs(REAL, REAL)),
    Case((np.maximum, np.fmax, max), max, pairs(MODERATE, MODERATE)),
    Case((np.minimum, np.fmin, min), min, pairs(MODERATE, MODERATE)),
    Case((max,), max, [tuple(rng.permutation([1.0, -2.0, 0.5])) for _ in range(8)]),
    Case((min,), min, [tuple(rng.permutation([1.0, -2.0, 0.5])) for _ in range(8)]),
    Case(
        (np.clip,),
        lambda x, low, high: min(max(x, low), high),
        [(0.5, 0.2, 1.0), (-1.0, 0.2, 1.0), (3.0, 0.2, 1.0), (3.0, 2.0, 1.0), (0.2, 2.0, 1.0), (1.5, 2.0, 1.0)],
    ),
    Case(
        (operator.pow, builtins.pow, math.pow, np.power, np.float_power, ops.fast_pow),
        lambda x, p: x**p,
        pairs(log_uniform(1e-20, 1e20, 20), list(rng.uniform(-10, 10, 20))),
        rtol=1e-14,
    ),
]


def gradient(case: Case, point: tuple[float, ...], index: int) -> mpf:
    """The central difference with a relative step of 1e-30, with digits for what the magnitudes of the point cancel."""
    exact = [mpf(float(x)) for x in point]
    spread = max(abs(math.log10(abs(x))) for x in point)
    with mp.workdps(90 + 3 * round(spread)):
        step = min(map(abs, exact)) * mpf(10) ** -30

        def at(sign: int) -> mpf:
            return case.function(*(x + sign * step * (k == index) for k, x in enumerate(exact)))

        return mpmath.re(at(1) - at(-1)) / (2 * step)


def check(got: float, want: mpf, case: Case, where: str, scale: float = 1.0) -> None:
    if abs(want) > mpf("1e305") or abs(want) < mpf("1e-305"):
        return  # beyond a double
    error = abs(mpf(float(got)) - want)
    assert error <= scale * (case.rtol * abs(want) + case.atol), f"{where}: {got!r}, not {float(want)!r}"


def value(op: Op, point: tuple[float, ...]) -> float | None:
    try:
        with np.errstate(all="ignore"):
            found: float = op(*point)
    except (OverflowError, ValueError):
        return None
    return found


def by_name(case: Case) -> str:
    return ops.name_of(case.ops[0])


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_derivative(case: Case) -> None:
    for op in case.ops:
        arity = len(case.points[0])
        instr = Instr(op, tuple(Param(f64, f"x{k}") for k in range(arity)), f64)
        rule = rule_for(instr)
        assert rule is not None
        for index in range(arity):
            adjoint = expand_rule(op, (f64,) * arity, f64, index) if rule.passes(index) else None
            for point in case.points:
                want = gradient(case, point, index)
                if adjoint is None:
                    assert want == 0
                    continue
                y = value(op, point)
                if y is None or math.isinf(y):
                    continue
                names = {f"x{k}": float(x) for k, x in enumerate(point)}
                for dy in (1.0, -2.5):
                    got = adjoint(**names, y=float(y), dy=dy)
                    check(got, dy * want, case, f"{ops.name_of(op)}, argument {index} at {point}", abs(dy))


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_float32(case: Case) -> None:
    for op in case.ops:
        if op in (float, np.float64):
            continue
        arity = len(case.points[0])
        rule = rule_for(Instr(op, tuple(Param(f32, f"x{k}") for k in range(arity)), f32))
        assert rule is not None
        for index in (k for k in range(arity) if rule.passes(k)):
            adjoint = expand_rule(op, (f32,) * arity, f32, index)
            for point in case.points:
                if not all(1e-3 < abs(x) < 50 for x in point) or any(abs(abs(x) - 1) < 1e-6 for x in point):
                    continue
                single = tuple(np.float32(x) for x in point)
                y = value(op, tuple(map(float, single)))
                want = gradient(case, single, index)
                if y is None or not 1e-30 < abs(y) < 1e30 or not 1e-30 < abs(want) < 1e30:
                    continue
                names = {f"x{k}": x for k, x in enumerate(single)}
                got = adjoint(**names, y=np.float32(y), dy=np.float32(1.0))
                assert isinstance(got, np.float32)
                # In units of the last place: the rounding of y counts as often as the derivative is steep.
                error = abs(float(got) - float(want))
                assert error <= 3e-5 * abs(float(want)) + 2e-6, f"{ops.name_of(op)} at {point}: {got}, {float(want)}"


def exponents() -> Iterator[int | float]:
    yield from range(-6, 24)
    yield from (0.5, 1.5, 2.5, -0.5, -1.5, 1 / 3, 2.0, 3.0, -2.0, 100, 65)


@pytest.mark.parametrize("n", list(exponents()))
def test_power_by_a_constant(n: int | float) -> None:
    constant = Const(n, i64 if isinstance(n, int) else f64)
    instr = Instr(operator.pow, (Param(f64, "x0"), constant), f64)
    rule = rule_for(instr)
    assert rule is not None
    assert not rule.passes(1)
    assert rule.passes(0) == (n != 0)
    if n == 0:
        return
    case = Case((operator.pow,), lambda x: x**n, [], rtol=1e-14)
    adjoint = expand_rule(operator.pow, (f64, constant), f64, 0)
    signs = (1, -1) if n == int(n) else (1,)
    for x in (sign * size for sign in signs for size in (0.3, 1.0, 1.7, 12.5, 1e-8, 1e9)):
        y = value(operator.pow, (x, n))
        if y is not None:
            check(adjoint(x0=x, y=y, dy=1.0), gradient(case, (x,), 0), case, f"{x}**{n}")


@pytest.mark.parametrize("n", range(-5, 8))
def test_power_by_an_integer(n: int) -> None:
    case = Case((operator.pow,), lambda x: x**n, [], rtol=1e-14)
    adjoint = expand_rule(operator.pow, (f64, i64), f64, 0)
    for x in (0.3, -0.3, 1.0, 1.7, -12.5, 1e-8):
        want = gradient(case, (x,), 0) if n else mpf(0)
        check(adjoint(x0=x, n1=n, y=x**n, dy=1.0), want, case, f"{x}**{n}")
    rule = rule_for(Instr(operator.pow, (Param(f64), Param(i64)), f64))
    assert rule is not None
    assert not rule.passes(1)


@pytest.mark.parametrize("op", [math.ldexp, np.ldexp])
def test_ldexp(op: Op) -> None:
    adjoint = expand_rule(op, (f64, i64), f64, 0)
    for exponent in (-1000, -1, 0, 5, 1000):
        assert adjoint(x0=0.75, n1=exponent, y=0.0, dy=1.5) == math.ldexp(1.5, exponent)


@pytest.mark.parametrize("op", [np.where, ops.select])
def test_selection(op: Op) -> None:
    for index, condition in ((1, True), (2, False)):
        adjoint = expand_rule(op, (types.boolean, f64, f64), f64, index)
        assert adjoint(c0=condition, x1=1.0, x2=2.0, y=0.0, dy=3.0) == 3.0
        assert adjoint(c0=not condition, x1=1.0, x2=2.0, y=0.0, dy=math.inf) == 0.0


def test_casts_go_back() -> None:
    narrow = expand_rule(np.float32, (f64,), f32, 0)
    assert [instr.op for instr in narrow.instrs] == [np.float64]
    assert narrow.result.type == f64
    wide = expand_rule(np.float64, (f32,), f64, 0)
    assert [instr.op for instr in wide.instrs] == [np.float32]
    assert wide.result.type == f32


def test_every_rule_is_tested() -> None:
    covered = {op for case in CASES for op in case.ops} | {math.ldexp, np.ldexp, np.where, ops.select, np.float32}
    # Those of the helpers of `scipy.special` are in second derivatives only: see test_scipy_special.
    assert not {ops.name_of(op) for op in ROWS if op not in covered and op.__module__ != scipy_helpers.__name__}
    passing = set()
    for op in STRUCTURAL:
        for arity in (1, 2, 3):
            rule = rule_for(Instr(op, tuple(Param(f64) for _ in range(arity)), f64))
            if rule is not None and any(map(rule.passes, range(arity))):
                passing.add(op)
    assert not {ops.name_of(op) for op in passing - covered}


def test_polygamma_takes_the_next_order() -> None:
    for n in (1, 2, 3):
        case = Case((polygamma,), lambda x, n=n: mpmath.polygamma(n, x), [], rtol=1e-13)
        adjoint = expand_rule(polygamma, (Const(n, i64), f64), f64, 1)
        for x in (0.7, 3.0, -2.3, 20.0):
            check(adjoint(x1=x, y=0.0, dy=1.0), gradient(case, (x,), 0), case, f"polygamma({n}, {x})")
