"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .base.decorations import (
    locals_of as locals_of,
    py_func_of as py_func_of,
    semantic as semantic,
    signatures_of as signatures_of,
)
from .base.internals import (
    cross2d as cross2d,
    empty_inferred as empty_inferred,
    length_of_iterator as length_of_iterator,
)
from .base.messages import check_parameters as check_parameters, definition_of as definition_of
from .base.pass_times import timed as timed
from .base.type_facts import as_pointer as as_pointer
from .base.untypable import unsuitable as unsuitable
from .embedding.calls import embed as embed
from .embedding.custom_calls import (
    CustomRuleType as CustomRuleType,
    can_call as can_call,
    is_python as is_python,
    make_identities as make_identities,
    make_ignored_known as make_ignored_known,
    parameters_of as parameters_of,
    signature_of_given as signature_of_given,
    spread as spread,
)
from .embedding.transforms import DerivedCall as DerivedCall, derive_with as derive_with
from .linking.call_slot import (
    DirectCalls as DirectCalls,
    Sights as Sights,
    make_direct as make_direct,
    sights as sights,
)
from .linking.helper_store import Helpers as Helpers, keep_helpers as keep_helpers
from .reading.custom_rules import ChoiceType as ChoiceType
from .reading.kernels import (
    AXES as AXES,
    REGISTERS as REGISTERS,
    is_kernel as is_kernel,
    py_func_of_kernel as py_func_of_kernel,
    read_kernel as read_kernel,
    stand_ins as stand_ins,
)
from .reading.libdevice import (
    FAST_ARGUMENTS as FAST_ARGUMENTS,
    LIBDEVICE_ARGUMENTS as LIBDEVICE_ARGUMENTS,
)
from .reading.pipeline import (
    typed_derivative as typed_derivative,
    typed_function as typed_function,
    typed_implementation as typed_implementation,
)
from .sources.python_sources import (
    called_function as called_function,
    content_of_source as content_of_source,
    differentiated_function as differentiated_function,
    has_source as has_source,
    options_of_source as options_of_source,
)
from .target.array_typing import item_type as item_type, result_type as result_type
from .target.dispatch import (
    COMPILER_LOCK as COMPILER_LOCK,
    arguments_of_decorator as arguments_of_decorator,
    call_in_kernels as call_in_kernels,
    is_compile_time as is_compile_time,
    is_dispatcher as is_dispatcher,
    is_made as is_made,
    is_plain as is_plain,
    is_plain_dispatcher as is_plain_dispatcher,
    jit_is_disabled as jit_is_disabled,
    object_of as object_of,
    options_of as options_of,
    register_as_dispatcher as register_as_dispatcher,
    typeof as typeof,
    warn as warn,
)
from .target.njit import (
    asm_text as asm_text,
    decorated as decorated,
    entry_of as entry_of,
    is_from_cache as is_from_cache,
    link_along as link_along,
    llvm_text as llvm_text,
    load as load,
    make_dispatcher as make_dispatcher,
    refuse_functions as refuse_functions,
)
from .target.partials import (
    Partial as Partial,
    entry_of_seed as entry_of_seed,
    is_sealed as is_sealed,
    opened as opened,
    owner_of as owner_of,
    put_back as put_back,
    sealed as sealed,
    taken_out as taken_out,
)
from .target.stored import (
    is_extended as is_extended,
    pickled as pickled,
    settings as settings,
    user_cache_folder as user_cache_folder,
)
from .target.vector_njit import vector_njit as vector_njit
from .types.callables import (
    SNAPSHOT as SNAPSHOT,
    FieldsType as FieldsType,
    TransformType as TransformType,
    is_closure as is_closure,
)
from .types.closures import CLOSURE as CLOSURE
from .types.dataclasses import (
    DataclassType as DataclassType,
    constructed_by as constructed_by,
    constructor_of as constructor_of,
    fields_of_object as fields_of_object,
    is_object as is_object,
    made_by as made_by,
    receiver_of as receiver_of,
)
from .types.functions import (
    holds_functions as holds_functions,
    takes_functions as takes_functions,
    with_functions as with_functions,
)
from .types.handles import default_of as default_of
from .types.python_functions import (
    as_function as as_function,
    bound_by as bound_by,
    is_plain_object as is_plain_object,
)
