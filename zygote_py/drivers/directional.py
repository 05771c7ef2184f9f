"""Derivatives in given directions: `jvp`, `derivative`, `hvp`.

def f_jvp(args, tangents, closure_):
    value, (dy,) = pushforward(closure_)(args, (tangents,))
    return value, dy
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py import base, frontend, numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, is_array, is_number
from zygote_py.base import free
from zygote_py.compiler import GradientForm, PushForm, Request, does_not_take, signature_of, wrong_arguments
from zygote_py.drivers.forms import Driver, SelectedParameter, converted
from zygote_py.frontend.values import (
    NOTHING,
    LoweredValue,
    components,
    constant_of,
    dict_of,
    is_list,
    is_record,
    is_structured,
    is_whole,
    tuple_of,
    value_of,
    with_names,
)
from zygote_py.ir import Const, Loc, Type, components_of, copied_type
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Pushforward(Driver):
    """`jvp`: takes a tuple of arguments and a tuple with a tangent for each of them."""

    wrt: None = None

    def __str__(self) -> str:
        return "jvp"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature of the captured variables, the arguments, and their tangents."""
        captured = list(of.parameters)[: self.captured_count]
        return signature_of(*captured, free("args", captured), free("tangents", captured))

    def each_value(self, convert: Callable[[Any], Any], result: Any) -> Any:
        """Return the value and its tangent, both converted."""
        return tuple(map(convert, result))

    def count(self, args: Sequence[Any]) -> int:
        """Return the number of arguments that the function gets if the derivative is called with these."""
        given = args[self.captured_count]
        return self.captured_count + (len(given) if isinstance(given, tuple) else 1)

    def expanded(self, primal: Any, count: int) -> Driver:
        """Return the form itself, which does not depend on the number of arguments."""
        return self

    def kinds(self, argument_types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the types of the arguments of the differentiated function."""
        *captured, given, _ = argument_types
        return (*captured, *components_of(given)) if isinstance(given, types.BaseTuple) else (*captured, given)

    def argument_text(self, request: Request, text: str) -> str:
        """Return how messages name an item of `args` or `tangents`: by the parameter of the function."""
        names = list(inspect.signature(request.func).parameters)[self.captured_count :]
        found = re.fullmatch(r"(args|tangents)(?:\[(\d+)\])?(.*)", text)
        if found is None or (found[2] is None and len(names) > 1):
            return super().argument_text(request, text)
        number = int(found[2] or 0)
        name = f"{names[number]}{found[3]}" if number < len(names) else text
        return super().argument_text(request, name) if found[1] == "args" else f"the tangent of `{name}`"

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments and of the tangents."""
        captured, names = call.parameters[: self.captured_count], call.parameters[self.captured_count :]
        w = self.writer(call, (*captured, free("args", captured), free("tangents", captured)))
        *own, given, changes = w.parameters
        single = len(names) == 1
        if single and not _is_plain_tuple(given.type, 1):
            given, changes = tuple_of([given]), tuple_of([changes])
        defaults = _defaults(call, names, given.type)
        names = names[: len(names) - len(defaults)]
        for value, what in ((given, "arguments"), (changes, "tangents")):
            if not _is_plain_tuple(value.type, len(names)):
                raise _wrong_number(call.func, len(names), value.type, what)
        args, tangents = own, [NOTHING] * len(own)
        for name, arg, change in zip(names, components(given), components(changes), strict=True):
            if single and isinstance(arg.type, types.Integer):
                arg = value_of(w.cast(arg.leaves[0], types.float64))
            args.append(with_names(arg, name))
            tangents.append(tangent_for(w, name, arg, with_names(change, f"t{name}"), call.loc))
        args, tangents = [*args, *defaults], [*tangents, *[NOTHING] * len(defaults)]
        found = w.invoke(w.derived(PushForm()), tuple_of(args), tuple_of([tuple_of(tangents)]))
        value, directions = components(found)
        (change,) = components(directions)
        return w.returned(tuple_of([with_names(value, "value"), with_names(change, "dy")]))


def _defaults(call: numba_adapter.DerivedCall, names: Sequence[str], given: Type) -> list[LoweredValue]:
    """Return the defaults of the last parameters if these are not given and all have one."""
    count = len(components_of(given)) if isinstance(given, types.BaseTuple) else len(names)
    parameters = inspect.signature(call.func).parameters
    values = [parameters[name].default for name in names[count:]]
    if any(value is inspect.Parameter.empty for value in values):
        return []
    return [constant_of(value, numba_adapter.typeof(value), call.loc) for value in values]


def _wrong_number(func: Any, count: int, given: Any, what: str) -> TypeError:
    """Return the error for a number of arguments or tangents that does not match the function's parameters."""
    if not isinstance(given, types.BaseTuple) or hasattr(given, "fields"):
        return wrong_arguments(f"jvp takes the {what} of {func.__name__}() as a tuple of {count}, not as {given}")
    number = len(components_of(given))
    if what == "arguments":
        return does_not_take(func.__name__, inspect.signature(func), range(number), {})
    were = "was" if number == 1 else "were"
    return wrong_arguments(f"jvp of {func.__name__}() takes {count} tangents but {number} {were} given")


def _is_plain_tuple(kind: Type, count: int) -> bool:
    return isinstance(kind, types.BaseTuple) and not hasattr(kind, "fields") and len(components_of(kind)) == count


def tangent_for(
    w: frontend.Writer, name: str, value: LoweredValue, change: LoweredValue, loc: Loc, in_dict: bool = False
) -> LoweredValue:
    """Return the tangent of an argument, after writing its checks; `change` is what is given for it.

    What is in a dict, according to `in_dict`, cannot be one of Python's lists.
    """
    kind: Any = value.type
    given: Any = change.type
    if isinstance(given, types.NoneType):
        return NOTHING
    if isinstance(kind, types.BaseTuple):
        if not isinstance(given, types.BaseTuple) or len(components_of(given)) != len(components_of(kind)):
            raise _misfit(name, kind, given, loc)
        pairs = zip(components(value), components(change), strict=True)
        return tuple_of([tangent_for(w, name, one, other, loc, in_dict) for one, other in pairs])
    if is_whole(kind) and carries_adjoint(kind):
        return _tangent_of_container(w, name, value, change, loc, in_dict)
    if is_array(kind):
        if not isinstance(given, types.Array) or given.ndim != kind.ndim or _is_complex(given) > _is_complex(kind):
            raise _misfit(name, kind, given, loc)
        _check_shape(w, name, value, change)
        if given.dtype == kind.dtype:
            return change
        made: Any = copied_type(given)
        return value_of(w.call(np.copy, *change.leaves, type=made.copy(dtype=kind.dtype)))
    scalar = isinstance(given, types.Number | types.Boolean)
    if is_number(kind):
        if not scalar or isinstance(given, types.Complex) > isinstance(kind, types.Complex):
            raise _misfit(name, kind, given, loc)
        return change
    if scalar:
        w.raise_if(w.cast(change.leaves[0], types.boolean), f"`{name}` has no tangent but 0 or None")
    return NOTHING


def _check_shape(w: frontend.Writer, name: str, value: LoweredValue, change: LoweredValue) -> None:
    differ = w.differ(change.leaves[0], value.leaves[0])
    w.raise_if(differ, f"the tangent of `{name}` must have the shape of `{name}`")


def _tangent_of_container(
    w: frontend.Writer, name: str, value: LoweredValue, change: LoweredValue, loc: Loc, in_dict: bool
) -> LoweredValue:
    """Return the tangent of a list, of a dict with its keys in the same order, or of the fields of an object."""
    kind: Any = value.type
    given: Any = change.type
    if numba_adapter.is_object(kind):
        fields = numba_adapter.fields_of_object(kind)
        if not isinstance(given, types.BaseTuple) or len(components_of(given)) != len(fields):
            raise _misfit(name, kind, given, loc)
        if any(is_whole(field) for field in fields.values()):
            raise refuse(f"tangents of `{name}`, an object with objects or lists in it, are not supported", loc)
        pairs = zip(fields, components(change), strict=True)
        return tuple_of([tangent_for(w, f"{name}.{field}", w.field(value, field), own, loc) for field, own in pairs])
    if is_structured(kind):
        if given.dtype != kind.dtype or given.ndim != kind.ndim:
            raise _misfit(name, kind, given, loc)
        _check_shape(w, name, value, change)
        return change
    if is_record(kind):
        if given != kind:
            raise _misfit(name, kind, given, loc)
        return change
    is_dict = dict_of(kind) is not None
    if is_dict != (dict_of(given) is not None) or is_dict == is_list(given):
        raise _misfit(name, kind, given, loc)
    wrong = f"the tangent of `{name}` must have the {'keys' if is_dict else 'length'} of `{name}`"
    w.raise_if(w.call(operator.ne, w.length(change), w.length(value), type=types.boolean), wrong)
    before = w.block
    with w.entries(value) as (key, item):
        if is_dict:
            w.raise_if(w.lacks(change, key), wrong)
        found = tangent_for(w, name, item, w.at_key(change, key), loc, in_dict or is_dict)
        list_of: Any = types.ListType if in_dict else types.List
        with w.back_in(before):  # now that it is known what it will hold
            whole = w.container(types.DictType(kind.key_type, found.type) if is_dict else list_of(found.type))
        w.add_at_key(whole, key, found)
    return whole


def _misfit(name: str, kind: Type, given: Type, loc: Loc) -> Exception:
    return refuse(
        f"the tangent of `{name}`, which is of type {kind}, is of type {given}",
        loc,
        hint="a tangent has the form, the shape and the dtype of its argument; None stands for zero",
    )


def _is_complex(kind: Any) -> bool:
    return isinstance(kind, types.Complex) or (isinstance(kind, types.Array) and isinstance(kind.dtype, types.Complex))


@dataclass(frozen=True)
class Derivative(Driver):
    """`derivative`: the derivative of any result with respect to a number."""

    def each_value(self, convert: Callable[[Any], Any], result: Any) -> Any:
        """Return the derivative, or several, converted."""
        return tuple(map(convert, result)) if isinstance(self.wrt, tuple) else convert(result)

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments."""
        w, args, asked, unwrap_single = self.start(call)
        for each in asked:
            if not is_number(each.type):
                raise refuse(
                    f"`derivative` with respect to `{each.name}`, which is of type {each.type} and no number",
                    call.loc,
                    hint="use `jacobian`",
                )
        numbers = [each.number for each in asked]
        directions = []
        for one in numbers:
            tangents = [NOTHING] * len(args)
            for number in numbers:
                tangents[number] = value_of(Const(float(number == one), types.float64))
            directions.append(tuple_of(tangents))
        changes = w.invoke(w.derived(PushForm(with_value=False)), tuple_of(args), tuple_of(directions))
        found = [with_names(change, f"dy_{place}") for place, change in enumerate(components(changes))]
        return w.returned(found[0] if unwrap_single else tuple_of(found))


@dataclass(frozen=True)
class Hvp(Driver):
    """`hvp`: the derivative of the gradient in a direction, which is the last argument."""

    gives_gradients = True

    def count(self, args: Sequence[Any]) -> int:
        """Return the number of arguments that the function gets if the derivative is called with these."""
        return len(args) - 1

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature of the arguments and the direction."""
        names = list(of.parameters)
        return signature_of(*names, free("v", names))

    def kinds(self, argument_types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the types of the arguments of the differentiated function."""
        return argument_types[:-1]

    def typed(self, call: numba_adapter.DerivedCall) -> base.TypedFunction:
        """Return a function of the arguments and of the direction."""
        w = self.writer(call, list(self.signature(inspect.signature(call.func)).parameters))
        *args, direction = w.parameters
        asked, unwrap_single = self._of_all(call) if self.wrt is None else self.asked(call)
        args = converted(w, asked, args)
        if unwrap_single:
            directions: tuple[LoweredValue, ...] = (direction,)
        elif _is_plain_tuple(direction.type, len(asked)):
            directions = components(direction)
        else:
            raise refuse(
                f"`hvp` in a direction of type {direction.type}",
                call.loc,
                hint=f"pass a tuple with {', '.join(f'that of `{each.name}`' for each in asked)}",
            )
        tangents = [NOTHING] * len(args)
        for each, change in zip(asked, directions, strict=True):
            tangents[each.number] = tangent_for(w, each.name, args[each.number], change, call.loc)
        wrt = asked[0].number if unwrap_single else tuple(each.number for each in asked)
        pushed = w.derived(PushForm(with_value=False), w.derived(GradientForm(wrt)))
        (change,) = components(w.invoke(pushed, tuple_of(args), tuple_of([tuple_of(tangents)])))
        return w.returned(with_names(change, "dy"))

    def _of_all(self, call: numba_adapter.DerivedCall) -> tuple[list[SelectedParameter], bool]:
        """Return all parameters that have a tangent."""
        kinds = call.argument_types[:-1]
        if len(kinds) - self.captured_count == 1:
            return Hvp(0, self.captured_count).asked(call)
        wrt = tuple(
            n - self.captured_count
            for n, kind in enumerate(kinds)
            if n >= self.captured_count and carries_adjoint(kind)
        )
        asked, _ = Hvp(wrt, self.captured_count).asked(call)
        return asked, False
