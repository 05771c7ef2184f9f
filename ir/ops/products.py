"""Products of matrices whose sums may have any order, those of adjoints: the library BLAS, or loops if they are small.

    matrix_product(dy, b.T)             the adjoint of a in a @ b
    add_product(da, dy, b.T)            da += dy @ b.T, without an array for the product
    matrix_vector_product(a.T, dy)      the adjoint of x in a @ x

A call of BLAS takes longer than the arithmetic of matrices of a few rows: loops take a third to nine tenths of its time
up to five rows of five elements. The products of the function itself are those of `np.dot`, to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zygote_py.ir.ops.helpers import array_helper, helper
from zygote_py.ir.ops.table import Effect, operation


@array_helper((0, 0), (1, 1))
def matrix_product(a: Any, b: Any) -> Any:
    """The product of two matrices; its sums may have any order."""
    rows, terms, columns = a.shape[0], a.shape[1], b.shape[1]
    if terms != b.shape[0] or not 0 < rows * terms * columns <= 125:
        return np.dot(a, b)
    result = np.empty((rows, columns), a.dtype)
    for i in range(rows):
        for j in range(columns):
            total = a[i, 0] * b[0, j]
            for k in range(1, terms):
                total += a[i, k] * b[k, j]
            result[i, j] = total
    return result


@array_helper((0, 0))
def matrix_vector_product(a: Any, x: Any) -> Any:
    """The product of a matrix and a vector; its sums may have any order."""
    rows, terms = a.shape[0], a.shape[1]
    if terms != x.shape[0] or not 0 < rows * terms <= 25:
        return np.dot(a, x)
    result = np.empty(rows, a.dtype)
    for i in range(rows):
        total = a[i, 0] * x[0]
        for k in range(1, terms):
            total += a[i, k] * x[k]
        result[i] = total
    return result


operation(matrix_product, matrix_vector_product, shapes_decide=True)


def add_product(total: Any, a: Any, b: Any) -> None:
    """Add the product of two matrices to a matrix, in any order. Raises ValueError if their shapes do not fit."""
    rows, terms, columns = a.shape[0], a.shape[1], b.shape[1]
    if terms != b.shape[0] or total.shape[0] != rows or total.shape[1] != columns:
        raise ValueError("matmul: the shapes of two matrices, and of what their product is added to, do not fit")
    if rows * terms * columns > 125:
        add_large_product(total, a, b)
    else:
        for i in range(rows):
            for j in range(columns):
                for k in range(terms):
                    total[i, j] += a[i, k] * b[k, j]


def add_large_product(total: Any, a: Any, b: Any) -> None:
    """Add the product of two matrices to a matrix, of shapes that fit; compiled code lets BLAS add it."""
    total += np.dot(a, b)


for _function in (add_product, add_large_product):
    operation(helper(_function, effect=Effect.WRITE), adds=True)
