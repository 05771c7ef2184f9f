"""Passes in Numba's pipeline that change loops.

Loops over tuples whose components have several types become `literal_unroll`:

    for layer in layers: ...        ->        for layer in literal_unroll(layers): ...

Which loops these are only type inference knows, which fails on them; so they are given by the lines of those failures
(`line_to_unroll`), and the function is read anew. It does not unroll `zip` and `enumerate` of such tuples.

Loops over `map` and `filter` become loops over what these go through:

    for y in map(f, x): ...                  for v in x: y = f(v); ...
    for y in filter(f, x): ...       ->      for y in x: if not f(y): continue; ...
    sum(map(f, x))                           sum(map_1(f, x))                        # a list

`min([a, b])` of numbers becomes `min(a, b)`, with no list and no loop.

`zip` and `enumerate` of a `map` are loops of the same kind. An iterator is for one consumer, which stands where the
iterator is made: any other use is refused. `functools.reduce` becomes a function with a loop.
"""

from __future__ import annotations

import functools
import re
import types as python_types
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

from numba import literal_unroll, types

from zygote_py.adjoints import refuse
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base import IRPass, assigned, definition, loc_of, originals, place_of, rewrite, statements
from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.types import FunctionHandleType, StandIn

_LAZY = (map, filter)
_CONSUMERS = (sum, list, min, max, sorted)


class ReduceToLoop(IRPass):
    """Stands before Numba's own inlining of `reduce`, which knows few functions."""

    def change(self, state: Any) -> bool:
        """Call functions with loops."""

        def reduced(block: Any, statement: Any) -> Iterable[Any] | None:
            if _called(state.func_ir, statement) is not functools.reduce:
                return None
            call = statement.value
            function = _REDUCES.get(len(call.args))
            is_known = function is not None and not call.kws and call.vararg is None
            return _calling(function, block, statement, state.session) if is_known else None

        return rewrite(state.func_ir, reduced)


class IteratorsToLoops(IRPass):
    """Runs after Numba's inlining of closures."""

    def change(self, state: Any) -> bool:
        """Loop over what the iterators go through."""
        func_ir = state.func_ir
        if not any(_called(func_ir, each) in _LAZY for _, each in statements(func_ir)):
            return False
        work = _Work(func_ir, state.session)
        for label in tuple(func_ir.blocks):
            work.rewrite_loop(label)
        work.rewrite_others()
        return True


class ItemsToArguments(IRPass):
    """Runs after type inference: Numba has `max([t, u])` of tuples and strings, and no `max(t, u)`."""

    def change(self, state: Any) -> bool:
        """Let `min` and `max` of a display have its items as their arguments."""
        func_ir = state.func_ir
        uses = Counter(
            var.name for _, each in statements(func_ir) if not isinstance(each, ir.Del) for var in each.list_vars()
        )

        def changed(block: Any, statement: Any) -> Iterable[Any] | None:
            if _called(func_ir, statement) not in (min, max):
                return None
            call = statement.value
            if len(call.args) != 1 or call.kws or call.vararg is not None or uses[call.args[0].name] != 2:
                return None  # it is used elsewhere than where it is assigned, and here
            items = _items(block, statement, call.args[0].name)
            kinds = tuple(types.unliteral(state.typemap[item.name]) for item in items)
            if len(items) < 2 or not all(isinstance(kind, types.Integer | types.Float) for kind in kinds):
                return None
            made = ir.Expr.call(call.func, items, (), call.loc)
            typed = state.typemap[call.func.name].get_call_type(state.typingctx, kinds, {})
            if typed.return_type != state.typemap[statement.target.name]:
                return None
            state.calltypes[made] = typed
            return [ir.Assign(made, statement.target, statement.loc)]

        return rewrite(func_ir, changed)


def _items(block: Any, statement: Any, name: str) -> list[Any]:
    """The variables in the display that a variable is assigned in a block, if they are the same at a statement."""
    changed = set()
    for each in reversed(block.body[: block.body.index(statement)]):
        if isinstance(each, ir.Assign) and each.target.name == name:
            made: Any = each.value
            items = made.items if _is_expr(each, "build_list") else []
            return [] if any(item.name in changed for item in items) else items
        changed.add(getattr(getattr(each, "target", None), "name", None))
    return []


# Makes an element out of one of what is iterated over instead: statements, and tests, which say whether to keep it.
_Element = Callable[[Any, list[Any]], Any]


