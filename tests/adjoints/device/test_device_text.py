"""The text that derivatives have for a device: its operations, its records, and what is refused."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba import types

from zygote_py import DifferentiationError, derivative, gradient
from zygote_py.compiler import compile_for_device

pytestmark = pytest.mark.interpreted

F4, F8, I8 = types.float32, types.float64, types.int64


def text(f, *kinds, wrt=None):
    return compile_for_device(gradient(f, wrt=wrt, mode="reverse")._request, kinds)


def body(code):
    """The lines of the function without comments."""
    lines = [line.partition("  #")[0] for line in code.emitted.source.splitlines()]
    return lines[next(n for n, line in enumerate(lines) if line.startswith("def ")) :]


def test_functions_of_numpy_become_those_of_math():
    code = text(lambda x: np.exp(x) * np.sqrt(x) + np.arctan(x) + np.absolute(x), F4)
    found = "\n".join(body(code))
    assert "np." not in found.replace("np.float32", "")
    assert "math.exp(x)" in found
    assert "@cuda.jit(device=True)" in code.emitted.source


def test_functions_that_a_device_lacks_are_written_out():
    found = "\n".join(body(text(lambda x: np.where(x > 1.0, x, np.square(x)) * np.sign(x), F8)))
    assert "np." not in found
    assert "x > 1.0" in found


def test_single_precision_is_compared_in_single_precision():
    def f(x):
        return x * x if x > 0.5 else x * x * x if x < 0.1 else x

    found = text(f, F4).emitted.source
    assert "x > np.float32(0.5)" in found
    assert "np.float64(x)" in found  # 0.1 has no equal of single precision
    assert "< 0.1" in found


def test_records_are_strided_by_thread():
    def f(x, n):
        r = 1.0
        for _ in range(n):
            r *= x
        return r

    code = text(f, F8, I8)
    assert [(each.name, each.dtype) for each in code.records] == [("r_record", F8)]
    assert body(code)[0] == "def f_gradient(x, n, r_record, lane, lanes):"
    assert sum("r_record[" in line and "* lanes + lane]" in line for line in body(code)) == 2
    assert code.lengths_of == (1,)  # the length depends on n alone


def test_records_of_a_constant_length_are_arrays_of_the_thread():
    def f(x):
        r = 1.0
        for _ in range(6):
            r = math.sin(r * x)
        return r

    code = text(f, F8)
    assert code.records == ()
    assert code.lengths is None
    assert "cuda.local.array(6, np.float64)" in code.emitted.source


def test_lists_become_a_counter_and_an_array_for_each_number():
    def f(x, y):
        k = 0
        while x < 10.0:
            x, y = x * y + 1.0, math.sin(x) + 2.0
            k += 1
        return x * k

    code = text(f, F8, F8)
    assert len(code.records) == 2
    assert "append" not in code.emitted.source
    assert "cuda.local.array(1, np.int64)" in code.emitted.source
    assert set(code.lengths_of) == {0, 1}


def test_gradients_of_arrays_are_stored_where_the_caller_wants_them():
    def f(w, x):
        s = 0.0
        for i in range(w.shape[0]):
            s += w[i] * x
        return s

    code = text(f, F8[::1], F8)
    assert code.given == ((0,),)
    assert body(code)[0] == "def f_gradient(w, x, dw):"
    assert body(code)[-1].strip() == "return None, dx"
    assert "zeros" not in code.emitted.source


def recursive(x, n):
    return x if n == 0 else recursive(x, n - 1) * x


def allocates(x):
    a = np.zeros(int(x))
    for i in range(len(a)):
        a[i:] += x * i
    return a.sum()


def raises(x):
    if x < 0.0:
        raise ValueError("negative")
    return math.sqrt(x)


@pytest.mark.parametrize(
    ("f", "kinds", "message"),
    [
        (allocates, (F8,), "CUDA kernel"),
        (raises, (F8,), "exceptions cannot be raised in a CUDA kernel"),
        (lambda a: np.linalg.det(a), (F8[:, ::1],), "CUDA kernel"),
        (lambda a: np.sum(np.sort(a) * a), (F8[::1],), "CUDA kernel"),
    ],
)
def test_what_a_device_cannot_do_is_refused(f, kinds, message):
    with pytest.raises(DifferentiationError, match=message) as caught:
        text(f, *kinds)
    assert caught.value.line


def exchanged(x, n):
    old = np.zeros(2)
    old[0] = x
    for _ in range(n):
        new = np.zeros(2)
        new[0] = old[1] * x
        new[1] = old[0] + x
        old = new
    return old[0] + old[1]


def within_a_round(x):
    total = 0.0
    for k in range(3):
        a = np.zeros(2)
        a[k % 2] = x * k
        total += a[0] * x + a[1]
    return total


def test_an_array_of_the_thread_is_one_place_in_memory():
    """The line that makes it gives the same memory in each round: two rounds' arrays would be one."""
    with pytest.raises(DifferentiationError, match="made in a loop and kept for another round"):
        compile_for_device(derivative(exchanged, wrt="x")._request, (F8, I8))
    found = compile_for_device(derivative(within_a_round)._request, (F8,)).emitted.source
    assert "cuda.local.array(2, np.float64)" in found


def test_an_array_of_the_thread_is_not_returned():
    with pytest.raises(DifferentiationError, match="cannot return an array that it has made"):
        compile_for_device(derivative(lambda x: np.array([x, x * x]))._request, (F8,))


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("flags", "is_fast"),
    [({"contract"}, False), ({"nnan", "ninf"}, False), ({"fast"}, True), (True, True), (False, False)],
)
def test_a_device_is_as_fast_and_loose_as_all_flags_allow(flags, is_fast):
    @numba.njit(fastmath=flags)
    def f(x, y):
        return x / y

    assert ("fastmath" in text(f, F8, F8).emitted.source) is is_fast


def test_signs_of_unsigned_numbers_and_the_name_of_the_module():
    def f(cuda, n):
        r = cuda * np.sign(n)
        for _ in range(4):
            r = math.sin(r * cuda)
        return r

    code = text(f, F8, types.uint8, wrt="cuda")
    assert "-1" not in "\n".join(body(code)).replace("-1, -1", "")
    assert body(code)[0] == "def f_gradient(cuda_, n):"
    assert "cuda.local.array(" in code.emitted.source


@pytest.mark.parametrize("f", [lambda z: np.exp(z).real, lambda z: np.sqrt(z).imag])
def test_functions_of_complex_numbers_are_refused(f):
    with pytest.raises(DifferentiationError, match="of complex numbers cannot be called"):
        text(f, types.complex128)
