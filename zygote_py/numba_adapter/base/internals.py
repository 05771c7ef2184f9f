"""The one module that imports what Numba does not make public.

Everything else in the adapter takes these names from here, so that this list is what a new version of Numba has to be
compared with. Modules that `import numba` does not load are imported when a name in them is first needed.
"""

from __future__ import annotations

import importlib
from typing import Any

from numba.core import (
    analysis,
    callwrapper,
    cgutils,
    compiler,
    config,
    dispatcher,
    entrypoints,
    errors,
    event,
    imputils,
    ir,
    ir_utils,
    postproc,
    typeinfer,
)
from numba.core.analysis import compute_cfg_from_blocks, dead_branch_prune
from numba.core.base import BaseContext
from numba.core.bytecode import FunctionIdentity
from numba.core.byteflow import TraceRunner
from numba.core.caching import FunctionCache, _Cache
from numba.core.callconv import CPUCallConv
from numba.core.callwrapper import PyCallWrapper
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen, RuntimeLinker
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.datamodel import models
from numba.core.dispatcher import Dispatcher
from numba.core.environment import Environment, lookup_environment
from numba.core.extending import _Intrinsic
from numba.core.imputils import (
    impl_ret_borrowed,
    impl_ret_new_ref,
    lower_builtin,
    lower_constant,
    lower_getattr_generic,
)
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import build_definitions, get_definition, guard
from numba.core.lowering import Lower
from numba.core.pythonapi import _boxers
from numba.core.registry import CPUDispatcher, CPUTarget, cpu_target
from numba.core.rewrites.registry import Rewrite, register_rewrite, rewrite_registry
from numba.core.rewrites.static_getitem import RewriteStringLiteralGetitems, RewriteStringLiteralSetitems
from numba.core.runtime.nrt import rtsys
from numba.core.target_extension import (
    CPU,
    dispatcher_registry,
    get_local_target,
    target_override,
    target_registry,
)
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NativeParforLowering,
    NopythonRewrites,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.typing import npydecl, templates
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    _IntrinsicTemplate,
    _OverloadAttributeTemplate,
    _OverloadFunctionTemplate,
    infer_global,
    make_concrete_template,
    signature,
)
from numba.core.typing.typeof import typeof as numba_typeof
from numba.core.unsafe import eh
from numba.core.untyped_passes import (
    DeadBranchPrune,
    GenericRewrites,
    InlineClosureLikes,
    IRProcessing,
    LiteralUnroll,
    ReconstructSSA,
    TranslateByteCode,
)
from numba.core.utils import order_by_target_specificity
from numba.experimental import function_type
from numba.misc.appdirs import AppDirs
from numba.np import numpy_support
from numba.np.ufunc.array_exprs import RewriteArrayExprs
from numba.np.ufunc.dufunc import DUFunc
from numba.np.ufunc.gufunc import GUFunc
from numba.np.ufunc.sigparse import parse_signature
from numba.stencils.stencil import StencilFunc

from zygote_py.numba_adapter.base.blas import load_blas

boxers: dict[Any, Any] = _boxers.functions


def import_boxes() -> None:
    """Import what fills `boxers`, as Numba does when it first makes a wrapper."""
    importlib.import_module("numba.core.boxing")


_LATER = {
    "InlineClosureCallPass": "numba.core.inline_closurecall",
    "RewriteArrayOfConsts": "numba.core.inline_closurecall",
    "_array_copy": "numba.np.arrayobj",
    "_launch_threads": "numba.np.ufunc.parallel",
    "_getitem_array_generic": "numba.np.arrayobj",
    "_parse_shape": "numba.np.arrayobj",
    "CFunc": "numba.core.ccallback",
    "ListInstance": "numba.cpython.listobj",
    "ListPayloadAccessor": "numba.cpython.listobj",
    "cross2d": "numba.np.extensions",
    "to_ctypes": "numba.core.typing.ctypes_utils",
    # What Numba calls to allocate the array of `np.array([f(i) for i in range(n)])`.
    "empty_inferred": "numba.np.unsafe.ndarray",
    "get_array_index_type": "numba.core.typing.arraydecl",
    # What Numba calls for the length of that array, if the comprehension goes over something else than a range.
    "length_of_iterator": "numba.core.inline_closurecall",
    "fix_integer_index": "numba.np.arrayobj",
    "load_item": "numba.np.arrayobj",
    "make_array": "numba.np.arrayobj",
    "populate_array": "numba.np.arrayobj",
    "store_item": "numba.np.arrayobj",
    "threading_layer": "numba.np.ufunc.parallel",
    "check_blas_return": "numba.np.linalg",
    "ensure_blas": "numba.np.linalg",
    "get_blas_kind": "numba.np.linalg",
}


def __getattr__(name: str) -> Any:
    """Return a name from a module that Numba itself loads when it needs it."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    load_blas()  # which some of them need
    return getattr(importlib.import_module(_LATER[name]), name)


__all__ = [
    "CPU",
    "AbstractTemplate",
    "AppDirs",
    "AttributeTemplate",
    "BaseContext",
    "CPUCallConv",
    "CPUDispatcher",
    "CPUTarget",
    "CompileResult",
    "ConfigStack",
    "DUFunc",
    "DeadBranchPrune",
    "Dispatcher",
    "Environment",
    "FunctionCache",
    "FunctionIdentity",
    "FunctionPass",
    "GUFunc",
    "GenericRewrites",
    "IRLegalization",
    "IRProcessing",
    "InlineClosureLikes",
    "Interpreter",
    "JITCPUCodegen",
    "JITCodeLibrary",
    "LiteralUnroll",
    "Lower",
    "NativeLowering",
    "NativeParforLowering",
    "NopythonRewrites",
    "NopythonTypeInference",
    "PassManager",
    "PreLowerStripPhis",
    "PyCallWrapper",
    "ReconstructSSA",
    "Rewrite",
    "RewriteArrayExprs",
    "RewriteStringLiteralGetitems",
    "RewriteStringLiteralSetitems",
    "RuntimeLinker",
    "Signature",
    "StencilFunc",
    "TraceRunner",
    "TranslateByteCode",
    "_Cache",
    "_Intrinsic",
    "_IntrinsicTemplate",
    "_OverloadAttributeTemplate",
    "_OverloadFunctionTemplate",
    "analysis",
    "boxers",
    "build_definitions",
    "callwrapper",
    "canonicalize_cfg",
    "cgutils",
    "compiler",
    "compute_cfg_from_blocks",
    "config",
    "cpu_target",
    "dead_branch_prune",
    "dispatcher",
    "dispatcher_registry",
    "eh",
    "entrypoints",
    "errors",
    "event",
    "function_type",
    "get_definition",
    "get_local_target",
    "global_compiler_lock",
    "guard",
    "impl_ret_borrowed",
    "impl_ret_new_ref",
    "import_boxes",
    "imputils",
    "infer_global",
    "ir",
    "ir_utils",
    "lookup_environment",
    "lower_builtin",
    "lower_constant",
    "lower_getattr_generic",
    "make_concrete_template",
    "models",
    "npydecl",
    "numba_typeof",
    "numpy_support",
    "order_by_target_specificity",
    "parse_signature",
    "postproc",
    "register_pass",
    "register_rewrite",
    "rewrite_registry",
    "rtsys",
    "signature",
    "target_override",
    "target_registry",
    "templates",
    "typeinfer",
]
