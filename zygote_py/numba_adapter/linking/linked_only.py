"""Functions that emitted code calls get no machine code of their own: they are linked into it and optimised with it.

    link_callees(dispatcher)        # what it calls is compiled for it alone; it has machine code itself
    link_only(dispatcher)           # compiled within such a function, it has none

Numba optimises each function that it compiles, together with all that it calls, and makes machine code of it. What is
called through three others is optimised four times, and three of the four pieces of machine code never run. So within
the compilation of an emitted function, Numba's own implementations of functions, and the emitted functions that it
calls, stop before that. Machine code is made of one later if its address is needed. Recursive functions, which are
called by their addresses, are compiled as otherwise.

Numba also optimises each function by itself, before all is linked and optimised together. For the wrappers of an
emitted function the second is enough.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm

from zygote_py.base import stage
from zygote_py.numba_adapter.base.internals import (
    BaseContext,
    ConfigStack,
    JITCodeLibrary,
    JITCPUCodegen,
    _Cache,
    _OverloadFunctionTemplate,
    compiler,
    config,
    lookup_environment,
)
from zygote_py.numba_adapter.linking.helper_store import begin_helpers, find, is_kept, keep, key_of
from zygote_py.numba_adapter.linking.vector_functions import with_variants, with_vector_functions

_config: Any = config
_HASH = hash(compiler.Flags())  # that of all flags: only the names of options count in it
_UNRESOLVED = ".numba.unresolved"
_WRAPPERS = ("wrapper", "cfunc_wrapper")  # Numba's names of the modules
_LARGE_WRAPPER = 350  # instructions: those of about eight arrays and as many results
_ENVIRONMENT = "_ZN08NumbaEnv"
_VERSIONS = range(20, 23)  # of LLVM, which have these options

# LLVM checks before each loop that becomes vectors whether its arrays overlap. Otherwise it does so before the loop
# around it, for all iterations of that at once, and takes them to overlap if that counts down by rows of a length that
# it does not know, as the loops of a reverse sweep do.
_CHECKS_BEFORE_INNER_LOOPS = ("--hoist-runtime-checks", "false", "true")

# LLVM writes four vectors into an iteration of a loop that is as cheap as this, and a loop for one at a time that goes
# over the rest. Arrays of a dozen elements do not get to the former, and of those that are not in the nearest cache
# it does nothing; the code of a loop that adds two arrays is a third as long without. Loops that add up are left as
# they are.
_ONE_VECTOR_IN_AN_ITERATION = ("--small-loop-cost", "1", "20")

# How many blocks LLVM looks at to keep a value in a register beyond one loop. A value that all of many loops read is
# looked at anew for each of them: of 160 loops in a row, that took two fifths of the time for machine code.
_FEW_BLOCKS_FOR_A_REGISTER = ("--grow-region-complexity-budget", "1000", "10000")


class LinkedFlags(compiler.Flags):
    """The flags of what is compiled within an emitted function: it is linked only, unless it is recursive."""

    def __init__(self, given: Any = None) -> None:
        super().__init__(given)  # type: ignore[no-untyped-call]
        # No options, since the name of a function depends on these: in a recursion it must be the same.
        self.is_recursive: bool = getattr(given, "is_recursive", False)
        self.is_helper: bool = getattr(given, "is_helper", False)  # or within one, which is kept with it

    def __hash__(self) -> int:
        # Those of functions that are linked only are never equal to others, and looked up as often.
        return _HASH + bool(self._values.get("no_compile"))


class _EmittedFlags(LinkedFlags):
    """The flags of the function by which an emitted module is entered."""


def link_callees(dispatcher: Any) -> None:
    """Let what a dispatcher calls be linked into it only."""
    given = dispatcher._compiler._customize_flags

    def customized(flags: Any) -> Any:
        begin_helpers()
        flags = given(flags)
        return flags if flags.auto_parallel.enabled else _EmittedFlags(flags)  # its parts are called by addresses

    dispatcher._compiler._customize_flags = customized


def link_only(dispatcher: Any, *, is_helper: bool = False, is_stored: bool = True) -> None:
    """Let a dispatcher be linked only where it is compiled within an emitted function, and keep it on disk.

    What a helper calls, one of Numba's own functions as a rule, is kept with it, and not by itself.
    """
    given, add = dispatcher._compiler._customize_flags, dispatcher.add_overload
    compile_for = dispatcher.compile

    def compiling(sig: Any) -> Any:
        """Compile; what is kept on disk is not for the user's own functions, which Numba may keep elsewhere."""
        top, known = ConfigStack.top_or_none(), dispatcher.overloads
        arguments = tuple(getattr(sig, "args", sig))
        if (top is None or type(top) is compiler.Flags) and arguments in known and is_kept(known[arguments].library):
            del known[arguments]
        return compile_for(sig)

    def customized(flags: Any) -> Any:
        flags = given(flags)
        top = ConfigStack.top_or_none()
        if not isinstance(top, LinkedFlags):
            return flags
        flags = LinkedFlags(flags)
        flags.is_recursive = dispatcher._compiling_counter.counter > 1
        flags.is_helper = is_helper or top.is_helper
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        return flags

    def adding(result: Any) -> None:
        if result.entry_point is not None:
            add(result)
            return
        if not result.library.is_linked_only:
            result.library._ensure_finalized()  # which no caller may do
        # Callers find the code by this object.
        result = result._replace(entry_point=_Linked())
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        dispatcher.overloads[tuple(result.signature.args)] = result

    dispatcher._compiler._customize_flags = customized
    vars(dispatcher).update(add_overload=adding, compile=compiling)
    if is_stored:
        vars(dispatcher)["_cache"] = _Kept(dispatcher)
        dispatcher._compiler._compile_core = functools.partial(_compiled_callee, dispatcher._compiler)


