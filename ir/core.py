"""The data structures of the IR: functions, blocks, phi nodes and instructions in SSA form.

A `Function` is a list of `Block`s, starting with the entry. A block has phi nodes, instructions and one terminator.
Parameters, phis and instructions are `Value`s: they are compared by identity, carry a Numba type, their name in the
source (`hint`) and a source location, and have no unique name (names are assigned when the text is printed, see
`ir.text`). An operand is a value, a constant, `Undef`, or, in an adjoint function, an `Alpha`: the value that a primal
value had in the matching execution of its block.

    def twice(x):               function twice(%x: f64) -> f64:
        return x + x            b0:
                                  %t = add %x, %x : f64
                                  return %t

An instruction calls a known Python callable, or a `Routine`, which is a function of the IR itself. Passes change
functions in place. `ir.verify` defines which functions are well formed.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from numba import types

from zygote_py.ir.lazy_dataclass import dataclass

Type = types.Type


class InternalError(Exception):
    """A violated invariant of the compiler, a bug. `pass_name` and `ir` locate it; either may be empty.

    Errors in the user's program are `zygote_py.adjoints.errors.DifferentiationError`.
    """

    def __init__(self, message: str, pass_name: str = "", ir: str = "") -> None:
        self.message = message
        self.pass_name = pass_name
        self.ir = ir
        where = f" after {pass_name}" if pass_name else ""
        super().__init__(f"internal error{where}: {message}" + (f"\n{ir}" if ir else ""))


@dataclass(frozen=True, slots=True)
class Loc:
    """A position in the user's source: a file, a line and, where known, a column (both counted from 1)."""

    file: str
    line: int
    column: int | None = None


class Value:
    """The result of an instruction or a phi, or a parameter. Compared by identity."""

    __slots__ = ("hint", "loc", "type")

    def __init__(self, type: Type, hint: str = "", loc: Loc | None = None) -> None:
        self.type = type
        self.hint = hint
        self.loc = loc

    @property
    def args(self) -> tuple[Operand, ...]:
        """Return the operands, in order."""
        return ()


class Param(Value):
    """A parameter of a function; its hint is its name, which ends in `_` where it would be a keyword (`t` and `ry`)."""

    __slots__ = ()

    def __init__(self, type: Type, hint: str = "", loc: Loc | None = None) -> None:
        super().__init__(type, f"{hint}_" if keyword.iskeyword(hint) else hint, loc)


class Phi(Value):
    """Selects, on entry to its block, the operand of the predecessor that control came from."""

    __slots__ = ("incoming",)

    def __init__(
        self, type: Type, hint: str = "", loc: Loc | None = None, incoming: Mapping[Block, Operand] | None = None
    ) -> None:
        super().__init__(type, hint, loc)
        self.incoming: dict[Block, Operand] = dict(incoming or {})

    @property
    def args(self) -> tuple[Operand, ...]:
        """Return the operands, in the order of the predecessors in `incoming`."""
        return tuple(self.incoming.values())


class Instr(Value):
    """A call of a known Python callable, `op(*args)`, with the last `len(keywords)` arguments passed by keyword.

    `origin` is, in an adjoint function, the primal value whose pullback the instruction belongs to.
    """

    __slots__ = ("args", "keywords", "op", "origin")

    def __init__(
        self,
        op: Callable[..., object],
        args: tuple[Operand, ...],
        type: Type,
        hint: str = "",
        loc: Loc | None = None,
        keywords: tuple[str, ...] = (),
        origin: Value | None = None,
    ) -> None:
        super().__init__(type, hint, loc)
        self.op = op
        self.args: tuple[Operand, ...] = args
        self.keywords = keywords
        self.origin = origin

    def copy(self, args: tuple[Operand, ...] | None = None, *, with_origin: bool = True) -> Instr:
        """Return the same operation, on `args` if given, with the same type, hint, location, keywords and origin."""
        operands, origin = self.args if args is None else args, self.origin if with_origin else None
        return Instr(self.op, operands, self.type, self.hint, self.loc, self.keywords, origin)


def came_from() -> bool:
    """Placeholder for the operation of `CameFrom`, which no call can compute: raises TypeError."""
    raise TypeError("came_from is an instruction of adjoint functions, and not called from Python")


class CameFrom(Instr):
    """In an adjoint function: whether the matching execution of the primal `block` was entered from `pred`."""

    __slots__ = ("block", "pred")

    def __init__(self, block: Block, pred: Block) -> None:
        super().__init__(came_from, (), types.boolean, "e")
        self.block = block
        self.pred = pred

    def copy(self, args: tuple[Operand, ...] | None = None, *, with_origin: bool = True) -> CameFrom:
        """Return a copy of the query."""
        return CameFrom(self.block, self.pred)


