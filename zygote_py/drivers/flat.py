"""What a function returns as one vector of floats, and that vector times weights: what SciPy takes.

def f_flat(x, closure_):                                    def f_weighted(x, v, closure_):
    y = closure_(x)                                             y = closure_(x)
    a = np.empty(1 + y[1].size)                                 s = 0.0
    a[0] = y[0]                                                 for i in range(y.size):
    a[1 : 1 + y[1].size] = y[1].ravel()                             s += v[i] * y[i]
    return a                                                    return s
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numba import types

from zygote_py.adjoints.errors import refuse
from zygote_py.drivers.columns import plus
from zygote_py.drivers.directional import Hvp
from zygote_py.drivers.forms import Driver
from zygote_py.drivers.writing import FUNCTION, parts
from zygote_py.ir.core import Loc

if TYPE_CHECKING:
    from zygote_py.numba_adapter import DerivedCall

_REAL = (types.Float, types.Integer, types.Boolean)


@dataclass(frozen=True)
class Flat(Driver):
    """All numbers that a function returns, in one array: of arrays, tuples, dataclasses and lists."""

    def written(self, call: DerivedCall) -> Callable[..., Any]:
        """A function of the arguments."""
        result = call.typed(call.argument_types).return_type
        script = self.script(call, list(inspect.signature(call.func).parameters))
        loc = Loc(call.func.__code__.co_filename, call.func.__code__.co_firstlineno)
        script.add(f"y = {FUNCTION}({', '.join(script.parameters)})")
        if result == types.Array(types.float64, 1, "C"):
            script.add("return y")
            return script.function()
        found = list(_numbers("y", result, result, loc))
        start = "0"
        for place, (text, kind) in enumerate(found):
            size = {"array": f"{text}.size", "list": f"len({text})"}.get(_form(kind), "1")
            script.add(f"n_{place} = {plus(start, size)}")
            start = f"n_{place}"
        script.add(f"a = np.empty({start})")
        start = "0"
        for place, (text, kind) in enumerate(found):
            match _form(kind):
                case "array":
                    script.add(f"a[{start} : n_{place}] = {text}.ravel()")
                case "list":
                    script.add(f"for i in range(len({text})):", f"    a[{plus(start, 'i')}] = {text}[i]")
                case _:
                    script.add(f"a[{start}] = {text}")
            start = f"n_{place}"
        script.add("return a")
        return script.function()


@dataclass(frozen=True)
class Weighted(Hvp):
    """The sum of what a function that returns a vector gives, times the weights, which are the last argument."""

    def written(self, call: DerivedCall) -> Callable[..., Any]:
        """A function of the arguments and of the weights."""
        names = list(self.signature(inspect.signature(call.func)).parameters)
        script = self.script(call, names)
        *names, weights = script.parameters
        script.add(f"y = {FUNCTION}({', '.join(names)})")
        script.start(f"if y.size != {weights}.size:")
        script.add("raise ValueError('there must be one weight for each component')")
        script.end()
        script.add("s = 0.0", "for i in range(y.size):", f"    s += {weights}[i] * y[i]", "return s")
        return script.function()


def _numbers(text: str, kind: Any, whole: Any, loc: Loc) -> Iterator[tuple[str, Any]]:
    """The numbers, arrays and lists of numbers in a result, and how to write them."""
    if isinstance(kind, types.BaseTuple):
        for part, inner in parts(text, kind):
            yield from _numbers(part, inner, whole, loc)
        return
    element = kind.dtype if _form(kind) else kind
    if isinstance(element, types.Complex):
        raise refuse(f"the result is of type {whole}, which is complex", loc, "return real and imaginary parts")
    if not isinstance(element, _REAL):
        raise refuse(f"the result is of type {whole}", loc, "return floats, or arrays, tuples or lists of floats")
    yield text, kind


def _form(kind: Any) -> str:
    if isinstance(kind, types.Array):
        return "array"
    return "list" if isinstance(kind, types.List | types.ListType) else ""
