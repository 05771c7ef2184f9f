"""Frozen dataclasses in Numba: a type for them, so that compiled functions take them, make them and give them back.

    Dense(W, b)                 DataclassType: fields W and b, represented like the tuple (W, b)
    model.forward(x)            the method, compiled; or, in a function that this package types, a `FunctionHandleType`

The module is imported when the first object of one is met (see `dispatch`), and makes all of `numba.njit` know them.
Of a class's members there are fields, methods (`__call__` too), properties and static methods. Of a `jitclass` there
are the fields, the methods and the getters of properties. Objects of other classes, dataclasses that are not frozen
among them, are known only where this package types a function that captures them (`ObjectType`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from numba import types
from numba.extending import NativeValue, box, infer_getattr, register_model, type_callable, typeof_impl, unbox

from zygote_py.base import attribute_of_object, member_of_class, structures
from zygote_py.ir import Type
from zygote_py.numba_adapter.base import is_from_source, known_type, refresh, runtime_type
from zygote_py.numba_adapter.base.internals import (
    AttributeTemplate,
    CPUDispatcher,
    cgutils,
    errors,
    impl_ret_borrowed,
    lower_builtin,
    lower_constant,
    lower_getattr_generic,
    models,
    signature,
)
from zygote_py.numba_adapter.types.callables import (
    CallableType,
    CompiledCallableType,
    FieldsType,
    ObjectType,
    StandIn,
    bound_arguments,
)
from zygote_py.numba_adapter.types.handles import TypingContext, callee_type, current_session


class DataclassType(FieldsType):
    """The type of the objects of a frozen dataclass whose fields have these types."""

    def __init__(self, field_types: tuple[Type, ...], cls: type) -> None:
        name = f"{cls.__name__}({', '.join(map(str, field_types))})"
        super().__init__(tuple(field_types), structures.field_names(cls), cls, name)

    def with_components(self, field_types: tuple[Type, ...]) -> DataclassType:
        """The type of objects of the same class with other types of fields."""
        return DataclassType(field_types, self.instance_class)


class ConstructorType(CompiledCallableType, types.Opaque):
    """The type of a dataclass itself, or of a NamedTuple class with defaults: what is called to make an object."""

    def __init__(self, cls: type) -> None:
        self.instance_class = cls
        super().__init__(f"class {cls.__qualname__} at {id(cls)}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        cls = self.instance_class
        is_tuple = issubclass(cls, tuple)
        reason = "" if is_tuple else structures.why_not_constructed(cls)
        if reason:
            raise errors.TypingError(f"`{cls.__name__}` cannot be made in a compiled function because of {reason}")
        pysig = inspect.signature(cls) if is_tuple else structures.constructor_signature(cls)
        bound = bound_arguments(pysig, cls.__name__, args, kws)
        parameters = [each.replace(kind=each.POSITIONAL_OR_KEYWORD) for each in pysig.parameters.values()]
        given = tuple(bound.get(each.name, types.Omitted(each.default)) for each in parameters)
        held = tuple(map(runtime_type, given))
        made = types.BaseTuple.from_types(held, cls) if is_tuple else DataclassType(held, cls)
        return signature(made, *given).replace(pysig=inspect.Signature(parameters))


class BareConstructorType(ConstructorType):
    """The type of what makes an object of a dataclass from its fields, and runs nothing that the class defines."""

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.name = f"bare {self.name}"

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        made = DataclassType(tuple(map(types.unliteral, args)), self.instance_class)
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in made.fields]
        return signature(made, *args).replace(pysig=inspect.Signature(parameters))


class MethodType(CallableType):
    """A method of an object that was looked up: its value is the object, its type says what is called."""

    def __init__(self, this: Any, function: Any) -> None:
        self.this = this
        self.function = function
        super().__init__(f"method {function} of {this}")

    @property
    def key(self) -> object:
        """The identity of the type: objects of one class have methods of the same name."""
        return self.function, self.this

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        return self.function.get_call_type(context, (self.this, *args), kws).as_method()

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile."""
        return self.function.get_impl_key(sig)


def receiver_of(type: Type) -> Type | None:
    """The type of the object that a call of a value of this type passes first; None if it passes none."""
    if isinstance(type, MethodType):
        return type.this  # type: ignore[no-any-return]
    return type if isinstance(type, DataclassType | ObjectType) else None


def called_of(type: Type, session: TypingContext) -> Any:
    """The type of the function that a call of a value of this type calls."""
    if isinstance(type, DataclassType | ObjectType):
        type = method_type(type, "__call__", session)
    return type.function if isinstance(type, MethodType) else type


def constructed_by(type: Type) -> Any:
    """The class whose objects a call of a value of this type makes; None if it is not a class of structures."""
    return type.instance_class if isinstance(type, ConstructorType | types.NamedTupleClass) else None


def method_type(type: Any, name: str, session: TypingContext | None) -> Any:
    """Return the type of a method, compiled by Numba, or to be inlined in a session; None if there is none."""
    function = _function_type(_member(type, name, session), session)
    return None if function is None else MethodType(type, function)


