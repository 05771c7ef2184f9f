"""The pushforward of a function with a custom rule, whose tangents are obtained by transposing the rule's pullback.

    routine f (%x), with the rule           f_pushforward (%x, %tx):
    rule (%x) -> (%y, %c)                       %y, %c = rule %x
    back (%dy, %c) -> (%dx)                     %ty = the reverse of back in %dy, with %tx as the adjoint of its result
                                                return %y, %ty

The pullback is linear in `dy`: it applies the transposed derivative. Its own adjoint with respect to `dy` applies the
transpose of that, the derivative. The value of `dy` does not matter and is zero. A nonlinear pullback, such as one that
clips, is not the transpose of a derivative: there are no tangents, and it is refused. A hook without a result only
inspects gradients, which do not exist here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import Linearity, is_array, is_number
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.reverse.calls import Case, Derivative, Source, name_apart
from zygote_py.adjoints.routines import Derivatives, routines_behind
from zygote_py.adjoints.rules.formulas.expand import CASTS
from zygote_py.adjoints.strategies.checkpoint import replay
from zygote_py.adjoints.strategies.custom import Custom, Maker, check_pure, refuse_if_misshaped
from zygote_py.ir import NONE, Builder, Function, Operand, Param, Routine, Type, results_of, writable, zero


class CustomPushforwards:
    """The pushforwards of functions that have rules; each pullback is transposed once."""

    def __init__(self) -> None:
        self._made: dict[tuple[Routine, Case], Derivative] = {}

    def push(self, routine: Routine, case: Case, width: int, name: str) -> Function:
        """Return the pushforward function. Raises DifferentiationError.

        It takes the tangents of the active parameters after its own, and returns the results and the tangents of the
        numbers and arrays among them, each for `width` directions.
        """
        custom = routine.derivation
        assert isinstance(custom, Custom)
        check_pure(routine, custom)
        _check_linear(custom, case)
        function = routine.function
        results = results_of(function)
        maker = Maker(
            Derivative(routine, Case(frozenset(), case.clobbered, case.clobbered_result), Routine(name), Routine(name)),
            custom,
        )
        values = maker.values()
        b, params = maker.b, maker.params
        tangents = {
            number: [
                Param(writable(params[number].type), f"t{params[number].hint}", function.loc) for _ in range(width)
            ]
            for number in sorted(case.active)
        }
        given = [maker.frame.value(each) if isinstance(each, Source) else each for each in maker.inputs]
        found = []
        for direction in range(width):
            changes = {number: made[direction] for number, made in tangents.items()}
            found.append(self._tangents(b, custom, results, values, given, params, changes))
        behind = [each[number] for number in range(len(results)) if number in found[0] for each in found]
        b.return_packed([*values, *behind])
        params = [*params, *(param for made in tangents.values() for param in made)]
        name_apart(params)
        return Function(name, params, [b.block], "primal", None, function.loc, function.options)

    def _tangents(
        self,
        b: Builder,
        custom: Custom,
        results: Sequence[Type],
        values: Sequence[Operand],
        given: Sequence[Operand],
        params: Sequence[Param],
        changes: Mapping[int, Param],
    ) -> dict[int, Operand]:
        """Return the tangents of the results in one direction."""
        found: dict[int, Operand] = {
            number: b.zeros_like(values[number], "t") if is_array(kind) else zero(kind)
            for number, kind in enumerate(results)
            if is_array(kind) or is_number(kind)
        }
        for gradient in custom.gradients:
            if gradient.kind == "seed" and gradient.parameter in changes:
                found[gradient.number] = changes[gradient.parameter]
        asked = {g.number: g.parameter for g in custom.gradients if g.kind == "back" and g.parameter in changes}
        if not asked:
            return found
        seeds = [n for n, each in enumerate(custom.back_inputs) if each.kind == "seed"]
        active = frozenset(n for n in seeds if custom.back_inputs[n].number in found)
        plain = self._plain(custom.back, Case(active, frozenset(), False))
        rest = iter(given)
        args = [
            self._no_adjoint(b, results, values, each.number) if each.kind == "seed" else next(rest)
            for each in custom.back_inputs
        ]
        kinds = results_of(custom.back.function)
        wanted = {
            number: self._converted(b, changes[asked[number]], kind) if number in asked else None
            for number, kind in enumerate(kinds)
        }
        of_numbers = {n: wanted[n] or zero(kind) for n, kind in enumerate(kinds) if is_number(kind)}
        of_arrays: dict[int, Operand] = {}

        def look(made: Sequence[Operand]) -> None:
            for number, parameter in asked.items():
                if isinstance(made[number].type, types.Array):
                    refuse_if_misshaped(b, custom, made[number], params[parameter], params[parameter].hint)
            for number in plain.shadowed_results:
                of_arrays[number] = wanted[number] or b.zeros_like(made[number])

        shadows = {n: found[custom.back_inputs[n].number] for n in plain.shadowed}
        terms = replay(b, plain, args, shadows, of_arrays, of_numbers, look)
        return found | {custom.back_inputs[place].number: term for place, term in terms.items()}

    def _plain(self, back: Routine, case: Case) -> Derivative:
        if (back, case) not in self._made:
            behind = routines_behind(back.function)
            self._made[back, case] = Derivatives((*behind, back)).of(back, case)
        return self._made[back, case]

    def _no_adjoint(self, b: Builder, results: Sequence[Type], values: Sequence[Operand], number: int) -> Operand:
        kind = results[number]
        if isinstance(kind, types.Array):
            return b.zeros_like(values[number], "dy")
        return zero(kind) if isinstance(kind, types.Number | types.Boolean) else NONE

    def _converted(self, b: Builder, tangent: Operand, kind: Type) -> Operand | None:
        """Return a tangent as the adjoint of a gradient of type `kind`: the real part, if that is real."""
        own, wanted = tangent.type, kind
        if isinstance(own, types.Array) and isinstance(kind, types.Array):
            own, wanted = own.dtype, kind.dtype
        if not isinstance(wanted, types.Float | types.Complex):
            return None
        if own == wanted:
            return tangent
        if isinstance(own, types.Complex) and isinstance(wanted, types.Float):
            own = types.float32 if own == types.complex64 else types.float64
            part = types.Array(own, kind.ndim, "A") if isinstance(kind, types.Array) else own
            tangent = b.call(np.real, tangent, type=part)
        if own == wanted:
            return tangent
        if isinstance(kind, types.Array):
            return b.call(np.copy, tangent, type=types.Array(wanted, kind.ndim, "C"))
        return b.call(CASTS[wanted], tangent, type=wanted)


def _check_linear(custom: Custom, case: Case) -> None:
    """Refuse a pullback that is not linear in its argument."""
    if custom.is_linear:
        return
    asked = [g.number for g in custom.gradients if g.kind == "back" and g.parameter in case.active]
    seeds = [n for n, each in enumerate(custom.back_inputs) if each.kind == "seed"]
    is_linear, loc = Linearity().culprit(custom.back, seeds, asked)
    if asked and not is_linear:
        raise refuse(
            f"the pullback of {custom.name} is not linear in its argument, and forward mode has no tangent for it"
            if custom.rule is not None
            else f"{custom.name} is not linear in the gradient, and forward mode has no tangent for it",
            loc,
            "use reverse mode, `gradient`, or make it linear, without branches on its argument",
        )
