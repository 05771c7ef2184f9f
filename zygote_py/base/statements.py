"""Typed statements, which the adapter to Numba passes to the front end.

A `TypedFunction` is a control-flow graph over variables. Variables are strings and have types; a variable may be
assigned in several places. `r *= x` in a loop is

    Assign("$imul", Operate(operator.mul, ("r.2", "x"), (float64, float64)), loc)
    Assign("r.1", Copy("$imul"), loc)

Of Numba, only its public types occur here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Signature

from zygote_py.base.captures import Capture as Capture
from zygote_py.base.custom_rules import CustomRule
from zygote_py.ir import Loc, Type
from zygote_py.ir.lazy_dataclass import dataclass

Variable = str
Label = int


@dataclass(frozen=True, slots=True)
class Parameter:
    """The argument with this number; captured values follow the user's own arguments."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value known at compile time: a literal, or a global or captured variable, whose name is `name`."""

    value: object
    name: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """Another variable, cast to the target's type if that differs."""

    source: Variable


@dataclass(frozen=True, slots=True)
class Operate:
    """An operator on variables, each cast to the operand type in `types`."""

    op: Callable[..., object]
    args: tuple[Variable, ...]
    types: tuple[Type, ...]
    inplace: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`callee(*args, **keywords)`; `types` are the parameter types of the callee, in the order of its parameters."""

    callee: Variable
    args: tuple[Variable, ...]
    keywords: tuple[tuple[str, Variable], ...]
    types: tuple[Type, ...]
    star: Variable | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """`value.name`"""

    value: Variable
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """`value[index]`; if `index` is None, the index is the constant `static`."""

    value: Variable
    index: Variable | None
    static: object = None


@dataclass(frozen=True, slots=True)
class Build:
    """A display: `kind` is "tuple", "list", "set" or "dict"."""

    kind: str
    items: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Iterate:
    """`iter(value)`"""

    value: Variable


@dataclass(frozen=True, slots=True)
class Advance:
    """Takes the next element of an iterator; its value is a pair (element, whether there was one)."""

    iterator: Variable


@dataclass(frozen=True, slots=True)
class Element:
    """The element in the pair of an `Advance`."""

    pair: Variable


@dataclass(frozen=True, slots=True)
class Present:
    """Whether there was an element in the pair of an `Advance`."""

    pair: Variable


@dataclass(frozen=True, slots=True)
class Unpack:
    """The elements of `value` as a tuple; there must be `count` of them."""

    value: Variable
    count: int


@dataclass(frozen=True, slots=True)
class Phi:
    """A phi of variables, by predecessor; None if nothing was assigned on that path."""

    incoming: tuple[tuple[Label, Variable | None], ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression that the front end cannot represent; `kind` describes it in the user's terms."""

    kind: str


