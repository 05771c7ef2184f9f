"""The rules of eigenvalues, singular values and of the norms that are made of them.

    w, v = np.linalg.eigh(a)         da = v (diag(dw) + f * (v^H dv)) v^H,  f[i, j] = 1 / (w[j] - w[i])

Vectors of a repeated value can be any basis of their space, so that a result in which they take part has no derivative
in general, and whether it has one after all its adjoint does not tell: `LinAlgError` is raised where anything comes in
for them that is more than rounding errors. So it is where a result depends on the phase of complex vectors of `svd`, or
of `eigh` where LAPACK has not made the first component real. A value alone, of a group of equal ones, has a kink; the
rules take the vectors that LAPACK has chosen (docs/kinks.md).

`eigh` and `eigvalsh` read the lower triangle: the gradient of the upper one is 0, and a matrix that is not Hermitian is
refused. `np.linalg.norm` and `cond` have rules here for the 2-norm and Frobenius' norm; the others are written in
Python in `zygote_py/numpy_functions/linalg/linalg.py`.

Sources: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); J. Townsend, "Differentiating the singular value decomposition" (2016); Z. Wan, S. Zhang, "Automatic
differentiation for complex valued SVD" (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.rules.formulas.opaque import (
    OpaqueRule,
    matters,
    number_matters,
    opaque,
    opaque_choice,
    opaque_rule,
    tangents,
)
from zygote_py.adjoints.rules.formulas.rule import flat
from zygote_py.adjoints.rules.scalar.arithmetic import constant_value
from zygote_py.ir import Instr, helper

Array = Any
Number = Any


@helper
def rounding(scale: Number, n: int) -> Number:
    """How far a value computed from n x n values of this scale may be off by rounding."""
    return 16 * (n + 1) * np.spacing(scale)


flat(rounding)  # what it is compared with decides whether there is a derivative, and not which


@helper
def largest(x: Array) -> Number:
    """The greatest absolute value in an array; 0 in an empty one."""
    if x.size == 0:
        return np.abs(np.zeros(1, x.dtype))[0]  # of the same precision
    return np.max(np.abs(x))


@helper
def all_nan(x: Array) -> Array:
    """An array like another of NaN: the adjoint where what comes in is not finite."""
    result = np.empty(x.shape, x.dtype)
    result[:] = np.nan
    return result


@helper
def weighed(u: Array, s: Array, vh: Array) -> Array:
    """The product u diag(s) vh."""
    scaled = np.empty(u.shape, u.dtype)
    for i in range(u.shape[0]):
        for k in range(u.shape[1]):
            scaled[i, k] = u[i, k] * s[k]
    return np.dot(scaled, vh)


@helper
def check_null_vectors(x: Array, dx: Array, noise: float, unique: bool) -> None:
    """Refuse an adjoint of vectors of what a matrix leaves out, unless there is one, unique but for its phase."""
    g = np.dot(np.conj(x.T), dx)
    if unique:
        g = g - np.conj(g.T)
    if largest(g) > noise:
        raise np.linalg.LinAlgError(
            "np.linalg.svd: no derivative of the additional columns of u or rows of vh, which are arbitrary; "
            "pass full_matrices=False"
        )


@helper
def divided_columns(x: Array, dx: Array, s: Array, noise: float, gap: float) -> Array:
    """The columns of x, each divided by its singular value; those of a singular value 0 have to have no adjoint dx."""
    result = np.zeros(x.shape, x.dtype)
    for k in range(s.shape[0]):
        if s[k] > gap:
            result[:, k] = x[:, k] / s[k]
        elif np.maximum(largest(x[:, k]), largest(dx[:, k])) > noise:
            raise np.linalg.LinAlgError("np.linalg.svd: no derivative of the vectors of a singular value 0")
    return result


@helper
def svd_a(y0: Array, y1: Array, y2: Array, dy0: Array, dy1: Array, dy2: Array) -> Array:
    """The adjoint of a in (u, s, vh) = svd(a).

    With x and z the skew-Hermitian parts (times 2) of u^H du and v^H dv, that of p = u^H da v is, outside the diagonal,
    (x + z) / (2 (s[j] - s[i])) + (x - z) / (2 (s[j] + s[i])); the first term is the turn of u and v together.
    """
    k = y1.shape[0]
    m = y0.shape[0]
    n = y2.shape[1]
    u = np.ascontiguousarray(y0[:, :k])
    vh = np.ascontiguousarray(y2[:k, :])
    scale = np.maximum(largest(dy0), largest(dy2))
    if not (matters(dy0) or matters(dy2)):
        return weighed(u, dy1, vh)
    if not np.isfinite(scale):
        return all_nan(np.dot(u, vh))
    v = np.ascontiguousarray(np.conj(vh.T))
    du = np.ascontiguousarray(dy0[:, :k])
    dv = np.ascontiguousarray(np.conj(dy2[:k, :].T))
    x = np.dot(np.conj(u.T), du)
    z = np.dot(vh, dv)
    noise = rounding(scale, m + n)
    gap = rounding(y1[0], m + n)
    p = np.zeros((k, k), y0.dtype)
    for i in range(k):
        turn_u = x[i, i] - np.conj(x[i, i])
        turn_v = z[i, i] - np.conj(z[i, i])
        if np.abs(turn_u + turn_v) > noise:
            raise np.linalg.LinAlgError("np.linalg.svd: no derivative of what depends on the vectors' phase")
        p[i, i] = dy1[i]
        if y1[i] > gap:
            p[i, i] += 0.25 * ((turn_u - turn_v) / y1[i])
        elif np.abs(turn_u - turn_v) > noise:
            raise np.linalg.LinAlgError("np.linalg.svd: no derivative of the vectors of a singular value 0")
        for j in range(k):
            if i != j and np.abs(y1[j] - y1[i]) > gap:
                turn_u = x[i, j] - np.conj(x[j, i])
                turn_v = z[i, j] - np.conj(z[j, i])
                p[i, j] = 0.5 * ((turn_u + turn_v) / (y1[j] - y1[i]) + (turn_u - turn_v) / (y1[j] + y1[i]))
            elif i != j:
                within_u = np.maximum(np.abs(x[i, i]), np.abs(x[i, j]))
                within_v = np.maximum(np.abs(z[i, i]), np.abs(z[i, j]))
                if np.maximum(within_u, within_v) > noise:
                    raise np.linalg.LinAlgError(
                        "np.linalg.svd: no derivative of the vectors of a repeated singular value"
                    )
    result = np.dot(np.dot(u, p), vh)
    if m > k:
        rest = du - np.dot(u, x)
        if y0.shape[1] > k:
            more = np.ascontiguousarray(y0[:, k:])
            dmore = np.ascontiguousarray(dy0[:, k:])
            check_null_vectors(more, dmore, noise, more.shape[1] == 1 and y1[k - 1] > gap)
            rest = rest - np.dot(more, np.dot(np.conj(dmore.T), u))
        result = result + np.dot(divided_columns(rest, du, y1, noise, gap), vh)
    if n > k:
        rest = dv - np.dot(v, z)
        if y2.shape[0] > k:
            more = np.ascontiguousarray(np.conj(y2[k:, :].T))
            dmore = np.ascontiguousarray(np.conj(dy2[k:, :].T))
            check_null_vectors(more, dmore, noise, more.shape[1] == 1 and y1[k - 1] > gap)
            rest = rest - np.dot(more, np.dot(np.conj(dmore.T), v))
        result = result + np.dot(u, np.conj(divided_columns(rest, dv, y1, noise, gap).T))
    return result


@helper
def lower_part(x: Array) -> Array:
    """The adjoint of the lower triangle of a Hermitian matrix whose adjoint is x."""
    result = np.zeros(x.shape, x.dtype)
    for i in range(x.shape[0]):
        result[i, i] = np.real(x[i, i])
        for j in range(i):
            result[i, j] = x[i, j] + np.conj(x[j, i])
    return result


@helper
def check_hermitian(a: Array) -> None:
    """Refuse a matrix whose upper triangle, which is not read, is not that of a Hermitian matrix."""
    scale = largest(a)
    if largest(a - np.conj(a.T)) > np.sqrt(scale) * np.sqrt(np.spacing(scale)):
        raise np.linalg.LinAlgError("np.linalg.eigh, eigvalsh: no derivative, the matrix is not symmetric (Hermitian)")


@helper
def eigh_a(a: Array, y0: Array, y1: Array, dy0: Array, dy1: Array) -> Array:
    """The adjoint of a in (w, v) = eigh(a).

    That of p = v^H da v is x[i, j] / (w[j] - w[i]) of x = v^H dv, its skew-Hermitian part, and dw in the diagonal.
    LAPACK chooses the phases of vectors such that their first component is real: with it a term is added to x, as in
    `eig_a`. A first component of about 0 does not tell the phase.
    """
    n = y0.shape[0]
    scale = largest(dy1)
    if not (matters(dy0) or matters(dy1)):
        return np.zeros(a.shape, a.dtype)
    if not np.isfinite(scale):
        return all_nan(a)
    check_hermitian(a)
    vh = np.conj(y1.T)
    if not matters(dy1):
        return lower_part(weighed(y1, dy0, vh))
    noise = rounding(scale, n)
    gap = rounding(largest(y0), n)
    x = np.dot(vh, dy1)
    least = np.sqrt(np.sqrt(np.spacing(largest(y1))))
    for j in range(n):
        first, turn = y1[0, j], 0.5 * (np.conj(x[j, j]) - x[j, j])
        if first == np.conj(first) and np.abs(first) > least:
            for i in range(n):
                x[i, j] += vh[i, 0] * (turn / first)
        elif np.abs(turn) > noise:
            raise np.linalg.LinAlgError("np.linalg.eigh: no derivative of what depends on the vectors' phase")
    p = np.zeros((n, n), y1.dtype)
    for i in range(n):
        p[i, i] = dy0[i]
        for j in range(n):
            if i != j and np.abs(y0[j] - y0[i]) > gap:
                p[i, j] = 0.5 * ((x[i, j] - np.conj(x[j, i])) / (y0[j] - y0[i]))
            elif i != j and np.maximum(np.abs(x[i, i]), np.abs(x[i, j])) > noise:
                raise np.linalg.LinAlgError("np.linalg.eigh: no derivative of the vectors of a repeated eigenvalue")
    return lower_part(np.dot(np.dot(y1, p), vh))


@helper
def eigvalsh_a(a: Array, dy: Array) -> Array:
    """The adjoint of a in eigvalsh(a): v diag(dy) v^H."""
    if not matters(dy):
        return np.zeros(a.shape, a.dtype)
    check_hermitian(a)
    _, v = np.linalg.eigh(a)
    return lower_part(weighed(v, dy, np.conj(v.T)))


@helper
def largest_real(x: Array) -> int:
    """The place of the number of the greatest absolute value among those of an array that are real."""
    found, most = 0, -1.0
    for i in range(x.shape[0]):
        if x[i] == np.conj(x[i]) and np.abs(x[i]) > most:
            found, most = i, np.abs(x[i])
    return found


flat(largest_real)


@helper
def eig_a(a: Array, y0: Array, y1: Array, dy0: Array, dy1: Array) -> Array:
    """The adjoint of a in (w, v) = eig(a), with distinct eigenvalues: v^-H p v^H.

    p is dw in the diagonal, elsewhere (g - n re(diag(g)))[i, j] / conj(w[j] - w[i]) of g = v^H dv and n = v^H v, as the
    columns of v have length 1. LAPACK chooses their phases such that the largest component, v[m, j], is real: with it,
    - i im(g[j, j]) conj(v[m, i]) / v[m, j] is added to g[i, j].

    Eigenvalues are taken for distinct if they are further apart than rounding errors of a move them: value i by the
    length of row i of v^-1.
    """
    n = y0.shape[0]
    scale = largest(dy1)
    if not (matters(dy0) or matters(dy1)):
        return np.zeros(a.shape, a.dtype)
    if not np.isfinite(scale):
        return all_nan(a)
    error = rounding(largest(a), n)
    for i in range(n):
        for j in range(i):
            if np.abs(y0[i] - y0[j]) <= error:
                raise np.linalg.LinAlgError("np.linalg.eig, eigvals: no derivative, the eigenvalues are not distinct")
    vh = np.ascontiguousarray(np.conj(y1.T))
    inverse = np.ascontiguousarray(np.linalg.inv(y1))
    for i in range(n):
        for j in range(i):
            if np.abs(y0[i] - y0[j]) <= error * max(largest(inverse[i]), largest(inverse[j])):
                raise np.linalg.LinAlgError("np.linalg.eig, eigvals: no derivative, the eigenvalues are not distinct")
    p = np.zeros((n, n), y1.dtype)
    if matters(dy1):
        g = np.dot(vh, dy1)
        lengths = np.dot(vh, y1)
        for j in range(n):
            m = largest_real(y1[:, j])
            turn = 0.5 * (np.conj(g[j, j]) - g[j, j]) / y1[m, j]
            for i in range(n):
                if i != j:
                    inner = g[i, j] - lengths[i, j] * np.real(g[j, j]) + vh[i, m] * turn
                    p[i, j] = inner / np.conj(y0[j] - y0[i])
    for i in range(n):
        p[i, i] = dy0[i]
    return np.dot(np.conj(inverse.T), np.dot(p, vh))


@helper
def eigvals_a(a: Array, y: Array, dy: Array) -> Array:
    """The adjoint of a in eigvals(a), with distinct eigenvalues: those of eig, in whatever order they come."""
    if not matters(dy):
        return np.zeros(a.shape, a.dtype)
    w, v = np.linalg.eig(a)
    dw = np.zeros(dy.shape, dy.dtype)
    for i in range(w.shape[0]):
        nearest = 0
        for j in range(w.shape[0]):
            if np.abs(y[j] - w[i]) < np.abs(y[nearest] - w[i]):
                nearest = j
        dw[i] = dy[nearest]
    return eig_a(a, w, v, dw, np.zeros(v.shape, v.dtype))


@helper
def norm_x(x: Array, y: float, dy: float) -> Array:
    """The adjoint of x in the root of the sum of squares: x / y * dy; at 0 the subgradient 0."""
    result = np.zeros(x.shape, x.dtype)
    if y != 0:
        result[:] = x / y * dy
    return result


@helper
def norm_tangent(x: Array, y: Number, tx: Array) -> Number:
    """The tangent of y, the root of the sum of squares: the sum of re(conj(x) tx) / y; at 0 the subgradient 0."""
    if y != 0:
        return np.sum(np.real(np.conj(x / y) * tx))
    return y


@helper
def norm_spectral_x(x: Array, ord: int, dy: float) -> Array:
    """The adjoint of x in its greatest (ord = 2) or smallest (ord = -2) singular value; at 0 the subgradient 0."""
    result = np.zeros(x.shape, x.dtype)
    if x.size == 0 or not number_matters(dy):
        return result
    u, s, vh = np.linalg.svd(x, False)
    k = 0 if ord > 0 else s.shape[0] - 1
    if s[k] != 0:
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                result[i, j] = u[i, k] * vh[k, j] * dy
    return result


@helper
def cond_x(x: Array, y: float, dy: float) -> Array:
    """The adjoint of x in the quotient y of its greatest and its smallest singular value."""
    result = np.zeros(x.shape, x.dtype)
    if not number_matters(dy):
        return result
    u, s, vh = np.linalg.svd(x, False)
    last = s.shape[0] - 1
    if s[last] == 0:
        raise np.linalg.LinAlgError("np.linalg.cond: a singular matrix has no derivative")
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            change = u[i, 0] * vh[0, j] - y * (u[i, last] * vh[last, j])
            result[i, j] = change * (dy / s[last])
    return result


@helper
def cond_inverse_x(x: Array, y: float, dy: float) -> Array:
    """The adjoint of x in the quotient y of its smallest and its greatest singular value; 0 where the smallest is 0."""
    result = np.zeros(x.shape, x.dtype)
    if y == 0 or not number_matters(dy):
        return result
    u, s, vh = np.linalg.svd(x, False)
    last = s.shape[0] - 1
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            change = u[i, last] * vh[last, j] - y * (u[i, 0] * vh[0, j])
            result[i, j] = change * (dy / s[0])
    return result


_HERMITIAN = "Hermitian, refused otherwise; only the lower triangle is read, the gradient of the upper one is 0"
_VALUES = "; a repeated eigenvalue alone has a kink"
_DISTINCT = "real eigenvalues for a real matrix, else np.linalg.{} raises; distinct, refused otherwise"
_PHASE = "; refused if the result depends on the phase of complex vectors"
_FIRST = _PHASE + " whose first component is about 0"
_NORM = tangents(opaque("everywhere; at 0 the gradient is 0", x=norm_x, ord=None), norm_tangent)
_NORM_SPECTRAL = opaque(
    "a repeated greatest or smallest singular value is a kink; at 0 the gradient is 0", x=norm_spectral_x, ord=None
)
_COND = opaque("a singular matrix is refused", x=cond_x, p=None)
_COND_INVERSE = opaque("", x=cond_inverse_x, p=None)

opaque_rule(
    np.linalg.svd,
    condition="singular values: everywhere, a repeated one alone has a kink; vectors: those of a repeated value, of "
    "the value 0 of a matrix that is not square, and several additional ones of full_matrices are refused if the "
    "result depends on them" + _PHASE,
    a=svd_a,
    full_matrices=None,
)
opaque_rule(
    np.linalg.eigh,
    condition=_HERMITIAN + "; vectors of a repeated eigenvalue are refused if the result depends on them"
    + _VALUES + _FIRST,
    a=eigh_a,
)  # fmt: skip
opaque_rule(np.linalg.eigvalsh, condition=_HERMITIAN + _VALUES, a=eigvalsh_a)
opaque_rule(np.linalg.eig, condition=_DISTINCT.format("eig"), a=eig_a)
opaque_rule(np.linalg.eigvals, condition=_DISTINCT.format("eigvals"), a=eigvals_a)


@opaque_choice(np.linalg.norm, sample=_NORM)
def norm(instr: Instr) -> OpaqueRule | None:
    """Return the rule of the norms not computed by loops: the root of the sum of squares, and singular values."""
    kind = instr.args[0].type
    if not isinstance(kind, types.Array):
        return None
    order = constant_value(instr.args[1]) if len(instr.args) > 1 else None
    if len(instr.args) == 1 or isinstance(instr.args[1].type, types.NoneType) or (kind.ndim == 1 and order == 2):
        return _NORM
    return _NORM_SPECTRAL if kind.ndim == 2 and order in (2, -2) else None


@opaque_choice(np.linalg.cond, sample=_COND)
def cond(instr: Instr) -> OpaqueRule | None:
    """Return the rule of quotients of singular values."""
    if len(instr.args) == 1 or isinstance(instr.args[1].type, types.NoneType):
        return _COND
    match constant_value(instr.args[1]):
        case 2:
            return _COND
        case -2:
            return _COND_INVERSE
    return None
