"""The one module that touches Numba's internals.

    typed = typed_function(f, (types.float64, types.int64), {})   # typed statements, see zygote_py.statements
    dispatcher = make_dispatcher(stub, implement, {"fastmath": True})

`typed_function` runs Numba's own pipeline up to and including its type inference, so that what we see is what Numba will
compile. `make_dispatcher` makes a Numba dispatcher that compiles, for each signature, the function that `implement`
gives for it. Errors of Numba become `DifferentiationError`s. It decides nothing about differentiation, and what cannot
be represented it hands on as `Unknown` for the front end to refuse.
"""

from __future__ import annotations

import re
import types as python_types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import compiler, errors, ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.ir_utils import build_definitions
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference
from numba.core.typing.typeof import typeof as numba_typeof
from numba.core.untyped_passes import InlineClosureLikes, IRProcessing
from numba.extending import typeof_impl

from zygote_py import statements as st
from zygote_py.adjoints.errors import DifferentiationError, refuse
from zygote_py.ir.core import Loc, Type

Options = Mapping[str, object]

# The options that steer what the code computes; the others are about how it is compiled.
_SEMANTIC_OPTIONS = ("fastmath", "error_model", "boundscheck")
# Modules whose floats are constants of nature, not variables.
_CONSTANT_MODULES = frozenset({"math", "cmath", "numpy", "scipy"})


# ----------------------------------------------------------------------------------------------- typing a function


def typed_function(func: Callable[..., object], argument_types: Sequence[Type], options: Options) -> st.TypedFunction:
    """What Numba makes of a Python function for these argument types, before it lowers it.

    Captured floats and arrays become parameters after the function's own. Raises DifferentiationError if Numba cannot
    read or type the function.
    """
    code = func.__code__
    loc = Loc(code.co_filename, code.co_firstlineno)
    if code.co_flags & (0x04 | 0x08):  # inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
        raise refuse(
            "`*args` and `**kwargs` are not supported", loc, "give every parameter a name, or take a tuple", "*"
        )
    if code.co_flags & 0x20:  # inspect.CO_GENERATOR
        raise refuse("a generator cannot be differentiated", loc, "use a loop that computes the result itself", "def")
    flags = compiler.Flags()
    chosen = {name: options[name] for name in _SEMANTIC_OPTIONS if name in options}
    cpu_target.options.parse_as_flags(flags, {"nopython": True, **chosen})
    flags.nrt = True
    with global_compiler_lock:
        run = _TypeInference(
            cpu_target.typing_context, cpu_target.target_context, None, tuple(argument_types), None, flags, {}
        )
        try:
            run.compile_extra(func)
        except DifferentiationError:
            raise
        except (errors.NumbaError, errors.UnsupportedBytecodeError) as error:
            raise _translate_error(error, func, loc) from None
        except RecursionError:
            raise
        except Exception as error:
            raise _translate_error(error, func, loc) from error
    state = run.state
    captures: _Captures = state.captures
    return _Translation(state.func_ir, state.typemap, state.calltypes).function(
        func, tuple(state.args), len(argument_types), state.return_type, captures, options
    )


