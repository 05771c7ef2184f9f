"""Python functions that call a function or its derivatives, written as text for the types of the arguments.

    leaves("p", Point)                  p.x: float64, p.y: array(float64, 1d, C)
    built(Point, ("a", "b"))            "Point_0(a, b)"

They are ordinary Python of the compiled subset: functions that are differentiated, and drivers with functions in them.
Numba's types decide what is written: a structure of answers for a structure of arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, is_array, is_number
from zygote_py.base import OURS, define, free
from zygote_py.compiler.transforms import Form, applying
from zygote_py.frontend.values import is_whole
from zygote_py.ir import Type, components_of
from zygote_py.ir.lazy_dataclass import dataclass

WIDTH = 4  # how many directions are carried at once through arrays: as many floats as a SIMD register of 256 bits holds
MOST_NUMBERS = 8  # and through numbers

FUNCTION = "closure_"  # the parameter of a driver that takes the function


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number or an array in a value: how to write it, and its type."""

    text: str
    type: Type

    @property
    def is_array(self) -> bool:
        """Whether it is an array."""
        return isinstance(self.type, types.Array)

    @property
    def is_vector(self) -> bool:
        """Whether it is an array of one dimension."""
        return isinstance(self.type, types.Array) and self.type.ndim == 1

    @property
    def flat(self) -> str:
        """How to write its numbers as a vector, if it is an array."""
        return f"{self.text}.ravel()" if self.is_array and not self.is_vector else self.text

    @property
    def size(self) -> str:
        """How to write how many numbers it is."""
        return f"{self.text}.size" if self.is_array else "1"


def leaves(text: str, kind: Type) -> Iterator[Leaf]:
    """The numbers and arrays in a value that can change continuously."""
    if isinstance(kind, types.BaseTuple):
        for part, inner in parts(text, kind):
            yield from leaves(part, inner)
    elif is_number(kind) or is_array(kind):
        yield Leaf(text, kind)
    else:
        refuse_leaves(kind)


def refuse_leaves(kind: Type) -> None:
    """Refuse a list or the like with numbers that can change continuously."""
    if is_whole(kind) and carries_adjoint(kind):
        raise refuse(
            f"derivatives of this kind, of a value of type {kind} or with respect to one, are not supported",
            None,
            "ask for `gradient`, `pullback`, `jvp` or `hvp`, or use arrays",
        )


def parts(text: str, kind: Any) -> Iterator[tuple[str, Type]]:
    """The components of a tuple, and how to write them."""
    names = getattr(kind, "fields", None)
    for number, inner in enumerate(components_of(kind)):
        yield (f"{text}[{number}]" if names is None else f"{text}.{names[number]}"), inner


# The names that drivers use.
_OWN = re.compile(
    r"(a|back|count|dtype|dx|found|g|i|k|s|same|sets|start|unions|u|v|value|y"
    r"|([degkntuv]|dy)_\d+|range|len|float|min|closure)_*"
)


@dataclass
class Script:
    """A function that is being written: its lines, and the objects that they refer to.

    Parameters whose names the driver uses itself are renamed. The `given` parameters are followed by those in `own`.
    """

    name: str
    given: Sequence[str]
    own: Sequence[str] = (FUNCTION,)
    namespace: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    _depth: int = 1
    _variables: int = 0

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters within the function."""
        return [f"{name}_of_f" if _OWN.fullmatch(name) or name in self.namespace else name for name in self.given]

    def add(self, *lines: str) -> None:
        """Add lines."""
        self.lines += ["    " * self._depth + line for line in lines]

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        """Add a line that begins an indented block, with what is added inside."""
        self.add(line)
        self._depth += 1
        yield
        self._depth -= 1

    def named(self, value: Any, name: str) -> str:
        """Return the name of an object within the function: of a class or of a function."""
        while self.namespace.get(name, value) is not value or name in self.given:
            name += "_"
        self.namespace[name] = value
        return name

    def named_variable(self, name: str) -> str:
        """Return a name for a variable that no parameter and no object has."""
        return free(name, (*self.given, *self.own, *self.namespace))

    def fresh(self, letter: str) -> str:
        """Return the name of a new variable."""
        self._variables += 1
        return f"{letter}_{self._variables - 1}_"

    def derived(self, form: Form, function: str = FUNCTION) -> str:
        """Return a derivative of a function, as text."""
        return f"{self.named(applying(form), str(form))}({function})"

    def built(self, kind: Any, items: Iterable[str]) -> str:
        """Return a value with the structure of a tuple type and other items, as text."""
        cls = getattr(kind, "instance_class", None)
        inside = ", ".join(items)
        if cls is None:
            return f"({inside},)" if inside else "()"
        return f"{self.named(numba_adapter.constructor_of(cls), cls.__name__)}({inside})"

    def function(self) -> Callable[..., Any]:
        """Return the function."""
        text = "\n".join([f"def {self.name}({', '.join((*self.parameters, *self.own))}):", *self.lines, ""])
        names = {**self.namespace, OURS: True}
        return define(text, self.name, names, filename=f"<zygote_py {self.name}>")
