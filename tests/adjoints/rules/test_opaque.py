"""The rules of products and decompositions against differences of NumPy's functions, plain and compiled.

Every helper is called with what its parameters name, as the compiler calls it; the inner product of its contribution
with a direction is that of the results' adjoints with the change of the results in that direction.
"""

from __future__ import annotations

import functools
import inspect
import operator
import warnings

import numpy as np
import pytest
from numba import njit, typeof, types
from numba.core.errors import NumbaPerformanceWarning

from tests.adjoints.rules.opaque_cases import CASES, Case, draw
from tests.modes import one_in
from zygote_py.adjoints import opaque_for
from zygote_py.ir import Const, Instr
from zygote_py.ir.ops import helpers
from zygote_py.numba_adapter import typed_function

LAYOUTS = ("C", "F", "A")
CALLED = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def plain(function):
    """A helper as it is."""
    return function


@functools.cache
def primal(op, count):
    """The operation, compiled."""
    names = ", ".join(f"x{k}" for k in range(count))
    return njit(eval(f"lambda {names}: op({names})", {"op": op}))


@functools.cache
def emitted(function):
    """A helper from its emitted source, for Numba, with those that it calls."""
    namespace = {"np": np}
    namespace |= {called.__name__: compiled(called) for called in helpers.called_by(function)}
    exec(helpers.source(function), namespace)
    return namespace[function.__name__]


@functools.cache
def compiled(function):
    """A helper from its emitted source, compiled with those that it calls."""
    return njit(emitted(function))


def laid_out(x, layout):
    if not isinstance(x, np.ndarray):
        return x
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "C":
        return np.ascontiguousarray(x)
    wide = np.zeros(tuple(2 * n + 1 for n in x.shape), x.dtype)
    view = wide[tuple(slice(None, 2 * n, 2) for n in x.shape)]
    view[...] = x
    return view


def type_of(x, layout):
    kind = typeof(x)
    return kind.copy(layout=layout if layout != "F" or kind.ndim > 1 else "C") if isinstance(x, np.ndarray) else kind


def results_of(case, arguments):
    found = case.op(*arguments, **case.keywords)
    return tuple(found) if isinstance(found, tuple) else (found,)


def compiled_results_of(case, arguments):
    """Return the results of the compiled operation, numbers in their original precision."""
    function = primal(case.op, len(arguments))
    found = function(*arguments)
    kind = function.overloads[tuple(map(typeof, arguments))].signature.return_type
    pairs = zip(found, kind, strict=True) if isinstance(found, tuple) else [(found, kind)]
    return tuple(y if isinstance(y, np.ndarray) else np.dtype(str(kind)).type(y) for y, kind in pairs)


def rule_of(case, arguments, layout="C"):
    operands = tuple(Const(x, type_of(x, layout)) for x in arguments)
    return opaque_for(Instr(case.op, operands, typeof(0.0)))


def contributions(rule, arguments, results, seeds, call):
    """Return the results of the helpers of a rule, by the names of the arguments."""
    given = dict(zip(rule.names, arguments, strict=False))
    if len(results) == 1:
        given |= {"y": results[0], "dy": seeds[0]}
    given |= {f"y{k}": y for k, y in enumerate(results)} | {f"dy{k}": dy for k, dy in enumerate(seeds)}
    found = {}

    def contribution(name):
        if name not in found:
            adjoint = rule.adjoints[rule.names.index(name)]
            assert adjoint.needs == tuple(inspect.signature(adjoint.function).parameters)
            values = [given[need] if need in given else contribution(need[1:]) for need in adjoint.needs]
            found[name] = call(adjoint.function)(*values)
        return found[name]

    return {rule.names[number]: contribution(rule.names[number]) for number in rule.adjoints}


def inner(xs, ys):
    return sum(np.sum(np.real(np.conj(x) * y)) for x, y in zip(xs, ys, strict=True) if x is not None)


def change(case, arguments, number, direction, base):
    """The derivative of the results in a direction: central differences, extrapolated twice."""

    def difference(h):
        ends = []
        for step in (h, -h):
            moved = [*arguments[:number], arguments[number] + step * direction, *arguments[number + 1 :]]
            ends.append(case.align(results_of(case, moved), base))
        return [(np.asarray(p) - q) / (2 * h) if inexact(p) else None for p, q in zip(*ends, strict=True)]

    tables = [difference(h) for h in (4e-3, 2e-3, 1e-3)]
    rows = [None if a is None else ((4 * b - a) / 3, (4 * c - b) / 3) for a, b, c in zip(*tables, strict=True)]
    return [None if row is None else (16 * row[1] - row[0]) / 15 for row in rows]


def inexact(x):
    return np.issubdtype(np.asarray(x).dtype, np.inexact)


def wide(x):
    """In double precision."""
    kind = np.asarray(x).dtype
    if kind.kind not in "fc":
        return x
    return np.asarray(x).astype(np.complex128 if kind.kind == "c" else np.float64)


