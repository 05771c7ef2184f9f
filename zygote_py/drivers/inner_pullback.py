"""`pullback` in a function that is differentiated: the value, and an inner function that computes the gradients.

    def f_pullback(x, n, closure_):                             # x: an array, n: an integer
        e_0 = x.copy()
        kept = snapshot(closure_)                               # with copies of the arrays that it captures
        value = closure_(x, n)
        def back(s=1.0):                                        # s: the cotangent of the value
            found = gradient(against(snapshot(kept)), wrt=(1,))(s, e_0.copy(), n)
            return found[0], None
        return value, back

    def f_against(s, x, n, closure_):
        return s * closure_(x, n)

The function runs again in `back`, which therefore is a function like any other, and may be differentiated.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from numba import types
from numba.typed import Dict, List

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint
from zygote_py.adjoints.routines import refuse_shared_arguments
from zygote_py.base import free
from zygote_py.compiler import (
    FUNCTION,
    CheckedForm,
    GradientForm,
    Script,
    leaves,
    parts,
    refuse_draws,
    refuse_in_pullback,
    signature_of,
)
from zygote_py.drivers.forms import Driver
from zygote_py.frontend import lower_typed
from zygote_py.frontend.values import dict_of, held_in, is_list, is_record, is_whole
from zygote_py.ir import Type, components_of, leaf_types
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class InnerPullback(Driver):
    """`pullback`: the value and the pullback of a function. Arguments that it writes to take no cotangents."""

    def __str__(self) -> str:
        return "pullback"

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the arguments."""
        if any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(call.func).parameters.values()):
            raise refuse(
                f"the pullback of `{call.name}`, which takes any number of arguments, in a function that is "
                "differentiated is not supported",
                call.loc,
                "write a lambda of the arguments that calls it",
                "def",
            )
        typed = call.typed(call.argument_types)
        function = lower_typed(typed).function
        refuse_draws(
            function,
            "the pullback of a function that draws random numbers runs it again in a function that is differentiated",
            "use `value_and_gradient`, or draw the numbers beforehand and pass them",
        )
        refuse_in_pullback(call.argument_types, (), typed.return_type, call.loc)
        if any(map(_has_reference, call.argument_types)):
            raise refuse(
                f"the pullback of `{call.name}`, which takes a record or an object, in a function that is "
                "differentiated is not supported",
                call.loc,
                "write a lambda of its fields, or use `value_and_gradient`",
                "def",
            )
        script = self.script(call, call.parameters)
        names = script.parameters
        kept = list(names)
        for number, (name, kind) in enumerate(zip(names, call.argument_types, strict=True)):
            if (text := _copied(script, name, kind)) != name:
                kept[number] = f"e_{number}"
                script.add(f"e_{number} = {text}")
        snapshot = script.named(numba_adapter.SNAPSHOT, "snapshot")
        held = script.named_variable("kept")
        # What shares memory does not do so in copies.
        checks = refuse_shared_arguments(function)
        called = script.derived(CheckedForm()) if checks else FUNCTION
        script.add(f"{held} = {snapshot}({FUNCTION})", f"value = {called}({', '.join(names)})")
        varied = [number for number, kind in enumerate(call.argument_types) if carries_adjoint(kind)]
        default = "=1.0" if isinstance(typed.return_type, types.Float) else ""
        with script.block(f"def back(s{default}):"):
            taken = [_copied(script, name, kind) for name, kind in zip(kept, call.argument_types, strict=True)]
            if varied:
                form = GradientForm(tuple(number + 1 for number in varied))
                gradient = script.derived(form, script.derived(Against(), f"{snapshot}({held})"))
                script.add(f"found = {gradient}({', '.join(('s', *taken))})")
            places = {number: place for place, number in enumerate(varied)}
            items = (f"found[{places[number]}]" if number in places else "None" for number in range(len(names)))
            script.add(f"return ({', '.join(items)},)" if names else "return ()")
        script.add("return value, back")
        return script.function()


