"""The cases of calls of large routines, so that calls that differ only in the numbers that matter share a derivative.

%y = f %x, 2.0 : f64            active: the first argument          both calls are of the derivative for the case
%z = f 3.0, %x : f64            active: the second                  that both arguments are active
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from zygote_py.adjoints.analysis import find_active, is_number
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.adjoints.reverse.calls import Case
from zygote_py.ir import Instr, Routine, loop_nest

_LARGE = 100  # operations
_InLoops = dict[tuple[Routine, frozenset[int]], frozenset[object]]


def joined_cases(
    calls: Iterable[tuple[Instr, Case]], known: Iterable[tuple[Routine, Case]], decided: Collection[Routine] = ()
) -> list[tuple[Instr, Case]]:
    """Return calls with cases that serve all calls of a large routine, unless arrays or loops make the difference.

    A case that is `known`, for which there is a derivative, is taken if it serves. What a call does not need, adjoints
    and tangents of numbers, takes less than another derivative to compile, but for values of loops, which are kept. The
    cases of some routines are `decided`.
    """
    found = list(calls)
    given = [*known, *((call.op, case) for call, case in found if isinstance(call.op, Routine))]
    counts = Counter(routine for routine, _ in given)
    chosen = {each for each, count in counts.items() if count > 1 and each not in decided and _is_large(each)}
    in_loops: _InLoops = {}
    kinds = {(routine, case): _kind(routine, case, in_loops) for routine, case in given if routine in chosen}
    joined: dict[object, Case] = {}
    for routine, case in given:
        if (kind := kinds.get((routine, case))) is not None:
            joined[kind] = joined.get(kind, case) | case
    return [(call, joined.get(kinds.get((call.op, case)), case)) for call, case in found]  # type: ignore[arg-type]


def _is_large(routine: Routine) -> bool:
    """Return whether the derivative of a routine, made from its function, takes long to compile."""
    is_plain = routine.derivation is None and not routine.is_custom
    return is_plain and sum(len(block.instrs) for block in routine.function.blocks) >= _LARGE


def _kind(routine: Routine, case: Case, in_loops: _InLoops) -> object:
    """Return what the cases of calls have in common that differ in numbers only, and keep the same values of loops."""
    params = routine.function.params
    arrays = frozenset(number for number in case.active if not is_number(params[number].type))
    return routine, arrays, case.clobbered, case.clobbered_result, _active_in_loops(routine, case.active, in_loops)


def _active_in_loops(routine: Routine, active: frozenset[int], known: _InLoops) -> frozenset[object]:
    """Return the active values in the loops of a routine, and of what it calls, if some parameters are active.

    What is found is `known` then. Of a call that leads back to a routine that is looked at, the active arguments count.
    """
    key = routine, active
    if key in known:
        return known[key]
    function = routine.function
    wrt = [function.params[number] for number in sorted(active)]
    try:
        activity = find_active(function, wrt, results=[function.params[number] for number in sorted(routine.writes)])
    except DifferentiationError:  # which is raised again where the derivative is made
        return frozenset(wrt)
    known[key] = frozenset((key,))
    nest, found = loop_nest(function), set[object]()
    for block in function.blocks:
        if nest.innermost(block) is not None:
            found.update(value for value in block.values if value in activity)
    for call, called in function.calls():
        given = frozenset(number for number, arg in enumerate(call.args) if arg in activity)
        if called.is_custom:
            found.add((call, given))
        elif given:
            found.add((call, _active_in_loops(called, given, known)))
    known[key] = frozenset(found)
    return known[key]
