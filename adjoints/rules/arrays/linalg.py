"""The rules of linear algebra without spectra: `inv solve det slogdet matrix_power cholesky qr pinv lstsq`.

    y = np.linalg.inv(a)          da = -y^H @ dy @ y^H

Each is of what LAPACK computes: `cholesky` reads the lower triangle of its argument, so the upper one has the
gradient 0. Where there is no derivative, the helper raises `LinAlgError`, unless the adjoint that comes in is zero.
docs/linear-algebra.md has the conditions. Eigenvalues, singular values and norms are in `spectra.py`.

The formulas of `inv`, `solve`, `det` are those of M. Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008); others say theirs. `^H` is the conjugate transpose. Where the formula
of the tangent is as simple, there is a helper for it; the tangents of the others are made of the adjoints.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.rules.arrays.guarded import guarded_dot_left
from zygote_py.adjoints.rules.arrays.products import outer_conj
from zygote_py.adjoints.rules.formulas.opaque import (
    OpaqueRule,
    adjoint,
    is_differentiated,
    linear,
    matters,
    number_matters,
    opaque,
    opaque_choice,
    opaque_rule,
    tangents,
)
from zygote_py.ir import Instr, array_helper, fresh_helper, helper, matrix_product, matrix_vector_product

Array = Any
Number = Any


@array_helper((0, 0), (0, 1))
def inv_a(y: Array, dy: Array) -> Array:
    """The adjoint of a in y = inv(a): -y^H dy y^H."""
    t = np.conj(y.T)
    return -matrix_product(matrix_product(t, dy), t)


@fresh_helper
def inv_tangent(y: Array, ta: Array) -> Array:
    """The tangent of y = inv(a): -y ta y."""
    product = matrix_product(matrix_product(y, ta), y)
    result = np.empty_like(y)
    for i in range(y.shape[0]):
        for j in range(y.shape[0]):
            result[i, j] = -product[i, j]
    return result


@helper
def guarded_inv_a(y: Array, dy: Array) -> Array:
    """As `inv_a`."""
    if not matters(dy):
        return np.zeros_like(y)
    return inv_a(y, dy)


@helper
def solve_b(a: Array, dy: Array) -> Array:
    """The adjoint of b in solve(a, b): the solution of the transposed system."""
    return np.linalg.solve(np.conj(a.T), dy)


@helper
def guarded_solve_b(a: Array, dy: Array) -> Array:
    """As `solve_b`."""
    if not matters(dy):
        return np.zeros_like(dy)
    return np.linalg.solve(np.conj(a.T), dy)


@helper
def solve_a(y: Array, db: Array) -> Array:
    """The adjoint of a in y = solve(a, b): -db y^H."""
    return -matrix_product(db, np.conj(y.T))


@helper
def guarded_solve_a(y: Array, db: Array) -> Array:
    """As `solve_a`."""
    return -guarded_dot_left(np.conj(y), db)


@array_helper((1, 0), (0, 0))
def solve_vector_a(y: Array, db: Array) -> Array:
    """As `solve_a`, for a vector b."""
    return -outer_conj(db, y)


@fresh_helper
def solve_tangent_a(a: Array, y: Array, ta: Array) -> Array:
    """The tangent of y = solve(a, b) for that of a: the solution for -ta y."""
    return np.linalg.solve(a, -np.dot(ta, y))


@fresh_helper
def solve_tangent(a: Array, y: Array, ta: Array, tb: Array) -> Array:
    """The tangent of y = solve(a, b) for those of a and b: the solution for tb - ta y."""
    change = matrix_product(ta, y)
    for i in range(change.shape[0]):
        for j in range(change.shape[1]):
            change[i, j] = tb[i, j] - change[i, j]
    return np.linalg.solve(a, change)


@fresh_helper
def solve_vector_tangent(a: Array, y: Array, ta: Array, tb: Array) -> Array:
    """As `solve_tangent`, for a vector b."""
    change = matrix_vector_product(ta, y)
    for i in range(change.shape[0]):
        change[i] = tb[i] - change[i]
    return np.linalg.solve(a, change)


@helper
def product_trace(x: Array, y: Array) -> Number:
    """The trace of the product x y of square matrices."""
    total = np.zeros(1, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            total[0] += x[i, j] * y[j, i]
    return total[0]


@array_helper((0, 0), (0, 1))
def det_a(a: Array, y: Array, dy: Array) -> Array:
    """The adjoint of a in y = det(a): the conjugate of the matrix of cofactors, which a singular matrix has as well.

    It is det(a) inv(a)^T where that has half of the digits at least. Otherwise, of the decomposition u s vh, it is
    det(u) det(vh) conj(u) cof(s) conj(vh), and the cofactors of a diagonal matrix are products of all others. The
    vectors of repeated singular values have no derivative, the cofactors have: where they are differentiated, they are
    made of products by the method of Faddeev and LeVerrier, to fewer digits for large matrices.
    """
    result = np.empty(a.shape, a.dtype)
    n = a.shape[0]
    if n > 0 and np.abs(y) > 1e-250:
        inverse = np.linalg.inv(a)
        size = np.max(np.abs(a))
        if size * np.max(np.abs(inverse)) < np.sqrt(size / np.spacing(size)):
            for i in range(n):
                for j in range(n):
                    result[i, j] = np.conj(y * inverse[j, i]) * dy
            return result
    if n == 0:
        return result
    if is_differentiated(y):
        cofactors = np.zeros((n, n), a.dtype)
        for i in range(n):
            cofactors[i, i] = -1.0 if n % 2 == 0 else 1.0
        for k in range(1, n):
            cofactors = np.dot(np.ascontiguousarray(a), cofactors)
            shift = np.sum(np.diag(cofactors)) / k
            for i in range(n):
                cofactors[i, i] -= shift
        for i in range(n):
            for j in range(n):
                result[i, j] = np.conj(cofactors[j, i]) * dy
        return result
    u, s, vh = np.linalg.svd(a)
    scaled = np.empty_like(u)
    for k in range(n):
        cofactor = 1.0
        for j in range(n):
            if j != k:
                cofactor *= s[j]
        for i in range(n):
            scaled[i, k] = u[i, k] * cofactor
    product = np.dot(scaled, vh)
    factor = np.conj(np.linalg.det(u) * np.linalg.det(vh)) * dy
    for i in range(n):
        for j in range(n):
            result[i, j] = product[i, j] * factor
    return result


@helper
def det_tangent(a: Array, y: Number, ta: Array) -> Number:
    """The tangent of y = det(a): the trace of the product of the matrix of cofactors, transposed, and ta."""
    return product_trace(np.conj(det_a(a, y, 1.0).T), ta)


@helper
def guarded_det_a(a: Array, y: Number, dy: Number) -> Array:
    """As `det_a`."""
    if not number_matters(dy):
        return np.zeros(a.shape, a.dtype)
    return det_a(a, y, dy)


@array_helper((0, 0), (0, 1))
def slogdet_a(a: Array, y1: Array, dy1: Array) -> Array:
    """The adjoint of a real a in (sign, y1) = slogdet(a): dy1 inv(a)^T. The sign is locally constant."""
    return inverse_times(a, y1, dy1)


@array_helper((0, 0), (0, 1))
def slogdet_complex_a(a: Array, y0: Array, y1: Array, dy0: Array, dy1: Array) -> Array:
    """The adjoint of a complex a in (y0, y1) = slogdet(a): (dy1 - i Im(conj(dy0) y0)) inv(a)^H, |y0| being 1."""
    return inverse_times(a, y1, dy1 - 1j * np.imag(np.conj(dy0) * y0))


@array_helper((0, 0), (0, 1))
def inverse_times(a: Array, logarithm: Array, factor: Array) -> Array:
    """Return inv(a)^H times a number; the logarithm of the determinant tells whether there is an inverse."""
    result = np.zeros(a.shape, a.dtype)
    if number_matters(factor):
        if np.isinf(logarithm):
            raise np.linalg.LinAlgError("np.linalg.slogdet: a singular matrix has no derivative")
        inverse = np.linalg.inv(a)
        for i in range(a.shape[0]):
            for j in range(a.shape[0]):
                result[i, j] = np.conj(inverse[j, i]) * factor
    return result


@helper
def inverse_trace(a: Array, logarithm: Number, ta: Array) -> Number:
    """The trace of inv(a) ta; the logarithm of the determinant tells whether there is an inverse."""
    if np.isinf(logarithm):
        raise np.linalg.LinAlgError("np.linalg.slogdet: a singular matrix has no derivative")
    return product_trace(np.linalg.inv(a), ta)


@helper
def slogdet_tangent(a: Array, y1: Number, ta: Array) -> Number:
    """The tangent of y1 in (sign, y1) = slogdet(a) of a real a."""
    return inverse_trace(a, y1, ta)


@helper
def slogdet_complex_tangent_0(a: Array, y0: Number, y1: Number, ta: Array) -> Number:
    """The tangent of y0 in (y0, y1) = slogdet(a) of a complex a: that of arg(y0) is the imaginary part of the trace."""
    return y0 * (1j * np.imag(inverse_trace(a, y1, ta)))


@helper
def slogdet_complex_tangent_1(a: Array, y1: Number, ta: Array) -> Number:
    """The tangent of y1 in (sign, y1) = slogdet(a) of a complex a."""
    return np.real(inverse_trace(a, y1, ta))


@helper
def matrix_power_a(a: Array, n: int, dy: Array) -> Array:
    """The adjoint of a in matrix_power(a, n): the sum of b^k dy b^(n-1-k) over k < n, where b = a^H.

    It is the upper right block of the n-th power of [[b, dy], [0, b]], computed by squaring (N. Higham, "Functions of
    Matrices", theorem 3.6). For n < 0 it is that of inv(a), and then the adjoint of the inverse.
    """
    if n == 0:
        return np.zeros(a.shape, a.dtype)
    base = np.ascontiguousarray(np.conj(np.linalg.inv(a).T) if n < 0 else np.conj(a.T))
    change = np.ascontiguousarray(dy)
    factor = base
    power = factor
    result = change
    count = abs(n) - 1
    while count > 0:
        if count % 2 == 1:
            result = np.dot(power, change) + np.dot(result, factor)
            power = np.dot(power, factor)
        count //= 2
        if count > 0:
            change = np.dot(factor, change) + np.dot(change, factor)
            factor = np.dot(factor, factor)
    if n < 0:
        result = -np.dot(np.dot(base, result), base)
    return result


@fresh_helper
def matrix_power_tangent(a: Array, n: int, ta: Array) -> Array:
    """The tangent of matrix_power(a, n): the sum of a^k ta a^(n-1-k) over k < n."""
    return np.copy(matrix_power_a(np.conj(a.T), n, ta))


@array_helper((0, 0), (0, 1))
def cholesky_a(y: Array, dy: Array) -> Array:
    """The adjoint of a in y = cholesky(a), a function of the lower triangle and of the diagonal's real part.

    With p the lower triangle of y^H dy, its diagonal halved, and s = y^-H p y^-1: s + s^H below the diagonal and the
    real part of s on it. I. Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 8 to 10.
    """
    n = y.shape[0]
    upper = np.conj(y.T)
    p = matrix_product(upper, dy)
    for i in range(n):
        p[i, i] = 0.5 * np.real(p[i, i])
        for j in range(i + 1, n):
            p[i, j] = 0.0
    half = np.linalg.solve(upper, p)
    s = np.linalg.solve(upper, np.conj(half.T))
    result = np.zeros(y.shape, y.dtype)
    for i in range(n):
        result[i, i] = np.real(s[i, i])
        for j in range(i):
            result[i, j] = s[i, j] + np.conj(s[j, i])
    return result


@fresh_helper
def cholesky_tangent(y: Array, ta: Array) -> Array:
    """The tangent of y = cholesky(a): y times the lower triangle of s = y^-1 ta y^-H, its diagonal halved.

    Of ta the lower triangle and the diagonal's real part are read. I. Murray, as above, eq. 7.
    """
    n = y.shape[0]
    change = np.empty((n, n), y.dtype)
    for i in range(n):
        change[i, i] = np.real(ta[i, i])
        for j in range(i):
            change[i, j] = ta[i, j]
            change[j, i] = np.conj(ta[i, j])
    half = np.linalg.solve(y, change)
    s = np.linalg.solve(y, np.conj(half.T))
    p = np.zeros((n, n), y.dtype)
    for i in range(n):
        p[i, i] = 0.5 * np.real(s[i, i])
        for j in range(i):
            p[i, j] = s[i, j]
    return matrix_product(y, p)


@array_helper((0, 0), (1, 1))
def qr_a(y0: Array, y1: Array, dy0: Array, dy1: Array) -> Array:
    """The adjoint of a in (y0, y1) = (q, r) = qr(a).

    With q^H da r^-1 = w + t, w skew-Hermitian and t upper triangular with a real diagonal, dr = t r and
    dq = q w + (1 - q q^H) da r^-1; and all this transposed. A wide matrix is [x, q s] with x = q u: the adjoint of
    s = q^H (q s) goes to both. S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010);
    D. Roberts, L. Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020).
    """
    m = y0.shape[0]
    k = y1.shape[0]
    n = y1.shape[1]
    result = np.zeros((m, n), y0.dtype)
    if not (matters(dy0) or matters(dy1)):
        return result
    q = np.ascontiguousarray(y0)
    qh = np.conj(q.T)
    r = np.ascontiguousarray(y1[:, :k])
    largest = np.max(np.abs(r))
    for i in range(k):
        if np.abs(r[i, i]) <= (m + n) * np.spacing(largest):
            raise np.linalg.LinAlgError(
                "np.linalg.qr: no derivative, the first min(m, n) columns of the matrix are linearly dependent"
            )
    dq = np.ascontiguousarray(dy0)
    if n > k:
        rest = np.ascontiguousarray(dy1[:, k:])
        result[:, k:] = np.dot(q, rest)
        dq = dq + np.dot(np.dot(q, np.ascontiguousarray(y1[:, k:])), np.conj(rest.T))
    c = np.dot(np.ascontiguousarray(dy1[:, :k]), np.conj(r.T))
    x = np.dot(qh, dq)
    p = x - c
    for i in range(k):
        c[i, i] += 0.5 * (p[i, i] - np.conj(p[i, i]))
        for j in range(i):
            c[i, j] += p[i, j] - np.conj(p[j, i])
    adjoint = np.dot(q, c)
    if m > k:
        adjoint = adjoint + (dq - np.dot(q, x))
    result[:, :k] = np.conj(np.linalg.solve(r, np.conj(adjoint.T)).T)
    return result


@helper
def pinv_a(a: Array, y: Array, dy: Array) -> Array:
    """The adjoint of a in y = pinv(a), of full rank; the rank is the trace of y a.

    G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    separate" (1973), eq. 4.12, transposed.
    """
    if not matters(dy):
        return np.zeros(a.shape, a.dtype)
    m = a.shape[0]
    n = a.shape[1]
    if np.abs(np.sum(y * a.T)) < min(m, n) - 0.5:
        raise np.linalg.LinAlgError("np.linalg.pinv: no derivative, the matrix has not full rank, or rcond cuts it off")
    c = np.ascontiguousarray(a)
    p = np.ascontiguousarray(y)
    ph = np.conj(p.T)
    dh = np.conj(np.ascontiguousarray(dy).T)
    result = -np.dot(np.dot(ph, dy), ph)
    if m > n:
        t = np.dot(dh, np.dot(p, ph))
        result = result + (t - np.dot(c, np.dot(p, t)))
    if m < n:
        t = np.dot(np.dot(ph, p), dh)
        result = result + (t - np.dot(np.dot(t, p), c))
    return result


@helper
def lstsq_b(a: Array, b: Array, y0: Array, y2: int, dy0: Array, dy1: Array) -> Array:
    """The adjoint of b in (y0, y1, y2, y3) = lstsq(a, b), of full rank: pinv(a)^H dy0 + 2 (b - a y0) dy1."""
    m = a.shape[0]
    n = a.shape[1]
    if not (matters(dy0) or matters(dy1)):
        return np.zeros(b.shape, b.dtype)
    if y2 < min(m, n):
        raise np.linalg.LinAlgError("np.linalg.lstsq: no derivative, the matrix has not full rank")
    result = np.dot(np.conj(np.linalg.pinv(a, 0.0).T), dy0)
    if m > n:
        residual = np.ascontiguousarray(b) - np.dot(np.ascontiguousarray(a), y0)
        for i in range(m):
            for j in range(dy1.shape[0]):
                result[i, j] += residual[i, j] * (dy1[j] + dy1[j])
    return result


@helper
def lstsq_a(a: Array, b: Array, y0: Array, y2: int, dy0: Array, dy3: Array, db: Array) -> Array:
    """The adjoint of a in (y0, y1, y2, y3) = lstsq(a, b), of full rank, with that of b.

    As that of pinv(a) b, and of the singular values y3. The residual and the space orthogonal to the rows are used.
    """
    m = a.shape[0]
    n = a.shape[1]
    result = np.zeros(a.shape, a.dtype)
    if matters(dy3):
        u, _, vh = np.linalg.svd(a, False)
        for k in range(min(m, n)):
            for i in range(m):
                for j in range(n):
                    result[i, j] += u[i, k] * dy3[k] * vh[k, j]
    if not (matters(db) or matters(dy0)):
        return result
    if y2 < min(m, n):
        raise np.linalg.LinAlgError("np.linalg.lstsq: no derivative, the matrix has not full rank")
    result = result - np.dot(db, np.conj(y0.T))
    if m == n:
        return result
    c = np.ascontiguousarray(a)
    p = np.linalg.pinv(a, 0.0)
    if m > n:
        residual = np.ascontiguousarray(b) - np.dot(c, y0)
        return result + np.dot(residual, np.conj(np.dot(p, db).T))
    unseen = np.ascontiguousarray(dy0) - np.dot(p, np.dot(c, dy0))
    return result + np.dot(np.dot(np.conj(p.T), y0), np.conj(unseen.T))


@helper
def as_column(x: Array) -> Array:
    """A vector as a matrix of one column."""
    result = np.empty((x.shape[0], 1), x.dtype)
    result[:, 0] = x
    return result


@helper
def lstsq_vector_b(a: Array, b: Array, y0: Array, y2: int, dy0: Array, dy1: Array) -> Array:
    """As `lstsq_b`, for a vector b."""
    return lstsq_b(a, as_column(b), as_column(y0), y2, as_column(dy0), dy1)[:, 0]


@helper
def lstsq_vector_a(a: Array, b: Array, y0: Array, y2: int, dy0: Array, dy3: Array, db: Array) -> Array:
    """As `lstsq_a`, for a vector b."""
    return lstsq_a(a, as_column(b), as_column(y0), y2, as_column(dy0), dy3, as_column(db))


_SOLVE_B = adjoint(solve_b, nan_safe=guarded_solve_b)
_SOLVE_CONDITION = "a and b finite; a singular matrix raises as np.linalg.solve does"
_SOLVE = tangents(
    linear(opaque(_SOLVE_CONDITION, a=adjoint(solve_a, nan_safe=guarded_solve_a), b=_SOLVE_B), "b"),
    solve_tangent_a,
    solve_tangent,
)
_SOLVE_VECTOR = tangents(
    linear(opaque(_SOLVE_CONDITION, a=solve_vector_a, b=_SOLVE_B), "b"), solve_tangent_a, solve_vector_tangent
)
_FULL_RANK = "full rank, rows or columns; refused otherwise"
_LSTSQ = opaque(_FULL_RANK, a=lstsq_a, b=lstsq_b, rcond=None)
_LSTSQ_VECTOR = opaque(_FULL_RANK, a=lstsq_vector_a, b=lstsq_vector_b, rcond=None)
_SLOGDET = tangents(opaque("a regular; a singular matrix is refused", a=slogdet_a), y1=slogdet_tangent)
_SLOGDET_COMPLEX = tangents(
    opaque(_SLOGDET.condition, a=slogdet_complex_a), y0=slogdet_complex_tangent_0, y1=slogdet_complex_tangent_1
)

opaque_rule(
    np.linalg.inv,
    condition="a singular matrix raises as np.linalg.inv does",
    a=adjoint(inv_a, nan_safe=guarded_inv_a),
    tangent=inv_tangent,
)
opaque_rule(
    np.linalg.det,
    condition="everywhere, singular matrices included",
    a=adjoint(det_a, nan_safe=guarded_det_a),
    tangent=det_tangent,
)
opaque_rule(
    np.linalg.matrix_power,
    condition="n < 0: as np.linalg.inv",
    tangent=matrix_power_tangent,
    a=matrix_power_a,
    n=None,
)
opaque_rule(
    np.linalg.cholesky,
    condition="positive definite, else np.linalg.cholesky raises; only the lower triangle is read, the gradient of the "
    "upper one is 0",
    a=cholesky_a,
    tangent=cholesky_tangent,
)
opaque_rule(np.linalg.qr, condition="the first min(m, n) columns are linearly independent; refused otherwise", a=qr_a)
opaque_rule(np.linalg.pinv, condition=_FULL_RANK + "; so is a rank that rcond reduces", a=pinv_a, rcond=None)


@opaque_choice(np.linalg.solve, sample=_SOLVE)
def solve(instr: Instr) -> OpaqueRule | None:
    """Return the rule by the number of dimensions of b."""
    return _SOLVE_VECTOR if _ndim(instr, 1) == 1 else _SOLVE


@opaque_choice(np.linalg.lstsq, sample=_LSTSQ)
def lstsq(instr: Instr) -> OpaqueRule | None:
    """Return the rule by the number of dimensions of b."""
    return _LSTSQ_VECTOR if _ndim(instr, 1) == 1 else _LSTSQ


@opaque_choice(np.linalg.slogdet, sample=_SLOGDET)
def slogdet(instr: Instr) -> OpaqueRule | None:
    """Return the rule by the dtype of a."""
    kind = instr.args[0].type
    number = isinstance(kind, types.Array) and isinstance(kind.dtype, types.Complex)
    return _SLOGDET_COMPLEX if number else _SLOGDET


def _ndim(instr: Instr, number: int) -> int:
    kind = instr.args[number].type
    return kind.ndim if isinstance(kind, types.Array) else 0
