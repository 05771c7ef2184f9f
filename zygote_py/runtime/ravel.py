"""Structures of numbers and arrays as vectors, and back.

    layout = Layout(Point(1.0, np.ones((2, 3))))
    layout.flatten(Point(2.0, w))           # array([2., w[0, 0], w[0, 1], ...])
    layout.unflatten(np.arange(7.0))        # Point(0.0, array([[1., 2., 3.], [4., 5., 6.]]))

The order is that of items of tuples and of fields of dataclasses; arrays are read in row-major order, whatever their
memory layout. Everything but floats and arrays of floats is constant: it is not part of the vector, and is taken from
the structure that the layout was made from. Nothing is differentiated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from zygote_py.adjoints import refuse
from zygote_py.base import leaves, map_leaves, parts
from zygote_py.ir import Loc
from zygote_py.ir.lazy_dataclass import dataclass

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

_CONSTANTS = (int, bool, np.integer, np.bool_, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A number (`dtype` None: a Python float) or an array, and its position in the vector."""

    start: int
    stop: int
    dtype: Any
    shape: tuple[int, ...] | None  # None: a number

    def taken(self, x: Vector) -> Any:
        """Return the value of the leaf in the vector; it may share the vector's memory."""
        if self.shape is None:
            number = x.item(self.start)
            return number if self.dtype is None else self.dtype.type(number)
        return x[self.start : self.stop].astype(self.dtype, copy=False).reshape(self.shape)


class Layout:
    """The positions of the leaves of a structure in a vector of `size` floats."""

    def __init__(self, structure: Any, loc: Loc | None = None, name: str = "x0") -> None:
        """Raises DifferentiationError for complex numbers, and for values that are neither variable nor constant."""
        self.structure = structure
        self._loc = loc
        self._leaves: list[_Leaf] = []
        self.size = 0
        for path, value in leaves(name, structure):
            self._take(value, path)
        if not self._leaves:
            raise refuse(f"`{name}` holds no floats", loc, hint="pass floats, or arrays of floats, for what is to vary")

    def flatten(self, structure: Any) -> Vector:
        """Return the floats of a structure of this form, or of its gradient, as a new vector.

        Raises DifferentiationError if the structure has another form.
        """
        x = np.empty(self.size)
        for leaf, value in zip(self._leaves, self._values(self.structure, structure), strict=True):
            shape = () if leaf.shape is None else leaf.shape
            if np.shape(value) != shape or np.iscomplexobj(value):
                raise self._misfit(structure, f"has {_shown(value)} where {_shown_shape(shape)} is expected")
            x[leaf.start : leaf.stop] = value if leaf.shape is None else np.ravel(value)
        return x

    def unflatten(self, x: Vector) -> Any:
        """Return the structure of a vector, with which it may share memory."""
        found = iter(self._leaves)
        return map_leaves(lambda own: next(found).taken(x) if _varies(own) else own, self.structure)

    def _take(self, value: Any, path: str) -> None:
        if isinstance(value, complex | np.complexfloating) or (
            isinstance(value, np.ndarray) and np.iscomplexobj(value)
        ):
            raise refuse(f"`{path}` is complex", self._loc, hint="take the real and the imaginary part as two floats")
        if not _varies(value):
            array = isinstance(value, np.ndarray) and value.dtype.kind in "iubSU"
            if not array and not isinstance(value, _CONSTANTS) and not callable(value):
                raise refuse(
                    f"`{path}` is of type {type(value).__name__}, which is not supported",
                    self._loc,
                    hint="pass floats and arrays of floats, in tuples, NamedTuples and frozen dataclasses",
                )
            return
        shape = value.shape if isinstance(value, np.ndarray) else None
        dtype = value.dtype if isinstance(value, np.ndarray | np.floating) else None
        stop = self.size + (1 if shape is None else value.size)
        self._leaves.append(_Leaf(self.size, stop, dtype, shape))
        self.size = stop

    def _values(self, own: Any, value: Any) -> Iterator[Any]:
        """Return the values of the leaves of another structure of this form."""
        held = parts(own)
        if held is None:
            if _varies(own):
                yield value
            return
        given = parts(value)
        if given is None or len(given) != len(held):
            raise self._misfit(value, f"is not of the form of {type(own).__name__} with {len(held)} items")
        for mine, part in zip(held, given, strict=True):
            yield from self._values(mine, part)

    def _misfit(self, value: Any, message: str) -> Exception:
        return refuse(f"the structure {type(value).__name__} {message}", self._loc, hint="pass one like x0")


def _varies(value: Any) -> bool:
    """Return whether a leaf is part of the vector."""
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _shown(value: Any) -> str:
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


def _shown_shape(shape: tuple[int, ...]) -> str:
    return f"an array of shape {shape}" if shape else "a float"