@dataclass(frozen=True)
class _Test:
    """Goes on to the next element unless a variable is true."""

    keep: Any


class _Work:
    """The rewriting of one function."""

    def __init__(self, func_ir: Any, session: Any) -> None:
        self._ir = func_ir
        self._session = session
        self._scope = next(iter(func_ir.blocks.values())).scope
        self._uses: Counter[str] = Counter()
        self._made_in: dict[str, int] = {}
        for place, each in statements(func_ir):
            read = [var.name for var in each.list_vars()]
            if isinstance(each, ir.Assign):
                read.remove(each.target.name)
                self._made_in[each.target.name] = place.label
            if not isinstance(each, ir.Del):
                self._uses.update(read)

    # ------------------------------------------------------------------------------------------------------- loops

    def rewrite_loop(self, label: int) -> None:
        """A loop with its header in this block, if it is one over an iterator."""
        header = self._ir.blocks[label]
        advance = next((each for each in header.body if _is_expr(each, "iternext")), None)
        if advance is None:
            return
        getiter = self._origin(advance.value.value)
        if not _is_expr(getiter, "getiter") or not self._is_lazy(getiter.value.value):
            return
        if not self._is_used_once(advance.value.value):
            return  # its length is asked for, too
        made: list[Any] = []
        element = self._element(getiter.value.value, self._made_in[getiter.target.name])
        (first,) = [each for each in header.body if _is_expr(each, "pair_first", advance.target.name)]
        raw = self._fresh("element", first.loc)
        built = element(raw, made)
        found, copies = {first.target.name}, []
        for each in header.body:
            if isinstance(each, ir.Assign) and isinstance(each.value, ir.Var) and each.value.name in found:
                found.add(each.target.name)
                copies.append(each)
        header.body = [each for each in header.body if each not in copies]
        header.body[header.body.index(first)] = ir.Assign(first.value, raw, first.loc)
        made += [ir.Assign(built, first.target, first.loc), *copies]
        header.terminator.truebr = self._fill(made, label, header.terminator.truebr, first.loc)

    def _fill(self, statements: list[Any], header: int, body: int, loc: Any) -> int:
        """Blocks with these statements, of which the last goes on to the body and each test may go to the header."""
        entered: int = max(self._ir.blocks) + 1
        label = entered
        block = self._ir.blocks[label] = ir.Block(self._scope, loc)
        for each in statements:
            if isinstance(each, _Test):
                block.append(ir.Branch(each.keep, label + 1, header, loc))
                label += 1
                block = self._ir.blocks[label] = ir.Block(self._scope, loc)
            else:
                block.append(each)
        block.append(ir.Jump(body, loc))
        return entered

    def _element(self, var: Any, label: int) -> _Element:
        """Let a variable hold what an iterator goes through, and give what makes the iterator's elements of its."""
        statement = self._origin(var)
        if statement is None or not self._is_lazy(var):
            return lambda element, made: element
        call, function = statement.value, _called(self._ir, statement)
        if not self._is_used_once(var) or self._made_in[statement.target.name] != label:
            raise _refuse(function, statement.loc, "make a list of it: `list(...)`")
        if function in (zip, enumerate):
            self._refuse_filters(call.args, statement.loc)
            parts = [self._element(arg, label) for arg in (call.args if function is zip else call.args[:1])]
            parts = parts if function is zip else [lambda element, made: element, *parts]
            return lambda element, made: self._assign(
                "tuple", ir.Expr.build_tuple(self._parts(element, parts, made), element.loc), element.loc, made
            )
        kept = self._fresh("function", statement.loc)
        items = call.args[1:]
        if len(items) > 1:
            self._refuse_filters(items, statement.loc)
        parts = [self._element(item, label) for item in items]
        if len(items) == 1:
            self._replace(statement, kept, call.args[0], items[0])
        if function is filter:
            is_none = self._is_none(call.args[0])
            return lambda element, made: self._filtered(kept, parts[0](element, made), is_none, made)
        if len(items) == 1:
            return lambda element, made: self._call(kept, [parts[0](element, made)], made)
        zipped = self._fresh("zip", statement.loc)
        self._replace(statement, kept, call.args[0], ir.Expr.call(zipped, items, (), statement.loc))
        self._insert_before(statement, ir.Assign(ir.Global("zip", zip, statement.loc), zipped, statement.loc))
        return lambda element, made: self._call(kept, self._parts(element, parts, made), made)

    def _refuse_filters(self, items: Sequence[Any], loc: Any) -> None:
        if any(map(self._has_filter, items)):
            raise _refuse(filter, loc, "make a list of it: `list(filter(...))`")

    def _replace(self, statement: Any, kept: Any, function: Any, base: Any) -> None:
        """Keep the function, and let the iterator's variable hold what it goes through."""
        self._insert_before(statement, ir.Assign(function, kept, statement.loc))
        statement.value = base

    def _insert_before(self, statement: Any, new: Any) -> None:
        body = self._ir.blocks[self._made_in[statement.target.name]].body
        body.insert(body.index(statement), new)

    def _parts(self, element: Any, parts: list[_Element], made: list[Any]) -> list[Any]:
        loc = element.loc
        return [
            part(self._assign("part", ir.Expr.static_getitem(element, index, None, loc), loc, made), made)
            for index, part in enumerate(parts)
        ]

    def _call(self, function: Any, args: list[Any], made: list[Any]) -> Any:
        return self._assign("result", ir.Expr.call(function, tuple(args), (), function.loc), function.loc, made)

    def _filtered(self, function: Any, element: Any, is_none: bool, made: list[Any]) -> Any:
        test = element if is_none else self._call(function, [element], made)
        truth = self._assign("bool", ir.Global("bool", bool, function.loc), function.loc, made)
        made.append(_Test(self._call(truth, [test], made)))
        return element

    def _is_none(self, var: Any) -> bool:
        """Whether a variable is the constant None: `filter(None, ...)` takes what is true."""
        made = definition(self._ir, var)
        return isinstance(made, ir.Const | ir.Global) and made.value is None

    # ------------------------------------------------------------------------------------------------------ others

    def rewrite_others(self) -> None:
        """Make lists of the iterators that are not consumed by a loop."""

        def listed(block: Any, statement: Any) -> Iterable[Any] | None:
            function = _called(self._ir, statement)
            if function not in _LAZY:
                return None
            self._check_consumer(statement, block, function)
            call = statement.value
            known = _MAPS.get(len(call.args))
            if function is filter:
                known = filter_true if self._is_none(call.args[0]) else filter_2
            if known is None or call.kws or call.vararg is not None:
                raise _refuse(function, statement.loc, "write a loop")
            return _calling(known, block, statement, self._session)

        rewrite(self._ir, listed)

    def _check_consumer(self, statement: Any, block: Any, function: Any) -> None:
        names = {statement.target.name}
        for each in block.body:
            if isinstance(each, ir.Assign) and isinstance(each.value, ir.Var) and each.value.name in names:
                names.add(each.target.name)
            elif _is_expr(each, "getiter") and each.value.value.name in names:
                return
            elif each is statement or _called(self._ir, each) not in (*_CONSUMERS, *_LAZY, zip, enumerate):
                continue
            elif {arg.name for arg in each.value.args} & names and all(self._uses[name] == 1 for name in names):
                return
        raise _refuse(function, statement.loc, "make a list of it: `list(...)`, or write the loop")

    # --------------------------------------------------------------------------------------------------- variables

    def _fresh(self, name: str, loc: Any) -> Any:
        return self._scope.redefine(f"${name}", loc)

    def _assign(self, name: str, value: Any, loc: Any, made: list[Any]) -> Any:
        """Append an assignment to a new variable to the statements. Return the variable."""
        variable = self._fresh(name, loc)
        made.append(ir.Assign(value, variable, loc))
        return variable

    def _origin(self, var: Any) -> Any:
        """The statement that made what a variable holds, through copies; None if there are several."""
        while True:
            made = [
                each for _, each in statements(self._ir) if isinstance(each, ir.Assign) and each.target.name == var.name
            ]
            if len(made) != 1:
                return None
            if not isinstance(made[0].value, ir.Var):
                return made[0]
            var = made[0].value

    def _is_used_once(self, var: Any) -> bool:
        """Whether nothing but this one use reads a variable, or what it is a copy of."""
        names = [var.name, *originals(self._ir, var.name)]
        return all(self._uses[name] == 1 for name in names) and definition(self._ir, var) is not None

    def _call_of(self, var: Any) -> tuple[Any, Any]:
        """The object of Python whose call made what a variable holds, if it is known, and the call."""
        statement = self._origin(var)
        return (None, None) if statement is None else (_called(self._ir, statement), statement.value)

    def _is_lazy(self, var: Any) -> bool:
        function, call = self._call_of(var)
        if function in _LAZY:
            return not call.kws and call.vararg is None and len(call.args) > 1
        return function in (zip, enumerate) and any(map(self._is_lazy, call.args))

    def _has_filter(self, var: Any) -> bool:
        function, call = self._call_of(var)
        return function is filter or (function in (map, zip, enumerate) and any(map(self._has_filter, call.args)))


