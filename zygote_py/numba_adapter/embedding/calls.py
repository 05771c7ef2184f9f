"""Calls of functions that take functions and give functions, in what Numba compiles for itself.

    @njit
    def step(x, w):
        dx = gradient(loss, wrt="x")(x, w)          # $1 = global(gradient of loss); $1(x, w)
        value, back = pullback(loss, x, w)          # $2 = global(pullback of loss); $2(x, w)
        d = gradient(lambda v: v * w)(x)            # $3 = global(Partial); $4 = $3(w); $4(x)

`embed(gradient, make)` says what to make of such a call: `make(f, options)` gives what Numba is to call. Before Numba
infers types, that is put into the place of the calls in which it is known which function `f` is; an inner function that
captures variables becomes one of these and of its parameters (see `lifting`). Where `f` is an argument, its type says
which function it is. Functions that this package types keep their calls as they are.
"""

from __future__ import annotations

import operator
import types as python_types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numba import types

from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.ir import Loc, Type
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import definition, fresh, held_by, is_constant, loc_of, originals
from zygote_py.numba_adapter.base.internals import (
    Rewrite,
    ir,
    lower_builtin,
    numba_typeof,
    register_rewrite,
    signature,
)
from zygote_py.numba_adapter.embedding import lambda_lifting as lifting
from zygote_py.numba_adapter.target.dispatch import is_dispatcher, is_made, made_for
from zygote_py.numba_adapter.types import CompiledCallableType, StandIn

Make = Callable[[Any, Mapping[str, Any]], Any]


@dataclass(frozen=True, eq=False)
class Embedded:
    """The meaning of calls of a function.

    name      what it is called in messages.
    make      gives what is to be called, for the function that it is given and the options.
    options   the names of its keyword arguments, which have to be constants. Besides, `make` may be given `held`: how
              many of the first parameters are variables that an inner function captures.
    applied   whether it takes the arguments too and calls what is made with them.
    form      gives what is to be made of the function, for the options, in a session (see `derived`); None if calls
              cannot stand there.
    """

    name: str
    make: Make
    options: tuple[str, ...]
    applied: bool
    form: Callable[[Mapping[str, Any]], Any] | None = None


_embedded: dict[int, tuple[Any, Embedded]] = {}  # by the identity of the function


def embed(
    function: Any,
    make: Make,
    options: tuple[str, ...] = (),
    *,
    applied: bool = False,
    form: Callable[[Mapping[str, Any]], Any] | None = None,
) -> None:
    """Say what calls of a function mean in compiled code."""
    _embedded[id(function)] = function, Embedded(function.__name__, make, options, applied, form)


def embedded(value: object) -> Embedded | None:
    """Return the meaning of calls of a function; None if it has none of its own."""
    return _embedded.get(id(value), (None, None))[1]


def embedded_call(func_ir: Any, value: object) -> Embedded | None:
    """Return the meaning of a call in the IR; None if it has none of its own."""
    called = held_by(func_ir, value.func) if isinstance(value, ir.Expr) and value.op == "call" else ()
    return next(filter(None, map(embedded, called)), None)


@register_rewrite("before-inference")
class _Calls(Rewrite):
    """Puts what is made into the place of the calls, in one block after the other."""

    def __init__(self, state: Any = None) -> None:
        self.state = state
        self.block: Any = None
        self.func_ir: Any = None

    def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
        """Whether there is such a call in a block."""
        # Numba also rewrites the inside of comprehensions before it puts them into the function: that comes again.
        if not _embedded or hasattr(self.state, "session") or not hasattr(self.state, "func_id"):
            return False
        self.func_ir, self.block = func_ir, block
        return any(
            isinstance(each, ir.Assign) and (embedded_call(func_ir, each.value) or self._takes_functions(each.value))
            for each in block.body
        )

    def apply(self) -> Any:
        """Change the block in place."""
        func_ir = self.func_ir
        body: list[Any] = []
        replaced: set[str] = set()
        held: list[tuple[str, Any, tuple[Any, ...]]] = []
        for statement in self.block.body:
            value = getattr(statement, "value", None)
            found = embedded_call(func_ir, value)
            if isinstance(statement, ir.Assign) and (found or self._takes_functions(value)):
                made = Call(func_ir, self.state, self.block.scope, statement)
                if found:
                    made.replace(found, partial(made.made, found))
                if not found or found.applied:
                    made.wrap()
                body += made.body
                replaced |= made.replaced
                if made.held:
                    held.append((statement.target.name, *made.held))
            body.append(statement)
        self.block.body = body
        for each in held:
            lifting.read_again(func_ir, *each)
        lifting.drop_unused(func_ir, replaced)
        return self.block

    def _takes_functions(self, value: Any) -> bool:
        """Whether there are Python functions among the arguments in the call of something that was made of one."""
        if not isinstance(value, ir.Expr) or value.op != "call":
            return False
        func_ir = self.func_ir
        made = definition(func_ir, value.func)
        is_known = any(map(is_made, held_by(func_ir, value.func)))
        is_known = is_known or bool(embedded_call(func_ir, made)) or _is_made(func_ir, made)
        return is_known and bool(_functions_among(func_ir, value.args or _leading(func_ir, value.vararg)))


