"""The adjoints of operations on whole arrays of which a selection has left something out, made to leave it out too.

    y = x @ w                               dw[k, j] is the sum of conj(x[i, k]) * dy[i, j] over those i for which
    np.sum(np.where(rows, y, 0.0))          dy[i, j] is not 0, though other rows of x be NaN

`GUARDED` gives the helper for such an operation in the place of the one that a rule names; it takes the same. A product
is computed as always, and term by term only if something in it is not finite. Other operations, in whose results all of
an argument takes part, have no adjoint where nothing of the results has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zygote_py.adjoints.rules import linalg, products
from zygote_py.adjoints.rules.linalg import det_a, inv_a
from zygote_py.adjoints.rules.opaque import matters, number_matters
from zygote_py.adjoints.rules.rule import flat
from zygote_py.ir.helpers import helper

Array = Any
Number = Any


@helper
def unless_zero(product: Number, factor: Number) -> Number:
    """Give a product, but 0 where its factor is 0. Differentiated again it is `ops.guarded`."""
    return product if factor != 0 else factor


@helper
def all_finite(x: Array) -> Any:
    """Whether no element is NaN or infinite; a sum that overflows counts as if one were."""
    return np.isfinite(np.sum(x))


flat(all_finite)


@helper
def product_left(dy: Array, b: Array) -> Array:
    """The product dy @ b of matrices, without the terms in which dy is 0."""
    result = np.zeros((dy.shape[0], b.shape[1]), dy.dtype)
    for i in range(dy.shape[0]):
        for k in range(dy.shape[1]):
            for j in range(b.shape[1]):
                result[i, j] += unless_zero(dy[i, k] * b[k, j], dy[i, k])
    return result


@helper
def product_right(a: Array, dy: Array) -> Array:
    """The product a @ dy of matrices, without the terms in which dy is 0."""
    result = np.zeros((a.shape[0], dy.shape[1]), dy.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(dy.shape[1]):
                result[i, j] += unless_zero(a[i, k] * dy[k, j], dy[k, j])
    return result


@helper
def product_vector(a: Array, dy: Array) -> Array:
    """The product a @ dy of a matrix and a vector, without the terms in which dy is 0."""
    result = np.zeros(a.shape[0], dy.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            result[i] += unless_zero(a[i, k] * dy[k], dy[k])
    return result


@helper
def guarded_dot_left(b: Array, dy: Array) -> Array:
    """As `dot_left`."""
    t = np.ascontiguousarray(b).T
    result = np.dot(dy, t)
    return result if all_finite(result) else product_left(dy, t)


@helper
def guarded_dot_left_complex(b: Array, dy: Array) -> Array:
    """As `dot_left_complex`."""
    t = np.conj(b).T
    result = np.dot(dy, t)
    return result if all_finite(result) else product_left(dy, t)


@helper
def guarded_dot_right(a: Array, dy: Array) -> Array:
    """As `dot_right`, of matrices."""
    t = np.ascontiguousarray(a).T
    result = np.dot(t, dy)
    return result if all_finite(result) else product_right(t, dy)


@helper
def guarded_dot_right_complex(a: Array, dy: Array) -> Array:
    """As `dot_right_complex`."""
    t = np.conj(a).T
    result = np.dot(t, dy)
    return result if all_finite(result) else product_right(t, dy)


@helper
def guarded_matvec_right(a: Array, dy: Array) -> Array:
    """As `dot_right`, of a matrix and a vector."""
    t = np.ascontiguousarray(a).T
    result = np.dot(t, dy)
    return result if all_finite(result) else product_vector(t, dy)


@helper
def guarded_matvec_right_complex(a: Array, dy: Array) -> Array:
    """As `matvec_right_complex`."""
    t = np.conj(a).T
    result = np.dot(t, dy)
    return result if all_finite(result) else product_vector(t, dy)


@helper
def guarded_vecmat_left(b: Array, dy: Array) -> Array:
    """As `vecmat_left`."""
    t = np.ascontiguousarray(b)
    result = np.dot(t, dy)
    return result if all_finite(result) else product_vector(t, dy)


@helper
def guarded_vecmat_left_complex(b: Array, dy: Array) -> Array:
    """As `vecmat_left_complex`."""
    t = np.conj(b)
    result = np.dot(t, dy)
    return result if all_finite(result) else product_vector(t, dy)


@helper
def guarded_matvec_left(b: Array, dy: Array) -> Array:
    """As `matvec_left`."""
    result = np.empty((dy.shape[0], b.shape[0]), dy.dtype)
    for i in range(dy.shape[0]):
        for j in range(b.shape[0]):
            result[i, j] = unless_zero(dy[i] * np.conj(b[j]), dy[i])
    return result


@helper
def guarded_vecmat_right(a: Array, dy: Array) -> Array:
    """As `vecmat_right`."""
    result = np.empty((a.shape[0], dy.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(dy.shape[0]):
            result[i, j] = unless_zero(np.conj(a[i]) * dy[j], dy[j])
    return result


@helper
def times_number(x: Array, dy: Number) -> Array:
    """The product of an array and an adjoint; zeros where that is 0."""
    result = np.empty(x.shape[0], x.dtype)
    for i in range(x.shape[0]):
        result[i] = unless_zero(x[i] * dy, dy)
    return result


@helper
def guarded_inner_left(b: Array, dy: Number) -> Array:
    """As `inner_left`."""
    return times_number(b, dy)


@helper
def guarded_inner_right(a: Array, dy: Number) -> Array:
    """As `inner_right`."""
    return times_number(a, dy)


@helper
def guarded_inner_left_complex(b: Array, dy: Number) -> Array:
    """As `inner_left_complex`."""
    return times_number(np.conj(b), dy)


@helper
def guarded_inner_right_complex(a: Array, dy: Number) -> Array:
    """As `inner_right_complex`."""
    return times_number(np.conj(a), dy)


@helper
def guarded_vdot_left_complex(b: Array, dy: Number) -> Array:
    """As `vdot_left_complex`."""
    return times_number(b, np.conj(dy))


@helper
def guarded_solve_b(a: Array, dy: Array) -> Array:
    """As `solve_b`."""
    if not matters(dy):
        return np.zeros_like(dy)
    return np.linalg.solve(np.conj(a.T), dy)


@helper
def guarded_solve_a(y: Array, db: Array) -> Array:
    """As `solve_a`."""
    t = np.conj(y.T)
    result = np.dot(db, t)
    return -result if all_finite(result) else -product_left(db, t)


@helper
def guarded_inv_a(y: Array, dy: Array) -> Array:
    """As `inv_a`."""
    if not matters(dy):
        return np.zeros_like(y)
    return inv_a(y, dy)


@helper
def guarded_det_a(a: Array, y: Number, dy: Number) -> Array:
    """As `det_a`."""
    if not number_matters(dy):
        return np.zeros(a.shape, a.dtype)
    return det_a(a, y, dy)


GUARDED: dict[Callable[..., object], Callable[..., object]] = {
    products.dot_left: guarded_dot_left,
    products.dot_left_strided: guarded_dot_left,
    products.dot_left_complex: guarded_dot_left_complex,
    products.dot_right_complex: guarded_dot_right_complex,
    products.matvec_right_complex: guarded_matvec_right_complex,
    products.vecmat_left: guarded_vecmat_left,
    products.vecmat_left_strided: guarded_vecmat_left,
    products.vecmat_left_complex: guarded_vecmat_left_complex,
    products.matvec_left: guarded_matvec_left,
    products.vecmat_right: guarded_vecmat_right,
    products.inner_left: guarded_inner_left,
    products.inner_right: guarded_inner_right,
    products.inner_left_complex: guarded_inner_left_complex,
    products.inner_right_complex: guarded_inner_right_complex,
    products.vdot_left_complex: guarded_vdot_left_complex,
    linalg.solve_b: guarded_solve_b,
    linalg.solve_a: guarded_solve_a,
    linalg.inv_a: guarded_inv_a,
    linalg.det_a: guarded_det_a,
}


def guarded(function: Callable[..., object], rank: int) -> Callable[..., object]:
    """The helper for a value that may be left out, of so many dimensions; the function itself if there is none."""
    if function in (products.dot_right, products.dot_right_strided):
        return guarded_dot_right if rank == 2 else guarded_matvec_right
    return GUARDED.get(function, function)
