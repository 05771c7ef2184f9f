"""Which arrays of a random program may share memory, so that no statement updates in place what it reads.

    families, shapes = Families(), {"a": (3,), "b": (3,), "u": (2,)}
    families.join("u", "a")                     # u = a[1:]
    families.apart("a[:2]", "u", shapes)        # 'u.copy()'
    families.apart("a[:]", "b", shapes)         # 'b'

In `a[:] += a[::-1]` Numba reads elements that it has written already, NumPy does not, and the compiler refuses it.
Names that were joined are of one family for good, whatever is assigned to them later, so that loops and branches need
no thought.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

Shapes = Mapping[str, tuple[int, ...]]


class Families:
    """Names of arrays in sets, those in one set being of memory that may be shared."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def join(self, *names: str) -> None:
        """These arrays may share memory from now on."""
        first, *others = map(self._oldest, names)
        for other in others:
            self._parents[other] = first

    def join_with_all_in(self, name: str, text: str, shapes: Shapes) -> None:
        """An array may share memory with each array in the expression that it is a view of."""
        for node in ast.walk(_expression(text)):
            if isinstance(node, ast.Name) and node.id in shapes:
                self.join(node.id, name)

    def relatives(self, name: str, among: Iterable[str]) -> list[str]:
        """Those of some names that may share memory with this one, itself included."""
        return [other for other in among if self._oldest(other) == self._oldest(name)]

    def apart(self, target: str, text: str, shapes: Shapes) -> str:
        """Return a text that `target op= text` may read: a copy if the text is a view of the target, else the text."""
        written, read = _expression(target), _expression(text)
        if not _dimensions(read, shapes) or ast.dump(written) == ast.dump(read) or _are_rows(written, read):
            return text
        names = [node.id for node in map(_base, (written, read)) if isinstance(node, ast.Name)]
        return f"{text}.copy()" if len({*map(self._oldest, names)}) == 1 else text

    def _oldest(self, name: str) -> str:
        while name in self._parents and self._parents[name] != name:
            name = self._parents[name]
        return name


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _base(node: ast.expr) -> ast.expr:
    """Return the base of a view: `a` for `a[0].reshape(2)`."""
    while True:
        match node:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case _:
                return node


def _dimensions(node: ast.expr, shapes: Shapes) -> int:
    """Of a name or a view; none of an element, and of what has memory of its own: a call of NumPy, a sum."""
    match node:
        case ast.Name(id=name):
            return len(shapes.get(name, ()))
        case ast.Subscript(value=inner, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            return max(_dimensions(inner, shapes) - sum(not isinstance(part, ast.Slice) for part in parts), 0)
        case ast.Attribute(value=inner, attr="T"):
            return _dimensions(inner, shapes)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="reshape")) if name in shapes:
            return 1
    return 0


def _are_rows(one: ast.expr, other: ast.expr) -> bool:
    """Whether both are rows of one matrix, which are the same or have no element in common."""
    match one, other:
        case ast.Subscript(value=ast.Name(id=a), slice=i), ast.Subscript(value=ast.Name(id=b), slice=k) if a == b:
            return not any(isinstance(node, ast.Slice | ast.Tuple) for node in (i, k))
    return False
