"""Numba's IR, with the types that its inference found, as typed statements.

    r.1 = inplace_binop(fn=imul, immutable_fn=mul, lhs=r.2, rhs=x)
    Assign("r.1", Operate(operator.mul, ("r.2", "x"), (float64, float64), inplace=True), loc)

What has no form among the statements becomes an `Unknown` or an `SideEffect`, for the front end to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

from numba import types

from zygote_py.adjoints import refuse
from zygote_py.base import LEFT, leads_out, statements as st, through_trampolines
from zygote_py.ir import Loc, Type
from zygote_py.numba_adapter.base import definition_of, loc_of, statements
from zygote_py.numba_adapter.base.internals import eh, ir
from zygote_py.numba_adapter.reading.captures import Captures
from zygote_py.numba_adapter.reading.custom_rules import function_of_given
from zygote_py.numba_adapter.target.dispatch import typeof
from zygote_py.numba_adapter.types import (
    TypingContext,
    accessor_type,
    called_of,
    function_of,
    object_member,
    overloaded_type,
    signature_of,
    typed_callee,
)


class Translation:
    """Numba's IR and what its type inference found, as typed statements."""

    def __init__(self, func_ir: Any, typemap: Mapping[str, Type], calltypes: Mapping[Any, Any], code: CodeType) -> None:
        self._ir = func_ir
        self._types = dict(typemap)
        self._calls = calltypes
        self._positions = list(code.co_positions())

    def function(
        self,
        func: Callable[..., object],
        parameter_types: tuple[Type, ...],
        argument_count: int,
        return_type: Type,
        captures: Captures,
        options: Mapping[str, object],
        session: TypingContext,
    ) -> st.TypedFunction:
        """Return the whole function; `parameter_types` lists the arguments, then the captured values."""
        labels = sorted(self._ir.blocks)
        self._find_checks()
        return st.TypedFunction(
            name=func.__name__,
            loc=definition_of(func.__code__),
            parameters=tuple(self._ir.arg_names),
            argument_count=argument_count,
            parameter_types=tuple(typeof(t.value) if isinstance(t, types.Omitted) else t for t in parameter_types),
            blocks=self._with_tries({label: self._block(self._ir.blocks[label]) for label in labels}),
            types=dict(self._types),
            names=_source_names(func.__code__, self._types),
            return_type=return_type,
            hidden=tuple(capture for _, capture in captures.hidden.values()),
            frozen=tuple(captures.frozen.values()),
            options=dict(options),
            callee_of=lambda type, arguments: (
                function_of_given(called_of(type, session), arguments, session)
                or typed_callee(called_of(type, session), arguments, session)
            ),
            signature_of=lambda type: signature_of(called_of(type, session)),
            accessor_of=lambda type, name: (
                accessor_type(type, name, session)
                or object_member(type, name, session, accessor=True)
                or overloaded_type(type, name, session, accessor=True)
            ),
            member_of=lambda type, name: object_member(type, name, session) or overloaded_type(type, name, session),
        )

    def _block(self, block: Any) -> st.TypedBlock:
        made = [
            statement
            for each in block.body[:-1]
            if not isinstance(each, _NOTHING)
            for statement in self._converted(each, self._statement(each))
        ]
        return st.TypedBlock(tuple(made), self._ending(block.terminator), loc_of(block.body[0].loc))

    def _converted(self, written: Any, made: st.Statement) -> Iterator[st.Statement]:
        """A statement; before it its value, where a variable was given another type than that (`locals` of `njit`)."""
        is_computed = isinstance(written, ir.Assign) and isinstance(written.value, ir.Expr)
        signature = self._calls.get(written.value) if is_computed else None
        if signature is not None and isinstance(made, st.Assign):
            own, wanted = types.unliteral(signature.return_type), types.unliteral(self._types[made.target])
            if own != wanted and isinstance(own, types.Number) and isinstance(wanted, types.Number):
                value = f"{made.target}:value"
                self._types[value] = own
                yield st.Assign(value, made.value, made.loc)
                made = st.Assign(made.target, st.Copy(value), made.loc)
        yield made

    def _find_checks(self) -> None:
        """Note what Numba inserts for `try`: where it asks for an exception, and whether that is the one to be caught.

        It catches all that are `Exception`s, and has no others.
        """
        self._of_tries: dict[int, object] = {}
        self._checks: set[str] = set()
        self._matches: set[str] = set()
        copies: list[tuple[str, list[str]]] = []
        for _, each in statements(self._ir):
            match each:
                case ir.Assign(value=ir.Expr(op="call") as call):
                    called = getattr(self._types[call.func.name], "typing_key", None)
                    if called in _MARKS:
                        self._of_tries[id(call)] = None
                    elif called is eh.exception_check:
                        self._of_tries[id(call)] = False
                        self._checks.add(each.target.name)
                    elif called is eh.exception_match:
                        self._of_tries[id(call)] = True
                        self._matches.add(each.target.name)
                    elif called is bool:
                        copies.append((each.target.name, [arg.name for arg in call.args]))
                case ir.Assign(value=ir.Var() as source):
                    copies.append((each.target.name, [source.name]))
                case ir.Assign(value=ir.Expr(op="phi") as phi):
                    copies.append((each.target.name, [getattr(var, "name", "") for var in phi.incoming_values]))
        size = -1
        while self._matches and size != len(self._matches):
            size = len(self._matches)
            self._matches |= {name for name, sources in copies if set(sources) <= self._matches}

    def _with_tries(self, blocks: dict[int, st.TypedBlock]) -> dict[int, st.TypedBlock]:
        """An explicit `raise` in a `try` whose exception leaves the function is one like any other."""
        if not self._checks:
            return blocks
        for label, block in self._ir.blocks.items():
            raised = next((each for each in block.body if isinstance(each, _TRY_RAISES)), None)
            exception = getattr(raised, "exc_class", None)
            match blocks[label].ending:
                case st.Jump(target) if exception is not None and leads_out(blocks, target):
                    ending = _failure(raised, loc_of(block.terminator.loc))
                    blocks[label] = st.TypedBlock(blocks[label].statements, ending, blocks[label].loc)
        return through_trampolines(blocks)

    def _statement(self, statement: Any) -> st.Statement:
        loc = loc_of(statement.loc)
        match statement:
            case ir.Assign():
                target = statement.target.name
                return st.Assign(target, self._expression(statement.value), self._with_column(loc, target))
            case ir.Print():
                star = () if statement.vararg is None else (statement.vararg.name,)
                return st.SideEffect(
                    "print *" if star else "print", tuple(arg.name for arg in statement.args) + star, loc
                )
            case ir.SetItem() | ir.StaticSetItem():
                index = statement.index if isinstance(statement, ir.SetItem) else statement.index_var
                taken = self._calls[statement].args[-1]
                return st.Store(statement.target.name, index.name, statement.value.name, taken, loc)
            case ir.DelItem():
                return st.SideEffect("delitem", (statement.target.name, statement.index.name), loc)
            case ir.SetAttr():
                return st.SetAttribute(statement.target.name, statement.attr, statement.value.name, loc)
            case _:
                return st.SideEffect(type(statement).__name__, (), loc)

    def _with_column(self, loc: Loc, target: str) -> Loc:
        """The place of an operation, with its column: Numba names temporaries after where they are in the bytecode."""
        offset = _OFFSET.match(target)
        if offset is None or int(offset[1]) // 2 >= len(self._positions):
            return loc
        line, _, column, _ = self._positions[int(offset[1]) // 2]
        return Loc(loc.file, loc.line, column + 1) if line == loc.line and column is not None else loc

    def _expression(self, value: Any) -> st.Expression:
        match value:
            case ir.Arg():
                return st.Parameter(value.index)
            case ir.Const():
                return st.Constant(value.value)
            case ir.Global() | ir.FreeVar():
                return st.Constant(function_of(value.value), value.name)
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
                if id(expr) in self._of_tries:
                    return st.Constant(self._of_tries[id(expr)])
                args = tuple(arg.name for arg in expr.args)
                keywords = tuple((name, arg.name) for name, arg in expr.kws)
                star = None if expr.vararg is None else expr.vararg.name
                return st.Call(expr.func.name, args, keywords, tuple(self._calls[expr].args), star)
            case "getattr":
                return st.Attribute(expr.value.name, expr.attr)
            case "getitem":
                return st.Item(expr.value.name, expr.index.name)
            case "static_getitem" | "typed_getitem":
                index = expr.index.name if expr.op == "typed_getitem" else self._index_of(expr)
                static = expr.index if index is None else None
                return st.Item(expr.value.name, index, static)
            case "build_tuple" | "build_list" | "build_set":
                return st.Build(expr.op.removeprefix("build_"), tuple(item.name for item in expr.items))
            case "build_map":
                return st.Build("dict", tuple(each.name for item in expr.items for each in item))
            case op if op in _OF_ONE:
                return _OF_ONE[op](expr.value.name)
            case "exhaust_iter":
                return st.Unpack(expr.value.name, expr.count)
            case "phi":
                return st.Phi(
                    tuple(
                        (label, None if var is ir.UNDEFINED else var.name)
                        for label, var in zip(expr.incoming_blocks, expr.incoming_values, strict=True)
                    )
                )
            case "undef" | "null":
                return st.Phi(())
            case kind:
                return st.Unknown(kind)

    def _index_of(self, expr: Any) -> str | None:
        """The variable of an index that Numba takes for the constant None: one that a closure captures may be so."""
        variable = expr.index_var
        known = expr.index is not None or variable is None or isinstance(self._types[variable.name], types.NoneType)
        return None if known else variable.name

    def _ending(self, end: Any) -> st.Ending:
        loc = loc_of(end.loc)
        match end:
            case ir.Jump():
                return st.Jump(end.target, loc)
            case ir.Branch() if end.cond.name in self._checks:
                return st.Try(end.truebr, end.falsebr, loc)
            case ir.Branch() if end.cond.name in self._matches:
                return st.Jump(end.truebr, loc)
            case ir.Branch():
                return st.Branch(end.cond.name, end.truebr, end.falsebr, loc)
            case ir.Return():
                return st.Return(end.value.name, loc)
            case ir.StaticRaise(exc_args=(str(text),)) if text.startswith(_RERAISED):
                return st.Raise(RuntimeError, LEFT, loc)
            case ir.StaticRaise() | ir.DynamicRaise():
                return _failure(end, loc)
            case ir.Raise():
                return st.Raise(None, (), loc)
            case _:
                raise refuse(f"`{type(end).__name__}` is not supported", loc)


_OF_ONE: dict[str, Callable[[str], st.Expression]] = {
    "getiter": st.Iterate,
    "iternext": st.Advance,
    "pair_first": st.Element,
    "pair_second": st.Present,
    "cast": st.Copy,
}
_TRY_RAISES = (ir.TryRaise, ir.StaticTryRaise, ir.DynamicTryRaise)
_NOTHING = (ir.Del, *_TRY_RAISES)
_MARKS = (eh.mark_try_block, eh.end_try_block)
_RERAISED = "Unreachable condition reached (op code RERAISE"  # how Numba's message begins
_OFFSET = re.compile(r"\$(?:[a-z_]*[a-z])?(\d+)")  # $298call.5, $binop_mul34.5, but not $const_1.0
# Numba names the variables of a closure that it inlines after the closure and with a version: `f__locals__g_v3_x`.
_INLINED = re.compile(r".*?_v\d+_(?!.*_v\d+_)(.*)")


def _failure(raised: Any, loc: Loc) -> st.Raise:
    """Return the end of a function with the exception of a `raise`."""
    given = getattr(raised, "exc_args", None) or ()
    return st.Raise(raised.exc_class, tuple(st.Name(a.name) if isinstance(a, ir.Var) else a for a in given), loc)


def _source_names(code: CodeType, variables: Mapping[str, Type]) -> dict[str, str]:
    """Return the names in the source of those variables that are not temporaries."""
    known = _variables_of(code)
    found = {}
    for variable in variables:
        name = variable.partition(".")[0]
        if name not in known and (match := _INLINED.fullmatch(name)):
            name = match[1] if match[1] in known else match[1].rpartition("_")[0]
        if name in known:
            found[variable] = name
    return found


def _variables_of(code: CodeType) -> frozenset[str]:
    """The local variables of a function and of the functions in it."""
    inner = (_variables_of(const) for const in code.co_consts if isinstance(const, CodeType))
    return frozenset(code.co_varnames + code.co_cellvars).union(*inner)
