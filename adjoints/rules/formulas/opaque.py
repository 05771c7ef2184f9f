"""The rules of operations on whole arrays that stay calls: products through BLAS, decompositions through LAPACK.

    @helper
    def inv_a(y, dy):                               # what it needs stands in its parameters' names
        t = np.conj(y.T)
        return -np.dot(np.dot(t, dy), t)

    opaque_rule(np.linalg.inv, a=inv_a)

A rule names the arguments of the operation in order and gives, for each that a gradient flows to, a helper
(`ir/ops/helpers.py`) that returns the contribution to its adjoint: of the argument's shape and dtype, fresh or `dy`
itself. It may ask for arguments by their names, for the result `y` and its adjoint `dy` (`y0, y1, dy0, dy1, ...` if the
result is a tuple), and for what another argument's helper returned: `db` is the contribution to `b`. For a real loss
the adjoint of a complex number is dL/dRe + i dL/dIm.

In forward mode a rule may give the tangent of the result directly: `tangents(rule, inv_tangent)`, with a helper that
asks for the tangent of the argument `a` as `ta` and returns that of the result, fresh and in the result's layout. A
product is linear in each factor: `linear(rule)` says that its tangent is the sum of products with the tangent of one.
Where a rule gives none, the tangents are made of the adjoints (`adjoints/forward/transposed.py`).

An adjoint `dy` that a helper gets may be all zeros, so a helper refuses (it raises `ValueError` or
`np.linalg.LinAlgError`) only what matters. The operations with rules are in `products.py`, `linalg.py` and
`spectra.py`. How contributions are used is not decided here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.rules.formulas.rule import flat
from zygote_py.ir import Instr, helper, is_fresh, is_helper, reach
from zygote_py.ir.lazy_dataclass import dataclass

Op = Callable[..., object]


@dataclass(frozen=True, slots=True)
class OpaqueAdjoint:
    """The helper that computes an argument's contribution, and the names of what it is to be called with.

    `nan_safe` is the helper to use where a selection may leave out some of the result (`guarded.py`).
    """

    function: Op
    needs: tuple[str, ...]
    nan_safe: Op | None = None


@dataclass(frozen=True, slots=True)
class OpaqueTangent:
    """The helper that computes the tangent of a result, by its number, from those of the arguments `active`."""

    function: Op
    needs: tuple[str, ...]
    active: frozenset[int]
    result: int = 0


@dataclass(frozen=True, slots=True)
class OpaqueRule:
    """The names of an operation's arguments and the adjoints of those, by number, that a gradient flows to.

    `condition` says where the derivative exists, for the documentation: empty for everywhere. The operation is linear
    in each of the arguments `linear`; `tangents` are what the rule gives for the others.
    """

    names: tuple[str, ...]
    adjoints: Mapping[int, OpaqueAdjoint]
    condition: str = ""
    linear: frozenset[int] = frozenset()
    tangents: tuple[OpaqueTangent, ...] = ()

    @property
    def gives_tangents(self) -> bool:
        """Return whether the rule gives the tangents of the results directly, whatever arguments are active."""
        alone = {number for tangent in self.tangents for number in tangent.active if len(tangent.active) == 1}
        return alone | self.linear >= set(self.adjoints)

    def needed(self, active: Collection[int]) -> frozenset[str]:
        """Return the names that the contributions to these arguments need, those of other contributions included."""

        def also(name: str) -> tuple[str, ...]:
            other = self.other(name)
            return () if other is None else self.adjoints[other].needs

        asked = (name for number in self.adjoints if number in active for name in self.adjoints[number].needs)
        return frozenset(reach(asked, also))

    def other(self, need: str) -> int | None:
        """Return the number of the argument whose contribution a name stands for, if it does."""
        return self.names.index(need[1:]) if need[:1] == "d" and need[1:] in self.names else None


Select = Callable[[Instr], OpaqueRule | None]

RULES: dict[Op, Select] = {}
# One rule of each operation that has any, to list them.
SAMPLES: dict[Op, OpaqueRule] = {}
_CONTRIBUTIONS: set[Op] = set()


@helper
def matters(dy: Any) -> Any:
    """Whether an array of adjoints is anything but zeros. Where the helper is differentiated again it always is.

    An adjoint that is 0 by chance may well have a derivative.
    """
    return np.any(dy != 0)


@helper
def number_matters(dy: Any) -> Any:
    """The same of a number."""
    return dy != 0


@helper
def is_differentiated(y: Any) -> Any:
    """Whether the helper that asks, with a number of no matter, is being differentiated again."""
    return y != y and y == y  # never, but by no constant, for which the other way would be dropped


flat(matters, number_matters, is_differentiated)


def adjoint(function: Op, *, nan_safe: Op | None = None) -> OpaqueAdjoint:
    """Return the adjoint of an argument by a helper, which is called with what its parameters' names stand for."""
    assert is_helper(function), function
    _CONTRIBUTIONS.update(each for each in (function, nan_safe) if each is not None)
    return OpaqueAdjoint(function, tuple(inspect.signature(function).parameters), nan_safe)


