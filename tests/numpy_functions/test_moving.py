"""Gradients through what joins, moves, makes and selects, against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.np.extensions import cross2d

from tests.checking.derivatives import check_derivatives
from tests.modes import one_in

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(7)
V, W, T = RNG.normal(size=4), RNG.normal(size=3), RNG.normal(size=2)
M, C = RNG.normal(size=(3, 4)), RNG.normal(size=(2, 3, 2))
PLACES, TIMES = np.array([0, 2, 2]), np.array([1, 0, 2])
ALONG = np.array([[0, 2, 1]])

Case = tuple[Callable[..., Any], tuple[Any, ...]]

JOINING: dict[str, Case] = {
    "concatenate": (lambda x, y: np.concatenate((x, y, x)), (V, W)),
    "concatenate axis": (lambda x, y: np.concatenate((x, y), axis=-1), (M, M[:, :2].copy())),
    "concatenate at run time": (lambda x, k: np.concatenate((x, x * x), k), (C, 1)),
    "stack": (lambda x, y: np.stack((x, y), 1), (V, V + 1)),
    "hstack": (lambda x, y: np.hstack((x, y)), (M, M + 1)),
    "vstack": (lambda x, y: np.vstack((x, y)), (V, V + 1)),
    "dstack": (lambda x, y: np.dstack((x, y)), (V, V + 1)),
    "column_stack": (lambda x, y: np.column_stack((x, y)), (W, M)),
    "append": (lambda x, y: np.append(x, y), (M, V)),
    "append number": (lambda x, y: np.append(x, y), (V, 0.7)),
    "append axis": (lambda x, y: np.append(x, y, 0), (M, M[:1].copy())),
}
MOVING: dict[str, Case] = {
    "roll": (lambda x: np.roll(x, 2) * x, (M,)),
    "flip": (lambda x: np.flip(x) * x, (M,)),
    "fliplr flipud": (lambda x: np.fliplr(x) * np.flipud(x), (M,)),
    "rot90": (lambda x: np.rot90(x, 3) * np.rot90(x), (M,)),
    "rot90 at run time": (lambda x, k: np.rot90(x, k), (M, 2)),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 2) * x, (C,)),
    "swapaxes at run time": (lambda x, k: np.swapaxes(x, 0, k) * x, (C, 2)),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1) * x[0, 0, 0], (C,)),
    "atleast": (lambda x: np.atleast_2d(x) * np.atleast_3d(x), (V,)),
    "broadcast_to": (lambda x, y: np.broadcast_to(x, (3, 4))[1:] * y, (V, M[1:].copy())),
    "broadcast_arrays": (lambda x, y: np.broadcast_arrays(x, y)[0] * y, (V, M)),
    "split": (lambda x: np.split(x, 2)[1] * np.split(x, 2)[0], (V,)),
    "array_split": (lambda x, k: np.array_split(x, k, 1)[1], (M, 3)),
    "hsplit": (lambda x: np.hsplit(x, (1, 3))[1], (M,)),
    "repeat": (lambda x: np.repeat(x, 3), (M,)),
    "repeat array": (lambda x, n: np.repeat(x, n), (W, TIMES)),
    "repeat method": (lambda x: x.repeat(2), (M.T,)),
    "resize": (lambda x: np.resize(x, (3, 5)), (V,)),
    "resize to fewer": (lambda x: np.resize(x, 2), (V,)),
    "ravel": (lambda x: np.ravel(x) * np.ravel(x.T), (M,)),
}
MAKING: dict[str, Case] = {
    "diag": (lambda x: np.diag(x, -1), (V,)),
    "diagonal": (lambda x: np.diag(x, 1), (M,)),
    "diagflat": (lambda x: np.diagflat(x, 1), (C,)),
    "trace": (lambda x, y: np.trace(x, 1) * y, (M, V)),
    "tril triu": (lambda x: np.tril(x) * np.triu(x, -1), (M,)),
    "tril of a vector": (lambda x: np.tril(x), (W,)),
    "triu of more axes": (lambda x: np.triu(x, 1), (C,)),
    "vander": (lambda x: np.vander(x), (V,)),
    "vander increasing": (lambda x: np.vander(x, 3, increasing=True), (V,)),
    "outer": (lambda x, y: np.outer(x, y), (M, W)),
    "kron": (lambda x, y: np.kron(x, y), (V, W)),
    "kron of matrices": (lambda x, y: np.kron(x, y), (M, C[0].copy())),
    "kron with a number": (lambda x, y: np.kron(x, y), (0.7, M)),
    "cross": (lambda x, y: np.cross(x, y), (W, W[::-1].copy())),
    "cross in a plane": (lambda x, y: np.cross(x, y), (T, W)),
    "cross of many": (lambda x, y: np.cross(x, y), (np.ascontiguousarray(M[:, :3]), W)),
    "linspace": (lambda x, y: np.linspace(x, y, 5), (0.3, 2.0)),
    "arange": (lambda x, y: np.arange(x, y, 0.3), (0.3, 2.0)),
    "arange step": (lambda x: np.arange(0.0, 2.0, x), (0.3,)),
    "logspace": (lambda x, y: np.logspace(x, y, 4), (0.3, 1.2)),
    "geomspace": (lambda x, y: np.geomspace(x, y, 4), (-0.3, -1.2)),
}
SELECTING: dict[str, Case] = {
    "delete": (lambda x: np.delete(x, -2), (M,)),
    "delete several": (lambda x, k: np.delete(x, k), (V, PLACES)),
    "insert": (lambda x, y: np.insert(x, 1, y), (V, W)),
    "insert several": (lambda x, k, y: np.insert(x, k, y), (V, PLACES, W)),
    "insert a number": (lambda x, k, y: np.insert(x, k, y), (V, PLACES, 0.7)),
    "extract": (lambda x: np.extract(x > 0.0, x * x), (M,)),
    "take_along_axis": (lambda x, k: np.take_along_axis(x, k, 1), (M, ALONG)),
    "take_along_axis of all": (lambda x, k: np.take_along_axis(x, k, None), (M, PLACES)),
    "ediff1d": (lambda x, y: np.ediff1d(x, y, y[:1]), (M, T)),
    "trim_zeros": (lambda x: np.trim_zeros(x) * 2.0, (V,)),
    "asarray_chkfinite": (lambda x: np.asarray_chkfinite(x) * x, (V,)),
    "unique": (lambda x: np.unique(x), (M,)),
    "union1d": (lambda x, y: np.union1d(x, y), (V, W)),
    "setdiff1d": (lambda x, y: np.setdiff1d(x, y), (V, W)),
    "setxor1d": (lambda x, y: np.setxor1d(x, y), (V, W)),
}
CASES = {**JOINING, **MOVING, **MAKING, **SELECTING}


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_gradient(name):
    function, args = CASES[name]
    check_derivatives(function, *args, reference="numba")


@pytest.mark.compiled
def test_gradient_of_what_only_numba_has():
    check_derivatives(lambda x, y: cross2d(x, y), C, T, reference="numba")


OFTEN = {"F": ("roll", "tril triu"), "A": ("concatenate", "repeat", "outer")}
LAYOUTS = [
    pytest.param(name, layout, marks=() if name in OFTEN[layout] else pytest.mark.long)
    for name in ("concatenate", "roll", "flip", "repeat", "tril triu", "outer")
    for layout in "FA"
]


@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
def test_gradient_of_other_layouts(name, layout):
    function, args = CASES[name]
    wide = [np.repeat(np.repeat(arg, 2, 0), 2, -1) if arg.ndim > 1 else np.repeat(arg, 2) for arg in args]
    strided = [arg[::2, ::2] if arg.ndim > 1 else arg[::2] for arg in wide]
    check_derivatives(function, *(map(np.asfortranarray, args) if layout == "F" else strided), reference="numba")


def written_through_views(x):
    y = x * 2.0
    turned = np.rot90(y)
    turned[0, 0] = x[1, 1] * x[0, 1]
    part = np.atleast_2d(np.flip(y[0]))
    part[0, 1] *= x[2, 2]
    np.swapaxes(y, 0, 1)[3] += x[:, 0] * x[:, 1]
    return np.sum(y * y)


def written_through_resize(x):
    y = np.resize(x, 2)
    y[0] = x[1] * 3.0
    return np.sum(x * x) + np.sum(y)


def written_to_the_diagonal(x, y):
    z = x * 2.0
    np.fill_diagonal(z, y)
    np.fill_diagonal(x, x[0, 1] * y[0])
    return np.sum(z * z) + np.sum(x * x)


def shuffled(x):
    np.random.seed(3)
    y = x * 2.0
    np.random.shuffle(y)
    np.random.shuffle(x)
    total = 0.0
    for i in range(len(y)):
        total += y[i] * i * y[i] * x[0]
    return total


def permuted_rows(x):
    np.random.seed(3)
    y = np.random.permutation(x)
    total = 0.0
    for i in range(y.shape[0]):
        total += np.sum(y[i] * i * y[i])
    return total


def chosen(x):
    np.random.seed(3)
    y = np.random.choice(x, (2, 3))
    return np.sum(y * y) + np.random.choice(x) ** 2 + np.sum(np.random.choice(x, 2, False))


def with_noise(x):
    np.random.seed(3)
    total = np.sum(x * np.random.rand(4)) * x[0]
    for i in range(3):
        total += x[i] * np.random.normal(0.0, 1.0) * x[i]
    return total + np.sum(x * x * np.random.normal(1.0, 2.0, 4))


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (written_through_views, (M,)),
        pytest.param(written_through_resize, (V,), marks=pytest.mark.compiled),  # a copy in NumPy
        (written_to_the_diagonal, (M, W)),
        (shuffled, (V,)),
        (permuted_rows, (M,)),
        (chosen, (V,)),
        (with_noise, (V,)),
    ],
)
def test_gradient_of_a_program(function, args):
    check_derivatives(function, *args, reference="numba")
