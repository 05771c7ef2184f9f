"""Compiled functions with their first arguments, as values of compiled code: `functools.partial` for Numba.

    Partial(dispatcher)(a, b)       in compiled code: a value that holds a and b
    held(c, d=1)                    dispatcher(a, b, c, d=1)

Such a value may be passed on, returned and put into tuples. Its type says what is called: it costs what the first
arguments cost. It cannot be given to Python, unless the `Partial` says how.

What a forward function keeps for a later call is one object that Python holds without looking into it:

    njit(sealed(f_forward, 1, {}))(x)   (value, <kept>)         f_forward gives (value, (x, record))
    opened(f_reverse, {})(kept, dy)     what f_reverse((x, record), dy) gives

A tuple of lists and arrays would be made into objects of Python one by one, and an empty list would not tell of what it
is one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from numba import types
from numba.experimental import structref
from numba.extending import box, overload, register_model, typeof_impl
from numba.typed import Dict

from zygote_py.base import caller, free
from zygote_py.ir import Type
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base.internals import (
    cgutils,
    impl_ret_borrowed,
    impl_ret_new_ref,
    lower_builtin,
    models,
    signature,
)
from zygote_py.numba_adapter.target.dispatch import COMPILER_LOCK, jit_enabled
from zygote_py.numba_adapter.target.njit import callee, decorated, make_dispatcher
from zygote_py.numba_adapter.target.stored import Code
from zygote_py.numba_adapter.types import CompiledCallableType, Same

Check = Callable[[tuple[Type, ...], Mapping[str, Type]], None]


class Partial(Same):
    """The constructor of the values: called in compiled code with the first arguments, it holds them.

    `check` may refuse the further arguments of a call, before Numba does. `restored` makes of the first arguments what
    Python is to get in the place of the value; if `sealed` is a number, the first of them comes sealed with it.
    """

    def __init__(
        self,
        dispatcher: Any,
        name: str,
        check: Check | None = None,
        restored: Callable[..., object] | None = None,
        sealed: int | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.name = name
        self.check = check
        self.restored = restored
        self.sealed = sealed


class PartialConstructorType(CompiledCallableType, types.Opaque):
    """The type of a `Partial`."""

    def __init__(self, partial: Partial) -> None:
        self.partial = partial
        super().__init__(f"maker of {partial.name} at {id(partial)}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        held = tuple(types.unliteral(arg) for arg in args)
        return signature(PartialType(self.partial, held), *held)


class PartialType(CompiledCallableType):
    """The type of a compiled function with its first arguments."""

    def __init__(self, partial: Partial, held: tuple[Type, ...]) -> None:
        self.partial = partial
        self.held = held
        super().__init__(f"{partial.name} at {id(partial)} with ({', '.join(map(str, held))})")

    @property
    def key(self) -> object:
        """The identity of the type."""
        return self.partial, self.held

    def get_call_type(self, context: Any, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        if self.partial.check is not None:
            self.partial.check(args, dict(kws))
        found = types.Dispatcher(self.partial.dispatcher).get_call_type(context, (*self.held, *args), dict(kws))
        if found is None:
            return None
        count = len(self.held)
        pysig = found.pysig.replace(parameters=list(found.pysig.parameters.values())[count:])
        return signature(found.return_type, *found.args[count:], recvr=self).replace(pysig=pysig)


@typeof_impl.register(Partial)
def _typeof_partial(value: Partial, context: object) -> Type:
    return PartialConstructorType(value)


@register_model(PartialType)
class _PartialModel(models.StructModel):
    """The first arguments."""

    def __init__(self, manager: Any, fe_type: PartialType) -> None:
        super().__init__(manager, fe_type, [(f"f{n}", held) for n, held in enumerate(fe_type.held)])  # type: ignore[no-untyped-call]


@lower_builtin(PartialConstructorType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    for number, arg in enumerate(args):
        setattr(made, f"f{number}", arg)
    return impl_ret_borrowed(context, builder, sig.return_type, made._getvalue())


@lower_builtin(PartialType, PartialType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    called = types.Dispatcher(kind.partial.dispatcher)
    function = context.get_function(called, signature(sig.return_type, *kind.held, *sig.args[1:]))
    result = function(builder, (*_held(context, builder, kind, args[0]), *args[1:]))
    return impl_ret_new_ref(context, builder, sig.return_type, result)


def _held(context: Any, builder: Any, kind: PartialType, value: Any) -> list[Any]:
    made = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return [getattr(made, f"f{number}") for number in range(len(kind.held))]


@box(PartialType)  # type: ignore[untyped-decorator]
def _box(typ: Any, value: Any, c: Any) -> Any:
    partial = typ.partial
    if partial.restored is None:
        c.pyapi.err_set_string("PyExc_TypeError", f"cannot give Python the {partial.name}, which holds variables")
        c.context.nrt.decref(c.builder, typ, value)
        return c.pyapi.get_null_object()
    objects = []
    for number, (kind, item) in enumerate(zip(typ.held, _held(c.context, c.builder, typ, value), strict=True)):
        if number == 0 and partial.sealed is not None:
            sealed, kept = sealed_type(kind, partial.sealed), item
            _, item = c.pyapi.call_jit_code(seal_as(sealed).py_func, signature(sealed, kind), (kept,))
            c.context.nrt.decref(c.builder, kind, kept)
            kind = sealed
        objects.append(c.box(kind, item))
    address = c.context.add_dynamic_addr(c.builder, id(partial.restored), info=partial.name)
    made = c.pyapi.call_function_objargs(c.builder.bitcast(address, c.pyapi.pyobj), objects)
    for each in objects:
        c.pyapi.decref(each)
    return made


# -------------------------------------------------------------------------------------- what is kept for a later call


@structref.register
class KeptType(types.StructRef):
    """The type of what is kept: a reference to one field."""

    def preprocess_fields(self, fields: Any) -> Any:
        """The field's type, as that of a value that is not known while compiling."""
        return tuple((name, types.unliteral(type)) for name, type in fields)


