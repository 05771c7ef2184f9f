"""Derivatives inside of random programs: what they call, and the same by differences for the reference.

    v3 = math.atan(0.1 * derivative(gradient(h2))(0.5 * x))
    exact(f)                # f with `gradient` and the like as differences, to be run on numbers of many digits

The functions that are differentiated are inner ones that capture what there is, and those that the program defines,
which may write to their arguments.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from tests.checking.multiprecision import mp, number
from tests.random_programs.expressions import Scope

# What such programs have beside the helpers of programs with functions.
IMPORTS = """from zygote_py import gradient, value_and_gradient
from zygote_py.api.directions import derivative, hessian, hvp, jvp
"""


def takes_derivatives(text: str) -> bool:
    """Whether a program does so."""
    return IMPORTS in text


DIGITS = 120
STEP = 1e-20  # errors of its square; those of rounding are smaller, after three derivatives and two for the reference


class Nested:
    """The generator's part for derivatives."""

    rng: Any
    put: Any
    fresh: Any
    narrow: Any
    known: Any
    inner_function: Any

    def derived(self, scope: Scope, place: Any) -> None:
        """A derivative of a function, made small."""
        rng = self.rng
        a, b = (self.narrow(scope, 1) for _ in range(2))
        known = [each for each in self.known if each.results == 1 and each.shape is None]
        if known and rng.random() < 0.25:
            name, function = self.fresh("h"), rng.choice(known)
            others = [self.narrow(scope, 1) for _ in range(function.floats - 1)]
            rest = [*others, *(["2"] if function.has_int else [])]
            self.put(f"{name} = lambda q: {function.name}({', '.join(['q', *rest])})")
            if rng.random() < 0.5:
                value = f"gradient({function.name}, wrt=0)({', '.join([a, *rest])})"
                self._small(scope, value)
                return
        else:
            name = self.inner_function(scope)
        match rng.randrange(16):
            case 0 | 1:
                value = f"gradient({name})({a})"
            case 2 | 3:
                value = f"derivative({name})({a})"
            case 4:
                value = f"value_and_gradient({name})({a})[{rng.randrange(2)}]"
            case 5:
                value = f"jvp({name}, ({a},), ({b},))[{rng.choice((0, 1, 1))}]"
            case 6:
                value = f"gradient(gradient({name}))({a})"
            case 7:
                value = f"derivative(gradient({name}))({a})"
            case 8:
                value = f"gradient(derivative({name}))({a})"
            case 9:
                value = f"derivative(derivative({name}))({a})"
            case 10:
                value = f"hessian({name})({a})"
            case 11:
                value = f"hvp({name})({a}, {b})"
            case 12:
                value = f"apply({rng.choice(('gradient', 'derivative'))}({name}), {a})"
            case 13:
                value = f"in_turn((gradient({name}), math.tanh, derivative({name})), {a})"
            case 14:
                outer, inner = (rng.choice(("gradient", "derivative")) for _ in range(2))
                value = f"{outer}(lambda q: q * {inner}({name})(q * {b}))({a})"
            case _:
                outer, inner = (rng.choice(("gradient", "derivative")) for _ in range(2))
                value = f"{outer}(lambda q: {inner}(lambda r: r * {name}(q * r))({b}))({a})"
        self._small(scope, value)

    def _small(self, scope: Scope, value: str) -> None:
        self.put(f"{(result := self.fresh('v'))} = math.atan(0.1 * {value})")
        scope.floats.append(result)


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with differences in the place of derivatives."""
    scope = {**function.__globals__, **_DIFFERENCES}
    for name, value in list(scope.items()):
        if isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__:
            scope[name] = types.FunctionType(value.__code__, scope, value.__name__, value.__defaults__)
    made = scope[function.__name__]
    assert isinstance(made, types.FunctionType)
    return made


@contextmanager
def many_digits() -> Any:
    """The context required while such a function runs."""
    with mp.workdps(DIGITS):
        yield


def _copies(args: Any) -> list[Any]:
    return [arg.copy() if hasattr(arg, "copy") else arg for arg in args]


def _gradient(f: Any, wrt: Any = None) -> Any:
    def found(*args: Any) -> Any:
        return _value_and_gradient(f, wrt)(*args)[1]

    return found


def _value_and_gradient(f: Any, wrt: Any = None) -> Any:
    def found(*args: Any) -> Any:
        up, down = _copies(args), _copies(args)
        middle = args[0] if hasattr(args[0], "_mpf_") else number(args[0])
        up[0], down[0] = middle + STEP, middle - STEP
        slope = (f(*up) - f(*down)) / (2 * STEP)
        return f(*args), slope

    return found


def _jvp(f: Any, args: Any, tangents: Any) -> Any:
    value, slope = _value_and_gradient(f)(*args)
    return value, slope * tangents[0]


def _hessian(f: Any) -> Any:
    return _gradient(_gradient(f))


def _hvp(f: Any) -> Any:
    def found(x: Any, v: Any) -> Any:
        return _hessian(f)(x) * v

    return found


_DIFFERENCES: dict[str, Any] = {
    "gradient": _gradient,
    "value_and_gradient": _value_and_gradient,
    "derivative": _gradient,
    "hessian": _hessian,
    "hvp": _hvp,
    "jvp": _jvp,
}
