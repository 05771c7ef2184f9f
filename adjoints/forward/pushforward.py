"""The pushforward of a primal, which computes with every active value its tangent: the directional derivative.

    %y = mul %x, %w : f64                       %y = mul %x, %w : f64
                                      ->        %ty = mul %tx, %w : f64
    setitem %a, %y, %i                          setitem %a, %y, %i
                                                setitem %ta, %ty, %i

The rows of rules are those of the reverse sweep: a row is linear in `dy`, which here is the tangent of the argument. An
array has a shadow, as in reverse mode, with the tangents of its elements. Several directions are computed at once: each
value has one tangent per direction. `companions.py` adds the tangents to the values.

Nothing is recorded or reversed: control flow is that of the primal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from zygote_py.adjoints.analysis import expose_leaves, expose_results, find_active
from zygote_py.adjoints.forward.companions import Companions
from zygote_py.adjoints.forward.tangents import Tangents
from zygote_py.adjoints.forward.transposed import Transposed
from zygote_py.adjoints.reverse.calls import name_apart
from zygote_py.ir import Builder, Const, Function, Operand, Param, Routine, check_after
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Pushed:
    """A pushforward; its parameters `tangents` follow those of the primal, for each of `wrt` one per direction.

    A tangent that was `known` is a constant instead of a parameter. The function returns the primal's
    result, followed by the tangents of the result, one per direction. `has_poles` says whether a derivative in it may
    be infinite where the value is finite, as that of a root: there the modes differ in what they take 0 for.
    """

    function: Function
    tangents: tuple[Operand, ...]
    has_poles: bool


class Pushforwards:
    """The pushforwards of a function and of the routines that it calls."""

    def __init__(self, routines: Collection[Routine], width: int, transposed: Transposed) -> None:
        """Collect routines whose functions are in canonical form; `width` is the number of directions."""
        self._tangents = Tangents(width, transposed)
        self._companions = Companions(routines, self._tangents)

    def push(
        self,
        primal: Function,
        wrt: Sequence[Param],
        written: Collection[Param] = (),
        known: Mapping[Param, Sequence[Const | None]] = MappingProxyType({}),
    ) -> Pushed:
        """Make the pushforward of a function in canonical form, which is changed. Raises DifferentiationError.

        `known` are tangents of numbers, one for each direction, that are constants.
        """
        parts = expose_leaves(primal, wrt)
        expose_results(primal)
        walk = self._companions.add_to(primal, wrt, find_active(primal, wrt, parts, written), parts, known=known)
        tangents = tuple(tangent for param in wrt for tangent in walk.companions[param])
        for block, end in primal.returns():
            (value,) = end.args
            Builder(block).return_packed([value, *walk.results(block, value)])
        name_apart(primal.params)
        check_after("push", primal)
        return Pushed(primal, tangents, self._tangents.has_poles)
