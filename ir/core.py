"""The data structures of the IR: functions, blocks, phi nodes and instructions in SSA form.

A `Function` is a list of `Block`s, the entry first. A block has phi nodes, instructions and one terminator.
Parameters, phis and instructions are `Value`s: they are compared by identity, carry a Numba type, the name they had
in the source (`hint`) and a source location, and have no name of their own (names are given when text is printed, see
`ir.text`). An operand is a value, a constant, `Undef`, or, in an adjoint function, an `Alpha`: the value that a
primal value had in the matching execution of its block.

    def twice(x):               function twice(%x: f64) -> f64:
        return x + x            b0:
                                  %t = add %x, %x : f64
                                  return %t

An instruction calls a known Python callable, or a `Routine`, which is a function of the IR itself. Passes change
functions in place. What a well-formed function is, `ir.verify` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from numba import types

Type = types.Type


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in the user's source: a file, a line and, where it is known, a column (both from 1)."""

    file: str
    line: int
    column: int | None = None


class Value:
    """What an instruction, a phi or a parameter computes. Compared by identity."""

    __slots__ = ("hint", "loc", "type")

    def __init__(self, type: Type, hint: str = "", loc: Loc | None = None) -> None:
        self.type = type
        self.hint = hint
        self.loc = loc


class Param(Value):
    """A parameter of a function; its hint is its name."""

    __slots__ = ()


class Phi(Value):
    """Selects, on entry to its block, the operand of the predecessor that control came from."""

    __slots__ = ("incoming",)

    def __init__(self, type: Type, hint: str = "", loc: Loc | None = None) -> None:
        super().__init__(type, hint, loc)
        self.incoming: dict[Block, Operand] = {}


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
        self.args = args
        self.keywords = keywords
        self.origin = origin


class CameFrom(Value):
    """In an adjoint function: whether the matching execution of the primal `block` was entered from `pred`."""

    __slots__ = ("block", "pred")

    def __init__(self, block: Block, pred: Block) -> None:
        super().__init__(types.boolean, "e")
        self.block = block
        self.pred = pred


@dataclass(frozen=True, slots=True)
class Const:
    """A constant operand. Two are equal if type and value are, `0.0` and `-0.0` apart, `nan` equal to itself."""

    value: object = field(compare=False)
    type: Type
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", repr(self.value))


def zero(type: Type) -> Const:
    """The zero of a number type; False for truth values."""
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
    """The value of a variable on a path where nothing was assigned to it; no execution reads it."""

    type: Type


@dataclass(frozen=True, slots=True)
class Alpha:
    """In an adjoint function, the paper's underlined reference: what a primal value held in the matching execution."""

    value: Value

    @property
    def type(self) -> Type:
        """The type of the value."""
        return self.value.type


Operand = Value | Const | Undef | Alpha


@dataclass(slots=True, eq=False)
class Jump:
    """Control goes to `target`."""

    target: Block


@dataclass(slots=True, eq=False)
class Branch:
    """Control goes to `then` if the boolean `condition` holds, else to `orelse`."""

    condition: Operand
    then: Block
    orelse: Block


@dataclass(slots=True, eq=False)
class Return:
    """Leaves the function. A primal returns one value, an adjoint one for each parameter of its primal."""

    values: tuple[Operand, ...]


@dataclass(slots=True, eq=False)
class Raise:
    """Raises `exception(*args)`; `exception` is an exception class, or None for a bare `raise`."""

    exception: type[BaseException] | None
    args: tuple[Operand, ...] = ()


Terminator = Jump | Branch | Return | Raise


class Block:
    """A straight line of code. In an adjoint function `mirror` is the primal block that this one reverses."""

    __slots__ = ("instrs", "loc", "mirror", "phis", "terminator")

    def __init__(self, loc: Loc | None = None, mirror: Block | None = None) -> None:
        self.phis: list[Phi] = []
        self.instrs: list[Instr | CameFrom] = []
        self._unset_terminator()
        self.loc = loc
        self.mirror = mirror

    def _unset_terminator(self) -> None:
        self.terminator: Terminator = Raise(None)

    @property
    def successors(self) -> tuple[Block, ...]:
        """The blocks that control may go to from here, each once."""
        match self.terminator:
            case Jump(target):
                return (target,)
            case Branch(_, then, orelse):
                return (then, orelse) if then is not orelse else (then,)
            case _:
                return ()


