"""Forms of derivatives that are made of gradients and pushforwards: `Jacobian(wrt=0)`, ...

They are written for given argument types: as IR, by `typed`, or as a text in Python, where there are functions within
them. In that case `written` returns the function, whose last parameter is the differentiated function (see
`zygote_py.numba_adapter.embedding.transforms`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from zygote_py import frontend, numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, element_of, is_array, is_number
from zygote_py.compiler import Form, Request, Script, Wrt, hashable, make_request, names_of, refuse_leaves
from zygote_py.frontend.values import (
    NOTHING,
    LoweredValue,
    components,
    is_tuple,
    is_whole,
    leaves_of,
    tuple_like,
    tuple_of,
    value_of,
)
from zygote_py.ir import Operand, Type, components_of, leaf_types
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SelectedParameter:
    """A selected parameter: its name, its number, and the type of the argument; an integer is taken as a float."""

    name: str
    number: int
    type: Type


def _is_complex(kind: Type) -> bool:
    """Return whether there are complex numbers in an array, a list, a dict or an object, or this is one."""
    if isinstance(kind, types.Array | types.List) and not isinstance(kind.dtype, types.Record):
        return any(map(_is_complex, leaf_types(element_of(kind))))
    return any(map(_is_complex, leaves_of(kind))) if is_whole(kind) else isinstance(kind, types.Complex)


@dataclass(frozen=True)
class Driver(Form):
    """A derivative with respect to `wrt`; the first `captured_count` parameters are captured variables."""

    wrt: Wrt = 0
    captured_count: int = 0

    def __str__(self) -> str:
        return type(self).__name__.lower()

    def request(self, primal: Any, captured_count: int, inner: Request | None) -> Request:
        """Return the request for a call from Python."""
        made = make_request(primal, self.wrt, with_value=False, captured_count=captured_count, inner=inner)
        signature = self.signature(made.signature)
        name = f"{made.name.removesuffix('_gradient')}_{self}"
        return replace(made, form=self, primal=primal, signature=signature, name=name, keyword_only=0)

    def expanded(self, primal: Any, count: int) -> Driver:
        """Return the form for a function of `*args` that is called with `count` arguments."""
        return replace(self, wrt=hashable(names_of(self.wrt, primal, count)))

    # ------------------------------------------------------------------------------------------------- to write them

    def script(self, call: numba_adapter.DerivedCall, parameters: Sequence[str]) -> Script:
        """Return the script that a driver is written to."""
        return Script(f"{call.name}_{self}", parameters, namespace={"np": np})

    def writer(self, call: numba_adapter.DerivedCall, parameters: Sequence[str]) -> frontend.Writer:
        """Return the writer of a driver's IR."""
        return frontend.Writer(call, f"{call.name}_{self}", parameters)

    def start(
        self, call: numba_adapter.DerivedCall
    ) -> tuple[frontend.Writer, list[LoweredValue], list[SelectedParameter], bool]:
        """Return a new writer, the arguments, the selected ones, and whether one was asked for by itself.

        Selected integers are converted to floats.
        """
        w = self.writer(call, call.parameters)
        asked, unwrap_single = self.asked(call)
        return w, converted(w, asked, w.parameters), asked, unwrap_single

    def asked(self, call: numba_adapter.DerivedCall) -> tuple[list[SelectedParameter], bool]:
        """Return the selected parameters, and whether `wrt` is not a tuple.

        Raises DifferentiationError for a parameter that has no derivative.
        """
        request = make_request(call.func, self.wrt, with_value=False, captured_count=self.captured_count)
        names = call.parameters
        numbers = range(self.captured_count, len(names)) if request.wrt is None else request.wrt
        found = []
        for number in numbers:
            if isinstance(number, str):
                raise refuse(
                    f"`{self}` with respect to `{number}`, which is not a parameter",
                    request.loc,
                    f"make it a parameter, or name one of {', '.join(names)}",
                )
            name, kind = names[number], call.argument_types[number]
            if isinstance(kind, types.Integer):
                kind = types.float64
            if not carries_adjoint(kind):
                raise refuse(
                    f"no {self} with respect to `{name}`, which is of type {kind}",
                    request.loc,
                    hint=f"pass floats for `{name}`, or leave it out of wrt",
                )
            if any(map(_is_complex, leaf_types(kind))):
                raise refuse(
                    f"`{self}` with respect to `{name}`, which is complex",
                    request.loc,
                    hint="let the function take the real and the imaginary part",
                )
            found.append(SelectedParameter(name, number, kind))
        return found, request.unwrap_single


def converted(
    w: frontend.Writer, asked: Sequence[SelectedParameter], args: Sequence[LoweredValue]
) -> list[LoweredValue]:
    """Return the arguments, selected integers as floats."""
    made = list(args)
    for each in asked:
        if isinstance(made[each.number].type, types.Integer):
            made[each.number] = value_of(w.cast(made[each.number].leaves[0], each.type))
    return made


def numbers_in(value: LoweredValue) -> Iterator[Operand]:
    """The numbers and arrays in a value that can change continuously."""
    if is_tuple(value.type):
        for part in components(value):
            yield from numbers_in(part)
    elif is_number(value.type) or is_array(value.type):
        yield value.leaves[0]
    else:
        refuse_leaves(value.type)


def structured(kind: Type, items: Iterator[LoweredValue], *, plain: bool = False) -> LoweredValue:
    """Return a value with the structure of a type: `items` for its numbers and arrays, None in all other places.

    If it is to be `plain`, it consists of tuples that have no names.
    """
    if isinstance(kind, types.BaseTuple):
        made = [structured(inner, items, plain=plain) for inner in components_of(kind)]
        return tuple_of(made) if plain else tuple_like(kind, made)
    return next(items) if is_number(kind) or is_array(kind) else NOTHING


def in_form(asked: Sequence[SelectedParameter], unwrap_single: bool, items: Iterator[LoweredValue]) -> LoweredValue:
    """Return one item for each number or array, in the structure of the selected arguments."""
    made = [structured(each.type, items) for each in asked]
    return made[0] if unwrap_single else tuple_of(made)