@dataclass(frozen=True, slots=True)
class Const:
    """A constant operand. Two are equal if type and value are; `0.0` and `-0.0` differ, `nan` equals itself."""

    value: object = field(compare=False)
    type: Type
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", repr(self.value))


def zero_key(type: Type) -> Const | None:
    """Return a key of a dict whose keys are numbers, strings or tuples of these; None for another type of keys."""
    match type:
        case types.Number() | types.Boolean():
            return zero(type)
        case types.UnicodeType():
            return Const("", type)
        case types.UniTuple() | types.Tuple():
            parts = [zero_key(part) for part in type.types]
            return None if None in parts else Const(tuple(part.value for part in parts if part is not None), type)
        case _:
            return None


def is_zero(operand: Operand) -> bool:
    """Return whether an operand is the constant 0."""
    return isinstance(operand, Const) and operand.value == 0


def zero(type: Type) -> Const:
    """Return the zero of a number type; False for booleans."""
    match type:
        case types.Boolean():
            return Const(False, type)
        case types.Integer():
            return Const(0, type)
        case types.Complex():
            return Const(0j, type)
        case _:
            return Const(0.0, type)


@dataclass(frozen=True, slots=True)
class Undef:
    """The value of a variable on a path without an assignment to it; no execution reads it."""

    type: Type


@dataclass(frozen=True, slots=True)
class Alpha:
    """In an adjoint function, the paper's underlined reference: a primal value as of the matching execution."""

    value: Value

    @property
    def type(self) -> Type:
        """Return the type of the value."""
        return self.value.type


Operand = Value | Const | Undef | Alpha


class Jump:
    """An unconditional jump to `target`."""

    __slots__ = ("args", "target")
    __match_args__ = ("target",)

    def __init__(self, target: Block) -> None:
        self.target = target
        self.args: tuple[Operand, ...] = ()


class Branch:
    """A branch to `then` if the boolean `condition` holds, else to `orelse`."""

    __slots__ = ("args", "orelse", "then")
    __match_args__ = ("condition", "then", "orelse")

    def __init__(self, condition: Operand, then: Block, orelse: Block) -> None:
        self.args: tuple[Operand, ...] = (condition,)
        self.then = then
        self.orelse = orelse

    @property
    def condition(self) -> Operand:
        """Return the condition, the only operand."""
        return self.args[0]

    @condition.setter
    def condition(self, condition: Operand) -> None:
        self.args = (condition,)


@dataclass(slots=True, eq=False)
class Return:
    """A return from the function. A primal returns one value, an adjoint one for each parameter of its primal."""

    args: tuple[Operand, ...]


@dataclass(slots=True, eq=False)
class Raise:
    """A raise of `exception(*args)`; `exception` is an exception class, or None for a bare `raise`."""

    exception: type[BaseException] | None
    args: tuple[Operand, ...] = ()


Terminator = Jump | Branch | Return | Raise


class Block:
    """A basic block. In an adjoint function `mirror` is the primal block that this one reverses."""

    __slots__ = ("instrs", "loc", "mirror", "phis", "terminator")

    def __init__(self, loc: Loc | None = None, mirror: Block | None = None) -> None:
        self.phis: list[Phi] = []
        self.instrs: list[Instr] = []
        self._unset_terminator()
        self.loc = loc
        self.mirror = mirror

    def _unset_terminator(self) -> None:
        self.terminator: Terminator = Raise(None)

    @property
    def values(self) -> tuple[Phi | Instr, ...]:
        """Return the phis, then the instructions."""
        return (*self.phis, *self.instrs)

    @property
    def nodes(self) -> tuple[Phi | Instr | Terminator, ...]:
        """Return the phis, the instructions and the terminator."""
        return (*self.phis, *self.instrs, self.terminator)

    @property
    def successors(self) -> tuple[Block, ...]:
        """Return the distinct successor blocks."""
        end = self.terminator  # without `match`, which takes twice as long here
        if isinstance(end, Branch):
            return (end.then, end.orelse) if end.then is not end.orelse else (end.then,)
        return (end.target,) if isinstance(end, Jump) else ()


