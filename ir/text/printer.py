"""The canonical text of functions, which tests compare, `zygote-py show` prints and `ir.parse` reads back.

    primal pow(%x: f64, %n: i64) -> f64                # pow.py:1
    b0:
      %r0 = const 1.0 : f64
      jump b1
    b1:
      %r1: f64 = phi b0: %r0, b2: %r2
      ...

Names are assigned here, in text order, from the hints of the values; nothing in the text depends on identities, hashes
or addresses. A hint that occurs once is the name; among several values with one hint a parameter takes it, and the
others are numbered. `@x` in an adjoint is the alpha of the primal's `%x`, and `b1'` is the block that reverses `b1`.

Ill-formed functions are printed as well, for the verifier: an unnamed value is shown as `%?hint`. Options of functions
and columns of locations are not in the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import count, groupby, zip_longest

from numba import types

from zygote_py.ir.core import (
    Alpha,
    Block,
    Branch,
    CameFrom,
    Const,
    Function,
    Instr,
    Jump,
    Loc,
    Operand,
    Param,
    Phi,
    Raise,
    Return,
    Terminator,
    Type,
    Undef,
    Value,
)
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.ops import name_of
from zygote_py.ir.text.identifiers import place_text
from zygote_py.ir.types import type_text

COMMENT_COLUMN = 51
NO_ORIGIN = "# of none"  # ends the group of an origin if instructions without one follow

_BARE_TYPES = frozenset({types.float64, types.int64, types.boolean, types.none, types.unicode_type})
_FIRST_NUMBER = {"adjoint": 1}  # 0 elsewhere; in an adjoint version 0 is the zero that an adjoint starts from


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the text and the object it shows."""

    text: str
    subject: Function | Block | Value | Terminator


class Names:
    """The names of a function's values and blocks, and of operands in its text."""

    def __init__(self, function: Function) -> None:
        primal = function.primal
        self.primal = Names(primal) if primal is not None and primal is not function else None
        self.values: dict[Value, str] = _name_values(function)
        self.blocks: dict[Block, str] = _name_blocks(function, self.primal.blocks if self.primal else {})
        self.unnamed = frozenset(value for value in function.values() if value not in self.values)

    def __contains__(self, value: Value) -> bool:
        return value in self.values or value in self.unnamed

    def value(self, value: Value) -> str:
        """Return `%x`, or `%?hint` for a value that is not in the function."""
        return f"%{self.values[value]}" if value in self.values else f"%?{value.hint}"

    def block(self, block: Block) -> str:
        """Return `b1` or `b1'`, or `b?` for a block that is not in the function."""
        return self.blocks.get(block, "b?")

    def operand(self, operand: Operand) -> str:
        """Return the text of a value, a constant, an undefined value or an alpha."""
        match operand:
            case Const():
                return _literal(operand)
            case Undef():
                return "undef"
            case Alpha(value):
                named = self.primal is not None and value in self.primal.values
                return f"@{self.primal.values[value]}" if self.primal and named else f"@?{value.hint}"
            case _:
                return self.value(operand)

    def operation(self, value: Value) -> str:
        """Return the text of the computation of a value, such as `mul %r1, %x`, without its name and its type."""
        match value:
            case CameFrom(block=block, pred=pred):
                names = self.primal or self
                return f"came_from @{names.block(block)}, {names.block(pred)}"
            case Instr():
                positional = len(value.args) - len(value.keywords)
                prefixes = [""] * positional + [f"{keyword}=" for keyword in value.keywords]
                args = (prefix + self.operand(arg) for prefix, arg in zip(prefixes, value.args, strict=False))
                return f"{name_of(value.op)} {', '.join(args)}".rstrip()
            case Phi():
                return "phi"
            case _:
                return ""

    def describe(self, value: Value) -> str:
        """Return a value with its computation, as in `%r2 = mul %r1, %x`."""
        return " = ".join(filter(None, (self.value(value) if value in self.values else "", self.operation(value))))


