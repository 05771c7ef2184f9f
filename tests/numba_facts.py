"""Facts about Numba that the adapter relies on and Numba does not promise; `python -m tests.numba_facts` lists them.

Each fact has a probe, so that the test of a new version of Numba names what has changed.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import types

from zygote_py.numba_adapter.base import internals

HEAD = """\
# Private parts of Numba

Generated: `python -m tests.numba_facts > docs/numba.md`. Numba promises nothing about these names; the adapter
(`zygote_py/numba_adapter`) relies on them. `tests/numba_adapter/test_numba_facts.py` probes each of them, so that a new
version of Numba shows at once which have changed. `zygote_py/numba_adapter/base/internals.py` is the only module that
imports them.
"""


@dataclass(frozen=True)
class Fact:
    """An attribute, or how something behaves, with what the adapter needs it for."""

    name: str
    purpose: str
    holds: Callable[[], bool]


@functools.cache
def dispatcher() -> Any:
    """Return a dispatcher that has compiled one signature."""

    @numba.njit
    def twice(x):
        return 2.0 * x

    twice(1.0)
    return twice


@functools.cache
def compiled() -> Any:
    """Return the result of a compilation."""
    (result,) = dispatcher().overloads.values()
    return result


@functools.cache
def text_without_result() -> str:
    """Return what LLVM gets for a function that returns None."""

    @numba.njit
    def clear(x):
        x[0] = 0.0

    clear(np.ones(1))
    (text,) = clear.inspect_llvm().values()
    return text


@functools.cache
def ufunc() -> Any:
    """Return a function made by `vectorize`."""
    return numba.vectorize([types.float64(types.float64)])(lambda x: x + 1.0)


@functools.cache
def gufunc() -> Any:
    """Return a function made by `guvectorize`."""

    def add_one(x, y):
        for i in range(len(x)):
            y[i] = x[i] + 1.0

    return numba.guvectorize([(types.float64[:], types.float64[:])], "(n)->(n)")(add_one)


@functools.cache
def stencil() -> Any:
    """Return a stencil."""
    return numba.stencil(lambda a: a[0] + a[1])


@functools.cache
def cfunc() -> Any:
    """Return a C callback."""
    return numba.cfunc(types.float64(types.float64))(lambda x: x + 1.0)


def attributes(owner: str, value: Callable[[], Any], purpose: str, *names: str) -> list[Fact]:
    """Return a fact for each attribute."""
    return [Fact(f"{owner}.{name}", purpose, functools.partial(has, value, name)) for name in names]


def has(value: Callable[[], Any], name: str) -> bool:
    """Return whether an object has an attribute."""
    return hasattr(value(), name)


def takes(function: Callable[..., Any], *parameters: str) -> bool:
    """Return whether a function has parameters of these names."""
    return set(parameters) <= set(inspect.signature(function).parameters)


COMPILING = "derivatives are compiled for the types of a call, when Numba asks for them"
KEEPING = "machine code is kept on disk under a key of what was compiled"
TYPING = "calls in functions that are differentiated are resolved as Numba resolves them"
LINKING = "what an emitted function calls is linked into it, without machine code of its own"
PASSES = "emitted functions pass through passes of this package"
READING = "functions are read as Numba's own IR"
VALUES = "a derivative is passed to compiled code where a parameter is a function of given types"
ELEMENTWISE = "the function that a ufunc, a stencil or a C callback was made from is differentiated"
FACTS = [
    *attributes("Dispatcher", dispatcher, COMPILING, "_compiler", "_can_compile", "_compile_for_args"),
    *attributes("Dispatcher", dispatcher, COMPILING, "_compiling_counter", "add_overload", "targetoptions", "py_func"),
    *attributes("Dispatcher", dispatcher, KEEPING, "_cache", "_cache_hits"),
    *attributes("Dispatcher", dispatcher, VALUES, "get_compile_result"),
    *attributes("function_type", lambda: internals.function_type, VALUES, "_get_wrapper_address", "_get_jit_address"),
    *attributes(
        "cpu_target.target_context", lambda: internals.cpu_target.target_context, VALUES, "create_cfunc_wrapper"
    ),
    *attributes("CompileResult.fndesc", lambda: compiled().fndesc, VALUES, "llvm_func_name", "llvm_cfunc_wrapper_name"),
    *attributes(
        "Dispatcher._compiler",
        lambda: dispatcher()._compiler,
        COMPILING,
        *("_get_implementation", "fold_argument_types", "_failed_cache", "_customize_flags", "pipeline_class"),
    ),
    *attributes(
        "numba.core.dispatcher._DispatcherBase",
        lambda: internals.dispatcher._DispatcherBase,
        TYPING,
        *("get_call_template", "get_overload"),
    ),
    *attributes("_IntrinsicTemplate", lambda: internals._IntrinsicTemplate, TYPING, "generic"),
    Fact(
        "_IntrinsicTemplate._impl_cache",
        TYPING,
        lambda: "self._impl_cache" in inspect.getsource(internals._IntrinsicTemplate.generic),
    ),
    *attributes("CompileResult", compiled, KEEPING, "_replace", "reload_init", "lifted", "referenced_envs", "library"),
    *attributes(
        "CompileResult.library",
        lambda: compiled().library,
        KEEPING,
        *("_final_module", "has_dynamic_globals", "serialize_using_object_code", "codegen"),
    ),
    *attributes(
        "CompileResult.library.codegen",
        lambda: compiled().library.codegen,
        KEEPING,
        *("unserialize_library", "set_env", "magic_tuple"),
    ),
    *attributes("FunctionIdentity", lambda: internals.FunctionIdentity, KEEPING, "_unique_ids"),
    *attributes("CPUCallConv", lambda: internals.CPUCallConv, KEEPING, "emit_unwrap_dynamic_exception_fn"),
    *attributes("Environment", lambda: internals.Environment, KEEPING, "_memo"),
    *attributes("JITCPUCodegen", lambda: internals.JITCPUCodegen, LINKING, "_library_class", "create_library"),
    *attributes(
        "JITCodeLibrary",
        lambda: internals.JITCodeLibrary,
        LINKING,
        *("_get_module_for_linking", "_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"),
        *("get_pointer_to_function", "finalize"),
    ),
    *attributes("Flags", internals.compiler.Flags, LINKING, "_values"),
    *attributes("BaseContext", lambda: internals.BaseContext, LINKING, "_compile_subroutine_no_cache"),
    *attributes(
        "_OverloadFunctionTemplate", lambda: internals._OverloadFunctionTemplate, LINKING, "_get_jit_decorator"
    ),
    *attributes(
        "cpu_target.typing_context",
        lambda: internals.cpu_target.typing_context,
        TYPING,
        *("_lookup_global", "_get_attribute_templates", "_attributes", "callstack", "resolve_overload"),
        *("resolve_value_type", "resolve_function_type", "can_convert", "refresh"),
    ),
    *attributes(
        "cpu_target.typing_context.callstack",
        lambda: internals.cpu_target.typing_context.callstack,
        TYPING,
        "_fail_cache",
    ),
    Fact(
        "typing_context.resolve_overload(allow_ambiguous=)",
        TYPING,
        lambda: takes(internals.cpu_target.typing_context.resolve_overload, "allow_ambiguous"),
    ),
    *attributes(
        "typing registry", lambda: internals.templates.builtin_registry, TYPING, "globals", "functions", "attributes"
    ),
    *attributes(
        "lowering registry",
        lambda: internals.imputils.builtin_registry,
        TYPING,
        *("functions", "getattrs", "setattrs", "casts", "constants"),
    ),
    *attributes(
        "Interpreter", lambda: internals.Interpreter, READING, "store", "op_LOAD_CLOSURE", "_remove_unused_temporaries"
    ),
    Fact(
        "TraceRunner does not know UNPACK_EX",
        "starred unpacking is added while a function is read",
        lambda: (
            not hasattr(internals.TraceRunner, "op_UNPACK_EX") and hasattr(internals.TraceRunner, "op_UNPACK_SEQUENCE")
        ),
    ),
    *attributes("ReconstructSSA", lambda: internals.ReconstructSSA, PASSES, "_patch_locals"),
    *attributes(
        "CFGraph",
        lambda: internals.compute_cfg_from_blocks(internals.compiler.run_frontend(dispatcher().py_func).blocks),
        PASSES,
        *("dominators", "dominance_frontier", "dominator_tree", "predecessors", "successors", "entry_point"),
    ),
    Fact(
        "variables that hold Python's stack after a branch begin with `$phi`",
        PASSES,
        lambda: any(
            each.target.name.startswith("$phi")
            for block in internals.compiler.run_frontend(lambda x: x if x > 1.0 else 2.0).blocks.values()
            for each in block.find_insts(internals.ir.Assign)
        ),
    ),
    Fact(
        "the event `numba:run_pass`",
        "`ZYGOTE_PY_TIMINGS=1` prints the seconds of Numba's passes",
        lambda: "numba:run_pass" in inspect.getsource(internals.PassManager._runPass),
    ),
    *attributes("ir.Scope", lambda: internals.ir.Scope, READING, "redefine", "get_or_define"),
    *attributes("DUFunc", ufunc, ELEMENTWISE, "_dispatcher", "_frozen", "find_ewise_function"),
    *attributes("GUFunc", gufunc, ELEMENTWISE, "_frozen", "_get_function_type", "expected_ndims", "gufunc_builder"),
    *attributes("CFunc", cfunc, ELEMENTWISE, "_pyfunc", "_sig", "_compiler", "__wrapped__"),
    *attributes(
        "StencilFunc",
        stencil,
        ELEMENTWISE,
        *("kernel_ir", "options", "neighborhood", "get_return_type", "copy_ir_with_calltypes", "add_indices_to_kernel"),
    ),
    Fact(
        "Numba's text for a dispatcher in its IR begins with `CPUDispatcher(<function`",
        "messages name the user's function",
        lambda: repr(dispatcher()).startswith("CPUDispatcher(<function"),
    ),
    Fact(
        "`Unreachable condition reached (op code RERAISE` in an error of Numba's",
        "messages name what a handler of exceptions cannot do",
        lambda: "RERAISE" in inspect.getsource(internals.Interpreter),
    ),
    Fact(
        "a function that returns None returns the code 0, or that of an exception",
        "calls of such functions look at the code for exceptions alone",
        lambda: "ret i32 0" in text_without_result() and "ret i32 -2" not in text_without_result(),
    ),
    Fact(
        "an attribute that has an implementation in Python refreshes the target context when it is made",
        "the contexts are refreshed for the first time",
        lambda: ".refresh()" in inspect.getsource(internals._OverloadAttributeTemplate._get_target_registry),
    ),
    Fact("NumPy arrays are Numba's `Array`", TYPING, lambda: isinstance(numba.typeof(np.zeros(2)), types.Array)),
]


def imported() -> dict[str, list[str]]:
    """Return the private names that are imported, by module."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(inspect.getsource(internals)).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
            found[node.module or ""] = [alias.name for alias in node.names]
    for name, module in internals._LATER.items():
        found.setdefault(module, []).append(name)
    return dict(sorted(found.items()))


def page() -> str:
    """Return the page of the documentation."""
    lines = [HEAD, "## Names that are imported", ""]
    lines += [f"- `{module}`: {', '.join(f'`{name}`' for name in names)}" for module, names in imported().items()]
    lines += [""]
    for purpose in dict.fromkeys(fact.purpose for fact in FACTS):
        lines += [f"## {purpose[0].upper()}{purpose[1:]}", ""]
        lines += [f"- `{fact.name}`" for fact in FACTS if fact.purpose == purpose]
        lines += [""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
