"""Seeds of pullbacks: their required form, and their conversion.

    Seed("out", "", type, like(array)).of(None)         zeros of the shape and dtype of the array
    Seed("", "", types.float64, 1.5).of(2)              2.0

`zygote_py.runtime.compiled_pullback` does the same in compiled code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints import DifferentiationError
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.base import map_leaves, parts, with_parts
from zygote_py.compiler import PullbackInterface
from zygote_py.ir import Type, components_of, item_texts
from zygote_py.ir.lazy_dataclass import dataclass


def check_seeds(of: PullbackInterface, count: int, names: Collection[str]) -> None:
    """Refuse seeds for values that cannot have one: `count` for the returned value, and the others by name.

    No seed at all stands for 1.0, for a returned real number only.
    """
    if not count and not names and not takes_one(of.result_type):
        raise _forgotten(of)
    if count > 1:
        raise DifferentiationError(f"{count} seeds for one returned value", hint="call it as back(seed)")
    if count and not carries_adjoint(of.result_type):
        raise DifferentiationError(
            f"a seed for the returned value, which is of type {of.result_type}",
            hint=f"name the seed: {', '.join(f'back({name}=...)' for name in of.written) or 'there is none'}",
        )
    parameters = [name for name, _ in of.parameters]
    for name in names:
        if name not in of.written:
            what = "the function does not write to" if name in parameters else "is not a parameter of the function"
            written = ", ".join(f"`{each}`" for each in of.written)
            raise DifferentiationError(
                f"a seed for `{name}`, which {what}", hint=f"it writes to {written or 'none of its arguments'}"
            )


def takes_one(result_type: Type) -> bool:
    """Return whether the seed for a result of this type is 1.0 if no seed is passed."""
    return isinstance(result_type, types.Float)


def _forgotten(of: PullbackInterface) -> DifferentiationError:
    """Return the error for a call without seeds where one is needed."""
    result = of.result_type
    ways = [f"back({name}=...)" for name in of.written]
    if carries_adjoint(result):
        ways.insert(0, "back(seed)")
    if result == types.none:
        what = "no seed, and the function returns nothing"
        what += "" if ways else " and writes to none of its arguments"
    else:
        what = f"no seed for a result of type {result}, which is not a real number"
    if not ways:
        return DifferentiationError(what, hint="return a number, an array or a structure of these to differentiate it")
    zero = "; `None` as a seed, or in one, is zero"
    return DifferentiationError(what, hint=f"say what is differentiated: {' or '.join(ways)}{zero}")


@dataclass(frozen=True, slots=True)
class ArrayLike:
    """The shape and the dtype of an array, to check a seed."""

    shape: tuple[int, ...]
    dtype: Any


def like(value: Any) -> Any:
    """Return what is to be known of a value to check a seed: of arrays no elements, in any structure."""
    return map_leaves(lambda leaf: ArrayLike(leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray) else leaf, value)


HINT = "a seed has the form, the shapes and the dtypes of what it is the adjoint of; None is zero"


@dataclass(frozen=True)
class Seed:
    """The purpose of a seed: a result, by its name (empty: the returned value), or an item of it, and what it was.

    The methods after `of` say how seeds are read and made that are values; see `zygote_py.runtime.compiled_pullback`
    for seeds that are texts.
    """

    name: str
    path: str
    type: Type
    value: Any

    def __str__(self) -> str:
        if self.name:
            return f"the seed for `{self.name}{self.path}`"
        return f"the seed for {f'`{self.path}` of ' if self.path else ''}the returned value"

    def of(self, given: Any) -> Any:
        """Return what is passed on for a seed as it was given; None is zero. What does not fit is refused."""
        if not carries_adjoint(self.type):
            return _of_no_use(self.value)
        if not isinstance(self.type, types.BaseTuple):
            return self.array(given) if isinstance(self.type, types.Array) else self.number(given)
        components = components_of(self.type)
        items = self.items(given)
        if items is None or len(items) != len(components):
            raise self.unfit(given)
        parts = zip(item_texts(self.type), components, self.known(), items, strict=True)
        made = [
            replace(self, path=self.path + text, type=kind, value=known).of(item) for text, kind, known, item in parts
        ]
        return self.made(made)

    def needed(self) -> str:
        """Return what the seed has to be, in messages."""
        if isinstance(self.type, types.BaseTuple):
            cls = getattr(self.type, "instance_class", None)
            return f"a tuple of {len(components_of(self.type))} items" if cls is None else f"a `{cls.__name__}`"
        return described(self.value) if isinstance(self.type, types.Array) else f"a {self.type}"

    def unfit(self, given: Any) -> DifferentiationError:
        """Return the error for a seed that does not fit."""
        return DifferentiationError(f"{self} is {described(given)}; it needs {self.needed()}", hint=HINT)

    def items(self, given: Any) -> Sequence[Any] | None:
        """Return the seeds in a structure; None if it is another one than what it is for."""
        if given is None:
            return (None,) * len(components_of(self.type))
        return parts(given) if type(given) is type(self.value) else None

    def known(self) -> Sequence[Any]:
        """Return what is known of the items of a structure."""
        return parts(self.value) or ()

    def made(self, items: Sequence[Any]) -> Any:
        """Return the structure that is passed on."""
        return with_parts(self.value, items)

    def array(self, given: Any) -> Any:
        """Return the array that is passed on."""
        if given is None:
            return np.zeros(self.value.shape, self.value.dtype)
        if not isinstance(given, np.ndarray) or (given.shape, given.dtype) != (self.value.shape, self.value.dtype):
            raise self.unfit(given)
        return given

    def number(self, given: Any) -> Any:
        """Return the number that is passed on."""
        given = 0 if given is None else given
        is_complex = isinstance(given, complex | np.complexfloating) and isinstance(self.type, types.Complex)
        is_real = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
        if not is_complex and not is_real:
            raise self.unfit(given)
        number: Any = getattr(np, str(self.type))(given)
        return float(number) if self.type == types.float64 else number


def _of_no_use(value: Any) -> Any:
    """Return what is passed on in the place of a value without derivative, which nothing looks at."""
    if isinstance(value, ArrayLike):
        return np.empty((0,) * len(value.shape), value.dtype)
    items = parts(value)
    return value if items is None else with_parts(value, [_of_no_use(each) for each in items])


def described(value: Any) -> str:
    """Return what a seed is, in messages."""
    if isinstance(value, np.ndarray | ArrayLike):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, tuple) and type(value) is tuple:
        return f"a tuple of {len(value)} items"
    return f"{value!r} of type `{type(value).__name__}`"
