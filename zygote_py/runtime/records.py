"""Records in the results of gradients that are called from Python.

Numba cannot return a record that a function has made, in a tuple or by itself: it returns where the record was. So a
compiled gradient gives an array of one record, and Python is given the record in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numba import types

from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.base import structures
from zygote_py.compiler import Form, Request
from zygote_py.ir import Type, components_of, leaf_types


def holds_record(kinds: Iterable[Type]) -> bool:
    """Return whether there are records among the arguments, or in structures among them."""
    return any(isinstance(leaf, types.Record) for kind in kinds for leaf in leaf_types(kind))


def with_records(result: Any, form: Form | None, request: Request, kinds: Sequence[Type]) -> Any:
    """Return the result of a derivative with records in place of arrays of one record, as compiled functions give.

    `kinds` are the types of the arguments; `form` is None for a gradient.
    """
    if form is not None and not form.gives_gradients:
        inner = request.inner
        if inner is None:
            return result
        taken = form.kinds(tuple(kinds))
        return form.each_value(lambda value: with_records(value, inner.form, inner, taken), result)
    kinds = kinds if form is None else form.kinds(tuple(kinds))
    numbers = range(request.captured_count, len(kinds)) if request.wrt is None else request.wrt
    asked = [kinds[number] if isinstance(number, int) else types.none for number in numbers]
    if request.form is not None and request.wrt is None:  # `hvp` of all parameters that can have a direction
        asked = list(filter(carries_adjoint, asked))

    def of_parameters(found: Any) -> Any:
        return as_record(found, asked[0]) if request.unwrap_single else tuple(map(as_record, found, asked))

    def of_gradients(found: Any) -> Any:
        return (of_parameters(found[0]), found[1]) if request.closure else of_parameters(found)

    if request.with_value:
        return (result[0], of_gradients(result[1]))
    return (of_gradients(result[0]), result[1]) if request.has_aux else of_gradients(result)


def as_record(found: Any, kind: Type) -> Any:
    """Return a gradient with the record in each array of one record; `kind` is the type of the argument."""
    if isinstance(kind, types.Record) and found is not None:
        return found[0]
    if isinstance(kind, types.BaseTuple) and found is not None:
        held = structures.parts(found) or ()
        return structures.with_parts(found, map(as_record, held, components_of(kind)))
    return found