class _TypeInference(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's pipeline, cut off after type inference, with captured values made into arguments on the way."""

    def define_pipelines(self) -> list[PassManager]:
        pipeline = PassManager("zygote_py")
        for step, description in compiler.DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            pipeline.add_pass(step, description)
            if step is IRProcessing or step is InlineClosureLikes:
                pipeline.add_pass(_CapturesToArguments, "captured values to arguments")
            if step is NopythonTypeInference:
                break
        pipeline.finalize()
        return [pipeline]

    def _compile_core(self) -> None:
        (pipeline,) = self.define_pipelines()
        self.state.captures = _Captures()
        pipeline.run(self.state)


class _Captures:
    """What a function captures, in the order it was met."""

    def __init__(self) -> None:
        self.hidden: dict[tuple[str, str], tuple[int, st.Capture]] = {}
        self.frozen: dict[tuple[str, str], st.Capture] = {}


@register_pass(mutates_CFG=False, analysis_only=False)
class _CapturesToArguments(FunctionPass):  # type: ignore[misc]
    """Makes captured floats and arrays into arguments, so that Numba does not freeze them; refuses `try` and `with`."""

    _name = "zygote_py_captures_to_arguments"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        modules: dict[str, tuple[python_types.ModuleType, str]] = {}
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                _refuse_statement(statement)
                if isinstance(statement, ir.Assign):
                    self._visit(state, statement, modules)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True

    def _visit(self, state: Any, assign: Any, modules: dict[str, tuple[python_types.ModuleType, str]]) -> None:
        value = assign.value
        func = state.func_id.func
        match value:
            case ir.Global():
                capture = st.Capture(value.name, "global", _reader_of_global(func, value), None, value.value)
                if value.name not in func.__globals__:
                    return
            case ir.FreeVar():
                capture = st.Capture(value.name, "freevar", _reader_of_freevar(func, value), None, value.value)
            case ir.Expr(op="getattr") if value.value.name in modules:
                module, path = modules[value.value.name]
                name = value.attr
                if not hasattr(module, name):
                    return
                capture = st.Capture(
                    f"{path}.{name}", "global", lambda: getattr(module, name), None, getattr(module, name)
                )
            case _:
                return
        if isinstance(capture.value, python_types.ModuleType):
            if capture.value.__name__.partition(".")[0] not in _CONSTANT_MODULES:
                modules[assign.target.name] = (capture.value, capture.name)
            return
        captures: _Captures = state.captures
        key = (capture.kind, capture.name)
        if not _varies(capture.value):
            captures.frozen.setdefault(key, capture)
            return
        if key not in captures.hidden:
            index = state.func_ir.arg_count
            type_ = typeof(capture.value)
            captures.hidden[key] = index, st.Capture(capture.name, capture.kind, capture.read, type_, capture.value)
            name = capture.name.replace(".", "_")
            while name in state.func_ir.arg_names:
                name += "_"
            state.func_ir.arg_names = (*state.func_ir.arg_names, name)
            state.func_ir.arg_count = state.nargs = index + 1
            state.args = (*state.args, type_)
        index, _ = captures.hidden[key]
        assign.value = ir.Arg(state.func_ir.arg_names[index], index, value.loc)


def _varies(value: object) -> bool:
    """Whether a captured value is read at each call."""
    if isinstance(value, tuple):
        return any(isinstance(item, np.ndarray) or (isinstance(item, tuple) and _varies(item)) for item in value)
    return isinstance(value, float | np.floating | np.ndarray)


def _reader_of_global(func: Any, value: Any) -> Callable[[], object]:
    name, namespace = value.name, func.__globals__
    return lambda: namespace[name]


def _reader_of_freevar(func: Any, value: Any) -> Callable[[], object]:
    cells = dict(zip(func.__code__.co_freevars, func.__closure__ or (), strict=True))
    cell = cells.get(value.name)
    if cell is None:
        frozen = value.value
        return lambda: frozen
    return lambda: cell.cell_contents


def _refuse_statement(statement: Any) -> None:
    """Refuse what type inference would either reject with a worse message or accept without us knowing a meaning."""
    loc = _loc(statement.loc)
    match statement:
        case ir.EnterWith():
            raise refuse("`with` is not supported", loc, "call the function outside of `with`", "with")
        case ir.Assign(value=ir.Global(value=value)) if getattr(value, "__module__", None) == "numba.core.unsafe.eh":
            raise refuse("`try` is not supported", loc, "test for the error before it happens, with `if`", "try")
        case ir.Assign(value=ir.Yield()):
            raise refuse("a generator cannot be differentiated", loc, "use a loop that computes the result", "yield")


def _loc(loc: Any) -> Loc:
    return Loc(loc.filename, loc.line)


# ------------------------------------------------------------------------------------- Numba's IR to typed statements


class _Translation:
    """Numba's IR and what its type inference found, as typed statements."""

    def __init__(self, func_ir: Any, typemap: Mapping[str, Type], calltypes: Mapping[Any, Any]) -> None:
        self._ir = func_ir
        self._types = typemap
        self._calls = calltypes

    def function(
        self,
        func: Callable[..., object],
        parameter_types: tuple[Type, ...],
        argument_count: int,
        return_type: Type,
        captures: _Captures,
        options: Options,
    ) -> st.TypedFunction:
        labels = sorted(self._ir.blocks)
        return st.TypedFunction(
            name=func.__name__,
            loc=Loc(func.__code__.co_filename, func.__code__.co_firstlineno),
            parameters=tuple(self._ir.arg_names),
            argument_count=argument_count,
            parameter_types=tuple(typeof(t.value) if isinstance(t, types.Omitted) else t for t in parameter_types),
            blocks={label: self._block(self._ir.blocks[label]) for label in labels},
            types=dict(self._types),
            return_type=return_type,
            hidden=tuple(capture for _, capture in captures.hidden.values()),
            frozen=tuple(captures.frozen.values()),
            options=dict(options),
        )

    def _block(self, block: Any) -> st.TypedBlock:
        made = [self._statement(statement) for statement in block.body[:-1] if not isinstance(statement, ir.Del)]
        return st.TypedBlock(tuple(made), self._ending(block.terminator), _loc(block.body[0].loc))

    def _statement(self, statement: Any) -> st.Statement:
        loc = _loc(statement.loc)
        match statement:
            case ir.Assign():
                return st.Assign(statement.target.name, self._expression(statement.value), loc)
            case ir.Print():
                star = () if statement.vararg is None else (statement.vararg.name,)
                return st.Act("print *" if star else "print", tuple(arg.name for arg in statement.args) + star, loc)
            case ir.SetItem() | ir.StaticSetItem():
                return st.Act("setitem", (statement.target.name,), loc)
            case ir.DelItem():
                return st.Act("delitem", (statement.target.name,), loc)
            case ir.SetAttr():
                return st.Act("setattr", (statement.target.name,), loc)
            case _:
                return st.Act(type(statement).__name__, (), loc)

    def _expression(self, value: Any) -> st.Expression:
        match value:
            case ir.Arg():
                return st.Parameter(value.index)
            case ir.Const():
                return st.Constant(value.value)
            case ir.Global() | ir.FreeVar():
                return st.Constant(value.value, value.name)
            case ir.Var():
                return st.Copy(value.name)
            case ir.Expr():
                return self._compound(value)
            case _:
                return st.Unknown(type(value).__name__.lower())

    def _compound(self, expr: Any) -> st.Expression:
        match expr.op:
            case "binop":
                return st.Operate(expr.fn, (expr.lhs.name, expr.rhs.name), self._calls[expr].args)
            case "inplace_binop":
                args = (expr.lhs.name, expr.rhs.name)
                return st.Operate(expr.immutable_fn, args, self._calls[expr].args, inplace=True)
            case "unary":
                return st.Operate(expr.fn, (expr.value.name,), self._calls[expr].args)
            case "call":
                args = tuple(arg.name for arg in expr.args)
                keywords = tuple((name, arg.name) for name, arg in expr.kws)
                star = None if expr.vararg is None else expr.vararg.name
                return st.Call(expr.func.name, args, keywords, tuple(self._calls[expr].args), star)
            case "getattr":
                return st.Attribute(expr.value.name, expr.attr)
            case "getitem":
                return st.Item(expr.value.name, expr.index.name, None, self._calls[expr].args[1])
            case "static_getitem" | "typed_getitem":
                signature = self._calls.get(expr)
                index = None if expr.op == "static_getitem" else expr.index.name
                static = expr.index if index is None else None
                return st.Item(expr.value.name, index, static, None if signature is None else signature.args[1])
            case "build_tuple" | "build_list" | "build_set":
                return st.Build(expr.op.removeprefix("build_"), tuple(item.name for item in expr.items))
            case "build_map":
                return st.Build("dict", ())
            case "getiter":
                return st.Iterate(expr.value.name)
            case "iternext":
                return st.Advance(expr.value.name)
            case "pair_first":
                return st.Element(expr.value.name)
            case "pair_second":
                return st.Present(expr.value.name)
            case "exhaust_iter":
                return st.Unpack(expr.value.name, expr.count)
            case "cast":
                return st.Copy(expr.value.name)
            case "phi":
                return st.Merge(
                    tuple(
                        (label, None if var is ir.UNDEFINED else var.name)
                        for label, var in zip(expr.incoming_blocks, expr.incoming_values, strict=True)
                    )
                )
            case "undef" | "null":
                return st.Merge(())
            case kind:
                return st.Unknown(kind)

    def _ending(self, end: Any) -> st.Ending:
        loc = _loc(end.loc)
        match end:
            case ir.Jump():
                return st.GoTo(end.target, loc)
            case ir.Branch():
                return st.Choose(end.cond.name, end.truebr, end.falsebr, loc)
            case ir.Return():
                return st.Leave(end.value.name, loc)
            case ir.StaticRaise() | ir.DynamicRaise():
                args = tuple(st.Name(arg.name) if isinstance(arg, ir.Var) else arg for arg in end.exc_args or ())
                return st.Fail(end.exc_class, args, loc)
            case ir.Raise():
                return st.Fail(None, (), loc)
            case _:
                raise refuse(f"`{type(end).__name__}` is not supported", loc)


# ------------------------------------------------------------------------------------------------ errors of Numba

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = re.compile(
    r"^(During: |File \"|This error may have been caused|There are \d+ candidate|- Of which|Overload of function|"
    r"Overload in function|Match:|\* \(|>>> |- argument|During the|Enable logging|Compilation is falling|With argument|"
    r"raised from|Rejected as|Failed in nopython|Unknown attribute of type|<source|def |For more information|"
    r"https?://|def$|Error occurred at|All available templates)"
)


def _translate_error(error: Exception, func: Any, loc: Loc) -> DifferentiationError:
    """Numba's reason in a line or two, and the line of the user's file that it is about."""
    text = _COLOUR.sub("", str(getattr(error, "msg", None) or error))
    code = func.__code__
    lines = [int(line) for file, line in re.findall(r'File "([^"]+)", line (\d+)', text) if file == code.co_filename]
    numba_loc = getattr(error, "loc", None)
    if numba_loc is not None and numba_loc.filename == code.co_filename:
        lines.append(numba_loc.line)
    kept: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not set(stripped) <= set("^~-=.: ") and not _NOISE.match(stripped) and stripped not in kept:
            kept.append(stripped)
    reason = "; ".join(kept[:3]) or type(error).__name__
    reason = reason if len(reason) <= 300 else reason[:297] + "..."
    place = Loc(code.co_filename, lines[-1]) if lines else loc
    return refuse(f"Numba cannot compile this: {reason}", place, "write it with what Numba supports")


# -------------------------------------------------------------------------------------------- dispatchers and types


def make_dispatcher(
    stub: Callable[..., object], implement: Callable[[tuple[Type, ...]], Callable[..., object]], options: Options
) -> Any:
    """A Numba dispatcher with the signature of `stub` that compiles `implement(argument types)` for each signature.

    Among the argument types may be `types.Omitted` for a default that was not given.
    """
    dispatcher = numba.njit(**options)(stub)

    def implementation(args: tuple[Type, ...], keywords: object) -> Callable[..., object]:
        return implement(tuple(args))

    dispatcher._compiler._get_implementation = implementation
    return dispatcher


def typeof(value: object) -> Type:
    """The Numba type of a value. Raises DifferentiationError if Numba has none for it."""
    try:
        return numba_typeof(value)
    except (ValueError, errors.NumbaError):
        kind = type(value).__name__
        raise refuse(
            f"a value of type `{kind}` is not supported", None, "use a number, an array, a tuple or a NamedTuple"
        ) from None


_COMPILE_TIME = (
    types.Callable,
    types.Module,
    types.DType,
    types.ExceptionInstance,
    types.IteratorType,
    types.Pair,
    types.MakeFunctionLiteral,
)


def is_compile_time(type: Type) -> bool:
    """Whether values of this type are known while compiling, as functions, modules and the state of loops are."""
    return isinstance(type, _COMPILE_TIME) and not isinstance(type, types.FunctionType)


def object_of(type: Type) -> object:
    """The Python object that is the only value of a compile-time type; None if there is no such object."""
    match type:
        case types.Dispatcher():
            return type.dispatcher
        case types.Module():
            return type.pymod
        case types.NumberClass():
            return getattr(np, type.instance_type.name, None) if type.instance_type != types.boolean else bool
        case types.DType():
            return np.dtype(str(type.dtype))
        case types.NamedTupleClass():
            return type.instance_class
        case types.ExceptionClass():
            return type.exc_class
        case types.Function():
            return type.typing_key
        case _:
            return None


def is_dispatcher(value: object) -> bool:
    """Whether `value` is a function that was decorated with `numba.njit`."""
    return isinstance(value, Dispatcher)


def py_func_of(value: Any) -> Callable[..., object]:
    """The Python function behind a dispatcher; a plain function is its own."""
    return value.py_func if isinstance(value, Dispatcher) else value  # type: ignore[no-any-return]


def options_of(value: Any) -> dict[str, object]:
    """The Numba options that a dispatcher was made with, `nopython` apart; none for a plain function."""
    if not isinstance(value, Dispatcher):
        return {}
    return {name: option for name, option in value.targetoptions.items() if name != "nopython"}


def register_as_dispatcher(cls: type, getter: Callable[[Any], Any]) -> None:
    """Make the objects of a Python class callable from compiled code, as the dispatcher that `getter` gives for them."""

    @typeof_impl.register(cls)  # type: ignore[untyped-decorator]
    def type_of_object(value: object, context: object) -> Type:
        return types.Dispatcher(getter(value))


def _function_text(text: str, name: str, start: str, end: str) -> str:
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if line.startswith(start) and name in line:
            last = next(i for i in range(index, len(lines)) if lines[i].startswith(end))
            return "\n".join(lines[index : last + 1])
    raise KeyError(name)


def llvm_text(dispatcher: Any, signature: tuple[Type, ...]) -> str:
    """The optimised LLVM IR of the native function that was compiled for a signature, without its CPython wrappers."""
    compiled = dispatcher.overloads[signature]
    return _function_text(compiled.library.get_llvm_str(), compiled.fndesc.mangled_name, "define ", "}")


def asm_text(dispatcher: Any, signature: tuple[Type, ...]) -> str:
    """The machine code of the native function that was compiled for a signature, without its CPython wrappers."""
    compiled = dispatcher.overloads[signature]
    name = compiled.fndesc.mangled_name
    return _function_text(compiled.library.get_asm_str(), name, name, "\t.size\t" + name)
