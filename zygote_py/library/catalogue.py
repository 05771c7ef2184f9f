"""What becomes of each callable that Numba supports: differentiated, without derivative by nature, or refused.

    status(np.var)          # Status(Kind.DIFFERENTIABLE, "")
    status(np.argsort)      # Status(Kind.FLAT, "")
    status(np.nextafter)    # Status(Kind.REFUSED, "it is a property of the number format, ...")

It reads the tables that the compiler works by: the rules of scalars, those of linear algebra, the library, and the
forms that make and move arrays. What is in none of them has no derivative if its results carry none (integers, truth
values, what depends on no float): those are listed here. The rest is refused. `__main__` makes `docs/numpy.md` of it.
"""

from __future__ import annotations

import builtins
import cmath
import enum
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import types

from zygote_py.adjoints.rules import rule_for
from zygote_py.adjoints.rules.opaque import SAMPLES
from zygote_py.adjoints.rules.refused import REFUSED
from zygote_py.frontend import creation
from zygote_py.ir import ops
from zygote_py.ir.core import Instr, Param
from zygote_py.library.draws import DRAWS
from zygote_py.library.registry import implemented

Op = Callable[..., object]


class Kind(enum.Enum):
    """What becomes of a callable."""

    DIFFERENTIABLE = "differentiable"
    FLAT = "no derivative by nature"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Status:
    """What becomes of a callable, and under which condition or why."""

    kind: Kind
    note: str = ""


# Their results are integers or truth values, or depend on no float. Names, as an older NumPy may miss some.
_FLAT_NUMPY = """
    allclose any all argmax argmin argpartition argsort argwhere array_equal bartlett blackman broadcast_shapes
    count_nonzero digitize dtype eye finfo flatnonzero hamming hanning identity iinfo indices isclose iscomplex
    iscomplexobj isfinite isin isinf isnan isnat isneginf isposinf isreal isrealobj isscalar logical_and logical_not
    logical_or logical_xor nanargmax nanargmin ndindex nonzero searchsorted shape size tri tril_indices
    tril_indices_from triu_indices triu_indices_from
    bitwise_and bitwise_not bitwise_or bitwise_xor left_shift right_shift invert gcd lcm
    equal not_equal less less_equal greater greater_equal signbit
"""
_FLAT: frozenset[object] = frozenset(
    {getattr(np, name) for name in _FLAT_NUMPY.split() if hasattr(np, name)}
    | {np.linalg.matrix_rank, math.gcd, math.isfinite, math.isinf, math.isnan}
    | {cmath.isfinite, cmath.isinf, cmath.isnan}
)
# What the compiler does with Python's own functions.
_BUILTINS: dict[object, Status] = {
    **dict.fromkeys((abs, complex, divmod, enumerate, float, max, min, pow), Status(Kind.DIFFERENTIABLE)),
    **dict.fromkeys((range, slice, sum, tuple, zip), Status(Kind.DIFFERENTIABLE)),
    **dict.fromkeys((bool, int, isinstance, len, round), Status(Kind.FLAT)),
    print: Status(Kind.FLAT, "it prints in the forward sweep"),
}
_REAL, _COMPLEX = types.float64, types.complex128
# Methods and attributes of arrays that are no function of NumPy's by the same name.
_MEMBERS: dict[str, Status] = {
    **dict.fromkeys(("T", "fill", "flat", "flatten", "item", "astype", "conj"), Status(Kind.DIFFERENTIABLE)),
    **dict.fromkeys(("dtype", "flags", "itemsize", "nbytes", "ndim", "shape", "size", "strides"), Status(Kind.FLAT)),
    **dict.fromkeys(("ctypes", "tobytes"), Status(Kind.REFUSED, "it gives access to the bytes of an array")),
    "view": Status(Kind.DIFFERENTIABLE, "of complex numbers as floats and back; of others see docs/complex.md"),
}


def status(op: object) -> Status:
    """What becomes of a callable."""
    if op in _BUILTINS:
        return _BUILTINS[op]
    if op in _FLAT:
        return Status(Kind.FLAT)
    if op in DRAWS and op not in implemented():
        return Status(Kind.FLAT)
    if isinstance(op, type) and issubclass(op, np.generic):
        return Status(Kind.DIFFERENTIABLE if issubclass(op, np.inexact) else Kind.FLAT)
    if op in REFUSED:
        why, instead = REFUSED[op]
        return Status(Kind.REFUSED, f"{why}; {instead}")
    is_view = callable(op) and ops.of(op).view
    if op in implemented() or op in creation.FORMS or is_view or op in (np.where, np.clip, cmath.polar):
        return Status(Kind.DIFFERENTIABLE)
    if op in SAMPLES:
        return Status(Kind.DIFFERENTIABLE, SAMPLES[op].condition)
    flows = _flows(op) if callable(op) else None
    if flows is None:
        return Status(Kind.REFUSED)
    return Status(Kind.DIFFERENTIABLE if flows else Kind.FLAT)


def status_of_member(name: str) -> Status:
    """What becomes of an attribute or a method of arrays."""
    method = getattr(np.ndarray, name, None)
    if name in _MEMBERS:
        return _MEMBERS[name]
    return status(method if method in implemented() else getattr(np, name))


def _flows(op: Op) -> bool | None:
    """Whether any rule of a scalar operation, real or complex, passes something on; None if it has no rule."""
    found = None
    for args, result in itertools.product((_REAL, _COMPLEX), (_REAL, _COMPLEX)):
        for arity in (1, 2, 3):
            rule = rule_for(Instr(op, tuple(Param(args) for _ in range(arity)), result))
            if rule is not None:
                found = found or any(adjoint is not None for adjoint in rule.adjoints)
    return found


def names_of(module: str, callables: dict[str, object]) -> dict[object, str]:
    """The names of each object among the callables of a module, in one text: `np.abs, np.absolute`."""
    found: dict[object, list[str]] = {}
    for name, op in callables.items():
        found.setdefault(op, []).append(name if module == builtins.__name__ else f"{module}.{name}")
    return {op: ", ".join(f"`{name}`" for name in names) for op, names in found.items()}
