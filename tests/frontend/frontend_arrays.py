"""Programs on arrays for the tests of the front end and of emission: what is written, made, viewed and carried along.

`at` registers a program with the arguments that it is called with; each call gets copies of them. A program may return
anything, and what it leaves in its arguments counts as a result too.
"""

# ruff: noqa: B905, SIM108
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


# All elements in a row


@at((M, 5), (np.asfortranarray(M), 9))
def elements_in_a_row(x, k):
    s = 0.0
    for v in x.flat:
        s = s * 0.5 + v
    x.flat[k] = 7.0
    x.flat[1] += x.flat[k - 3]
    for i, j in np.ndindex(x.shape):
        x[i, j] += i * j
        s += x[i, j]
    for ij in np.ndindex(x.shape[0], 2):
        x[ij] += 1.0
    for (i, j), v in np.ndenumerate(x):
        s += v * i + j
    return s, x.flat[k]


@at((M, V[:3]))
def several_loops_write(x, v):
    for row, a in zip(x, v):
        row[:] = a
    for k, row in enumerate(x):
        row[k] += 1
        row[-k:] *= 2.0
    n = len(v)
    while n > 0:
        v[:n] += 1.0
        n //= 2
    return v[n:n]


@at((V, 3), (V, 1))
def left_early(x, n):
    for i in range(n):
        x[i] = 0.0
        if i == 1:
            return x[i] + 1
    return 2.0


@at((V, 1), (V, 3))
def names_given_again(x, n):
    y = x
    x = x + 1.0
    x[0] = 1.0
    if n > 2:
        x = x[::2]
    x[0] = n

    def set_two(a, k):
        a[k] = 2.0
        return a

    set_two(y, n)[0] = -1.0
    return x


@at((V, 1))
def exchanged(x, i):
    x[0], x[1] = x[1], x[0]
    i, x[i] = 3, 8.0
    x[:2], x[2:4] = x[2:4].copy(), x[:2].copy()
    x[-i] = 1.0
    x[-2:] = x[-i]
    x[:-i] *= 2
    x[-1:0:-1] += 1.0
    x[1:] = x[:-1]
    x[:-1] = x[1:]
    return i


@at((M, np.uint64(1), np.int32(2)))
def views_of_views(x, i, j):
    x[1, :][2] = 1
    x[:, 1][:] = 2
    x.T[0][1] = 3.0
    x[0:2].T[1] = 4.0
    x.reshape(4, 3)[1] = 7.0
    x[1:][1][::2] = 5.0
    y = x[..., None]
    y[0, 0, 0] = 3.0
    x[i, i:j] += x[j, 0]
    return y.shape, x[None][0, 1], x[..., 0], x[(0, 1)], x[0].T, 2.0 in x
