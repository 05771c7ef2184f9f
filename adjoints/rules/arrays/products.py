"""The rules of products that go through BLAS: `np.dot`, `@`, `np.vdot`, of vectors and matrices.

    y = a @ b          da = dy @ b.T        db = a.T @ dy

The transpose of a C-contiguous array is a Fortran-contiguous view, which BLAS takes as it is: nothing is copied. Other
arrays are made contiguous first. Complex factors are conjugated; of a vector and a matrix it is the vector, the cheaper
one: `conj(b) @ dy` is `conj(b @ conj(dy))`.

A product is linear in each factor, so its tangent is `ta @ b + a @ tb`.

Products with `out` have no rule here, nor have integers, which Numba does not multiply.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.rules.arrays import guarded
from zygote_py.adjoints.rules.formulas.opaque import OpaqueRule, adjoint, linear, opaque, opaque_choice
from zygote_py.ir import Instr, array_helper, matrix_product, matrix_vector_product, ops

Array = Any


@array_helper((1, 0), (0, 0))
def dot_left(b: Array, dy: Array) -> Array:
    """The adjoint of a in a @ b, of two matrices: real, contiguous."""
    return matrix_product(dy, b.T)


@array_helper((1, 0), (0, 0))
def dot_left_strided(b: Array, dy: Array) -> Array:
    """As `dot_left`, for a matrix that is not contiguous."""
    return matrix_product(dy, np.ascontiguousarray(b).T)


@array_helper((1, 0), (0, 0))
def dot_left_complex(b: Array, dy: Array) -> Array:
    """As `dot_left`, for complex matrices."""
    return matrix_product(dy, np.conj(b).T)


@array_helper((0, 1), (1, 1))
def dot_right(a: Array, dy: Array) -> Array:
    """The adjoint of b in a @ b, of two matrices: real, contiguous."""
    return matrix_product(a.T, dy)


@array_helper((0, 1), (1, 1))
def dot_right_strided(a: Array, dy: Array) -> Array:
    """As `dot_right`, for a matrix that is not contiguous."""
    return matrix_product(np.ascontiguousarray(a).T, dy)


@array_helper((0, 1), (1, 1))
def dot_right_complex(a: Array, dy: Array) -> Array:
    """As `dot_right`, for complex matrices."""
    return matrix_product(np.conj(a).T, dy)


@array_helper((0, 1))
def matvec_right(a: Array, dy: Array) -> Array:
    """The adjoint of the vector b in a @ b: real, contiguous."""
    return matrix_vector_product(a.T, dy)


@array_helper((0, 1))
def matvec_right_strided(a: Array, dy: Array) -> Array:
    """As `matvec_right`, for a matrix that is not contiguous."""
    return matrix_vector_product(np.ascontiguousarray(a).T, dy)


@array_helper((0, 1))
def matvec_right_complex(a: Array, dy: Array) -> Array:
    """As `matvec_right`, for complex numbers."""
    return np.conj(matrix_vector_product(np.ascontiguousarray(a).T, np.conj(dy)))


@array_helper((0, 0))
def vecmat_left(b: Array, dy: Array) -> Array:
    """The adjoint of the vector a in a @ b: real, contiguous."""
    return matrix_vector_product(b, dy)


@array_helper((0, 0))
def vecmat_left_strided(b: Array, dy: Array) -> Array:
    """As `vecmat_left`, for a matrix that is not contiguous."""
    return matrix_vector_product(np.ascontiguousarray(b), dy)


@array_helper((0, 0))
def vecmat_left_complex(b: Array, dy: Array) -> Array:
    """As `vecmat_left`, for complex numbers."""
    return np.conj(matrix_vector_product(np.ascontiguousarray(b), np.conj(dy)))


@array_helper((0, 0), (1, 0))
def outer_conj(x: Array, y: Array) -> Array:
    """The matrix of x[i] * conj(y[j])."""
    result = np.empty((x.shape[0], y.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            result[i, j] = x[i] * np.conj(y[j])
    return result


@array_helper((1, 0), (0, 0))
def matvec_left(b: Array, dy: Array) -> Array:
    """The adjoint of the matrix a in a @ b, of a vector b."""
    return outer_conj(dy, b)


@array_helper((0, 0), (1, 0))
def vecmat_right(a: Array, dy: Array) -> Array:
    """The adjoint of the matrix b in a @ b, of a vector a: conj(a[i]) * dy[j]."""
    result = np.empty((a.shape[0], dy.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        factor = np.conj(a[i])
        for j in range(dy.shape[0]):
            result[i, j] = factor * dy[j]
    return result


@array_helper((0, 0))
def inner_left(b: Array, dy: Array) -> Array:
    """The adjoint of the vector a in the sum of a[i] * b[i]."""
    return b * dy


@array_helper((0, 0))
def inner_right(a: Array, dy: Array) -> Array:
    """The adjoint of the vector b in the sum of a[i] * b[i]."""
    return a * dy


@array_helper((0, 0))
def inner_left_complex(b: Array, dy: Array) -> Array:
    """As `inner_left`, of complex numbers."""
    return np.conj(b) * dy


@array_helper((0, 0))
def inner_right_complex(a: Array, dy: Array) -> Array:
    """As `inner_right`, of complex numbers."""
    return np.conj(a) * dy


@array_helper((0, 0))
def vdot_left_complex(b: Array, dy: Array) -> Array:
    """The adjoint of a in the sum of conj(a[i]) * b[i], in which a stands conjugated."""
    return b * np.conj(dy)


# By the kind of the matrix that the helper reads.
_VECMAT_LEFT = {
    "contiguous": adjoint(vecmat_left, nan_safe=guarded.guarded_vecmat_left),
    "strided": adjoint(vecmat_left_strided, nan_safe=guarded.guarded_vecmat_left_strided),
    "complex": adjoint(vecmat_left_complex, nan_safe=guarded.guarded_vecmat_left_complex),
}
_MATVEC_RIGHT = {
    "contiguous": adjoint(matvec_right, nan_safe=guarded.guarded_matvec_right),
    "strided": adjoint(matvec_right_strided, nan_safe=guarded.guarded_matvec_right_strided),
    "complex": adjoint(matvec_right_complex, nan_safe=guarded.guarded_matvec_right_complex),
}
_DOT_LEFT = {
    "contiguous": adjoint(dot_left, nan_safe=guarded.guarded_dot_left),
    "strided": adjoint(dot_left_strided, nan_safe=guarded.guarded_dot_left_strided),
    "complex": adjoint(dot_left_complex, nan_safe=guarded.guarded_dot_left_complex),
}
_DOT_RIGHT = {
    "contiguous": adjoint(dot_right, nan_safe=guarded.guarded_dot_right),
    "strided": adjoint(dot_right_strided, nan_safe=guarded.guarded_dot_right_strided),
    "complex": adjoint(dot_right_complex, nan_safe=guarded.guarded_dot_right_complex),
}
_MATVEC_LEFT = adjoint(matvec_left, nan_safe=guarded.guarded_matvec_left)
_VECMAT_RIGHT = adjoint(vecmat_right, nan_safe=guarded.guarded_vecmat_right)
_INNER_RIGHT = adjoint(inner_right, nan_safe=guarded.guarded_inner_right)
_INNER = linear(opaque(a=adjoint(inner_left, nan_safe=guarded.guarded_inner_left), b=_INNER_RIGHT))
_INNER_COMPLEX = linear(
    opaque(
        a=adjoint(inner_left_complex, nan_safe=guarded.guarded_inner_left_complex),
        b=adjoint(inner_right_complex, nan_safe=guarded.guarded_inner_right_complex),
    )
)
_VDOT_COMPLEX = linear(opaque(a=adjoint(vdot_left_complex, nan_safe=guarded.guarded_vdot_left_complex), b=_INNER_RIGHT))
_DOT = linear(opaque(a=dot_left, b=dot_right))


@opaque_choice(np.dot, operator.matmul, ops.matrix_product, ops.matrix_vector_product, sample=_DOT)
def dot(instr: Instr) -> OpaqueRule | None:
    """Return the rule of a product by the dimensions of its factors."""
    if len(instr.args) != 2:
        return None
    a, b = (arg.type for arg in instr.args)
    if not (isinstance(a, types.Array) and isinstance(b, types.Array)):
        return None
    match a.ndim, b.ndim:
        case 1, 1:
            return _INNER_COMPLEX if _kind(a) == "complex" else _INNER
        case 1, 2:
            return linear(opaque(a=_VECMAT_LEFT[_kind(b)], b=_VECMAT_RIGHT))
        case 2, 1:
            return linear(opaque(a=_MATVEC_LEFT, b=_MATVEC_RIGHT[_kind(a)]))
        case 2, 2:
            return linear(opaque(a=_DOT_LEFT[_kind(b)], b=_DOT_RIGHT[_kind(a)]))
    return None


@opaque_choice(np.vdot, sample=_INNER)
def vdot(instr: Instr) -> OpaqueRule | None:
    """Return the rule of the scalar product of two vectors, the first of which is conjugated."""
    a = instr.args[0].type
    return _VDOT_COMPLEX if isinstance(a, types.Array) and _kind(a) == "complex" else _INNER


def _kind(array: types.Array) -> str:
    if isinstance(array.dtype, types.Complex):
        return "complex"
    return "contiguous" if array.layout in ("C", "F") else "strided"
