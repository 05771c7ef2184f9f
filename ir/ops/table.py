"""The table of operations: one record for each callable that instructions call.

    operation(operator.add, family=Family.ARITHMETIC, elements=2, syntax="+", commutative=True)
    of(operator.add).family         Family.ARITHMETIC
    of(np.load).effect              Effect.WRITE: a callable without a record may have any effect

A record holds properties that more than one pass queries; none concerns derivatives. The functions of NumPy, `math` and
`cmath` need no entry to count as pure: `of` derives their records on demand.
"""

from __future__ import annotations

import cmath
import dataclasses
import enum
import inspect
import math
import operator
import random
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

import numpy as np

from zygote_py.ir.core import Foreign, Routine, Type
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.special_functions import Special

Op = Callable[..., Any]


class Effect(enum.Enum):
    """The effect of an instruction apart from computing its result."""

    PURE = "pure"  # may be removed, repeated, merged and moved
    READ = "read"  # reads memory: may be removed, and repeated while no write intervenes
    ALLOCATE = "allocate"  # allocates a new object, from memory that it may read: may be removed, not merged
    WRITE = "write"  # must not move


class Role(enum.Enum):
    """The role of a primitive in moving values, which analyses treat alike."""

    NONE = "none"
    READ = "read"  # args[0] at an index
    STORE = "store"  # stores args[1] in the array args[0]
    APPEND = "append"  # appends args[1] to the list args[0]
    POP = "pop"  # removes the last item of the list args[0]
    CHOOSE = "choose"  # one of args[1:], chosen by args[0]
    GUARD = "guard"  # args[0], or zero
    PACK = "pack"  # a tuple of the arguments
    ALLOCATE = "allocate"  # an array whose lengths are the arguments
    COPY = "copy"  # a copy of args[0], in newly allocated memory
    CHECK = "check"  # raises if lengths do not fit
    LENGTH = "length"  # the length of an axis or of a sequence
    RELEASE = "release"
    EXTREME = "extreme"  # raises or lowers an element of the array args[0] to args[1]
    BARRIER = "barrier"  # others may write to the arguments meanwhile


FILLS = (Role.STORE, Role.APPEND, Role.EXTREME)  # store args[1] in memory that args[0] reaches


class Family(enum.Enum):
    """The way an elementwise operation treats the types of its operands."""

    FUNCTION = "function"
    ARITHMETIC = "arithmetic"
    NEGATION = "negation"
    IDENTITY = "identity"
    TRUE_DIVISION = "true division"
    WHOLE_DIVISION = "whole division"
    POWER = "power"
    BITWISE = "bitwise"
    INVERSION = "inversion"
    LOGICAL = "logical"
    COMPARISON = "comparison"
    IDENTITY_TEST = "identity test"
    PARAMETRIC = "parametric"  # of one array and optional scalar parameters
    CAST = "cast"


class Cost(enum.IntEnum):
    """The cost of an operation, roughly in quarters of an addition."""

    CHEAP = 2
    READ = 10
    DIVISION = 90
    FUNCTION = 1000


@dataclass(frozen=True, slots=True)
class Comparison:
    """An ordering of numbers.

    `direction` is 1 for `<` and `<=`, -1 for `>` and `>=`, 0 for `==` and `!=`; `of_equals` is the result for equal
    operands.
    """

    op: Op
    direction: int
    of_equals: bool

    @property
    def mirrored(self) -> Comparison:
        """Return the equivalent comparison of the exchanged operands."""
        return COMPARISONS[-self.direction, self.of_equals]

    @property
    def negated(self) -> Comparison:
        """Return the comparison that holds exactly where this one does not."""
        return COMPARISONS[-self.direction, not self.of_equals]

    @property
    def strict(self) -> Op:
        """Return the ordering of the same direction that does not hold for equal operands."""
        return COMPARISONS[self.direction, False].op

    @property
    def past(self) -> int:
        """Return the offset from the bound of a counter to the first number that the counter does not reach."""
        return self.direction * self.of_equals


