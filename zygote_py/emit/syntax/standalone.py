# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"
"""Emitted modules that run where this package cannot be imported, and where it is not told what they were given.

    try:
        import zygote_py  # makes dataclasses known to Numba
    except ImportError:
        zygote_py = None

A class of the user's is imported from its module. One that cannot be imported, because it was defined in a script or
in a function, is given to the module that is executed; in the text that is shown, `definitions` defines it.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Emitted:
    """The `source` of a module that defines the function `name`, and the `globals` it needs besides its imports.

    Those functions in it that are named in `of_rules` are derived from functions of this package that rules call.
    `compiled` is what Numba gets instead, if that is different: the same with several iterations at a time.
    """

    source: str
    name: str
    globals: Mapping[str, object]
    of_rules: frozenset[str] = frozenset()
    compiled: Emitted | None = None

    @property
    def standalone(self) -> str:
        """The module with definitions of what it needs besides its imports."""
        return definitions(self.globals) + self.source


_IMPORTED = """\
try:
{imports}
except ImportError:
{instead}
"""
_CAPTURED = '''\
from collections import namedtuple

def {alias}(*names):
    """Make the class of the gradients of captured variables."""
    return namedtuple("Captured", names)
'''
_NEW = '''\
def {alias}(cls, values):
    """Make an object with these values of its fields."""
    return cls(*values)
'''


def optional_imports(imports: Mapping[tuple[str, str], str], has_dataclasses: bool, above: Sequence[str]) -> list[str]:
    """Return the lines that import names of this package, or else define what takes their place.

    `imports` maps modules and names to the names that they have in the emitted module; the lines `above` a function
    compile it.
    """
    lines = ["import zygote_py  # makes dataclasses known to Numba"] if has_dataclasses else []
    instead = ["zygote_py = None"] if has_dataclasses else []
    for (module, name), alias in sorted(imports.items()):
        lines.append(f"from {module} import {name}" + ("" if name == alias else f" as {alias}"))
        text = (_CAPTURED if name == "captured_type" else _NEW).format(alias=alias)
        instead += ["", *(above if name == "new" else ()), *text.splitlines()]
    if not lines:
        return []
    while not instead[0]:
        del instead[0]
    indented = [textwrap.indent("\n".join(each), "    ") for each in (lines, instead)]
    return _IMPORTED.format(imports=indented[0], instead=indented[1]).rstrip().splitlines()


def on_named_tuples(function, *made):
    """Let a compiled function take and return dataclasses, by way of NamedTuples, and replace the classes `made`."""
    from collections import namedtuple
    from dataclasses import fields, is_dataclass

    stand_ins, classes = {}, {}

    def stand_in(cls):
        if cls not in stand_ins:
            stand_ins[cls] = namedtuple(cls.__name__, [field.name for field in fields(cls)])
            classes[stand_ins[cls]] = cls
        return stand_ins[cls]

    def apart(value):
        if is_dataclass(value):
            return stand_in(type(value))(*[apart(getattr(value, field.name)) for field in fields(value)])
        return with_items(value, map(apart, value)) if isinstance(value, tuple) else value

    def together(value):
        if not isinstance(value, tuple):
            return value
        if type(value) not in classes:
            return with_items(value, map(together, value))
        made = object.__new__(classes[type(value)])
        for name in value._fields:
            object.__setattr__(made, name, together(getattr(value, name)))
        return made

    def with_items(value, items):
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)

    def called(*args):
        return together(function(*map(apart, args)))

    return called, *map(stand_in, made)


def without_dataclasses(name: str, made: Iterable[str], alias: str) -> list[str]:
    """Return the lines at the end that let the function `name` take and give dataclasses which Numba does not know."""
    source = inspect.getsource(on_named_tuples)
    source = textwrap.indent(source.replace("on_named_tuples", alias), "    ").rstrip()
    names = ", ".join((name, *made))
    assigned = f"{name}, *_" if not made else names
    return ["if zygote_py is None:", "", *source.splitlines(), "", f"    {assigned} = {alias}({names})"]


def definitions(values: Mapping[str, object]) -> str:
    """Return the text that defines what an emitted module is given; a comment for what cannot be defined by a text."""
    lines = [_definition(name, value) for name, value in values.items()]
    imports = sorted({each for needed, _ in lines for each in needed})
    return "\n".join([*imports, *([""] if imports else []), *(line for _, line in lines), "", ""]) if lines else ""


def _definition(name: str, value: Any) -> tuple[tuple[str, ...], str]:
    """Return the imports that it takes, and the line."""
    if isinstance(value, type) and dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        frozen = bool(getattr(value, "__dataclass_params__").frozen)  # noqa: B009
        text = f"{name} = make_dataclass({value.__name__!r}, {fields}, frozen={frozen})"
        return ("from dataclasses import make_dataclass",), text
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return ("from collections import namedtuple",), f"{name} = namedtuple({value.__name__!r}, {value._fields})"
    if isinstance(value, type) and issubclass(value, enum.Enum):
        kind = enum.IntEnum if issubclass(value, enum.IntEnum) else enum.Enum
        members = {each.name: each.value for each in value}
        return (f"from enum import {kind.__name__}",), f"{name} = {kind.__name__}({value.__name__!r}, {members})"
    if isinstance(value, np.dtype) and not value.hasobject:
        return ("import numpy as np",), f"{name} = np.{value!r}".replace("\n", " ")
    if isinstance(value, np.ndarray) and not value.size:
        return ("import numpy as np",), f"{name} = np.empty({value.shape}, {value.dtype.name!r})"
    module, called = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module not in (None, "__main__") and called.isidentifier():
        return (), f"from {module} import {called}" + ("" if called == name else f" as {name}")
    return (), f"# {name} is to be defined here: {value!r}".replace("\n", " ")
