"""Random programs as Python source, with inputs to run them at.

    program = generate(random.Random(7), arrays=True)
    print(program.text)                     # def f(x, y, n, a): ...
    load(program.text)(*program.inputs[0])  # a float

The programs nest loops with bounds that depend on data, branches, `break`, `continue`, loop `else` and early returns,
and overwrite, swap, pack and unpack their variables. They end after a bounded number of steps, keep their values in
range, stay inside the domains of what they call and read arrays only inside their bounds. With `writes` they also make,
view, swap and write to arrays (`tests.random_programs.arrays`), with `functions` they call others, which may call each
other and themselves (`tests.random_programs.functions`), and inner functions that capture variables, pass these on,
give them a checkpoint, and call one with a rule (`tests.random_programs.inner`). They do not raise, except in a `try`.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from tests.checking.trees import in_layout
from tests.random_programs import callees, entries, steering
from tests.random_programs.arrays import ArrayExpressions, ArrayStatements
from tests.random_programs.callees import Callings, Decorated
from tests.random_programs.dicts import DictStatements
from tests.random_programs.expressions import NARROW, Expressions, Interval, Real, Scope
from tests.random_programs.functions import Calls, Place, Signature
from tests.random_programs.inner import HELPERS, Inner
from tests.random_programs.loops import Loops
from tests.random_programs.nested import IMPORTS, Nested

HEADER = "import math\n\nimport numpy as np\n\n\n"
INT = Interval(-9, 9)


@dataclass(frozen=True)
class Program:
    """The text of a module that defines `f`, the arguments to call it with, and whether it works on whole arrays.

    The `stand_in` is the text up to `f` in which decorated callees are ordinary functions, if there are any.
    """

    text: str
    inputs: tuple[tuple[Any, ...], ...]
    writes: bool = False
    features: tuple[str, ...] = ()
    stand_in: str = ""
    held: int | None = None  # if it is to take its arguments in containers, the seed of which

    @property
    def ordinary(self) -> str:
        """The text in which all that `f` calls are ordinary Python functions."""
        return self.stand_in + self.text[self.text.index("def f(") :] if self.stand_in else self.text

    @property
    def passes_functions(self) -> bool:
        """Whether it has inner functions, which Numba itself does not compile wherever they are passed on."""
        return "import zygote_py" in self.text


def load(text: str, filename: str = "<random program>") -> Callable[..., Any]:
    """The function `f` of a module's text, with its source lines known to tracebacks."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(text, filename, "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


def compiled(text: str) -> Any:
    """The function `f` of a module's text, and those that it calls, compiled by Numba."""
    function = load(text)
    scope = function.__globals__
    for name in [name for name, value in scope.items() if inspect.isfunction(value)]:
        scope[name] = numba.njit(scope[name])
    return scope["f"]


def generate(
    rng: random.Random,
    arrays: bool,
    inputs: int = 2,
    writes: bool = False,
    functions: bool = False,
    nested: bool = False,
    features: Collection[str] = (),
) -> Program:
    """A random program, the same for the same state of `rng`; `writes` adds to `arrays` that they are written to.

    With `functions` it calls others, with `nested` it takes derivatives of them besides; it has each of the `features`.
    """
    return _Generator(rng, arrays, writes, functions, nested=nested, features=features).program(inputs)


