"""The parser of the text that `ir.text` prints: `text(parse(text(f))[0]) == text(f)`.

    primal, adjoint = parse(text(primal) + "\\n\\n" + text(adjoint))

An adjoint belongs to the preceding function of the same name. Names may be chosen freely: values get the hints that
reproduce these names when printed, `r` for `%r1` between `%r0` and `%r2`. Comments that give a source location or an
origin are read, others are ignored.

The text is lossy: options are empty, a location has the base name of its file, and the type of an `undef` is that of
the phi it is assigned to.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

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
from zygote_py.ir.ops import Op, named
from zygote_py.ir.text.printer import NO_ORIGIN, Names
from zygote_py.ir.types import parse_type, split, top_level

_HEADER = re.compile(r"(function|primal|adjoint|joint) ([^(]+)\((.*)\) -> (.+)")
_LABEL = re.compile(r"(\w+'*):")
_PHI = re.compile(r"%(\w+)\s*: (.+?)\s*= phi\b(.*)")
_DEFINITION = re.compile(r"%(\w+)\s*= (.+)")
_TERMINATOR = re.compile(r"(jump|branch|return|raise)\b\s*(.*)")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)=(.*)")
_LOCATION = re.compile(r"# (\S.*\.\w+|<.*>):(\d+)")


class ParseError(ValueError):
    """A syntax error in a text, with the line and its number (counted from 1)."""

    def __init__(self, message: str, number: int, line: str) -> None:
        self.number = number
        self.line = line
        super().__init__(f"line {number}: {message}\n    {line.strip()}")


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    source: str
    code: str
    comment: str

    def error(self, message: str) -> ParseError:
        return ParseError(message, self.number, self.source)


def parse(text: str, callables: Mapping[str, Callable[..., object]] | None = None) -> list[Function]:
    """Return the functions of a text, in order. Raises ParseError.

    `callables` are the operations and exceptions that the text names and that are neither in `ir.ops` nor Python
    builtins.
    """
    readers: list[_Reader] = []
    primals: dict[str, _Reader] = {}
    for line in _read_lines(text):
        if header := _HEADER.fullmatch(line.code):
            primal = primals.get(header[2]) if header[1] == "adjoint" else None
            readers.append(_Reader(line, header, primal, callables or {}))
            if header[1] != "adjoint":
                primals[header[2]] = readers[-1]
        elif not readers:
            raise line.error("expected a header such as 'primal f(%x: f64) -> f64'")
        elif label := _LABEL.fullmatch(line.code):
            readers[-1].start_block(line, label[1])
        else:
            readers[-1].read(line)
    for reader in readers:
        reader.finish()
    return [reader.function for reader in readers]


def _read_lines(text: str) -> Iterator[_Line]:
    for number, source in enumerate(text.splitlines(), 1):
        start = next((index for index, character in top_level(source) if character == "#"), len(source))
        code = source[:start].strip()
        if code:
            yield _Line(number, source, code, source[start:].strip())


@dataclass(eq=False)
class _Pending:
    """A line whose operands are read once all values are defined."""

    line: _Line
    block: Block
    node: Phi | Instr | str
    operands: str


class _Reader:
    """Reads one function: its definitions first, then, in `finish`, the operands."""

    def __init__(
        self, line: _Line, header: re.Match[str], primal: _Reader | None, callables: Mapping[str, Callable[..., object]]
    ) -> None:
        kind, name, params, result = header.groups()
        if kind == "adjoint" and primal is None:
            raise line.error(f"there is no function {name!r} before its adjoint")
        self.line = line
        self.primal = primal
        self.callables = callables
        self.values: dict[str, Value] = {}
        self.blocks: dict[str, Block] = {}
        self.pending: list[_Pending] = []
        self.origins: list[tuple[_Line, str, list[Instr]]] = []
        self.unnamed: defaultdict[str, list[Value]] = defaultdict(list)
        self.in_group = False
        self.in_tuples = kind == "adjoint"  # an adjoint returns a tuple even of one value
        self.result = self._type(result, line)
        self.function: Function = Function(name, [], [], kind, primal.function if primal else None, _loc(line))
        for param in split(params, ",") if params.strip() else ():
            parts = split(param, ": ")
            if len(parts) != 2 or not parts[0].startswith("%"):
                raise line.error(f"expected a parameter such as '%x: f64', not {param!r}")
            self._param(line, parts[0][1:], parts[1])

    def _param(self, line: _Line, name: str, type: str) -> None:
        param = Param(self._type(type, line), name)
        self._define(line, name, param)
        self.function.params.append(param)

    def _define(self, line: _Line, name: str, value: Value) -> None:
        if name in self.values:
            raise line.error(f"%{name} is defined twice")
        self.values[name] = value

    def start_block(self, line: _Line, name: str) -> None:
        if name in self.blocks:
            raise line.error(f"the block {name} is there twice")
        self.blocks[name] = block = Block()
        self.function.blocks.append(block)
        self._start_group(line)

    def _start_group(self, line: _Line) -> None:
        """Start a group: a comment `# of ...` names the origin of the instructions up to the next one."""
        if line.comment.startswith("# of "):
            self.in_group = line.comment != NO_ORIGIN
            if self.in_group:
                self.origins.append((line, line.comment.removeprefix("# of ").strip(), []))
        elif _LABEL.fullmatch(line.code):
            self.in_group = False

    def read(self, line: _Line) -> None:
        """Read a phi, an instruction or a terminator into the block that was started last."""
        if not self.function.blocks:
            raise line.error("expected the label of a block, such as 'b0:'")
        block = self.function.blocks[-1]
        if self.pending and self.pending[-1].block is block and isinstance(self.pending[-1].node, str):
            raise line.error("this follows the end of its block")
        if found := _TERMINATOR.fullmatch(line.code):
            self.pending.append(_Pending(line, block, found[1], found[2]))
        elif found := _PHI.fullmatch(line.code):
            phi = Phi(self._type(found[2], line), found[1])
            self._define(line, found[1], phi)
            if block.instrs:
                raise line.error("a phi after an instruction")
            block.phis.append(phi)
            self.pending.append(_Pending(line, block, phi, found[3]))
        else:
            self._instruction(line, block)

    def _instruction(self, line: _Line, block: Block) -> None:
        name: str | None = None
        code = line.code
        type: Type = types.none
        if found := _DEFINITION.fullmatch(line.code):
            parts = split(found[2], " : ")
            if len(parts) != 2:
                raise line.error("expected a type, as in '%y = neg %x : f64'")
            name, code, type = found[1], parts[0], self._type(parts[1], line)
        elif code.startswith("%"):
            raise line.error("expected an instruction or a phi, as in '%y = neg %x : f64' or '%y: f64 = phi b0: %x'")
        op_name, _, rest = code.partition(" ")
        instr: Instr
        if op_name == "came_from":
            instr = CameFrom(block, block)  # both are set once all blocks are known
            instr.hint = name or ""
            self.in_group = False
        else:
            instr = Instr(self._op(op_name, line), (), type, name or "", _loc(line))
            self._start_group(line)
            if self.in_group:
                self.origins[-1][2].append(instr)
        if name is None:
            self.unnamed[code].append(instr)
        else:
            self._define(line, name, instr)
        block.instrs.append(instr)
        self.pending.append(_Pending(line, block, instr, rest))

    def finish(self) -> None:
        """Read the operands, now that all values are defined."""
        self._set_mirrors()
        ended = {pending.block for pending in self.pending if isinstance(pending.node, str)}
        for name, block in self.blocks.items():
            if block not in ended:
                raise self.line.error(f"the block {name} does not end: in jump, branch, return or raise")
        for pending in self.pending:
            line = pending.line
            operands = split(pending.operands, ",") if pending.operands.strip() else []
            match pending.node:
                case Phi() as phi:
                    for part in operands:
                        pred, colon, operand = part.partition(": ")
                        if not colon:
                            raise line.error(f"expected an operand such as 'b0: %x', not {part!r}")
                        phi.incoming[self._block(pred.strip(), line)] = self._operand(operand.strip(), phi.type, line)
                case CameFrom() as came_from:
                    if len(operands) != 2 or self.primal is None or not operands[0].startswith("@"):
                        raise line.error("expected two blocks of the primal, as in 'came_from @b1, b2'")
                    came_from.block = self.primal._block(operands[0][1:], line)
                    came_from.pred = self.primal._block(operands[1], line)
                case Instr() as instr:
                    keywords = [found for part in operands if (found := _KEYWORD.fullmatch(part))]
                    instr.keywords = tuple(found[1] for found in keywords)
                    positional = operands[: len(operands) - len(keywords)]
                    if any(_KEYWORD.fullmatch(part) for part in positional):
                        raise line.error("keyword arguments come last")
                    parts = positional + [found[2] for found in keywords]
                    instr.args = tuple(self._operand(part, instr.type, line) for part in parts)
                case str() as keyword:
                    pending.block.terminator = self._terminator(keyword, operands, line)
        self._set_origins()
        self._set_hints()

    def _set_mirrors(self) -> None:
        blocks = self.primal.blocks if self.primal is not None else self.blocks
        for name, block in self.blocks.items():
            if name.endswith("'"):
                block.mirror = blocks.get(name.rstrip("'"))
                if block.mirror is None:
                    raise self.line.error(f"there is no block for {name} to reverse")

    def _set_origins(self) -> None:
        of = self.primal if self.primal is not None else self
        previous: Value | None = None
        for line, shown, instrs in self.origins:
            found = re.match(r"%(\w+)", shown)
            known = [of.values[found[1]]] if found and found[1] in of.values else of.unnamed.get(shown, [])
            if not known:
                raise line.error(f"there is no value {shown!r} for this to be of")
            # Unnamed instructions may have the same text; consecutive groups belong to different ones.
            origin = next((value for value in known if value is not previous), known[0])
            for instr in instrs:
                instr.origin = origin
            previous = origin

    def _set_hints(self) -> None:
        """Set the hints, as short as possible, with which the values print under their names in the text."""
        wanted = {value: name for name, value in self.values.items()}
        for value, name in wanted.items():
            value.hint = name.rstrip("0123456789") or name
        while wrong := {
            value.hint for value, name in Names(self.function).values.items() if wanted.get(value, name) != name
        }:
            # Distinct names, as these are, print unchanged.
            for value, name in wanted.items():
                if value.hint in wrong:
                    value.hint = name

    def _terminator(self, keyword: str, operands: list[str], line: _Line) -> Terminator:
        match keyword, operands:
            case "jump", [target]:
                return Jump(self._block(target, line))
            case "branch", [condition, then, orelse]:
                condition_ = self._operand(condition, types.boolean, line)
                return Branch(condition_, self._block(then, line), self._block(orelse, line))
            case "return", _:
                results = [self.result]
                if isinstance(self.result, types.Tuple | types.UniTuple) and (self.in_tuples or len(operands) != 1):
                    results = list(self.result.types)
                if len(operands) != len(results):
                    raise line.error(f"a return of {len(operands)} values where the header has {len(results)}")
                return Return(tuple(self._operand(part, t, line) for part, t in zip(operands, results, strict=True)))
            case "raise", []:
                return Raise(None)
            case "raise", [first, *rest]:
                name, _, message = first.partition(" ")
                args = [message.strip(), *rest] if message else rest
                return Raise(self._exception(name, line), tuple(self._operand(arg, types.none, line) for arg in args))
            case _:
                raise line.error(f"a {keyword} is not written so")

    def _operand(self, s: str, expected: Type, line: _Line) -> Operand:
        """Return the operand of a text; `expected` is the type of an `undef`."""
        if s.startswith("%"):
            return self._value(s[1:], line)
        if s.startswith("@"):
            if self.primal is None:
                raise line.error(f"{s}: an alpha outside of an adjoint")
            return Alpha(self.primal._value(s[1:], line))
        if s == "undef":
            return Undef(expected)
        try:
            return _constant(s)
        except (ValueError, SyntaxError) as error:
            raise line.error(f"what is {s!r}?") from error

    def _value(self, name: str, line: _Line) -> Value:
        if name not in self.values:
            raise line.error(f"there is no value {name!r} in {self.function.kind} {self.function.name}")
        return self.values[name]

    def _block(self, name: str, line: _Line) -> Block:
        if name not in self.blocks:
            raise line.error(f"there is no block {name!r} in {self.function.kind} {self.function.name}")
        return self.blocks[name]

    def _type(self, s: str, line: _Line) -> Type:
        try:
            return parse_type(s)
        except ValueError as error:
            raise line.error(str(error)) from error

    def _op(self, name: str, line: _Line) -> Op:
        if name in self.callables:
            return self.callables[name]
        try:
            return named(name)
        except KeyError as error:
            raise line.error(f"unknown operation {name!r}") from error

    def _exception(self, name: str, line: _Line) -> type[BaseException]:
        found = self.callables.get(name) or getattr(builtins, name, None)
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            raise line.error(f"unknown exception {name!r}")
        return found


def _constant(s: str) -> Const:
    """Return the constant of a text. Raises ValueError or SyntaxError."""
    if s == "none":
        return Const(None, types.none)
    if s in ("True", "False"):
        return Const(s == "True", types.boolean)
    if s[:1] in ("'", '"'):
        return Const(ast.literal_eval(s), types.unicode_type)
    if re.fullmatch(r"-?\d+", s):
        return Const(int(s), types.int64)
    if found := re.fullmatch(r"(\w+)\((.*)\)", s):
        type = parse_type(found[1])
        if isinstance(type, types.Float | types.Complex):
            return Const((float if isinstance(type, types.Float) else complex)(found[2]), type)
        return Const(ast.literal_eval(found[2]), type)
    return Const(float(s), types.float64)


def _loc(line: _Line) -> Loc | None:
    found = _LOCATION.fullmatch(line.comment)
    return Loc(found[1], int(found[2])) if found else None