@dataclass(slots=True, eq=False)
class Function:
    """A function; `kind` is "function", "primal", "adjoint" or "joint", and an adjoint function refers to its `primal`.

    `options` are the Numba options of the function it came from (`fastmath`, `error_model`, ...). The iterations of the
    loops with the counters `independent` affect each other by sums alone. Calls of one that `is_limited` do not end the
    stack, however deep they are.
    """

    name: str
    params: list[Param]
    blocks: list[Block]
    kind: str = "function"
    primal: Function | None = None
    loc: Loc | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    independent: frozenset[Phi] = frozenset()
    is_limited: bool = False

    def allows(self, flag: str) -> bool:
        """Return whether the user allows an inexactness, such as sums in any order: "reassoc"."""
        flags = self.options.get("fastmath")
        if flags is True:
            return True
        return isinstance(flags, set | frozenset | list | tuple) and bool({"fast", flag} & set(flags))

    @property
    def entry(self) -> Block:
        """Return the entry block."""
        return self.blocks[0]

    def values(self) -> Iterator[Value]:
        """Yield all values in text order."""
        yield from self.params
        for block in self.blocks:
            yield from block.values

    def phis(self) -> list[Phi]:
        """Return all phis in text order, as a new list."""
        return [phi for block in self.blocks for phi in block.phis]

    def instrs(self) -> list[Instr]:
        """Return all instructions in text order, as a new list."""
        return [instr for block in self.blocks for instr in block.instrs]

    def nodes(self) -> list[Phi | Instr | Terminator]:
        """Return all phis, instructions and terminators in text order, as a new list."""
        return [node for block in self.blocks for node in block.nodes]

    def calls(self) -> list[tuple[Instr, Routine]]:
        """Return the calls of routines in text order, each with the routine that it calls."""
        return [(instr, instr.op) for instr in self.instrs() if isinstance(instr.op, Routine)]

    def returns(self) -> list[tuple[Block, Return]]:
        """Return the blocks that return, with their terminators, in block order."""
        return [(block, block.terminator) for block in self.blocks if isinstance(block.terminator, Return)]

    def exit(self) -> tuple[Block, Return]:
        """Return the only block that returns, with its terminator. Raises InternalError if there is not exactly one."""
        found = self.returns()
        if len(found) != 1:
            raise InternalError(f"{self.name}: {len(found)} blocks return, where one is expected")
        return found[0]


class Routine:
    """A function of the IR that instructions call: `%y = fact %n`. Compared by identity.

    Effects of a call: it may write to memory reachable from the parameters numbered in `writes`; its result may share
    memory with those in `shares`; after it, those in `may_alias_after` may alias each other; and if it
    `has_side_effects`, it must not move for a different reason (it prints, draws or raises).

    The function is set after construction, since it may call the routine itself.

    Derivatives are derived from the function, unless there is a different `derivation`; they propagate only through the
    parameters that it `passes` (None: all). If the derivative `is_custom`, the calls inside the function do not matter
    to differentiation. `in_numbers` makes the function that computes the same without values of type `Lanes`, which are
    not differentiated; None if there are none.
    If it runs `in_threads`, a call stands for many (`ops.in_threads`): its first argument is their number, the first
    parameter the number of one of them.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.function = Function(name, [], [])
        self.writes: frozenset[int] = frozenset()
        self.shares: frozenset[int] = frozenset()
        self.may_alias_after: frozenset[int] = frozenset()
        self.has_side_effects = False
        self.derivation: object | None = None
        self.is_custom = False
        self.inverse: object | None = None  # the routine that undoes it, if any
        self.passes: frozenset[int] | None = None
        self.in_threads = False
        self.in_numbers: Callable[[], Function] | None = None

    def __call__(self, *args: object) -> object:
        """Raise TypeError: routines are run by `ir.interpret` and by the emitted code."""
        raise TypeError(f"{self.__name__} is a routine of the IR, and not called from Python")

    def __repr__(self) -> str:
        return f"<routine {self.__name__}>"


class Foreign:
    """A callable about which nothing is known except that it does not write to its arguments. Compared by identity."""

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self.function = function
        self.__name__ = self.__qualname__ = name
        self.__module__ = getattr(function, "__module__", None) or "?"

    def __call__(self, *args: object) -> object:
        """Call the function."""
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<foreign {self.__name__}>"


def predecessors(function: Function) -> dict[Block, list[Block]]:
    """Return the predecessors of every block, in block order."""
    found: dict[Block, list[Block]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        for successor in block.successors:
            found[successor].append(block)
    return found


def retarget(block: Block, old: Block, new: Block) -> None:
    """Redirect the edges from `block` to `old` to `new`. Updating the phis of `old` and `new` is left to the caller."""
    match block.terminator:
        case Jump() as jump:
            if jump.target is old:
                jump.target = new
        case Branch() as branch:
            if branch.then is old:
                branch.then = new
            if branch.orelse is old:
                branch.orelse = new
        case _:
            pass
