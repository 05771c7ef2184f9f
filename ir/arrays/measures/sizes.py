"""Lengths, counts and bytes as amounts: an expression in the parameters, and its value where these are known.

    sizes = Sizes(function, {%x: (1000,), %n: 50})
    sizes.of(%n2)                           Amount("2 * n", 100)
    sizes.length(%y, 0)                     Amount("x.shape[0]", 1000)
    sizes.trips(loop)                       Amount("n", 50)
    sizes.rounds((outer, inner))            how often the body of `inner` runs in all

A value that a loop changes has no amount, but a length that each round hands on unchanged has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.loops import Loop, counted
from zygote_py.ir.arrays.shapes import Length, Shapes
from zygote_py.ir.core import Const, Function, Instr, Operand, Param, Phi, Value
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops.helpers import is_helper

Known = Mapping[Param, "int | tuple[int, ...]"]

_ROUNDS = 20_000  # rounds of an outer loop that are gone through to add up those of an inner one


@dataclass(frozen=True, slots=True)
class Amount:
    """A number: its expression, and its value, or None."""

    text: str
    value: int | None = None

    @property
    def is_exact(self) -> bool:
        """Return whether the value is known."""
        return self.value is not None

    def __add__(self, other: Amount) -> Amount:
        return _combined("+", operator.add, self, other, 0)

    def __sub__(self, other: Amount) -> Amount:
        return _combined("-", operator.sub, self, other, 0)

    def __mul__(self, other: Amount) -> Amount:
        if "0" in (self.text, other.text):
            return exactly(0)
        return _combined("*", operator.mul, self, other, 1)

    def at_least(self, least: int) -> Amount:
        """Return the larger of this and a number."""
        if self.value is not None:
            return Amount(self.text if self.value >= least else str(least), max(self.value, least))
        return self


def exactly(value: int) -> Amount:
    """Return a known amount."""
    return Amount(str(value), value)


def product(amounts: Sequence[Amount]) -> Amount:
    """Return the product of amounts."""
    made = exactly(1)
    for each in amounts:
        made = made * each
    return made


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of amounts, in which equal terms are one."""
    terms: dict[str, Amount] = {}
    counts: dict[str, int] = {}
    for each in amounts:
        number, rest = _split(each.text)
        one = (
            each
            if number == 1
            else Amount(rest or "1", each.value // number if each.value is not None and number else None)
        )
        terms[one.text] = one
        counts[one.text] = counts.get(one.text, 0) + number
    made = exactly(0)
    for text, one in terms.items():
        made = made + exactly(counts[text]) * one
    return made


def _in_steps(span: Amount, step: int) -> Amount:
    """Return the number of steps from one number to another."""
    if step != 1:
        value = None if span.value is None else -(-span.value // step)
        span = Amount(f"ceil({_whole(span.text)} / {step})", value)
    return span.at_least(0)


def _common(amounts: Sequence[Amount]) -> Amount:
    """Return the length to which axes broadcast."""
    others = list({each.text: each for each in amounts if each.text != "1"}.values()) or list(amounts[:1])
    if len(others) == 1:
        return others[0]
    values = [each.value for each in others]
    known = None if None in values else max(value for value in values if value is not None)
    return Amount(f"max({', '.join(each.text for each in others)})", known)


def _combined(sign: str, op: Callable[[int, int], int], a: Amount, b: Amount, neutral: int) -> Amount:
    value = None if a.value is None or b.value is None else op(a.value, b.value)
    if a.text.lstrip("-").isdecimal() and b.text.lstrip("-").isdecimal() and value is not None:
        return exactly(value)
    if b.text == str(neutral):
        return Amount(a.text, value)
    head, minus, tail = a.text.rpartition(" - ")
    if sign == "-" and minus and tail.isdecimal() and b.text.isdecimal():
        return Amount(f"{head} - {int(tail) + int(b.text)}", value)
    if (sign == "-" and a.text.endswith(f" + {b.text}")) or (sign == "+" and a.text.endswith(f" - {b.text}")):
        return Amount(a.text[: -len(b.text) - 3], value)
    if a.text == str(neutral) and sign != "-":
        return Amount(b.text, value)
    if sign == "*":
        return Amount(_times(a.text, b.text), value)
    return Amount(f"{a.text} {sign} {_factor(b.text) if sign == '-' else b.text}", value)


def _times(a: str, b: str) -> str:
    """Return a product, in which numbers come first, as one."""
    (m, left), (n, right) = _split(_factor(a)), _split(_factor(b))
    factors = [each for each in (left, right) if each]
    return " * ".join([str(m * n), *factors] if m * n != 1 or not factors else factors)


def _split(text: str) -> tuple[int, str]:
    """Return the number with which a product begins, 1 if there is none, and the rest."""
    head, _, rest = text.partition(" * ")
    return (int(head), rest) if head.isdecimal() and _factor(text) == text else (1, text)


def _unknown(operand: Operand) -> str:
    """Return a text for a value that is not an expression in the parameters."""
    loc = getattr(operand, "loc", None)
    where = "" if loc is None or (isinstance(operand, Phi) and operand.hint) else f" of line {loc.line}"
    return f"{getattr(operand, 'hint', '') or 'a value'}{where}"


def _whole(text: str) -> str:
    return f"({text})" if " " in text and not text.startswith("(") else text


def _factor(text: str) -> str:
    depth = 0
    for before, each in zip(" " + text, text, strict=False):
        depth += (each in "([") - (each in ")]")
        if depth == 0 and each in "+-" and before == " " and text[0] != each:
            return f"({text})"
    return text


class Sizes:
    """The amounts of one function, for parameters of which some are known."""

    def __init__(self, function: Function, known: Known | None = None) -> None:
        self._function = function
        self._known = known or {}
        self._shapes = Shapes()
        self._amounts: dict[Hashable, Amount | None] = {}
        self._counters: dict[Value, Amount] = {}
        self._headers = {phi: block for block in function.blocks for phi in block.phis}
        self._added_to: dict[Operand, Operand] = {}  # where an array is added as a whole
        self._pushed: dict[Value, list[Operand]] = {}
        for instr in function.instrs():
            if instr.op is ops.push and isinstance(instr.args[0], Value):
                self._pushed.setdefault(instr.args[0], []).append(instr.args[1])
            elif instr.op is ops.accumulate and len(instr.args) == 2:
                self._added_to[instr.args[1]] = instr.args[0]

    def of(self, operand: Operand) -> Amount:
        """Return the amount that an integer is."""
        if isinstance(operand, Const):
            return exactly(int(operand.value)) if isinstance(operand.value, int) else Amount(str(operand.value))
        if operand in self._counters:
            return self._counters[operand]
        found = self._once(operand, isinstance(operand, Phi), lambda: self._find(operand))
        return found or Amount(_unknown(operand))

    def length(self, array: Operand, axis: int) -> Amount:
        """Return the length of an axis."""
        found = self._once((array, axis), isinstance(array, Phi), lambda: self._find_length(array, axis))
        return found or Amount(f"({_unknown(array)}).shape[{axis}]")

    def elements(self, array: Value) -> Amount:
        """Return the number of elements of an array."""
        kind: Any = array.type
        return product([self.length(array, axis) for axis in range(kind.ndim)])

    def trips(self, loop: Loop) -> Amount:
        """Return the number of rounds of a loop."""
        how = counted(loop, self._function)
        if how is None:
            return Amount(f"rounds of line {loop.header.loc.line}" if loop.header.loc else "rounds")
        start, bound = self.of(how.start), self.of(how.bound)
        if how.step < 0:
            start, bound = bound, start
        span = bound - start
        if how.comparison.of_equals:
            span = span + exactly(1)
        return _in_steps(span, abs(how.step))

    def rounds(self, loops: Sequence[Loop]) -> Amount:
        """Return how often the body of the last of nested loops runs, the outermost loop first."""
        if not loops:
            return exactly(1)
        loop, *inner = loops
        count = self.trips(loop)
        within = self.rounds(inner)
        if within.is_exact or not inner or count.value is None:
            return count * within
        how = counted(loop, self._function)
        start = None if how is None else self.of(how.start).value
        if how is None or start is None or count.value > _ROUNDS:
            return count * within
        found = 0
        saved = self._amounts
        for number in range(count.value):
            self._amounts = {}
            self._counters[how.phi] = exactly(start + number * how.step)
            amount = self.rounds(inner)
            if amount.value is None:
                break
            found += amount.value
        else:
            del self._counters[how.phi]
            self._amounts = saved
            return Amount(f"the sum of {within.text} over {count.text} rounds", found)
        del self._counters[how.phi]
        self._amounts = saved
        return count * within

    def _once(self, key: Hashable, is_phi: bool, find: Callable[[], Amount | None]) -> Amount | None:
        """Return what is found for a key; while that of a phi is being found, it is unknown or supposed."""
        if key in self._amounts:
            return self._amounts[key]
        if is_phi:
            self._amounts[key] = None
        found = find()
        if found is not None or not is_phi:
            self._amounts[key] = found
        else:
            self._amounts.pop(key, None)
        return found

    def _find(self, operand: Operand) -> Amount | None:
        if isinstance(operand, Param):
            given = self._known.get(operand)
            return Amount(operand.hint, given if isinstance(given, int) else None)
        if isinstance(operand, Phi):
            return self._of_phi(operand, operand, self.of)
        if not isinstance(operand, Instr):
            return None
        args = operand.args
        match operand.op, args:
            case ops.dim, (array, Const(int(axis))):
                return self.length(array, axis)
            case ops.const, (arg,) if isinstance(arg.type, types.Integer | types.Boolean):
                return self.of(arg)
            case ops.range_length, (start, stop, Const(int(step))) if step:
                span = self.of(stop) - self.of(start) if step > 0 else self.of(start) - self.of(stop)
                return _in_steps(span, abs(step))
            case operator.add, (a, b):
                return self.of(a) + self.of(b)
            case operator.sub, (a, b):
                return self.of(a) - self.of(b)
            case operator.mul, (a, b):
                return self.of(a) * self.of(b)
            case operator.neg, (a,):
                return exactly(0) - self.of(a)
            case operator.rshift, (a, Const(int(places))):
                whole = self.of(a)
                value = None if whole.value is None else whole.value >> places
                return Amount(f"{_factor(whole.text)} / {2**places}", value)
            case ops.fitting_length, (target, *_):
                return self.of(target)
            case ops.common_length, _:
                return _common([self.of(arg) for arg in args])
        if len(args) == 1 and isinstance(ops.of(operand.op).cast_to, types.Integer):
            return self.of(args[0]) if isinstance(args[0].type, types.Integer | types.Boolean) else None
        if not all(isinstance(arg.type, types.Integer) for arg in args):
            return None
        amounts = [self.of(arg) for arg in args]
        text = f"{ops.name_of(operand.op)}({', '.join(each.text for each in amounts)})"
        is_count = is_helper(operand.op) and isinstance(operand.type, types.Integer)
        is_plain = operand.op in (max, min, operator.floordiv, operator.mod) or is_count
        plain: Any = operand.op if is_plain else None
        if operand.op is max and len(args) == 2 and args[1] == Const(0, args[1].type):
            return amounts[0].at_least(0)
        if plain is None or not all(each.is_exact for each in amounts):
            return Amount(text) if plain is not None else None
        try:
            return Amount(text, plain(*(each.value for each in amounts)))
        except (ValueError, ZeroDivisionError):
            return None

    def _of_phi(self, key: Hashable, phi: Phi, find: Callable[[Operand], Amount]) -> Amount | None:
        """Return the amount that all operands of a phi have, if the first does not change."""
        operands = [each for each in phi.args if each is not phi]
        first, *rest = operands
        found, before = find(first), dict(self._amounts)
        self._amounts[key] = found  # a supposition
        if all(find(each).text == found.text for each in rest):
            return found
        self._amounts = before
        return None

    def _find_length(self, array: Operand, axis: int) -> Amount | None:
        if isinstance(array, Param):
            given = self._known.get(array)
            value = given[axis] if isinstance(given, tuple) and axis < len(given) else None
            return Amount(f"{array.hint}.shape[{axis}]", value)
        if isinstance(array, Phi):
            return self._of_phi((array, axis), array, lambda each: self.length(each, axis))
        source = self._origin(array)
        if source is not array:
            return None if source is None else self.length(source, axis)
        shape = self._shapes.of(array)
        return self._of_length(shape[axis], array, axis) if axis < len(shape) else None

    def _of_length(self, length: Length, array: Operand, axis: int) -> Amount | None:
        if length.operand is not None:
            return self.of(length.operand)
        if length.parts:
            found = [self._of_length(each, array, axis) for each in length.parts]
            return None if None in found else _common([each for each in found if each is not None])
        if length.array is None or (length.array is array and length.axis == axis):
            found_there = self._of_slice(length)
            if found_there is None and array in self._added_to:
                return self.length(self._added_to[array], axis)
            return found_there
        return self.length(length.array, length.axis)

    def _of_slice(self, length: Length) -> Amount | None:
        match length.key:
            case ("without", whole, int(left_out)):
                found = self._of_key(whole)
                return None if found is None else (found - exactly(left_out)).at_least(0)
            case ("slice", whole, start, stop, None | 1):
                return self._between(self._of_key(whole), self._bound(start), self._bound(stop))
        return None

    def _bound(self, key: object) -> Amount | None:
        return exactly(key) if isinstance(key, int) else self._of_key(key)

    @staticmethod
    def _between(whole: Amount | None, start: Amount | None, stop: Amount | None) -> Amount | None:
        """Return the length of a slice whose bounds are not negative and, as an expression, within the array."""
        if whole is None or any(each is not None and (each.value or 0) < 0 for each in (start, stop)):
            return None
        made = (stop or whole) - (start or exactly(0))
        values = [(each or default).value for each, default in ((whole, whole), (start, exactly(0)), (stop, whole))]
        if None in values:
            return Amount(made.text)
        length, first, last = (value or 0 for value in values)
        return Amount(made.text, max(min(last, length) - min(first, length), 0))

    def _of_key(self, key: object) -> Amount | None:
        match key:
            case ("dim", Value() as array, int(axis)):
                return self.length(array, axis)
            case ("const", int(value)):
                return exactly(value)
            case Value():
                return self.of(key)
        return None

    def _origin(self, array: Operand) -> Operand | None:
        """Return what a record holds where one reads it again; an array that is not from a record itself; else None."""
        match array:
            case Instr(op=ops.getitem, args=(Instr(op=ops.pop, args=(stack,)), Const(int(number)))):
                found = [each.args[number] for each in self._records(stack) if each.op is ops.pack]
                return found[0] if len(found) == 1 else None
            case Instr(op=ops.pop, args=(stack,)):
                pushed = self._pushed.get(stack, [])  # type: ignore[arg-type]
                return pushed[0] if len(pushed) == 1 else None
        return array

    def _records(self, stack: Operand) -> list[Instr]:
        return [each for each in self._pushed.get(stack, []) if isinstance(each, Instr)]  # type: ignore[arg-type]