@dataclass(slots=True, eq=False)
class Function:
    """`kind` is "function", "primal", "adjoint" or "joint"; an adjoint function knows its `primal`.

    `options` are the Numba options of the function it came from (`fastmath`, `error_model`, ...).
    """

    name: str
    params: list[Param]
    blocks: list[Block]
    kind: str = "function"
    primal: Function | None = None
    loc: Loc | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def entry(self) -> Block:
        """The block that a call begins with."""
        return self.blocks[0]

    def values(self) -> Iterator[Value]:
        """All values in the order of the text."""
        yield from self.params
        for block in self.blocks:
            yield from block.phis
            yield from block.instrs


class Routine:
    """A function of the IR that instructions call: `%y = fact %n`. Compared by identity.

    What a call does: it may write to the memory that the parameters numbered in `writes` reach; its result may share
    memory with those in `shares`; after it, those in `mixes` may reach each other's; and if it `acts`, it must stay
    where it is for another reason (it prints, draws or raises).
    The function is set when it is made: it may call the routine itself.

    The derivative of a call may be given from outside, by a `rule`; derivatives go through those parameters only that
    it `passes` (None: all).
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.function = Function(name, [], [])
        self.writes: frozenset[int] = frozenset()
        self.shares: frozenset[int] = frozenset()
        self.mixes: frozenset[int] = frozenset()
        self.acts = False
        self.rule: object | None = None
        self.inverse: object | None = None  # the routine that undoes it, if there is one
        self.runs_again = False  # in the reverse sweep, so that nothing but its arguments is kept
        self.schedule: object | None = None  # if it does so part by part, how
        self.passes: frozenset[int] | None = None

    def __call__(self, *args: object) -> object:
        """Raise TypeError: `ir.interpret` runs a routine, and so does what is emitted."""
        raise TypeError(f"{self.__name__} is a routine of the IR, and not called from Python")

    def __repr__(self) -> str:
        return f"<routine {self.__name__}>"


class Foreign:
    """A callable of which nothing is known but that it writes to none of its arguments. Compared by identity."""

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self.function = function
        self.__name__ = self.__qualname__ = name
        self.__module__ = getattr(function, "__module__", None) or "?"

    def __call__(self, *args: object) -> object:
        """Call it."""
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<foreign {self.__name__}>"


def predecessors(function: Function) -> dict[Block, list[Block]]:
    """The predecessors of every block, in the order of the blocks."""
    found: dict[Block, list[Block]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        for successor in block.successors:
            found[successor].append(block)
    return found


def operands(node: Value | Terminator) -> tuple[Operand, ...]:
    """What a value or a terminator uses, in order."""
    match node:
        case Instr():
            return node.args
        case Phi():
            return tuple(node.incoming.values())
        case Branch(condition, _, _):
            return (condition,)
        case Return(values):
            return values
        case Raise(_, args):
            return args
        case _:
            return ()


def replace_values(function: Function, replacement: Mapping[Value, Operand]) -> None:
    """Replace every use of the mapped values, following chains of replacements; their definitions stay.

    A chain must end: `replacement` has no cycle. An `Alpha` of a mapped value is not touched.
    """
    if not replacement:
        return

    def final(operand: Operand) -> Operand:
        while isinstance(operand, Value) and operand in replacement:
            operand = replacement[operand]
        return operand

    for block in function.blocks:
        for phi in block.phis:
            phi.incoming = {pred: final(operand) for pred, operand in phi.incoming.items()}
        for instr in block.instrs:
            if isinstance(instr, Instr):
                instr.args = tuple(map(final, instr.args))
        match block.terminator:
            case Branch() as branch:
                branch.condition = final(branch.condition)
            case (Return() | Raise()) as leave:
                if isinstance(leave, Return):
                    leave.values = tuple(map(final, leave.values))
                else:
                    leave.args = tuple(map(final, leave.args))
            case _:
                pass


def retarget(block: Block, old: Block, new: Block) -> None:
    """Make the edges from `block` to `old` lead to `new`. The phis of `old` and `new` are the caller's business."""
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
