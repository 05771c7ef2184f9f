"""How functions of NumPy are written in Python: registration, conditions on arguments, implementations as text.

    @replaces(np.trace, a=array(2), offset=is_integer)      # conditions on the types of the arguments
    def trace(a, offset=0):                                 # the function that replaces the call
        ...

    @implements(np.diagflat, v=is_row, k=is_integer)        # one that depends on the types, as with Numba's @overload
    def diagflat(v, k=0):                                   # this template receives types
        flat = flattened(v)

        def implementation(v, k=0):
            return np.diag(flat(v), k)

        return implementation                               # None: the call stays as it is

    @implements(np.flip, m=array(least=1))
    def flip(m):                                            # lines of the body: the header is the template's own
        return text([f"return m[{', '.join(['::-1'] * m.ndim)}]"])

The parameters have NumPy's names and defaults. Where a condition does not hold, the call stays as it is. Values known
while compiling come as `types.Literal`, arguments that were not given as the default itself or as `types.Omitted`.

    known_int(types.literal(1))     1: a constant
    known_int(types.int64)          None: known at run time only
    common_dtype([f32_array, i64_array])        dtype("float64")
    flattened(f64[:, :])(x)         np.ravel(x), a view if x is in C order
    flattened((f64, f64))(x)        np.ravel(np.asarray(x)), a new array with x[0] and x[1]

Numba types an implementation, so it may use everything that Numba supports: operators, loops, other functions, of NumPy
or of its own module. Its captured variables are constant. It is not compiled by itself: the front end inlines it into
the function that is being differentiated.

Numba has no loop over arrays of several types, nor an index of as many places as an array has axes; a function whose
lines are made for the case at hand needs neither. NumPy is available as `np` in them; everything else is passed, and
captured as in any closure. No text of a user ever enters the lines.
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from numba import types

from zygote_py.base import python_text
from zygote_py.frontend.values import overload
from zygote_py.ir import Type, components_of
from zygote_py.ir.lazy_dataclass import dataclass

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of the body of an implementation, and its captured variables."""

    lines: list[str]
    captured: dict[str, object]


Implementation = Callable[..., Any] | Text | None

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
            overload(function, checked)
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
    filename = f"<zygote_py.numpy_functions, text {next(_numbers)}>"
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


Accepts = Callable[[Any], bool]
INEXACT = types.Float | types.Complex


class Unknown(enum.Enum):
    """Stands for a value that is not known before the function runs."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


def known(given: object) -> object:
    """Return the value of an argument if it is known while compiling; otherwise UNKNOWN."""
    match given:
        case types.Literal():
            return given.literal_value
        case types.NoneType():
            return None
        case types.Omitted():
            return given.value
        case types.Type():
            return UNKNOWN
        case _:
            return given


def is_none(given: object) -> bool:
    """Return whether an argument is None, given or by default."""
    return known(given) is None


def known_int(given: object) -> int | None:
    """Return the value of an integer that is known when compiling, else None."""
    value = known(given)
    return int(value) if isinstance(value, int | np.integer) else None


def is_integer(given: object) -> bool:
    """Return whether an argument is an integer, known or not."""
    return isinstance(given, types.Integer) or known_int(given) is not None


def is_number(given: object) -> bool:
    """Return whether an argument, as a type, is a number or a boolean."""
    return isinstance(given, types.Number | types.Boolean)


def is_list(given: object) -> bool:
    """Return whether an argument is a list."""
    return isinstance(given, types.List | types.ListType)


def is_slice(given: object) -> bool:
    """Return whether an argument is a slice."""
    return isinstance(given, types.SliceType)


def is_shape(given: object) -> bool:
    """Return whether an argument is an integer or a tuple of some."""
    if isinstance(given, types.BaseTuple):
        return len(given) > 0 and all(map(is_integer, components_of(given)))
    return is_integer(given)


def array(*ndims: int, least: int = 0, of: Any = object) -> Accepts:
    """Accept arrays of these numbers of axes, of at least so many axes, and of elements of such types."""

    def accepts(given: Any) -> bool:
        if not isinstance(given, types.Array) or not isinstance(given.dtype, of):
            return False
        return given.ndim in ndims if ndims else given.ndim >= least

    return accepts


is_array = array()


def either(*conditions: Accepts) -> Accepts:
    """Accept arguments that satisfy one of several conditions."""
    return lambda given: any(accepts(given) for accepts in conditions)


def optional(accepts: Accepts) -> Accepts:
    """Accept None too."""
    return either(is_none, accepts)


def one_of(*values: object) -> Accepts:
    """Accept an argument that is known to be one of these values."""
    return lambda given: known(given) in values


_OF_PYTHON: dict[type, Type] = {
    bool: types.boolean,
    int: types.int64,
    float: types.float64,
    complex: types.complex128,
}


def type_of(given: object) -> Type:
    """Return the type of a number that may have come as itself, as defaults do."""
    if isinstance(given, types.Type):
        plain: Type = types.unliteral(given)
        return plain
    return _OF_PYTHON[type(given)]


def dtype_of(given: Any) -> np.dtype[np.generic]:
    """Return the NumPy dtype of a number or of the elements of an array, of a list or of a tuple of numbers."""
    if isinstance(given, types.BaseTuple):
        return common_dtype(components_of(given))
    return np.dtype(str(types.unliteral(given))) if is_number(given) else dtype_of(given.dtype)


def common_dtype(parts: Iterable[Any]) -> np.dtype[np.generic]:
    """Return the dtype that these arrays or numbers have in common."""
    return np.result_type(*map(dtype_of, parts))


def layout_of_all(arrays: Iterable[types.Array]) -> str:
    """Return the layout of what several arrays are joined into: Fortran's if all have it."""
    return "F" if all(array.layout == "F" for array in arrays) else "C"


