"""The one door to Numba's internals: no other part of the package imports them.

    typed = typed_function(f, (types.float64, types.int64), {})   # typed statements, see zygote_py.base.statements
    dispatcher = make_dispatcher(stub, implement, {"fastmath": True})

`typed_function` gives what Numba makes of a function up to its type inference. `make_dispatcher` makes a dispatcher
that compiles, for each signature, what `implement` gives for it. Numba's errors become `DifferentiationError`s.
Nothing here knows of differentiation. What only the compiler needs is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zygote_py.numba_adapter.base.decorations import locals_of, py_func_of, semantic, signatures_of
from zygote_py.numba_adapter.embedding.calls import embed
from zygote_py.numba_adapter.target.dispatch import (
    COMPILER_LOCK,
    arguments_of_decorator,
    is_compile_time,
    is_dispatcher,
    is_made,
    is_plain,
    is_plain_dispatcher,
    jit_is_disabled,
    object_of,
    options_of,
    register_as_dispatcher,
    typeof,
    warn,
)
from zygote_py.numba_adapter.target.njit import (
    asm_text,
    decorated,
    entry_of,
    is_from_cache,
    link_along,
    llvm_text,
    load,
    make_dispatcher,
    refuse_functions,
)
from zygote_py.numba_adapter.target.stored import is_extended, settings, user_cache_folder

if TYPE_CHECKING:
    from zygote_py.numba_adapter.base.internals import cross2d, empty_inferred, length_of_iterator
    from zygote_py.numba_adapter.base.messages import check_parameters, definition_of
    from zygote_py.numba_adapter.base.type_facts import as_pointer
    from zygote_py.numba_adapter.base.untypable import unsuitable
    from zygote_py.numba_adapter.embedding.custom_calls import (
        GivenType,
        can_call,
        is_python,
        make_identities,
        make_ignored_known,
        parameters_of,
        signature_of_given,
        spread,
    )
    from zygote_py.numba_adapter.embedding.transforms import DerivedCall, Form, derive_with
    from zygote_py.numba_adapter.reading.captures import OURS
    from zygote_py.numba_adapter.reading.custom_rules import ChoiceType
    from zygote_py.numba_adapter.reading.pipeline import typed_derivative, typed_function, typed_implementation
    from zygote_py.numba_adapter.sources.python_sources import (
        called_function,
        content_of_source,
        differentiated_function,
        has_source,
        options_of_source,
    )
    from zygote_py.numba_adapter.sources.supported import array_members, supported_callables
    from zygote_py.numba_adapter.target.array_typing import item_type, result_type
    from zygote_py.numba_adapter.target.partials import (
        Partial,
        entry_of_seed,
        function_of,
        is_sealed,
        opened,
        put_back,
        sealed,
        taken_out,
    )
    from zygote_py.numba_adapter.types.callables import TransformType, is_closure
    from zygote_py.numba_adapter.types.closures import SELF as CLOSURE
    from zygote_py.numba_adapter.types.dataclasses import (
        DataclassType,
        constructed_by,
        constructor_of,
        fields_of_object,
        is_object,
        made_by,
        receiver_of,
    )
    from zygote_py.numba_adapter.types.functions import holds_functions, takes_functions, with_functions
    from zygote_py.numba_adapter.types.handles import default_of

__all__ = [
    "CLOSURE",
    "COMPILER_LOCK",
    "OURS",
    "ChoiceType",
    "DataclassType",
    "DerivedCall",
    "Form",
    "GivenType",
    "Partial",
    "TransformType",
    "arguments_of_decorator",
    "array_members",
    "as_pointer",
    "asm_text",
    "called_function",
    "can_call",
    "check_parameters",
    "constructed_by",
    "constructor_of",
    "content_of_source",
    "cross2d",
    "decorated",
    "default_of",
    "definition_of",
    "derive_with",
    "differentiated_function",
    "embed",
    "empty_inferred",
    "entry_of",
    "entry_of_seed",
    "fields_of_object",
    "function_of",
    "has_source",
    "holds_functions",
    "is_closure",
    "is_compile_time",
    "is_dispatcher",
    "is_extended",
    "is_from_cache",
    "is_made",
    "is_object",
    "is_plain",
    "is_plain_dispatcher",
    "is_python",
    "is_sealed",
    "item_type",
    "jit_is_disabled",
    "length_of_iterator",
    "link_along",
    "llvm_text",
    "load",
    "locals_of",
    "made_by",
    "make_dispatcher",
    "make_identities",
    "make_ignored_known",
    "object_of",
    "opened",
    "options_of",
    "options_of_source",
    "parameters_of",
    "put_back",
    "py_func_of",
    "receiver_of",
    "refuse_functions",
    "register_as_dispatcher",
    "result_type",
    "sealed",
    "semantic",
    "settings",
    "signature_of_given",
    "signatures_of",
    "spread",
    "supported_callables",
    "taken_out",
    "takes_functions",
    "typed_derivative",
    "typed_function",
    "typed_implementation",
    "typeof",
    "unsuitable",
    "user_cache_folder",
    "warn",
    "with_functions",
]

# What the compiler needs, and a gradient out of the cache does not: imported when it is asked for.
_LATER = {
    "called_function": "zygote_py.numba_adapter.sources.python_sources.called_function",
    "differentiated_function": "zygote_py.numba_adapter.sources.python_sources.differentiated_function",
    "content_of_source": "zygote_py.numba_adapter.sources.python_sources.content_of_source",
    "has_source": "zygote_py.numba_adapter.sources.python_sources.has_source",
    "options_of_source": "zygote_py.numba_adapter.sources.python_sources.options_of_source",
    "CLOSURE": "zygote_py.numba_adapter.types.closures.SELF",
    "DataclassType": "zygote_py.numba_adapter.types.dataclasses.DataclassType",
    "DerivedCall": "zygote_py.numba_adapter.embedding.transforms.DerivedCall",
    "Form": "zygote_py.numba_adapter.embedding.transforms.Form",
    "derive_with": "zygote_py.numba_adapter.embedding.transforms.derive_with",
    "empty_inferred": "zygote_py.numba_adapter.base.internals.empty_inferred",
    "GivenType": "zygote_py.numba_adapter.embedding.custom_calls.GivenType",
    "OURS": "zygote_py.numba_adapter.reading.captures.OURS",
    "length_of_iterator": "zygote_py.numba_adapter.base.internals.length_of_iterator",
    "Partial": "zygote_py.numba_adapter.target.partials.Partial",
    "array_members": "zygote_py.numba_adapter.sources.supported.array_members",
    "can_call": "zygote_py.numba_adapter.embedding.custom_calls.can_call",
    "constructed_by": "zygote_py.numba_adapter.types.dataclasses.constructed_by",
    "constructor_of": "zygote_py.numba_adapter.types.dataclasses.constructor_of",
    "cross2d": "zygote_py.numba_adapter.base.internals.cross2d",
    "default_of": "zygote_py.numba_adapter.types.handles.default_of",
    "as_pointer": "zygote_py.numba_adapter.base.type_facts.as_pointer",
    "check_parameters": "zygote_py.numba_adapter.base.messages.check_parameters",
    "definition_of": "zygote_py.numba_adapter.base.messages.definition_of",
    "entry_of_seed": "zygote_py.numba_adapter.target.partials.entry_of_seed",
    "fields_of_object": "zygote_py.numba_adapter.types.dataclasses.fields_of_object",
    "function_of": "zygote_py.numba_adapter.target.partials.function_of",
    "holds_functions": "zygote_py.numba_adapter.types.functions.holds_functions",
    "TransformType": "zygote_py.numba_adapter.types.callables.TransformType",
    "ChoiceType": "zygote_py.numba_adapter.reading.custom_rules.ChoiceType",
    "is_closure": "zygote_py.numba_adapter.types.callables.is_closure",
    "is_object": "zygote_py.numba_adapter.types.dataclasses.is_object",
    "is_python": "zygote_py.numba_adapter.embedding.custom_calls.is_python",
    "item_type": "zygote_py.numba_adapter.target.array_typing.item_type",
    "made_by": "zygote_py.numba_adapter.types.dataclasses.made_by",
    "make_identities": "zygote_py.numba_adapter.embedding.custom_calls.make_identities",
    "make_ignored_known": "zygote_py.numba_adapter.embedding.custom_calls.make_ignored_known",
    "opened": "zygote_py.numba_adapter.target.partials.opened",
    "parameters_of": "zygote_py.numba_adapter.embedding.custom_calls.parameters_of",
    "put_back": "zygote_py.numba_adapter.target.partials.put_back",
    "receiver_of": "zygote_py.numba_adapter.types.dataclasses.receiver_of",
    "result_type": "zygote_py.numba_adapter.target.array_typing.result_type",
    "is_sealed": "zygote_py.numba_adapter.target.partials.is_sealed",
    "sealed": "zygote_py.numba_adapter.target.partials.sealed",
    "signature_of_given": "zygote_py.numba_adapter.embedding.custom_calls.signature_of_given",
    "spread": "zygote_py.numba_adapter.embedding.custom_calls.spread",
    "takes_functions": "zygote_py.numba_adapter.types.functions.takes_functions",
    "supported_callables": "zygote_py.numba_adapter.sources.supported.supported_callables",
    "taken_out": "zygote_py.numba_adapter.target.partials.taken_out",
    "typed_derivative": "zygote_py.numba_adapter.reading.pipeline.typed_derivative",
    "typed_function": "zygote_py.numba_adapter.reading.pipeline.typed_function",
    "typed_implementation": "zygote_py.numba_adapter.reading.pipeline.typed_implementation",
    "unsuitable": "zygote_py.numba_adapter.base.untypable.unsuitable",
    "with_functions": "zygote_py.numba_adapter.types.functions.with_functions",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, own_name = _LATER[name].rpartition(".")
    found = getattr(importlib.import_module(module), own_name)
    globals()[name] = found
    return found
