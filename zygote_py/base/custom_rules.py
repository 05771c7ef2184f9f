"""The registry of custom rules, inverses, and other instructions for callables.

    give(Given("rule", f, rule))        # the public functions are in `zygote_py.api.custom_rules`
    given_for(f)                        # the entry, also for `numba.njit(f)`

Entries last as long as the process. `version()` changes with each new entry, and the objects registered by `watch` are
notified, so that compiled code that may be outdated can be detected.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal

from zygote_py.base.python_text import arguments_text, caller, parameters_text
from zygote_py.ir import Loc
from zygote_py.ir.lazy_dataclass import dataclass

Kind = Literal["rule", "inverse", "ignore", "hook", "stop"]


@dataclass(frozen=True, eq=False)
class CustomRule:
    """The entry for `target`.

    kind     "rule" (a function computes the derivative), "inverse" (only an inverse), "ignore" (no derivative),
             "hook" and "stop" (the package's own functions `hook` and `stop_gradient`).
    rule     the function that returns value and pullback, of a "rule".
    is_linear  whether the pullback of the rule is known to be linear.
    inverse  the function from the result to the first argument, if the target has one.
    """

    kind: Kind
    target: Callable[..., Any]
    rule: Callable[..., Any] | None = None
    inverse: Callable[..., Any] | None = None
    is_linear: bool = False

    @property
    def name(self) -> str:
        """The name of the target."""
        return name_of(self.target)

    @property
    def loc(self) -> Loc | None:
        """The location where the rule, or the target, is defined."""
        return place_of(self.rule or self.target)

    def __str__(self) -> str:
        return f"`{self.name}`" if self.rule is None else f"the rule `{name_of(self.rule)}` of `{self.name}`"


def name_of(function: object) -> str:
    """Return the name of a callable."""
    return str(getattr(function, "__name__", None) or type(function).__name__)


def place_of(function: object) -> Loc | None:
    """Return the location where a callable is defined, if it is written in Python."""
    code = getattr(python_function(function), "__code__", None)
    return None if code is None else Loc(code.co_filename, code.co_firstlineno)


def python_function(function: Any) -> Any:
    """Return the Python function that `numba.njit` decorated; any other object is returned as it is."""
    return function.py_func if hasattr(function, "py_func") and hasattr(function, "overloads") else function


class Ignored:
    """A function whose results are constants for differentiation; see `zygote_py.ignore`.

    Calls are those of the function, in compiled code too.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.given = CustomRule("ignore", function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<ignored {name_of(self.function)}>"

    def __reduce__(self) -> Any:
        return Ignored, (self.function,)


_rules: weakref.WeakSet[Any] = weakref.WeakSet()
_watchers: weakref.WeakSet[Any] = weakref.WeakSet()
_given: dict[int, CustomRule] = {}  # by the identity of the callable: not all can be hashed
_versions = itertools.count(1)
_version = 0


def give(given: CustomRule) -> None:
    """Register the entry for a callable, replacing an earlier one."""
    global _version
    _given[id(python_function(given.target))] = given
    if given.kind == "rule":
        _rules.add(python_function(given.rule))
    _version = next(_versions)
    for watcher in list(_watchers):
        watcher.rules_have_changed()


def watch(watcher: Any) -> None:
    """Call the method `rules_have_changed` of an object at each new entry, as long as the object lives."""
    _watchers.add(watcher)


def calling(function: Any, target: Any = None) -> Callable[..., Any]:
    """Return a Python function that calls another, with name, parameters and location of `target` or of its source."""
    if target is None:
        target = python_function(function.function if isinstance(function, Ignored) else function)
    taken = inspect.signature(target, follow_wrapped=False).parameters.values()
    named = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.kind is p.POSITIONAL_ONLY else p for p in taken]
    made: FunctionType = caller(
        function, parameters_text(named), arguments_text(named), module=target.__module__, at=target
    )
    made.__name__ = getattr(function, "__name__", target.__name__)
    made.__qualname__ = target.__qualname__
    made.__defaults__, made.__kwdefaults__ = target.__defaults__, target.__kwdefaults__
    return made


def given_for(value: object) -> CustomRule | None:
    """Return the entry for a callable."""
    if isinstance(value, Ignored):
        return value.given
    found = _given.get(id(python_function(value))) if callable(value) else None
    return None if found is None or python_function(found.target) is not python_function(value) else found


def all_given() -> list[CustomRule]:
    """Return all entries."""
    return list(_given.values())


def is_rule(function: object) -> bool:
    """Return whether a function is, or has been, a rule."""
    return function in _rules


def version() -> int:
    """Return a number that changes with each new entry."""
    return _version