def _is_made(func_ir: Any, value: Any) -> bool:
    """Whether an expression calls what stands in the place of a call already."""
    from zygote_py.numba_adapter.target.partials import Partial

    called = held_by(func_ir, value.func) if isinstance(value, ir.Expr) and value.op == "call" else ()
    return any(isinstance(getattr(each, "type", each), ChosenType | Partial) for each in called)


def _leading(func_ir: Any, vararg: Any) -> list[Any]:
    """The arguments that are written one by one before the first star, as Numba has them: in a tuple, others added."""
    made = None if vararg is None else definition(func_ir, vararg)
    match made:
        case ir.Expr(op="build_tuple"):
            return list(made.items)
        case ir.Expr(op="binop") if made.fn is operator.add:
            return _leading(func_ir, made.lhs)
        case _:
            return []


def _functions_among(func_ir: Any, args: Any) -> list[int]:
    """The numbers of the arguments that are Python functions, or inner functions that capture variables."""
    return [
        number
        for number, arg in enumerate(args)
        if any(isinstance(held, python_types.FunctionType) for held in held_by(func_ir, arg))
        or lifting.captures(func_ir, definition(func_ir, arg))
    ]


class Call:
    """One call, and the statements that are to stand before it."""

    def __init__(self, func_ir: Any, state: Any, scope: Any, statement: Any) -> None:
        self.func_ir = func_ir
        self.func = state.func_id.func
        self.scope = scope
        self.statement = statement
        self.loc = loc_of(statement.loc)
        self.body: list[Any] = []
        self.replaced: set[str] = set()  # variables that the call needed, and need not be any more
        self.held: tuple[Any, tuple[Any, ...]] | None = None  # what makes a derivative, and of which variables

    def replace(self, found: Embedded, make: Callable[[Any, dict[str, Any]], Any]) -> None:
        """Put what `make` makes of the function, for the options, into the place of the call."""
        statement, definitions = self.statement, self.func_ir._definitions
        args, vararg, words, options = self._taken(found)
        value = make(args[0], options)
        if found.applied:
            value = ir.Expr.call(self.new(value), args[1:], tuple(words.items()), statement.loc, vararg)
        known = definitions[statement.target.name]
        definitions[statement.target.name] = [value if each is statement.value else each for each in known]
        statement.value = value

    def _taken(self, found: Embedded) -> tuple[list[Any], Any, dict[str, Any], dict[str, Any]]:
        """Return the arguments, the function first, the starred ones, those by keyword, and the options."""
        call = self.statement.value
        words, args, vararg = dict(call.kws), list(call.args), call.vararg
        if "f" in words and not args:
            args = [words.pop("f")]
        elif not args and found.applied and vararg is not None:
            args, vararg = self._spread(vararg)
        if not args or (len(args) > 1 and not found.applied):
            raise refuse(
                f"`{found.name}` takes one function"
                if args
                else f"`{found.name}` without the function in compiled code",
                self.loc,
                f"write `{found.name}(f{', x' if found.applied else ', wrt=...'})`",
                found.name,
            )
        return args, vararg, words, {} if found.applied else self._options(found, words)

    def _spread(self, vararg: Any) -> tuple[list[Any], Any]:
        """The arguments that are written one by one before the first star, and a tuple of the others."""
        made = definition(self.func_ir, vararg)
        self.replaced |= {vararg.name, *originals(self.func_ir, vararg.name)}
        match made:
            case ir.Expr(op="build_tuple"):
                return _leading(self.func_ir, vararg), None
            case ir.Expr(op="binop") if made.fn is operator.add:
                args, rest = self._spread(made.lhs)
                if rest is not None:
                    return args, self.new(ir.Expr.binop(operator.add, rest, made.rhs, self.statement.loc))
                return args, made.rhs
            case _:
                return [], vararg

    def wrap(self) -> None:
        """Pass Python functions as Numba takes them."""
        from zygote_py.numba_adapter.types import with_functions

        call = self.statement.value
        args = list(call.args)
        if not args and call.vararg is not None:
            args, call.vararg = self._spread(call.vararg)
        for number in _functions_among(self.func_ir, args):
            held = next(iter(held_by(self.func_ir, args[number])), None)
            if held is None:
                raise refuse(
                    "an inner function that captures variables and is an argument of what is differentiated",
                    self.loc,
                    "let an inner function make the call, and differentiate that: `gradient(lambda v: f(g, v))(x)`",
                )
            (wrapped,) = with_functions((held,))
            args[number] = self.new(ir.Global("function", wrapped, self.statement.loc))
        call.args = args

    def _options(self, found: Embedded, words: dict[str, Any]) -> dict[str, Any]:
        """The options, which are constants."""
        options = {}
        for name, var in words.items():
            if name not in found.options:
                known = ", ".join(f"`{each}`" for each in found.options)
                raise refuse(f"`{found.name}` has no option `{name}`", self.loc, f"it has {known}", name)
            value = self._constant(var)
            if value is None:
                raise refuse(
                    f"`{name}` of `{found.name}` is not known while compiling",
                    self.loc,
                    f"write names or numbers: `{name}=(...)`",
                    name,
                )
            (options[name],) = value
        return options

    def _constant(self, var: Any) -> tuple[Any] | None:
        made = definition(self.func_ir, var)
        if is_constant(made):
            return (made.value,)
        if not isinstance(made, ir.Expr) or made.op not in ("build_tuple", "build_list"):
            return None
        items = [self._constant(item) for item in made.items]
        return None if None in items else (tuple(item[0] for item in items if item),)

    def made(self, found: Embedded, function: Any, options: dict[str, Any]) -> Any:
        """Return the expression of the function that is to be called."""
        from zygote_py.numba_adapter.target.partials import Partial

        loc = self.statement.loc
        for held in held_by(self.func_ir, function):
            return ir.Global(found.name, _made_of(found, held, options, self.loc), loc)
        made = definition(self.func_ir, function)
        if not isinstance(made, ir.Expr) or made.op != "make_function":
            names = (function.name, *originals(self.func_ir, function.name))
            if any(len(self.func_ir._definitions.get(name, ())) > 1 for name in names):
                raise refuse(
                    f"which function this is the `{found.name}` of is not known while compiling",
                    self.loc,
                    f"call `{found.name}` in each branch",
                    found.name,
                )
            return self.call(found.name, StandIn(ChosenType(found, options, self.loc)), (function,))
        lifted = lifting.lift(self.func_ir, made, self.func.__globals__, self.loc)
        lifting.check_dropped(self.func_ir, self.func.__code__, lifted)
        if not lifted.variables:
            return ir.Global(found.name, _made_of(found, lifted.function, options, self.loc), loc)
        options = options | {"captured_count": len(lifted.variables)}
        value = _made_of(found, lifted.function, options, self.loc)
        made = Partial(numba_typeof(value).dispatcher, f"{found.name} of {lifted.function.__name__}")
        _kept.append((value, made))
        if not found.applied:
            lifting.check_assignments(self.func_ir, self.statement, lifted.variables, lifted.loc)
            self.held = made, lifted.variables
        return self.call(found.name, made, lifted.variables)

    def call(self, name: str, function: Any, args: tuple[Any, ...]) -> Any:
        """An expression that calls an object of Python."""
        loc = self.statement.loc
        return ir.Expr.call(self.new(ir.Global(name, function, loc)), args, (), loc)

    def new(self, value: Any) -> Any:
        """A variable for a value, assigned before the call."""
        made = fresh(self.func_ir, self.scope, value, self.statement.loc)
        self.body.append(made)
        return made.target


