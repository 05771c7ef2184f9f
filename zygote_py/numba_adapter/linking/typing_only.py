"""Functions that Numba writes in Python itself are typed here without being compiled to machine code.

    np.median(x)        # typed: Numba infers the types of its own implementation, and of the functions that this calls

The signature of such a call comes from the implementation, which Numba compiles to learn it. Only the signature is
needed: the call may be replaced by a function of the library, differentiated by a rule, or found not to matter, and the
remaining calls are compiled with the emitted function. So `typed_only` marks the types that are inferred within it, and
there a dispatcher runs the front of its pipeline, up to its type inference.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zygote_py.numba_adapter.base.internals import (
    ConfigStack,
    NopythonTypeInference,
    PassManager,
    Signature,
    _IntrinsicTemplate,
    compiler,
    dispatcher,
    errors,
    global_compiler_lock,
    make_concrete_template,
    signature,
)
from zygote_py.numba_adapter.linking.helper_store import begin_helpers, result_type
from zygote_py.numba_adapter.linking.linked_only import LinkedFlags

_HASH = hash(compiler.Flags())  # that of all flags: only the names of options count in it


class _TypesOnly(compiler.Flags):
    """The flags under which nothing is compiled. A compilation proper within puts its own on top of them.

    They are part of the key of each template that Numba looks up, thousands of times for a function. So they know their
    hash, and equal ones are one object.
    """

    def __hash__(self) -> int:
        return _HASH


_flags: dict[_TypesOnly, _TypesOnly] = {}


@contextmanager
def typed_only(flags: compiler.Flags | None = None) -> Iterator[None]:
    """Within this, dispatchers that Numba asks for their signature do not compile themselves; they inherit `flags`."""
    inherited: Any = _TypesOnly(flags)  # type: ignore[no-untyped-call]
    inherited.nrt = True  # else Numba would refuse to make arrays
    if not is_typed_only():
        begin_helpers()
    with ConfigStack().enter(_flags.setdefault(inherited, inherited)):
        yield


def is_typed_only() -> bool:
    """Return whether this is within `typed_only`."""
    return isinstance(ConfigStack.top_or_none(), _TypesOnly)


_signatures: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], Signature]] = weakref.WeakKeyDictionary()


_base: Any = dispatcher._DispatcherBase
_plain_compiler: Any = vars(dispatcher)["_FunctionCompiler"]
_of_intrinsics: Any = _IntrinsicTemplate
_compiling, _compiled, _typing = _base.get_call_template, _base.get_overload, _of_intrinsics.generic


@functools.wraps(_compiling)
def _get_call_template(self: Any, args: Any, kws: Any) -> Any:
    if not (is_typed_only() and self._can_compile):
        return _compiling(self, args, kws)
    pysig, folded = self._compiler.fold_argument_types(args, kws)
    found = tuple(folded)
    if found in self.overloads:
        return _compiling(self, args, kws)
    known = _signatures.setdefault(self, {})
    if found not in known:
        infer = functools.partial(_inferred, self, found)
        is_own = type(self._compiler) is _plain_compiler and (self.py_func.__module__ or "").startswith("numba.")
        known[found] = signature(result_type(self.py_func, found, infer) if is_own else infer(), *found)
    name = self.py_func.__name__
    template = make_concrete_template(f"CallTemplate({name})", key=name, signatures=[known[found]])
    return template, pysig, folded, {}


@functools.wraps(_compiled)
def _get_overload(self: Any, sig: Any) -> Any:
    """Return nothing for functions that are only typed: they have no machine code."""
    is_compiled = not is_typed_only() or tuple(getattr(sig, "args", sig)) in self.overloads
    return _compiled(self, sig) if is_compiled else None


@functools.wraps(_typing)
def _generic(self: Any, args: Any, kws: Any) -> Any:
    """Type a call of an intrinsic, which keeps for good how its calls are lowered.

    What its author calls for that may need the code of other functions: they are compiled, to be linked.
    """
    flags = ConfigStack.top_or_none()
    if not isinstance(flags, _TypesOnly) or (self.context, args, tuple(kws.items())) in self._impl_cache:
        return _typing(self, args, kws)
    with ConfigStack().enter(LinkedFlags(flags)):
        return _typing(self, args, kws)


_base.get_call_template, _base.get_overload, _of_intrinsics.generic = _get_call_template, _get_overload, _generic


def _inferred(self: Any, args: tuple[Any, ...]) -> Any:
    """The type of the result of a dispatcher for arguments of these types, as its own pipeline finds it."""
    its = self._compiler
    key = args, None
    if key in its._failed_cache:
        raise its._failed_cache[key]
    flags: Any = compiler.Flags()
    its.targetdescr.options.parse_as_flags(flags, its.targetoptions)
    flags = its._customize_flags(flags)
    with global_compiler_lock, self._compiling_counter:
        run = _front_of(its.pipeline_class)(
            its.targetdescr.typing_context, its.targetdescr.target_context, None, args, None, flags, its.locals
        )
        try:
            found = run.compile_extra(its._get_implementation(args, {}))
        except errors.ForceLiteralArg as error:
            raise error.bind_fold_arguments(lambda args, kws: its.fold_argument_types(args, kws)[1]) from None
        except errors.TypingError as error:
            its._failed_cache[key] = error
            raise
    return found


@functools.cache
def _front_of(pipeline_class: Any) -> Any:
    """A pipeline as a dispatcher has it, up to and including its type inference."""

    class Front(pipeline_class):  # type: ignore[misc]
        def define_pipelines(self) -> list[PassManager]:
            """Return the passes of the first pipeline; there is no object mode after it."""
            whole = super().define_pipelines()[0]
            front: Any = PassManager(f"{whole.pipeline_name} typed")
            for step, description in whole.passes:
                front.add_pass(step, description)
                if step is NopythonTypeInference:
                    break
            front.finalize()
            return [front]

        def _compile_core(self) -> Any:
            with typed_only(self.state.flags):
                (front,) = self.define_pipelines()
                try:
                    front.run(self.state)
                except compiler._EarlyPipelineCompletion as completed:
                    return completed.result  # what is left of it once its `with objmode` is taken out has been typed
            return self.state.return_type

    return Front
