"""The derivative of a routine: a forward function, which saves the residuals for a reverse function.

    %y = f %a, %n : f64             %p = f_forward %a, %da, %n : (f64, f64[:], i64)       f64 and two residuals
                                    %y = getitem %p, 0
    reverse:                        %dt = f_reverse @a, @da, @p_1, @p_2, %dy : f64

Arrays are passed and returned with their shadows, to which the reverse function adds; the adjoints of numbers are
returned. Residuals are returned as well, individually; a recursive routine pushes its residuals on a stack that is
passed along, one tuple per call, since the number of calls is unknown.

The caller may overwrite an array between the forward and the reverse function. The derivative is made for the
parameters (and results) that are `clobbered` in this sense: the forward function saves the values read from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from zygote_py.adjoints.analysis import Degree, has_shadow, is_number
from zygote_py.ir import Instr, Param, Routine, Type, Value, results_of
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Case:
    """The properties, besides its types, that the derivative of a routine depends on, by parameter index.

    `active` are the parameters that get an adjoint; memory that the `clobbered` ones reach may be written to before the
    reverse function runs, and so may the result's memory if that is unstable. `left_out` is the degree to which the
    results may be left out.
    """

    active: frozenset[int]
    clobbered: frozenset[int]
    clobbered_result: bool
    left_out: Degree = Degree.KEPT

    def __or__(self, other: Case) -> Case:
        return Case(
            self.active | other.active,
            self.clobbered | other.clobbered,
            self.clobbered_result or other.clobbered_result,
            max(self.left_out, other.left_out),
        )


@dataclass(frozen=True)
class Source:
    """The caller's source of an argument of a reverse function.

    `kind` is "argument" (of the forward function), "result" (of it: results, their shadows, residuals) or "stack";
    `number` is the index.
    """

    kind: str
    number: int


@dataclass(eq=False)
class Derivative:
    """The forward and the reverse function of a routine, with their signatures.

    `shadowed` are the parameters whose shadows the forward function takes, after its own parameters, followed by the
    stacks of `group` and, if it is recursive, the depth of the recursion. It returns the `results` of the routine, the
    shadows of those numbered in `shadowed_results`, and the residuals. The reverse function takes the `sources` and the
    adjoints of the results numbered in `seeds`, and returns the adjoints of the parameters in `adjoints`.
    """

    routine: Routine
    case: Case
    forward: Routine
    reverse: Routine
    group: list[Derivative] = field(default_factory=list)  # those of mutually recursive routines
    recursive: bool = False
    kept: tuple[Type, ...] = ()
    record: Type | None = None  # type of the records that a recursive routine pushes
    sources: tuple[Source, ...] = ()
    shadowed_results: tuple[int, ...] = ()
    stacks: list[Param] = field(default_factory=list)  # the parameters that are stacks, group by group

    @property
    def results(self) -> tuple[Type, ...]:
        """Return the types of the routine's results."""
        return results_of(self.routine.function)

    @property
    def shadowed(self) -> tuple[int, ...]:
        """Return the parameters that are passed with a shadow."""
        params = self.routine.function.params
        return tuple(number for number in sorted(self.case.active) if has_shadow(params[number].type))

    @property
    def adjoints(self) -> tuple[int, ...]:
        """Return the parameters whose adjoints are returned."""
        params = self.routine.function.params
        return tuple(number for number in sorted(self.case.active) if is_number(params[number].type))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the results whose adjoints are passed."""
        return tuple(number for number, type in enumerate(self.results) if is_number(type))

    @property
    def moves_memory(self) -> bool:
        """Return whether the reverse function does more than map adjoints of numbers to adjoints of numbers."""
        return bool(self.shadowed or self.shadowed_results or self.group)

    @property
    def returned(self) -> tuple[Type, ...]:
        """Return the types of all values that the forward function returns."""
        shadows = tuple(self.results[number] for number in self.shadowed_results)
        return (*self.results, *shadows, *self.kept)


@dataclass(eq=False)
class Call:
    """A call of a forward function in a primal: the instruction, its items by index, and the stacks."""

    derivative: Derivative
    instr: Instr
    items: dict[int, Instr]
    stacks: tuple[Value, ...] = ()

    def shadow_of(self, number: int) -> Instr | None:
        """Return the shadow of a result, if the forward function returns one."""
        derivative = self.derivative
        if number not in derivative.shadowed_results:
            return None
        return self.items[len(derivative.results) + derivative.shadowed_results.index(number)]


class Deriver(Protocol):
    """Makes derivatives of routines on demand."""

    def of(self, routine: Routine, case: Case) -> Derivative:
        """Return the derivative of a routine for a case, or for one that includes it."""

    def plain(self, routine: Routine, case: Case) -> Derivative:
        """Return the derivative of a routine from its function, whatever its derivation."""


class Derivation(ABC):
    """The way the derivative of a routine is made, if not from its function.

    `calls` are the routines that only derivatives call; the names of the two functions end in `suffixes`.
    """

    suffixes = ("forward", "reverse")

    @property
    @abstractmethod
    def calls(self) -> tuple[Routine, ...]:
        """Return the routines that only derivatives call."""

    @abstractmethod
    def derive(self, made: Derivative, deriver: Deriver) -> Sequence[Routine]:
        """Make the two functions; return further routines that were made for them. Raises DifferentiationError."""


def plain_case(case: Case) -> Case:
    """Return the case of a routine that is reversed immediately after it has run."""
    return Case(case.active, frozenset(), False, case.left_out)


def name_apart(params: Sequence[Param]) -> None:
    """Make the names of a function's parameters distinct."""
    taken: set[str] = set()
    for param in params:
        base = param.hint or "t"
        number = 0
        while (name := f"{base}_{number}" if number else base) in taken:
            number += 1
        param.hint = name
        taken.add(name)