_kept: list[Any] = []  # Numba refers to dispatchers weakly


def _made_of(found: Embedded, held: Any, options: Mapping[str, Any], loc: Loc) -> Any:
    """Return the transformed function. An error that names no place gets the place of the call."""
    owner = made_for(held)
    try:
        return found.make(held if owner is None else owner, options)
    except DifferentiationError as error:
        if error.file is not None:
            raise
        raise refuse(error.message, loc, error.hint, found.name) from None


# ------------------------------------------------------------------------------------- functions that are arguments


class ChosenType(CompiledCallableType, types.Opaque):
    """The type of a function of a function, which is known when types are."""

    def __init__(self, found: Embedded, options: Mapping[str, Any], loc: Loc) -> None:
        self.found = found
        self.options = options
        self.loc = loc
        super().__init__(f"{found.name} with {dict(options)} at {id(found)} in {loc}")

    def get_call_type(self, context: object, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Any:
        """Return the signature of a call."""
        function = _function_of(args[0], self.found, self.loc)
        return signature(numba_typeof(_made_of(self.found, function, self.options, self.loc)), *args)


def _function_of(type_: Type, found: Embedded, loc: Loc) -> Any:
    """The function whose type this is."""
    from zygote_py.numba_adapter.types import FunctionValueType

    if isinstance(type_, types.Dispatcher) and is_dispatcher(type_.dispatcher):
        return type_.dispatcher
    if isinstance(type_, FunctionValueType):
        return type_.typing_key
    what = "a function that is chosen while the program runs" if isinstance(type_, types.FunctionType) else str(type_)
    raise refuse(
        f"`{found.name}` of {what} in compiled code",
        loc,
        "pass a function decorated with `numba.njit`, which is the same at each call",
        found.name,
    )


@lower_builtin(ChosenType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_choice(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.get_dummy_value()
