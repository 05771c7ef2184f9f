"""Types of functions for Numba's type inference, and values that stand in a function for others while it is typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, ClassVar, Self

from numba import types
from numba.extending import register_model, typeof_impl

from zygote_py.ir import InternalError, Type
from zygote_py.numba_adapter.base.internals import errors, lower_constant, models, signature


class Same:
    """An object that is not copied when Numba copies what it is in."""

    def __deepcopy__(self, memo: object) -> Self:
        return self


class StandIn(Same):
    """A value with a known type that replaces another value in a function which this package types."""

    def __init__(self, type: Type) -> None:
        self.type = type


@typeof_impl.register(StandIn)
def _typeof_stand_in(value: StandIn, context: object) -> Type:
    return value.type


def _without_value(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    """Lower a constant whose type says all of it."""
    return context.get_dummy_value()


class CallableType(Same, types.Callable):
    """The base of the package's function types. Its data model is registered with the class.

    Most of these functions are only typed: their calls are never compiled.
    """

    model: ClassVar[Any] = models.OpaqueModel

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        register_model(cls)(cls.model)
        if issubclass(cls, types.Opaque):
            lower_constant(cls)(_without_value)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Return the signatures that Numba names when it explains a failure: none."""
        return [], False

    def get_impl_key(self, sig: object) -> object:
        """Raise InternalError: a call of it is inlined before anything is compiled."""
        raise InternalError(f"the call of `{self}` is to be compiled before it is inlined")


class ObjectType(CallableType, types.Opaque):
    """The type of an object of a class that Numba does not know: each object has its own.

    The numbers, arrays and structures of the object are captured variables, its methods are functions that take it
    (see `zygote_py.numba_adapter.types.dataclasses`).
    """

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"object of {type(value).__qualname__}")

    @property
    def key(self) -> object:
        """The identity of the type."""
        return id(self.value)

    def get_call_type(self, context: Any, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Return the signature of a call of the object's `__call__`."""
        method = context.resolve_getattr(self, "__call__")
        return None if method is None else method.get_call_type(context, args, kws)


class HandleType(CallableType):
    """The type of a Python function, `func`, that is called in a function which this package types."""

    func: Any


class FieldsType(types.NamedTuple):
    """The base of types of named tuples whose fields another class than `instance_class` may name."""

    def __init__(self, held: tuple[Type, ...], fields: tuple[str, ...], instance_class: Any, name: str) -> None:
        self.types, self.count = held, len(held)
        self.fields, self.instance_class = fields, instance_class
        types.Type.__init__(self, name)

    def __bool__(self) -> bool:
        return True  # also if it holds nothing


def function_of(value: Any) -> Any:
    """Return the Python function that a value in Numba's IR stands for; any other value as it is."""
    is_function = isinstance(value, StandIn) and isinstance(value.type, HandleType) and not is_closure(value.type)
    return value.type.func if is_function else value


def is_closure(type: Type) -> bool:
    """Return whether values of this type are inner functions, as named tuples of their captured variables."""
    return isinstance(type, HandleType) and isinstance(type, types.BaseTuple)


class CompiledCallableType(CallableType):
    """The type of a function whose calls are compiled: `lower_builtin` of the class defines how."""

    def get_impl_key(self, sig: object) -> object:
        """Return the class, under which the implementation is registered."""
        return type(self)


class TransformType(CallableType, types.Opaque):
    """The type of a function of a function, such as `gradient`: `apply` gives the type of the result."""

    parameters = Signature([Parameter("f", Parameter.POSITIONAL_OR_KEYWORD)])

    def __init__(self, transform: str, identity: object, apply: Callable[[Any], Type], *, copies: bool = False) -> None:
        self.transform = transform
        self.apply = apply
        self.copies = copies  # whether the result has copies of the arrays that the function captures
        super().__init__(f"{transform} in {identity}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Return the signature of a call."""
        (function,) = bound_arguments(self.parameters, self.transform, args, kws).values()
        return signature(self.apply(function), function).replace(pysig=self.parameters)


# Stands for a function of a function: the same with copies of the arrays that it captures from an enclosing function.
SNAPSHOT = StandIn(TransformType("snapshot", "all contexts", lambda function: function, copies=True))


def bound_arguments(
    parameters: Signature, name: str, args: Sequence[Any], kws: Mapping[str, Type], note: str = ""
) -> Mapping[str, Any]:
    """Return the types of the arguments of a call by parameter. Raises numba's TypingError if they do not fit."""
    try:
        return parameters.bind(*args, **dict(kws)).arguments
    except TypeError as error:
        raise errors.TypingError(f"wrong arguments for `{name}`{note}: {error}") from None
