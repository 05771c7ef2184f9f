"""Derivatives in given directions: `jvp`, `derivative`, `hvp`.

def f_jvp(args, tangents, closure_):
    value, (dy,) = pushforward(closure_)(args, (tangents,))
    return value, dy
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.typed import List

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, is_array, is_number
from zygote_py.base import free
from zygote_py.compiler import (
    FUNCTION,
    GradientForm,
    PushForm,
    Request,
    Script,
    does_not_take,
    parts,
    signature_of,
    wrong_arguments,
)
from zygote_py.drivers.forms import Driver
from zygote_py.frontend.values import dict_of, is_list, is_record, is_structured, is_whole
from zygote_py.ir import Loc, Type, components_of
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Pushforward(Driver):
    """`jvp`: takes a tuple of arguments and a tuple with a tangent for each of them."""

    wrt: None = None

    def __str__(self) -> str:
        return "jvp"

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature of the captured variables, the arguments, and their tangents."""
        return signature_of(*list(of.parameters)[: self.captured_count], "args", "tangents")

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

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments and of the tangents."""
        names = call.parameters
        captured, names = names[: self.captured_count], names[self.captured_count :]
        script = self.script(call, captured)
        captured = script.parameters
        script.own = ("args", "tangents", FUNCTION)
        given, changes = call.argument_types[self.captured_count :]
        loc = call.loc
        if len(names) == 1 and not _is_plain_tuple(given, 1):
            script.add("args, tangents = (args,), (tangents,)")
            given, changes = types.Tuple((given,)), types.Tuple((changes,))
        for kind, what in ((given, "arguments"), (changes, "tangents")):
            if not _is_plain_tuple(kind, len(names)):
                raise _wrong_number(call.func, len(names), kind, what)
        single = len(names) == 1
        args: list[str] = []
        tangents: list[str] = []
        for number, (name, kind, change) in enumerate(
            zip(names, components_of(given), components_of(changes), strict=True)
        ):
            text = f"args[{number}]"
            if single and isinstance(kind, types.Integer):
                text, kind = f"float({text})", types.float64
            args.append(text)
            tangents.append(tangent_for(script, name, text, kind, f"tangents[{number}]", change, loc))
        own = [*captured, *args]
        changed = [*["None"] * len(captured), *tangents]
        pushed = script.derived(PushForm())
        script.add(f"value, (dy,) = {pushed}(({', '.join(own)},), (({', '.join(changed)},),))", "return value, dy")
        return script.function()


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
    script: Script, name: str, text: str, kind: Any, change: str, given: Any, loc: Loc, in_dict: bool = False
) -> str:
    """Return the tangent of an argument as text, after writing its checks; the two types are `kind` and `given`.

    What is in a dict, according to `in_dict`, cannot be one of Python's lists.
    """
    if isinstance(given, types.NoneType):
        return "None"
    if isinstance(kind, types.BaseTuple):
        if not isinstance(given, types.BaseTuple) or len(components_of(given)) != len(components_of(kind)):
            raise _misfit(name, kind, given, loc)
        pairs = zip(parts(text, kind), parts(change, given), strict=True)
        made = [tangent_for(script, name, one, inner, other, own, loc, in_dict) for (one, inner), (other, own) in pairs]
        return f"({', '.join(made)},)"
    if is_whole(kind) and carries_adjoint(kind):
        return _tangent_of_container(script, name, text, kind, change, given, loc, in_dict)
    if is_array(kind):
        if not isinstance(given, types.Array) or given.ndim != kind.ndim or _is_complex(given) > _is_complex(kind):
            raise _misfit(name, kind, given, loc)
        message = f"the tangent of `{name}` must have the shape of `{name}`"
        script.add(f"if {change}.shape != {text}.shape:", f"    raise ValueError({message!r})")
        return change if given.dtype == kind.dtype else f"{change}.astype({script.named(_dtype(kind), 'dtype')})"
    scalar = isinstance(given, types.Number | types.Boolean)
    if is_number(kind):
        if not scalar or isinstance(given, types.Complex) > isinstance(kind, types.Complex):
            raise _misfit(name, kind, given, loc)
        return change
    if scalar:
        message = f"`{name}` has no tangent but 0 or None"
        script.add(f"if {change} != 0:", f"    raise ValueError({message!r})")
    return "None"


def _tangent_of_container(
    script: Script, name: str, text: str, kind: Any, change: str, given: Any, loc: Loc, in_dict: bool
) -> str:
    """Return the tangent of a list, of a dict with its keys in the same order, or of the fields of an object."""
    if numba_adapter.is_object(kind):
        fields = numba_adapter.fields_of_object(kind)
        if not isinstance(given, types.BaseTuple) or len(components_of(given)) != len(fields):
            raise _misfit(name, kind, given, loc)
        if any(is_whole(field) for field in fields.values()):
            raise refuse(f"tangents of `{name}`, an object with objects or lists in it, are not supported", loc)
        pairs = zip(fields.items(), parts(change, given), strict=True)
        made = [
            tangent_for(script, f"{name}.{field}", f"{text}.{field}", inner, other, own, loc)
            for (field, inner), (other, own) in pairs
        ]
        return f"({', '.join(made)},)"
    if is_structured(kind):
        if given.dtype != kind.dtype or given.ndim != kind.ndim:
            raise _misfit(name, kind, given, loc)
        message = f"the tangent of `{name}` must have the shape of `{name}`"
        script.add(f"if {change}.shape != {text}.shape:", f"    raise ValueError({message!r})")
        return change
    if is_record(kind):
        if given != kind:
            raise _misfit(name, kind, given, loc)
        return change
    whole, each = script.fresh("t"), script.fresh("k")
    is_dict = dict_of(kind) is not None
    if is_dict != (dict_of(given) is not None) or is_dict == is_list(given):
        raise _misfit(name, kind, given, loc)
    what = "keys" if is_dict else "length"
    wrong = f"raise ValueError({f'the tangent of `{name}` must have the {what} of `{name}`'!r})"
    new = "{}" if is_dict else f"{script.named(List, 'List')}()" if in_dict else "[]"
    script.add(f"if len({change}) != len({text}):", f"    {wrong}", f"{whole} = {new}")
    inner, own = (kind.value_type, given.value_type) if is_dict else (kind.dtype, given.dtype)
    with script.block(f"for {each} in {text}:" if is_dict else f"for {each} in range(len({text})):"):
        if is_dict:
            script.add(f"if {each} not in {change}:", f"    {wrong}")
        one, other = f"{text}[{each}]", f"{change}[{each}]"
        found = tangent_for(script, name, one, inner, other, own, loc, in_dict or is_dict)
        script.add(f"{whole}[{each}] = {found}" if is_dict else f"{whole}.append({found})")
    return whole


def _misfit(name: str, kind: Type, given: Type, loc: Loc) -> Exception:
    return refuse(
        f"the tangent of `{name}`, which is of type {kind}, is of type {given}",
        loc,
        hint="a tangent has the form, the shape and the dtype of its argument; None stands for zero",
    )


def _is_complex(kind: Any) -> bool:
    return isinstance(kind, types.Complex) or (isinstance(kind, types.Array) and isinstance(kind.dtype, types.Complex))


def _dtype(kind: Any) -> Any:
    return getattr(np, str(kind.dtype))


@dataclass(frozen=True)
class Derivative(Driver):
    """`derivative`: the derivative of any result with respect to a number."""

    def each_value(self, convert: Callable[[Any], Any], result: Any) -> Any:
        """Return the derivative, or several, converted."""
        return tuple(map(convert, result)) if isinstance(self.wrt, tuple) else convert(result)

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        script, names, asked, unwrap_single = self.start(call)
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
            tangents = [f"{float(n == one)}" if n in numbers else "None" for n in range(len(names))]
            directions.append(f"({', '.join(tangents)},)")
        changes = [f"dy_{place}" for place in range(len(asked))]
        args = ", ".join(names)
        pushed = script.derived(PushForm(with_value=False))
        script.add(f"({', '.join(changes)},) = {pushed}(({args},), ({', '.join(directions)},))")
        script.add(f"return {changes[0] if unwrap_single else '(' + ', '.join(changes) + ',)'}")
        return script.function()


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

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments and of the direction."""
        names = call.parameters
        *_, name = self.signature(inspect.signature(call.func)).parameters
        script = self.script(call, (*names, name))
        *names, name = script.parameters
        asked, unwrap_single = self._of_all(call, script, names) if self.wrt is None else self.asked(call, script)
        given = call.argument_types[-1]
        tangents = ["None"] * len(names)
        if unwrap_single:
            directions = [(name, given)]
        elif _is_plain_tuple(given, len(asked)):
            directions = list(parts(name, given))
        else:
            raise refuse(
                f"`hvp` in a direction of type {given}",
                call.loc,
                hint=f"pass a tuple with {', '.join(f'that of `{each.name}`' for each in asked)}",
            )
        for each, (change, kind) in zip(asked, directions, strict=True):
            tangents[each.number] = tangent_for(script, each.name, each.text, each.type, change, kind, call.loc)
        wrt = asked[0].number if unwrap_single else tuple(each.number for each in asked)
        pushed = script.derived(PushForm(with_value=False), script.derived(GradientForm(wrt)))
        script.add(f"(dy,) = {pushed}(({', '.join(names)},), (({', '.join(tangents)},),))", "return dy")
        return script.function()

    def _of_all(self, call: numba_adapter.DerivedCall, script: Script, names: list[str]) -> tuple[list[Any], bool]:
        """Return all parameters that have a tangent."""
        kinds = call.argument_types[: len(names)]
        if len(names) - self.captured_count == 1:
            return Hvp(0, self.captured_count).asked(call, script)
        wrt = tuple(
            n - self.captured_count
            for n, kind in enumerate(kinds)
            if n >= self.captured_count and carries_adjoint(kind)
        )
        asked, _ = Hvp(wrt, self.captured_count).asked(call, script)
        return asked, False