def is_new_contribution(instr: Instr) -> bool:
    """Return whether an instruction returns a contribution in an array of its own."""
    return instr.op in _CONTRIBUTIONS and is_fresh(instr)


def opaque(condition: str = "", **adjoints: Op | OpaqueAdjoint | None) -> OpaqueRule:
    """Make a rule: an adjoint or its helper for each argument of the operation, in order; None: no gradient flows."""
    made = {
        number: found if isinstance(found, OpaqueAdjoint) else adjoint(found)
        for number, found in enumerate(adjoints.values())
        if found is not None
    }
    return OpaqueRule(tuple(adjoints), made, condition)


def linear(rule: OpaqueRule, *names: str) -> OpaqueRule:
    """Return the rule of an operation that is linear in each of these arguments, or in all with adjoints."""
    return replace(rule, linear=frozenset(map(rule.names.index, names) if names else rule.adjoints))


def tangents(rule: OpaqueRule, *functions: Op, **of_results: Op) -> OpaqueRule:
    """Return a rule with helpers that give the tangent of the result, or of the items `y0`, `y1`, ... of a tuple."""
    given = [*((0, each) for each in functions), *((int(name[1:]), each) for name, each in of_results.items())]
    made = []
    for result, function in given:
        assert is_helper(function), function
        needs = tuple(inspect.signature(function).parameters)
        active = frozenset(n for n, name in enumerate(rule.names) if f"t{name}" in needs)
        made.append(OpaqueTangent(function, needs, active, result))
    return replace(rule, tangents=tuple(made))


def opaque_rule(
    *ops: Op, condition: str = "", tangent: Op | None = None, **adjoints: Op | OpaqueAdjoint | None
) -> None:
    """Register the rule of operations, one for arguments of all types; `tangent` is the helper of its tangent."""
    rule = opaque(condition, **adjoints)
    if tangent is not None:
        rule = tangents(rule, tangent)
    opaque_choice(*ops, sample=rule)(lambda instr: rule)


def opaque_choice(*ops: Op, sample: OpaqueRule) -> Callable[[Select], Select]:
    """Register a function that picks the rule by the instruction's types.

    `sample` stands for it in documentation, which has no helpers.
    """

    def register(select: Select) -> Select:
        for op in ops:
            assert op not in RULES, op
            RULES[op] = select
            if not is_helper(op):
                SAMPLES[op] = sample
        return select

    return register


def opaque_for(instr: Instr) -> OpaqueRule | None:
    """Return the rule of an instruction; None if it has none, at least for arguments of these types."""
    select = RULES.get(instr.op)
    if select is None:
        return None
    rule = select(instr)
    if rule is None or len(instr.args) > len(rule.names):
        return None
    inactive = [number for number in rule.adjoints if number >= len(instr.args) or not _is_inexact(instr, number)]
    if not inactive:
        return rule
    kept = {number: adjoint for number, adjoint in rule.adjoints.items() if number not in inactive}
    return replace(rule, adjoints=kept)


def _is_inexact(instr: Instr, number: int) -> bool:
    """Return whether an argument is a float or complex number, or an array of them."""
    kind = instr.args[number].type
    return isinstance(kind.dtype if isinstance(kind, types.Array) else kind, types.Float | types.Complex)