def check(case: Case, dtype, layout, call, seed=0):
    rng = np.random.default_rng(seed)
    arguments = tuple(laid_out(x, layout) for x in case.arguments(rng, dtype))
    exact = tuple(np.ascontiguousarray(wide(x)) if isinstance(x, np.ndarray) else x for x in arguments)
    base = results_of(case, exact)
    drawn = tuple(draw(rng, y.dtype.type, *y.shape) if inexact(y) else None for y in map(np.asarray, base))
    seeds = case.seeds(drawn, base)
    rule = rule_of(case, arguments, layout)
    # The vectors of single precision may have other phases than those that the adjoints were made for.
    narrow = results_of(case, arguments) if call is plain else compiled_results_of(case, arguments)
    results = tuple(as_result(y, of) for y, of in zip(case.align(narrow, base), narrow, strict=True))
    narrow_seeds = tuple(None if d is None else as_result(d, y) for d, y in zip(seeds, narrow, strict=True))
    assert set(rule.adjoints) == {k for k, x in enumerate(arguments) if isinstance(x, np.ndarray)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", NumbaPerformanceWarning)
        found = contributions(rule, arguments, results, narrow_seeds, call)
    precise = np.finfo(dtype).bits == 64
    for number in rule.adjoints:
        contribution = found[rule.names[number]]
        assert contribution.shape == arguments[number].shape
        assert contribution.dtype == dtype
        for _ in range(2):
            direction = draw(rng, wide(arguments[number]).dtype.type, *arguments[number].shape)
            moved = change(case, exact, number, direction, base)
            expected = inner(seeds, moved)
            size = max(1.0, np.sum(np.abs(contribution)))
            assert abs(inner([contribution], [direction]) - expected) <= (1e-8 if precise else 1e-4) * size


def as_result(x, like):
    x = np.asarray(x).astype(np.asarray(like).dtype)
    return x if x.ndim else x[()]


@pytest.mark.parametrize("layout", LAYOUTS)
@CALLED
def test_rules_against_differences(case, layout):
    for dtype in case.dtypes:
        check(case, dtype, layout, plain)


IN_DOUBLE = {types.float32: types.float64, types.complex64: types.complex128}
FIRST = {case.op: case for case in reversed(CASES)}.values()


@pytest.mark.parametrize("layout", one_in(3, ("A", "C", "F")))
@pytest.mark.parametrize("case", FIRST, ids=lambda case: case.op.__name__)
def test_helpers_have_a_type_in_single_precision_and_for_adjoints_in_double_precision(case, layout):
    def typed(function):
        return lambda *kinds: typed_function(emitted(function), kinds, {}).return_type

    dtype = next(dtype for dtype in case.dtypes if np.finfo(dtype).bits == 32)
    arguments = case.arguments(np.random.default_rng(0), dtype)
    kinds = tuple(type_of(x, layout) for x in arguments)
    result = typed_function(primal(case.op, len(kinds)).py_func, kinds, {}).return_type
    if isinstance(result, types.Optional):  # Numba's `matrix_power`
        result = result.type
    results = tuple(result) if isinstance(result, types.BaseTuple) else (result,)
    seeds = tuple(IN_DOUBLE.get(kind, kind) for kind in results)
    found = contributions(rule_of(case, arguments, layout), kinds, results, seeds, typed)
    for kind in found.values():
        assert isinstance(kind, types.Array)


# The helpers of these take long to compile; what they compute is compared above.
SLOW = (
    *(np.linalg.svd, np.linalg.lstsq, np.linalg.qr, np.linalg.eig, np.linalg.eigh, np.linalg.eigvals),
    *(np.linalg.matrix_power, np.linalg.pinv, np.linalg.solve, np.linalg.cond, np.linalg.det, np.linalg.norm),
    *(np.linalg.cholesky, np.linalg.eigvalsh, np.dot, operator.matmul),
)


@pytest.mark.parametrize(
    "op",
    [pytest.param(op, marks=pytest.mark.long if op in SLOW else ()) for op in dict.fromkeys(case.op for case in CASES)],
    ids=lambda op: op.__name__,
)
def test_compiled_rules_against_differences(op):
    for case in CASES:
        if case.op is op:  # one after the other, as they share what is compiled
            check(case, np.float64, "C", compiled)


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [
        pytest.param(np.complex64, "C", marks=pytest.mark.long),
        pytest.param(np.float32, "A", marks=pytest.mark.long),
        pytest.param(np.complex128, "F", marks=pytest.mark.long),
    ],
)
@CALLED
def test_compiled_rules_of_other_types_against_differences(case, dtype, layout):
    check(case, dtype, layout, compiled)


@pytest.mark.parametrize(
    "case", one_in(4, [case for case in CASES if case.name.startswith("dot")]), ids=lambda case: case.name
)
def test_strided_factors_are_multiplied_without_a_warning(case):
    check(case, np.float32, "A", compiled)