def _calling(function: Any, block: Any, statement: Any, session: Any) -> Iterable[Any]:
    """Return statements that call another function with the same arguments."""
    call, loc = statement.value, statement.loc
    callee = ir.Global(function.__name__, StandIn(FunctionHandleType(function, session)), loc)
    holder = assigned(block.scope, f"{statement.target.name}.function", callee, loc)
    return holder, ir.Assign(ir.Expr.call(holder.target, call.args, (), call.loc), statement.target, loc)


def _is_expr(statement: Any, op: str, of: str = "") -> bool:
    found = isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr) and statement.value.op == op
    return found and (not of or statement.value.value.name == of)


def _called(func_ir: Any, statement: Any) -> object:
    """The object of Python that a statement calls, if it is known."""
    if not _is_expr(statement, "call"):
        return None
    made = definition(func_ir, statement.value.func)
    return made.value if isinstance(made, ir.Global | ir.FreeVar) and _is_hashable(made.value) else None


def _is_hashable(value: object) -> bool:
    return isinstance(value, type | python_types.BuiltinFunctionType) or value is functools.reduce


def _refuse(function: Any, loc: Any, hint: str) -> Exception:
    name = function.__name__
    what = f"this use of `{name}` is not supported: its elements are for one loop, where it is made"
    return refuse(what, loc_of(loc), hint, name)