def _has_reference(kind: Type) -> bool:
    """Return whether an argument is an object or a record, which has no copy, or holds one."""
    held = (each for leaf in leaf_types(kind) for each in (leaf, *held_in(leaf)))
    return any(numba_adapter.is_object(each) or is_record(each) for each in held)


def _copied(script: Script, text: str, kind: Any) -> str:
    """Return a copy of an argument, of the lists and dicts in it and of the arrays in these, as text.

    Lines that it needs are added to the script.
    """
    if isinstance(kind, types.BaseTuple):
        parts_of = list(parts(text, kind))
        made = [_copied(script, one, inner) for one, inner in parts_of]
        return text if made == [one for one, _ in parts_of] else script.built(kind, made)
    held = dict_of(kind)
    if not is_list(kind) and held is None:
        return f"{text}.copy()" if isinstance(kind, types.Array) else text
    element = kind.dtype if held is None else held.value_type
    if not any(isinstance(leaf, types.Array) or is_whole(leaf) for leaf in leaf_types(element)):
        return f"{text}.copy()"
    copy, key, each = (script.fresh(letter) for letter in "tke")
    if held is None:
        script.add(f"{copy} = " + ("[]" if isinstance(kind, types.List) else f"{script.named(List, 'List')}()"))
    else:
        script.add(f"{copy} = {script.named(Dict, 'Dict')}()")
    with script.block(f"for {each} in {text}:" if held is None else f"for {key}, {each} in {text}.items():"):
        item = _copied(script, each, element)
        script.add(f"{copy}.append({item})" if held is None else f"{copy}[{key}] = {item}")
    return copy


@dataclass(frozen=True)
class Against(Driver):
    """The inner product of a cotangent, which is the first argument, and the value of a function."""

    def signature(self, of: inspect.Signature) -> inspect.Signature:
        """Return a signature with the cotangent first."""
        names = list(of.parameters)
        return signature_of(free("seed", names), *names)

    def written(self, call: numba_adapter.DerivedCall) -> Callable[..., Any]:
        """Return a function of the cotangent and the arguments."""
        script = self.script(call, list(self.signature(inspect.signature(call.func)).parameters))
        seed, *names = script.parameters
        script.add(f"y = {FUNCTION}({', '.join(names)})")
        given, *kinds = call.argument_types
        terms = list(_terms(script, call, (seed, given), ("y", call.typed(tuple(kinds)).return_type)))
        script.add(f"return {' + '.join(terms) or '0.0'}")
        return script.function()


def _terms(
    script: Script, call: numba_adapter.DerivedCall, seed: tuple[str, Type], value: tuple[str, Type]
) -> Iterator[str]:
    """Yield the terms of the inner product; the lines that check shapes are added to the script."""
    (text, given), (of, kind) = seed, value
    if isinstance(given, types.NoneType) or not any(leaves(of, kind)):
        return
    if isinstance(kind, types.BaseTuple):
        if not isinstance(given, types.BaseTuple) or len(components_of(given)) != len(components_of(kind)):
            raise _misfit(call, given, kind)
        for one, other in zip(parts(text, given), parts(of, kind), strict=True):
            yield from _terms(script, call, one, other)
        return
    if isinstance(kind, types.Array) != isinstance(given, types.Array):
        raise _misfit(call, given, kind)
    own = kind.dtype if isinstance(kind, types.Array) else kind
    product = f"(np.conj({text}) * {of}).real" if isinstance(own, types.Complex) else f"{text} * {of}"
    if isinstance(kind, types.Array):
        script.add(f"if {text}.shape != {of}.shape:", "    raise ValueError('a seed has the shape of its value')")
        product = f"np.sum({product})"
    yield product


def _misfit(call: numba_adapter.DerivedCall, given: Type, kind: Type) -> Exception:
    return refuse(
        f"the seed for the value of `{call.name}` is of type {given}, and the value of type {kind}",
        call.loc,
        "a seed has the form, the shapes and the dtypes of what it is the adjoint of; None is zero",
        "def",
    )
