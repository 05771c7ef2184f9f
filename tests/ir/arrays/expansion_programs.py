"""Functions of arrays whose array instructions are expanded, with what to call them with.

    @case("f64[:] n?", "f32[:] n?")         two arrays with one axis, of length n or, once in a while, of length 1
    def total(x, y): ...

A letter is a length that is drawn anew for each call, 0 among them; `places[:] k/n` is an array of k indices into an
axis of length n, some of them negative; `f64` and `i64` are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from zygote_py.ir import parse_type

LENGTHS = (0, 1, 2, 3, 5, 8)


@dataclass(frozen=True)
class Case:
    """A function and the descriptions of its arguments."""

    function: Callable[..., Any]
    params: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.function.__name__}({', '.join(self.params)})"


CASES: list[Case] = []


def case(*params: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(function, params))
        return function

    return register


def arguments(case: Case, rng: np.random.Generator) -> tuple[Any, ...]:
    lengths = {letter: int(rng.choice(LENGTHS)) for letter in "kmn"}
    return tuple(_argument(param, lengths, rng) for param in case.params)


def _argument(param: str, lengths: dict[str, int], rng: np.random.Generator) -> Any:
    kind, _, axes = param.rpartition(" ")
    if not kind:
        return int(rng.integers(-3, 5)) if param == "i64" else float(np.round(rng.normal(), 2))
    if kind == "places[:]":
        number, _, limit = axes.partition("/")
        n = lengths[limit]
        return rng.integers(-n, n, lengths[number] if n else 0)
    shape = [1 if axis.endswith("?") and rng.random() < 0.3 else lengths[axis[0]] for axis in axes.split(",")]
    return array(parse_type(kind), shape, rng)


def array(type: Any, shape: list[int], rng: np.random.Generator) -> Any:
    """An array of a type: what Numba's `typeof` says of it may have a stricter layout, if an axis is short."""
    reverse = type.layout == "F"
    lengths = [2 * length for length in shape] if type.layout == "A" else shape[::-1] if reverse else shape
    match type.dtype:
        case types.Boolean():
            values: Any = rng.random(lengths) < 0.5
        case types.Integer():
            values = rng.integers(-5, 6, lengths)
        case types.Complex():
            values = rng.normal(size=lengths) + 1j * rng.normal(size=lengths)
        case _:
            values = np.round(2 * rng.normal(size=lengths), 2)  # so that there are equal ones, and whole numbers
    values = np.asarray(values).astype(type.dtype.name)
    if reverse:
        return values.T
    return values[(slice(None, None, 2),) * len(shape)] if type.layout == "A" else values


# ------------------------------------------------------------------------------------------------------- arithmetic


@case("f64[:] n?", "f64[:]A n?")
@case("f64[:] n?", "f32[:] n?")
@case("f64[:] n?", "i64[:] n?")
@case("i64[:] n?", "i32[:] n?")
@case("c128[:] n?", "f64[:] n?")
@case("f64[:, :] m?,n?", "f64[:] n?")
@case("f64[:, :]F m?,n?", "f64[:, :] m?,n?")
@case("f64[:, :]A m?,n?", "f64[:, :, :] k?,m?,n?")
def arithmetic(x, y):
    return x * y + x - y


@case("f64[:] n?", "f64[:] n?")
@case("f32[:] n?", "f32[:] n?")
@case("i64[:] n?", "i64[:] n?")
def division(x, y):
    return x / y, x // y, x % y


@case("f64[:] n", "f64")
@case("f32[:] n", "i64")
@case("i64[:] n", "f64")
def with_scalars(x, c):
    return x * c, c - x, x / 2, 2 / (x + 0.5), x // 2, 1 - x


@case("f64[:] n")
@case("f32[:] n")
@case("i64[:] n")
def powers(x):
    return x**2 + x**3, x**2, -x, np.abs(x) ** 0.5


@case("f64[:] n")
@case("f32[:] n")
def negative_powers(x):
    return x**-2, np.power(x, 2), x**-1 + 1


@case("f64[:] n?", "f64[:] n?")
@case("i64[:] n?", "i32[:] n?")
@case("f32[:] n?", "f64[:] n?")
def comparisons(x, y):
    near = (x >= y) & (y > 0)
    return near, ~(x == y), (x != y) | (x > 1), np.logical_and(x > 0, y > 0), np.logical_not(x)


@case("bool[:] n?", "bool[:] n?")
def truths(a, b):
    return a & b, a | b, a ^ b, ~a, a == b, np.sum(a), np.prod(b)


@case("f64[:] n")
@case("f32[:] n")
def functions(x):
    y = np.sqrt(np.abs(x)) * np.tanh(x)
    return y, np.floor(x), np.sign(x), np.square(x), np.isnan(y), np.exp(-x) + np.maximum(x, 0.5)


@case("c128[:] n", "c128[:] n")
def complex_numbers(z, w):
    return z * w, z / (w + 7), np.abs(z), np.conj(z), z.real * 2, np.exp(z) - 1j, np.sum(z), np.prod(w)


# -------------------------------------------------------------------------------------------------------- reductions


@case("f64[:] n")
@case("f64[:, :] m,n")
@case("f64[:, :]F m,n")
@case("f64[:, :]A m,n")
@case("f32[:] n")
@case("i32[:] n")
@case("f64[:, :, :] k,m,n")
def sums(x):
    return np.sum(x), np.prod(x), np.sum(x * 2.0)


