"""`x.view(dtype)`: complex numbers as floats and back, floats as integers, layouts."""

import math

import numba
import numpy as np
import pytest

from tests.checking.derivatives import ARRAYS, check_derivatives
from tests.plain import plain
from zygote_py import (
    DifferentiationError,
    gradient,
    hvp,
    jacobian,
    jvp,
    pullback,
    value_and_gradient,
)
from zygote_py.ir import Memory, interpret, merge_common_subexpressions, parse, same_elements, verify
from zygote_py.ir.text.printer import text

pytestmark = pytest.mark.interpreted


rng = np.random.default_rng(11)
X = np.array([1.5, -2.25, 3.0, 0.1, 0.7, -5.5])
Z = rng.normal(size=4) + 1j * rng.normal(size=4)
M = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
BITS = np.array([1.5, 2.5, 0.25]).view(np.int64)
DTYPE = np.dtype(np.int64)
IN_ONE_LAYOUT = ARRAYS | {"layouts": "C", "float32": False}


# ------------------------------------------------------------------------- complex numbers as floats, and back


def as_floats(z):
    v = z.view(np.float64)
    s = 0.0
    for k in range(len(v)):
        s += v[k] ** 3 * (k + 1) + v[k] * v[k - 1]
    return s


def as_floats_of_rows(z):
    v = z.view(np.float64)
    s = np.sum(v * v * v) + v[1, 2] * v[2, 0] * v.shape[1]
    for i in range(len(z)):
        row = z[i, 1:].view(np.float64)
        s += row[0] * row[1] * row[2]
    return s


def as_floats_of_columns(z):
    v = z[:, 1:3].view(np.float64)
    return np.sum(v * v * v) + v[1, 2] * v[2, 0]


def as_complex(x):
    w = x.view(np.complex128)
    return np.sum(np.abs(w * w * w) ** 2) + (w[0] * w[1]).imag


def there_and_back(z):
    v = z.view(np.float64)[1:-1].view(np.complex128)
    return np.sum(np.abs(v * v) ** 2)


def stored_through(x):
    w = np.zeros(3, np.complex128)
    v = w.view(np.float64)
    for i in range(6):
        v[i] = x[i] * x[i]
    w *= w
    v *= 2.0
    v[0] += v[3] * w[2].imag
    return np.abs(w[0]) ** 2 + w[1].real * w[2].imag


def stored_beside(z):
    v = z.view(np.float64)
    w = z * z
    v[1] = v[0] * v[3]
    v[:2] *= 3.0
    z[1] = w[0] * v[1]
    v[2:6] = v[0:4].copy()
    return np.sum(np.abs(z) ** 2) + w.sum().imag


def stored_into_argument(x, out):
    o = out.view(np.complex128)
    o[:] = x.view(np.complex128) ** 2
    return out[1] * o[0].real


def one_of_two(x):
    y = x * x
    a = y if x[0] > 1.0 else x
    w = a.view(np.complex128)
    y[0] = 3.0 * x[1]
    return np.abs(w[0]) ** 2 + y[0] + np.abs(w[1]) ** 2


@numba.njit
def half(v, n):
    return 0.0 if n == 0 else v[n - 1] * v[n - 1] * v[n] + half(v, n - 1)


def passed_to_recursive(z):
    return half(z.view(np.float64), 5)


@numba.njit
def recursive(z, n):
    v, b = z.view(np.float64), z.view(np.int64)
    return 0.0 if n == 0 else v[n - 1] * v[n - 1] * v[n] * ((b[0] >> 52) & 7) + recursive(z, n - 1)


def viewed_in_recursive(z):
    return recursive(z, 5)


@pytest.mark.compiled
def test_compiled():
    check_derivatives(as_floats, Z, **IN_ONE_LAYOUT)
    check_derivatives(exponents, X, **ARRAYS | {"float32": False})


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (as_floats_of_rows, (M,)),
        (as_floats_of_columns, (M,)),
        (as_complex, (X,)),
        (there_and_back, (Z,)),
        (stored_through, (X,)),
        (stored_beside, (Z,)),
        (one_of_two, (X,)),
        (one_of_two, (-X,)),
        (passed_to_recursive, (Z,)),
        pytest.param(viewed_in_recursive, (Z,), marks=pytest.mark.compiled),
    ],
)
def test_the_same_numbers(function, args):
    check_derivatives(function, *args, **IN_ONE_LAYOUT)


def test_of_single_precision():
    z = Z.astype(np.complex64)
    found = gradient(lambda z: np.sum(z.view(np.float32)[1::2] ** 2) * 1.0)(z)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, 2j * z.imag, rtol=1e-6)


