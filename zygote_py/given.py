"""What is said of callables from outside: the rule that gives a derivative, an inverse, or what else to do with it.

    give(Given("rule", f, rule))        # see `zygote_py.custom`, which has the public functions
    given_for(f)                        # that, also for `numba.njit(f)`

It is kept for as long as the process runs. `version()` changes whenever something is given, and who `watch`es is told,
so that whoever has compiled something can tell that it may be outdated.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal

from zygote_py.base.python_text import arguments_text, caller, parameters_text
from zygote_py.ir.core import Loc

Kind = Literal["rule", "inverse", "ignore", "hook", "stop"]


@dataclass(frozen=True, eq=False)
class Given:
    """What is given for `target`.

    kind     what it is: "rule" (a function gives the derivative), "inverse" (nothing but that), "ignore" (it has none),
             "hook" and "stop" (of the library's own functions `hook` and `stop_gradient`).
    rule     the function that gives value and pullback, of a "rule".
    inverse  the function that takes the result back to the first argument, if the target has one.
    """

    kind: Kind
    target: Callable[..., Any]
    rule: Callable[..., Any] | None = None
    inverse: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """What the target is called."""
        return name_of(self.target)

    @property
    def loc(self) -> Loc | None:
        """Where the rule, or the target, is defined."""
        return place_of(self.rule or self.target)

    def __str__(self) -> str:
        if self.rule is None:
            return f"`{self.name}`"
        return f"the rule `{name_of(self.rule)}` of `{self.name}`"


def name_of(function: object) -> str:
    """What a callable is called."""
    return str(getattr(function, "__name__", None) or type(function).__name__)


def place_of(function: object) -> Loc | None:
    """Where a callable is defined, if it is written in Python."""
    code = getattr(python_function(function), "__code__", None)
    return None if code is None else Loc(code.co_filename, code.co_firstlineno)


def python_function(function: Any) -> Any:
    """The Python function behind one that was decorated with `numba.njit`; anything else is what it is."""
    return function.py_func if hasattr(function, "py_func") and hasattr(function, "overloads") else function


class Ignored:
    """A function whose results are constants for whoever differentiates; see `zygote_py.ignore`.

    Called, it is the function; in compiled code too.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.given = Given("ignore", function)
        self.compiled: Any = None  # for compiled code

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
_given: dict[int, Given] = {}  # by the identity of the callable: not all can be hashed
_versions = itertools.count(1)
_version = 0


def give(given: Given) -> None:
    """Take down what is given for a callable, in the place of what was given before."""
    global _version
    _given[id(python_function(given.target))] = given
    if given.kind == "rule":
        _rules.add(python_function(given.rule))
    _version = next(_versions)
    for watcher in list(_watchers):
        watcher.rules_have_changed()


def watch(watcher: Any) -> None:
    """Call the method `rules_have_changed` of an object whenever something is given, as long as the object lives."""
    _watchers.add(watcher)


def calling(function: Any, target: Any = None) -> Callable[..., Any]:
    """A Python function that calls another: of the name, the parameters and the place of `target`, or of its source."""
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


def given_for(value: object) -> Given | None:
    """What is given for a callable."""
    if isinstance(value, Ignored):
        return value.given
    found = _given.get(id(python_function(value))) if callable(value) else None
    if found is None or python_function(found.target) is not python_function(value):
        return None
    return found


def all_given() -> list[Given]:
    """All that is given at present."""
    return list(_given.values())


def is_rule(function: object) -> bool:
    """Whether a function is a rule, or was one."""
    return function in _rules


def version() -> int:
    """A number that changes when something is given."""
    return _version
