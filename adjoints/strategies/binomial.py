"""Binomial checkpointing of a loop: it keeps a given number of snapshots and reruns parts of itself as required.

    def f_steps_back(x, i, count, ..., snapshots, last, dx):      # the adjoint of x at `count`, from that at `last`
        while last - count > 1:
            left = iterations_before(last - count, snapshots)
            state = f_steps(x, i, count, ...)                     # forward to the middle
            dx = f_steps_back(*state, snapshots - 1, last, dx)    # from the end to the middle
            last = count + left
        ...                                                       # one iteration: forward, then back immediately

The state at the start of each call is a snapshot. The division follows the binomial schedule of Griewank and Walther,
"Algorithm 799: revolve", ACM TOMS 26 (2000): with `s` snapshots and at most `t` runs of each iteration, in addition to
the reversed one, a loop may have (s + t)! / (s! t!) iterations.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.reverse.calls import Derivation, Derivative, Deriver, Source
from zygote_py.adjoints.routines import LoopState, case_of_body, set_function
from zygote_py.adjoints.strategies.checkpoint import Reverse, check_repeatable, copies_of_written, make_forward, replay
from zygote_py.ir import (
    Block,
    Branch,
    Builder,
    Const,
    Jump,
    Operand,
    Param,
    Phi,
    Routine,
    Type,
    helper,
    results_of,
    writable,
)
from zygote_py.ir.lazy_dataclass import dataclass

INT = types.int64
_ZERO, _ONE = Const(0, INT), Const(1, INT)


@helper
def usable_snapshots(number: int) -> int:
    """No more than this many: each is a call inside the one of the snapshot before it."""
    return max(1, min(number, 500))


@helper
def iterations_before(count: int, snapshots: int) -> int:
    """Return after how many of the iterations, two or more, to take the next snapshot."""
    if snapshots < 2:
        return count - 1
    runs, reach = 1, snapshots + 1  # the iterations that this many snapshots and runs are enough for
    while reach < count:
        runs += 1
        reach = reach * (snapshots + runs) // runs
    at_most = reach * runs // (snapshots + runs)  # as many before, with one run less
    at_least = at_most * (runs - 1) // (snapshots + runs - 1)
    after = reach - at_most  # as many after it, with one snapshot less
    return min(max(count - after, at_least, 1), count - 1)


@dataclass(frozen=True, eq=False)
class Snapshots(Derivation):
    """A routine that is a loop, parts of which run again from a number of snapshots.

    `body` is a routine with the same parameters that runs one iteration. Among the parameters, which begin with those
    that the routine returns updated, `count` is the number of completed iterations, `counter` the number of the next
    one, which grows by `step`; `end` is the bound of the counter, and `snapshots` the permitted number of snapshots.
    """

    body: Routine
    count: int
    counter: int
    step: int
    end: int
    snapshots: int
    suffixes = ("checkpoint", "again")

    @property
    def calls(self) -> tuple[Routine, ...]:
        """Return the routine that runs one iteration."""
        return (self.body,)

    def derive(self, made: Derivative, deriver: Deriver) -> Sequence[Routine]:
        """Make the two functions from those of one iteration."""
        plain = deriver.of(self.body, case_of_body(self.body, made.case))
        check_repeatable(made.routine)
        reverse = Reverse(made, make_forward(made))
        b = reverse.b
        last = Param(INT, "last", made.routine.function.loc)
        made.sources += (Source("result", self.count),)
        back = Routine(f"{made.routine.__name__}_back")
        _Back(made, plain, self, back).build()
        shadows = {
            number: reverse.shadows.get(number)
            or b.call(np.zeros_like, reverse.args[number], type=_shadow_type(plain, number))
            for number in plain.shadowed
        }
        args = list(reverse.args)
        args[self.snapshots] = b.call(usable_snapshots, args[self.snapshots], type=INT)
        passed = [*args, *shadows.values(), *reverse.given.values(), last, *reverse.seeds.values()]
        found = _call_back(b, back, plain, passed)
        b.return_packed([found[number] for number in made.adjoints])
        reverse.finish([b.block], [last])
        return (back,)


class _Back:
    """Makes the function that propagates adjoints from one iteration back to an earlier one."""

    def __init__(self, derivative: Derivative, plain: Derivative, schedule: Snapshots, back: Routine) -> None:
        self._derivative = derivative
        self._plain = plain
        self._schedule = schedule
        self._back = back
        self._loc = derivative.routine.function.loc
        self._results = results_of(derivative.routine.function)

    def build(self) -> None:
        """Build the function."""
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

        entry.terminator = Jump(header)
        loop = LoopState(header, entry)
        hi = loop.carry(last, "last")
        loop.start(given, seeds, {n: params[n] for n in self._plain.adjoints if n >= len(self._results)})
        count = at_header.call(operator.sub, hi, args[schedule.count], type=INT, hint="n")
        header.terminator = Branch(at_header.call(operator.gt, count, _ONE, type=types.boolean), split, rest)
        self._split(at_split, args, shadows, hi, count, loop)
        split.terminator = Jump(header)
        rest.terminator = Branch(at_rest.call(operator.eq, count, _ONE, type=types.boolean), one, none)
        found = replay(at_one, self._plain, args, shadows, loop.given, loop.seeds)
        found |= {n: at_one.call(operator.add, phi, found[n], type=phi.type) for n, phi in loop.sums.items()}
        at_one.return_packed([found[number] for number in self._plain.adjoints])
        # No iteration at all: the results are the arguments.
        for number, shadow in shadows.items():
            if number in loop.given:
                at_none.accumulate(shadow, loop.given[number])
        at_none.return_packed([(loop.seeds | loop.sums)[number] for number in self._plain.adjoints])
        set_function(self._back, routine, every, blocks)

    def _split(
        self,
        b: Builder,
        args: Sequence[Param],
        shadows: Mapping[int, Operand],
        hi: Phi,
        count: Operand,
        loop: LoopState,
    ) -> None:
        """Run the loop to the middle, propagate the adjoints back to there, and continue with the part before it."""
        schedule, results = self._schedule, self._results
        snapshots = args[schedule.snapshots]
        left = b.call(iterations_before, count, snapshots, type=INT, hint="left")
        counter = args[schedule.counter]
        distance = b.call(operator.mul, left, Const(schedule.step, INT), type=INT)
        end = b.call(operator.add, counter, distance, type=counter.type, hint="end")
        work: list[Operand] = list(args)
        for number in copies_of_written(self._derivative.routine):
            work[number] = b.copy(args[number], args[number].hint)
        work[schedule.end] = end
        state = b.call_all(self._derivative.routine, work, results)
        made = {number: b.zeros_like(state[number], "shadow") for number in loop.given}
        work[: len(results)] = state
        work[schedule.snapshots] = b.call(operator.sub, snapshots, _ONE, type=INT)
        of_middle = {number: made.get(number, shadow) for number, shadow in shadows.items()}
        passed = [*work, *of_middle.values(), *loop.given.values(), hi, *loop.seeds.values()]
        found = _call_back(b, self._back, self._plain, passed)
        hi.incoming[b.block] = b.call(operator.add, args[schedule.count], left, type=INT, hint="last")
        loop.go_on(b, made, found)


def _call_back(b: Builder, back: Routine, plain: Derivative, args: Sequence[Operand]) -> dict[int, Operand]:
    """Return the adjoints of the parameters that are numbers."""
    kinds = [plain.routine.function.params[number].type for number in plain.adjoints]
    return dict(zip(plain.adjoints, b.call_packed(back, args, kinds), strict=True))


def _shadow_type(plain: Derivative, number: int) -> Type:
    return writable(plain.routine.function.params[number].type)
