"""The table of NumPy functions that are written in Python here, how one is written, and how it is looked up.

    @replaces(np.trace, a=array(2), offset=is_integer)      # the conditions on the types of the arguments
    def trace(a, offset=0):                                 # the function to put in the place of the call
        ...

    @implements(np.diagflat, v=is_row, k=is_integer)        # one that depends on the types, as Numba's own @overload
    def diagflat(v, k=0):                                   # types come in: this is a template
        flat = flattened(v)

        def implementation(v, k=0):
            return np.diag(flat(v), k)

        return implementation                               # None: the call stays as it is

    @implements(np.flip, m=array(least=1))
    def flip(m):                                            # lines of the body: the header is the template's own
        return text([f"return m[{', '.join(['::-1'] * m.ndim)}]"])

The parameters have NumPy's names and defaults, in all of these functions. Where a condition does not hold, the call
stays as it is. What is known while compiling comes as `types.Literal`, what was not given as the default itself
(`arguments.py` reads both). An implementation is typed by Numba, so it uses what Numba has: operators, loops, other
functions, of NumPy or of its own module. Its captured variables are constant. It is not compiled by itself: the front
end inlines it into the function that is being differentiated.

Numba has no loop over arrays of several types, nor an index of as many places as an array has axes; a function whose
lines are made for the case at hand has neither need. NumPy is there as `np`; everything else has to be given, and is
captured as in any closure. No text of a user ever comes into the lines.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numba import types

from zygote_py.base import python_text
from zygote_py.ir.core import Type
from zygote_py.library.arguments import Accepts, known_int

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of the body of an implementation, and its captured variables."""

    lines: list[str]
    captured: dict[str, object]


Implementation = Callable[..., Any] | Text | None
Template = Callable[..., Implementation]

_TEMPLATES: dict[Callable[..., object], Template] = {}
_numbers = itertools.count(1)


def implements(
    *functions: Callable[..., object], where: Callable[..., bool] | None = None, **accepts: Accepts
) -> Callable[[Function], Function]:
    """Register a template for functions of NumPy, with conditions on the types of arguments.

    `where` is a condition on all arguments together, and is asked if all others hold.
    A method of an array is taken for NumPy's function of its name, unless it is registered itself, as `np.ndarray.sort`
    is; the array comes as the first argument then.
    """

    def register(template: Function) -> Function:
        signature = inspect.signature(template)

        @functools.wraps(template)
        def checked(*args: object, **keywords: object) -> object:
            bound = signature.bind(*args, **keywords)
            bound.apply_defaults()
            if not all(accept(bound.arguments[name]) for name, accept in accepts.items()):
                return None
            if where is not None and not where(*bound.args, **bound.kwargs):
                return None
            found = template(*args, **keywords)
            return _with_header(template.__name__, signature, found) if isinstance(found, Text) else found

        for function in functions:
            assert function not in _TEMPLATES, function
            _TEMPLATES[function] = checked  # type: ignore[assignment]
        return template

    return register


def replaces(*functions: Callable[..., object], **accepts: Any) -> Callable[[Function], Function]:
    """Register an implementation that is the same for all types that fulfil the conditions."""

    def register(implementation: Function) -> Function:
        @functools.wraps(implementation)
        def template(*_: object, **__: object) -> object:
            return implementation

        implements(*functions, **accepts)(template)
        return implementation

    return register


def implemented() -> Mapping[Callable[..., object], Template]:
    """Return all functions that have a template."""
    return MappingProxyType(_TEMPLATES)


def implementation_of(
    function: Callable[..., object], arguments: Sequence[Type], keywords: Mapping[str, Type]
) -> Callable[..., object] | None:
    """Return the function that replaces a call with arguments of these types; None if the call stays."""
    template: Any = _TEMPLATES.get(function)
    if template is None:
        return None
    found: Callable[..., object] | None = template(
        *map(_given, arguments), **{name: _given(type) for name, type in keywords.items()}
    )
    return found


def _given(type: Type) -> object:
    """Return the value of a default that a user's function passes on."""
    return type.value if isinstance(type, types.Omitted) else type


def is_differentiable(type: object) -> bool:
    """Return whether a value of this type may carry a derivative: a real or complex number, or a container of such."""
    match type:
        case types.Float() | types.Complex():
            return True
        case types.Array() | types.List() | types.ListType() | types.Sequence():
            return is_differentiable(getattr(type, "dtype", None))
        case types.BaseTuple():
            parts: Sequence[object] = getattr(type, "types", ())
            return any(map(is_differentiable, parts))
        case types.Optional():
            return is_differentiable(type.type)
        case _:
            return False


# --------------------------------------------------------------------------------- implementations written as text


def text(lines: Iterable[str], **captured: object) -> Text:
    """Return the implementation of the template's own header with these lines; `captured` are names that they use."""
    return Text(list(lines), captured)


def _with_header(name: str, signature: inspect.Signature, body: Text) -> Callable[..., Any]:
    bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return written([f"def {name}{inspect.Signature(bare)}:", *indented(body.lines)], **body.captured)


def written(lines: Iterable[str], **captured: object) -> Callable[..., Any]:
    """Return the function that these lines define; `captured` are the names in them that it does not define itself.

    The lines are put where tracebacks find them.
    """
    filename = f"<zygote_py.library, text {next(_numbers)}>"
    function: Callable[..., Any] = python_text.captured(list(lines), captured, filename=filename, np=np)
    return function


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines indented by one more level."""
    return [f"    {line}" for line in lines]


def nested(loops: Iterable[tuple[str, str]], body: Iterable[str]) -> list[str]:
    """`for variable in range(length): ...` for each variable and length, one in the other, and lines in the last."""
    lines = list(body)
    for variable, length in reversed(list(loops)):
        lines = [f"for {variable} in range({length}):", *indented(lines)]
    return lines


def by_axis(axis: object, ndim: int, error: str, case: Callable[[int], list[str]]) -> list[str]:
    """Return the lines for one of the axes: those for `axis`, if it is known, else a choice at run time.

    The lines for each axis end in a `return`. An axis out of range raises `error`.
    """
    constant = known_int(axis)
    if constant is not None and -ndim <= constant < ndim:
        return case(constant % ndim)
    lines = checked_axis("axis", ndim, error)
    for number in range(ndim - 1):
        lines += [f"if axis == {number}:", *indented(case(number))]
    return [*lines, *case(ndim - 1)]


def checked_axis(variable: str, ndim: int, error: str) -> list[str]:
    """Count a negative axis from the end, and raise `error` for one out of range."""
    return [
        f"if {variable} < 0:",
        f"    {variable} = {variable} + {ndim}",
        f"if {variable} < 0 or {variable} >= {ndim}:",
        f"    raise {error}",
    ]


def tuple_text(items: Iterable[object]) -> str:
    """Return the text of a tuple of these texts."""
    parts = [str(item) for item in items]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
