"""`checkpoint(f)` in a function that is typed for us: a function of the same arguments, one whose calls are known.

    $1 = call $checkpoint($f)           CalleeType(f)                   AgainType(f)
                                        ClosureType(g: w: float64)      AgainClosureType(g: w: float64)

What an inner function captures is passed as an argument is, so that it is kept like one (see `zygote_py.checkpoints`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numba import types
from numba.extending import register_model, typeof_impl

from zygote_py import statements as st
from zygote_py.checkpoints import checkpoint
from zygote_py.ir.core import Type
from zygote_py.ir.errors import InternalError
from zygote_py.numba_adapter.callees import AgainCallee, AgainType, CalleeType, Session, fold
from zygote_py.numba_adapter.closures import ClosureType
from zygote_py.numba_adapter.decorations import is_from_source
from zygote_py.numba_adapter.internals import errors, models, signature
from zygote_py.numba_adapter.same import Same


class Checkpointer(Same):
    """What stands in a function that is being typed for `checkpoint`."""

    def __init__(self, session: Session) -> None:
        self.session = session


class CheckpointerType(Same, types.Callable, types.Opaque):
    """The type of a `Checkpointer`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        super().__init__(f"checkpoint in {session.number}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Numba asks for the signature of a call."""
        pysig, (function,) = fold(checkpoint, args, kws, {})
        return signature(_again(function, self.session), function).replace(pysig=pysig)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba asks for what is known beforehand, to explain a failure."""
        return [], False

    def get_impl_key(self, sig: object) -> object:
        """Numba asks for what to compile; it does not come to that."""
        raise InternalError("a checkpoint is to be compiled before it is inlined")


class AgainClosureType(ClosureType):
    """The type of an inner function with a checkpoint."""

    def __init__(self, maker: Any, held: Sequence[Type]) -> None:
        super().__init__(maker, tuple(held))
        self.name = f"checkpoint of {self.name}"

    def held(self) -> ClosureType:
        """The type as that the function itself gets the closure: if it calls itself, that is no checkpoint."""
        return ClosureType(self.maker, self.types)

    def typed(self, argument_types: tuple[Type, ...]) -> st.TypedFunction:
        """The function for these argument types, the closure's behind them, as one that runs again."""
        return self.maker.session.typed_again(self.maker.func, (*argument_types[:-1], self.held()), self.maker.how)


register_model(CheckpointerType)(models.OpaqueModel)
register_model(AgainClosureType)(models.TupleModel)


@typeof_impl.register(Checkpointer)
def _typeof_checkpointer(value: Checkpointer, context: object) -> Type:
    return CheckpointerType(value.session)


def _again(function: Any, session: Session) -> Type:
    """The type of a function with a checkpoint."""
    match function:
        case AgainType() | AgainClosureType():
            return function
        case CalleeType():
            return AgainType(AgainCallee(function.func, session, function.source, function.how))
        case ClosureType():
            return AgainClosureType(function.maker, function.types)
        case types.Dispatcher() if is_from_source(function.dispatcher):
            return AgainType(AgainCallee(function.dispatcher.py_func, session, function.dispatcher))
        case _:
            raise errors.TypingError(f"`checkpoint` of a value of type `{function}` is not supported")


def is_checkpoint(type: Type) -> bool:
    """Whether this is the type of `checkpoint` itself."""
    return isinstance(type, CheckpointerType)
