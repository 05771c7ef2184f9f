"""Array instructions become loops: what these compute, and what is emitted for them.

Each program of `tests.ir.arrays.expansion_programs` is interpreted after expansion and compared with NumPy, which adds
up in another order; some are compiled and compared with what Numba makes of the same function, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from tests.ir.arrays.expansion_programs import CASES, Case, arguments
from zygote_py import numba_adapter
from zygote_py.emit import NJIT, emit
from zygote_py.frontend import lower
from zygote_py.ir import Function, Instr, interpret, kind_of, parse_type, passes, verify, verify_canonical
from zygote_py.ir.arrays import expand_arrays
from zygote_py.numba_adapter import typeof

pytestmark = pytest.mark.interpreted

CALLS = 25
# Where an integer meets a float32, Numba computes with float64 in between, and the expansion does not.
EXACT = [case for case in CASES if not any("f32" in param for param in case.params) or len(set(case.params)) == 1]
FIRST = {case.function: case for case in reversed(EXACT)}
QUICK = tuple(FIRST.values())[3::6]
COMPILED = [pytest.param(case, id=str(case), marks=() if case in QUICK else pytest.mark.long) for case in EXACT]


def types_of(case: Case) -> tuple[Any, ...]:
    kinds = [param.rpartition(" ")[0] or param for param in case.params]
    return tuple(parse_type(kind.replace("places", "i64")) for kind in kinds)


def expanded(function: Callable[..., Any], types: tuple[Any, ...]) -> Function:
    primal = lower(function, types, {}).function
    passes.run(primal, passes.CLEAN_UP)
    expand_arrays(primal)
    verify(primal, "expand_arrays")
    return primal


def emitted(function: Callable[..., Any], *types: str) -> str:
    primal = expanded(function, tuple(map(parse_type, types)))
    passes.run(primal, passes.CLEAN_UP)
    passes.run(primal, passes.CANONICAL)
    verify_canonical(primal)
    passes.run(primal, passes.CLEAN_UP)
    return emit(primal, name=function.__name__, target=NJIT).source


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, arrays with the strides that they have."""
    copies = []
    for arg in args:
        if isinstance(arg, np.ndarray) and arg.base is not None:
            base = arg.base.copy()
            arg = base.T if arg.base.shape == arg.T.shape else base[(slice(None, None, 2),) * arg.ndim]
        elif isinstance(arg, np.ndarray):
            arg = arg.copy()
        copies.append(arg)
    return tuple(copies)


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    args = copied(args)
    with np.errstate(all="ignore"):
        try:
            return function(*args), args
        except ValueError:
            return "shapes", args