def test_stored_into_an_argument():
    check_derivatives(stored_into_argument, X, np.zeros(6), mutated=("out",), **IN_ONE_LAYOUT)


def test_a_vector_in_closed_form():
    def parts(x):
        return np.abs(x.view(np.complex128)) ** 2

    expected = np.zeros((3, 6))
    for k in range(3):
        expected[k, 2 * k : 2 * k + 2] = 2 * X[2 * k : 2 * k + 2]
    np.testing.assert_allclose(jacobian(parts)(X), expected)


def test_forward_and_second_derivatives():
    def squares(x):
        w = x.view(np.complex128)
        return np.sum((w * w).real * np.abs(w) ** 2)

    # With w = a + ib it is the sum of a^4 - b^4.
    direction = rng.normal(size=6)
    signs = np.tile([1.0, -1.0], 3)
    value, tangent = jvp(squares, (X,), (direction,))
    assert value == pytest.approx(np.sum(signs * X**4))
    assert tangent == pytest.approx(np.sum(signs * 4 * X**3 * direction))
    np.testing.assert_allclose(hvp(squares)(X, direction), signs * 12 * X**2 * direction)
    back = pullback(squares, X)[1]
    for seed in (1.0, -2.5):
        np.testing.assert_allclose(back(seed)[0], seed * signs * 4 * X**3)


def test_derivative_inside():
    def of_gradient(x):
        return np.sum(gradient(lambda t: np.sum(t.view(np.complex128) ** 2).real)(x) ** 2)

    np.testing.assert_allclose(gradient(of_gradient)(X), 8 * X)


def test_the_pattern_is_refused():
    with pytest.raises(DifferentiationError, match="through view"):
        jacobian(lambda x: np.abs(x.view(np.complex128)), sparsity="detect")(X)


# -------------------------------------------------------------------------------------------- floats as integers


def exponents(x):
    bits = x.view(np.uint64)
    s = 0.0
    for i in range(len(x)):
        e = (bits[i] >> np.uint64(52)) & np.uint64(0x7FF)
        s += x[i] * x[i] * np.float64(e)
    return s + np.sum(x[1:3] * (x[1:3].view(np.int64) >> 52)) + np.sum(x[::2].view(np.int64) >> 52) * x[0]


def of_dtypes(x, k):
    of_array = np.sum(x * (x.view(k.dtype) >> 52))
    return of_array + np.sum(x * (x.view(np.dtype("int64")) >> 53)) + np.sum(x * (x.view(DTYPE) >> 54))


def of_numbers(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 2 * (x[i].view(np.int64) >> 52)
    return s


def of_bytes(x):
    last = x.view(np.uint8)[7::8]
    s = x[0] * x.view(np.uint8).shape[0]
    for b in x[:2].view(np.uint8)[7::8]:
        s += x[1] * x[1] * (b & np.uint8(3))
    return s + np.sum(x * last)


def overwritten(x):
    b = x.view(np.int64)
    s = x[0] * (b[0] >> 52)
    x[0] = x[0] * 16.0
    for i in range(len(x)):
        s += x[i] * x[i] * (b[i] >> 52)
        x[i] = x[i] * x[i]
        s += x[i] * (b[i] >> 52)
    return s


def overwritten_while_used(z):
    v, b = z.view(np.float64), z.view(np.int64)
    s = 0.0
    for i in range(len(z)):
        s += v[2 * i] * v[2 * i + 1] * ((b[2 * i] >> 52) & 15)
        z[i] = z[i] * z[i]
        s += v[2 * i] * v[2 * i + 1] * ((b[2 * i] >> 52) & 15)
    return s + np.sum(v)


def of_integers(x, k):
    halves = k.view(np.uint32)
    flags = (k > 4).view(np.uint8)
    k[0] += 1
    return x[0] * halves[0] + x[1] * halves[2] + np.sum(x[:3] * flags)


@numba.njit
def magnitude(x):
    return (x.view(np.int64) >> 52) & 0x7FF


def in_a_function(x):
    return np.sum(x * x * magnitude(x))


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (of_dtypes, (X, np.arange(3))),
        (of_bytes, (X,)),
        (overwritten, (X,)),
        (overwritten_while_used, (Z,)),
        (of_integers, (X, np.array([3, 5, 7]))),
        (in_a_function, (X,)),
    ],
)
def test_integers(function, args):
    check_derivatives(function, *args, wrt=["z" if args[0] is Z else "x"], **IN_ONE_LAYOUT)