class _Kept(_Cache):
    """The cache of such a dispatcher, which Numba asks before it compiles."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = weakref.ref(dispatcher)

    cache_path = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kept code for argument types, or None."""
        dispatcher = self._dispatcher()
        return None if dispatcher is None or (key := _key(dispatcher._compiler, sig)) is None else find(key)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Do nothing: it has been kept before any caller has seen it."""

    def enable(self) -> None:
        """Numba may ask for this."""

    def disable(self) -> None:
        """Numba may ask for this."""

    def flush(self) -> None:
        """Numba may ask for this."""


def _key(compiler_of: Any, arguments: Any) -> str | None:
    """Return the key of a function that an emitted function calls; None if it is not to be kept."""
    top = ConfigStack.top_or_none()
    if not isinstance(top, LinkedFlags) or top.is_helper or top.is_recursive or not isinstance(arguments, tuple):
        return None
    flags: Any = compiler.Flags()
    compiler_of.targetdescr.options.parse_as_flags(flags, compiler_of.targetoptions)
    return key_of(compiler_of.py_func, arguments, flags, sorted(compiler_of.locals))


def _compiled_callee(compiler_of: Any, arguments: Any, return_type: Any) -> Any:
    """Compile a function that an emitted function calls, and keep it."""
    key = _key(compiler_of, arguments) if return_type is None else None
    result = type(compiler_of)._compile_core(compiler_of, arguments, return_type)
    return result if key is None or result.entry_point is not None else keep(key, result)


class _Linked:
    """Stands for the address of a function that has none."""


_library: Any = JITCodeLibrary


class _Library(_library):  # type: ignore[misc]
    """The code of a function, which may be linked into others only."""

    is_linked_only = False
    is_emitted = False  # whether a function in it is the one by which an emitted module is entered
    added: tuple[str, Callable[[Any], None]] | None = None  # an entry for compiled code, and what adds it to a module
    _is_bare = False  # whether it has neither been optimised nor compiled
    _environments: tuple[Any, ...] = ()  # those that its machine code refers to
    _linked: tuple[Any, ...] = ()
    _shared_module: Any
    _linking_libraries: Any
    _final_module: Any
    _codegen: Any

    def add_ir_module(self, ir_module: Any) -> None:
        """Add a module. A wrapper of many arguments is not optimised: it would take longer than the function."""
        if self.is_emitted and ir_module.name in _WRAPPERS:
            made = [each for each in ir_module.functions if each.blocks]
            if sum(len(block.instructions) for each in made for block in each.blocks) > _LARGE_WRAPPER:
                for each in made:
                    each.attributes.add("noinline")
                    each.attributes.add("optnone")
        super().add_ir_module(ir_module)

    def finalize(self) -> None:
        """Link what it calls; optimise it and make machine code of it, unless it is linked only."""
        if self.is_linked_only:
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._linked, self._linking_libraries = tuple(self._linking_libraries), []  # kept alive
            if not any(each.name.startswith(_UNRESOLVED) for each in self._final_module.global_variables):
                self._finalize_dynamic_globals()
                self._finalized = self._is_bare = True
                return
        super().finalize()
        self._set_environments()

    def get_pointer_to_function(self, name: str) -> Any:
        """Return the address of a function; if it is linked only, machine code is made of it now."""
        self._ensure_finalized()
        if self._is_bare:
            self._is_bare = False
            self._get_module_for_linking()
            self._final_module = self._final_module.clone()
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
            self._set_environments()
        return super().get_pointer_to_function(name)

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None and self.added is not None:
            symbol, add = self.added
            module = super()._get_module_for_linking()  # a copy, as a function in it is external
            add(module)
            module.get_function(symbol).linkage = llvm.Linkage.linkonce_odr
        return super()._get_module_for_linking()

    def _add_entry_for_itself(self) -> None:
        """Add the entry for compiled code if that is a function which calls itself, perhaps by others."""
        if self.added is None:
            return
        symbol, add = self.added
        module = self._final_module
        names = {each.name for each in (*module.functions, *module.global_variables)}
        if names & {symbol, f"{_UNRESOLVED}${symbol}"}:
            add(module)
            self.added = None

    def _optimize_functions(self, ll_module: Any) -> None:
        if self.is_linked_only or (self.is_emitted and ll_module.name in _WRAPPERS):
            # They are optimised with what they are linked with.
            ll_module.data_layout = self._codegen._data_layout
        elif self.is_emitted and _config.OPT != 0:
            ll_module.data_layout = self._codegen._data_layout
            _keep_values_in_registers(ll_module, self._codegen)
        else:
            super()._optimize_functions(ll_module)

    def _optimize_final_module(self) -> None:
        self._add_entry_for_itself()
        with stage("LLVM: optimisation"):
            if not self.is_emitted:
                super()._optimize_final_module()
                return
            self._final_module = with_variants(self._final_module)
            with (
                _llvm_option(*_CHECKS_BEFORE_INNER_LOOPS),
                _llvm_option(*_ONE_VECTOR_IN_AN_ITERATION),
                _as_one_of_many(self._final_module),
            ):
                super()._optimize_final_module()
            self._final_module = with_vector_functions(self._final_module)

    def _finalize_final_module(self) -> None:
        with stage("LLVM: machine code"):
            if not self.is_emitted:
                super()._finalize_final_module()
                return
            with _llvm_option(*_FEW_BLOCKS_FOR_A_REGISTER):
                super()._finalize_final_module()

    def _set_environments(self) -> None:
        """Let the code of functions that are linked only find their environments."""
        names = (each.name for each in self._final_module.global_variables if each.name.startswith(_ENVIRONMENT))
        found = {name: environment for name in names if (environment := lookup_environment(name)) is not None}
        for name, environment in found.items():
            self._codegen.set_env(name, environment)
        self._environments = tuple(found.values())


@contextmanager
def _llvm_option(name: str, value: str, default: str) -> Iterator[None]:
    """Set an option of LLVM while the context lasts. It is one of the process; Numba compiles one function at a time.

    An option that LLVM does not know would end the process.
    """
    if llvm.llvm_version_info[0] not in _VERSIONS:
        yield
        return
    llvm.set_option("", f"{name}={value}")
    try:
        yield
    finally:
        llvm.set_option("", f"{name}={default}")


@contextmanager
def _as_one_of_many(module: Any) -> Iterator[None]:
    """Let LLVM take the functions of a module for ones that other modules may have as well, as Numba's linking does.

    What their parameters may be is known to none of its passes then. Otherwise one visits a call once for each of its
    arguments, and looks at all of them each time: for 160 arrays, those are 1,120 words.
    """
    own = [each for each in module.functions if not each.is_declaration and each.linkage == llvm.Linkage.external]
    for each in own:
        each.linkage = llvm.Linkage.weak_odr
    try:
        yield
    finally:
        for each in own:
            each.linkage = llvm.Linkage.external


def _keep_values_in_registers(module: Any, codegen: Any) -> None:
    """Prepare functions for the passes over the module, which drop counts of references before they do all the rest.

    Numba optimises each function here as thoroughly as the module afterwards. One of these passes is all that the first
    of those need: of a function that is entered by one other, the rest would be done twice.
    """
    builder = codegen._pass_builder()
    for function in module.functions:
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.run(function, builder)


_create: Callable[..., Any] = JITCPUCodegen.create_library
_compile_once: Callable[..., Any] = BaseContext.compile_subroutine
_compile: Callable[..., Any] = BaseContext._compile_subroutine_no_cache
_decorator: Callable[..., Any] = _OverloadFunctionTemplate._get_jit_decorator


@functools.wraps(_create)
def _create_library(self: Any, name: str, **options: Any) -> Any:
    library = _create(self, name, **options)
    top = ConfigStack.top_or_none()
    library.is_linked_only = type(top) is LinkedFlags and not top.is_recursive
    library.is_emitted = type(top) is _EmittedFlags
    return library


_subroutines: dict[tuple[str, ...], dict[Any, Any]] = {}


@functools.wraps(_compile_once)
def _compile_subroutine_once(self: Any, *args: Any, **options: Any) -> Any:
    """Compile a function in Python that lowers an operation, unless this has been done.

    Numba remembers such functions for all callers. Those of emitted functions are apart: they may be files of this
    package, which the user's own functions must not depend on when Numba caches them.
    """
    if isinstance(ConfigStack.top_or_none(), LinkedFlags):
        self = self.subtarget(cached_internal_func=_subroutines.setdefault(_settings(self), {}))
    return _compile_once(self, *args, **options)


def _settings(context: Any) -> tuple[str, ...]:
    """Return what Numba has set up a context for: a subroutine inherits it, though none of its caller's flags."""
    fastmath = context.fastmath
    return (
        str(sorted(fastmath.flags) if fastmath else fastmath),
        str(context.enable_boundscheck),
        str(context.enable_debuginfo),
        type(context.error_model).__name__,
    )


