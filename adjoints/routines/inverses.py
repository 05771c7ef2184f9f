"""Inverses of routines: their signatures, and the routines that may have one.

    routine step (%x, %v, %w) -> (x, v)         the state, two numbers, and a further argument
    routine unstep (%x, %v, %w) -> (x, v)       step.inverse = Inverse("step", loc, unstep, state=2, taken=(2,))

`zygote_py.adjoints.strategies.reversible_loops` uses them.
"""

from __future__ import annotations

from collections.abc import Collection

from zygote_py.adjoints.errors import refuse
from zygote_py.ir import Instr, Loc, Routine, draws, routines_of
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Inverse:
    """The inverse of a routine that returns a state of as many values as it takes in its first parameters.

    `routine` takes the state after the step and the parameters numbered in `taken`, and returns the state before it.
    """

    name: str  # of the step
    loc: Loc | None
    routine: Routine
    state: int
    taken: tuple[int, ...]


def check_steps(routines: Collection[Routine]) -> None:
    """Refuse steps, and inverses, that have side effects. Raises DifferentiationError."""
    for routine in routines:
        inverse = routine.inverse
        if not isinstance(inverse, Inverse):
            continue
        undone_by = f"the inverse `{inverse.routine.__name__}` of `{inverse.name}`"
        for each, what in ((routine, f"`{inverse.name}` has an inverse, and"), (inverse.routine, undone_by)):
            loc = inverse.loc if each is inverse.routine else each.function.loc
            if each.writes:
                param = each.function.params[min(each.writes)]
                raise refuse(f"{what} writes to its argument `{param.hint}`", loc, "return a new array", "def")
            for function in (each.function, *(other.function for other in routines_of(each.function))):
                if any(map(draws, function.instrs())):
                    raise refuse(f"{what} draws random numbers", loc, "draw them beforehand, and pass them", "def")


def inverse_of(instr: Instr) -> Inverse | None:
    """Return the inverse of the routine that an instruction calls, or None."""
    found = instr.op.inverse if isinstance(instr.op, Routine) else None
    return found if isinstance(found, Inverse) else None
