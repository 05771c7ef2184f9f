"""Compiled functions with their first arguments, as values of compiled code: `functools.partial` for Numba.

    Partial(dispatcher)(a, b)       in compiled code: a value that holds a and b
    held(c, d=1)                    dispatcher(a, b, c, d=1)

Such a value may be passed on, returned and put into tuples. Its type says what is called: it costs what the first
arguments cost. It cannot be given to Python, unless the `Partial` says how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numba import types
from numba.extending import box, register_model, typeof_impl

from zygote_py.ir.core import Type
from zygote_py.numba_adapter.internals import (
    cgutils,
    impl_ret_borrowed,
    impl_ret_new_ref,
    lower_builtin,
    lower_constant,
    models,
    signature,
)
from zygote_py.numba_adapter.records import seal_as, sealed_type
from zygote_py.numba_adapter.same import Same

Check = Callable[[tuple[Type, ...], Mapping[str, Type]], None]


class Partial(Same):
    """What makes the values: called in compiled code with the first arguments, it holds them.

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


class PartialMakerType(Same, types.Callable, types.Opaque):
    """The type of a `Partial`."""

    def __init__(self, partial: Partial) -> None:
        self.partial = partial
        super().__init__(f"maker of {partial.name} at {id(partial)}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        held = tuple(types.unliteral(arg) for arg in args)
        return signature(PartialType(self.partial, held), *held)

    def get_call_signatures(self) -> tuple[tuple[Any, ...], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return (), True

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile."""
        return PartialMakerType


class PartialType(Same, types.Callable):
    """The type of a compiled function with its first arguments."""

    def __init__(self, partial: Partial, held: tuple[Type, ...]) -> None:
        self.partial = partial
        self.held = held
        super().__init__(f"{partial.name} at {id(partial)} with ({', '.join(map(str, held))})")

    @property
    def key(self) -> object:
        """What tells these types apart."""
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

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return [], False

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile."""
        return PartialType


@typeof_impl.register(Partial)
def _typeof_partial(value: Partial, context: object) -> Type:
    return PartialMakerType(value)


register_model(PartialMakerType)(models.OpaqueModel)


@register_model(PartialType)
class _PartialModel(models.StructModel):
    """The first arguments."""

    def __init__(self, manager: Any, fe_type: PartialType) -> None:
        super().__init__(manager, fe_type, [(f"f{n}", held) for n, held in enumerate(fe_type.held)])  # type: ignore[no-untyped-call]


@lower_constant(PartialMakerType)  # type: ignore[untyped-decorator]
def _lower_maker(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    return context.get_dummy_value()


@lower_builtin(PartialMakerType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    for number, arg in enumerate(args):
        setattr(made, f"f{number}", arg)
    return impl_ret_borrowed(context, builder, sig.return_type, made._getvalue())


@lower_builtin(PartialType, PartialType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    called = types.Dispatcher(kind.partial.dispatcher)
    held = _held(context, builder, kind, args[0])
    function = context.get_function(called, signature(sig.return_type, *kind.held, *sig.args[1:]))
    result = function(builder, (*held, *args[1:]))
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
    restored = c.builder.bitcast(address, c.pyapi.pyobj)
    made = c.pyapi.call_function_objargs(restored, objects)
    for each in objects:
        c.pyapi.decref(each)
    return made