# ------------------------------------------------------------------------------------- lists in place of iterators


def map_1(f: Any, a: Any) -> Any:
    """`list(map(f, a))`"""
    return [f(u) for u in a]


def map_2(f: Any, a: Any, b: Any) -> Any:
    """`list(map(f, a, b))`"""
    return [f(u, v) for u, v in zip(a, b)]  # noqa: B905 (Numba knows no `strict`)


def map_3(f: Any, a: Any, b: Any, c: Any) -> Any:
    """`list(map(f, a, b, c))`"""
    return [f(u, v, w) for u, v, w in zip(a, b, c)]  # noqa: B905


def filter_2(f: Any, a: Any) -> Any:
    """`list(filter(f, a))`"""
    return [u for u in a if f(u)]


def filter_true(f: None, a: Any) -> Any:
    """`list(filter(None, a))`"""
    return [u for u in a if u]


def reduce_2(f: Any, a: Any) -> Any:
    """`reduce(f, a)`"""
    if len(a) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    s = a[0]
    for i in range(1, len(a)):
        s = f(s, a[i])
    return s


def reduce_3(f: Any, a: Any, start: Any) -> Any:
    """`reduce(f, a, start)`"""
    s = start
    for u in a:
        s = f(s, u)
    return s


_MAPS: dict[int, Callable[..., Any]] = {2: map_1, 3: map_2, 4: map_3}
_REDUCES: dict[int, Callable[..., Any]] = {2: reduce_2, 3: reduce_3}


# ------------------------------------------------------------------------------------ tuples of several types


_FAILURE = re.compile(r"Invalid use of getiter with parameters \(Tuple\(")


def line_to_unroll(error: Exception, code: CodeType) -> int | None:
    """The line of the loop over a tuple that type inference failed on; None if it failed for another reason."""
    place = place_of(error, code) if _FAILURE.search(str(error)) else None
    return None if place is None else place.line


class UnrollTuples(IRPass):
    """Stands before Numba's own pass for `literal_unroll`; `state.unrolled` are the lines of the loops."""

    def change(self, state: Any) -> bool:
        """Let the loops go over the result of `literal_unroll`."""

        def unrolled(block: Any, statement: Any) -> Iterable[Any] | None:
            match statement:
                case ir.Assign(value=ir.Expr(op="getiter") as expr) if statement.loc.line in state.unrolled:
                    unroll = ir.Global("literal_unroll", literal_unroll, expr.loc)
                    function = assigned(block.scope, f"{statement.target.name}.unroll", unroll, statement.loc)
                    call = ir.Expr.call(function.target, (expr.value,), (), expr.loc)
                    items = assigned(block.scope, f"{statement.target.name}.items", call, statement.loc)
                    expr.value = items.target
                    return function, items, statement
            return None

        return rewrite(state.func_ir, unrolled)
