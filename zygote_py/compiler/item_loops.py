"""Functions over arrays of inputs: loops that call a function for each item and store what it returns.

def gradient_over_items(shape, a_0, a_1, r_0, r_1):
    for i_0 in range(shape[0]):
        y = item(a_0[i_0], a_1)
        r_0[i_0] = y[0]
        r_1[i_0] = y[1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import is_array
from zygote_py.base import define, free
from zygote_py.compiler.script import parts
from zygote_py.ir import Type
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of a loop: the axes of the loops that select an item of it, or None if it is passed whole."""

    axes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure of arguments: its class, and its components, which are numbers of arguments of the loop."""

    cls: type
    parts: tuple[Any, ...]


def outputs(kind: Type, text: str = "y") -> Iterator[tuple[str, Type]]:
    """Yield how the numbers and arrays of a result are written, and their types."""
    if isinstance(kind, types.BaseTuple):
        for part, inner in parts(text, kind):
            yield from outputs(inner, part)
    elif isinstance(kind, types.Number | types.Boolean) or is_array(kind):
        yield text, kind
    elif not isinstance(kind, types.NoneType):
        raise refuse(
            f"a function over arrays of inputs cannot return values of type {kind}", None, "return numbers and arrays"
        )


def item_loop(
    name: str,
    item: Any,
    arguments: Sequence[Any],
    captured_count: int,
    inputs: Sequence[Input],
    result: Type,
    ndim: int,
    *,
    parallel: bool,
) -> Callable[..., None]:
    """Return the compiled function; it takes the shape of the loops, the inputs, captured values and the outputs.

    `arguments` are those of `item`: numbers of inputs, or structures of them. The captured values follow them.
    """
    namespace: dict[str, Any] = {"item": item, "prange": numba.prange}
    indices = [f"i_{axis}" for axis in range(ndim)]

    def written(argument: Any) -> str:
        if isinstance(argument, Structure):
            inside = ", ".join(map(written, argument.parts))
            if argument.cls is tuple:
                return f"({inside},)" if inside else "()"
            own = free(argument.cls.__name__, [known for known, cls in namespace.items() if cls is not argument.cls])
            namespace[own] = argument.cls
            return f"{own}({inside})"
        axes = inputs[argument].axes
        return f"a_{argument}[{', '.join(indices[axis] for axis in axes)}]" if axes else f"a_{argument}"

    captured = [f"c_{number}" for number in range(captured_count)]
    found = list(outputs(result))
    given = [f"a_{number}" for number in range(len(inputs))]
    lines = [f"def {name}({', '.join(['shape', *given, *captured, *(f'r_{n}' for n in range(len(found)))])}):"]
    for axis, index in enumerate(indices):
        counting = "prange" if parallel and axis == 0 else "range"
        lines.append(f"{'    ' * (axis + 1)}for {index} in {counting}(shape[{axis}]):")
    indent = "    " * (ndim + 1)
    lines.append(f"{indent}y = item({', '.join([*map(written, arguments), *captured])})")
    for number, (text, kind) in enumerate(found):
        place = ", ".join([*indices, *[":"] * getattr(kind, "ndim", 0)]) or "()"
        lines.append(f"{indent}r_{number}[{place}] = {text}")
    if not found:
        lines.append(f"{indent}pass")
    function = define("\n".join([*lines, ""]), name, namespace, filename=f"<zygote_py {name}>")
    compiled: Callable[..., None] = numba_adapter.decorated(function, {"parallel": parallel, "nogil": True})
    return compiled
