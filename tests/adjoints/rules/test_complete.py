"""Every scalar operation that Numba compiles has a rule, has no derivative by nature, or is refused with a reason."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest
from numba import types

from tests.adjoints.rules.evaluator import f32, f64, i64
from zygote_py.adjoints import REFUSED, rule_for
from zygote_py.frontend.values import implemented
from zygote_py.ir import Const, Instr, Param, Type, ops

c128 = types.complex128
COMPLEX_SIGNATURES = ((c128,), (c128, c128), (c128, f64), (f64, c128))
SIGNATURES = ((f64,), (f64, f64), (f64, i64), (f64, f64, f64))
# NumPy functions on scalars that are not ufuncs.
OTHERS = """
    round around real imag sinc nan_to_num angle isclose allclose isneginf isposinf isreal iscomplex isscalar size sum
    prod max min amax amin mean average ptp std any all nanmax nanmin clip fix heaviside
"""
OPERATORS = "add sub mul truediv floordiv mod pow neg pos lt le eq ne ge gt not_ and_ or_ xor invert"
BUILTINS = (abs, bool, complex, divmod, float, hash, int, max, min, pow, round)


def callables() -> Iterator[tuple[str, Callable[..., object]]]:
    for builtin in BUILTINS:
        yield builtin.__name__, builtin
    for name, found in vars(math).items():
        if callable(found) and not name.startswith("_"):
            yield f"math.{name}", found
    for name, found in vars(cmath).items():
        if callable(found) and not name.startswith("_"):
            yield f"cmath.{name}", found
    for name, found in vars(np).items():
        if isinstance(found, np.ufunc) or (isinstance(found, type) and issubclass(found, np.number)):
            yield f"np.{name}", found
    for name in OTHERS.split():
        yield f"np.{name}", getattr(np, name)
    for name in OPERATORS.split():
        yield f"operator.{name}", getattr(operator, name)


def compiled_type(text: str, signature: tuple[Type, ...]) -> Type | None:
    """The type of a call's result, None if Numba does not compile the call."""
    names = ", ".join("abc"[: len(signature)])
    namespace = {"math": math, "cmath": cmath, "np": np, "operator": operator}
    exec(f"def call({names}): return {text}({names})", namespace)
    dispatcher = numba.njit(namespace["call"])
    try:
        dispatcher.compile(signature)
    except Exception:  # Numba raises almost anything here
        return None
    return dispatcher.overloads[signature].signature.return_type


def call(op: Callable[..., object], signature: tuple[Type, ...], result: Type) -> Instr:
    return Instr(op, tuple(map(Param, signature)), result)


def test_every_operation_has_a_rule_or_a_reason() -> None:
    missing = []
    for text, op in callables():
        if op in REFUSED:
            continue
        for signature in SIGNATURES:
            if rule_for(call(op, signature, f64)) is not None:
                continue
            found = compiled_type(text, signature)
            # The sum over an axis of a number compiles, and means nothing.
            if found in (None, types.none) or op is np.sum:
                continue
            # A rule is for one result: pairs are taken apart by an implementation.
            if isinstance(found, types.BaseTuple) and op in implemented():
                continue
            if rule_for(call(op, signature, found)) is None:
                missing.append(f"{text}{signature} -> {found}")
    assert not missing


# Without a rule for complex numbers: the front end takes the pair of `polar` apart, Numba's `sign` is not NumPy's, and
# `max` of one number means nothing.
NOT_OF_COMPLEX = {cmath.polar, np.sign, max, min}


@pytest.mark.long
def test_every_operation_on_complex_numbers_has_a_rule() -> None:
    missing = []
    for text, op in callables():
        if op in REFUSED or op in NOT_OF_COMPLEX:
            continue
        for signature in COMPLEX_SIGNATURES:
            if any(rule_for(call(op, signature, result)) is not None for result in (c128, f64)):
                continue
            found = compiled_type(text, signature)
            if found in (None, types.none) or op is np.sum:
                continue
            if rule_for(call(op, signature, types.unliteral(found))) is None:
                missing.append(f"{text}{signature} -> {found}")
    assert not missing


def test_what_is_refused_has_no_rule() -> None:
    for op in REFUSED:
        for signature in SIGNATURES:
            assert rule_for(call(op, signature, f64)) is None, ops.name_of(op)


FLAT = """
    lt floordiv math.floor np.floor int bool round np.sign math.isnan np.rint np.imag np.floor_divide np.isfinite
    np.int32 np.round np.signbit np.logical_and np.ptp
"""


@pytest.mark.parametrize("name", FLAT.split())
def test_flat_by_nature(name: str) -> None:
    op = ops.named(name)
    for result in (f64, i64, types.boolean):
        rule = rule_for(call(op, (f64, f64), result))
        assert rule is not None
        assert rule.adjoints == (None, None)


def test_no_rule() -> None:
    vector = types.Array(f64, 1, "C")
    assert rule_for(call(operator.mul, (vector, f64), vector)) is None
    assert rule_for(call(np.sum, (vector,), f64)) is None
    assert rule_for(call(sorted, (f64,), f64)) is None


def test_integers_have_no_gradient() -> None:
    rule = rule_for(call(operator.mul, (f64, i64), f64))
    assert rule is not None
    assert (rule.passes(0), rule.passes(1)) == (True, False)
    whole = rule_for(call(operator.mul, (i64, i64), i64))
    assert whole is not None
    assert whole.adjoints == (None, None)
    chosen = rule_for(call(ops.select, (types.boolean, f32, f32), f32))
    assert chosen is not None
    assert list(map(chosen.passes, range(3))) == [False, True, True]


def test_keywords_of_nan_to_num() -> None:
    instr = Instr(np.nan_to_num, (Param(f64), Const(0.0, f64)), f64, keywords=("nan",))
    rule = rule_for(instr)
    assert rule is not None
    assert rule.names == ("x", "nan")
    assert rule.passes(0)
    instr = Instr(np.nan_to_num, (Param(f64), Const(1.0, f64)), f64, keywords=("posinf",))
    rule = rule_for(instr)
    assert rule is not None
    assert not rule.passes(1)
