"""`dataclass` as in `dataclasses`, whose methods are written when one of them is first called.

    @dataclass(frozen=True, slots=True)
    class Loc: ...

The standard one writes and compiles the text of about six methods for each class, which takes a millisecond, when the
class is defined. That was half of what the import of this package took, and most processes make objects of few of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Any:
        """Return the class as a dataclass: see `dataclasses.dataclass`."""

        def made(given: type) -> Any:
            return _made(given, eq, frozen, slots, kw_only)

        return made if cls is None else made(cls)


def _made(given: type, eq: bool, frozen: bool, slots: bool, kw_only: bool) -> Any:
    own = vars(given)
    result: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(given)
    compared = ("__eq__", "__hash__") if eq else ()
    waiting = [name for name in ("__init__", "__repr__", *compared) if own.get(name) is None]
    if eq and not frozen and "__hash__" in waiting:
        waiting.remove("__hash__")
        result.__hash__ = None

    def complete() -> None:
        plain = _written(result, eq, frozen)
        for name in waiting:
            setattr(result, name, vars(plain)[name])

    for name in waiting:
        setattr(result, name, _first(result, name, complete))
    if frozen:
        result.__setattr__ = _refuse_to_assign
        result.__delattr__ = _refuse_to_assign
        if slots:
            result.__getstate__, result.__setstate__ = _state, _set_state
    return result


def _first(cls: type, name: str, complete: Callable[[], None]) -> Callable[..., Any]:
    """Return a method that has the methods of its class written, its own among them, and calls that."""

    def method(self: object, *args: Any, **keywords: Any) -> Any:
        complete()
        return vars(cls)[name](self, *args, **keywords)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return method


def _written(cls: Any, eq: bool, frozen: bool) -> type:
    """Return a standard dataclass with the same fields."""
    parts = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    fields: list[tuple[str, Any, Any]] = []
    for each in dataclasses.fields(cls):
        fields.append((each.name, object, dataclasses.field(**{part: getattr(each, part) for part in parts})))
    space = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
    return dataclasses.make_dataclass(cls.__name__, fields, namespace=space, eq=eq, frozen=frozen)


def _refuse_to_assign(self: object, name: str, value: object = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change the field {name!r} of {type(self).__qualname__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
