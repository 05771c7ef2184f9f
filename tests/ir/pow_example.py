"""The paper's `pow`, primal and adjoint, constructed manually.

def pow(x, n):         # pow.py:1
    r = 1.0
    while n > 0:
        n -= 1
        r *= x         # pow.py:5
    return r
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.ir import (
    Alpha,
    Block,
    Branch,
    CameFrom,
    Const,
    Function,
    Instr,
    Jump,
    Loc,
    Param,
    Phi,
    Return,
    Value,
    ops,
)

f64, i64, boolean = types.float64, types.int64, types.boolean


def pow_primal() -> tuple[Function, frozenset[Value]]:
    """The primal and its active values."""

    def at(line: int) -> Loc:
        return Loc("/home/someone/pow.py", line)

    x, n = Param(f64, "x", at(1)), Param(i64, "n", at(1))
    b0, b1, b2, b3 = (Block() for _ in range(4))
    r0 = Instr(ops.const, (Const(1.0, f64),), f64, "r", at(2))
    r1, n1 = Phi(f64, "r"), Phi(i64, "n")
    c = Instr(operator.gt, (n1, Const(0, i64)), boolean, "c", at(3))
    n2 = Instr(operator.sub, (n1, Const(1, i64)), i64, "n", at(4))
    r2 = Instr(operator.mul, (r1, x), f64, "r", at(5))
    r1.incoming = {b0: r0, b2: r2}
    n1.incoming = {b0: n, b2: n2}
    b0.instrs, b0.terminator = [r0], Jump(b1)
    b1.phis, b1.instrs, b1.terminator = [r1, n1], [c], Branch(c, b2, b3)
    b2.instrs, b2.terminator = [n2, r2], Jump(b1)
    b3.terminator = Return((r1,))
    return Function("pow", [x, n], [b0, b1, b2, b3], "primal", loc=at(1)), frozenset({x, r1, r2})


def pow_adjoint(primal: Function) -> Function:
    """The adjoint of what `pow_primal` gives."""
    x, _ = primal.params
    _, b1, b2, _ = primal.blocks
    (r1, _), (_, r2) = b1.phis, b2.instrs
    dy = Param(f64, "dy")
    d0, d1, d2, d3 = (Block(mirror=block) for block in primal.blocks)
    dr1, dx1 = Phi(f64, "dr"), Phi(f64, "dx")
    came_from = CameFrom(b1, b2)
    dr2 = Instr(operator.mul, (dr1, Alpha(x)), f64, "dr", origin=r2)
    t = Instr(operator.mul, (dr1, Alpha(r1)), f64, origin=r2)
    dx2 = Instr(operator.add, (dx1, t), f64, "dx", origin=r2)
    dr1.incoming = {d3: dy, d2: dr2}
    dx1.incoming = {d3: Const(0.0, f64), d2: dx2}
    d3.terminator = Jump(d1)
    d1.phis, d1.instrs, d1.terminator = [dr1, dx1], [came_from], Branch(came_from, d2, d0)
    d2.instrs, d2.terminator = [dr2, t, dx2], Jump(d1)
    d0.terminator = Return((dx1, Const(None, types.none)))
    return Function("pow", [dy], [d3, d1, d2, d0], "adjoint", primal)
