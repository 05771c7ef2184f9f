"""Values of which a run computes one: those of the two ways of a branch share a field of the record.

    b1:  %s = sin %x                b3:  %s3 = phi [b1: %s, b2: undef]              %t3 = phi [b1: %s, b2: %c]
    b2:  %c = cos %x          ->         %c3 = phi [b1: undef, b2: %c]       ->

The reverse sweep goes the way that the run went, and uses the value of that way alone, so that one phi is both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numba import types

from zygote_py.ir import Block, Operand, Phi, Type, Undef, Value, is_left_out
from zygote_py.ir.lazy_dataclass import dataclass

_TRIED = 8  # of the latest values of a type that a value is compared with


def share_fields(crossing: Iterable[Value], blocks: Iterable[Block]) -> dict[Value, Value]:
    """Return for each value the one that is recorded in its place; new phis are added to their blocks.

    A phi of numbers is recorded as one that has the same operands wherever both are defined.
    """
    home = {phi: block for block in blocks for phi in block.phis}
    fields: list[_Field] = []
    alike: dict[tuple[Type, Block], _Alike] = {}
    for value in crossing:
        if (
            isinstance(value, Phi)
            and isinstance(value.type, types.Number | types.Boolean)
            and not is_left_out("shared-fields")
        ):
            known = alike.setdefault((value.type, home[value]), _Alike(home))
            if known.has_joined(value):
                continue
            known.single.append(_Field(value, [value]))
            fields.append(known.single[-1])
        else:
            fields.append(_Field(value, [value]))
    return {value: field.recorded for field in fields for value in field.values}


@dataclass(eq=False)
class _Field:
    """A field of the record: what is recorded, and the values that it stands for."""

    recorded: Value
    values: list[Value]


class _Alike:
    """The fields of phis of one block and type: those of a `single` value, and others."""

    def __init__(self, home: dict[Phi, Block]) -> None:
        self.single: list[_Field] = []
        self._home = home
        self._several: list[_Field] = []

    def has_joined(self, value: Value) -> bool:
        """Join a value with one of the latest fields, of a single value if possible; return whether there is one."""
        for fields in (self.single, self._several):
            for place in reversed(range(max(0, len(fields) - _TRIED), len(fields))):
                joined = _Joining(self._home).both(fields[place].recorded, value)
                if isinstance(joined, Value):
                    field = fields.pop(place)
                    field.recorded = joined
                    field.values.append(value)
                    self._several.append(field)
                    return True
        return False


class _Joining:
    """Joins two values; phis are added once it is known that they can be joined."""

    def __init__(self, home: dict[Phi, Block]) -> None:
        self._home = home
        self._made: list[tuple[Block, Phi]] = []
        self._open: set[tuple[Operand, Operand]] = set()

    def both(self, first: Operand, second: Operand) -> Operand | None:
        """Return the operand that is either of two, whichever is defined; None if there is none."""
        joined = self._join(first, second)
        if joined is not None:
            for block, phi in self._made:
                block.phis.append(phi)
                self._home[phi] = block
        return joined

    def _join(self, first: Operand, second: Operand) -> Operand | None:
        if first is second or isinstance(second, Undef):
            return first
        if isinstance(first, Undef):
            return second
        if not (isinstance(first, Phi) and isinstance(second, Phi)) or (first, second) in self._open:
            return None
        block = self._home.get(first)
        if block is None or block is not self._home.get(second):
            return None
        self._open.add((first, second))
        incoming: dict[Block, Operand] = {}
        for pred, operand in first.incoming.items():
            joined = self._join(operand, second.incoming[pred])
            if joined is None:
                return None
            incoming[pred] = joined
        for same in (first, second):
            if _is(same, incoming):
                return same
        made = Phi(first.type, first.hint, first.loc, incoming)
        self._made.append((block, made))
        return made


def _is(phi: Phi, incoming: Mapping[Block, Operand]) -> bool:
    return all(phi.incoming[pred] is operand for pred, operand in incoming.items())
