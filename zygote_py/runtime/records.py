"""Records in the results of gradients that are called from Python.

Numba cannot return a record that a function has made, in a tuple or by itself: it returns where the record was. So a
compiled gradient gives an array of one record, and Python is given the record in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numba import types

from zygote_py.base import structures
from zygote_py.compiler import Request
from zygote_py.ir import Type, components_of, leaf_types


def holds_record(kinds: Iterable[Type]) -> bool:
    """Return whether there are records among the arguments, or in structures among them."""
    return any(isinstance(leaf, types.Record) for kind in kinds for leaf in leaf_types(kind))


def with_records(result: Any, request: Request, kinds: Sequence[Type]) -> Any:
    """Return the result of a gradient with records in place of arrays of one record, as compiled functions give.

    Numba cannot return a record that a function has made.
    """
    numbers = range(request.captured_count, len(kinds)) if request.wrt is None else request.wrt
    asked = [kinds[number] if isinstance(number, int) else types.none for number in numbers]

    def of_parameters(found: Any) -> Any:
        return _record(found, asked[0]) if request.unwrap_single else tuple(map(_record, found, asked))

    def of_gradients(found: Any) -> Any:
        return (of_parameters(found[0]), found[1]) if request.closure else of_parameters(found)

    if request.with_value:
        return (result[0], of_gradients(result[1]))
    return (of_gradients(result[0]), result[1]) if request.has_aux else of_gradients(result)


def _record(found: Any, kind: Type) -> Any:
    if isinstance(kind, types.Record) and found is not None:
        return found[0]
    if isinstance(kind, types.BaseTuple) and found is not None:
        held = structures.parts(found) or ()
        return structures.with_parts(found, map(_record, held, components_of(kind)))
    return found