def accessor_type(type: Type, name: str, session: TypingContext | None) -> Any:
    """The type of the function that computes a property; None if there is none."""
    found = _member(type, name, session)
    return _function_type(found.fget, session) if isinstance(found, property) else None


def _member(type: Type, name: str, session: TypingContext | None) -> object:
    """Return a member of the class of an object; a session notes that the result depends on it."""
    match type:
        case DataclassType():
            capture = member_of_class(type.instance_class, name)
        case ObjectType() if hasattr(type.value, name):
            capture = attribute_of_object(type.value, name)
        case _:
            return None
    if session is not None and capture.value is not None:
        session.note([capture])
    return capture.value


def _function_type(found: Any, session: TypingContext | None) -> Any:
    decorated = is_from_source(found)
    if not decorated and not inspect.isfunction(found):
        return None
    if session is not None:
        return callee_type(found, session)
    return types.Dispatcher(found if decorated else _dispatcher(found))


@functools.cache  # Numba refers to them weakly
def _dispatcher(function: Any) -> Any:
    """Return a dispatcher, with Numba disabled, too, where `njit` would give the function back."""
    return CPUDispatcher(function, targetoptions={"nopython": True})


# ------------------------------------------------------------------------------------------------ types of values


def typeof_structure(value: Any, context: object) -> Type | None:
    """Return the type of an object of a class of structures; None if Numba knows no type for a field."""
    cls = type(value)
    held = [_typeof_field(getattr(value, name), context) for name in structures.field_names(cls)]
    return None if None in held else DataclassType(tuple(held), cls)


def _typeof_field(value: Any, context: object) -> Any:
    if inspect.isfunction(value):
        return types.Dispatcher(_dispatcher(value))
    return typeof_impl(value, context) or (known_type(value) if callable(value) else None)


def stand_in(value: Any) -> StandIn | None:
    """Return the replacement of a class that Numba supports in part: a NamedTuple class with defaults."""
    defaults = isinstance(value, type) and issubclass(value, tuple) and getattr(value, "_field_defaults", None)
    return StandIn(ConstructorType(value)) if defaults else None


@functools.cache
def constructor_of(cls: type) -> Any:
    """Return the constructor from fields of a class of structures, for compiled code, whatever `__init__` does."""
    is_bare = structures.is_structure(cls) and not structures.only_assigns(cls)
    return StandIn(BareConstructorType(cls)) if is_bare else cls


@infer_getattr
class _Attributes(AttributeTemplate):
    """The members of a dataclass besides its fields, which it has as a named tuple."""

    key: Any = DataclassType

    def resolve___class__(self, this: DataclassType) -> Type:
        return ConstructorType(this.instance_class)

    def generic_resolve(self, this: DataclassType, name: str) -> Any:  # type: ignore[override]
        if name in this.fields:
            return this.types[this.fields.index(name)]
        return self.member(this, name)

    def member(self, this: DataclassType | ObjectType, name: str) -> Any:
        session = current_session()
        if isinstance(found := _member(this, name, session), staticmethod):
            return _function_type(found.__func__, session)
        accessor = accessor_type(this, name, session)
        if accessor is not None:
            return accessor.get_call_type(self.context, (this,), {}).return_type
        return method_type(this, name, session)


@infer_getattr
class _MembersOfObject(_Attributes):
    """The methods and properties of an object of any other class."""

    key = ObjectType

    resolve___class__: Any = None

    def generic_resolve(self, this: Any, name: str) -> Any:  # type: ignore[override]
        return self.member(this, name)


# ---------------------------------------------------------------------------------------------- objects of a jitclass


def is_object(type: Type) -> bool:
    """Whether values of this type are objects of a jitclass."""
    return isinstance(type, types.ClassInstanceType)


def fields_of_object(type: Any) -> Mapping[str, Type]:
    """The types of the fields of an object, by name."""
    return type.class_type.struct  # type: ignore[no-any-return]


def made_by(type: Type) -> Type | None:
    """The type of the objects that a call of a value of this type makes; None if it is not a jitclass."""
    return type.instance_type if isinstance(type, types.ClassType) else None


def object_member(type: Any, name: str, session: TypingContext, accessor: bool = False) -> Type | None:
    """Return the type of the function of a method, or of the getter of a property with `accessor`."""
    if not is_object(type):
        return None
    cls = type.class_type
    found = cls.jit_props.get(name, {}).get("get") if accessor else cls.jit_methods.get(name)
    return None if found is None else callee_type(found.py_func, session)


# --------------------------------------------------------------------------------------------------- compiled code


register_model(DataclassType)(models.TupleModel)


@register_model(MethodType)
class _MethodModel(models.StructModel):
    """Like the object's own, to be passed on as that."""

    def __init__(self, manager: Any, fe_type: MethodType) -> None:
        members = [(f"f{index}", held) for index, held in enumerate(fe_type.this.types)]
        super().__init__(manager, fe_type, members)  # type: ignore[no-untyped-call]


