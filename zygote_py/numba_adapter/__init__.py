"""The one door to Numba's internals: no other part of the package imports them.

    typed = typed_function(f, (types.float64, types.int64), {})   # typed statements, see zygote_py.statements
    dispatcher = make_dispatcher(stub, implement, {"fastmath": True})

`typed_function` gives what Numba makes of a function up to its type inference. `make_dispatcher` makes a dispatcher
that compiles, for each signature, what `implement` gives for it. Numba's errors become `DifferentiationError`s.
Nothing here knows of differentiation. What only the compiler needs is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zygote_py.numba_adapter.decorations import locals_of, semantic, signatures_of
from zygote_py.numba_adapter.dispatch import (
    COMPILER_LOCK,
    arguments_of_decorator,
    asm_text,
    called_function,
    decorated,
    differentiated_function,
    is_compile_time,
    is_dispatcher,
    is_from_cache,
    is_made,
    is_plain,
    is_plain_dispatcher,
    jit_is_disabled,
    link_along,
    llvm_text,
    make_dispatcher,
    object_of,
    options_of,
    py_func_of,
    refuse_functions,
    register_as_dispatcher,
    typeof,
    warn,
)
from zygote_py.numba_adapter.embedded import embed
from zygote_py.numba_adapter.entries import entry_of
from zygote_py.numba_adapter.stored import is_extended, settings, user_cache_folder

if TYPE_CHECKING:
    from zygote_py.numba_adapter.again import is_checkpoint
    from zygote_py.numba_adapter.arrays import EMPTY_INFERRED, LENGTH_OF_ITERATOR, item_type, result_type
    from zygote_py.numba_adapter.callees import default_of
    from zygote_py.numba_adapter.captures import OURS
    from zygote_py.numba_adapter.choices import is_choice, number_in
    from zygote_py.numba_adapter.closures import SELF as CLOSURE
    from zygote_py.numba_adapter.closures import is_closure
    from zygote_py.numba_adapter.dataclasses import DataclassType, constructed_by, constructor_of, receiver_of
    from zygote_py.numba_adapter.derived import DerivedCall, Form, is_deriver
    from zygote_py.numba_adapter.functions import holds_functions, takes_functions, with_functions
    from zygote_py.numba_adapter.given import (
        GivenType,
        can_call,
        is_python,
        make_identities,
        make_ignored_known,
        parameters_of,
        signature_of_given,
        spread,
    )
    from zygote_py.numba_adapter.inference import typed_derivative, typed_function, typed_implementation
    from zygote_py.numba_adapter.internals import cross2d
    from zygote_py.numba_adapter.jitclasses import fields_of_object, is_object, made_by
    from zygote_py.numba_adapter.messages import check_parameters, definition_line
    from zygote_py.numba_adapter.partials import Partial
    from zygote_py.numba_adapter.pointers import as_pointer
    from zygote_py.numba_adapter.records import (
        entry_of_seed,
        function_of,
        is_sealed,
        opened,
        put_back,
        sealed,
        taken_out,
    )
    from zygote_py.numba_adapter.sources import content_of_source, has_source, options_of_source
    from zygote_py.numba_adapter.supported import array_members, supported_callables
    from zygote_py.numba_adapter.unknown import unsuitable

__all__ = [
    "CLOSURE",
    "COMPILER_LOCK",
    "EMPTY_INFERRED",
    "LENGTH_OF_ITERATOR",
    "OURS",
    "DataclassType",
    "DerivedCall",
    "Form",
    "GivenType",
    "Partial",
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
    "definition_line",
    "differentiated_function",
    "embed",
    "entry_of",
    "entry_of_seed",
    "fields_of_object",
    "function_of",
    "has_source",
    "holds_functions",
    "is_checkpoint",
    "is_choice",
    "is_closure",
    "is_compile_time",
    "is_deriver",
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
    "link_along",
    "llvm_text",
    "locals_of",
    "made_by",
    "make_dispatcher",
    "make_identities",
    "make_ignored_known",
    "number_in",
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
    "content_of_source": "zygote_py.numba_adapter.sources.content_of_source",
    "has_source": "zygote_py.numba_adapter.sources.has_source",
    "options_of_source": "zygote_py.numba_adapter.sources.options_of_source",
    "CLOSURE": "zygote_py.numba_adapter.closures.SELF",
    "DataclassType": "zygote_py.numba_adapter.dataclasses.DataclassType",
    "DerivedCall": "zygote_py.numba_adapter.derived.DerivedCall",
    "Form": "zygote_py.numba_adapter.derived.Form",
    "EMPTY_INFERRED": "zygote_py.numba_adapter.arrays.EMPTY_INFERRED",
    "GivenType": "zygote_py.numba_adapter.given.GivenType",
    "OURS": "zygote_py.numba_adapter.captures.OURS",
    "LENGTH_OF_ITERATOR": "zygote_py.numba_adapter.arrays.LENGTH_OF_ITERATOR",
    "Partial": "zygote_py.numba_adapter.partials.Partial",
    "array_members": "zygote_py.numba_adapter.supported.array_members",
    "can_call": "zygote_py.numba_adapter.given.can_call",
    "constructed_by": "zygote_py.numba_adapter.dataclasses.constructed_by",
    "constructor_of": "zygote_py.numba_adapter.dataclasses.constructor_of",
    "cross2d": "zygote_py.numba_adapter.internals.cross2d",
    "default_of": "zygote_py.numba_adapter.callees.default_of",
    "as_pointer": "zygote_py.numba_adapter.pointers.as_pointer",
    "check_parameters": "zygote_py.numba_adapter.messages.check_parameters",
    "definition_line": "zygote_py.numba_adapter.messages.definition_line",
    "entry_of_seed": "zygote_py.numba_adapter.records.entry_of_seed",
    "fields_of_object": "zygote_py.numba_adapter.jitclasses.fields_of_object",
    "function_of": "zygote_py.numba_adapter.records.function_of",
    "holds_functions": "zygote_py.numba_adapter.functions.holds_functions",
    "is_deriver": "zygote_py.numba_adapter.derived.is_deriver",
    "is_checkpoint": "zygote_py.numba_adapter.again.is_checkpoint",
    "is_choice": "zygote_py.numba_adapter.choices.is_choice",
    "is_closure": "zygote_py.numba_adapter.closures.is_closure",
    "is_object": "zygote_py.numba_adapter.jitclasses.is_object",
    "is_python": "zygote_py.numba_adapter.given.is_python",
    "item_type": "zygote_py.numba_adapter.arrays.item_type",
    "made_by": "zygote_py.numba_adapter.jitclasses.made_by",
    "make_identities": "zygote_py.numba_adapter.given.make_identities",
    "make_ignored_known": "zygote_py.numba_adapter.given.make_ignored_known",
    "number_in": "zygote_py.numba_adapter.choices.number_in",
    "opened": "zygote_py.numba_adapter.records.opened",
    "parameters_of": "zygote_py.numba_adapter.given.parameters_of",
    "put_back": "zygote_py.numba_adapter.records.put_back",
    "receiver_of": "zygote_py.numba_adapter.dataclasses.receiver_of",
    "result_type": "zygote_py.numba_adapter.arrays.result_type",
    "is_sealed": "zygote_py.numba_adapter.records.is_sealed",
    "sealed": "zygote_py.numba_adapter.records.sealed",
    "signature_of_given": "zygote_py.numba_adapter.given.signature_of_given",
    "spread": "zygote_py.numba_adapter.given.spread",
    "takes_functions": "zygote_py.numba_adapter.functions.takes_functions",
    "supported_callables": "zygote_py.numba_adapter.supported.supported_callables",
    "taken_out": "zygote_py.numba_adapter.records.taken_out",
    "typed_derivative": "zygote_py.numba_adapter.inference.typed_derivative",
    "typed_function": "zygote_py.numba_adapter.inference.typed_function",
    "typed_implementation": "zygote_py.numba_adapter.inference.typed_implementation",
    "unsuitable": "zygote_py.numba_adapter.unknown.unsuitable",
    "with_functions": "zygote_py.numba_adapter.functions.with_functions",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, own_name = _LATER[name].rpartition(".")
    found = getattr(importlib.import_module(module), own_name)
    globals()[name] = found
    return found
