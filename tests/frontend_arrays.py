"""Programs on arrays for the tests of the front end and of emission: what is written, made, viewed and carried along.

`at` registers a program with the arguments that it is called with; each call gets copies of them. A program may return
anything, and what it leaves in its arguments counts as a result too.
"""

# ruff: noqa: SIM108
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
V = np.array([0.5, -1.25, 2.0, 0.75, 3.5])
W = np.array([1.5, 0.25, -0.5, 3.0, 9.0])
M = np.arange(12.0).reshape(3, 4) - 4.5
N = np.linspace(0.5, 2.5, 12).reshape(3, 4)
T = np.arange(24.0).reshape(2, 3, 4) * 0.5
F4 = V.astype(np.float32)
I8 = np.array([2, 0, 1, 1])
C16 = V + 1j * W
EMPTY = np.zeros(0)


def at(*inputs: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.extend((function, args) for args in inputs)
        return function

    return register


# Elements


@at((V, 3.0), (F4, 3.0), (C16, 2.0))
def elements(x, v):
    x[1] = v
    x[-1] += x[0]
    x[2] *= x[1] - x[3]
    t = x[0]
    x[0] = 5.0
    return t, x[0]


@at((M, 2.5, 1), (np.asfortranarray(M), 2.5, 2), (M[:, ::2], 2.5, 1))
def elements_of_a_matrix(x, v, i):
    x[i, 0] = v
    x[0, i] -= 2 * v
    x[i][0] += 1.0
    x[-1, -1] /= x[1, 1]
    return x[i, 0]


@at((np.array([1, 2, 3]), 2.75), (np.array([1, 2, 3], np.int32), -2.75), (np.array([7, 8, 9], np.uint8), 5.5))
def stores_are_cast(x, v):
    x[0] = v
    x[1] += 5
    x[:2] += x[2]
    return x[0] / 2


@at((np.array([True, False]), 3))
def truth_values(x, n):
    x[0] = n > 5
    x[1] = not x[0]
    return x


@at((np.array(2.5), 3.0))
def no_dimensions(x, v):
    x[()] = x[()] * v
    t = x[()]
    x[...] = 7.0
    y = np.zeros(())
    y[()] = t
    z = np.full((), v)
    x += t
    return t, y, z, x + 1.0, x.item()


@at((V, 3), (V, 0))
def read_before_write(x, n):
    s = 0.0
    for i in range(n):
        old = x[i]
        x[i] = old * 2.0
        x[i + 1] = old + x[i]
        s += old
    return s


@at((V, 3), (V, 0))
def read_is_not_moved_past_a_write(x, n):
    t = x[0] + x[1]
    for i in range(n):
        x[i] = t
    u = x[0] * 2.0
    x[0] = 1.0
    return t * u


@at((V, 0.0), (V, 9.0))
def write_under_a_condition(x, limit):
    total = 0.0
    for i in range(len(x)):
        if x[i] > limit:
            x[i] = limit
        elif x[i] < 0:
            x[i] -= limit
            total += x[i]
    if total < 0:
        x[0] = total
    return x.sum()


@at((M,), (np.zeros((0, 4)),))
def nested_loops(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j > i:
                x[i, j] = x[i, j - 1] + 1.0
            else:
                x[i, j] *= 0.5


@at((V, W))
def kernel(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]


@at((V, 3.0), (V, 100.0))
def left_by_break_after_a_write(x, limit):
    i = 0
    while True:
        x[i] += 10.0
        if x[i] > limit or i == 4:
            break
        i += 1
    return i


@at((V, 4.0))
def carried_elements(x, v):
    last = x[0]
    for i in range(1, len(x)):
        x[i - 1], x[i], last = x[i], last, x[i] + v
    return last


# Slices


@at((V, W), (F4, V), (V, F4))
def slices(x, y):
    x[1:3] = y[:2]
    x[::2] += 1.0
    x[::-1] = y
    x[:] = 2.0 * x
    x[3:] = 0
    x[-2:] -= y[0]
    return x[1:4]


@at((V, 1, 4, 2), (V, 4, 0, -1), (V, 0, 0, 1), (V, -2, 100, 1))
def slices_made_at_run_time(x, a, b, c):
    y = x[a:b:c]
    y *= 2.0
    x[a:b] = 1.0
    s = slice(a, b)
    t = slice(None, b, c)
    x[s] += 3.0
    return y.sum() + x[t].sum()


@at((V, 0), (V, 1))
def chosen_slices(x, n):
    if n:
        s = slice(0, 2)
    else:
        s = slice(1, 4)
    x[s] = 0.5
    return x[s]


@at((M, V), (np.asfortranarray(M), V), (M[::-1, ::1], V))
def rows_and_columns(x, v):
    x[:, 1] *= v[0]
    x[0] = v[:4]
    x[1, :] += x[0, :]
    x[2, 1:3] = v[1]
    x[:, -1] = v[:3]
    x[1:, ::2] -= 1.0
    return x[0], x[:, 2].copy()


@at((T, 1), (np.asfortranarray(T), 0))
def three_axes(x, k):
    x[k] = 1.0
    x[..., 0] += 2.0
    x[:, k, :] *= x[0, 0, 1]
    x[k, ..., 2] = x[0, :, 3]
    x[0, 0, 0] = 9.0
    y = x[:, None, 1]
    y[0, 0, 1] = -1.0
    return y.shape[1], x[k, 1], y


@at((V,))
def new_axes(x):
    y = x[None, :]
    z = x[:, np.newaxis]
    y[0, 1] = 7.0
    z[2, 0] += 1.0
    return (z * y)[1:3], np.expand_dims(x, 1), np.expand_dims(x, -1)


@at((M, 2.0), (np.asfortranarray(M), 2.0))
def whole_matrix(x, v):
    x[:] = v
    x[:, :] += v
    x[:, ...] *= v
    x += 1
    x -= x[0].copy()
    x[0] += x[1]
    x[:, 1] -= x[:, 2]
    x[:2, 1:] = x[1:, :3] + v
    return x.T


@at((M, V))
def broadcast_stores(x, v):
    x[:] = v[:4]
    x[:, 1:] += v[:3]
    y = np.empty((2, 3, 4))
    y[:] = x
    y[1] = v[:4]
    y += x * 2.0
    return y


@at((V,))
def tuples_stored(x):
    x[1:3] = (x[0], 2.0)
    return x


@at((V,))
def a_slice_stored_to_itself(x):
    x[1:3] = x[1:3]
    x[:] = x
    x[1:] = x[:-1].copy()
    return x


# Arrays and truth values as indices


@at((V, I8))
def gather(x, i):
    y = x[i]
    y[0] = 100.0
    x[i] = 0.5
    x[i[1:]] += 1.0
    z = x[i] * 2.0
    x[i] = z
    return y


@at((V, W, 0.6), (V, W, 1e9))
def masks(x, y, limit):
    m = x > limit
    s = x[m].sum()
    x[m] = 0.0
    x[~m] *= 2.0
    y[x == 0.0] += 1.0
    y[m & (y > 1.0)] = x[m & (y > 1.0)]
    return s, m


@at((M, I8, 1))
def mixed_indices(x, i, k):
    a = x[:, i]
    b = x[k, i]
    x[k, i] = 1.5
    x[i[1:], 0] = 4.0
    x[0:2, i[1:2]] = 3.0
    return a, b


# In place


@at((C16, V), (C16, C16))
def in_place_complex(x, y):
    x += y
    x *= 2
    x -= y[0]
    return x


@at((V, W), (F4, V))
def in_place(x, y):
    x += y
    x *= 2
    x -= y[0]
    x /= 3.0
    z = x
    z += 1.0
    return x


@at((V,), (F4,))
def in_place_powers(x):
    x *= x
    x **= 2
    x //= 0.5
    x %= 3.0
    return x


@at((M, V[:4]))
def in_place_on_views(x, v):
    for row in x:
        row += v
        row *= row[0]
    t = x.T
    t[0] -= 5.0
    r = x.reshape(2, 6)
    r[1] *= 2.0
    r[0, 0] = 1.0
    f = x.ravel()
    f[::3] = 0.0
    return f


@at((np.array([5, 7, 9]), np.array([2, 3, 4])))
def in_place_integers(x, y):
    x += y
    x //= 2
    x <<= 1
    x |= y
    x ^= 5
    x %= 7
    return x


# New arrays


@at((3, 2.0), (0, 2.0))
def made(n, v):
    a = np.zeros(n)
    b = np.ones((n, 2))
    c = np.full((2, n), v)
    d = np.empty(n, np.float32)
    d[:] = v
    e = np.zeros((n, n, 2), dtype=np.complex128)
    g = np.ones(shape=n, dtype=np.int64)
    h = np.zeros(n, np.bool_)
    k = np.full(n, 1.5, dtype=np.float32)
    m = np.full((n,), 3)
    return a, b, c, d, e, g, h, k, m


@at((V,), (F4,), (M,), (np.asfortranarray(M),), (M[:, ::2],), (C16,), (I8,))
def made_like(x):
    a = np.zeros_like(x)
    b = np.ones_like(x)
    c = np.full_like(x, 2)
    d = np.empty_like(x)
    d[:] = 3
    e = np.zeros_like(x, dtype=np.float32)
    g = np.zeros(x.shape)
    h = np.ones(x.shape, x.dtype)
    h[0] = 4
    return a, b, c, d, e, g, h


@at((V,), (M,), (np.asfortranarray(M),), (M[:, ::2],), (F4,))
def copies(x):
    y = x.copy()
    z = np.copy(x)
    w = x.flatten()
    v = x.ravel()
    a = np.ascontiguousarray(x)
    b = np.asfortranarray(x)
    y[0] = 10.0
    z[-1] = 20.0
    w[0] = 30.0
    return y, z, w, v.sum(), a.sum(), b.sum(), np.asarray(x).sum()


@at((V,), (M,), (np.asfortranarray(M),), (M[:, ::2],))
def converted(x):
    y = x.astype(np.float32)
    y[0] = 0.1
    i = x.astype(np.int64)
    c = x.astype(np.complex128)
    z = x.astype(np.float64)
    z[0] = 100.0
    return y, i, c, z, x.astype(np.float32).astype(np.float64), np.asarray(x, dtype=np.float32)


@at((2.0, 3))
def displays(x, n):
    a = np.array([x, 1.0, x * n])
    b = np.array([[x, 1.0], [2.0, x]])
    c = np.array((x, 3.0), dtype=np.float32)
    d = np.array([1, 2, n])
    e = np.array([1, 2.5])
    f = np.asarray([x, 1j * x])
    g = np.array([x * i for i in range(n)])
    h = np.array([[i + 0.5 * j for i in range(2)] for j in range(n)])
    k = np.array(x)
    for i in range(n):
        a += np.array([x, i, 1.0])
    return a, b, c, d, e, f, g, h, k


@at((3,), (0,))
def counted(n):
    a = np.arange(n)
    b = np.arange(1.0, n, 0.5)
    c = np.linspace(0.0, 1.0, n)
    d = np.eye(n)
    e = np.identity(n)
    f = np.arange(n, dtype=np.float32)
    g = np.eye(n, 2, k=1, dtype=np.int64)
    return a, b, c, d, e, f, g


@at((V, 3))
def scratch_array_in_a_loop(x, n):
    s = 0.0
    for k in range(n):
        t = np.zeros(len(x))
        for i in range(len(x)):
            t[i] = x[i] * k
        s += t.sum()
    return s


@at((V, 3))
def scratch_array_used_again(x, n):
    s = 0.0
    t = np.empty(len(x))
    for k in range(n):
        t[:] = x * k
        t += 1.0
        s += t[k] * t.sum()
    return s


# Views


@at((M,), (F4[:4].reshape(2, 2),))
def reshaped(x):
    a = x.reshape(x.size)
    b = np.reshape(x, (-1, 2))
    c = x.reshape((2, -1))
    d = x.reshape(x.shape)
    a[1] = 7.0
    b[1, 0] += 1.0
    c[0, 1] *= 2.0
    d[0, 0] = -1.0
    e = np.ravel(x)
    e[-1] = 6.0
    return c, np.reshape(x, -1), x.reshape(1, -1, 2)


@at((M,), (np.asfortranarray(M),))
def transposed(x):
    y = x.T
    y[0, 1] = 9.0
    z = np.transpose(x)
    z += 1.0
    w = x.transpose()
    u = x.transpose(1, 0)
    v = np.transpose(x, (1, 0))
    u[0, 0] = 3.0
    return w[1], v, y.T, x[0].T


@at((T,))
def transposed_three_axes(x):
    y = np.transpose(x, (1, 2, 0))
    y[0, 1, 1] = 100.0
    z = x.transpose(2, 0, 1)
    return x.T.shape, z, y[0]


@at((T,), (np.asfortranarray(T),))
def iterated(x):
    s = 0.0
    for a in x:
        for b in a:
            b[1] = s
            for c in b:
                s += c
    return s


@at((V,))
def broadcast(x):
    y = np.broadcast_to(x, (3, 5))
    z = np.broadcast_to(2.5, (2, 2))
    x[0] = 8.0
    return y.sum(), y + 1.0, z.copy()


@at((C16,), (V,))
def parts(x):
    y = x.real
    z = x.imag
    w = np.real(x) + np.imag(x)
    y[0] = 5.0
    return y, z.copy(), w, x[1].real, x[2].imag


@at((V, W))
def written_through_base_and_view(x, y):
    v = x[1:4]
    x[2] = 10.0
    a = v[1]
    v[1] = 20.0
    b = x[2]
    w = v[1:]
    w[:] = y[:2]
    x[3] += w[0]
    return a, b, v[1], w[1]


@at((V, W, True), (V, W, False))
def one_of_two_arrays(x, y, first):
    z = x if first else y
    z[0] = 1.0
    z += 1.0
    return z, x[0] + y[0]


@at((M, True), (M, False))
def one_of_two_layouts(x, first):
    if first:
        y = x
    else:
        y = x.T
    y[0, 0] = 11.0
    t = y[1]
    t *= 2.0
    return y.sum(), y


@at((V, 3), (V, 4), (V, 0))
def ping_pong(x, n):
    a = x.copy()
    b = np.zeros_like(x)
    for k in range(n):
        for i in range(len(a)):
            b[i] = 0.5 * a[i] + a[i - 1] * k
        a, b = b, a
    return a, b


@at((V, W, 3))
def three_arrays_rotate(x, y, n):
    z = x + y
    for k in range(n):
        x, y, z = y, z, x
        x[k] = y[0]
        z[k] += 1.0
    return x, y, z


@at((V, 2))
def chosen_in_a_loop(x, n):
    best = x
    for k in range(n):
        other = best + 1.0
        if other[0] > best[1]:
            best = other
        best[1] = k
    return best


@at((V, W))
def tuples_of_arrays(x, y):
    pair = (x, y)
    pair[0][1] = 7.0
    a, b = pair
    b[0] = a[1]
    for each in (x, y):
        each[2] += 1.0
    return pair, (a, (b, 3.0))


@at((np.array([1.5, 2.5, 3.5]),), (V,), (np.zeros(2),))
def unpacked(x):
    a, b, c = x
    return a * b - c


@at((M,))
def unpacked_rows(x):
    a, b, c = x
    a[0] = 5.0
    return b[1] + c[2] + a[0]


# Properties and methods


@at((M,), (np.asfortranarray(M),), (F4,), (np.zeros((0, 3)),))
def properties(x):
    return x.size, x.shape, x.ndim, x.itemsize, x.nbytes, len(x)


@at((V,), (F4,))
def methods(x):
    x.fill(2.0)
    x[1] = 5.0
    y = x[1:2]
    return x.sum(), x.max(), x.min(), x.mean(), x.argsort(), x.dot(x), y.item(), x.copy(), x.cumsum(), x.any()


@at((M,), (np.asfortranarray(M),))
def methods_of_matrices(x):
    return x.sum(axis=0), x.sum(1), x.dot(x.T.copy()), x.prod(), x.argmax(), x.T @ x


# Elementwise


@at((V, W), (F4, F4), (C16, C16))
def arithmetic(x, y):
    return x + y, x - 2, 3.0 * y, x / y, -x, +x, x * y + x, np.abs(x)


@at((V, W), (F4, F4), (F4, W), (I8, I8 + 1))
def arithmetic_of_reals(x, y):
    return x // y, x % y, np.maximum(x, y), x > y, x == y, (x > 0) & (y > 0), np.sqrt(np.abs(x)), x**2, np.abs(x) ** y


@at((V,), (F4,))
def a_copy_by_plus(x):
    y = +x
    y[0] = 10.0
    return x[0], y


@at((M, V[:4], V[:3]))
def broadcasting(x, a, b):
    y = x + a
    z = b[:, None] * a
    w = b.reshape(3, 1) + x
    return y, z, w, x * 2.0 + a - 1


@at((V, W), (F4, F4))
def chosen(x, y):
    a = np.where(x > y, x, y)
    b = np.where(x > 0, x, 0.0)
    c = np.where(x > 0, 1.0, y)
    d = np.clip(x, 0.0, 1.0)
    return a, b, c, d


@at((V, W))
def results_given(x, out):
    np.multiply(x, 2.0, out)
    y = np.add(out, x, out)
    y[0] = 3.0
    np.exp(x, x)
    return out


@at((V, W), (EMPTY, EMPTY))
def chains(x, y):
    return np.sum(np.exp(-x * y) + np.log(1.0 + y * y) - 0.5)


@at((V, np.zeros(3)), (V, np.zeros(1)))
def shapes_that_do_not_fit(x, y):
    z = x + y
    x[:] = z * 2.0
    return z


@at((V, W))
def slices_that_do_not_fit(x, y):
    x[1:3] = y[1:4]
    return x
