"""Numba's pipeline up to and including its type inference, so that the result is what Numba will compile.

typed = typed_function(f, (types.float64, types.int64), {})     # typed statements, see zygote_py.base.statements
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numba import types

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import MADE, is_observed, is_rule, parts_of_function, stage, statements as st
from zygote_py.ir import Loc, Type, components_of, names_of
from zygote_py.numba_adapter.base import (
    SEMANTIC_OPTIONS,
    Decoration,
    IRPass,
    check_parameters,
    definition,
    definition_of,
    internals,
    is_ambiguous,
    is_constant,
    is_ours,
    options_within,
    propagating_changes,
    quick_liveness,
    statements,
    translate_error,
    with_changing_default,
)
from zygote_py.numba_adapter.base.internals import (
    DeadBranchPrune,
    InlineClosureLikes,
    IRProcessing,
    LiteralUnroll,
    NopythonTypeInference,
    PassManager,
    ReconstructSSA,
    TranslateByteCode,
    compiler,
    cpu_target,
    dead_branch_prune,
    entrypoints,
    errors,
    global_compiler_lock,
    ir,
    postproc,
    register_pass,
)
from zygote_py.numba_adapter.embedding.transforms import Form, as_callees, type_of_form
from zygote_py.numba_adapter.linking import keep_writes, typed_only
from zygote_py.numba_adapter.reading.bytecode import TranslateInOrder
from zygote_py.numba_adapter.reading.captures import Captures, CapturesToArguments, check_modules
from zygote_py.numba_adapter.reading.custom_rules import choice
from zygote_py.numba_adapter.reading.loops import (
    ItemsToArguments,
    IteratorsToLoops,
    ReduceToLoop,
    UnrollTuples,
    line_to_unroll,
)
from zygote_py.numba_adapter.reading.translation import Translation
from zygote_py.numba_adapter.target.dispatch import jit_enabled
from zygote_py.numba_adapter.types import (
    ClosuresToObjects,
    TypingContext,
    at_work,
    check_captured,
    closure_of,
    constant_key,
)

Options = Mapping[str, object]


@stage("reading, with Numba's types")
def typed_function(
    func: Callable[..., object],
    argument_types: Sequence[Type],
    options: Options,
    *,
    tuple_floats_are_inputs: bool = False,
) -> st.TypedFunction:
    """Return a Python function for these argument types as Numba types it, before lowering.

    Captured floats and arrays become parameters after the function's own; arguments that have defaults may be missing.
    Numbers in captured tuples are constants, unless `tuple_floats_are_inputs`. Raises DifferentiationError if Numba
    cannot read or type the function.
    """
    entrypoints.init_all()
    session = TypingContext(_typed, options=options, tuple_floats_are_inputs=tuple_floats_are_inputs)
    loc = definition_of(func.__code__)
    given = _with_defaults(func, tuple(as_callees(type_, session) for type_ in argument_types), loc)
    # Those that may change are given at each call; in a function that others call, they are captured.
    given = tuple(map(with_changing_default, given))
    if is_ambiguous(getattr(func, "called_directly", None), given):
        raise refuse(
            f"`{func.__name__}` has several signatures that fit ({', '.join(map(str, given))}) equally well",
            loc,
            "convert the arguments to the types of one of them",
            "def",
        )
    return _with_noted(session.typed(func, given), session)


def typed_derivative(form: Form, primal: Any, argument_types: Sequence[Type], options: Options) -> st.TypedFunction:
    """Return the transformed function for the types of its arguments."""
    session = TypingContext(_typed, options=options)
    given = tuple(as_callees(type_, session) for type_ in argument_types)
    derived = type_of_form(form, primal, session, None)
    return _with_noted(derived.typed((*given, derived)), session)


def _with_noted(typed: st.TypedFunction, session: TypingContext) -> st.TypedFunction:
    """A function with all that has to be as it was when it was typed, along with those that it calls."""
    return dataclasses.replace(typed, frozen=(*typed.frozen, *session.noted.values()))


def _typed(
    session: TypingContext, func: Any, argument_types: tuple[Type, ...], how: Decoration | None
) -> st.TypedFunction:
    """A function for the types of all its arguments."""
    options = session.options if how is None else options_within(session.options, how)
    code = func.__code__
    loc = definition_of(code)
    check_parameters(code)
    if is_observed(func) and MADE not in vars(func):
        session.note(parts_of_function(func))
    closure = closure_of(func, argument_types)
    given = _with_defaults(func, argument_types if closure is None else argument_types[:-1], loc)
    if code.co_flags & inspect.CO_GENERATOR:
        raise refuse("a generator cannot be differentiated", loc, "use a loop that computes the result itself", "def")
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise refuse("`async` is not supported", loc, "write an ordinary function", "async")
    if is_rule(func):
        session.choosing[func] = choice
    flags: Any = compiler.Flags()
    chosen = {name: options[name] for name in SEMANTIC_OPTIONS if name in options}
    cpu_target.options.parse_as_flags(flags, {"nopython": True, **chosen})
    flags.nrt = True
    unrolled: set[int] = set()
    state = None
    while state is None:
        # While a function is being typed, Numba is not disabled: it types those of its own that it writes in Python.
        with global_compiler_lock, jit_enabled(), at_work(session):
            run: Any = _TypeInference(  # type: ignore[no-untyped-call]
                cpu_target.typing_context,
                cpu_target.target_context,
                None,
                given,
                None if how is None else how.result,
                flags,
                {} if how is None else dict(how.locals),
            )
            run.state.session = session
            run.state.decoration = None if how is None else how.inherited
            run.state.closure = closure
            run.state.unrolled = unrolled
            try:
                run.compile_extra(func)
                state = run.state
            except DifferentiationError:
                raise
            except RecursionError:
                raise refuse("this function is nested too deeply", loc, "split it into several functions") from None
            except Exception as error:
                if is_ours(error):
                    raise
                if (of_callee := session.failure(error)) is not None:
                    raise of_callee from None
                line = line_to_unroll(error, code)
                if line is None or line in unrolled:
                    known = isinstance(error, errors.NumbaError | errors.UnsupportedBytecodeError)
                    raise translate_error(error, func, loc) from (None if known else error)
                unrolled.add(line)
    check_captured(state.func_ir, state.typemap)
    check_modules(state.func_ir, state.typemap, session)
    translation = Translation(state.func_ir, state.typemap, state.calltypes, code)
    return translation.function(
        func, tuple(state.args), len(given) + (closure is not None), state.return_type, state.captures, options, session
    )


_library: dict[object, st.TypedFunction] = {}


def typed_implementation(implementation: Callable[..., object], argument_types: Sequence[Type]) -> st.TypedFunction:
    """Return a typed function of the package's library. Captured values are constant: equal ones are typed once."""
    key = constant_key(implementation), tuple(argument_types)
    if key not in _library:
        given = _with_defaults(implementation, tuple(argument_types), definition_of(implementation.__code__))
        typed = TypingContext(_typed, frozen=True).typed(implementation, given)
        _library[key] = dataclasses.replace(typed, frozen=())
    return _library[key]


