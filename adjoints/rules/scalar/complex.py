"""The rules of complex numbers: which rows of real functions apply to them too, and the rows of complex functions.

    mul(%z, %w) : c128      a="dy * b"                          the row of real numbers
    np.arcsin(%z) : c128    x="dy / (sqrt(...) * sqrt(...))"    a form that keeps to the side of the branch cut
    np.abs(%z) : f64        x="(x / y) * dy"                    a gradient

For a real loss L the adjoint of z = x + iy is dL/dx + i dL/dy. There are two kinds of rows.

* The result is complex. The row is the derivative of the operation, a map of the argument's change (`dy` in the text)
  to the result's. Reverse mode takes its conjugate transpose, `conj(row(conj(dy)))` (`terms.transposed`), and of that,
  for a real argument, the real part; forward mode will take the row as it stands. `conj(dy)` may occur with a real
  factor, so that this holds.
* The result is real. The row is `g * dy`, where `g` is the gradient of the result with respect to the argument, and
  what reverse mode takes as it stands; the change of the result in forward mode is the real part of `conj(g) * dx`.

A row must not use a function that is not real on the real axis. An argument that is a real number is one in the row; a
logarithm, a root or a power of one that may be negative says `complex(real(x), imag(x))`. Arrays do not occur here.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable

import numpy as np
from numba import types

from zygote_py.adjoints.rules.formulas.rule import ROWS, STRUCTURAL, Op, Rule, row
from zygote_py.adjoints.rules.scalar.arithmetic import PRODUCT, QUOTIENT, constant_value, power_by
from zygote_py.adjoints.rules.scalar.functions import sinc
from zygote_py.ir import Const, Instr, Operand, ops

# Functions with the derivative of the real function of the same name, in the same form.
_AS_REAL: tuple[Op, ...] = (
    *(operator.add, operator.sub, operator.neg, operator.pos),
    *(np.add, np.subtract, np.negative, np.positive),
    *(np.square, np.reciprocal, ops.const, ops.select, np.where),
    *(np.sum, np.prod, np.mean, np.average, np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin),
    *(np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh),
    *(np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt),
)
_OF_CMATH: dict[Op, Op] = {
    **{getattr(cmath, name): getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{getattr(cmath, name): getattr(np, name) for name in ("exp", "log10", "sqrt")},
    **{getattr(cmath, f"a{name}"): getattr(np, f"arc{name}") for name in ("sin", "cos", "tan")},
    **{getattr(cmath, f"a{name}"): getattr(np, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
}
# Locally constant functions with a complex result.
_FLAT: frozenset[Op] = frozenset({np.rint, np.round, np.around, np.ptp})

_TO_COMPLEX: dict[Op, list[Rule]] = {op: ROWS[op] for op in _AS_REAL}
_TO_COMPLEX |= {op: [PRODUCT] for op in (operator.mul, np.multiply)}
_TO_COMPLEX |= {op: [QUOTIENT] for op in (operator.truediv, np.divide, np.true_divide)}
_TO_REAL: dict[Op, list[Rule]] = {}


def _complex(*callables: Op, **adjoints: str | None) -> None:
    """Register a row of callables with a complex result: the derivative."""
    for op in dict.fromkeys(callables):
        _TO_COMPLEX.setdefault(op, []).append(row(**adjoints))


def _real(*callables: Op, **adjoints: str | None) -> None:
    """Register a row of callables with a complex argument and a real result: the gradient, times `dy`."""
    for op in dict.fromkeys(callables):
        _TO_REAL.setdefault(op, []).append(row(**adjoints))


_BASE = "complex(real(x), imag(x))"
_WHOLE = "complex(real(b), imag(b))"

_complex(complex, np.complex64, np.complex128, x="dy")
_complex(complex, a="dy", b="1j * dy")
_complex(np.conjugate, x="conj(dy)")
_complex(cmath.rect, r="complex(cos(p), sin(p)) * dy", p="1j * (y * dy)")
_complex(cmath.log, x="dy / x")
_complex(cmath.log, x=f"dy / (x * log({_WHOLE}))", b=f"-(y / (b * log({_WHOLE})) * dy)")

# Each root of 1 - z*z or the like by itself: the product overflows, and has no signed zeros left on the branch cuts.
_ROOTS = "(sqrt(complex(1 - real(x), -imag(x))) * sqrt(complex(1 + real(x), imag(x))))"
_complex(np.arcsin, x=f"dy / {_ROOTS}")
_complex(np.arccos, x=f"-(dy / {_ROOTS})")
_complex(np.arctan, x="dy / complex(1 - imag(x), real(x)) / complex(1 + imag(x), -real(x))")
_complex(np.arcsinh, x="dy / (sqrt(complex(1 - imag(x), real(x))) * sqrt(complex(1 + imag(x), -real(x))))")
_complex(np.arccosh, x="dy / (sqrt(complex(real(x) - 1, imag(x))) * sqrt(complex(real(x) + 1, imag(x))))")
_complex(np.arctanh, x="dy / (1 - x) / (1 + x)")
# The cosine of the real function takes out its period, which this has in one direction only.
_complex(np.sinc, x=sinc(f"(cos({math.pi} * x) - y) / (1.0 if abs(x) < 0.3 else x)"))

# Extrema of NumPy's order: by the real part, and by the imaginary part among equal ones.
_complex(
    np.maximum,
    a="0.0 if less(a, b) else (0.5 * dy if a == b else dy)",
    b="0.0 if less(b, a) else (0.5 * dy if a == b else dy)",
)
_complex(
    np.minimum,
    a="0.0 if greater(a, b) else (0.5 * dy if a == b else dy)",
    b="0.0 if greater(b, a) else (0.5 * dy if a == b else dy)",
)
_complex(
    np.fmax,
    a="dy if greater(a, b) | isnan(b) else (0.5 * dy if a == b else 0.0)",
    b="dy if greater(b, a) | isnan(a) else (0.5 * dy if a == b else 0.0)",
)
_complex(
    np.fmin,
    a="dy if less(a, b) | isnan(b) else (0.5 * dy if a == b else 0.0)",
    b="dy if less(b, a) | isnan(a) else (0.5 * dy if a == b else 0.0)",
)

# At 0 the gradient is 0.
_real(abs, np.absolute, x="(x / (1.0 if y == 0 else y)) * dy")
_real(np.real, x="dy")
_real(np.imag, x="complex(0.0, dy)")
# i*z divided by the square of its absolute value, which would overflow and underflow.
_RADIUS = "(1.0 if hypot(real(x), imag(x)) == 0 else hypot(real(x), imag(x)))"
_TURN = f"complex(-(imag(x) / {_RADIUS} / {_RADIUS}), real(x) / {_RADIUS} / {_RADIUS})"
_real(np.angle, cmath.phase, x=f"{_TURN} * dy")
_real(np.angle, x=f"{_TURN} * (({180.0 / math.pi} if deg else 1.0) * dy)", deg=None)

for _op, _same in _OF_CMATH.items():
    _TO_COMPLEX[_op] = _TO_COMPLEX[_same]


def has_complex(instr: Instr) -> bool:
    """Return whether an instruction takes or returns a complex number."""
    return any(isinstance(operand.type, types.Complex) for operand in (instr, *instr.args))


def complex_row(instr: Instr) -> Rule | None:
    """Return the row of an instruction that takes or returns a complex number and has a real or complex result."""
    op = instr.op
    if op in _FLAT or (op is np.std and not isinstance(instr.type, types.Complex)):
        return STRUCTURAL[op](instr)
    if not isinstance(instr.type, types.Complex):
        rows = _TO_REAL.get(op, [])
    elif op in _STRUCTURAL:
        return _STRUCTURAL[op](instr)
    else:
        rows = _TO_COMPLEX.get(op, [])
    return next((each for each in rows if len(each.names) == len(instr.args)), None)


def _power(instr: Instr) -> Rule | None:
    """Return the rule of a power. The selections keep `0 * inf` out at p = 0 and at x = 0."""
    if len(instr.args) != 2:
        return None
    n = _real_constant(instr.args[1])
    if n is not None:
        return row(x=power_by(n), p=None)
    none = "(p == 0) & ((x == 0) | (x != x))"
    return row(
        x=f"(0.0 if {none} else p * power({_BASE}, 1.0 if {none} else p - 1)) * dy",
        p=f"(y * log(1.0 if x == 0 else {_BASE})) * dy",
    )


def _real_constant(operand: Operand) -> int | float | None:
    """Return the value of a constant number that is real, of a complex type maybe, else None."""
    match operand:
        case Instr(op=ops.const, args=(constant,)):
            return _real_constant(constant)
        case Const(complex() | np.complexfloating() as value):
            return float(value.real) if value.imag == 0.0 else None
        case _:
            return constant_value(operand)


def _nan_to_num(instr: Instr) -> Rule | None:
    """`nan_to_num(x, copy, nan)`: each part is a constant where it is not finite."""
    found = STRUCTURAL[np.nan_to_num](instr)
    adjoints = {
        "x": "complex(real(dy) if isfinite(real(x)) else 0.0, imag(dy) if isfinite(imag(x)) else 0.0)",
        "nan": "complex(1.0 if isnan(real(x)) else 0.0, 1.0 if isnan(imag(x)) else 0.0) * dy",
    }
    return found and Rule(found.names, tuple(map(adjoints.get, found.names)))


_STRUCTURAL: dict[Op, Callable[[Instr], Rule | None]] = {
    **dict.fromkeys((operator.pow, builtins.pow, np.power, np.float_power), _power),
    np.nan_to_num: _nan_to_num,
}
