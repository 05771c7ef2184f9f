"""`pullback` in compiled code: Python source around the emitted functions.

    def f_pullback(x, n):                           def f_back(kept, like, seed):
        value, kept = forward(x, n)                     return reverse(kept, float64(seed))
        return value, bind(kept, ())

`bind` combines the residuals `kept`, the shapes that seeds must have and the second function to the pullback that
compiled code stores, passes on and calls: a value whose type identifies its function, so that only the residuals are
allocated. Seeds are as in Python (see `zygote_py.runtime.cotangents`): their types are checked at compile time, and
their shapes at run time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.base import Names, define, structures
from zygote_py.compiler import PullbackInterface, Request
from zygote_py.ir import Type, components_of, identifier, item_texts
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.runtime.cotangents import HINT, ArrayLike, Seed, check_seeds, takes_one


class PullbackCode(NamedTuple):
    """The functions of a pullback, as plain Python functions, and what is to be known to call them."""

    forward: Callable[..., object]
    reverse: Callable[..., object]
    interface: PullbackInterface


def entry_function(
    code: PullbackCode,
    request: Request,
    captured: Sequence[object],
    restored: Callable[..., object],
    number: int,
) -> tuple[Callable[..., object], Any]:
    """Return the function from the arguments to the value and the pullback, and the dispatcher of the pullback.

    The `captured` values are constants in them. Python gets, in place of a pullback, the result of `restored`, which
    takes the residuals, sealed with `number`, and the shapes of seeds.
    """
    interface, func = code.interface, request.func
    parameters = func.__code__.co_varnames[: func.__code__.co_argcount]
    source = _Source(parameters)
    forward = source.add("forward", numba_adapter.decorated(code.forward, request.options))
    constants = [source.add("captured", value) for value in captured]
    reverse = _back(code, request)
    back = numba_adapter.Partial(
        reverse,
        f"pullback of {func.__name__}",
        lambda args, words: check_seeds(interface, len(args), words),
        restored,
        number,
    )
    bind, value, kept = source.add("bind", back), source.names.fresh("value"), source.names.fresh("kept")
    called = f"{forward}({', '.join((*parameters, *constants))})"
    known = [(interface.result_type, value)] if carries_adjoint(interface.result_type) else []
    known += [(kind, name) for _, name, kind in interface.written_parameters]
    likes = _tuple([_like(kind, name) for kind, name in known])
    lines = [f"{value}, {kept} = {called}", f"return {value}, {bind}({kept}, {likes})"]
    entry = source.function(f"{func.__name__}_pullback", parameters, lines, func.__defaults__)
    return entry, reverse


def _back(code: PullbackCode, request: Request) -> Any:
    """Return the dispatcher of the pullback: it takes what is kept, what is to be known of seeds, and the seeds."""
    interface = code.interface
    own = Names(interface.written)
    kept, like = own.fresh("kept"), own.fresh("like")
    seeds = [(name, name, kind) for _, name, kind in interface.written_parameters]
    if carries_adjoint(interface.result_type):
        seeds.insert(0, (own.fresh("seed"), "", interface.result_type))
    names = (kept, like, *(parameter for parameter, _, _ in seeds))
    defaults = (None,) * len(seeds)
    reverse = numba_adapter.decorated(code.reverse, request.options)

    def implement(given: tuple[Type, ...]) -> Callable[..., object]:
        source = _Source(names)
        called = source.add("reverse", reverse)
        args = [kept]
        none_given = all(isinstance(kind, types.Omitted) for kind in given[2:])
        for place, ((text, name, kind), held) in enumerate(zip(seeds, given[2:], strict=True)):
            seed = _Text(types.none if isinstance(held, types.Omitted) else types.unliteral(held), text)
            if none_given and not name and takes_one(kind):
                seed = _Text(types.float64, "1.0")
            args.append(_TextSeed(name, "", kind, f"{like}[{place}]", source).of(seed))
        return source.function(stub.__name__, names, [f"return {called}({', '.join(args)})"], defaults)

    stub = _Source(()).function(f"{request.func.__name__}_back", names, ["pass"], defaults)
    return numba_adapter.make_dispatcher(stub, implement, {**request.options, "no_cpython_wrapper": True})


def _tuple(items: Sequence[str]) -> str:
    return f"({''.join(f'{item}, ' for item in items)})"


def _like(type_: Type, text: str) -> str:
    """Return what is to be known of the value `text` for a seed; what has no adjoint is passed on.

    It is the shape of an array, and a tuple of these for a structure.
    """
    if not carries_adjoint(type_):
        return text
    if isinstance(type_, types.BaseTuple):
        components = zip(components_of(type_), item_texts(type_), strict=True)
        return _tuple([_like(kind, text + item) for kind, item in components])
    return f"{text}.shape" if isinstance(type_, types.Array) else "None"


def known_of(type_: Any, known: Any) -> Any:
    """Return what `like` gives for a value of a type, of what `_like` says of it."""
    if not carries_adjoint(type_):
        return known
    if isinstance(type_, types.BaseTuple):
        items = tuple(map(known_of, components_of(type_), known))
        return structures.made(getattr(type_, "instance_class", tuple), items)
    return ArrayLike(known, np.dtype(str(type_.dtype))) if isinstance(type_, types.Array) else known


class _Source:
    """A function that is assembled as text, and the objects that it refers to."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = Names(names)
        self.namespace: dict[str, Any] = {}

    def add(self, name: str, value: object) -> str:
        """Return a name for an object."""
        known = next((known for known, held in self.namespace.items() if held is value), None)
        if known is None:
            known = self.names.fresh(name)
            self.namespace[known] = value
        return known

    def function(self, name: str, names: Sequence[str], lines: Sequence[str], defaults: Any) -> Callable[..., object]:
        """Return the function of these names with these lines."""
        name = identifier(name, "function")
        text = "\n ".join([f"def {name}({', '.join(names)}):", *lines, ""])
        made = define(text, name, self.namespace)
        made.__globals__["__name__"] = __name__  # what Numba keeps of callers names the module
        made.__defaults__ = defaults
        return made


