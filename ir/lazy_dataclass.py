"""`dataclass` as in `dataclasses`, which takes a tenth of the time, and a fifth with the first object.

    @dataclass(frozen=True, slots=True)
    class Loc: ...

The standard one writes and compiles the text of about six methods for each class, which takes a millisecond. That was
half of what the import of this package took, and a twentieth of the time until the first derivative. Here only
`__init__` is written, when it is first called, and most processes make objects of few of the classes.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import reprlib
from collections.abc import Callable, Sequence
from types import MemberDescriptorType
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
    if not own.get("__doc__"):
        given.__doc__ = given.__name__  # the standard one looks for the signature
    result: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(given)
    made: dict[str, Callable[..., Any] | None] = {
        "__init__": _waiting(result, frozen),
        "__repr__": _representation(result),
    }
    if eq:
        made |= {"__eq__": _equality(result), "__hash__": _hash(result) if frozen else None}
    for name, method in made.items():
        if own.get(name) is None:
            if method is not None:
                method.__name__, method.__qualname__ = name, f"{result.__qualname__}.{name}"
            setattr(result, name, method)
    if frozen:
        result.__setattr__ = _refuse_to_assign
        result.__delattr__ = _refuse_to_assign
        if slots:
            result.__getstate__, result.__setstate__ = _state, _set_state
    return result


def _waiting(cls: Any, frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that has that of its class written, and calls it."""

    def method(self: object, *args: Any, **keywords: Any) -> None:
        cls.__init__ = _init(cls, frozen)
        cls.__init__(self, *args, **keywords)

    return method


def _init(cls: Any, frozen: bool) -> Callable[..., None]:
    """Return the `__init__` of a class."""
    absent = object()
    scope: dict[str, Any] = {"__absent__": absent}
    plain: list[str] = ["self"]
    by_name: list[str] = []
    body: list[str] = []
    for each in dataclasses.fields(cls):
        name = value = each.name
        default: Any = dataclasses.MISSING
        if each.default_factory is not dataclasses.MISSING:
            default, scope[f"__make_{name}__"] = absent, each.default_factory
            value = f"__make_{name}__() if {name} is __absent__ else {name}" if each.init else f"__make_{name}__()"
        elif each.default is not dataclasses.MISSING:
            default = each.default
            value = name if each.init else f"__default_{name}__"
        elif not each.init:
            continue
        if default is not dataclasses.MISSING:
            scope[f"__default_{name}__"] = default
        if each.init:
            with_default = name if default is dataclasses.MISSING else f"{name}=__default_{name}__"
            (by_name if each.kw_only else plain).append(with_default)
        if not frozen:
            body.append(f"self.{name} = {value}")
            continue
        slot = getattr(cls, name, None)
        is_slot = isinstance(slot, MemberDescriptorType)
        scope[f"__set_{name}__"] = slot.__set__ if is_slot else functools.partial(_assign, name)  # type: ignore[union-attr]
        body.append(f"__set_{name}__(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*plain, "*", *by_name] if by_name else plain)
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), scope)
    method = scope["__init__"]
    method.__qualname__ = f"{cls.__qualname__}.__init__"
    return method  # type: ignore[no-any-return]


def _assign(name: str, self: object, value: object) -> None:
    object.__setattr__(self, name, value)


def _values(names: Sequence[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return a function that returns the values of fields of an object."""
    match names:
        case []:
            return lambda _: ()
        case [name]:
            return lambda self: (getattr(self, name),)
        case _:
            return operator.attrgetter(*names)


def _equality(cls: Any) -> Callable[..., Any]:
    values = _values([each.name for each in dataclasses.fields(cls) if each.compare])

    def method(self: object, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return method


def _hash(cls: Any) -> Callable[..., int]:
    fields = dataclasses.fields(cls)
    values = _values([each.name for each in fields if (each.compare if each.hash is None else each.hash)])

    def method(self: object) -> int:
        return hash(values(self))

    return method


def _representation(cls: Any) -> Callable[..., str]:
    names = [each.name for each in dataclasses.fields(cls) if each.repr]

    @reprlib.recursive_repr()
    def method(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return method


def _refuse_to_assign(self: object, name: str, value: object = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change the field {name!r} of {type(self).__qualname__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
