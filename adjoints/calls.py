"""The derivative of a routine: a forward function, which keeps what the reverse function needs.

    %y = f %a, %n : f64             %p = f_forward %a, %da, %n : (f64, f64[:], i64)       f64 and two values kept
                                    %y = getitem %p, 0
    reverse:                        %dt = f_reverse @a, @da, @p_1, @p_2, %dy : f64

Arrays go in with their shadows, to which the reverse function adds, and come out with them; numbers have their adjoints
returned. What is kept is returned as well, one value each; a routine that may call itself keeps its values on a stack
that is passed along, one tuple for each call, as there is no telling how many there will be.

What an array that the caller still has holds when the reverse function runs, is not certain: the caller may have
written to it since. The derivative is made for what is known: of `unstable` parameters (and of results that are) the
forward function keeps what is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from zygote_py.adjoints.kinds import has_shadow, is_number
from zygote_py.adjoints.left_out import Degree
from zygote_py.ir.core import Instr, Param, Routine, Type, Value
from zygote_py.ir.routines import results_of


@dataclass(frozen=True)
class Case:
    """What the derivative of a routine depends on, by the numbers of its parameters.

    `active` are those that get an adjoint; what the `unstable` ones reach may be written to before the reverse function
    runs, and what the result reaches too if that is unstable. `left_out` is to what degree the results may be left out.
    """

    active: frozenset[int]
    unstable: frozenset[int]
    unstable_result: bool
    left_out: Degree = Degree.KEPT

    def __or__(self, other: Case) -> Case:
        return Case(
            self.active | other.active,
            self.unstable | other.unstable,
            self.unstable_result or other.unstable_result,
            max(self.left_out, other.left_out),
        )


@dataclass(frozen=True)
class Source:
    """Where the caller has an argument of a reverse function from.

    `kind` is "argument" (of the forward function), "result" (of it: results, their shadows, what it keeps) or "stack";
    `number` says which.
    """

    kind: str
    number: int


@dataclass(eq=False)
class Derivative:
    """The two functions, how they are called, and what of.

    `shadowed` are the parameters whose shadows the forward function takes, behind its own parameters, and then the
    stacks of `group` and, if it is recursive, how deep the recursion is. It returns the `results` of the routine, the
    shadows of those numbered in `shadowed_results`, and what it keeps. The reverse function takes the `sources` and the
    adjoints of the results numbered in `seeds`, and returns the adjoints of the parameters in `adjoints`.
    """

    routine: Routine
    case: Case
    forward: Routine
    reverse: Routine
    group: list[Derivative] = field(default_factory=list)  # those of routines that call each other
    recursive: bool = False
    kept: tuple[Type, ...] = ()
    record: Type | None = None  # of a recursive routine: what it pushes
    sources: tuple[Source, ...] = ()
    shadowed_results: tuple[int, ...] = ()
    stacks: list[Param] = field(default_factory=list)  # the parameters that are stacks, group by group

    @property
    def results(self) -> tuple[Type, ...]:
        """The types of what the routine returns."""
        return results_of(self.routine.function)

    @property
    def shadowed(self) -> tuple[int, ...]:
        """The parameters that are passed with a shadow."""
        params = self.routine.function.params
        return tuple(number for number in sorted(self.case.active) if has_shadow(params[number].type))

    @property
    def adjoints(self) -> tuple[int, ...]:
        """The parameters whose adjoints are returned."""
        params = self.routine.function.params
        return tuple(number for number in sorted(self.case.active) if is_number(params[number].type))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The results whose adjoints are passed."""
        return tuple(number for number, type in enumerate(self.results) if is_number(type))

    @property
    def moves_memory(self) -> bool:
        """Whether the reverse function does more than to compute adjoints of numbers from adjoints of numbers."""
        return bool(self.shadowed or self.shadowed_results or self.group)

    @property
    def returned(self) -> tuple[Type, ...]:
        """The types of all that the forward function returns."""
        shadows = tuple(self.results[number] for number in self.shadowed_results)
        return (*self.results, *shadows, *self.kept)


@dataclass(eq=False)
class Call:
    """A call of a forward function in a primal: the instruction, its items by number, and the stacks."""

    derivative: Derivative
    instr: Instr
    items: dict[int, Instr]
    stacks: tuple[Value, ...] = ()

    def shadow_of(self, number: int) -> Instr | None:
        """The shadow of a result, if the forward function gives one."""
        derivative = self.derivative
        if number not in derivative.shadowed_results:
            return None
        return self.items[len(derivative.results) + derivative.shadowed_results.index(number)]


class Deriver(Protocol):
    """Makes derivatives of routines, as they are asked for."""

    def of(self, routine: Routine, case: Case) -> Derivative:
        """The derivative of a routine for a case, or for one that includes it."""

    def plain(self, routine: Routine, case: Case) -> Derivative:
        """The derivative of a routine from what it computes, whatever its derivation."""


class Derivation(ABC):
    """How the derivative of a routine is made, if not from what it computes.

    `calls` are the routines that only derivatives call; the names of the two functions end in `suffixes`.
    """

    suffixes = ("forward", "reverse")

    @property
    @abstractmethod
    def calls(self) -> tuple[Routine, ...]:
        """The routines that only derivatives call."""

    @abstractmethod
    def derive(self, made: Derivative, deriver: Deriver) -> Sequence[Routine]:
        """Make the two functions; gives further routines that were made for them. Raises DifferentiationError."""


def plain_case(case: Case) -> Case:
    """How a routine is differentiated that is reversed as soon as it has run."""
    return Case(case.active, frozenset(), False, case.left_out)


def name_apart(params: Sequence[Param]) -> None:
    """Give the parameters of a function different names."""
    taken: set[str] = set()
    for param in params:
        base = param.hint or "t"
        number = 0
        while (name := f"{base}_{number}" if number else base) in taken:
            number += 1
        param.hint = name
        taken.add(name)
