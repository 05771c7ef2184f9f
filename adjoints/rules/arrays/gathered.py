"""Products of vectors that a loop adds to a matrix: their factors are kept, and multiplied for many rounds at once.

    for t in range(n):                          a_rows, b_rows = np.empty((k, h)), np.empty((k, w))
        ...                                     for t in range(n):
        add_matvec_left(dw, h, da)      ->          ...
                                                    count = gather(dw, a_rows, b_rows, count, da, h)
                                                add_gathered(dw, a_rows, b_rows, count)

A product of a column and a row goes through the whole matrix for one multiplication of each element. That of two
matrices, BLAS's, does as much for all rows that have been gathered. There are up to 64 of them, which take no more
memory than a quarter of the matrix. Small matrices, which the processor has at hand anyway, and those of few rows or
columns get the products one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from zygote_py.adjoints.rules.arrays.accumulated import (
    add_guarded_matvec_left,
    add_guarded_vecmat_right,
    add_matvec_left,
    add_vecmat_right,
    are_finite,
)
from zygote_py.ir import (
    Block,
    Branch,
    Builder,
    Const,
    Function,
    Instr,
    Jump,
    Loop,
    LoopNest,
    Memory,
    Operand,
    Phi,
    Type,
    Value,
    add_large_product,
    bases,
    counted,
    definitions,
    has_memory,
    helper,
    is_left_out,
    is_made_after,
    loop_nest,
    ops,
    retarget,
    rounds_by_one,
    routines_of,
)

Array = Any
_array_of: Callable[[Type, int, Any], Type] = types.Array
_COUNT = types.int64


@helper
def gathered_rows(rows: int, columns: int, rounds: int) -> int:
    """Return how many vectors are kept for a matrix of so many rows and columns: none if that does not pay."""
    most = 0
    if rows * columns >= 2048:
        most = rows * columns // (4 * (rows + columns))  # together a quarter of the matrix
    count = min(rounds, most, 64)
    if count < 4:
        count = 0
    return count


def gather(total: Array, columns: Array, rows: Array, count: int, a: Array, b: Array) -> int:
    """Add the product of a column and a row to a matrix, now or later. Return how many are still to be added.

    Raises ValueError if the lengths do not fit.
    """
    if total.shape[0] != a.shape[0] or total.shape[1] != b.shape[0]:
        raise ValueError("matmul: the lengths of a matrix and a vector do not fit")
    if columns.shape[0] == 0:
        for i in range(a.shape[0]):
            factor = a[i]
            for j in range(b.shape[0]):
                total[i, j] += factor * b[j]
        return 0
    if count == columns.shape[0]:
        add_large_product(total, columns.T, rows)
        count = 0
    for i in range(a.shape[0]):
        columns[count, i] = a[i]
    for j in range(b.shape[0]):
        rows[count, j] = b[j]
    return count + 1


def gather_guarded_column(total: Array, columns: Array, rows: Array, count: int, a: Array, b: Array) -> int:
    """As `gather`, of a product that is 0 where the element of the row is, whatever the column."""
    if are_finite(a):
        return gather(total, columns, rows, count, a, b)
    add_guarded_vecmat_right(total, a, b)
    return count


def gather_guarded_row(total: Array, columns: Array, rows: Array, count: int, a: Array, b: Array) -> int:
    """As `gather`, of a product that is 0 where the element of the column is, whatever the row."""
    if are_finite(b):
        return gather(total, columns, rows, count, a, b)
    add_guarded_matvec_left(total, b, a)
    return count


def add_gathered(total: Array, columns: Array, rows: Array, count: int) -> None:
    """Add the products that are left."""
    if count > 0:
        add_large_product(total, columns[:count].T, rows[:count])


for _function in (gather, gather_guarded_column, gather_guarded_row, add_gathered):
    helper(_function, effect=ops.Effect.WRITE)

# By operation: which arguments multiply the elements of a column, and of a row; and the one that takes its place.
_FACTORS: dict[ops.Op, tuple[int, int, ops.Op]] = {
    add_matvec_left: (2, 1, gather),
    add_vecmat_right: (1, 2, gather),
    add_guarded_matvec_left: (2, 1, gather_guarded_row),
    add_guarded_vecmat_right: (1, 2, gather_guarded_column),
}


def gather_products(function: Function) -> Function:
    """Gather the products of vectors that the loops of a function and its routines add to matrices, in place."""
    for each in (*(routine.function for routine in routines_of(function)), function):
        if not each.options.get("parallel"):  # threads add them up in parts
            _gather_in(each)
    return function


def _gather_in(function: Function) -> None:
    if is_left_out("gathered-products") or not any(instr.op in _FACTORS for instr in function.instrs()):
        return
    nest, memory, home = loop_nest(function), Memory(function), definitions(function)
    found = [
        (instr, block, loop)
        for loop in nest.loops
        for block in loop.order
        if nest.innermost(block) is loop
        for instr in block.instrs
        if instr.op in _FACTORS and _is_fit(instr, block, loop, nest, memory, home)
    ]
    for instr, block, loop in found:
        _gather(function, instr, block, loop)


def _is_fit(instr: Instr, block: Block, loop: Loop, nest: LoopNest, memory: Memory, home: dict[Value, Block]) -> bool:
    """Return whether an addition runs in each round, and nothing else in the loop asks for its sum."""
    total, *factors = instr.args
    kind: Any = total.type
    if not isinstance(total, Value) or total in loop.values or not isinstance(kind.dtype, types.Float):
        return False
    if any(each.type.dtype != kind.dtype for each in factors):  # type: ignore[attr-defined]
        return False
    has_one_end = len(loop.latches) == len(loop.entering) == 1 and {start for start, _ in loop.exits} == {loop.header}
    if not has_one_end or not nest.tree.dominates(block, loop.latches[0]):
        return False

    def may_share(other: Operand) -> bool:
        return memory.may_share(total, other) and any(
            not isinstance(base, Value)
            or not (is_made_after(total, base, home, nest.tree) or is_made_after(base, total, home, nest.tree))
            for base in bases(other)
        )

    def read(each: Instr) -> tuple[Operand, ...]:
        return each.args[1:] if each.op in _FACTORS else each.args

    return not any(
        may_share(arg) for inside in loop.order for each in inside.instrs for arg in read(each) if has_memory(arg.type)
    )


def _gather(function: Function, instr: Instr, block: Block, loop: Loop) -> None:
    """Gather the products of one addition."""
    total = instr.args[0]
    at_column, at_row, gathering = _FACTORS[instr.op]
    column, row = instr.args[at_column], instr.args[at_row]
    kind: Any = total.type
    (entering,), (latch,) = loop.entering, loop.latches
    b = Builder(entering, instr.loc)
    rounds: Operand = Const(64, _COUNT)
    count = counted(loop, function)
    if count is not None and abs(count.step) == 1 and count.start.type == count.bound.type == _COUNT:
        rounds = rounds_by_one(b, count)
    lengths = [b.call(ops.dim, total, Const(axis, _COUNT), type=_COUNT, hint="n") for axis in range(2)]
    most = b.call(gathered_rows, *lengths, rounds, type=_COUNT, hint="n")
    several = _array_of(kind.dtype, 2, "C")
    columns, rows = (
        b.call(ops.record, most, length, type=several, hint=hint)
        for length, hint in zip(lengths, ("columns", "rows"), strict=True)
    )
    phi = Phi(_COUNT, "count", instr.loc)
    made = Instr(gathering, (total, columns, rows, phi, column, row), _COUNT, "count", instr.loc, origin=instr.origin)
    phi.incoming = {entering: Const(0, _COUNT), latch: made}
    loop.header.phis.append(phi)
    block.instrs[block.instrs.index(instr)] = made
    loop.forget_values()
    end = loop.header.terminator
    assert isinstance(end, Branch)
    after = end.orelse if end.then in loop else end.then
    last = Block(instr.loc)
    Builder(last, instr.loc).call(add_gathered, total, columns, rows, phi, type=types.none)
    retarget(loop.header, after, last)
    last.terminator = Jump(after)
    for each in after.phis:
        each.incoming[last] = each.incoming.pop(loop.header)
    loop.exits = [(loop.header, last)]
    function.blocks.insert(function.blocks.index(after), last)
