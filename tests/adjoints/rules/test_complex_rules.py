"""The rules of complex numbers against differences of mpmath's functions in the real and the imaginary direction.

For a result y(z) and a seed s the adjoint of z is the sum over the directions 1 and 1j of `direction * Re(conj(s) dy)`,
where dy is the derivative of y in that direction; a real argument has the first of the two only.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpc, mpf
from numba import types

from tests.adjoints.rules.evaluator import NAMES, compile_all, expand_rule, f32, f64, i64
from tests.modes import one_in
from zygote_py.adjoints import rule_for
from zygote_py.adjoints.rules.scalar.complex import _STRUCTURAL, _TO_COMPLEX, _TO_REAL
from zygote_py.ir import Const, Instr, Param, Type, ops

c128, c64 = types.complex128, types.complex64
Op = ops.Op
Point = tuple[complex | float, ...]
rng = np.random.default_rng(20240607)


def discs(count: int, low: float = 0.05, high: float = 3.0) -> list[complex]:
    """Numbers of all directions and of sizes in a range."""
    size = np.exp(rng.uniform(math.log(low), math.log(high), count))
    return [complex(z) for z in size * np.exp(1j * rng.uniform(-math.pi, math.pi, count))]


PLANE = discs(16)
WIDE = discs(10, 1e-100, 1e100)
REALS = [float(x) for x in rng.uniform(-3, 3, 12)]


def singles(zs: list[complex]) -> list[Point]:
    return [(z,) for z in zs]


def pairs(a: list[complex] | list[float], b: list[complex] | list[float], count: int = 14) -> list[Point]:
    return [(a[i], b[j]) for i, j in zip(*rng.integers((len(a), len(b)), size=(count, 2)).T, strict=True)]


@dataclass(frozen=True)
class Case:
    """Callables that compute one function, the function in mpmath, points, and the error allowed."""

    ops: tuple[Op, ...]
    function: Callable[..., mpc]
    points: list[Point]
    is_real: bool = False  # the result
    rtol: float = 1e-14
    atol: float = 0.0

    @property
    def kinds(self) -> tuple[Type, ...]:
        return tuple(c128 if isinstance(x, complex) else f64 for x in self.points[0])

    @property
    def result(self) -> Type:
        return f64 if self.is_real else c128


def lexicographic(x: mpc) -> tuple[mpf, mpf]:
    return mpmath.re(x), mpmath.im(x)


def both(name: str, of_cmath: str = "") -> tuple[Op, ...]:
    return getattr(np, name), getattr(cmath, of_cmath or name)


CASES = [
    Case((operator.add, np.add), lambda a, b: a + b, pairs(PLANE, PLANE)),
    Case((operator.sub, np.subtract), lambda a, b: a - b, pairs(PLANE, PLANE)),
    Case((operator.mul, np.multiply), lambda a, b: a * b, pairs(PLANE, PLANE)),
    Case((operator.truediv, np.divide), lambda a, b: a / b, pairs(PLANE, PLANE)),
    # A real argument beside a complex one.
    Case((np.add,), lambda a, b: a + b, pairs(REALS, PLANE)),
    Case((np.subtract,), lambda a, b: a - b, pairs(PLANE, REALS)),
    Case((np.multiply,), lambda a, b: a * b, pairs(PLANE, REALS)),
    Case((np.multiply,), lambda a, b: a * b, pairs(REALS, PLANE)),
    Case((np.divide,), lambda a, b: a / b, pairs(PLANE, REALS)),
    Case((np.divide,), lambda a, b: a / b, pairs(REALS, PLANE)),
    Case((np.power, np.float_power), lambda x, p: x**p, pairs(REALS, PLANE), rtol=3e-13),
    Case((np.power, np.float_power), lambda x, p: x**p, pairs(PLANE, REALS), rtol=3e-13),
    Case((operator.pow, pow, np.power, np.float_power), lambda x, p: x**p, pairs(PLANE, PLANE), rtol=3e-13),
    Case((np.complex128, complex), lambda x: mpc(x), [(x,) for x in REALS]),
    Case((complex,), lambda a, b: a + mpc(0, 1) * b, pairs(REALS, REALS)),
    Case((cmath.rect,), lambda r, p: r * mpmath.expj(p), pairs(REALS, REALS)),
    Case((operator.neg, np.negative), lambda z: -z, singles(WIDE)),
    Case((operator.pos, np.positive, ops.const, np.complex128, complex), lambda z: z, singles(WIDE)),
    Case(
        (np.sum, np.prod, np.mean, np.average, np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin),
        lambda z: z,
        singles(WIDE),
    ),
    Case((np.nan_to_num,), lambda z: z, singles(WIDE)),
    Case((np.conjugate,), mpmath.conj, singles(WIDE)),
    Case((np.square,), lambda z: z * z, singles(WIDE)),
    Case((np.reciprocal,), lambda z: 1 / z, singles(WIDE)),
    Case(both("exp"), mpmath.exp, singles(PLANE)),
    Case((np.exp2,), lambda z: mpf(2) ** z, singles(PLANE)),
    Case((np.expm1,), mpmath.expm1, singles(PLANE), atol=3e-16),
    Case(both("log"), mpmath.log, singles(WIDE)),
    Case((cmath.log,), lambda z, b: mpmath.log(z) / mpmath.log(b), pairs(PLANE, PLANE), rtol=1e-13),
    Case((np.log2,), lambda z: mpmath.log(z) / mpmath.log(2), singles(WIDE)),
    Case(both("log10"), lambda z: mpmath.log(z) / mpmath.log(10), singles(WIDE)),
    Case((np.log1p,), lambda z: mpmath.log(1 + z), singles(PLANE)),
    Case(both("sqrt"), mpmath.sqrt, singles(WIDE)),
    Case(both("sin"), mpmath.sin, singles(PLANE)),
    Case(both("cos"), mpmath.cos, singles(PLANE)),
    Case(both("tan"), mpmath.tan, singles(PLANE), rtol=1e-13, atol=1e-15),
    Case(both("sinh"), mpmath.sinh, singles(PLANE)),
    Case(both("cosh"), mpmath.cosh, singles(PLANE)),
    Case(both("tanh"), mpmath.tanh, singles(PLANE), rtol=1e-13, atol=1e-15),
    Case(both("arcsin", "asin"), mpmath.asin, singles(PLANE + WIDE)),
    Case(both("arccos", "acos"), mpmath.acos, singles(PLANE + WIDE)),
    Case(both("arctan", "atan"), mpmath.atan, singles(PLANE + WIDE)),
    Case(both("arcsinh", "asinh"), mpmath.asinh, singles(PLANE + WIDE)),
    Case(both("arccosh", "acosh"), mpmath.acosh, singles(PLANE + WIDE)),
    Case(both("arctanh", "atanh"), mpmath.atanh, singles(PLANE + WIDE)),
    Case((np.sinc,), mpmath.sincpi, singles([*PLANE, *discs(20, 1e-9, 0.5), 7.3 - 1.6j]), rtol=3e-14, atol=1e-15),
    Case((np.maximum, np.fmax), lambda a, b: max(a, b, key=lexicographic), pairs(PLANE, PLANE)),
    Case((np.minimum, np.fmin), lambda a, b: min(a, b, key=lexicographic), pairs(PLANE, PLANE)),
    Case((abs, np.absolute), lambda z: mpc(abs(z)), singles(WIDE), is_real=True),
    Case((np.real,), lambda z: mpc(z.real), singles(WIDE), is_real=True),
    Case((np.imag,), lambda z: mpc(z.imag), singles(WIDE), is_real=True),
    Case((np.angle, cmath.phase), mpmath.arg, singles(WIDE), is_real=True),
]


def adjoint_of(case: Case, point: Point, index: int, seed: complex) -> mpc:
    """The adjoint of one argument by central differences with many digits."""
    spread = max(abs(math.log10(abs(x))) for x in point)
    with mp.workdps(90 + 3 * round(spread)):
        exact = [mpc(x) if isinstance(x, complex) else mpf(x) for x in point]
        step = abs(exact[index]) * mpf(10) ** -30
        total = mpc(0)
        for direction in (mpf(1), mpc(0, 1)) if isinstance(point[index], complex) else (mpf(1),):
            high, low = (
                case.function(*(x + sign * step * direction if k == index else x for k, x in enumerate(exact)))
                for sign in (1, -1)
            )
            total += direction * mpmath.re(mpmath.conj(mpc(seed)) * (high - low)) / (2 * step)
        return total


def arguments(case: Case, point: Point) -> dict[str, complex | float]:
    return {f"{'z' if isinstance(x, complex) else 'x'}{k}": x for k, x in enumerate(point)}


def value(op: Op, point: Point) -> complex:
    with np.errstate(all="ignore"):
        if op is ops.const:
            return point[0]
        numpy = [np.complex128(x) if isinstance(x, complex) else np.float64(x) for x in point]
        return complex(op(*(numpy if isinstance(op, np.ufunc) else point)))


def by_name(case: Case) -> str:
    return f"{ops.name_of(case.ops[0])}-{''.join(str(kind)[0] for kind in case.kinds)}"


SEEDS = (1.0 + 0.0j, -0.75 + 1.5j)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_derivative(case: Case) -> None:
    for op in case.ops:
        rule = rule_for(Instr(op, tuple(map(Param, case.kinds)), case.result))
        assert rule is not None
        for index, kind in enumerate(case.kinds):
            assert rule.passes(index)
            adjoint = expand_rule(op, case.kinds, case.result, index)
            assert adjoint.result.type == kind
            for point in case.points:
                for seed in SEEDS:
                    dy = seed.real if case.is_real else seed
                    y = value(op, point)
                    got = adjoint(**arguments(case, point), y=y.real if case.is_real else y, dy=dy)
                    want = adjoint_of(case, point, index, dy)
                    error = abs(mpc(complex(got)) - want)
                    assert error <= case.rtol * abs(want) + case.atol * abs(dy), (
                        f"{ops.name_of(op)}, argument {index} at {point}: {got}, not {complex(want)}"
                    )


def every_adjoint(single: bool, is_real: bool) -> Iterator[tuple[Case, Op, int]]:
    for case in CASES:
        if case.is_real != is_real:
            continue
        for op in case.ops:
            if single and op in (np.complex128, complex, np.angle, np.float_power):
                continue  # their results are of double precision
            yield from ((case, op, index) for index in range(len(case.kinds)))


SINGLE = {f64: f32, c128: c64}


@pytest.mark.parametrize("single", one_in(2, [False, True]), ids=["c128", "c64"])
@pytest.mark.parametrize("is_real", [False, True], ids=["complex", "real"])
def test_compiled_is_plain(single: bool, is_real: bool) -> None:
    """The same numbers compiled, and every value of the type that the instruction has."""
    made = []
    for case, op, index in every_adjoint(single, is_real):
        kinds, result = case.kinds, case.result
        if single:
            kinds, result = tuple(SINGLE[kind] for kind in kinds), SINGLE[result]
        made.append((op, index, expand_rule(op, kinds, result, index)))
    together, names = compile_all([adjoint for _, _, adjoint in made])
    real, cplx = (np.float32, np.complex64) if single else (np.float64, np.complex128)
    out = np.zeros(len(made), cplx)
    for z0, z1, x0, x1, y, dy in [
        (0.5 - 1.25j, 1.5 + 0.75j, 0.5, -1.5, 0.7 + 1.1j, 1.5 - 0.5j),
        (-1.25 + 0.25j, 0.125 + 0j, -0.75, 2.0, -0.3 + 0.8j, -1.0 + 2j),
        (2.0 + 3.0j, 2.0 + 3.0j, 1.5, 1.5, 1.25 - 2j, 0.5j),
    ]:
        values: dict[str, object] = dict.fromkeys(NAMES, real(0.0))
        values |= {"z0": cplx(z0), "z1": cplx(z1), "z2": cplx(0), "x0": real(x0), "x1": real(x1), "n1": 1}
        values |= {"c0": True, "c1": True, "y": cplx(y), "dy": cplx(dy)}
        if is_real:
            values |= {"y": real(y.real), "dy": real(dy.real)}
        together(out, *(values[name] for name in NAMES))
        for (op, index, adjoint), got in zip(made, out, strict=True):
            want = complex(adjoint(**values))
            where = f"{ops.name_of(op)}, argument {index}, at {z0}, {z1}"
            assert abs(got - want) <= (3e-5 if single else 3e-14) * abs(want), f"{where}: {got}, not {want}"
    (compiled,) = together.overloads.values()
    inferred = compiled.type_annotation.typemap
    declared = [instr.type for _, _, adjoint in made for instr in adjoint.instrs]
    for name, kind in zip(names, declared, strict=True):
        assert inferred[name] == kind, (name, inferred[name], kind)


@pytest.mark.parametrize("n", [*range(-4, 8), 17, 40, 0.5, 1.5, 2.5, -0.5])
@pytest.mark.parametrize("of_complex", [False, True])
def test_power_by_a_constant(n: int | float, of_complex: bool) -> None:
    exponent = Const(complex(n), c128) if of_complex else Const(n, i64 if isinstance(n, int) else f64)
    rule = rule_for(Instr(operator.pow, (Param(c128), exponent), c128))
    assert rule is not None
    assert (rule.passes(0), rule.passes(1)) == (n != 0, False)
    if n == 0:
        return
    case = Case((operator.pow,), lambda z: z**n, singles(PLANE))
    adjoint = expand_rule(operator.pow, (c128, exponent), c128, 0)
    for z in (*PLANE, -2.0 + 1e-9j):
        want = adjoint_of(case, (z,), 0, 1 - 2j)
        got = mpc(complex(adjoint(z0=z, y=z**n, dy=1 - 2j)))
        assert abs(got - want) <= 1e-13 * abs(want), (z, n)


def test_power_by_a_complex_constant() -> None:
    case = Case((operator.pow,), lambda z: z ** mpc(0.5, -1.5), singles(PLANE))
    adjoint = expand_rule(operator.pow, (c128, Const(0.5 - 1.5j, c128)), c128, 0)
    for z in PLANE:
        want = adjoint_of(case, (z,), 0, 1 - 2j)
        assert abs(complex(adjoint(z0=z, y=z ** (0.5 - 1.5j), dy=1 - 2j)) - complex(want)) <= 1e-13 * abs(want)


# Each on its branch cut, above and below (left and right): the derivative is the limit from that side.
ON_CUTS = [
    *((op, function, complex(-2.5, zero)) for zero in (0.0, -0.0) for op, function in (
        (np.sqrt, mpmath.sqrt), (np.log, mpmath.log), (np.arccos, mpmath.acos), (np.arcsin, mpmath.asin),
        (np.arccosh, mpmath.acosh), (np.arctanh, mpmath.atanh),
    )),
    *((op, function, complex(2.5, zero)) for zero in (0.0, -0.0) for op, function in (
        (np.arccos, mpmath.acos), (np.arcsin, mpmath.asin), (np.arctanh, mpmath.atanh),
    )),
    *((np.arccosh, mpmath.acosh, complex(0.5, zero)) for zero in (0.0, -0.0)),
    *((op, function, complex(zero, side)) for zero in (0.0, -0.0) for side in (2.5, -2.5) for op, function in (
        (np.arctan, mpmath.atan), (np.arcsinh, mpmath.asinh),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("op", "function", "z"), ON_CUTS, ids=lambda x: getattr(x, "__name__", repr(x)))
def test_on_a_branch_cut(op: Op, function: Callable[[mpc], mpc], z: complex) -> None:
    """Compared with the function a little way off, on the side that the sign of the zero says."""
    with mp.workdps(120):
        off = mpf(10) ** -60
        exact = mpc(
            z.real if z.real else math.copysign(1, z.real) * off, z.imag if z.imag else math.copysign(1, z.imag) * off
        )
        step = mpf(10) ** -80
        slope = (function(exact + step) - function(exact - step)) / (2 * step)
    y = complex(op(np.complex128(z)))
    assert abs(y - complex(function(exact))) < 1e-14, "the function itself is on that side"
    got = complex(expand_rule(op, (c128,), c128, 0)(z0=z, y=y, dy=1j))
    want = complex(mpmath.conj(slope)) * 1j
    assert abs(got - want) <= 1e-14 * abs(want), (got, want)


@pytest.mark.parametrize("op", [abs, np.absolute, np.angle, cmath.phase])
def test_zero_has_gradient_zero(op: Op) -> None:
    adjoint = expand_rule(op, (c128,), f64, 0)
    for z in (0j, complex(-0.0, 0.0), complex(0.0, -0.0)):
        assert adjoint(z0=z, y=0.0, dy=2.0) == 0


def test_degrees() -> None:
    adjoint = expand_rule(np.angle, (c128, types.boolean), f64, 0)
    assert adjoint(z0=2j, c1=True, y=90.0, dy=1.0) == pytest.approx(-0.5 * 180 / math.pi)
    assert adjoint(z0=2j, c1=False, y=math.pi / 2, dy=1.0) == -0.5


def test_nan_to_num() -> None:
    adjoint = expand_rule(np.nan_to_num, (c128,), c128, 0)
    assert adjoint(z0=complex(math.nan, 1.0), y=1j, dy=2 + 3j) == 3j
    assert adjoint(z0=complex(1.0, math.inf), y=1 + 1j, dy=2 + 3j) == 2
    rule = rule_for(Instr(np.nan_to_num, (Param(c128), Param(f64)), c128, keywords=("nan",)))
    assert rule is not None
    assert rule.passes(1)


@pytest.mark.parametrize("op", [np.where, ops.select])
def test_selection(op: Op) -> None:
    for index, condition in ((1, True), (2, False)):
        adjoint = expand_rule(op, (types.boolean, c128, c128), c128, index)
        assert adjoint(c0=condition, z1=1j, z2=2j, y=0j, dy=3 - 1j) == 3 - 1j
        assert adjoint(c0=not condition, z1=1j, z2=2j, y=0j, dy=complex(math.inf, 0)) == 0


def test_casts_go_back() -> None:
    for op, given, result in ((np.complex64, c128, c64), (np.complex128, c64, c128), (np.complex128, f32, c128)):
        adjoint = expand_rule(op, (given,), result, 0)
        assert adjoint.result.type == given


def test_infinite_seeds_stay_in_their_part() -> None:
    """A factor that is real has no imaginary part to multiply an infinity with."""
    times = expand_rule(np.multiply, (c128, f64), c128, 0)
    assert times(z0=1j, x1=2.0, y=2j, dy=complex(math.inf, 1.0)) == complex(math.inf, 2.0)
    over = expand_rule(np.divide, (c128, f64), c128, 0)
    assert over(z0=1j, x1=2.0, y=2j, dy=complex(1.0, math.inf)) == complex(0.5, math.inf)


def test_what_has_no_derivative() -> None:
    for op, arity, result in (
        (operator.eq, 2, types.boolean),
        (np.less, 2, types.boolean),
        (np.isnan, 1, types.boolean),
        (np.rint, 1, c128),
        (np.round, 1, c128),
        (hash, 1, i64),
    ):
        rule = rule_for(Instr(op, (Param(c128),) * arity, result))
        assert rule is not None
        assert not any(map(rule.passes, range(arity)))


def test_no_rule() -> None:
    # Numba's sign is that of the real part, and NumPy's is z / abs(z).
    assert rule_for(Instr(np.sign, (Param(c128),), c128)) is None
    assert rule_for(Instr(max, (Param(c128), Param(c128)), c128)) is None
    assert rule_for(Instr(np.hypot, (Param(c128), Param(f64)), f64)) is None
    assert rule_for(Instr(np.arctan2, (Param(c128), Param(f64)), c128)) is None


def test_every_rule_is_tested() -> None:
    covered = {op for case in CASES for op in case.ops} | {np.where, ops.select, np.complex64}
    aliases = {np.true_divide}
    missing = {*_TO_COMPLEX, *_TO_REAL, *_STRUCTURAL} - covered - aliases
    assert not {ops.name_of(op) for op in missing}