class _Generator(Calls, Inner, Nested, Callings, Loops):
    def __init__(
        self,
        rng: random.Random,
        arrays: bool,
        writes: bool,
        functions: bool = False,
        known: Sequence[Signature] = (),
        own: Signature | None = None,
        nested: bool = False,
        features: Collection[str] = (),
    ) -> None:
        """`known` are functions that may be called, `own` is the one that is drawn, if it is not `f`."""
        self.rng = rng
        self.functions = functions
        self.nested = nested
        self.known = list(known)
        self.own = own
        self.own_calls = 0
        self.arrays = arrays or writes
        self.writes = writes
        self.on_arrays = ArrayStatements(self)
        self.on_steering = steering.Steering(self, self.on_arrays) if callees.STEERING in features else None
        self.on_dicts = DictStatements(self) if entries.DICTS in features else None
        self.decorations = [each for each in callees.FEATURES if each in features and each != callees.STEERING]
        self.decorated = Decorated(rng)
        self.names = 0
        self.lines: list[str] = []
        self.indent = 1

    def program(self, inputs: int) -> Program:
        rng = self.rng
        others = [self.function(number) for number in range(1, rng.randint(1, 3) + 1)] if self.functions else []
        scope = Scope(reach=NARROW if self.writes else 2.0)
        kinds: dict[str, Any] = dict.fromkeys("xyz"[: rng.randint(1, 3)], "float")
        if rng.random() < 0.75:
            kinds["n"] = Interval(0, 5)
        if rng.random() < 0.2:
            kinds["m"] = Interval(-3, 4)
        if self.arrays:
            kinds["a"] = (rng.choice((0, 1, 2, 3, 4, 5)),) if rng.random() < 0.8 else self._matrix()
            if rng.random() < 0.5:
                kinds["b"] = (rng.choice((1, 2, 3, 4)),) if rng.random() < 0.5 else self._matrix()
        if self.on_steering is not None:
            shapes = [kind for kind in kinds.values() if isinstance(kind, tuple) and not isinstance(kind, Interval)]
            kinds |= steering.parameters(rng, [shape[0] for shape in shapes])
        if callees.OPTIONAL in self.decorations and rng.random() < 0.6:
            kinds["q"] = rng.choice((None, "float"))
        for feature in self.decorations:
            for number in range(1, rng.choice((1, 1, 2)) + 1):
                self.decorated.draw(feature, number, self._of_callee)
        for name, kind in kinds.items():
            if name == "q":
                scope.options.append(name)
            elif kind == "float":
                scope.floats.append(name)
            elif isinstance(kind, Interval):
                scope.ints[name] = kind
            elif isinstance(kind, steering.Mask):
                scope.masks[name] = kind.size
            elif isinstance(kind, steering.Places):
                scope.places[name] = kind.size, kind.range
            else:
                scope.arrays[name] = kind
        if self.writes:
            layouts = {name: "A" if rng.random() < 0.15 else "C" for name in scope.arrays}
            scope.layouts |= layouts
        self.block(scope, Place(depth=rng.choice((1, 2, 3, 3))), rng.choice((1, 2, 3, 4, 5, 6, 8)))
        for feature in self.decorations:
            if feature not in self.decorated.used:
                self.decorated_call(scope, feature)
        while self.on_dicts is not None and self.on_dicts.count < 6:
            self.on_dicts.statement(scope, Place(depth=0))
        while self.on_steering is not None and self.on_steering.count < 6:
            self.on_steering.statement(scope)
        self.finish(scope)
        text = ast.unparse(ast.parse(f"def f({', '.join(kinds)}):\n" + "\n".join(self.lines)))
        drawn = tuple(tuple(self.argument(kind) for kind in kinds.values()) for _ in range(inputs))
        if self.writes:
            order = [layouts.get(name, "") for name in kinds]
            pairs = (zip(args, order, strict=True) for args in drawn)
            drawn = tuple(tuple(in_layout(arg, layout) if layout else arg for arg, layout in each) for each in pairs)
        header = HEADER.rstrip("\n") + "\n" + self.nested * IMPORTS + HELPERS if self.functions else HEADER
        if self.on_steering is not None:
            header += steering.HELPERS
        if self.on_dicts is not None:
            header += entries.HELPERS
        between = "".join(f"{other}\n\n\n" for other in others)
        stand_in = ""
        if self.decorations:
            stand_in = callees.STAND_IN_IMPORTS + header + self.decorated.stand_ins + between
            header = callees.IMPORTS + header + self.decorated.text
        features = (*[callees.STEERING] * (self.on_steering is not None), *self.decorations)
        if self.on_dicts is not None:
            stand_in = entries.STAND_IN_IMPORTS + (stand_in or header + between)
            header = entries.IMPORTS + header
            features += (entries.DICTS,)
        return Program(header + between + text + "\n", drawn, self.writes, features, stand_in)

    def _of_callee(self, own: Signature) -> _Generator:
        return _Generator(self.rng, self.arrays, self.writes, own=own)

    def _matrix(self) -> tuple[int, int]:
        return self.rng.randint(1, 3), self.rng.randint(1, 3)

    def argument(self, kind: Any) -> Any:
        rng = self.rng
        if kind == "float":
            return rng.uniform(-2.0, 2.0)
        if isinstance(kind, Interval):
            return rng.randint(kind.low, kind.high)
        if kind is None:
            return None
        if isinstance(kind, steering.Mask | steering.Places):
            return kind.drawn(rng)
        count = math.prod(kind)
        values = [0.0 if rng.random() < 0.03 else rng.uniform(-1.5, 1.5) for _ in range(count)]
        return np.array(values, np.float64).reshape(kind)

    # Lines and names

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def at(self, scope: Scope) -> Expressions:
        if self.on_dicts is not None:
            return self.on_dicts.at(scope)
        return ArrayExpressions(self.rng, scope) if self.writes else Expressions(self.rng, scope)

    def narrow(self, scope: Scope, depth: int = 3) -> str:
        """A float expression that an ordinary variable may hold."""
        expressions = self.at(scope)
        return expressions.flat(expressions.real(depth), NARROW).text

    def finish(self, scope: Scope) -> None:
        rng = self.rng
        chosen = [name for name in scope.floats + scope.wides if rng.random() < 0.7]
        terms = [f"{rng.choice(('', '0.5 * ', '-1.25 * '))}{name}" for name in chosen]
        if scope.ints and rng.random() < 0.3:
            terms.append(rng.choice(list(scope.ints)))
        terms.append(self.narrow(scope, 2))
        terms += [f"{0.5 + rng.random():.2f} * np.sum({name})" for name in scope.heaps if rng.random() < 0.8]
        if self.writes:
            terms += [
                f"{0.5 + rng.random():.2f} * np.sum({name} * {name})" for name in scope.arrays if rng.random() < 0.5
            ]
        if self.on_dicts is not None:
            terms += self.on_dicts.sums(scope)
        if self.on_steering is not None:
            terms += self.on_steering.sums(scope)
        self.put(f"return {' + '.join(f'({term})' for term in terms)}")

    # Statements

    def block(self, scope: Scope, place: Place, count: int) -> None:
        """Statements on one level; `scope` learns what they define."""
        before = len(self.lines)
        for _ in range(count):
            self.statement(scope, place)
        if len(self.lines) == before:
            self.put("pass")

    def statement(self, scope: Scope, place: Place) -> None:
        simple = (
            (self.assign, 6),
            (self.overwrite, 6),
            (self.accumulate, 3),
            (self.tuples, 3),
            (self.whole, 3),
            (self.condition, 2),
            (self.once_only, 1),
            (self.holds, 1),
            (self.leave_loop, 3 if place.in_loop else 0),
            (self.leave, 1),
        )
        if self.writes:
            simple += ((self.array_statement, 24),)
        if self.known:
            simple += ((self.call, 12), (self.inner, 10))
        if self.nested:
            simple += ((self.derived, 20),)
        if self.on_steering is not None:
            simple += ((self.steer, 40),)
        if self.on_dicts is not None:
            simple += ((self.keep, 40),)
        if self.decorations:
            simple += ((self.decorated_one, 16),)
        compound = ((self.branch, 7), (self.loop, 8), (self.guarded, 1)) if place.depth > 0 else ()
        choices = [choice for choice in simple + compound if choice[1]]
        chosen = self.rng.choices([c[0] for c in choices], [c[1] for c in choices])[0]
        chosen(scope, place)

    def array_statement(self, scope: Scope, place: Place) -> None:
        self.on_arrays.statement(scope)

    def steer(self, scope: Scope, place: Place) -> None:
        assert self.on_steering is not None
        self.on_steering.statement(scope)

    def keep(self, scope: Scope, place: Place) -> None:
        assert self.on_dicts is not None
        self.on_dicts.statement(scope, place)

    def decorated_one(self, scope: Scope, place: Place) -> None:
        self.decorated_call(scope, self.rng.choice(self.decorations))

    def assign(self, scope: Scope, place: Place) -> None:
        name = self.fresh("v")
        if self.rng.random() < 0.1:
            other = self.fresh("v")
            self.put(f"{name} = {other} = {self.narrow(scope)}")
            scope.floats.append(other)
        else:
            self.put(f"{name} = {self.narrow(scope)}")
        scope.floats.append(name)

    def overwrite(self, scope: Scope, place: Place) -> None:
        """A new value for a variable, in place or not."""
        rng = self.rng
        free = [name for name in scope.floats if name not in scope.fixed]
        if not free:
            return self.assign(scope, place)
        name = rng.choice(free)
        expressions = self.at(scope)
        match rng.randrange(6):
            case 0:
                self.put(f"{name} *= {expressions.flat(expressions.real(2), 1.0).text}")
            case 1:
                divisor = expressions.positive(2)
                self.put(f"{name} /= {divisor.text if divisor.low >= 1 else f'1.0 + {divisor.text}'}")
            case 2:
                other = expressions.flat(expressions.real(2), NARROW).text
                self.put(f"{name} = 0.5 * {name} + 0.5 * ({other})")
            case 3:
                self.put(f"{name} {rng.choice(('+=', '-='))} {self.narrow(scope, 2)}")
                self.put(f"{name} = {expressions.flat(Real(name, 2 * NARROW), NARROW).text}")
            case _:
                self.put(f"{name} = {self.narrow(scope)}")
        return None

    def accumulate(self, scope: Scope, place: Place) -> None:
        """A running sum or product; it starts outside loops, as an int now and then."""
        rng = self.rng
        free = [name for name in scope.wides if name not in scope.fixed]
        if not place.in_loop or not free:
            if place.in_loop:
                return
            name = self.fresh("s")
            self.put(f"{name} = {rng.choice(('0.0', '1.0', '0', self.narrow(scope, 1)))}")
            if rng.random() < 0.3:
                self.put(f"{name} += {self.narrow(scope, 2)}")
            scope.wides.append(name)
            return
        name = rng.choice(free)
        expressions = self.at(scope)
        if rng.random() < 0.3:
            factor = expressions.flat(expressions.real(2), 1.0).text
            self.put(rng.choice((f"{name} *= 1.0 + 0.02 * ({factor})", f"{name} = {name} * ({factor})")))
        else:
            self.put(f"{name} {rng.choice(('+=', '+=', '-='))} {self.narrow(scope, 2)}")

    def tuples(self, scope: Scope, place: Place) -> None:
        """Packing, unpacking and swapping."""
        rng = self.rng
        free = [name for name in scope.floats if name not in scope.fixed]
        choice = rng.randrange(5)
        if choice <= 1 and len(free) >= 2:
            names = rng.sample(free, rng.choice((2, 2, 3)) if len(free) > 2 else 2)
            self.put(f"{', '.join(names)} = {', '.join(names[1:] + names[:1])}")
        elif choice == 2:
            name, size = self.fresh("t"), rng.choice((2, 2, 3))
            self.put(f"{name} = ({', '.join(f'float({self.narrow(scope, 1)})' for _ in range(size))})")
            scope.tuples[name] = size
        elif choice == 3 and scope.tuples:
            name = rng.choice(list(scope.tuples))
            if rng.random() < 0.4:
                items = ", ".join(f"float({self.narrow(scope, 1)})" for _ in range(scope.tuples[name]))
                self.put(f"{name} = ({items})")
                return
            targets = [self.fresh("v") for _ in range(scope.tuples[name])]
            self.put(f"{', '.join(targets)} = {name}")
            scope.floats += targets
        else:
            a, b = self.fresh("v"), self.fresh("v")
            if rng.random() < 0.3:
                c = self.fresh("v")
                self.put(
                    f"{a}, ({b}, {c}) = {self.narrow(scope, 1)}, ({self.narrow(scope, 1)}, {self.narrow(scope, 1)})"
                )
                scope.floats += [a, b, c]
            else:
                self.put(f"{a}, {b} = {self.narrow(scope, 2)}, {self.narrow(scope, 2)}")
                scope.floats += [a, b]

    def whole(self, scope: Scope, place: Place) -> None:
        """An integer that may steer the control flow."""
        free = [name for name in scope.ints if name not in scope.fixed and scope.ints[name] == INT]
        value = self.at(scope).whole(2, INT).text
        if free and self.rng.random() < 0.5:
            self.put(f"{self.rng.choice(free)} = {value}")
            return
        name = self.fresh("k")
        self.put(f"{name} = {value}")
        scope.ints[name] = INT

    def condition(self, scope: Scope, place: Place) -> None:
        name = self.fresh("c")
        self.put(f"{name} = {self.at(scope).truth(2)}")
        scope.bools.append(name)

    def once_only(self, scope: Scope, place: Place) -> None:
        """A variable that is overwritten before it is read, or never read."""
        name = self.fresh("v")
        self.put(f"{name} = {self.narrow(scope)}")
        if self.rng.random() < 0.5:
            self.put(f"{name} = {self.narrow(scope)}")
            scope.floats.append(name)

    def holds(self, scope: Scope, place: Place) -> None:
        """An assertion that holds."""
        if self.rng.random() < 0.5 and scope.floats:
            self.put(f"assert abs({self.rng.choice(scope.floats)}) < 100.0")
        elif scope.ints:
            self.put(f"assert {self.rng.choice(list(scope.ints))} < 1000, 'too large'")
        else:
            self.put("pass")

    def leave_loop(self, scope: Scope, place: Place) -> None:
        self.put(f"if {self.at(scope).truth(1)}:")
        self.indent += 1
        if self.rng.random() < 0.4:
            self.overwrite(scope.inner(), place)
        if self.rng.random() < 0.5:
            if place.step:
                self.put(place.step)
            self.put("continue")
        else:
            self.put("break")
        self.indent -= 1

    def leave(self, scope: Scope, place: Place) -> None:
        self.put(f"if {self.at(scope).truth(1)}:")
        self.indent += 1
        if self.own is not None:
            self.give_back(scope)
        else:
            self.put(f"return {self.narrow(scope, 2)}")
        self.indent -= 1

    def branch(self, scope: Scope, place: Place) -> None:
        rng = self.rng
        inner = Place(place.depth - 1, place.trips, place.in_loop, place.step)
        both: list[list[str]] = []
        name = self.fresh("v") if rng.random() < 0.4 else ""

        def arm() -> None:
            self.indent += 1
            local = scope.inner()
            self.block(local, inner, rng.randint(1, 3))
            if name:
                self.put(f"{name} = {self.narrow(local, 2)}")
            self.indent -= 1
            both.append(local.floats)

        self.put(f"if {self.at(scope).truth(2)}:")
        arm()
        if rng.random() < 0.3:
            self.put(f"elif {self.at(scope).truth(1)}:")
            arm()
        if name or rng.random() < 0.5:
            self.put("else:")
            arm()
        if name:
            scope.floats.append(name)

    def guarded(self, scope: Scope, place: Place) -> None:
        """A variable with a value on one path only, read on that path only."""
        name = self.fresh("v")
        if scope.bools and self.rng.random() < 0.5:
            flag = self.rng.choice(scope.bools)
        else:
            flag = self.fresh("c")
            self.put(f"{flag} = {self.at(scope).truth(1)}")
        self.put(f"if {flag}:")
        self.put(f"    {name} = {self.narrow(scope, 2)}")
        inner = scope.inner()
        self.block(inner, Place(0, place.trips, place.in_loop, place.step), self.rng.randint(0, 2))
        scope.floats, scope.wides, scope.ints = inner.floats, inner.wides, inner.ints
        scope.tuples, scope.bools = inner.tuples, inner.bools
        scope.arrays, scope.heaps, scope.layouts = inner.arrays, inner.heaps, inner.layouts
        scope.dicts = inner.dicts
        self.put(f"if {flag}:")
        self.indent += 1
        inside = scope.inner()
        inside.floats.append(name)
        self.overwrite(inside, place)
        self.indent -= 1
        scope.bools.append(flag)