def _with_defaults(func: Any, argument_types: tuple[Type, ...], loc: Loc) -> tuple[Type, ...]:
    """The types of all parameters, those of the missing arguments from their defaults."""
    parameters = list(inspect.signature(func).parameters.values())
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            raise refuse("`**kwargs` is not supported", loc, "give every parameter a name", "**")
    missing = parameters[len(argument_types) :]
    if len(argument_types) > len(parameters) or any(each.default is each.empty for each in missing):
        raise refuse(
            f"`{func.__name__}` does not take {len(argument_types)} arguments",
            loc,
            f"call it with ({', '.join(each.name for each in parameters)})",
        )
    return (*argument_types, *(types.Omitted(each.default) for each in missing))


# The passes of this package, by those of Numba's before or after which they stand.
_BEFORE: dict[type, list[tuple[type, str]]] = {
    LiteralUnroll: [(UnrollTuples, "loops over tuples of several types")],
    InlineClosureLikes: [(ReduceToLoop, "reduce to a loop"), (ClosuresToObjects, "inner functions to closures")],
}
_AFTER: dict[type, list[tuple[type, str]]] = {
    IRProcessing: [(CapturesToArguments, "captured values to arguments")],
    InlineClosureLikes: [
        (CapturesToArguments, "captured values to arguments"),
        (IteratorsToLoops, "map and filter to loops"),
    ],
    NopythonTypeInference: [(ItemsToArguments, "items of displays to arguments")],
}


