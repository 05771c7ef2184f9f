"""`pullback` in compiled code: the emitted functions with what is to be done before and after them, as Python source.

    def f_pullback(x, n):                           def f_back(kept, like, seed):
        value, kept = forward(x, n)                     return reverse(kept, float64(seed))
        return value, bind(kept, ())

`bind` makes of `kept`, the shapes that seeds must have and the second function the pullback that compiled code holds,
passes on and calls: a value whose type says which function it is of, so that nothing is allocated but what the function
keeps. Seeds are what they are from Python (see `zygote_py.seeds`): their types are checked while compiling, and their
shapes by the code.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter, structures
from zygote_py.adjoints.analysis.kinds import carries_adjoint
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.base.python_text import define
from zygote_py.compile import CompiledPullback
from zygote_py.ir.core import Type
from zygote_py.ir.text.identifiers import identifier
from zygote_py.ir.types import components_of, item_texts
from zygote_py.requests import Request
from zygote_py.seeds import HINT, ArrayLike, Seed, check_seeds, takes_one


def entry_function(
    compiled: CompiledPullback,
    request: Request,
    captured: Sequence[object],
    restored: Callable[..., object],
    number: int,
) -> tuple[Callable[..., object], Any]:
    """The function of the arguments that gives the value and the pullback, and the dispatcher of the pullback.

    The `captured` values are constants in them.

    Python gets in the place of a pullback what `restored` makes of what is kept, sealed with `number`, and of what is
    to be known of seeds.
    """
    code = request.func.__code__
    parameters = code.co_varnames[: code.co_argcount]
    source = _Source(parameters)
    forward = source.add("forward", _decorated(compiled.value, request.options))
    constants = [source.add("captured", value) for value in captured]
    reverse = _back(compiled, request)
    back = numba_adapter.Partial(
        reverse,
        f"pullback of {request.func.__name__}",
        lambda args, words: check_seeds(compiled, len(args), words),
        restored,
        number,
    )
    bind, value, kept = source.add("bind", back), source.name("value"), source.name("kept")
    called = f"{forward}({', '.join((*parameters, *constants))})"
    likes = list(_likes(compiled.result_type, value)) if carries_adjoint(compiled.result_type) else []
    for _, name, type_ in compiled.written_parameters:
        likes += _likes(type_, name)
    lines = [f"{value}, {kept} = {called}", f"return {value}, {bind}({kept}, {_tuple(likes)})"]
    entry = source.function(f"{request.func.__name__}_pullback", parameters, lines, request.func.__defaults__)
    return entry, reverse


def _back(compiled: CompiledPullback, request: Request) -> Any:
    """The dispatcher of the pullback: it takes what is kept, what is to be known of seeds, and the seeds."""
    names = list(compiled.written)
    kinds = [kind for _, _, kind in compiled.written_parameters]
    own = _Source(names)
    kept, like = own.name("kept"), own.name("like")
    if carries_adjoint(compiled.result_type):
        names.insert(0, own.name("seed"))
        kinds.insert(0, compiled.result_type)
    seeds = [
        Seed(name if name in compiled.written else "", "", kind, None) for name, kind in zip(names, kinds, strict=True)
    ]
    reverse = _decorated(compiled.function, request.options)

    def implement(given: tuple[Type, ...]) -> Callable[..., object]:
        source = _Source((*names, kept, like))
        called = source.add("reverse", reverse)
        args = [kept]
        items = (f"{like}[{number}]" for number in itertools.count())
        none_given = all(isinstance(kind, types.Omitted) for kind in given[2:])
        for seed, name, kind in zip(seeds, names, given[2:], strict=True):
            held = types.none if isinstance(kind, types.Omitted) else types.unliteral(kind)
            if none_given and not seed.name and takes_one(seed.type):
                held, name = types.unliteral(types.float64), "1.0"
            args.append(_Fitted(source, items).text(seed, held, name))
        return source.function(stub.__name__, (kept, like, *names), [f"return {called}({', '.join(args)})"], defaults)

    defaults = (None,) * len(names)
    stub = _Source(()).function(f"{request.func.__name__}_back", (kept, like, *names), ["pass"], defaults)
    return numba_adapter.make_dispatcher(stub, implement, {**request.options, "no_cpython_wrapper": True})


def _decorated(function: Callable[..., object], options: Mapping[str, object]) -> Any:
    return numba_adapter.decorated(function, options)


def _tuple(items: Sequence[str]) -> str:
    return f"({''.join(f'{item}, ' for item in items)})"


def _likes(type_: Type, text: str) -> Iterator[str]:
    """What is to be known of the value `text` for a seed: of arrays the shape; what has no adjoint is passed on."""
    if not carries_adjoint(type_):
        yield text
    elif isinstance(type_, types.BaseTuple):
        for item, kind in zip(item_texts(type_), components_of(type_), strict=True):
            yield from _likes(kind, text + item)
    else:
        yield f"{text}.shape" if isinstance(type_, types.Array) else "None"


def known_of(type_: Any, likes: Iterator[Any]) -> Any:
    """What `like` gives for a value of a type, of what `_likes` says of it."""
    if not carries_adjoint(type_):
        return next(likes)
    if isinstance(type_, types.BaseTuple):
        items = tuple(known_of(kind, likes) for kind in components_of(type_))
        cls = getattr(type_, "instance_class", None)
        if cls is None:
            return items
        return structures.new(cls, items) if structures.is_structure(cls) else cls(*items)
    known = next(likes)
    return ArrayLike(known, np.dtype(str(type_.dtype))) if isinstance(type_, types.Array) else known


class _Source:
    """A function that is put together as text, and what it refers to."""

    def __init__(self, names: Sequence[str]) -> None:
        self.namespace: dict[str, Any] = {}
        self._taken = set(names)

    def name(self, name: str) -> str:
        """A name like this one that means nothing yet."""
        tries = itertools.chain((name,), (f"{name}_{number}" for number in itertools.count()))
        found = next(each for each in tries if each not in self._taken)
        self._taken.add(found)
        return found

    def add(self, name: str, value: object) -> str:
        """A name for an object."""
        for known, held in self.namespace.items():
            if held is value and known.startswith(name):
                return known
        found = self.name(name)
        self.namespace[found] = value
        return found

    def made(self, type_: Any, items: Sequence[str]) -> str:
        """The tuple, NamedTuple or dataclass of a type with these items."""
        cls = getattr(type_, "instance_class", None)
        if cls is None:
            return _tuple(items)
        name = self.add(cls.__name__, cls)
        if structures.is_structure(cls):
            return f"{self.add('new', structures.new)}({name}, {_tuple(items)})"
        return f"{name}({', '.join(items)})"

    def function(self, name: str, names: Sequence[str], lines: Sequence[str], defaults: Any) -> Callable[..., object]:
        """The function of these names with these lines."""
        name = identifier(name, "function")
        text = "\n ".join([f"def {name}({', '.join(names)}):", *lines, ""])
        made = define(text, name, self.namespace)
        made.__globals__["__name__"] = __name__  # what Numba keeps of callers names the module
        made.__defaults__ = defaults
        return made  # type: ignore[no-any-return]


class _Fitted:
    """What is written for seeds of given types: as `Seed.of`, for the types."""

    def __init__(self, source: _Source, likes: Iterator[str]) -> None:
        self.source = source
        self.likes = likes

    def text(self, seed: Seed, given: Any, text: str) -> str:
        """What is passed on for the seed `text`."""
        kind: Any = seed.type
        like = "" if carries_adjoint(kind) and isinstance(kind, types.BaseTuple) else next(self.likes)
        if not carries_adjoint(kind):
            return like
        if isinstance(kind, types.BaseTuple):
            return self._structure(seed, kind, given, text)
        if isinstance(kind, types.Array):
            dtype = self.source.add(str(kind.dtype), getattr(np, str(kind.dtype)))
            if given == types.none:
                return f"{self.source.add('zeros', np.zeros)}({like}, {dtype})"
            if not isinstance(given, types.Array) or (given.dtype, given.ndim) != (kind.dtype, kind.ndim):
                raise _unfit(seed, given)
            return f"{self.source.add('fitting', _fitting(str(seed)))}({text}, {like})"
        cast = self.source.add(str(kind), getattr(np, str(kind)))
        if given == types.none:
            return f"{cast}(0)"
        real = isinstance(given, types.Integer | types.Float)
        if not real and not (isinstance(given, types.Complex) and isinstance(kind, types.Complex)):
            raise _unfit(seed, given)
        return f"{cast}({text})"

    def _structure(self, seed: Seed, kind: Any, given: Any, text: str) -> str:
        cls = getattr(kind, "instance_class", None)
        components = components_of(kind)
        if given == types.none:
            return self.source.made(kind, [self._item(seed, kind, n, types.none, text) for n in range(len(components))])
        fits = isinstance(given, types.BaseTuple) and getattr(given, "instance_class", None) is cls
        seeds = components_of(given) if fits else ()
        if not fits or len(seeds) != len(components):
            raise _unfit(seed, given)
        return self.source.made(kind, [self._item(seed, kind, n, each, text) for n, each in enumerate(seeds)])

    def _item(self, seed: Seed, kind: Type, number: int, given: Type, text: str) -> str:
        item = item_texts(kind)[number]
        part = Seed(seed.name, seed.path + item, components_of(kind)[number], None)
        return self.text(part, types.unliteral(given), text + item)


def _unfit(seed: Seed, given: Any) -> DifferentiationError:
    return DifferentiationError(f"{seed} is {_described(given)}; it needs {_described(seed.type)}", hint=HINT)


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

    decorate: Any = numba.njit
    return decorate(fitting)
