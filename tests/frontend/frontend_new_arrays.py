"""Programs on arrays for the tests of the front end: how arrays are made, viewed and computed with.

How to add one is said in `tests.frontend.frontend_arrays`.
"""

# ruff: noqa: SIM108
from __future__ import annotations

import numpy as np

from tests.frontend.frontend_arrays import C16, CASES, EMPTY, F4, I8, M, T, V, W, at

__all__ = ["CASES"]


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


@at((V, 2), (V, 3), (V, 1), (F4, 2))
def written_out(x, n):
    a = np.zeros((3, 4))
    a[0, :n] = [x[0], 2.0]
    a[1] = [x[1], 2, x[0] * 0.5, 1.5]
    a[1, 1:3] = [a[1, 2], a[1, 1]]
    a[2, n:3] = [x[0]]
    return a


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


@at((V, F4))
def mixed_precision(x, y):
    z = y * 2.0
    w = y + 1
    u = x + y
    y += x
    y *= 2.0
    x -= y
    return z, w, u


@at((np.array([1 + 2j, 3j]), np.array([1, 2])))
def complex_numbers(x, y):
    x += y
    x *= 1j
    a = x.conj()
    x[0] = 1.0
    x.real[1] = 5.0
    return a, np.abs(x), x.real + x.imag, x * 2, -x, x**2


@at((M, M.T.copy(), np.zeros((3, 3)), V, np.zeros(5)))
def more_results_given(a, b, c, x, y):
    np.dot(a, b, c)
    np.around(x, 1, y)
    return c


@at((V,))
def places(x):
    (i,) = np.where(x > 0)
    x[i] = 0
    return i, np.nonzero(x)[0]


@at((3,))
def types_by_name(n):
    a = np.zeros(n, "float32")
    b = np.ones(n, dtype="f4")
    return a, b, a.astype("int64")


@at((np.zeros((0, 3)),))
def nothing_in_it(x):
    x[:] = 1.0
    x += 1
    return x.reshape(-1), x.T, x.sum(), np.zeros((0, 2)), x.ravel()