def lengths_of(name: str, shape: Any) -> list[str]:
    """Return the texts of the lengths in a shape that is an integer or a tuple, and is called `name`."""
    return [f"{name}[{axis}]" for axis in range(len(shape))] if isinstance(shape, types.BaseTuple) else [name]


# ---------------------------------------------------------------------------------------------- elements in a row


def is_row(given: Any) -> bool:
    """Return whether the elements of an argument can be put in a row: of a number, an array, a tuple or a list."""
    if isinstance(given, types.BaseTuple):
        return len(given) > 0 and _is_nested(given)
    return is_number(given) or isinstance(given, types.Array) or (is_list(given) and is_number(given.dtype))


def is_sequence(given: Any) -> bool:
    """Return whether `is_row` holds and the argument is not a number."""
    return is_row(given) and not is_number(given)


def is_index_row(given: Any) -> bool:
    """Return whether an argument is an array, a list or a tuple of integers."""
    is_known = isinstance(given, types.Array | types.Sequence) and is_row(given)
    return is_known and dtype_of(given).kind in "iu"


def _is_nested(given: Any) -> bool:
    return all(map(_is_nested, components_of(given))) if isinstance(given, types.BaseTuple) else is_number(given)


def flattened(given: Any) -> Callable[[Any], Any]:
    """Return the function that puts the elements of an argument for which `is_row` holds into a vector."""
    if isinstance(given, types.Array):
        return in_c_order
    return _of_list(dtype_of(given)) if is_list(given) else _of_numbers


def in_c_order(a: Any) -> Any:
    """Return the elements of an array as an array of one axis, in C order: a view if there can be one."""
    return np.ravel(a)


def _of_numbers(a: Any) -> Any:
    return np.ravel(np.asarray(a))


def _of_list(dtype: np.dtype[np.generic]) -> Callable[[Any], Any]:
    def of_list(a: Any) -> Any:
        result = np.empty(len(a), dtype)
        for i in range(len(a)):
            result[i] = a[i]
        return result

    return of_list


def in_memory_order(a: types.Array) -> Callable[[Any], Any]:
    """Return the function that puts the elements of such an array into a vector, in the order of `np.nditer`."""
    return itself if a.ndim == 1 else {"C": _as_view, "F": _as_transposed_view}.get(a.layout, _as_copy)


def itself(a: Any) -> Any:
    """Return the argument."""
    return a


def _as_view(a: Any) -> Any:
    return a.reshape(a.size)


def _as_transposed_view(a: Any) -> Any:
    return a.T.reshape(a.size)


def _as_copy(a: Any) -> Any:
    return a.copy().reshape(a.size)