Expression = (
    Parameter
    | Constant
    | Copy
    | Operate
    | Call
    | Attribute
    | Item
    | Build
    | Iterate
    | Advance
    | Element
    | Present
    | Unpack
    | Phi
    | Unknown
)


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`"""

    target: Variable
    value: Expression
    loc: Loc


@dataclass(frozen=True, slots=True)
class SideEffect:
    """A statement without a result; `kind` is "print" or names an unsupported statement."""

    kind: str
    args: tuple[Variable, ...]
    loc: Loc


@dataclass(frozen=True, slots=True)
class Store:
    """`target[index] = value`, with the value cast to the element type."""

    target: Variable
    index: Variable
    value: Variable
    type: Type
    loc: Loc


@dataclass(frozen=True, slots=True)
class SetAttribute:
    """`target.name = value`"""

    target: Variable
    name: str
    value: Variable
    loc: Loc


Statement = Assign | Store | SetAttribute | SideEffect


@dataclass(frozen=True, slots=True)
class Jump:
    """Control goes to the block `label`."""

    label: Label
    loc: Loc


@dataclass(frozen=True, slots=True)
class Branch:
    """Control goes to `then` if `condition` holds, else to `orelse`."""

    condition: Variable
    then: Label
    orelse: Label
    loc: Loc


@dataclass(frozen=True, slots=True)
class Return:
    """Returns a variable."""

    value: Variable
    loc: Loc


@dataclass(frozen=True, slots=True)
class Name:
    """A variable among the arguments of a `Raise`, the others being constants."""

    variable: Variable


@dataclass(frozen=True, slots=True, eq=False)
class Raise:
    """Raises `exception(*args)`; a bare `raise` has no exception."""

    exception: type[BaseException] | None
    args: tuple[object, ...]
    loc: Loc


@dataclass(frozen=True, slots=True)
class Try:
    """Control goes to `target`; if a statement of the block raises an exception, to `handler`."""

    handler: Label
    target: Label
    loc: Loc


Ending = Jump | Branch | Return | Raise | Try


@dataclass(frozen=True, slots=True)
class TypedBlock:
    """Statements, and where control goes after them."""

    statements: tuple[Statement, ...]
    ending: Ending
    loc: Loc


@dataclass(frozen=True, slots=True, eq=False)
class TypedCustomRule:
    """A custom rule with the typed functions that belong to it.

    `rule` returns the value and the pullback, whose body is `back`: it takes the cotangent of the value, followed by
    the captured variables of the pullback if it `holds` any. `inverse` computes the first argument from the result and
    the other arguments. `foreign` is the function that Numba can call; if `is_foreign`, its body cannot be read.
    """

    given: CustomRule
    foreign: Callable[..., object]
    is_foreign: bool = False
    rule: TypedFunction | None = None
    back: TypedFunction | None = None
    inverse: TypedFunction | None = None
    holds: bool = False

    @property
    def parts(self) -> list[TypedFunction]:
        """The typed functions that belong to the rule."""
        return [each for each in (self.rule, self.back, self.inverse) if each is not None]


@dataclass(frozen=True, slots=True, eq=False)
class TypedFunction:
    """A typed control-flow graph, its entry first; parameters after `argument_count` are the `hidden` captured ones.

    `names` are the names of variables in the source. A variable whose type is that of a function holds that function;
    `callee_of` returns its body for given argument types if it is to be inlined. If the variable holds an object or a
    method of it, the object is the first argument. `accessor_of` returns the type of a property's function, `member_of`
    that of a method of a jitclass object.
    """

    name: str
    loc: Loc
    parameters: tuple[str, ...]
    argument_count: int
    parameter_types: tuple[Type, ...]
    blocks: Mapping[Label, TypedBlock]
    types: Mapping[Variable, Type]
    names: Mapping[Variable, str]
    return_type: Type
    hidden: tuple[Capture, ...]
    frozen: tuple[Capture, ...]
    options: Mapping[str, object]
    callee_of: Callable[[Type, tuple[Type, ...]], TypedFunction | None]
    signature_of: Callable[[Type], Signature | None]
    accessor_of: Callable[[Type, str], Type | None]
    member_of: Callable[[Type, str], Type | None]
    given: TypedCustomRule | None = None  # what is given for it, beside its body
    derived: object = None  # the IR of a derivative (a `frontend.Derived`), which has no body of statements
    runs_again: bool = False  # in the reverse sweep, so that nothing but its arguments is kept


def map_merges(block: TypedBlock, labels: Mapping[Label, Label]) -> TypedBlock:
    """Rename the blocks to which the merges of a block refer."""
    statements = []
    for statement in block.statements:
        if isinstance(statement, Assign) and isinstance(statement.value, Phi):
            incoming = tuple((labels.get(label, label), variable) for label, variable in statement.value.incoming)
            statement = Assign(statement.target, Phi(incoming), statement.loc)
        statements.append(statement)
    return TypedBlock(tuple(statements), block.ending, block.loc)