def text(function: Function, active: Collection[Value] | None = None) -> str:
    """Return the text of a function, without a trailing newline.

    In a primal, the instructions of `active` values are marked with their source location.
    """
    return "\n".join(line.text for line in lines(function, Names(function), active))


def lines(function: Function, names: Names, active: Collection[Value] | None = None) -> Iterator[Line]:
    """Yield the lines of the text."""
    loc = function.loc if function.kind != "adjoint" else None
    yield Line(_with_comment(_header(function, names), _location(loc) if loc else None), function)
    marked = active if active is not None and function.kind == "primal" else ()
    order = {block: index for index, block in enumerate(function.blocks)}
    for block in function.blocks:
        body = list(_instructions(function, block, names, marked))
        label = f"{names.block(block)}:"
        if body and _origin(function, block.instrs[0], names) is not None:
            label = _with_comment(label, body[0].comment)
            body[0] = replace(body[0], comment=None)
        yield Line(label, block)
        yield from (Line(f"  {line}", phi) for line, phi in _phis(block, names, order))
        yield from (Line(_with_comment(f"  {shown.text}", shown.comment), shown.subject) for shown in body)
        yield Line(f"  {_terminator(block.terminator, names)}", block.terminator)


def return_types(function: Function) -> tuple[Type, ...] | None:
    """Return the types of the returned values, or None if the function never returns."""
    returns = function.returns()
    return tuple(operand.type for operand in returns[0][1].args) if returns else None


# Names


def _name_values(function: Function) -> dict[Value, str]:
    used = _used_nones(function)
    named = [value for value in function.values() if _has_name(value) or value in used]
    hints = [re.sub(r"\W", "_", value.hint) or "t" for value in named]
    occurrences = Counter(hints)
    names: dict[Value, str] = {}
    taken: set[str] = set()
    for value, hint in zip(named, hints, strict=True):
        if occurrences[hint] == 1 or (isinstance(value, Param) and hint not in taken):
            names[value] = hint
            taken.add(hint)
    first = {hint: 1 if hint in taken else _FIRST_NUMBER.get(function.kind, 0) for hint in occurrences}
    numbers = {hint: count(number) for hint, number in first.items()}
    for value, hint in zip(named, hints, strict=True):
        if value not in names:
            names[value] = next(name for number in numbers[hint] if (name := f"{hint}{number}") not in taken)
            taken.add(names[value])
    return {value: names[value] for value in named}


def _has_name(value: Value) -> bool:
    return not isinstance(value, Instr) or value.type != types.none


def _used_nones(function: Function) -> set[Value]:
    """Return the instructions of type none that are used as operands and therefore need a name."""
    nones = {value for value in function.values() if not _has_name(value)}
    if not nones:
        return nones
    nodes: Iterable[Value | Terminator] = (
        node for block in function.blocks for node in (*block.phis, *block.instrs, block.terminator)
    )
    return {operand for node in nodes for operand in node.args if isinstance(operand, Value) and operand in nones}


def _name_blocks(function: Function, of_primal: dict[Block, str]) -> dict[Block, str]:
    own = set(function.blocks)
    mirrors = {block: block.mirror for block in function.blocks if block.mirror in own or block.mirror in of_primal}
    numbered = dict.fromkeys(block for block in function.blocks if block not in mirrors)
    names = {block: f"b{index}" for index, block in enumerate(numbered)}
    taken = set(names.values())
    for block, mirror in mirrors.items():
        # The blocks of a joint function have their own names; an adjoint's mirrors have those of its primal.
        name = (names.get(mirror) or of_primal.get(mirror, "b")) + "'"
        while name in taken:
            name += "'"
        names[block] = name
        taken.add(name)
    return names


# Lines


@dataclass(frozen=True, slots=True)
class _Instruction:
    text: str
    subject: Value
    comment: str | None


def _header(function: Function, names: Names) -> str:
    params = ", ".join(f"{names.value(param)}: {type_text(param.type)}" for param in function.params)
    returned = return_types(function)
    if returned is None:
        result = "none"
    elif len(returned) == 1 and function.kind != "adjoint":
        result = type_text(returned[0])
    else:
        items = ", ".join(map(type_text, returned))
        result = f"({items},)" if len(returned) == 1 else f"({items})"
    return f"{function.kind} {function.name}({params}) -> {result}"


