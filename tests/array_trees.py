"""Trees of numbers and arrays: numbers, complex numbers, arrays, None, and tuples and lists of them.

    real_parts((1.0, np.array([2 + 3j])))       # array([1., 2., 3.]): a complex number counts as two real ones
    laid_out((x, y), "F")                       # the same with arrays in the order of Fortran

What has no derivative (integers, booleans) is part of a tree but not of its real parts. It knows no dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def leaves(tree: Any) -> Iterator[Any]:
    """The numbers and arrays of a tree, those without derivative too."""
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from leaves(item)
    elif tree is not None:
        yield tree


def is_active(leaf: Any) -> bool:
    """Whether anything in a tree has a derivative."""
    return any(np.asarray(part).dtype.kind in "fc" for part in leaves(leaf))


def real_parts(tree: Any) -> np.ndarray:
    """The floats of a tree in a row; a complex number is two."""
    found = [np.zeros(0)]
    for leaf in leaves(tree):
        values = np.asarray(leaf)
        if values.dtype.kind == "c":
            found.append(np.stack([values.real, values.imag], axis=-1).astype(np.float64).ravel())
        elif values.dtype.kind == "f":
            found.append(values.astype(np.float64).ravel())
    return np.concatenate(found)


def map_tree(change: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with every number and array changed."""
    if isinstance(tree, tuple):
        items = [map_tree(change, item) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    if isinstance(tree, list):
        return [map_tree(change, item) for item in tree]
    return tree if tree is None else change(tree)


def with_parts(tree: Any, numbers: Iterator[float]) -> Any:
    """The same tree, its floats replaced in the order of `real_parts`."""

    def change(leaf: Any) -> Any:
        values = np.asarray(leaf)
        if values.dtype.kind not in "fc":
            return leaf
        parts = 2 if values.dtype.kind == "c" else 1
        drawn = np.array([next(numbers) for _ in range(parts * values.size)])
        new = drawn[0::2] + 1j * drawn[1::2] if parts == 2 else drawn
        if not isinstance(leaf, np.ndarray):
            return type(leaf)(new[0])
        changed = np.empty_like(leaf)  # keeps the layout
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
        small = kinds.get(np.asarray(leaf).dtype)
        if small is None:
            return leaf
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
        values = np.asarray(leaf)
        if values.dtype.kind not in "fc":
            return None
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
        one, other = np.asarray(x), np.asarray(y)
        assert one.shape == other.shape, f"{what}: shape {one.shape} is not {other.shape}"
        if exact:
            assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes(), f"{what}: {x!r}, {y!r}"
        else:
            single = {np.dtype(np.float32), np.dtype(np.complex64)} & {one.dtype, other.dtype}
            rounding = 1e-4 if single else 1e-12
            np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding, err_msg=what)