@case("f64[:, :] m,n")
@case("f64[:, :]F m,n")
@case("f32[:, :]A m,n")
@case("i64[:, :] m,n")
def sums_over_axes(x):
    return np.sum(x, axis=0), np.sum(x, axis=1), x.sum(axis=-1), np.sum(x + 1, 0)


@case("f64[:, :, :] k,m,n")
@case("f64[:, :, :]F k,m,n")
def sums_over_axes_of_three(x):
    return np.sum(x, axis=0), np.sum(x, axis=1), np.sum(x, axis=-1), np.sum(x * x, axis=1)


@case("f64[:, :] m,n")
def normalised(x):
    e = np.exp(x)
    return e / e.sum(axis=1)[:, None], (x - np.sum(x, axis=0)) * 2.0


@case("f64[:] n", "f64[:] k")
def moments(x, y):
    d = x - np.sum(y)
    return np.sum(d), np.sum(d * d), np.sum(d * d * d)


@case("f64[:] n?", "f64[:] n?")
def one_loop(x, y):
    return np.sum(np.exp(-((x - y) ** 2) / 2.0) * np.log(1 + np.abs(x)))


# ------------------------------------------------------------------------------------------------------------ stores


@case("f64[:] n", "f64[:]A n?")
@case("f32[:] n", "f64[:] n?")
@case("f64[:, :]F m,n", "f64[:] n?")
def stores(x, y):
    x[:] = y * 2
    x += y
    x *= 3.0
    x -= x
    x[:] = x + y
    x /= 2
    return np.sum(x)


@case("f64[:] n", "f64[:] n")
def stores_of_slices(x, y):
    x[1:] = y[:-1] * 2
    x[::2] = 1.0
    y[:] = x[::-1]
    y[-1:] += x[:1]
    return x[1:] - x[:-1]


@case("f64[:] n")
@case("f64[:]A n")
def overlapping_stores(x):
    x[1:] = x[:-1] * 2
    x[:] = x[::-1]
    x[::-1] = x * 2
    x[:-1] = x[1:] + x[:-1]


@case("f64[:, :] n,n")
@case("f64[:, :]F n,n")
def transposed_onto_itself(a):
    a[:] = a.T * 2
    return a + a.T, (a * 2).T + 1


@case("f64[:, :] n,m", "f64[:] m")
def rows(a, x):
    total = 0.0
    for i in range(len(a)):
        row = a[i]
        total += np.sum(row * row)
        a[i] = row / 2 + x
        a[i, 1:] += x[:-1]
    return total


@case("f64[:] n", "f64[:] n")
def overwritten(x, y):
    doubled = x * 2
    x[:] = 100.0
    both = doubled + x
    y[:] = both
    both[:] = 0.0
    return both, doubled


@case("f64[:] n", "f64[:] n")
def exchanged(a, b):
    for _ in range(4):
        a, b = b * 0.5, a + b
    return a, b


@case("f64[:] n", "i64")
def in_a_loop(x, n):
    y = np.zeros_like(x)
    for k in range(n):
        y += x * k
        z = y * 2 + k
        if k == 2:
            z = z * z
        y[:] = z / 3
    return y


# ---------------------------------------------------------------------------------------------------------- indexing


@case("f64[:] n", "bool[:] n")
@case("f64[:]A n", "bool[:] n")
def masks(x, mask):
    y = x[mask]
    x[mask] = 0.0
    x[x > 0.5] = 2.5
    x[~mask] *= 2
    x[mask] = x[mask] + 3.0
    return y, x[x < 1.0] * 2


@case("f64[:, :] n,m", "bool[:] n")
def masks_of_rows(a, mask):
    a[mask] = 1.5
    return a[mask] + 1


@case("f64[:] n", "places[:] k/n")
def gathers(x, i):
    y = x[i] * 2
    x[i] = y
    x[i] = x[i] + 1
    return y, np.sum(x[i])


@case("f64[:, :] n,n", "places[:] k/n")
@case("f64[:, :]F n,n", "places[:] k/n")
def gathers_of_rows(a, i):
    y = a[i] * 2
    columns = a[:, i]
    a[i] = 0.5
    a[i, 1:] = a[i, :-1] * 2
    return y, columns, a[i, i]


@case("f64[:] n")
def gathers_of_what_is_filled(x):
    e = np.exp(-np.abs(x))
    last = (e * 0.0).astype(np.int64) - 1
    return e, e[last], np.sum(e[last] + e)


@case("f64[:] n?", "f64[:] n?")
@case("f32[:] n?", "f64[:] n?")
@case("f64[:] n?", "i64[:] n?")
@case("f64[:, :]F m,n", "f64[:, :]F m,n")
def selections(x, y):
    return np.where(x > 0.5, x, y), np.where(x > y, x * 2, 1.0), np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0))


@case("f64[:] n")
@case("f64[:, :]A m,n")
def clipped(x):
    return np.clip(x, 0.2, 0.7), np.clip(x, None, 0.5), x.clip(1, 2)


# ------------------------------------------------------------------------------------------------- copies, shapes


@case("f64[:, :] m,n")
@case("f64[:, :]F m,n")
@case("f64[:, :]A m,n")
@case("i64[:] n")
def copies(x):
    return x.copy(), x.astype(np.float32), x.flatten(), np.full_like(x, 3), np.ones_like(x) + x


@case("f64[:] n", "f64[:] m")
def outer(x, y):
    return x[:, None] * y[None, :], np.exp(x[:, None]) - np.sin(y), np.sum(np.exp(x)[:, None] * y)


@case("f64[:] n")
def without_axes(x):
    y = np.array(2.0)
    return x * y, y + 1
