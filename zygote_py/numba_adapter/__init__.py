"""The one door to Numba's internals: no other part of the package imports them.

    typed = typed_function(f, (types.float64, types.int64), {})   # typed statements, see zygote_py.statements
    dispatcher = make_dispatcher(stub, implement, {"fastmath": True})

`typed_function` gives what Numba makes of a function up to its type inference. `make_dispatcher` makes a dispatcher
that compiles, for each signature, what `implement` gives for it. Numba's errors become `DifferentiationError`s.
Nothing here knows of differentiation.
"""

from __future__ import annotations

from numba.np.extensions import cross2d

import zygote_py.numba_adapter.checkpoints  # noqa: F401 (tells Numba of them)
from zygote_py.numba_adapter.arrays import EMPTY_INFERRED, LENGTH_OF_ITERATOR, item_type, result_type
from zygote_py.numba_adapter.callees import default_of
from zygote_py.numba_adapter.closures import SELF as CLOSURE
from zygote_py.numba_adapter.closures import is_closure
from zygote_py.numba_adapter.dataclasses import DataclassType, constructed_by, receiver_of
from zygote_py.numba_adapter.dispatch import (
    COMPILER_LOCK,
    asm_text,
    decorated,
    is_compile_time,
    is_dispatcher,
    jit_is_disabled,
    llvm_text,
    make_dispatcher,
    object_of,
    options_of,
    py_func_of,
    register_as_dispatcher,
    typeof,
)
from zygote_py.numba_adapter.functions import holds_functions, takes_functions, with_functions
from zygote_py.numba_adapter.given import (
    GivenType,
    can_call,
    is_python,
    make_identities,
    make_ignored_known,
    parameters_of,
    signature_of_given,
)
from zygote_py.numba_adapter.inference import typed_function, typed_implementation
from zygote_py.numba_adapter.jitclasses import fields_of_object, is_object, made_by
from zygote_py.numba_adapter.messages import definition_line
from zygote_py.numba_adapter.records import entry_of_seed, function_of, opened, put_back, sealed, taken_out
from zygote_py.numba_adapter.supported import array_members, supported_callables

__all__ = [
    "CLOSURE",
    "COMPILER_LOCK",
    "EMPTY_INFERRED",
    "LENGTH_OF_ITERATOR",
    "DataclassType",
    "GivenType",
    "array_members",
    "asm_text",
    "can_call",
    "constructed_by",
    "cross2d",
    "decorated",
    "default_of",
    "definition_line",
    "entry_of_seed",
    "fields_of_object",
    "function_of",
    "holds_functions",
    "is_closure",
    "is_compile_time",
    "is_dispatcher",
    "is_object",
    "is_python",
    "item_type",
    "jit_is_disabled",
    "llvm_text",
    "made_by",
    "make_dispatcher",
    "make_identities",
    "make_ignored_known",
    "object_of",
    "opened",
    "options_of",
    "parameters_of",
    "put_back",
    "py_func_of",
    "receiver_of",
    "register_as_dispatcher",
    "result_type",
    "sealed",
    "signature_of_given",
    "supported_callables",
    "taken_out",
    "takes_functions",
    "typed_function",
    "typed_implementation",
    "typeof",
    "with_functions",
]