def check_close(found: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            check_close(one, other, tolerance)
    elif expected is None or isinstance(expected, str):
        assert found is expected or found == expected
    else:
        expected = np.asarray(expected)
        found = np.asarray(found)
        assert found.shape == expected.shape
        kind = complex if expected.dtype.kind == "c" else float
        np.testing.assert_allclose(found.astype(kind), expected.astype(kind), rtol=tolerance, atol=tolerance)


def check_same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            check_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        assert np.array_equal(np.signbit(found.real), np.signbit(expected.real))
    else:
        np.testing.assert_equal(found, expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_interpreted(case: Case) -> None:
    types = types_of(case)
    function = expanded(case.function, types)
    assert not any(kind_of(i) for block in function.blocks for i in block.instrs if isinstance(i, Instr))
    tolerance = 1e-4 if any(str(type).count("float32") for type in types) or "float32" in repr(case) else 1e-9
    tolerance = 1e-4 if case.function.__name__ == "copies" else tolerance
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(CALLS):
        args = arguments(case, rng)
        found, left = outcome(lambda *args: interpret(function, *args), args)
        expected, wanted = outcome(case.function, args)
        check_close(found, expected, tolerance)
        if not isinstance(expected, str):
            check_close(left, wanted, tolerance)
        seen.add(isinstance(expected, str))
    assert False in seen


@pytest.mark.compiled
@pytest.mark.parametrize("case", COMPILED)
def test_compiled(case: Case) -> None:
    types = types_of(case)
    original = njit(case.function)
    original.compile(types)
    primal = expanded(case.function, types)
    passes.run(primal, passes.CLEAN_UP)
    passes.run(primal, passes.CANONICAL)
    verify_canonical(primal)
    passes.run(primal, passes.CLEAN_UP)
    function = numba_adapter.load(emit(primal, name="expanded", target=NJIT))
    rng = np.random.default_rng(2)
    compared = 0
    for _ in range(CALLS):
        args = arguments(case, rng)
        if tuple(map(typeof, args)) != types:
            continue  # a short axis makes an array contiguous, and Numba would compile once more
        found, left = outcome(function, args)
        expected, wanted = outcome(original, args)
        check_same(found, expected)
        if not isinstance(expected, str):
            check_same(left, wanted)
        compared += 1
    assert compared > 3


# ------------------------------------------------------------------------------------------------- what is emitted


def body(source: str) -> str:
    """The emitted function without decorators, helpers and comments."""
    lines = source[source.rindex("@njit") :].splitlines()[2:]
    return "\n".join(line.partition("  # ")[0].removeprefix("    ") for line in lines)


def allocations(source: str) -> int:
    return source.count("np.empty(") + source.count("np.zeros(")


def test_a_chain_is_one_loop() -> None:
    def chain(x):
        y = np.sin(x) * x + 1.0
        return y  # noqa: RET504 (its name is that of the array)

    assert body(emitted(chain, "f64[:]")) == (
        "n = len(x)\n"
        "y = np.empty(n, np.float64)\n"
        "for i in range(n):\n"
        "    t = x[i]\n"
        "    y[i] = np.sin(t) * t + 1.0\n"
        "return y"
    )


def test_a_chain_that_ends_in_a_sum_has_no_arrays() -> None:
    def loss(x, y):
        d = x - y
        return np.sum(np.log(1.0 + np.exp(d)) * d)

    source = emitted(loss, "f64[:]", "f64[:]")
    assert allocations(source) == 0
    assert source.count("for i in range") == 1


def test_a_value_of_two_sums_is_computed_in_one_loop() -> None:
    def moments(x):
        d = np.exp(x)
        return np.sum(d) + np.sum(d * d)

    assert body(emitted(moments, "f64[:]")) == (
        "s = 0.0\n"
        "s_1 = 0.0\n"
        "for i in range(len(x)):\n"
        "    d = np.exp(x[i])\n"
        "    s += d\n"
        "    s_1 += d * d\n"
        "return s + s_1"
    )


def test_an_array_is_filled_and_added_up_in_one_loop() -> None:
    def softmax(x):
        e = np.exp(x)
        return e / np.sum(e)

    source = emitted(softmax, "f64[:]")
    assert allocations(source) == 2
    assert source.count("for i in range") == 2


def test_rows_of_a_matrix_are_computed_once() -> None:
    def shifted(a, x):
        return np.sum(a * np.exp(x))

    source = emitted(shifted, "f64[:, :]", "f64[:]")
    assert allocations(source) == 1  # of exp(x)


def test_what_depends_on_the_outer_counter_is_computed_in_the_outer_loop() -> None:
    def outer(x, y):
        return np.sum(np.exp(x[:, None] + 0.0) * y)

    lines = body(emitted(outer, "f64[:]", "f64[:]")).splitlines()
    (inner,) = [line for line in lines if " for j in" in line]
    (exponential,) = [line for line in lines if "np.exp" in line]
    assert lines.index(exponential) < lines.index(inner)


def test_columns_are_added_up_row_by_row() -> None:
    def columns(a):
        return np.sum(a, axis=0)

    assert body(emitted(columns, "f64[:, :]")) == (
        "m = a.shape[1]\n"
        "t = np.zeros(m, np.float64)\n"
        "for i in range(a.shape[0]):\n"
        "    for j in range(m):\n"
        "        t[j] = t[j] + a[i, j]\n"
        "return t"
    )
    fortran = body(emitted(columns, "f64[:, :]F"))
    assert fortran.index("for j in") < fortran.index("for i in")
    assert "s += a[i, j]" in fortran


def test_a_store_in_place_needs_no_copy() -> None:
    def step(x, v):
        x += 0.5 * v
        x[:] = np.sin(x)

    assert allocations(emitted(step, "f64[:]", "f64[:]")) == 0


def test_a_store_of_what_it_overlaps_takes_a_copy() -> None:
    def reverse(x):
        x[:] = x[::-1]

    assert allocations(emitted(reverse, "f64[:]")) == 1


def test_different_rows_do_not_overlap() -> None:
    def add(a):
        a[0] = a[1] + a[0]

    assert allocations(emitted(add, "f64[:, :]")) == 0


def test_lengths_known_to_be_equal_are_not_compared() -> None:
    def differences(x):
        y = np.empty_like(x)
        y[1:] = x[1:] - x[:-1]
        return y * x

    source = emitted(differences, "f64[:]")
    assert "common_length" not in source
    assert "fitting_length" not in source
    assert "if" not in body(source)


def test_a_mask_with_a_number_needs_no_branch() -> None:
    def positive(x):
        x[x < 0.0] = 0.0

    assert body(emitted(positive, "f64[:]")) == (
        "for i in range(len(x)):\n    t = x[i]\n    x[i] = 0.0 if t < 0.0 else t\nreturn None"
    )


def test_nothing_is_computed_later_than_what_it_reads_is_overwritten() -> None:
    def late(x):
        y = x * 2.0
        x[0] = 5.0
        return np.sum(y)

    source = emitted(late, "f64[:]")
    assert source.index("s += x[i] * 2.0") < source.index("x[0] = 5.0")


@pytest.mark.optimised
def test_loops_over_float64_are_vectorised() -> None:
    def combined(x, y):
        return x * y + 2.0

    primal = expanded(combined, (parse_type("f64[:]"),) * 2)
    passes.run(primal, passes.CLEAN_UP)
    compiled = numba_adapter.load(emit(primal, name="combined", target=NJIT))
    compiled(np.ones(4), np.ones(4))
    assert any(f"<{width} x double>" in code for code in compiled.inspect_llvm().values() for width in (2, 4, 8))


def of_known_shapes(a, b, x):
    y = a @ b + np.zeros_like(a @ b) + 2.0 * (a @ b)
    z = np.linalg.solve(a, b @ x) - b @ x
    return y, z, np.linalg.inv(a) + a, np.dot(x, b) + x @ b


def test_shapes_of_products_and_solutions():
    text = emitted(of_known_shapes, "f64[:, :]", "f64[:, :]", "f64[:]")
    assert "common_length" not in text.partition("def of_known_shapes")[2], text