@functools.wraps(_compile)
def _compile_subroutine(self: Any, builder: Any, impl: Any, sig: Any, locals: Any = None, flags: Any = None) -> Any:
    """Compile a function in Python that lowers an operation."""
    top: Any = ConfigStack.top_or_none()
    if not isinstance(top, LinkedFlags):
        return _compile(self, builder, impl, sig, locals, flags)
    if flags is None:
        flags = LinkedFlags()
        flags.nrt = bool(top.nrt)
    key = None
    if isinstance(flags, LinkedFlags) and not (top.is_helper or top.is_recursive or locals):
        key = key_of(impl, sig.args, flags, (str(sig.return_type), *_settings(self)))
        if key is not None and (found := find(key)) is not None:
            self.active_code_library.add_linking_library(found.library)
            return found
    if isinstance(flags, LinkedFlags):
        flags.is_helper = True
    with ConfigStack().enter(LinkedFlags(top)):
        result = _compile(self, builder, impl, sig, locals, flags)
    if key is not None:
        result = keep(key, result)
        self.active_code_library.add_linking_library(result.library)
    return result


@functools.wraps(_decorator)
def _get_jit_decorator(self: Any) -> Any:
    """Return the decorator for an implementation that only compiled code calls."""
    jitter = _decorator(self)

    def linking(**options: Any) -> Callable[[Callable[..., Any]], Any]:
        def decorated(function: Callable[..., Any]) -> Any:
            dispatcher = jitter(**options)(function)
            link_only(dispatcher, is_helper=True)
            return dispatcher

        return decorated

    return linking


JITCPUCodegen._library_class = _Library
JITCPUCodegen.create_library = _create_library  # type: ignore[method-assign]
BaseContext.compile_subroutine = _compile_subroutine_once  # type: ignore[method-assign]
BaseContext._compile_subroutine_no_cache = _compile_subroutine  # type: ignore[method-assign]
_OverloadFunctionTemplate._get_jit_decorator = _get_jit_decorator  # type: ignore[method-assign]
