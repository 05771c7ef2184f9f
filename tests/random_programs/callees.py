"""Callees that Numba's decorators make: of explicit signatures, by `vectorize`, by `stencil`; and optional arguments.

    @numba.njit(["f8(f8)", "i8(i8)"])       @numba.vectorize            @numba.stencil(cval=0.5)
    def s1(x):                              def e2(x, y):               def d3(a):
        return x * x // 2                       return x * math.sin(y)      return 0.5 * a[-1] + a[0] * a[1]

A program with such callees has stand-ins: a second text in which each is an ordinary Python function that computes the
same, arguments converted as the signature says, elements and neighbours gone through by loops. The reference comes from
these; that they compute what Numba does is checked as for every program, by its value.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.random_programs.arrays import ArrayExpressions
from tests.random_programs.expressions import NARROW, Expressions, Interval, Real, Scope
from tests.random_programs.functions import Signature, array_of

STEERING, SIGNATURES, VECTORIZE, STENCIL, OPTIONAL = FEATURES = (
    "steering",
    "signatures",
    "vectorize",
    "stencil",
    "optional",
)
# What the texts begin with: of a program that has such callees, and of its stand-ins.
IMPORTS = "import numba\n"
STAND_IN_IMPORTS = "from tests.random_programs.callees import elementwise\n"


class _Elementwise:
    """Applies a function of numbers to arrays that are broadcast."""

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        if not any(isinstance(arg, np.ndarray) for arg in args):
            return function(*args)
        operands = np.broadcast_arrays(*(arg if isinstance(arg, np.ndarray) else _scalar(arg) for arg in args))
        kind = object if any(operand.dtype == object for operand in operands) else np.float64
        found = np.empty(operands[0].shape, kind)
        for index in np.ndindex(found.shape):
            found[index] = function(*(operand[index] for operand in operands))
        return found


def _scalar(value: Any) -> Any:
    made = np.empty((), object if hasattr(value, "_mpf_") else None)
    made[()] = value
    return made


elementwise = _Elementwise()


@dataclass
class Callee:
    """A callee with its two texts; `arity` numbers or arrays, or one array and `arity - 1` numbers for a stencil."""

    name: str
    text: str
    stand_in: str
    arity: int
    kinds: tuple[str, ...] = ()
    axes: int = 0
    fills: bool = False  # whether a stencil writes to the border, also of an array that is given


@dataclass
class Decorated:
    """The generator's part for such callees."""

    rng: random.Random
    callees: dict[str, list[Callee]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    @property
    def text(self) -> str:
        """The definitions."""
        return "".join(f"{each.text}\n\n\n" for each in self._all())

    @property
    def stand_ins(self) -> str:
        """The definitions of the stand-ins."""
        return "".join(f"{each.stand_in}\n\n\n" for each in self._all())

    def _all(self) -> list[Callee]:
        return [each for callees in self.callees.values() for each in callees]

    def draw(self, feature: str, number: int, generator: Callable[[Signature], Any]) -> None:
        """Add a callee of a feature; `generator` makes the generator of the body of a function."""
        made = {
            SIGNATURES: self._signed,
            VECTORIZE: self._vectorized,
            STENCIL: self._stencil,
            OPTIONAL: self._optional,
        }
        self.callees.setdefault(feature, []).append(made[feature](f"{feature[0:2]}{number}", generator))

    # ------------------------------------------------------------------------------------------ explicit signatures

    def _signed(self, name: str, generator: Callable[[Signature], Any]) -> Callee:
        rng = self.rng
        if rng.random() < 0.35:
            return self._overloaded(name)
        own = Signature(name, rng.choice((1, 2)), rng.random() < 0.4, rng.choice(((3,), (2,), None, None)), 1, False)
        lines = generator(own).definition().splitlines()
        kinds = ["f8"] * own.floats + ["i8"] * own.has_int + ["f8[:]"] * (own.shape is not None)
        drawn = ", ".join(kinds)
        signature = rng.choice((f'"f8({drawn})"', f'["f8({drawn})"]', f'"f8({drawn})", error_model="numpy"'))
        parameters = list(own.parameters())
        converted = [
            f"    {parameter} = {'float' if kind == 'f8' else 'int'}({parameter})"
            for parameter, kind in zip(parameters, kinds, strict=True)
            if "[" not in kind
        ]
        text = f"@numba.njit({signature})\n" + "\n".join(lines)
        stand_in = "\n".join([lines[0], *converted, *lines[1:]])
        shaped = tuple(f"{kind}:{own.shape[0]}" if "[" in kind and own.shape else kind for kind in kinds)
        return Callee(name, text, stand_in, len(kinds), shaped)

    def _overloaded(self, name: str) -> Callee:
        """Of several signatures, whose results differ where the types do."""
        form = self.rng.choice(
            (
                "0.125 * x * x // 2 + 0.25 * x",
                "0.1 * (x * (x // 2)) - 0.5",
                "math.sin(x) * (x // 3)",
                "0.05 * x ** 3 + x % 2",
            )
        )
        signatures = self.rng.choice(('["f8(i8)", "f8(f8)"]', '["f8(f8)", "f8(i8)"]', '"f8(f8)"'))
        lines = f"def {name}(x):\n    y = {form}\n    return math.tanh(y)"
        converted = f"def {name}(x):\n    x = float(x)\n    y = {form}\n    return math.tanh(y)"
        return Callee(
            name, f"@numba.njit({signatures})\n{lines}", lines if "i8" in signatures else converted, 1, ("any",)
        )

    # ---------------------------------------------------------------------------------------------------- vectorize

    def _vectorized(self, name: str, generator: Callable[[Signature], Any]) -> Callee:
        rng, arity = self.rng, self.rng.choice((1, 2, 2, 3))
        parameters = list("xyz"[:arity])
        expressions = Expressions(rng, Scope(floats=parameters))

        def small() -> str:
            return expressions.flat(expressions.real(2), NARROW).text

        match rng.randrange(4):
            case 0:
                body = [f"if {expressions.truth(1)}:", f"    return {small()}", f"return {small()}"]
            case 1:
                inside = Expressions(rng, Scope(floats=[*parameters, "r"]))
                step = inside.flat(inside.real(1), 1.0).text
                body = ["r = 0.5 * x", "for i in range(3):", f"    r = 0.5 * r + {step}", "return r"]
            case _:
                body = [f"return {small()}"]
        lines = ["    " + line for line in body]
        floats = ", ".join(["f8"] * arity)
        decorator = rng.choice(
            (
                "numba.vectorize",
                "numba.vectorize",
                f'numba.vectorize(["f8({floats})"])',
                "numba.vectorize(nopython=True)",
            )
        )
        head = f"({', '.join(parameters)}):"
        text = "\n".join([f"@{decorator}", f"def {name}{head}", *lines])
        converted = [f"    {parameter} = float({parameter})" for parameter in parameters] * ("f8" in decorator)
        stand_in = "\n".join(
            [
                f"def {name}_of_numbers{head}",
                *converted,
                *lines,
                "",
                "",
                f"def {name}{head}",
                f"    return elementwise({name}_of_numbers, {', '.join(parameters)})",
            ]
        )
        return Callee(name, _normal(text), _normal(stand_in), arity)

    # ------------------------------------------------------------------------------------------------------ stencil

    def _stencil(self, name: str, generator: Callable[[Signature], Any]) -> Callee:
        rng, axes = self.rng, self.rng.choice((1, 1, 1, 2))
        numbers = rng.choice((0, 0, 1))
        offsets = [tuple(rng.choice((-1, 0, 0, 1, 2, -2)) for _ in range(axes)) for _ in range(rng.randint(1, 4))]
        offsets.append((0,) * axes)

        def at(offset: tuple[int, ...], places: tuple[str, ...] = ()) -> str:
            pairs = zip(places or ("",) * axes, offset, strict=True)
            return f"a[{', '.join(f'{place} + {o}' if place else str(o) for place, o in pairs)}]"

        terms: list[tuple[str, tuple[tuple[int, ...], ...]]] = []
        for offset in offsets:
            other = rng.choice(offsets)
            form = rng.choice(
                ("{c} * {a}", "{c} * {a} * {b}", "math.sin({a}) * {c}", "{c} * abs({a})", "{c} * {a} ** 2")
            )
            factor = f"{rng.uniform(-0.8, 0.8):.2f}" if not numbers or rng.random() < 0.5 else "x"
            terms.append((form.replace("{c}", factor), (offset, other)))
        used = [offset for form, (a, b) in terms for offset in ((a, b) if "{b}" in form else (a,))]

        def kernel(places: tuple[str, ...] = ()) -> str:
            total = " + ".join(form.format(a=at(a, places), b=at(b, places)) for form, (a, b) in terms)
            return f"math.tanh({total})"

        cval = rng.choice((None, None, 0.0, 0.75))
        given = rng.random() < 0.25
        low = [min(0, *(o[axis] for o in used)) - (given and rng.randrange(2)) for axis in range(axes)]
        high = [max(0, *(o[axis] for o in used)) + (given and rng.randrange(2)) for axis in range(axes)]
        options = [f"cval={cval}"] * (cval is not None)
        options += [f"neighborhood=({''.join(f'({a}, {b}), ' for a, b in zip(low, high, strict=True))})"] * given
        parameters = ", ".join(["a", *["x"] * numbers])
        decorator = f"@numba.stencil({', '.join(options)})" if options else "@numba.stencil"
        text = f"{decorator}\ndef {name}({parameters}):\n    return {kernel()}"
        counters = ("i", "j")[:axes]
        lines = [f"def {name}({parameters}, out=None):"]
        lines += ["    if out is None:", f"        out = np.full(a.shape, {cval or 0.0})"]
        lines += ["    else:", f"        out[{', '.join([':'] * axes)}] = {cval}"] if cval is not None else []
        indent = "    "
        for axis, counter in enumerate(counters):
            lines.append(f"{indent}for {counter} in range({-low[axis]}, a.shape[{axis}] - {high[axis]}):")
            indent += "    "
        lines += [f"{indent}out[{', '.join(counters)}] = {kernel(counters)}", "    return out"]
        return Callee(name, text, "\n".join(lines), 1 + numbers, axes=axes, fills=cval is not None)

    # ----------------------------------------------------------------------------------------------------- optional

    def _optional(self, name: str, generator: Callable[[Signature], Any]) -> Callee:
        rng = self.rng
        expressions = Expressions(rng, Scope(floats=["x"]))
        both = Expressions(rng, Scope(floats=["x", "q", "q"]))

        def with_option(depth: int) -> str:
            """An expression that may have `q` in it, which is of an optional type: Numba has no `np.where` of that."""
            while "np.where(" in (text := both.flat(both.real(depth), NARROW).text):
                pass
            return text

        known = [each.name for each in self.callees.get(OPTIONAL, ())]
        lines = [f"def {name}(x, q{rng.choice(('', '=None'))}):"]
        without = expressions.flat(expressions.real(2), NARROW).text
        with_it = with_option(2)
        if known and rng.random() < 0.7:
            value = f"0.5 * {rng.choice(known)}({expressions.flat(expressions.real(1), NARROW).text}, q)"
            lines += [
                f"    r = {value}",
                "    if q is not None:",
                f"        r += 0.5 * {with_option(1)}",
            ]
            lines += ["    return r"]
        elif rng.random() < 0.5:
            lines += ["    if q is None:", f"        return {without}", f"    return {with_it}"]
        else:
            lines += [f"    r = {without}", "    if q is not None:", f"        r = {with_it}", "    return r"]
        text = _normal("\n".join(lines))
        return Callee(name, text, text, 2)


def _normal(text: str) -> str:
    """The text as Python writes it, blank lines between functions kept."""
    return "\n\n\n".join(ast.unparse(node) for node in ast.parse(text).body)


class Callings:
    """Statements that call such callees."""

    rng: random.Random
    put: Any
    fresh: Any
    narrow: Any
    at: Any
    decorated: Decorated
    indent: int

    def decorated_call(self, scope: Scope, feature: str) -> None:
        """A call of a callee of a feature, its result a number, or an array."""
        self.decorated.used.add(feature)
        callee = self.rng.choice(self.decorated.callees[feature])
        if feature == SIGNATURES:
            value = self._of_signature(scope, callee)
        elif feature == VECTORIZE:
            value = self._of_elements(scope, callee)
        elif feature == STENCIL:
            value = self._of_stencil(scope, callee)
        else:
            value = self._with_option(scope, callee)
        if value:
            self.put(f"{(result := self.fresh('v'))} = {value}")
            scope.floats.append(result)

    def _of_signature(self, scope: Scope, callee: Callee) -> str:
        args = []
        for kind in callee.kinds:
            if kind == "i8":
                args.append(self.at(scope).whole(1, Interval(-1, 3)).text)
            elif kind in ("f8", "any"):
                draw = self.rng.random()
                whole = self.at(scope).whole(1, Interval(-3, 4)).text
                args.append(whole if draw < (0.25 if kind == "f8" else 0.5) else f"float({self.narrow(scope, 1)})")
            else:
                size = int(kind.partition(":")[2].rpartition(":")[2])
                fitting = [name for name, shape in scope.arrays.items() if shape == (size,)]
                if not fitting:
                    self.put(f"{(name := self.fresh('w'))} = {array_of((size,), self.rng)}")
                    scope.arrays[name] = (size,)
                    fitting = [name]
                args.append(f"{self.rng.choice(fitting)}{self.rng.choice(('', '', '', '.copy()'))}")
        return f"{callee.name}({', '.join(args)})"

    def _of_elements(self, scope: Scope, callee: Callee) -> str | None:
        rng, expressions = self.rng, self.at(scope)
        shapes = [shape for shape in scope.arrays.values() if all(shape)]
        if not shapes or rng.random() < 0.35 or not isinstance(expressions, ArrayExpressions):
            args = [
                expressions.whole(1, Interval(-3, 3)).text if rng.random() < 0.15 else f"float({self.narrow(scope, 1)})"
                for _ in range(callee.arity)
            ]
            return f"{callee.name}({', '.join(args)})"
        shape = rng.choice(shapes)
        first = rng.randrange(callee.arity)
        args = []
        for number in range(callee.arity):
            own = shape if number == first else rng.choice((shape, shape[1:], ()))
            if own:
                args.append(expressions.flat_array(expressions.array(own, rng.choice((0, 0, 1))), NARROW).text)
            else:
                args.append(f"float({self.narrow(scope, 1)})")
        call = f"{callee.name}({', '.join(args)})"
        return self._array_result(scope, call, shape)

    def _array_result(self, scope: Scope, call: str, shape: tuple[int, ...]) -> str | None:
        """A number made of an array that was computed, or that array as a variable."""
        if self.rng.random() < 0.4:
            self.put(f"{(name := self.fresh('w'))} = {call}")
            scope.arrays[name] = shape
            scope.layouts[name] = "A"
            scope.fixed.add(name)
            return None
        size = float(np.prod(shape))
        text: str = self.at(scope).flat(Real(f"np.sum({call})", size * NARROW), NARROW).text
        return text

    def _of_stencil(self, scope: Scope, callee: Callee) -> str | None:
        rng = self.rng
        found = [name for name, shape in scope.arrays.items() if len(shape) == callee.axes and all(shape)]
        if not found:
            shape = (rng.choice((3, 4, 5)),) if callee.axes == 1 else (rng.choice((2, 3)), 4)
            self.put(f"{(name := self.fresh('w'))} = {array_of(shape, rng)} * {self.narrow(scope, 1)}")
            self.put(f"{name} = np.tanh({name})")
            scope.arrays[name], scope.layouts[name] = shape, "A"
            found = [name]
        a = rng.choice(found)
        shape = scope.arrays[a]
        args = [a, *(f"float({self.narrow(scope, 1)})" for _ in range(callee.arity - 1))]
        if rng.random() < 0.2:
            self.put(f"{(name := self.fresh('w'))} = np.{rng.choice(('zeros', 'ones'))}({a}.shape)")
            self.put(f"{callee.name}({', '.join([*args, f'out={name}'])})")
            scope.arrays[name], scope.layouts[name] = shape, "C"
            return None
        return self._array_result(scope, f"{callee.name}({', '.join(args)})", shape)

    def _with_option(self, scope: Scope, callee: Callee) -> str:
        rng = self.rng
        given = rng.choice(("None", "number", "variable", "variable", "parameter"))
        if given == "parameter" and "q" in scope.options:
            option = "q"
        elif given == "number":
            option = f"float({self.narrow(scope, 1)})"
        elif given in ("variable", "parameter"):
            option = rng.choice(scope.options) if scope.options and rng.random() < 0.5 else self._option(scope)
        else:
            option = "None"
        return f"{callee.name}(float({self.narrow(scope, 1)}), {option})"

    def _option(self, scope: Scope) -> str:
        """A variable that is None or a number."""
        name = self.fresh("t")
        self.put(f"{name} = None")
        self.put(f"if {self.at(scope).truth(1)}:")
        self.put(f"    {name} = float({self.narrow(scope, 1)})")
        scope.options.append(name)
        return str(name)
