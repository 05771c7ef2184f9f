"""The tangents of operations on whole arrays, from the rules of their adjoints.

The helper that computes an adjoint, `da = inv_a(y, dy)`, is linear in `dy`: it applies the conjugate transpose of the
derivative. Its own adjoint with respect to `dy`, at the tangent of `a`, applies the transpose of that: the derivative.

    %y = np.linalg.inv %a : f64[:, :]           %y = np.linalg.inv %a : f64[:, :]
                                                the reverse of inv_a in dy, with %ta for the adjoint of its result

So the rules are written once. What `dy` itself is does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from zygote_py.adjoints.calls import Case
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.rules.opaque import OpaqueRule
from zygote_py.ir import ops
from zygote_py.ir.core import Instr, Operand, Routine, Type

Make = Callable[[ops.Op, tuple[Operand, ...], Type], Instr]
Lower = Callable[[ops.Op, tuple[Type, ...]], Routine]


class Transposed:
    """The tangents of operations with opaque rules."""

    def __init__(self, lower: Lower, derivatives: Callable[[Routine, Case], object]) -> None:
        """`lower` makes a routine of a helper for the types of its arguments."""
        self._lower = lower
        self._derivatives = derivatives

    def tangent(
        self,
        make: Make,
        instr: Instr,
        rule: OpaqueRule,
        place: int,
        wanted: Sequence[int],
        tangents: Mapping[int, Operand],
        item: Instr,
    ) -> Operand:
        """How the result changes (`item`, the one at `place`, of several) when the arguments change by `tangents`."""
        raise refuse(
            f"forward mode through {ops.name_of(instr.op)} is not supported yet", instr.loc, "use reverse mode"
        )