class _TypeInference(compiler.CompilerBase):
    """The pipeline, with captured values made into arguments on the way."""

    def define_pipelines(self) -> list[PassManager]:
        """Return Numba's passes with those of this package."""
        pipeline = PassManager("zygote_py")
        ours: dict[type, type] = {TranslateByteCode: TranslateInOrder, InlineClosureLikes: _InlineClosures}
        for step, description in compiler.DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            for added in _BEFORE.get(step, ()):
                pipeline.add_pass(*added)
            pipeline.add_pass(ours.get(step, step), description)
            for added in _AFTER.get(step, ()):
                pipeline.add_pass(*added)
            if step is ReconstructSSA:
                ours[DeadBranchPrune] = _PruneTestsOfNone
            if step is NopythonTypeInference:
                break
        pipeline.finalize()
        return [pipeline]

    def _compile_core(self) -> None:
        (pipeline,) = self.define_pipelines()
        self.state.captures = Captures()
        keep_writes()
        with typed_only(self.state.flags), propagating_changes(), quick_liveness():
            pipeline.run(self.state)


class _InlineClosures(InlineClosureLikes):
    """Numba's pass, which then looks for each variable in the scope of each block, where it is mostly the same one."""

    _name = "zygote_py_InlineClosuresRead"

    def run_pass(self, state: Any) -> bool:
        """Inline the closures of `state`."""
        func_ir = state.func_ir
        replaced = state.parfor_diagnostics.replaced_fns
        internals.InlineClosureCallPass(func_ir, state.flags.auto_parallel, replaced, True).run()
        postproc.PostProcessor(func_ir).run()
        variables = {var.name: var for _, each in statements(func_ir) for var in each.list_vars()}
        for scope in {id(block.scope): block.scope for block in func_ir.blocks.values()}.values():
            for name, var in variables.items():
                if name not in scope.localvars:
                    scope.localvars.define(name, var)
        return True


register_pass(mutates_CFG=True, analysis_only=False)(_InlineClosures)


class _PruneTestsOfNone(IRPass):
    """Numba's pruning of branches once variables are in SSA form, but of tests for None only.

    Numba would also see that `r > tol` holds when `r = 1.0` stands before `while r > tol`, and drop the first test, so
    that the loop could not be told from one that tests only at its end.
    """

    def run_pass(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        func_ir = state.func_ir
        self._write_nones(func_ir, state.args)
        branches = [each for _, each in statements(func_ir) if isinstance(each, ir.Branch)]
        tests = [definition(func_ir, each.cond) for each in branches]
        calls = [each for each in tests if isinstance(each, ir.Expr) and each.op == "call" and each.args]
        callees = [definition(func_ir, each.func) for each in calls if not self._is_of_none(func_ir, each)]
        hidden = [each for each in callees if isinstance(each, ir.Global) and each.value is bool]
        for callee in hidden:
            callee.value = None
        try:
            dead_branch_prune(func_ir, state.args)
        finally:
            for callee in hidden:
                callee.value = bool
        return True

    def _write_nones(self, func_ir: Any, args: Sequence[Type]) -> None:
        """Put None in the place of what reads a component that can be nothing else."""
        for _, statement in statements(func_ir):
            match statement:
                case ir.Assign(value=ir.Expr() as value) if self._type_of(func_ir, args, value) == types.none:
                    func_ir._definitions[statement.target.name].remove(value)
                    statement.value = ir.Const(None, value.loc)
                    func_ir._definitions[statement.target.name].append(statement.value)

    def _type_of(self, func_ir: Any, args: Sequence[Type], made: Any) -> Type | None:
        """The type of an argument, or of a component of one; None for anything else."""
        match made:
            case ir.Arg():
                return args[made.index]
            case ir.Expr(op="getattr" | "static_getitem"):
                whole = self._type_of(func_ir, args, definition(func_ir, made.value))
                if not isinstance(whole, types.BaseTuple):
                    return None
                parts = components_of(whole)
                if made.op == "getattr":
                    return dict(zip(names_of(whole), parts, strict=True)).get(made.attr)
                is_place = isinstance(made.index, int) and -len(parts) <= made.index < len(parts)
                return parts[made.index] if is_place else None
            case _:
                return None

    @staticmethod
    def _is_of_none(func_ir: Any, test: Any) -> bool:
        tested = definition(func_ir, test.args[0])
        sides = [tested.lhs, tested.rhs] if isinstance(tested, ir.Expr) and tested.op == "binop" else [test.args[0]]
        made = [definition(func_ir, side) for side in sides]
        return any(is_constant(each) and each.value is None for each in made)
