"""The derivative of a loop that stores nothing: its reverse sweep walks back, one iteration at a time.

    f_forward (%x, %w, %n):             f_reverse (%w, %n, %x, %dx):         # of the end
        %x = f %x, %w, %n                   while %count > 0:
        return %x                               %x = unbody %x, %w
                                                %dx = body_reverse(body_forward(%x, %w), %dx)
                                            return %dx

What the loop uses from outside is copied where it may be overwritten, and so is the state at the end. The gradient is
that at the states as they are walked back, which are those of the first sweep up to rounding.
"""

from __future__ import annotations

import operator

from numba import types

from zygote_py.adjoints.calls import Derivative, Source, name_apart
from zygote_py.adjoints.checkpoints import replay
from zygote_py.adjoints.kinds import is_array
from zygote_py.adjoints.reversible import Reversible
from zygote_py.ir.builder import Builder
from zygote_py.ir.core import Block, Branch, Const, Function, Jump, Operand, Param, Phi, Routine, zero
from zygote_py.ir.types import writable

_ZERO = Const(0, types.int64)


def walk_back(derivative: Derivative, plain: Derivative) -> None:
    """Make the two functions of the derivative of a reversible loop from that of one iteration."""
    _Reverse(derivative, plain).build(_make_forward(derivative))


def _make_forward(derivative: Derivative) -> list[Param]:
    """Make the forward function; gives parameters for what the reverse function needs of it."""
    routine, results = derivative.routine, derivative.results
    function = routine.function
    derivative.shadowed_results = tuple(number for number, type in enumerate(results) if is_array(type))
    params = [Param(each.type, each.hint, each.loc) for each in function.params]
    shadows = [Param(writable(params[n].type), f"d{params[n].hint}", function.loc) for n in derivative.shadowed]
    b = Builder(Block(function.loc), function.loc)
    kept: list[Operand] = []
    sources: dict[int, Source] = {}
    first = len(results) + len(derivative.shadowed_results)

    def keep(number: int, value: Operand) -> None:
        sources[number] = Source("result", first + len(kept))
        kept.append(b.copy(value, params[number].hint))

    for number, param in enumerate(params):
        sources[number] = Source("result" if number < len(results) else "argument", number)
        if number >= len(results) and number in derivative.case.unstable and isinstance(param.type, types.Array):
            keep(number, param)
    items = b.call_all(routine, params, results)
    made = [b.zeros_like(items[n], "shadow") for n in derivative.shadowed_results]
    for number, item in enumerate(items):
        if derivative.case.unstable_result and isinstance(item.type, types.Array):
            keep(number, item)
    derivative.kept = tuple(each.type for each in kept)
    derivative.sources = (
        *(sources[number] for number in range(len(params))),
        *(Source("argument", len(params) + place) for place in range(len(shadows))),
        *(Source("result", len(items) + place) for place in range(len(made))),
    )
    b.return_packed([*items, *made, *kept])
    _set_function(derivative.forward, routine, [*params, *shadows], [b.block])
    kinds = (*results, *(param.type for param in params[len(results) :]))
    return [
        Param(kept[source.number - first].type if source.number >= first and source.kind == "result" else kind, p.hint)
        for kind, p, source in zip(kinds, params, (sources[n] for n in range(len(params))), strict=True)
    ]


class _Reverse:
    """Makes the reverse function."""

    def __init__(self, derivative: Derivative, plain: Derivative) -> None:
        self._derivative = derivative
        self._plain = plain
        self._loc = derivative.routine.function.loc

    def build(self, taken: list[Param]) -> None:
        """Make it; `taken` are the parameters for the state at the end, and for what else the loop used."""
        derivative, loc = self._derivative, self._loc
        schedule, results = derivative.routine.schedule, derivative.results
        assert isinstance(schedule, Reversible)
        inputs = taken[len(results) :]
        shadows = {n: Param(writable(taken[n].type), f"d{taken[n].hint}", loc) for n in derivative.shadowed}
        given = {n: Param(writable(results[n]), f"d{taken[n].hint}", loc) for n in derivative.shadowed_results}
        seeds = {n: Param(results[n], f"d{taken[n].hint}", loc) for n in derivative.seeds}
        entry, header, body, end = blocks = [Block(loc) for _ in range(4)]
        at_header, b, at_end = (Builder(block, loc) for block in blocks[1:])
        entry.terminator = Jump(header)

        def carried(value: Operand, hint: str) -> Phi:
            header.phis.append(phi := Phi(value.type, hint, loc))
            phi.incoming[entry] = value
            return phi

        state = [carried(param, param.hint) for param in taken[: len(results)]]
        new_given = {number: carried(param, param.hint) for number, param in given.items()}
        new_seeds = {number: carried(param, param.hint) for number, param in seeds.items()}
        sums = {
            number: carried(zero(taken[number].type), f"d{taken[number].hint}")
            for number in self._plain.adjoints
            if number >= len(results)
        }
        left = at_header.call(operator.gt, state[schedule.count], _ZERO, type=types.boolean)
        header.terminator = Branch(left, body, end)

        before = b.call_all(schedule.unbody, [*state, *inputs], results)
        made = {n: b.zeros_like(before[n], phi.hint) for n, phi in new_given.items()}
        found = replay(b, self._plain, [*before, *inputs], {**shadows, **made}, new_given, new_seeds)
        body.terminator = Jump(header)
        for phi, value in zip(state, before, strict=True):
            phi.incoming[body] = value
        for number, phi in new_given.items():
            phi.incoming[body] = made[number]
        for number, phi in new_seeds.items():
            phi.incoming[body] = found.get(number, zero(phi.type))
        for number, phi in sums.items():
            phi.incoming[body] = b.call(operator.add, phi, found[number], type=phi.type)

        for number, shadow in shadows.items():
            if number in new_given:
                at_end.accumulate(shadow, new_given[number])
        at_end.return_packed([sums[n] if n in sums else new_seeds[n] for n in derivative.adjoints])
        params = [*taken, *shadows.values(), *given.values(), *seeds.values()]
        _set_function(derivative.reverse, derivative.routine, params, blocks)


def _set_function(routine: Routine, primal: Routine, params: list[Param], blocks: list[Block]) -> None:
    name_apart(params)
    function = primal.function
    routine.function = Function(routine.__name__, params, blocks, "joint", None, function.loc, function.options)
