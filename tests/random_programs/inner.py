"""Inner functions and lambdas in random programs: they capture variables, and are called, passed on, checkpointed.

    h3 = lambda q2: math.sin(q2 * v1) + a[0]
    v4 = in_turn((h3, math.tanh), 0.5 * x)
    v5 = zg.checkpoint(h3)(v4)

They are used where they are defined, before any captured variable is assigned again. Their results are within NARROW.
"""

from __future__ import annotations

import random
from typing import Any

from tests.random_programs.expressions import Scope

# What programs with functions have beside those that are drawn: functions that take functions, one with a rule.
HELPERS = """import zygote_py as zg


def apply(f, q):
    return f(q)


def in_turn(fs, q):
    for f in fs:
        q = f(q)
    return q


def ruled(q, r):
    return math.sin(q) * r if q > 0.5 else math.cos(q) * r


@zg.adjoint(ruled)
def rule_of_ruled(q, r):
    s, c = math.sin(q), math.cos(q)
    if q > 0.5:
        return s * r, lambda d: (d * c * r, d * s)

    def back(d):
        return -d * s * r, d * c

    return c * r, back


"""


class Inner:
    """The generator's part for inner functions."""

    rng: random.Random
    put: Any
    fresh: Any
    narrow: Any
    indent: int

    def inner(self, scope: Scope, place: Any) -> None:
        """One or two inner functions, and a use of them."""
        rng = self.rng
        name = self.inner_function(scope)
        args = [self.narrow(scope, 1) for _ in range(2)]
        form = rng.randrange(8)
        if form in (4, 5) and scope.dicts:  # a function with a checkpoint captures no dict
            without = scope.inner()
            without.dicts = {}
            name = self.inner_function(without)
        match form:
            case 0:
                value = f"{name}({args[0]})"
            case 1:
                value = f"apply({name}, {args[0]})"
            case 2:
                value = f"in_turn(({name}, {rng.choice(('math.sin', 'math.tanh', name))}), {args[0]})"
            case 3:
                value = f"in_turn(({name}, {self.inner_function(scope)}, {name}), {args[0]})"
            case 4:
                value = f"zg.checkpoint({name})({args[0]})"
            case 5:
                value = f"apply(zg.checkpoint({name}), {args[0]})"
            case 6:
                value = f"ruled({name}({args[0]}), {args[1]})"
            case _:
                both = self.fresh("fs")
                self.put(f"{both} = ({name}, {self.inner_function(scope)})")
                value = f"0.5 * {both}[0]({args[0]}) - 0.5 * {both}[1]({args[1]})"
        self.put(f"{(result := self.fresh('v'))} = {value}")
        scope.floats.append(result)

    def inner_function(self, scope: Scope) -> str:
        """The name of a new inner function of one float."""
        name, parameter = self.fresh("h"), self.fresh("q")
        inside = scope.inner()
        inside.floats += [parameter] * 3
        body = self.narrow(inside, 2)
        if self.rng.random() < 0.5:
            self.put(f"{name} = lambda {parameter}: {body}")
            return name
        self.put(f"def {name}({parameter}):")
        self.indent += 1
        if self.rng.random() < 0.5:
            local = self.fresh("w")
            self.put(f"{local} = {body}")
            inside.floats.append(local)
            self.put(f"if {local} > {parameter}:")
            self.put(f"    return 0.5 * {local}")
            body = self.narrow(inside, 1)
        self.put(f"return {body}")
        self.indent -= 1
        return name
