"""Products that are added to an array: written as one update of it, which makes no array of the product.

    t = matvec_left(x, dy)          ->      add_matvec_left(dw, x, dy)
    dw += t

The product of a column and a row costs less than the memory that it fills, and so does that of a vector and a number.
That of two matrices is BLAS's, which adds it to a matrix as well as it stores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zygote_py.adjoints.rules.arrays import guarded
from zygote_py.adjoints.rules.arrays.guarded import guarded_dot_left, guarded_dot_right, unless_zero
from zygote_py.adjoints.rules.arrays.products import (
    dot_left,
    dot_left_complex,
    dot_left_strided,
    dot_right,
    dot_right_complex,
    dot_right_strided,
    inner_left,
    inner_left_complex,
    inner_right,
    inner_right_complex,
    matvec_left,
    vecmat_right,
)
from zygote_py.ir import Function, Instr, Memory, add_product, helper, is_left_out, ops, uses

Array = Any


def add_matvec_left(total: Array, b: Array, dy: Array) -> None:
    """Add the adjoint of the matrix a in a @ b, of a vector b. Raises ValueError if their lengths do not fit."""
    if total.shape[0] != dy.shape[0] or total.shape[1] != b.shape[0]:
        raise ValueError("matmul: the lengths of a matrix and a vector do not fit")
    for i in range(dy.shape[0]):
        factor = dy[i]
        for j in range(b.shape[0]):
            total[i, j] += factor * np.conj(b[j])


def add_vecmat_right(total: Array, a: Array, dy: Array) -> None:
    """Add the adjoint of the matrix b in a @ b, of a vector a. Raises ValueError if their lengths do not fit."""
    if total.shape[0] != a.shape[0] or total.shape[1] != dy.shape[0]:
        raise ValueError("matmul: the lengths of a vector and a matrix do not fit")
    for i in range(a.shape[0]):
        factor = np.conj(a[i])
        for j in range(dy.shape[0]):
            total[i, j] += factor * dy[j]


def add_guarded_matvec_left(total: Array, b: Array, dy: Array) -> None:
    """As `add_matvec_left`; nothing where the adjoint of the product is 0. Raises ValueError if they do not fit."""
    if total.shape[0] != dy.shape[0] or total.shape[1] != b.shape[0]:
        raise ValueError("matmul: the lengths of a matrix and a vector do not fit")
    for i in range(dy.shape[0]):
        factor = dy[i]
        if factor != 0:
            for j in range(b.shape[0]):
                total[i, j] += factor * np.conj(b[j])


def add_guarded_vecmat_right(total: Array, a: Array, dy: Array) -> None:
    """As `add_vecmat_right`; nothing where the adjoint of the product is 0. Raises ValueError if they do not fit."""
    if total.shape[0] != a.shape[0] or total.shape[1] != dy.shape[0]:
        raise ValueError("matmul: the lengths of a vector and a matrix do not fit")
    for i in range(a.shape[0]):
        factor = np.conj(a[i])
        for j in range(dy.shape[0]):
            total[i, j] += unless_zero(factor * dy[j], dy[j])


def add_multiple(total: Array, x: Array, dy: Any) -> None:
    """Add the adjoint of a vector in its inner product with x. Raises ValueError if their lengths do not fit."""
    if total.shape[0] != x.shape[0]:
        raise ValueError("dot: the lengths of two vectors do not fit")
    for i in range(x.shape[0]):
        total[i] += x[i] * dy


def add_multiple_complex(total: Array, x: Array, dy: Any) -> None:
    """As `add_multiple`, of complex numbers. Raises ValueError if the lengths do not fit."""
    if total.shape[0] != x.shape[0]:
        raise ValueError("dot: the lengths of two vectors do not fit")
    for i in range(x.shape[0]):
        total[i] += np.conj(x[i]) * dy


def add_guarded_multiple(total: Array, x: Array, dy: Any) -> None:
    """As `add_multiple`; nothing where the adjoint of the product is 0. Raises ValueError if the lengths do not fit."""
    if dy != 0:
        add_multiple(total, x, dy)


def add_guarded_multiple_complex(total: Array, x: Array, dy: Any) -> None:
    """As `add_guarded_multiple`, of complex numbers. Raises ValueError if the lengths do not fit."""
    if dy != 0:
        add_multiple_complex(total, x, dy)


def add_dot_left(total: Array, b: Array, dy: Array) -> None:
    """Add the adjoint of a in a @ b, of two matrices: real, contiguous. Raises ValueError if they do not fit."""
    add_product(total, dy, b.T)


def add_dot_left_strided(total: Array, b: Array, dy: Array) -> None:
    """As `add_dot_left`, for a matrix that is not contiguous. Raises ValueError if they do not fit."""
    add_product(total, dy, np.ascontiguousarray(b).T)


def add_dot_left_complex(total: Array, b: Array, dy: Array) -> None:
    """As `add_dot_left`, for complex matrices. Raises ValueError if they do not fit."""
    add_product(total, dy, np.conj(b).T)


def add_dot_right(total: Array, a: Array, dy: Array) -> None:
    """Add the adjoint of b in a @ b, of two matrices: real, contiguous. Raises ValueError if they do not fit."""
    add_product(total, a.T, dy)


def add_dot_right_strided(total: Array, a: Array, dy: Array) -> None:
    """As `add_dot_right`, for a matrix that is not contiguous. Raises ValueError if they do not fit."""
    add_product(total, np.ascontiguousarray(a).T, dy)


def add_dot_right_complex(total: Array, a: Array, dy: Array) -> None:
    """As `add_dot_right`, for complex matrices. Raises ValueError if they do not fit."""
    add_product(total, np.conj(a).T, dy)


@helper
def are_finite(x: Array) -> bool:
    """Return whether all elements of an array are numbers, and none is infinite."""
    count = 0
    for each in x.flat:
        count += np.isfinite(each)
    return bool(count == x.size)


def add_guarded_dot_left(total: Array, b: Array, dy: Array) -> None:
    """As `add_dot_left`; nothing where the adjoint of the product is 0. Raises ValueError if they do not fit."""
    if are_finite(b):
        add_product(total, dy, b.T)
    else:
        total += guarded_dot_left(b, dy)


def add_guarded_dot_left_strided(total: Array, b: Array, dy: Array) -> None:
    """As `add_guarded_dot_left`, for a matrix that is not contiguous. Raises ValueError if they do not fit."""
    add_guarded_dot_left(total, np.ascontiguousarray(b), dy)


def add_guarded_dot_left_complex(total: Array, b: Array, dy: Array) -> None:
    """As `add_guarded_dot_left`, for complex matrices. Raises ValueError if they do not fit."""
    add_guarded_dot_left(total, np.conj(b), dy)


def add_guarded_dot_right(total: Array, a: Array, dy: Array) -> None:
    """As `add_dot_right`; nothing where the adjoint of the product is 0. Raises ValueError if they do not fit."""
    if are_finite(a):
        add_product(total, a.T, dy)
    else:
        total += guarded_dot_right(a, dy)


def add_guarded_dot_right_strided(total: Array, a: Array, dy: Array) -> None:
    """As `add_guarded_dot_right`, for a matrix that is not contiguous. Raises ValueError if they do not fit."""
    add_guarded_dot_right(total, np.ascontiguousarray(a), dy)


def add_guarded_dot_right_complex(total: Array, a: Array, dy: Array) -> None:
    """As `add_guarded_dot_right`, for complex matrices. Raises ValueError if they do not fit."""
    add_guarded_dot_right(total, np.conj(a), dy)


for _function in (
    add_multiple,
    add_multiple_complex,
    add_guarded_multiple,
    add_guarded_multiple_complex,
    add_guarded_dot_left,
    add_guarded_dot_right,
):
    helper(_function, effect=ops.Effect.WRITE)

ACCUMULATED: Mapping[ops.Op, ops.Op] = {
    **dict.fromkeys((inner_left, inner_right), add_multiple),
    **dict.fromkeys((inner_left_complex, inner_right_complex), add_multiple_complex),
    **dict.fromkeys((guarded.guarded_inner_left, guarded.guarded_inner_right), add_guarded_multiple),
    **dict.fromkeys(
        (guarded.guarded_inner_left_complex, guarded.guarded_inner_right_complex), add_guarded_multiple_complex
    ),
    matvec_left: helper(add_matvec_left, effect=ops.Effect.WRITE),
    vecmat_right: helper(add_vecmat_right, effect=ops.Effect.WRITE),
    guarded.guarded_matvec_left: helper(add_guarded_matvec_left, effect=ops.Effect.WRITE),
    guarded.guarded_vecmat_right: helper(add_guarded_vecmat_right, effect=ops.Effect.WRITE),
    dot_left: helper(add_dot_left, effect=ops.Effect.WRITE),
    dot_left_strided: helper(add_dot_left_strided, effect=ops.Effect.WRITE),
    dot_left_complex: helper(add_dot_left_complex, effect=ops.Effect.WRITE),
    dot_right: helper(add_dot_right, effect=ops.Effect.WRITE),
    dot_right_strided: helper(add_dot_right_strided, effect=ops.Effect.WRITE),
    dot_right_complex: helper(add_dot_right_complex, effect=ops.Effect.WRITE),
    guarded_dot_left: add_guarded_dot_left,
    guarded.guarded_dot_left_strided: helper(add_guarded_dot_left_strided, effect=ops.Effect.WRITE),
    guarded.guarded_dot_left_complex: helper(add_guarded_dot_left_complex, effect=ops.Effect.WRITE),
    guarded_dot_right: add_guarded_dot_right,
    guarded.guarded_dot_right_strided: helper(add_guarded_dot_right_strided, effect=ops.Effect.WRITE),
    guarded.guarded_dot_right_complex: helper(add_guarded_dot_right_complex, effect=ops.Effect.WRITE),
}


for _function in set(ACCUMULATED.values()):
    ops.operation(_function, adds=True)


def accumulate_products(function: Function) -> None:
    """Replace products that are only added to an array, in place. Afterwards they cannot be differentiated."""
    if is_left_out("accumulated-products") or not any(instr.op in ACCUMULATED for instr in function.instrs()):
        return
    memory, used = Memory(function), uses(function)
    for block in function.blocks:
        found: list[tuple[Instr, Instr]] = []
        with memory.order_of(block) as order:
            for instr in block.instrs:
                match instr:
                    case Instr(op=ops.accumulate, args=(total, Instr() as product)) if (
                        product.op in ACCUMULATED
                        and product in order
                        and len(used[product]) == 1
                        and not any(memory.may_share(total, factor) for factor in product.args)
                        and not any(order.writes_between(product, instr, factor) for factor in product.args)
                    ):
                        found.append((instr, product))
        for instr, product in found:
            block.instrs.remove(product)
            instr.op, instr.args = ACCUMULATED[product.op], (instr.args[0], *product.args)
