"""Trees of numbers and arrays: tuples, lists, NamedTuples and dataclasses of numbers, arrays, and anything else.

    real_parts((1.0, np.array([2 + 3j])))       # array([1., 2., 3.]): a complex number counts as two real ones
    laid_out((x, y), "F")                       # the same with arrays in the order of Fortran

What has no derivative (integers, functions, enumeration members) is part of a tree but not of its real parts.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def is_structure(tree: Any) -> bool:
    """Whether a tree is a dataclass's instance."""
    return dataclasses.is_dataclass(tree) and not isinstance(tree, type)


def items_of(tree: Any) -> list[Any] | None:
    """The items of a tuple, a list or a dataclass's instance; None for a leaf."""
    if isinstance(tree, tuple | list):
        return list(tree)
    if is_structure(tree):
        return [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    return None


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree but None, those without derivative too."""
    items = items_of(tree)
    if items is not None:
        for item in items:
            yield from leaves(item)
    elif tree is not None:
        yield tree


def kind_of(leaf: Any) -> str:
    """Return "f" for real floats and arrays of them, "c" for complex ones, "" for what has no derivative."""
    if isinstance(leaf, enum.Enum) or not isinstance(leaf, np.ndarray | np.generic | float | complex):
        return ""
    kind = np.asarray(leaf).dtype.kind
    return kind if kind in "fc" else ""


def is_active(tree: Any) -> bool:
    """Whether anything in a tree has a derivative."""
    return any(kind_of(leaf) for leaf in leaves(tree))


def real_parts(tree: Any) -> np.ndarray:
    """The floats of a tree in a row; a complex number is two."""
    found = [np.zeros(0)]
    for leaf in leaves(tree):
        if kind_of(leaf) == "c":
            values = np.asarray(leaf)
            found.append(np.stack([values.real, values.imag], axis=-1).astype(np.float64).ravel())
        elif kind_of(leaf) == "f":
            found.append(np.asarray(leaf).astype(np.float64).ravel())
    return np.concatenate(found)


def map_tree(change: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with every leaf but None changed."""
    if isinstance(tree, tuple):
        items = [map_tree(change, item) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    if isinstance(tree, list):
        return [map_tree(change, item) for item in tree]
    if is_structure(tree):
        made = object.__new__(type(tree))
        for field in dataclasses.fields(tree):
            object.__setattr__(made, field.name, map_tree(change, getattr(tree, field.name)))
        return made
    return tree if tree is None else change(tree)


def with_parts(tree: Any, numbers: Iterator[float]) -> Any:
    """The same tree, its floats replaced in the order of `real_parts`."""

    def change(leaf: Any) -> Any:
        if not kind_of(leaf):
            return leaf
        parts = 2 if kind_of(leaf) == "c" else 1
        drawn = np.array([next(numbers) for _ in range(parts * np.size(leaf))])
        new = drawn[0::2] + 1j * drawn[1::2] if parts == 2 else drawn
        if not isinstance(leaf, np.ndarray):
            return type(leaf)(new[0])
        changed = np.empty_like(leaf) if _is_contiguous(leaf) else in_layout(leaf, "A")
        changed[...] = new.reshape(leaf.shape)
        return changed

    return map_tree(change, tree)


def copied(tree: Any) -> Any:
    """The same with copies of the arrays, in their layouts and with their dtypes; equal arrays stay one array."""
    known: dict[int, np.ndarray] = {}

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        if id(leaf) not in known:
            known[id(leaf)] = in_layout(leaf, "A") if not _is_contiguous(leaf) else leaf.copy(order="K")
        return known[id(leaf)]

    return map_tree(change, tree)


def _is_contiguous(array: np.ndarray) -> bool:
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def in_layout(array: np.ndarray, layout: str) -> np.ndarray:
    """A copy in the order "C" or "F", or strided ("A")."""
    if layout != "A" or not array.ndim:
        return np.array(array, order="F" if layout == "F" else "C")
    room = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
    view = room[(slice(None, None, -2), *(slice(1, None, 2),) * (array.ndim - 1))][tuple(map(slice, array.shape))]
    view[...] = array
    return view


def laid_out(args: tuple[Any, ...], layout: str) -> Any:
    """Copies of all arrays in one layout."""
    return map_tree(lambda leaf: in_layout(leaf, layout) if isinstance(leaf, np.ndarray) else leaf, args)


def narrow(tree: Any) -> Any:
    """The same in single precision."""
    kinds = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}

    def change(leaf: Any) -> Any:
        if not kind_of(leaf) or np.asarray(leaf).dtype not in kinds:
            return leaf
        small = kinds[np.asarray(leaf).dtype]
        return leaf.astype(small) if isinstance(leaf, np.ndarray) else small(leaf)

    return map_tree(change, tree)


def in_types_of(seeds: Any, results: Any) -> Any:
    """Seeds in the precision of the results that they belong to."""
    values = (leaf for leaf in leaves(results) if is_active(leaf))

    def change(seed: Any) -> Any:
        value = next(values)
        return seed.astype(value.dtype) if isinstance(seed, np.ndarray) else np.asarray(value).dtype.type(seed)

    return map_tree(change, seeds)


def seed_like(tree: Any, rng: np.random.Generator) -> Any:
    """Random numbers in the shape of the floats of a result; None for what has no derivative."""

    def change(leaf: Any) -> Any:
        if not kind_of(leaf):
            return None
        values = np.asarray(leaf)
        drawn = rng.uniform(0.5, 2.0, values.shape) * rng.choice((-1.0, 1.0), values.shape)
        if values.dtype.kind == "c":
            drawn = drawn + 1j * rng.uniform(0.5, 2.0, values.shape)
        return drawn.astype(values.dtype) if isinstance(leaf, np.ndarray) else values.dtype.type(drawn)

    return map_tree(change, tree)


def same(a: Any, b: Any, what: str, exact: bool = True) -> None:
    """Two trees are equal: to the bit, NaN to itself and the zeros apart, or to rounding."""
    left, right = list(leaves(a)), list(leaves(b))
    assert len(left) == len(right), f"{what}: {a!r} is not {b!r}"
    for x, y in zip(left, right, strict=True):
        if isinstance(x, enum.Enum) or not isinstance(x, np.ndarray | np.generic | bool | int | float | complex):
            assert x is y or x == y, f"{what}: {x!r} is not {y!r}"
            continue
        one, other = np.asarray(x), np.asarray(y)
        assert one.shape == other.shape, f"{what}: shape {one.shape} is not {other.shape}"
        if exact:
            assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes(), f"{what}: {x!r}, {y!r}"
        else:
            single = {np.dtype(np.float32), np.dtype(np.complex64)} & {one.dtype, other.dtype}
            rounding = 1e-4 if single else 1e-12
            np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding, err_msg=what)


