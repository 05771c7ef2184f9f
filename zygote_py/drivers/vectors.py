"""Functions of vectors, as SciPy takes them: functions of structures with vectors in place of arguments and results.

    def f_of_vector(x, like, data, closure_):                   # like: Point(a: a float, w: an array, n: an integer)
        n_0 = 1
        n_1 = n_0 + like.w.size
        return closure_(Point(x[0], x[n_0 : n_1].copy().reshape(like.w.shape), like.n), data)

    def f_flat(x, closure_):
        y = closure_(x)
        n_0 = 1
        n_1 = n_0 + y[1].size
        a = np.empty(n_1)
        a[0] = y[0]
        a[n_0 : n_1] = y[1].ravel()
        return a

A vector contains the floats in the order of the items and fields, arrays in row-major order (see
`zygote_py.runtime.ravel`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.base import free
from zygote_py.compiler import FUNCTION, Script, leaves, parts, signature_of
from zygote_py.drivers.directional import Hvp
from zygote_py.drivers.forms import Driver
from zygote_py.ir import Loc
from zygote_py.ir.lazy_dataclass import dataclass

_REAL = (types.Float, types.Integer, types.Boolean)


@dataclass(frozen=True)
class OfVector(Driver):
    """A function of a vector, of a structure that gives its layout, and of all further arguments.

    The vector replaces the parameters `places`. If these are several, the structure is a tuple of them.
    """

    places: tuple[int, ...] = (0,)
    several: bool = False

    def __str__(self) -> str:
        return "of_vector"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature of the vector, the structure, and the other parameters."""
        names = list(of.parameters)
        rest = [name for number, name in enumerate(names) if number not in self.places]
        return signature_of(free("x", rest), free("like", rest), *rest)

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        of = inspect.signature(call.func)
        script = self.script(call, list(self.signature(of).parameters))
        vector, like, *rest = script.parameters
        whole = call.argument_types[1]
        found = []
        start = "0"
        for place, leaf in enumerate(leaves(like, whole)):
            script.add(f"n_{place} = {plus(start, leaf.size)}")
            found.append(_taken(script, leaf.type, f"{leaf.text}.shape", vector, start, f"n_{place}"))
            start = f"n_{place}"
        script.add(f"d_0 = {_with_constants(script, like, whole, iter(found))}")
        varied = iter([f"d_0[{number}]" for number in range(len(self.places))] if self.several else ["d_0"])
        others = iter(rest)
        given = (next(varied) if number in self.places else next(others) for number in range(len(of.parameters)))
        script.add(f"return {FUNCTION}({', '.join(given)})")
        return script.function()


@dataclass(frozen=True)
class Flat(Driver):
    """All numbers in a function's result, in one array: of arrays, tuples, dataclasses and lists."""

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        result = call.typed(call.argument_types).return_type
        script = self.script(call, call.parameters)
        script.add(f"y = {FUNCTION}({', '.join(script.parameters)})")
        if result == types.Array(types.float64, 1, "C"):
            script.add("return y")
            return script.function()
        found = list(_numbers("y", result, result, call.loc))
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
    """The weighted sum of the vector that a function returns; the weights are the last argument."""

    typed = Driver.typed  # as a text

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments and of the weights."""
        names = list(self.signature(inspect.signature(call.func)).parameters)
        script = self.script(call, names)
        *names, weights = script.parameters
        script.add(f"y = {FUNCTION}({', '.join(names)})")
        script.add(f"if y.size != {weights}.size:")
        script.add("    raise ValueError('there must be one weight for each component')")
        script.add("s = 0.0", "for i in range(y.size):", f"    s += {weights}[i] * y[i]", "return s")
        return script.function()


def plus(*terms: str) -> str:
    """Return a sum, as text."""
    return " + ".join(term for term in terms if term != "0") or "0"


def _numbers(text: str, kind: Any, whole: Any, loc: Loc) -> Iterator[tuple[str, Any]]:
    """Yield the numbers, arrays and lists of numbers in a result, with their text."""
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


def _taken(script: Script, kind: Any, shape: str, vector: str, start: str, stop: str) -> str:
    """Return the leaf of a type at these positions of the vector, as text."""
    if not isinstance(kind, types.Array):
        return f"{vector}[{start}]" if kind == types.float64 else f"np.{kind}({vector}[{start}])"
    part = f"{vector}[{start} : {stop}].copy()"
    if kind.dtype != types.float64:
        part = f"{part}.astype(np.{kind.dtype})"
    return part if kind.ndim == 1 else f"{part}.reshape({shape})"


def _with_constants(script: Script, text: str, kind: Any, items: Iterator[str]) -> str:
    """Return a value with the structure of a type, as text: `items` for its leaves, the rest as in `text`."""
    if isinstance(kind, types.BaseTuple):
        return script.built(kind, [_with_constants(script, one, inner, items) for one, inner in parts(text, kind)])
    return next(items) if any(leaves(text, kind)) else text
