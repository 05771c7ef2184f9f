"""Scalar rules: rows of adjoints written as text, and the table of the rows.

A row defines, for each argument of a callable, its adjoint as a Python expression over the names of the arguments, the
result `y` and the result's adjoint `dy`. `None` says that no gradient flows to that argument.

    rule(math.sin, np.sin, x="cos(x) * dy")
    rule(operator.mul, a="dy * b", b="dy * a")
    rule(math.ldexp, x="ldexp(dy, i)", i=None)
    flat(operator.lt, operator.le, math.floor)

Every expression is linear in `dy`, so that the same row serves forward mode. The names it uses are the values that
must be kept for the reverse sweep. Rules whose expressions depend on the types or on constant arguments are functions
from an instruction to a `Rule`; `structural` registers them.

A rule covers one instruction only. How contributions add up and where kept values live is not decided here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from zygote_py.adjoints.rules.formulas.terms import names_in, parse
from zygote_py.ir import Instr
from zygote_py.ir.lazy_dataclass import dataclass

Op = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Rule:
    """The names of a callable's arguments and, for each, its adjoint's expression (None: no gradient flows)."""

    names: tuple[str, ...]
    adjoints: tuple[str | None, ...]

    def __post_init__(self) -> None:
        assert len(self.names) == len(self.adjoints), self

    def passes(self, index: int) -> bool:
        """Return whether a gradient flows to argument `index`."""
        return self.adjoints[index] is not None

    def is_unknown(self, index: int) -> bool:
        """Return whether the derivative in argument `index` is not known."""
        return self.adjoints[index] == UNKNOWN


# The adjoint of an argument whose derivative cannot be computed: the argument must not carry one.
UNKNOWN = "unknown"

Structural = Callable[[Instr], Rule | None]

ROWS: dict[Op, list[Rule]] = {}
STRUCTURAL: dict[Op, Structural] = {}


def row(**adjoints: str | None) -> Rule:
    """Return a rule from its arguments' adjoints, in the order of the arguments."""
    return Rule(tuple(adjoints), tuple(adjoints.values()))


def rule(*ops: Op, **adjoints: str | None) -> None:
    """Register one row for each of `ops` (names of one callable in `operator`, `math` and `numpy`, say)."""
    made = row(**adjoints)
    for op in dict.fromkeys(ops):
        rows = ROWS.setdefault(op, [])
        assert op not in STRUCTURAL, op
        assert all(len(made.names) != len(other.names) for other in rows), op
        rows.append(made)


def flat(*ops: Op) -> None:
    """Register callables that have derivative zero wherever they have one, in all their arguments, however many."""

    def none(instr: Instr) -> Rule:
        names = tuple(f"x{k}" for k in range(len(instr.args)))
        return Rule(names, (None,) * len(names))

    structural(*ops)(none)


def structural(*ops: Op) -> Callable[[Structural], Structural]:
    """Register a function that picks the rule of an instruction by its types and constant arguments."""

    def register(function: Structural) -> Structural:
        for op in dict.fromkeys(ops):
            assert op not in STRUCTURAL, op
            assert op not in ROWS, op
            STRUCTURAL[op] = function
        return function

    return register


@functools.cache
def _uses(expression: str) -> frozenset[str]:
    return names_in(parse(expression))


def uses(rule: Rule, index: int) -> frozenset[str]:
    """Return the names, except `dy`, whose values the adjoint of argument `index` needs: arguments, and `y`."""
    expression = rule.adjoints[index]
    return _uses(expression) - {"dy"} if expression is not None else frozenset()
