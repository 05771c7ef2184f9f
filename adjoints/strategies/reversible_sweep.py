"""The derivative of a reversible loop, which stores nothing: its reverse sweep undoes one iteration at a time.

    f_forward (%x, %w, %n):             f_reverse (%w, %n, %x, %dx):         # final values
        %x = f %x, %w, %n                   while %count > 0:
        return %x                               %x = unbody %x, %w
                                                %dx = body_reverse(body_forward(%x, %w), %dx)
                                            return %dx

Outside values that the loop uses are copied where they may be overwritten, and so is the final state. The gradient is
evaluated at the reconstructed states, which equal those of the forward sweep up to rounding.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from numba import types

from zygote_py.adjoints.reverse.calls import Derivation, Derivative, Deriver, Source
from zygote_py.adjoints.routines import ForwardFrame, LoopState, ReverseFrame, case_of_body
from zygote_py.adjoints.strategies.checkpoint import replay
from zygote_py.ir import Block, Branch, Builder, Const, Jump, Param, Routine
from zygote_py.ir.lazy_dataclass import dataclass

_ZERO = Const(0, types.int64)


@dataclass(frozen=True, eq=False)
class Reversible(Derivation):
    """A routine that is a loop, whose reverse sweep reconstructs the states backwards.

    `body` and `unbody` have the parameters of the routine, and return the same results: the first parameters, after one
    iteration, and before it. The result numbered `count` is the number of completed iterations.
    """

    body: Routine
    unbody: Routine
    count: int

    @property
    def calls(self) -> tuple[Routine, ...]:
        """Return the routines that run one iteration, and undo it."""
        return self.body, self.unbody

    def derive(self, made: Derivative, deriver: Deriver) -> Sequence[Routine]:
        """Make the two functions from those of one iteration."""
        self._reverse(made, deriver.of(self.body, case_of_body(self.body, made.case)), _make_forward(made))
        return ()

    def _reverse(self, made: Derivative, plain: Derivative, taken: list[Param]) -> None:
        """Make the reverse function; `taken` are its parameters for the final state and the other values used."""
        loc, results = made.routine.function.loc, made.results
        inputs = taken[len(results) :]
        frame = ReverseFrame(made, taken, lambda number: f"d{taken[number].hint}")
        entry, header, body, end = blocks = [Block(loc) for _ in range(4)]
        at_header, b, at_end = (Builder(block, loc) for block in blocks[1:])
        entry.terminator = Jump(header)
        loop = LoopState(header, entry)
        state = [loop.carry(param, param.hint) for param in taken[: len(results)]]
        loop.start(frame.given, frame.seeds, {n: taken[n] for n in plain.adjoints if n >= len(results)})
        left = at_header.call(operator.gt, state[self.count], _ZERO, type=types.boolean)
        header.terminator = Branch(left, body, end)

        before = b.call_all(self.unbody, [*state, *inputs], results)
        shadows = {n: b.zeros_like(before[n], phi.hint) for n, phi in loop.given.items()}
        found = replay(b, plain, [*before, *inputs], {**frame.shadows, **shadows}, loop.given, loop.seeds)
        body.terminator = Jump(header)
        for phi, value in zip(state, before, strict=True):
            phi.incoming[body] = value
        loop.go_on(b, shadows, found)

        for number, shadow in frame.shadows.items():
            if number in loop.given:
                at_end.accumulate(shadow, loop.given[number])
        at_end.return_packed([(loop.seeds | loop.sums)[number] for number in made.adjoints])
        frame.finish(blocks)


def _make_forward(derivative: Derivative) -> list[Param]:
    """Make the forward function; return parameters for the values the reverse function takes from it."""
    frame, count, case = ForwardFrame(derivative), len(derivative.results), derivative.case
    sources = [Source("result" if number < count else "argument", number) for number in range(len(frame.params))]
    for number, param in enumerate(frame.params):
        if number >= count and number in case.clobbered and isinstance(param.type, types.Array):
            sources[number] = frame.keep_copy(param, param.hint)
    items = frame.call()
    for number, item in enumerate(items):
        if case.clobbered_result and isinstance(item.type, types.Array):
            sources[number] = frame.keep_copy(item, frame.params[number].hint)
    frame.set_sources(sources)
    frame.finish(items)
    values = [items[n] if n < count and s.number == n else frame.value(s) for n, s in enumerate(sources)]
    return [Param(value.type, param.hint) for value, param in zip(values, frame.params, strict=True)]