class _Text(NamedTuple):
    """A seed in compiled code: its type, and the text that reads it."""

    type: Any
    text: str


@dataclass(frozen=True)
class _TextSeed(Seed):
    """The purpose of a seed in compiled code: `value`, and the seed that is passed on, are texts of expressions."""

    source: _Source

    def items(self, given: _Text) -> list[_Text] | None:
        """Return the seeds in a structure; None if it is another one than what it is for."""
        kind: Any = self.type
        cls = getattr(kind, "instance_class", None)
        if given.type == types.none:
            return [given] * len(components_of(kind))
        if not isinstance(given.type, types.BaseTuple) or getattr(given.type, "instance_class", None) is not cls:
            return None
        components = zip(components_of(given.type), item_texts(given.type), strict=True)
        return [_Text(types.unliteral(each), given.text + item) for each, item in components]

    def known(self) -> list[str]:
        """Return what is known of the items of a structure."""
        return [f"{self.value}[{number}]" for number in range(len(components_of(self.type)))]

    def made(self, items: Sequence[str]) -> str:
        """Return the structure that is passed on."""
        cls = getattr(self.type, "instance_class", None)
        if cls is None:
            return _tuple(items)
        name = self.source.add(cls.__name__, cls)
        if structures.is_structure(cls):
            return f"{self.source.add('new', structures.new)}({name}, {_tuple(items)})"
        return f"{name}({', '.join(items)})"

    def array(self, given: _Text) -> str:
        """Return the array that is passed on."""
        kind: Any = self.type
        if given.type == types.none:
            dtype = self.source.add(str(kind.dtype), getattr(np, str(kind.dtype)))
            return f"{self.source.add('zeros', np.zeros)}({self.value}, {dtype})"
        if not isinstance(given.type, types.Array) or (given.type.dtype, given.type.ndim) != (kind.dtype, kind.ndim):
            raise self.unfit(given)
        return f"{self.source.add('fitting', _fitting(str(self)))}({given.text}, {self.value})"

    def number(self, given: _Text) -> str:
        """Return the number that is passed on."""
        cast = self.source.add(str(self.type), getattr(np, str(self.type)))
        if given.type == types.none:
            return f"{cast}(0)"
        real = isinstance(given.type, types.Integer | types.Float)
        if not real and not (isinstance(given.type, types.Complex) and isinstance(self.type, types.Complex)):
            raise self.unfit(given)
        return f"{cast}({given.text})"

    def unfit(self, given: _Text) -> DifferentiationError:
        """Return the error for a seed that does not fit."""
        return DifferentiationError(f"{self} is {_described(given.type)}; it needs {_described(self.type)}", hint=HINT)


def _described(type_: Any) -> str:
    match type_:
        case types.Array():
            return f"an array of {type_.ndim} dimensions and dtype {type_.dtype}"
        case types.BaseTuple():
            cls = getattr(type_, "instance_class", None)
            return f"a tuple of {len(components_of(type_))} items" if cls is None else f"a `{cls.__name__}`"
        case _:
            return f"of type {type_}" if type_ != types.none else "None"


@functools.cache
def _fitting(seed: str) -> Any:
    message = f"{seed} has another shape than what it is the adjoint of\n{HINT}"

    def fitting(given: Any, shape: Any) -> Any:
        if given.shape != shape:
            raise DifferentiationError(message)
        return given

    return numba.njit(fitting)
