"""Floats that `x.view(dtype)` makes of other numbers: right where these carry no derivative, else refused."""

import numpy as np
import pytest

from zygote_py import DifferentiationError, gradient, jvp, stop_gradient

pytestmark = pytest.mark.interpreted

X = np.array([1.5, -2.25, 3.0, 0.1, 0.7, -5.5])
BITS = np.array([1.5, 2.5, 0.25]).view(np.int64)


# ------------------------------------------------------------------------- numbers that are made of other numbers


def of_parameter(x, k):
    return np.sum(k.view(np.float64) * x[:3])


def of_captured(x):
    return np.sum(BITS.view(np.float64) * x[:3])


def of_stopped(x):
    return np.sum(stop_gradient(x).view(np.int64).view(np.float64) * x)


def hashed(x):
    bits = np.empty(6, np.uint32)
    for i in range(6):
        bits[i] = np.uint32((i * 2654435761) & 0x7FFFFF) | np.uint32(0x3F800000)
    return np.sum(x * bits.view(np.float32))


def assembled(x):
    y = np.empty(2)
    b = y.view(np.int64)
    b[0], b[1] = BITS[0], BITS[1]
    return y[0] * x[0] + y[1] * x[1]


def test_numbers_that_carry_no_derivative():
    three = np.array([1.5, 2.5, 0.25, 0.0, 0.0, 0.0])
    assert gradient(of_parameter)(X, BITS)[0].tolist() == three.tolist()
    assert gradient(of_captured)(X).tolist() == three.tolist()
    assert gradient(of_stopped)(X).tolist() == X.tolist()
    assert gradient(assembled)(X).tolist() == [1.5, 2.5, 0.0, 0.0, 0.0, 0.0]
    bits = np.array([(i * 2654435761) & 0x7FFFFF | 0x3F800000 for i in range(6)], np.uint32)
    assert gradient(hashed)(X).tolist() == bits.view(np.float32).tolist()


def test_only_what_is_asked_for_counts():
    def there_and_back(x, w):
        return np.sum(x.view(np.int64).view(np.float64) * w)

    assert gradient(there_and_back, wrt="w")(X, X).tolist() == X.tolist()
    with pytest.raises(DifferentiationError, match="may hold the bytes"):
        gradient(there_and_back)(X, X)


# What an integer holds may be all that a float was, however it came there.


def at_once(x):
    return np.sum(x.view(np.int64).view(np.float64))


def by_a_copy(x):
    b = x.view(np.int64).copy()
    return np.sum(b.view(np.float64))


def by_elements(x):
    b = np.empty(len(x), np.int64)
    for i in range(len(x)):
        b[i] = x[i].view(np.int64) ^ 0
    return np.sum(b.view(np.float64))


def by_a_list(x):
    kept = [np.zeros(6, np.int64)]
    kept.append(x.view(np.int64) & -1)
    return np.sum(kept[1].view(np.float64))


def by_a_tuple(x):
    pair = (x.view(np.int64) + 0, x)
    return pair[0].view(np.float64)[0]


def by_numbers(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i].view(np.int64).view(np.float64)
    return s


def by_a_loop(x):
    b = np.empty(1, np.int64)
    s = 0.0
    for i in range(len(x)):
        s += b.view(np.float64)[0]
        b[0] = x[i].view(np.int64)
    return s


def by_bytes(x):
    b = np.empty(8, np.uint8)
    u = x.view(np.uint8)
    for i in range(8):
        if u[i] > 3:
            b[i] = u[i]
        else:
            b[i] = u[i]
    return b.view(np.float64)[0]


def by_where(x):
    a = np.full(3, x[0].view(np.int64))
    return np.where(a > 0, a, a + 1).view(np.float64)[0]


def by_a_float(x):
    b = np.empty(1, np.int64)
    b[0] = np.int64(np.float64(x[0].view(np.int64)))
    return b.view(np.float64)[0]


def by_floats_in_integers(x):
    b = np.empty(1, np.int64)
    f = b.view(np.float64)
    f[0] = x[0]
    return float(b[0] >> 52) * x[1] + f[0]


def take_bits(x, n):
    return x.view(np.int64).copy() if n == 0 else take_bits(x, n - 1)


def make_floats(b, n):
    return b.view(np.float64)[0] if n == 0 else make_floats(b, n - 1)


def by_routines(x):
    return make_floats(take_bits(x, 2), 2)


def by_a_routine(x):
    return make_floats(x.view(np.int64), 2)


def both(x, n):
    return x.view(np.int64).copy().view(np.float64)[0] if n == 0 else both(x, n - 1)


def in_a_routine(x):
    return both(x, 2)


def put_bits(x, b, n):
    if n == 0:
        b[0] = x.view(np.int64)[0]
        return 0
    return put_bits(x, b, n - 1)


def by_a_routine_that_writes(x):
    b = np.empty(1, np.int64)
    put_bits(x, b, 2)
    return b.view(np.float64)[0]


def write_bits(y, b, n):
    if n == 0:
        y.view(np.int64)[0] = b
        return 0
    return write_bits(y, b, n - 1)


def by_a_routine_that_writes_bits(x):
    y = np.empty(1)
    write_bits(y, x[0].view(np.int64), 2)
    return y[0]


def in_other_precision(x):
    return np.sum(x.view(np.float32)) * 1.0


def fast_inverse_root(x):
    i = 0x5FE6EB50C7B537A9 - (x.view(np.int64) >> 1)
    return np.sum(i.view(np.float64))


@pytest.mark.parametrize(
    "function",
    [
        *(
            at_once,
            by_a_copy,
            by_elements,
            by_a_list,
            by_a_tuple,
            by_numbers,
            by_a_loop,
            by_bytes,
            by_where,
            by_a_float,
        ),
        *(by_floats_in_integers, by_routines, by_a_routine, in_a_routine, by_a_routine_that_writes),
        *(by_a_routine_that_writes_bits, in_other_precision, fast_inverse_root),
    ],
)
def test_bytes_that_carry_a_derivative(function):
    function(X.copy())
    for taken in (lambda: gradient(function)(X.copy()), lambda: jvp(function, (X.copy(),), (X,))):
        with pytest.raises(DifferentiationError, match="bytes of") as caught:
            taken()
        assert caught.value.file == __file__
        assert "stop_gradient" in caught.value.hint


# -------------------------------------------------------------------------------------- writing through the bytes


def of_argument(x):
    b = x.view(np.int64)
    b[0] = 3
    return np.sum(x * x)


def of_slice(x):
    y = x * x
    y[1:].view(np.uint8)[:8] = np.uint8(0)
    return np.sum(y)


def in_place(x):
    y = x * x
    b = y.view(np.int64)
    b ^= 1
    return np.sum(y)


def bits_into_new_array(x):
    y = np.empty(1, np.float64)
    y.view(np.int64)[0] = x.view(np.int64)[0]
    return y[0] * x[1]


def sorted_as_integers(x):
    y = x * x
    y.view(np.int64).sort()
    return y[0]


def in_a_list(x):
    y = x * x
    kept = [y.view(np.int64)]
    kept[0][1] = 3
    return y[1]


@pytest.mark.parametrize(
    "function", [of_argument, of_slice, in_place, bits_into_new_array, sorted_as_integers, in_a_list]
)
def test_written_through_a_view(function):
    with pytest.raises(DifferentiationError, match="this writes to memory that is viewed as") as caught:
        gradient(function)(X.copy())
    assert caught.value.file == __file__
    assert "copy" in caught.value.hint