class Kept(structref.StructRefProxy):
    """The object that Python holds."""

    def __repr__(self) -> str:
        return "<what a function keeps for its pullback>"


structref.define_boxing(KeptType, Kept)


def _seal(value: Any, number: int) -> Any:
    """Make one object of what is kept."""
    return value


@overload(_seal, prefer_literal=True)
def _seal_compiled(value: Any, number: Any) -> Any:
    if not isinstance(number, types.IntegerLiteral):
        return None
    make = seal_as(sealed_type(value, number.literal_value))

    def sealed(value: Any, number: Any) -> Any:
        return make(value)

    return sealed


def sealed_type(kept: Type, number: int) -> Type:
    """The type of what is kept, as one object.

    Each function has a type of its own for what it keeps: `owner_of` tells them apart.
    """
    return KeptType([("kept", kept), (f"function_{number}", types.none)])  # type: ignore[no-untyped-call]


@functools.lru_cache(maxsize=256)
def seal_as(kind: Any) -> Any:
    """A compiled function that makes an object of this type of what is kept."""
    new: Any = structref.new

    def seal(value: Any) -> Any:
        made = new(kind)
        made.kept = value
        return made

    with COMPILER_LOCK, jit_enabled():
        return decorated(seal, {})


def owner_of(kept: Any) -> int:
    """The number of the function that has kept this."""
    _, (name, _) = kept._type._fields
    return int(name.removeprefix("function_"))


def sealed(forward: Callable[..., Any], number: int, options: Mapping[str, object]) -> Callable[..., Any]:
    """A function for Numba that calls `forward`, which returns a pair, and makes the second of it one object."""
    return _around(  # type: ignore[no-any-return]
        forward, "{all}", f"value, kept = {{call}}; return value, seal(kept, {number})", options
    )


def opened(reverse: Callable[..., Any], options: Mapping[str, object], code: Code | None = None) -> Any:
    """The compiled function that calls `reverse` with what was sealed, its first argument; it is kept in `code`."""
    with COMPILER_LOCK, jit_enabled():  # what was sealed came from compiled code, also if Numba is disabled by now
        function = _around(reverse, "{first}.kept{rest}", "return {call}", options)
        return make_dispatcher(function, lambda given: function, options, lambda given: code)


def entry_of_seed(dispatcher: Any, kept: Any) -> Any:
    """Return the entry point of a reverse function for one seed, a float, without a check of types."""
    signature = kept._type, types.float64
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].entry_point


def _around(function: Callable[..., Any], passed: str, body: str, options: Mapping[str, object]) -> Any:
    names = list(inspect.signature(function).parameters)
    rest = "".join(f", {name}" for name in names[1:])
    seal = free("seal", names)
    return caller(
        callee(function, options),
        ", ".join(names),
        passed.format(all=", ".join(names), first=names[0] if names else "", rest=rest),
        name=function.__name__,
        body=body.replace("seal(", f"{seal}("),
        values={seal: _seal},
    )


def is_sealed(kept: object) -> bool:
    """Return whether what is kept is one object of compiled code; interpreted functions keep a tuple."""
    return hasattr(kept, "_type")


def taken_out(kept: Any) -> tuple[Any, Type]:
    """Return the residuals as Python objects, to be pickled, and their type in compiled code."""
    return _with_dicts(_Dict.of, _unsealing()(kept)), kept._type


@functools.cache
def _unsealing() -> Any:
    with COMPILER_LOCK, jit_enabled():
        return decorated(lambda each: each.kept, {})


def put_back(items: Any, kind: Any) -> Any:
    """Return residuals that were taken out in their original form."""
    signature = (kind.field_dict["kept"],)
    made = seal_as(kind)
    made.compile(signature)
    return made.overloads[signature].entry_point(_with_dicts(_Dict.made, items))


@dataclass(frozen=True, slots=True)
class _Dict:
    """A dict of compiled code, which cannot be pickled: its type and its items."""

    type: Any
    items: tuple[tuple[Any, Any], ...]

    @staticmethod
    def of(value: Any) -> Any:
        """Return what is pickled for a value."""
        return _Dict(value._dict_type, tuple(value.items())) if isinstance(value, Dict) else value

    @staticmethod
    def made(value: Any) -> Any:
        """Return the value for which this was pickled."""
        if not isinstance(value, _Dict):
            return value
        made = Dict.empty(value.type.key_type, value.type.value_type)
        for key, item in value.items:
            made[key] = item
        return made


def _with_dicts(convert: Callable[[Any], Any], items: Any) -> Any:
    """Return residuals with what `convert` makes of each value."""
    return tuple(_with_dicts(convert, each) for each in items) if type(items) is tuple else convert(items)
