"""Typed statements: what the adapter to Numba hands to the front end, free of Numba's internals.

A `TypedFunction` is a control-flow graph over variables. Variables are strings and have types; a variable may be
assigned in several places. `r *= x` in a loop is

    Assign("$imul", Operate(operator.mul, ("r.2", "x"), (float64, float64)), loc)
    Assign("r.1", Copy("$imul"), loc)

It knows Numba's types, which are public, and nothing else of Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from inspect import Signature
from typing import Any

from zygote_py.capture import Capture as Capture
from zygote_py.given import Given
from zygote_py.ir.core import Loc, Type

Variable = str
Label = int


@dataclass(frozen=True, slots=True)
class Parameter:
    """The argument with this number; those after the user's own are captured values."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value known while compiling: written in the source, or a global or captured variable that is `name`d."""

    value: object
    name: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """Another variable, cast to the target's type where that differs."""

    source: Variable


@dataclass(frozen=True, slots=True)
class Operate:
    """An operator on variables, each cast to the type that the operator takes it as."""

    op: Callable[..., object]
    args: tuple[Variable, ...]
    types: tuple[Type, ...]
    inplace: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`callee(*args, **keywords)`; `types` are those the callee takes them as, in the order of its parameters."""

    callee: Variable
    args: tuple[Variable, ...]
    keywords: tuple[tuple[str, Variable], ...]
    types: tuple[Type, ...]
    star: Variable | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Invoke:
    """The call of a function that stays one, with an argument for each of its parameters, captured values included."""

    function: TypedFunction
    args: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """`value.name`"""

    value: Variable
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """`value[index]`; where `index` is None, the index is the constant `static`."""

    value: Variable
    index: Variable | None
    static: object = None
    index_type: Type | None = None


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
    """Takes the next element; gives a pair (element, whether there was one)."""

    iterator: Variable


@dataclass(frozen=True, slots=True)
class Element:
    """The element in the pair of an `Advance`."""

    pair: Variable


@dataclass(frozen=True, slots=True)
class Present:
    """Whether there was an element, of the pair of an `Advance`."""

    pair: Variable


@dataclass(frozen=True, slots=True)
class Unpack:
    """The elements of `value`, of which there must be `count`, as a tuple."""

    value: Variable
    count: int


@dataclass(frozen=True, slots=True)
class Merge:
    """A phi of variables, by predecessor; None where nothing was assigned on that path."""

    incoming: tuple[tuple[Label, Variable | None], ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression that the front end has no form for; `kind` says what it is in the user's words."""

    kind: str


Expression = (
    Parameter
    | Constant
    | Copy
    | Operate
    | Call
    | Invoke
    | Attribute
    | Item
    | Build
    | Iterate
    | Advance
    | Element
    | Present
    | Unpack
    | Merge
    | Unknown
)


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`"""

    target: Variable
    value: Expression
    loc: Loc


@dataclass(frozen=True, slots=True)
class Act:
    """A statement that has no result; `kind` is "print" or names something that is not supported."""

    kind: str
    args: tuple[Variable, ...]
    loc: Loc


@dataclass(frozen=True, slots=True)
class Store:
    """`target[index] = value`, the value cast to the type that the store takes it as."""

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


Statement = Assign | Store | SetAttribute | Act


@dataclass(frozen=True, slots=True)
class GoTo:
    """Control goes to the block `label`."""

    label: Label
    loc: Loc


@dataclass(frozen=True, slots=True)
class Choose:
    """Control goes to `then` if `condition` holds, else to `orelse`."""

    condition: Variable
    then: Label
    orelse: Label
    loc: Loc


@dataclass(frozen=True, slots=True)
class Leave:
    """Returns a variable."""

    value: Variable
    loc: Loc


@dataclass(frozen=True, slots=True)
class Name:
    """A variable among the arguments of a `Fail`, the others being constants."""

    variable: Variable


@dataclass(frozen=True, slots=True, eq=False)
class Fail:
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


Ending = GoTo | Choose | Leave | Fail | Try


@dataclass(frozen=True, slots=True)
class TypedBlock:
    """Statements and what follows them."""

    statements: tuple[Statement, ...]
    ending: Ending
    loc: Loc


@dataclass(frozen=True, slots=True, eq=False)
class GivenParts:
    """What is given for a function, with the functions that belong to it, typed.

    `rule` gives the value and the pullback, of which `back` is the body: it takes the adjoint of the value and then, if
    `holds`, what the pullback captured. `inverse` takes the result, and the arguments behind the first, back to the
    first. `foreign` is the function as Numba can call it; it `is_foreign` if it can only be called.
    """

    given: Given
    foreign: Callable[..., object]
    is_foreign: bool = False
    rule: TypedFunction | None = None
    back: TypedFunction | None = None
    inverse: TypedFunction | None = None
    holds: bool = False

    @property
    def parts(self) -> list[TypedFunction]:
        """The functions that belong to it."""
        return [each for each in (self.rule, self.back, self.inverse) if each is not None]


@dataclass(frozen=True, slots=True, eq=False)
class TypedFunction:
    """A typed control-flow graph, its entry first; parameters beyond `argument_count` are the `hidden` captures.

    `names` are the names that variables have in the source. A variable whose type is that of a function holds that
    function; `callee_of` gives its body for the types of its arguments if it is to be inlined. If the variable holds an
    object or a method of it, the object is the first of these. `accessor_of` gives the type of a property's function,
    `member_of` that of a method of a jitclass object.
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
    given: GivenParts | None = None  # what is given for it, beside its body
    derived: object = None  # the IR of a derivative (a `frontend.Derived`), which has no body of statements
    runs_again: bool = False  # in the reverse sweep, so that nothing but its arguments is kept


def map_variables(node: Any, change: Callable[[Variable], Variable]) -> Any:
    """Return a statement, an expression, or an ending with other variables."""

    def changed(value: Any) -> Any:
        match value:
            case str():
                return change(value)
            case tuple():  # of variables, or of pairs that end with one
                return tuple(
                    (each[0], changed(each[1])) if isinstance(each, tuple) else changed(each) for each in value
                )
            case _:
                return map_variables(value, change) if is_dataclass(value) else value

    if isinstance(node, Fail):
        return replace(node, args=tuple(changed(arg) if isinstance(arg, Name) else arg for arg in node.args))
    return replace(node, **{name: changed(getattr(node, name)) for name in _fields_with_variables(node.__class__)})


@cache
def _fields_with_variables(node: type) -> tuple[str, ...]:
    """Return the names of the fields that hold variables, or an expression with variables."""
    return tuple(each.name for each in fields(node) if "Variable" in str(each.type) or each.type == "Expression")


def map_merges(block: TypedBlock, labels: Mapping[Label, Label]) -> TypedBlock:
    """Rename the blocks that the merges of a block name."""
    statements = []
    for statement in block.statements:
        if isinstance(statement, Assign) and isinstance(statement.value, Merge):
            incoming = tuple((labels.get(label, label), variable) for label, variable in statement.value.incoming)
            statement = Assign(statement.target, Merge(incoming), statement.loc)
        statements.append(statement)
    return TypedBlock(tuple(statements), block.ending, block.loc)