@lower_getattr_generic(DataclassType)  # type: ignore[untyped-decorator]
def _lower_attribute(context: Any, builder: Any, typ: Any, value: Any, name: str) -> Any:
    if name in typ.fields:
        index = typ.fields.index(name)
        return impl_ret_borrowed(context, builder, typ.types[index], builder.extract_value(value, index))
    accessor = accessor_type(typ, name, None)
    if accessor is not None:
        sig = accessor.get_call_type(context.typing_context, (typ,), {})
        return context.get_function(accessor, sig)(builder, (value,))
    is_method = method_type(typ, name, None) is not None
    return impl_ret_borrowed(context, builder, typ, value) if is_method else context.get_dummy_value()


@lower_builtin(DataclassType, DataclassType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    method = method_type(sig.args[0], "__call__", None)
    method.function.get_call_type(context.typing_context, sig.args, {})
    return context.get_function(method.function, sig)(builder, args)


@lower_builtin(ConstructorType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
@lower_builtin(BareConstructorType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_constructor(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    made = sig.return_type
    fields = [
        context.get_constant_generic(builder, held, own.value)
        if isinstance(own, types.Omitted)
        else context.cast(builder, arg, own, held)
        for arg, own, held in zip(args, sig.args, made.types, strict=True)
    ]
    return impl_ret_borrowed(context, builder, made, context.make_tuple(builder, made, fields))


@lower_constant(DataclassType)  # type: ignore[untyped-decorator]
def _lower_constant(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    fields = [
        context.get_constant_generic(builder, held, getattr(value, name))
        for name, held in zip(typ.fields, typ.types, strict=True)
    ]
    return impl_ret_borrowed(context, builder, typ, cgutils.pack_struct(builder, fields))


@type_callable(structures.new)
def _type_new(context: object) -> Any:
    def typer(cls: Any, values: Any) -> Type:
        return DataclassType(values.types, cls.instance_class)

    return typer


@lower_builtin(structures.new, ConstructorType, types.BaseTuple)  # type: ignore[untyped-decorator]
def _lower_new(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    made = sig.return_type
    fields = cgutils.unpack_tuple(builder, args[1])
    return impl_ret_borrowed(context, builder, made, context.make_tuple(builder, made, fields))


@unbox(DataclassType)  # type: ignore[untyped-decorator]
def _unbox(typ: Any, obj: Any, c: Any) -> Any:
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    fields, cleanups = [], []
    for name, held in zip(typ.fields, typ.types, strict=True):
        if isinstance(held, types.Callable):  # its type says which function it is
            fields.append(c.context.get_dummy_value())
            continue
        field = c.pyapi.object_getattr_string(obj, name)
        native = c.unbox(held, field)
        c.pyapi.decref(field)  # the object, which is frozen, holds it
        fields.append(native.value)
        with c.builder.if_then(native.is_error, likely=False):
            c.builder.store(cgutils.true_bit, failed)
        if native.cleanup is not None:
            cleanups.append(native.cleanup)

    def clean_up() -> None:
        for cleanup in reversed(cleanups):
            cleanup()

    made = c.context.make_tuple(c.builder, typ, fields)
    return NativeValue(made, cleanup=clean_up if cleanups else None, is_error=c.builder.load(failed))


@box(DataclassType)  # type: ignore[untyped-decorator]
def _box(typ: Any, value: Any, c: Any) -> Any:
    return box_structure(typ, value, c, _class_object(typ.instance_class, c))


def box_structure(typ: Any, value: Any, c: Any, cls: Any) -> Any:
    """Return the Python object for a value; `cls` is its class in compiled code, a reference that is used up."""
    fields = [
        _fixed_object(_function_of(held), c)
        if isinstance(held, types.Callable)
        else c.box(held, c.builder.extract_value(value, index))
        for index, held in enumerate(typ.types)
    ]
    values = c.pyapi.tuple_pack(fields)
    make = c.pyapi.unserialize(c.pyapi.serialize_object(structures.new))
    made = c.pyapi.call_function_objargs(make, (cls, values))
    for each in (make, cls, values, *fields):
        c.pyapi.decref(each)
    return made


def _class_object(cls: type, c: Any) -> Any:
    """A class as a Python object in compiled code: by its name if it has one, so that the code can be cached."""
    is_named = structures.is_importable(cls)
    return c.pyapi.unserialize(c.pyapi.serialize_object(cls)) if is_named else _fixed_object(cls, c)


def _function_of(held: Any) -> object:
    """The function in a field of this type."""
    if not isinstance(held, types.Dispatcher):
        return held.typing_key
    python = held.dispatcher.py_func
    return python if held.dispatcher is _dispatcher(python) else held.dispatcher


def _fixed_object(value: Any, c: Any) -> Any:
    """A Python object that lives as long as the compiled code, by its address."""
    address = c.context.add_dynamic_addr(c.builder, id(value), info=value.__name__)
    found = c.builder.bitcast(address, c.pyapi.pyobj)
    c.pyapi.incref(found)
    return found


refresh()  # Numba may have asked for the type while it compiles something
