"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .boxing import LowerParforsWithClasses as LowerParforsWithClasses, WithClasses as WithClasses
from .callables import (
    CallableType as CallableType,
    CompiledCallableType as CompiledCallableType,
    FieldsType as FieldsType,
    HandleType as HandleType,
    ObjectType as ObjectType,
    Same as Same,
    StandIn as StandIn,
    TransformType as TransformType,
    function_of as function_of,
    is_closure as is_closure,
)
from .closures import (
    CLOSURE as CLOSURE,
    ClosureConstructor as ClosureConstructor,
    ClosuresToObjects as ClosuresToObjects,
    ClosureType as ClosureType,
    Undefined as Undefined,
    check_captured as check_captured,
    closure_of as closure_of,
    take_closure as take_closure,
)
from .dataclasses import (
    ConstructorType as ConstructorType,
    accessor_type as accessor_type,
    called_of as called_of,
    object_member as object_member,
    stand_in as stand_in,
    typeof_structure as typeof_structure,
)
from .functions import (
    FunctionValueType as FunctionValueType,
    as_captured_python as as_captured_python,
    holds_functions as holds_functions,
    with_functions as with_functions,
)
from .handles import (
    FunctionHandleType as FunctionHandleType,
    TypingContext as TypingContext,
    at_work as at_work,
    callee_for as callee_for,
    callee_type as callee_type,
    checkpoint_type as checkpoint_type,
    constant_key as constant_key,
    fold as fold,
    handle_of as handle_of,
    overloaded_type as overloaded_type,
    signature_of as signature_of,
    typed_callee as typed_callee,
)
from .python_functions import (
    as_function as as_function,
    bound_by as bound_by,
    is_plain_object as is_plain_object,
)
