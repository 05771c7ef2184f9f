"""The adjoints of operations on whole arrays of which a selection has left something out, made to leave it out too.

    y = x @ w                               dw[k, j] is the sum of conj(x[i, k]) * dy[i, j] over those i for which
    np.sum(np.where(rows, y, 0.0))          dy[i, j] is not 0, though other rows of x be NaN

Each helper is the `nan_safe` one of a rule of `products.py`, beside the one that it is named after, and takes the same.
A product is computed as always, and those of its elements that are not finite are summed up anew. Other operations, in
whose results all of an argument takes part, have no adjoint where nothing of the results has (`linalg.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir import helper, matrix_product, matrix_vector_product

Array = Any
Number = Any


@helper
def unless_zero(product: Number, factor: Number) -> Number:
    """Return a product, but 0 where its factor is 0. Differentiated again it is `ops.guarded`."""
    return product if factor != 0 else factor


@helper
def guarded_dot_left(b: Array, dy: Array) -> Array:
    """As `dot_left`."""
    result = matrix_product(dy, b.T)
    for i in range(result.shape[0]):
        for j in range(result.shape[1]):
            if not np.isfinite(result[i, j]):
                result[i, j] = 0.0
                for k in range(dy.shape[1]):
                    result[i, j] += unless_zero(dy[i, k] * b[j, k], dy[i, k])
    return result


@helper
def guarded_dot_left_strided(b: Array, dy: Array) -> Array:
    """As `dot_left_strided`."""
    return guarded_dot_left(np.ascontiguousarray(b), dy)


@helper
def guarded_dot_left_complex(b: Array, dy: Array) -> Array:
    """As `dot_left_complex`."""
    return guarded_dot_left(np.conj(b), dy)


@helper
def guarded_dot_right(a: Array, dy: Array) -> Array:
    """As `dot_right`."""
    result = matrix_product(a.T, dy)
    for i in range(result.shape[0]):
        for j in range(result.shape[1]):
            if not np.isfinite(result[i, j]):
                result[i, j] = 0.0
                for k in range(dy.shape[0]):
                    result[i, j] += unless_zero(a[k, i] * dy[k, j], dy[k, j])
    return result


@helper
def guarded_dot_right_strided(a: Array, dy: Array) -> Array:
    """As `dot_right_strided`."""
    return guarded_dot_right(np.ascontiguousarray(a), dy)


@helper
def guarded_dot_right_complex(a: Array, dy: Array) -> Array:
    """As `dot_right_complex`."""
    return guarded_dot_right(np.conj(a), dy)


@helper
def guarded_matvec_right(a: Array, dy: Array) -> Array:
    """As `matvec_right`."""
    result = matrix_vector_product(a.T, dy)
    for i in range(result.shape[0]):
        if not np.isfinite(result[i]):
            result[i] = 0.0
            for k in range(dy.shape[0]):
                result[i] += unless_zero(a[k, i] * dy[k], dy[k])
    return result


@helper
def guarded_matvec_right_strided(a: Array, dy: Array) -> Array:
    """As `matvec_right_strided`."""
    return guarded_matvec_right(np.ascontiguousarray(a), dy)


@helper
def guarded_matvec_right_complex(a: Array, dy: Array) -> Array:
    """As `matvec_right_complex`."""
    return guarded_matvec_right(np.conj(a), dy)


@helper
def guarded_vecmat_left(b: Array, dy: Array) -> Array:
    """As `vecmat_left`."""
    result = matrix_vector_product(b, dy)
    for i in range(result.shape[0]):
        if not np.isfinite(result[i]):
            result[i] = 0.0
            for k in range(dy.shape[0]):
                result[i] += unless_zero(b[i, k] * dy[k], dy[k])
    return result


@helper
def guarded_vecmat_left_strided(b: Array, dy: Array) -> Array:
    """As `vecmat_left_strided`."""
    return guarded_vecmat_left(np.ascontiguousarray(b), dy)


@helper
def guarded_vecmat_left_complex(b: Array, dy: Array) -> Array:
    """As `vecmat_left_complex`."""
    return guarded_vecmat_left(np.conj(b), dy)


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
