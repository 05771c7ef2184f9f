"""Operations of linear algebra, at arguments where they have a derivative, for the tests of their rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

REAL = (np.float64, np.float32)
COMPLEX = (np.complex128, np.complex64)


@dataclass(frozen=True)
class Case:
    """A call `op(*arguments(rng, dtype))`; `align` makes continuous what LAPACK chooses arbitrarily."""

    name: str
    op: Callable
    arguments: Callable
    dtypes: tuple = REAL + COMPLEX
    align: Callable = lambda found, base: found
    seeds: Callable = lambda seeds, results: seeds  # makes the adjoints of the results ones that have a gradient
    keywords: Mapping = field(default_factory=dict)  # what NumPy is to be called with besides


def draw(rng, dtype, *shape):
    values = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def drawn(*shapes):
    return lambda rng, dtype: tuple(draw(rng, dtype, *shape) for shape in shapes)


def drawn_with(last, *shapes):
    """Arrays and one more argument."""
    return lambda rng, dtype: (*drawn(*shapes)(rng, dtype), last)


def regular(n, *others):
    """A well-conditioned matrix, not symmetric, then whatever else: shapes to draw, or numbers."""

    def arguments(rng, dtype):
        a = draw(rng, dtype, n, n) + 3 * np.eye(n, dtype=dtype)
        return a, *(draw(rng, dtype, *other) if isinstance(other, tuple) else other for other in others)

    return arguments


def of_rank(n, rank):
    """A square matrix of less than full rank, by its exact zeros in rows of the same as others."""

    def arguments(rng, dtype):
        a = np.round(4 * draw(rng, dtype, n, n)).astype(dtype)
        for k in range(rank, n):
            a[k] = a[0] - a[1]
        return (a,)

    return arguments


def hermitian(n, definite=False, junk=False):
    def arguments(rng, dtype):
        a = draw(rng, dtype, n, n)
        a = a @ np.conj(a.T) + np.eye(n, dtype=dtype) if definite else a + np.conj(a.T)
        if junk:
            a += np.triu(draw(rng, dtype, n, n), 1)
        return (a.astype(dtype),)

    return arguments


def real_spectrum(n):
    """A matrix with distinct real eigenvalues and skew eigenvectors."""

    def arguments(rng, dtype):
        v = draw(rng, dtype, n, n) + 2 * np.eye(n, dtype=dtype)
        return (((v * np.arange(1, n + 1)) @ np.linalg.inv(v)).astype(dtype),)

    return arguments


def turned(columns, base):
    """Columns multiplied by phases such that their products with those of `base` are positive."""
    products = np.sum(np.conj(columns) * base, axis=0)
    return columns * (products / np.abs(products))


def align_vectors(found, base):
    order = [int(np.argmin(np.abs(found[0] - w))) for w in base[0]]
    return found[0][order], turned(found[1][:, order], base[1])


def align_values(found, base):
    return (found[0][[int(np.argmin(np.abs(found[0] - w))) for w in base[0]]],)


def align_svd(found, base):
    u, s, vh = found
    k = len(s)
    products = np.sum(np.conj(u[:, :k]) * base[0][:, :k], axis=0)
    phases = products / np.abs(products)
    u, vh = u.copy(), vh.copy()
    u[:, :k] *= phases
    vh[:k] *= np.conj(phases)[:, None]
    u[:, k:] = spanned(u[:, k:], base[0][:, k:])
    vh[k:] = np.conj(spanned(np.conj(vh[k:].T), np.conj(base[2][k:].T)).T)
    return u, s, vh


def spanned(columns, base):
    """The orthonormal basis of the same space nearest to `base`."""
    if not columns.shape[1]:
        return columns
    u, _, vh = np.linalg.svd(np.conj(columns.T) @ base)
    return columns @ (u @ vh)


def without_phase(vectors, adjoint):
    """The adjoint without what turns the phases of vectors."""
    turn = np.sum(np.conj(vectors) * adjoint, axis=0)
    return (adjoint - vectors * (1j * turn.imag) if np.iscomplexobj(vectors) else adjoint).astype(vectors.dtype)


def outside(vectors, adjoint):
    """The adjoint of a basis without what is in the space of that itself; of one vector, without its phase."""
    if vectors.shape[1] == 1:
        return without_phase(vectors, adjoint)
    return adjoint - vectors @ (np.conj(vectors.T) @ adjoint)


def seeds_of_vectors(seeds, results):
    return seeds[0], without_phase(results[1], seeds[1])


def seeds_of_svd(seeds, results):
    (u, s, vh), (du, ds, dvh) = results, seeds
    k = len(s)
    v, dv = np.conj(vh.T), np.conj(dvh.T)
    # The turns of u and v that belong together may add up to zero: give v the opposite of u's.
    phase = np.sum(np.conj(u[:, :k]) * du[:, :k], axis=0) + np.sum(np.conj(v[:, :k]) * dv[:, :k], axis=0)
    dv = dv.copy()
    du = du.copy()
    if np.iscomplexobj(u):
        dv[:, :k] -= 1j * phase.imag * v[:, :k]
    du[:, k:] = outside(u[:, k:], du[:, k:])
    dv[:, k:] = outside(v[:, k:], dv[:, k:])
    return du, ds, np.conj(dv.T)


def seeds_of_lstsq(seeds, results):
    return seeds[0], seeds[1], None, seeds[3]


def product_cases(op):
    name = op.__name__
    shapes = [((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((3, 4), (4, 2))]
    shapes += [((0,), (0,)), ((0,), (0, 3)), ((2, 0), (0,)), ((0, 4), (4,)), ((0, 4), (4, 2)), ((3, 0), (0, 2))]
    shapes += [((3, 4), (4, 0)), ((4,), (4, 0)), ((1, 4), (4, 1)), ((3, 1), (1, 2)), ((1, 1), (1, 1)), ((1,), (1,))]
    return [Case(f"{name}-{a}-{b}".replace(" ", ""), op, drawn(a, b)) for a, b in shapes]


CASES = [
    *product_cases(np.dot),
    *product_cases(operator.matmul)[:4],
    Case("vdot", np.vdot, drawn((4,), (4,))),
    Case("vdot-0", np.vdot, drawn((0,), (0,))),
    Case("inv", np.linalg.inv, regular(4)),
    Case("inv-1", np.linalg.inv, regular(1)),
    Case("inv-0", np.linalg.inv, regular(0)),
    Case("solve", np.linalg.solve, regular(4, (4, 3))),
    Case("solve-vector", np.linalg.solve, regular(4, (4,))),
    Case("solve-0", np.linalg.solve, regular(0, (0, 3))),
    Case("solve-none", np.linalg.solve, regular(3, (3, 0))),
    Case("solve-vector-0", np.linalg.solve, regular(0, (0,))),
    Case("det", np.linalg.det, regular(4)),
    Case("det-1", np.linalg.det, regular(1)),
    Case("det-0", np.linalg.det, regular(0)),
    Case("det-singular", np.linalg.det, of_rank(4, 3)),
    Case("det-rank-2", np.linalg.det, of_rank(4, 2)),
    Case("slogdet", np.linalg.slogdet, regular(4)),
    Case("slogdet-0", np.linalg.slogdet, regular(0)),
    *(Case(f"matrix_power{n}", np.linalg.matrix_power, regular(3, n)) for n in (0, 1, 2, 3, 4, 7, 8, -1, -2, -5)),
    Case("matrix_power-0", np.linalg.matrix_power, regular(0, 3)),
    Case("cholesky", np.linalg.cholesky, hermitian(4, definite=True)),
    Case("cholesky-1", np.linalg.cholesky, hermitian(1, definite=True)),
    Case("cholesky-lower", np.linalg.cholesky, hermitian(4, definite=True, junk=True)),
    Case("cholesky-0", np.linalg.cholesky, regular(0)),
    Case("qr", np.linalg.qr, regular(4)),
    Case("qr-1", np.linalg.qr, regular(1)),
    Case("qr-tall", np.linalg.qr, drawn((6, 3))),
    Case("qr-wide", np.linalg.qr, drawn((3, 6))),
    Case("qr-column", np.linalg.qr, drawn((4, 1))),
    Case("qr-row", np.linalg.qr, drawn((1, 4))),
    Case("pinv", np.linalg.pinv, regular(4)),
    Case("pinv-tall", np.linalg.pinv, drawn((6, 3))),
    Case("pinv-wide", np.linalg.pinv, drawn((3, 6))),
    Case("pinv-0", np.linalg.pinv, drawn((0, 3))),
    *(
        Case(f"lstsq{m}x{n}-{b}", np.linalg.lstsq, drawn((m, n), b), seeds=seeds_of_lstsq, keywords={"rcond": -1.0})
        for m, n, b in ((6, 3, (6,)), (6, 3, (6, 2)), (3, 6, (3,)), (3, 6, (3, 2)), (4, 4, (4,)), (4, 4, (4, 2)))
    ),
    *(
        Case(f"svd{m}x{n}-{full}", np.linalg.svd, drawn_with(full, (m, n)), align=align_svd, seeds=seeds_of_svd)
        for m, n, full in (
            (4, 4, True),
            (6, 3, False),
            (3, 6, False),
            (6, 3, True),
            (3, 6, True),
            (4, 1, True),
            (4, 3, True),
            (3, 4, True),
        )
    ),
    Case("eigh", np.linalg.eigh, hermitian(4), align=align_vectors, seeds=seeds_of_vectors),
    Case("eigh-1", np.linalg.eigh, hermitian(1), align=align_vectors, seeds=seeds_of_vectors),
    Case("eigh-0", np.linalg.eigh, regular(0)),
    Case("eigvalsh", np.linalg.eigvalsh, hermitian(4)),
    Case("eigvalsh-0", np.linalg.eigvalsh, regular(0)),
    Case("eig", np.linalg.eig, real_spectrum(4), align=align_vectors, seeds=seeds_of_vectors),
    Case("eig-1", np.linalg.eig, regular(1), align=align_vectors, seeds=seeds_of_vectors),
    Case("eigvals", np.linalg.eigvals, real_spectrum(4), align=align_values),
    Case("eigvals-0", np.linalg.eigvals, regular(0)),
    Case("norm", np.linalg.norm, drawn((5,))),
    Case("norm-0", np.linalg.norm, drawn((0,))),
    Case("norm-vector-2", np.linalg.norm, drawn_with(2, (5,))),
    Case("norm-matrix", np.linalg.norm, drawn((3, 5))),
    *(
        Case(f"norm-{m}x{n}-{p}", np.linalg.norm, drawn_with(p, (m, n)))
        for m, n, p in ((3, 5, 2), (5, 3, -2), (4, 4, 2), (4, 4, -2))
    ),
    *(Case(f"cond-{p}", np.linalg.cond, regular(4, p)) for p in (None, 2, -2)),
    Case("cond", np.linalg.cond, regular(3)),
]