def same_form(arg: Any, gradient: Any, what: str) -> None:
    """A gradient has the classes, shapes and dtypes of its argument, and None for what has no derivative.

    Its arrays are writable and share no memory with the argument.
    """
    if not is_active(arg):
        assert all(leaf is None for leaf in leaves(gradient)), f"{what} is {gradient!r} and not None"
        assert gradient is None or items_of(arg) is not None, f"{what} is {gradient!r} and not None"
    elif (items := items_of(arg)) is not None:
        assert type(gradient) is type(arg), f"{what} is of {type(gradient)}, not of {type(arg)}"
        parts = items_of(gradient)
        assert parts is not None
        assert len(parts) == len(items), f"{what} has {len(parts)} items"
        for position, (item, part) in enumerate(zip(items, parts, strict=True)):
            same_form(item, part, f"{what}[{position}]")
    elif isinstance(arg, np.ndarray):
        assert isinstance(gradient, np.ndarray), f"{what} is {gradient!r} and not an array"
        assert gradient.shape == arg.shape, f"{what} has shape {gradient.shape}, not {arg.shape}"
        assert gradient.dtype == arg.dtype, f"{what} has dtype {gradient.dtype}, not {arg.dtype}"
        assert gradient.flags.writeable, f"{what} cannot be written to"
        assert not np.shares_memory(arg, gradient), f"{what} shares memory with the argument"
    else:
        assert kind_of(gradient) == kind_of(arg), f"{what} is {gradient!r}"
        assert np.shape(gradient) == (), f"{what} has shape {np.shape(gradient)}"