def test_numbers_as_integers():
    emitted = plain(gradient(of_numbers).source(X))
    np.testing.assert_allclose(emitted(X), 2 * X * (X.view(np.int64) >> 52))


@pytest.mark.compiled
def test_numbers_as_integers_compiled():
    np.testing.assert_allclose(gradient(of_numbers)(X), 2 * X * (X.view(np.int64) >> 52))


# -------------------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize("order", ["F", "A"])
def test_elements_of_the_same_size_in_any_order(order):
    def of_matrix(x):
        return np.sum(x * (x.view(np.int64) >> 52)) + x.view(np.int64)[1, 0] % 2

    x = np.asfortranarray(M.real) if order == "F" else np.repeat(M.real, 2, axis=1)[:, ::2]
    np.testing.assert_allclose(gradient(of_matrix)(x), M.real.copy().view(np.int64) >> 52)


def test_elements_of_another_size():
    """Views that NumPy and Numba refuse at run time; they differ for a column with one element in each row."""

    def of_floats(z):
        return np.sum(z.view(np.float64))

    with pytest.raises(DifferentiationError, match="in Fortran order as a type of another size"):
        gradient(of_floats)(np.asfortranarray(M))
    with pytest.raises(DifferentiationError, match="without axes as a type of another size"):
        gradient(of_floats)(np.array(1j))
    derivative = gradient(of_floats)
    for z in (M[:, ::2], M[::-1, ::-1]):
        with pytest.raises(ValueError, match="the last axis must be contiguous"):
            derivative(z)
        with pytest.raises(ValueError, match="the last axis must be contiguous"):
            plain(derivative.source(z))(z)
    assert derivative(M[::2, 1:3]).tolist() == np.full((2, 2), 1 + 1j).tolist()
    with pytest.raises(ValueError, match="its size must be a divisor of the total size"):
        gradient(as_complex)(X[:5])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(dtype=np.int64)[0] * x[0],
        lambda x: x.view(int)[0] * x[0],
        lambda x: x.view("i8")[0] * x[0],
        lambda x: x.view()[0],
    ],
)
def test_forms_that_numba_does_not_have(function):
    with pytest.raises(DifferentiationError, match="does not know this form of `view`") as caught:
        gradient(function)(X)
    assert caught.value.file == __file__
    assert "np.int64" in caught.value.hint


def test_the_same_type():
    y = plain(gradient(lambda x: same_view(x * 1.0)).source(X))(X)
    assert y == pytest.approx([3.0 * X[1], 3.0 * X[0], 0.0, 0.0, 0.0, 0.0])


def same_view(x):
    y = x.view(np.float64)
    y[0] *= 3.0
    return y[0] * x[1]


def test_left_out():
    """A view shares its memory with what a selection leaves out."""

    def chosen(x):
        logs = np.log(x)
        v = logs.view(np.complex128)
        return np.sum(np.where(x > 0, logs, 0.0)) + v[0].real

    x = np.array([0.5, 2.0, 0.0, 3.0])
    found = value_and_gradient(chosen)(x)[1]
    assert found.tolist() == pytest.approx([4.0, 0.5, 0.0, 1 / 3])
    assert not math.isnan(found[2])


# ------------------------------------------------------------------------------------------------------------- IR

VIEWED = """function f(%x: f64[:], %s: f64) -> u8
b0:
  %a = view %x : i64[:]
  %b = view %x : u8[:]
  %c = view %x : i64[:]
  %first = getitem %a, 0 : i64
  setitem %x, %s, 0
  %d = getitem %c, 0 : i64
  %e = getitem %b, 7 : u8
  %t = view %s : i64
  %same = eq %d, %t : bool
  %r = mul %e, %same : u8
  return %r
"""


def test_the_instruction():
    (function,) = parse(VIEWED)
    assert text(function) == VIEWED.strip()
    verify(function)
    x = np.array([1.0, 2.0])
    assert interpret(function, x, 3.5) == (np.array([3.5]).view(np.uint8)[7],)
    memory = Memory(function)
    a, b, *_ = function.entry.instrs
    assert memory.may_share(a, function.params[0])
    assert memory.may_share(a, b)
    merge_common_subexpressions(function)
    ops = [instr.op.__name__ for instr in function.entry.instrs]
    assert ops.count("view") == 3  # %a and %c are one, %b is of another type
    assert ops.count("getitem") == 3  # and the store is seen
    assert not same_elements(a, b)
    assert same_elements(a, a)
