"""The derivative of a loop that keeps a number of snapshots: parts of it run again as often as that takes.

    def f_steps_back(x, i, count, ..., snapshots, last, dx):      # the adjoint of x at `count`, from that at `last`
        while last - count > 1:
            left = iterations_before(last - count, snapshots)
            state = f_steps(x, i, count, ...)                     # on to the middle
            dx = f_steps_back(*state, snapshots - 1, last, dx)    # from the end to the middle
            last = count + left
        ...                                                       # one iteration: forward, and back at once

The state at the start of each call is a snapshot. Where to divide is the binomial schedule of Griewank and Walther,
"Algorithm 799: revolve", ACM TOMS 26 (2000): with `s` snapshots and at most `t` runs of each iteration, besides the
one that is reversed, a loop may have (s + t)! / (s! t!) iterations.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.activity import find_active
from zygote_py.adjoints.calls import Case, Derivative, Source, name_apart, results_of
from zygote_py.adjoints.checkpoints import (
    Reverse,
    check_repeatable,
    copies_of_written,
    make_forward,
    plain_case,
    replay,
)
from zygote_py.adjoints.kinds import can_have_adjoint
from zygote_py.adjoints.left_out import Summaries
from zygote_py.adjoints.long_loops import Snapshots
from zygote_py.adjoints.reversible import Reversible
from zygote_py.ir.builder import Builder
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Jump,
    Operand,
    Param,
    Phi,
    Routine,
    Type,
    zero,
)
from zygote_py.ir.helpers import helper
from zygote_py.ir.types import writable

INT = types.int64
_ZERO, _ONE = Const(0, INT), Const(1, INT)


@helper
def usable_snapshots(number: int) -> int:
    """No more than this many: each is a call inside the one of the snapshot before it."""
    return max(1, min(number, 500))


@helper
def iterations_before(count: int, snapshots: int) -> int:
    """Where to put the next snapshot: behind so many of the iterations, two or more, if there is one already."""
    if snapshots < 2:
        return count - 1
    runs, reach = 1, snapshots + 1  # the iterations that this many snapshots and runs are enough for
    while reach < count:
        runs += 1
        reach = reach * (snapshots + runs) // runs
    at_most = reach * runs // (snapshots + runs)  # as many before, with one run less
    at_least = at_most * (runs - 1) // (snapshots + runs - 1)
    behind = reach - at_most  # as many behind, with one snapshot less
    return min(max(count - behind, at_least, 1), count - 1)


def body_of(routine: Routine) -> Routine:
    """The routine that runs one iteration of a loop."""
    assert isinstance(routine.schedule, Snapshots | Reversible)
    return routine.schedule.body


def case_of_body(routine: Routine, case: Case) -> Case:
    """How one iteration is differentiated: what becomes active in one, is active in the next."""
    body = body_of(routine)
    function = body.function
    active = set(case.active)
    written = [function.params[number] for number in sorted(body.writes)]
    while True:
        activity = find_active(function, [function.params[number] for number in sorted(active)], results=written)
        _, end = function.exit()
        (result,) = end.args
        items = result.args if isinstance(result, Instr) and isinstance(result.type, types.BaseTuple) else (result,)
        found = {number for number, item in enumerate(items) if item in activity and can_have_adjoint(item.type)}
        if found <= active:
            # The next iteration may leave out what one gives.
            degree = max(case.left_out, *Summaries().of(body))
            return plain_case(Case(frozenset(active), case.unstable, False, degree))
        active |= found


def run_again_by_parts(derivative: Derivative, plain: Derivative) -> Routine:
    """Make the two functions of a derivative from that of one iteration; gives the routine that these call.

    Raises DifferentiationError.
    """
    check_repeatable(derivative.routine)
    schedule = derivative.routine.schedule
    assert isinstance(schedule, Snapshots)
    kept = make_forward(derivative)
    made = Reverse(derivative, kept)
    last = Param(INT, "last", derivative.routine.function.loc)
    derivative.sources += (Source("result", schedule.count),)
    back = Routine(f"{derivative.routine.__name__}_back")
    _Back(derivative, plain, schedule, back).build()
    shadows = {
        number: made.shadows.get(number)
        or made.b.call(np.zeros_like, made.args[number], type=_shadow_type(plain, number))
        for number in plain.shadowed
    }
    args = list(made.args)
    args[schedule.snapshots] = made.b.call(usable_snapshots, args[schedule.snapshots], type=INT)
    passed = [*args, *shadows.values(), *made.given.values(), last, *made.seeds.values()]
    found = _call_back(made.b, back, plain, passed)
    made.b.return_packed([found[number] for number in derivative.adjoints])
    made.finish([last])
    return back


class _Back:
    """Makes the function that takes adjoints from one iteration back to an earlier one."""

    def __init__(self, derivative: Derivative, plain: Derivative, schedule: Snapshots, back: Routine) -> None:
        self._derivative = derivative
        self._plain = plain
        self._schedule = schedule
        self._back = back
        self._loc = derivative.routine.function.loc
        self._results = results_of(derivative.routine.function)

    def build(self) -> None:
        """Make it."""
        routine, schedule, loc = self._derivative.routine, self._schedule, self._loc
        params = routine.function.params
        args = [Param(each.type, each.hint, each.loc) for each in params]
        shadows = {n: Param(_shadow_type(self._plain, n), f"d{params[n].hint}", loc) for n in self._plain.shadowed}
        given = {n: Param(writable(self._results[n]), "dy", loc) for n in self._derivative.shadowed_results}
        last = Param(INT, "last", loc)
        seeds = {n: Param(self._results[n], f"d{params[n].hint}", loc) for n in self._derivative.seeds}
        every = [*args, *shadows.values(), *given.values(), last, *seeds.values()]
        entry, header, split, rest, one, none = blocks = [Block(loc) for _ in range(6)]
        at_header, at_split, at_rest, at_one, at_none = (Builder(block, loc) for block in blocks[1:])

        def carried(value: Param) -> Phi:
            header.phis.append(phi := Phi(value.type, value.hint, loc))
            phi.incoming[entry] = value
            return phi

        entry.terminator = Jump(header)
        hi = carried(last)
        new_given = {number: carried(param) for number, param in given.items()}
        new_seeds = {number: carried(param) for number, param in seeds.items()}
        sums: dict[int, Phi] = {}
        for number in self._plain.adjoints:
            if number >= len(self._results):
                header.phis.append(phi := Phi(params[number].type, f"d{params[number].hint}", loc))
                phi.incoming[entry] = zero(phi.type)
                sums[number] = phi
        lo = args[schedule.count]
        count = at_header.call(operator.sub, hi, lo, type=INT, hint="n")
        header.terminator = Branch(at_header.call(operator.gt, count, _ONE, type=types.boolean), split, rest)
        self._split(at_split, args, shadows, hi, count, new_given, new_seeds, sums)
        split.terminator = Jump(header)
        rest.terminator = Branch(at_rest.call(operator.eq, count, _ONE, type=types.boolean), one, none)
        found = replay(at_one, self._plain, args, shadows, new_given, new_seeds)
        found |= {n: at_one.call(operator.add, phi, found[n], type=phi.type) for n, phi in sums.items()}
        at_one.return_packed([found[number] for number in self._plain.adjoints])
        # No iteration at all: the results are the arguments.
        for number, shadow in shadows.items():
            if number in new_given:
                at_none.accumulate(shadow, new_given[number])
        at_none.return_packed([(new_seeds | sums)[number] for number in self._plain.adjoints])
        name_apart(every)
        self._back.function = Function(
            self._back.__name__,
            every,
            blocks,
            "joint",
            None,
            loc,
            routine.function.options,
        )

    def _split(
        self,
        b: Builder,
        args: Sequence[Param],
        shadows: Mapping[int, Operand],
        hi: Phi,
        count: Operand,
        given: Mapping[int, Phi],
        seeds: Mapping[int, Phi],
        sums: Mapping[int, Phi],
    ) -> None:
        """Run the loop on to the middle, take the adjoints back to there, and go on with what is before it."""
        schedule, results = self._schedule, self._results
        snapshots = args[schedule.snapshots]
        left = b.call(iterations_before, count, snapshots, type=INT, hint="left")
        counter = args[schedule.counter]
        distance = b.call(operator.mul, left, Const(schedule.step, INT), type=INT)
        end = b.call(operator.add, counter, distance, type=counter.type, hint="end")
        work: list[Operand] = list(args)
        for number, kind in copies_of_written(self._derivative.routine):
            work[number] = b.call(np.copy, args[number], type=kind, hint=args[number].hint)
        work[schedule.end] = end
        state = b.call_all(self._derivative.routine, work, results)
        made = {number: b.zeros_like(state[number], "shadow") for number in given}
        work[: len(results)] = state
        work[schedule.snapshots] = b.call(operator.sub, snapshots, _ONE, type=INT)
        of_middle = {number: made.get(number, shadow) for number, shadow in shadows.items()}
        passed = [*work, *of_middle.values(), *given.values(), hi, *seeds.values()]
        found = _call_back(b, self._back, self._plain, passed)
        hi.incoming[b.block] = b.call(operator.add, args[schedule.count], left, type=INT, hint="last")
        for number, phi in given.items():
            phi.incoming[b.block] = made[number]
        for number, phi in seeds.items():
            phi.incoming[b.block] = found.get(number, zero(phi.type))
        for number, phi in sums.items():
            phi.incoming[b.block] = b.call(operator.add, phi, found[number], type=phi.type)


def _call_back(b: Builder, back: Routine, plain: Derivative, args: Sequence[Operand]) -> dict[int, Operand]:
    """The adjoints of the parameters that are numbers."""
    kinds = [plain.routine.function.params[number].type for number in plain.adjoints]
    return dict(zip(plain.adjoints, b.call_packed(back, args, kinds), strict=True))


def _shadow_type(plain: Derivative, number: int) -> Type:
    return writable(plain.routine.function.params[number].type)
