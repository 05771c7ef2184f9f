"""Numba's type inference, in which a constraint is evaluated again only where a type that it read has changed.

    with propagating_changes():
        ...                         # passes of Numba that infer types

Numba evaluates all constraints of a function, one for each statement, until nothing changes any more: as often as types
pass along the back edge of a loop to statements before it, eight times for a function of 1,800 lines. Most constraints
find all types that they need the first time, and would find the same ones each time.

A constraint is left out where this is certain: it has read known, precise types only, it has raised no error, and it
calls nothing whose type depends on more than the types of its arguments. The order of those that remain is Numba's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import types

from zygote_py.numba_adapter.base.internals import typeinfer

_FIXED: tuple[Any, ...] = (types.Function, types.NumberClass, types.BoundFunction)
_module: Any = typeinfer
_network: Any = typeinfer.ConstraintNetwork


class _TypeVars(dict[str, Any]):
    """The types of variables, in the place of Numba's `TypeVarMap`; it is noted which are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[Any] = []

    def set_context(self, context: Any) -> None:
        """Set the typing context."""
        self.context = context

    def __missing__(self, name: str) -> Any:
        found = typeinfer.TypeVar(self.context, name)
        self[name] = found
        return found

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        self.read.append(found)
        return found


class _Network(_network):  # type: ignore[misc]
    """The constraints of a function."""

    constraints: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self._settled: dict[Any, list[tuple[Any, Any]]] = {}  # what each has read when it was evaluated last

    def propagate(self, inferer: Any) -> list[Any]:
        """Evaluate the constraints that may find something new, and return their errors."""
        every, settled, typevars = self.constraints, self._settled, inferer.typevars
        one = _network()
        errors: list[Any] = []
        for constraint in every:
            read = settled.get(constraint)
            if read is not None and all(variable.type is type_ for variable, type_ in read):
                _note_source(constraint, inferer)
                continue
            one.constraints, typevars.read = [constraint], []
            found = one.propagate(inferer)
            if found:
                errors += found
                settled.pop(constraint, None)
                continue
            read = [(variable, variable.type) for variable in dict.fromkeys(typevars.read)]
            if all(_is_certain(type_) for _, type_ in read):
                settled[constraint] = read
            else:
                settled.pop(constraint, None)
        return errors


def _note_source(constraint: Any, inferer: Any) -> None:
    """Note where the type of a variable came from last, as the constraint does whenever it is evaluated."""
    if isinstance(constraint, _SOURCES[0]):
        inferer.refine_map[constraint.dst] = constraint
    elif isinstance(constraint, _SOURCES[1]):
        inferer.refine_map[constraint.target] = constraint


_SOURCES = typeinfer.Propagate, typeinfer.GetAttrConstraint


def _is_certain(type_: Any) -> bool:
    """Return whether a constraint that has read a type finds the same again.

    What a function that is being typed returns when it calls itself is known in part only.
    """
    if type_ is None or not type_.is_precise() or isinstance(type_, types.RecursiveCall):
        return False
    return not isinstance(type_, types.Callable) or isinstance(type_, _FIXED)


@contextmanager
def propagating_changes() -> Iterator[None]:
    """Within this, functions are typed so."""
    given = _module.ConstraintNetwork, _module.TypeVarMap
    _module.ConstraintNetwork, _module.TypeVarMap = _Network, _TypeVars
    try:
        yield
    finally:
        _module.ConstraintNetwork, _module.TypeVarMap = given