def _phis(block: Block, names: Names, order: dict[Block, int]) -> Iterator[tuple[str, Phi]]:
    heads = [f"{names.value(phi)}: {type_text(phi.type)}" for phi in block.phis]
    rows = [
        [
            f"{names.block(pred)}: {names.operand(phi.incoming[pred])},"
            for pred in sorted(phi.incoming, key=lambda pred: order.get(pred, len(order)))
        ]
        for phi in block.phis
    ]
    head_width = max(map(len, heads), default=0)
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    for phi, head, row in zip(block.phis, heads, rows, strict=True):
        cells = " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"{head:<{head_width}} = phi {cells.rstrip().removesuffix(',')}".rstrip(), phi


def _origin(function: Function, value: Value, names: Names) -> Value | None:
    """Return the origin of an instruction, if the text can refer to it."""
    if not isinstance(value, Instr) or value.origin is None:
        return None
    match function.kind:
        case "adjoint":
            shown = names.primal
        case "joint":
            shown = names
        case _:
            return None
    return value.origin if shown is not None and value.origin in shown else None


def _instructions(function: Function, block: Block, names: Names, marked: Collection[Value]) -> Iterator[_Instruction]:
    in_group = False
    of = names.primal if function.kind == "adjoint" and names.primal is not None else names
    for origin, members in groupby(block.instrs, key=lambda value: _origin(function, value, names)):
        group = list(members)
        shown = [names.value(value) for value in group if value in names.values]
        width = max(map(len, shown), default=0) if origin is not None else 0
        for index, value in enumerate(group):
            comment = None
            if origin is not None and index == 0:
                comment = f"# of {of.describe(origin)}"
            elif origin is None and in_group and not isinstance(value, CameFrom):
                comment = NO_ORIGIN
            elif value in marked and value.loc is not None:
                comment = _location(value.loc)
            # A came_from is never part of a group.
            in_group = origin is not None
            line = (
                f"{names.value(value):<{width}} = {names.operation(value)} : {type_text(value.type)}"
                if value in names.values
                else names.operation(value)
            )
            yield _Instruction(line, value, comment)


def _terminator(terminator: Terminator, names: Names) -> str:
    match terminator:
        case Jump(target):
            return f"jump {names.block(target)}"
        case Branch(condition, then, orelse):
            return f"branch {names.operand(condition)}, {names.block(then)}, {names.block(orelse)}"
        case Return(values):
            return f"return {', '.join(map(names.operand, values))}".rstrip()
        case Raise(None, _):
            return "raise"
        case Raise(exception, args):
            assert exception is not None
            shown = ", ".join(
                json.dumps(arg.value, ensure_ascii=False)
                if isinstance(arg, Const) and isinstance(arg.value, str)
                else names.operand(arg)
                for arg in args
            )
            return f"raise {exception_name(exception)} {shown}".rstrip()


def exception_name(exception: type[BaseException]) -> str:
    """Return `ValueError` for a builtin exception, `package.module.Name` for others."""
    module = exception.__module__
    return exception.__qualname__ if module == "builtins" else f"{module}.{exception.__qualname__}"


def _literal(constant: Const) -> str:
    match constant.type, constant.value:
        case types.Float(), (int() | float()) as number:
            shown = repr(float(number))
        case types.Integer(), int() as number:
            shown = repr(int(number))
        case types.Complex(), (int() | float() | complex()) as number:
            shown = repr(complex(number)).strip("()")
        case _, None:
            shown = "none"
        case _, value:
            # A NumPy scalar is shown as a plain number.
            shown = repr(value.item() if hasattr(value, "item") else value)
    return shown if constant.type in _BARE_TYPES else f"{type_text(constant.type)}({shown})"


def _location(loc: Loc) -> str:
    return f"# {place_text(loc)}"


def _with_comment(line: str, comment: str | None) -> str:
    return f"{line:<{COMMENT_COLUMN - 2}}  {comment}" if comment else line