COMPARISONS = {
    (direction, of_equals): Comparison(op, direction, of_equals)
    for op, direction, of_equals in (
        (operator.lt, 1, False),
        (operator.le, 1, True),
        (operator.gt, -1, False),
        (operator.ge, -1, True),
        (operator.eq, 0, True),
        (operator.ne, 0, False),
    )
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Operation:
    """The properties of a callable.

    Parameters
    ----------
    function
        The callable.
    name
        Its name in IR text.
    effect
        Its effect for arguments of any type; `effects.effect` refines it by the types.
    elements
        The number of operands that each element of the result is computed from, one element each; 0 if it is not
        elementwise.
    scalar
        The operation on two elements, if it has a different name: `operator.add` for `np.add`.
    contents
        "zero", "unset" or "empty" for operations that allocate an array or a list with these contents.
    exact
        The types whose constants are folded, since NumPy and Numba agree bitwise: "f" floats, "i" integers,
        "b" booleans, "c" complex numbers, "p" complex numbers and their parts.
    cast_to
        The result type of a cast.
    syntax
        Its Python syntax: "a + b", "-a".
    view
        Its result is a view of its first argument, if both are arrays.
    fresh
        It returns a new array: never an argument, nor a view of one.
    handle_only
        It reads the handles of its arguments, never elements.
    silent
        Its effects do not include writes to memory that its arguments reach.
    draws
        It draws random numbers, or changes the state of the generator.
    raises
        It raises for some operands.
    raises_for_zero
        It raises for some operands that are 0 under Numba's error model "python".
    divides
        It divides by its second operand, and raises if that is 0 under Numba's error model "python".
    commutative
        Its two operands may be exchanged.
    sums
        It is a signed sum of its operands.
    adds
        It adds to elements of its first argument, and does not depend on them otherwise.
    scales
        It is linear in one operand, with a factor computed from the others.
    truth
        It operates on booleans, or compares numbers, exactly as in Python.
    nonnegative
        Its result is a nonnegative integer.
    shapes_decide
        Whether it raises depends only on the shapes of its arguments.
    scalar_product
        For two vectors it is their scalar product.
    duplicable
        It costs about as much as reading its result from memory.
    remade
        It is recomputed in the reverse half of a function rather than stored.
    hoistable
        It may be hoisted to the preheader of its loop.
    signature
        Its parameters, if an instruction takes by position what a call passes by keyword. A default of None is always
        passed, except that of `out`; another default only if a later argument follows.
    converts_output
        It converts the result to the element type of an output array, whatever that is.
    takes_display
        It makes an array of a list or a tuple, which need not exist at run time.
    safe_in_try
        It raises no exceptions that a function could catch.
    in_place
        The operator that does the same in place.
    lengths
        Of the axes of its result, if each is one of an axis of an argument: the numbers of argument and axis. A result
        with fewer axes has the first of them.
    """

    function: Op
    name: str
    effect: Effect = Effect.WRITE
    role: Role = Role.NONE
    family: Family = Family.FUNCTION
    elements: int = 0
    scalar: Op | None = None
    comparison: Comparison | None = None
    contents: str = ""
    exact: str = ""
    cost: Cost = Cost.FUNCTION
    cast_to: Type | None = None
    syntax: str = ""
    view: bool = False
    fresh: bool = False
    handle_only: bool = False
    silent: bool = False
    draws: bool = False
    raises: bool = False
    raises_for_zero: bool = False
    divides: bool = False
    commutative: bool = False
    sums: bool = False
    adds: bool = False
    scales: bool = False
    truth: bool = False
    nonnegative: bool = False
    shapes_decide: bool = False
    scalar_product: bool = False
    duplicable: bool = False
    remade: bool = False
    hoistable: bool = False
    signature: inspect.Signature | None = None
    converts_output: bool = False
    takes_display: bool = False
    safe_in_try: bool = False
    in_place: Op | None = None
    lengths: tuple[tuple[int, int], ...] = ()

    @property
    def inputs(self) -> int:
        """Return the number of arguments before an output array; 0 if it takes none."""
        if isinstance(self.function, np.ufunc):
            return self.elements
        names = () if self.signature is None else tuple(self.signature.parameters)
        return names.index("out") if "out" in names else 0

    @property
    def may_raise(self) -> bool:
        """Return whether a compiled call can raise, for some arguments."""
        return self.effect is Effect.WRITE or self.role is Role.CHECK or self.raises or self.raises_for_zero


_OPERATIONS: dict[Op, Operation] = {}
_BY_NAME: dict[str, Op] = {}


def operation(*functions: Op, **fields: Any) -> None:
    """Set properties of callables; their other known properties are unchanged.

    A `name` registers a callable under it.
    """
    for function in functions:
        if "name" in fields:
            assert _BY_NAME.setdefault(fields["name"], function) is function, fields["name"]
        _OPERATIONS[function] = dataclasses.replace(of(function), **fields)


def primitive(**fields: Any) -> Callable[[Op], Any]:
    """Register a function as an operation of the IR, under its own name. A decorator."""

    def enter(function: Op) -> Op:
        operation(function, **{"name": function.__name__, "effect": Effect.PURE, "cost": Cost.CHEAP} | fields)
        OWN.add(function)
        return function

    return enter


OWN: set[Op] = set()


def of(op: Op) -> Operation:
    """Return the record of a callable."""
    return _OPERATIONS.get(op) or _derived(op)


def properties(value: object) -> Operation:
    """Return the record of a value that is called; an empty record of one that has none."""
    try:
        return of(value) if callable(value) else _EMPTY
    except TypeError:  # it cannot be hashed
        return _EMPTY


def name_of(op: Op) -> str:
    """Return the name of a callable in IR text: `mul`, `math.sin`, `np.exp`, `float`, `package.module.function`."""
    return of(op).name


def module_of(op: Op) -> str:
    """Return the name of the module of a callable; methods of built-in types (`str.upper`) have none."""
    return getattr(op, "__module__", None) or "?"


def is_method(op: Op) -> bool:
    """Return whether a callable is a method of a built-in type or of NumPy's generator: `str.upper`."""
    return isinstance(op, MethodDescriptorType) or module_of(op) == np.random.Generator.__module__


def named(name: str) -> Op:
    """Return the callable with this `name_of`. Raises KeyError if there is none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    module, _, attribute = name.rpartition(".")
    for prefix, namespace in _NAMESPACES.items():
        if module == prefix and hasattr(namespace, attribute):
            found: Op = getattr(namespace, attribute)
            return found
    raise KeyError(name)


_EMPTY = Operation(function=Operation, name="?")
_NAMESPACES = {"math": math, "cmath": cmath, "np": np, "np.linalg": np.linalg}
_RANDOM = ("numpy.random", "numpy.random.mtrand", "numpy.random._generator", "random")
# NumPy's functions are objects of these types, including those that write to their arguments or to files.
_NUMPY_FUNCTIONS = (FunctionType, BuiltinFunctionType, type(np.sum))
_RAISING = frozenset({math.factorial, math.comb, math.perm})
_WRITING = frozenset(
    {np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask, np.save, np.savetxt, np.load}
)


def _derived(op: Op) -> Operation:
    """Return the record of a callable without an entry. It is cached if a module has the callable under its name."""
    name: str = getattr(op, "__name__", "?")
    if isinstance(op, Routine):
        return Operation(function=op, name=name)
    if isinstance(op, Special):
        return Operation(function=op, name=f"special.{name}", effect=Effect.PURE)
    if isinstance(op, Foreign):
        return Operation(function=op, name=_qualified(op), silent=True)
    if module_of(op) in _RANDOM or isinstance(getattr(op, "__self__", None), random.Random):
        owner = {"numpy.random._generator": "np.random.Generator", "random": "random"}.get(module_of(op), "np.random")
        return Operation(function=op, name=f"{owner}.{name}", draws=True, silent=name not in ("shuffle", "permuted"))
    elements = op.nin if isinstance(op, np.ufunc) and op.nout == 1 else 0
    cost = Cost.CHEAP if module_of(op) in ("_operator", "builtins") else Cost.FUNCTION
    for prefix, namespace in _NAMESPACES.items():
        if vars(namespace).get(name) is op:
            pure = namespace in (math, cmath) or (op not in _WRITING and _is_function_of(namespace, op))
            found = Operation(
                function=op,
                name=f"{prefix}.{name}",
                effect=Effect.PURE if pure else Effect.WRITE,
                elements=elements,
                fresh=pure and (isinstance(op, np.ufunc) or namespace is np.linalg),
                safe_in_try=isinstance(op, np.ufunc) or (namespace is math and op not in _RAISING),
            )
            return _OPERATIONS.setdefault(op, found)
    return Operation(function=op, name=_qualified(op), elements=elements, cost=cost)


def _is_function_of(namespace: Any, op: Op) -> bool:
    return isinstance(op, np.ufunc) or (isinstance(op, _NUMPY_FUNCTIONS) and op.__name__ in namespace.__all__)


def _qualified(op: Op) -> str:
    return f"{module_of(op)}.{getattr(op, '__qualname__', getattr(op, '__name__', '?'))}"
