"""Seeds of pullbacks: what they have to look like, and what is passed on for them.

    Seed("out", "", type, like(array)).of(None)         zeros of the shape and dtype of the array
    Seed("", "", types.float64, 1.5).of(2)              2.0

For calls in compiled code see `zygote_py.compiled_pullback`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints.analysis.kinds import carries_adjoint
from zygote_py.adjoints.errors import DifferentiationError
from zygote_py.compile import CompiledPullback
from zygote_py.ir.core import Type
from zygote_py.ir.types import components_of, item_texts
from zygote_py.structures import parts, with_parts


def check_seeds(compiled: CompiledPullback, count: int, names: Collection[str]) -> None:
    """Refuse seeds, `count` for the returned value and the others by name, for what can have none.

    No seed at all stands for 1.0, which only a real number that is returned can take.
    """
    if not count and not names and not takes_one(compiled.result_type):
        raise _forgotten(compiled)
    if count > 1:
        raise DifferentiationError(f"{count} seeds for one returned value", hint="call it as back(seed)")
    if count and not carries_adjoint(compiled.result_type):
        raise DifferentiationError(
            f"a seed for the returned value, which is of type {compiled.result_type}",
            hint=f"name the seed: {', '.join(f'back({name}=...)' for name in compiled.written) or 'there is none'}",
        )
    parameters = [param.hint for param in compiled.lowered.function.params]
    for name in names:
        if name not in compiled.written:
            what = "the function does not write to" if name in parameters else "is no parameter of the function"
            written = ", ".join(f"`{each}`" for each in compiled.written)
            raise DifferentiationError(
                f"a seed for `{name}`, which {what}", hint=f"it writes to {written or 'none of its arguments'}"
            )


def takes_one(result_type: Type) -> bool:
    """Whether the seed for a result of this type is 1.0 if no seed is given at all."""
    return isinstance(result_type, types.Float)


def _forgotten(compiled: CompiledPullback) -> DifferentiationError:
    """The error for a call without seeds where one is needed."""
    result = compiled.result_type
    ways = [f"back({name}=...)" for name in compiled.written]
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
    """What is to be known of an array to check a seed."""

    shape: tuple[int, ...]
    dtype: Any


def like(value: Any) -> Any:
    """What is to be known of a value to check a seed: of arrays no elements, in any structure."""
    if isinstance(value, np.ndarray):
        return ArrayLike(value.shape, value.dtype)
    held = parts(value)
    return value if held is None else with_parts(value, map(like, held))


@dataclass(frozen=True)
class Seed:
    """What a seed is for: a result, by its name (empty: the returned value), or an item of it, and what it was."""

    name: str
    path: str
    type: Type
    value: Any

    def __str__(self) -> str:
        if self.name:
            return f"the seed for `{self.name}{self.path}`"
        return f"the seed for {f'`{self.path}` of ' if self.path else ''}the returned value"

    def of(self, given: Any) -> Any:
        """What is passed on for a seed as it was given; None is zero. What does not fit is refused."""
        if not carries_adjoint(self.type):
            return self.value  # nothing looks at it
        if isinstance(self.type, types.BaseTuple):
            return self._structure(given)
        return self._array(given) if isinstance(self.type, types.Array) else self._number(given)

    def _structure(self, given: Any) -> Any:
        held = parts(self.value)
        assert held is not None
        if given is None:
            given = with_parts(self.value, (None,) * len(held))
        seeds = parts(given) if type(given) is type(self.value) else None
        if seeds is None or len(seeds) != len(held):
            kind = type(self.value)
            needed = f"a tuple of {len(held)} items" if kind is tuple else f"a `{kind.__name__}`"
            raise DifferentiationError(f"{self} is {described(given)}; it needs {needed}", hint=HINT)
        items = zip(item_texts(self.type), components_of(self.type), held, seeds, strict=True)
        made = [Seed(self.name, self.path + text, kind, old).of(seed) for text, kind, old, seed in items]
        return with_parts(self.value, made)

    def _array(self, given: Any) -> Any:
        if given is None:
            return np.zeros(self.value.shape, self.value.dtype)
        fits = isinstance(given, np.ndarray) and (given.shape, given.dtype) == (self.value.shape, self.value.dtype)
        if not fits:
            raise DifferentiationError(f"{self} is {described(given)}; it needs {described(self.value)}", hint=HINT)
        return given

    def _number(self, given: Any) -> Any:
        given = 0 if given is None else given
        is_complex = isinstance(given, complex | np.complexfloating) and isinstance(self.type, types.Complex)
        is_real = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
        if not is_complex and not is_real:
            raise DifferentiationError(f"{self} is {described(given)}; it needs a {self.type}", hint=HINT)
        number: Any = getattr(np, str(self.type))(given)
        return float(number) if self.type == types.float64 else number


HINT = "a seed has the form, the shapes and the dtypes of what it is the adjoint of; None is zero"


def described(value: Any) -> str:
    """What a seed is, in messages."""
    if isinstance(value, np.ndarray | ArrayLike):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, tuple) and type(value) is tuple:
        return f"a tuple of {len(value)} items"
    return f"{value!r} of type `{type(value).__name__}`"
