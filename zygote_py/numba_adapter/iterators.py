"""A pass in Numba's pipeline: loops over `map` and `filter` become loops over what these go through.

    for y in map(f, x): ...                  for v in x: y = f(v); ...
    for y in filter(f, x): ...       ->      for y in x: if not f(y): continue; ...
    sum(map(f, x))                           sum(map_1(f, x))                        # a list, see library.iterating

`zip` and `enumerate` of a `map` are loops of the same kind. An iterator is for one consumer, which stands where the
iterator is made: any other use is refused. `functools.reduce` becomes a function with a loop.
"""

from __future__ import annotations

import functools
import types as python_types
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from zygote_py.adjoints.errors import refuse
from zygote_py.ir.core import Loc
from zygote_py.library import iterating
from zygote_py.numba_adapter.callees import Callee
from zygote_py.numba_adapter.internals import FunctionPass, build_definitions, get_definition, guard, ir, register_pass

_LAZY = (map, filter)
_CONSUMERS = (sum, list, min, max, sorted)


@register_pass(mutates_CFG=False, analysis_only=False)
class ReduceToLoop(FunctionPass):
    """Stands before Numba's own inlining of `reduce`, which knows few functions."""

    _name = "zygote_py_reduce_to_loop"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        changed = False
        for block in state.func_ir.blocks.values():
            for place, statement in enumerate(block.body):
                if _called(state.func_ir, statement) is functools.reduce:
                    call = statement.value
                    function = iterating.REDUCES.get(len(call.args))
                    if function is not None and not call.kws and call.vararg is None:
                        holder = ir.Var(block.scope, f"{statement.target.name}.reduce", statement.loc)
                        made = ir.Global("reduce", Callee(function, state.session), statement.loc)
                        block.body[place] = ir.Assign(
                            ir.Expr.call(holder, call.args, (), call.loc), statement.target, statement.loc
                        )
                        block.body.insert(place, ir.Assign(made, holder, statement.loc))
                        changed = True
                        break
        if changed:
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
            self.run_pass(state)
        return changed


@register_pass(mutates_CFG=True, analysis_only=False)
class IteratorsToLoops(FunctionPass):
    """Stands behind Numba's inlining of closures."""

    _name = "zygote_py_iterators_to_loops"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change the IR of `state` in place."""
        func_ir = state.func_ir
        if not any(_called(func_ir, each) in _LAZY for block in func_ir.blocks.values() for each in block.body):
            return False
        work = _Work(func_ir, state.session)
        for label in tuple(func_ir.blocks):
            work.rewrite_loop(label)
        work.rewrite_others()
        func_ir._definitions = build_definitions(func_ir.blocks)
        return True


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
        for label, block in func_ir.blocks.items():
            for each in block.body:
                read = [var.name for var in each.list_vars()]
                if isinstance(each, ir.Assign):
                    read.remove(each.target.name)
                    self._made_in[each.target.name] = label
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
        if getiter is None or not _is_expr(getiter, "getiter") or not self._is_lazy(getiter.value.value):
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
        branch = header.terminator
        body = branch.truebr
        branch.truebr = self._fill(made, label, body, first.loc)

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
            return lambda element, made: self._tuple_of(self._parts(element, parts, made), element.loc, made)
        kept = self._fresh("function", statement.loc)
        items = call.args[1:]
        if len(items) > 1:
            self._refuse_filters(items, statement.loc)
        parts = [self._element(item, label) for item in items]
        if function is filter:
            nothing = guard(get_definition, self._ir, call.args[0])
            is_none = isinstance(nothing, ir.Const | ir.Global) and nothing.value is None
            self._replace(statement, kept, call.args[0], items[0])
            return lambda element, made: self._filtered(kept, parts[0](element, made), is_none, made)
        if len(items) == 1:
            self._replace(statement, kept, call.args[0], items[0])
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
        found = []
        for index, part in enumerate(parts):
            item = self._fresh("part", element.loc)
            made.append(ir.Assign(ir.Expr.static_getitem(element, index, None, element.loc), item, element.loc))
            found.append(part(item, made))
        return found

    def _tuple_of(self, items: list[Any], loc: Any, made: list[Any]) -> Any:
        found = self._fresh("tuple", loc)
        made.append(ir.Assign(ir.Expr.build_tuple(items, loc), found, loc))
        return found

    def _call(self, function: Any, args: list[Any], made: list[Any]) -> Any:
        found = self._fresh("result", function.loc)
        made.append(ir.Assign(ir.Expr.call(function, tuple(args), (), function.loc), found, function.loc))
        return found

    def _filtered(self, function: Any, element: Any, is_none: bool, made: list[Any]) -> Any:
        test = element if is_none else self._call(function, [element], made)
        truth = self._fresh("bool", function.loc)
        made.append(ir.Assign(ir.Global("bool", bool, function.loc), truth, function.loc))
        made.append(_Test(self._call(truth, [test], made)))
        return element

    # ------------------------------------------------------------------------------------------------------ others

    def rewrite_others(self) -> None:
        """What is not consumed by a loop becomes a list."""
        for label, block in self._ir.blocks.items():
            for statement in tuple(block.body):
                function = _called(self._ir, statement)
                if function not in _LAZY:
                    continue
                self._check_consumer(statement, label, function)
                call = statement.value
                known = iterating.MAPS.get(len(call.args))
                if function is filter:
                    nothing = guard(get_definition, self._ir, call.args[0])
                    is_none = isinstance(nothing, ir.Const | ir.Global) and nothing.value is None
                    known = iterating.filter_true if is_none else iterating.filter_2
                if known is None or call.kws or call.vararg is not None:
                    raise _refuse(function, statement.loc, "write a loop")
                holder = self._fresh("as_list", statement.loc)
                made = ir.Global(known.__name__, Callee(known, self._session), statement.loc)
                block.body.insert(block.body.index(statement), ir.Assign(made, holder, statement.loc))
                statement.value = ir.Expr.call(holder, call.args, (), statement.loc)

    def _check_consumer(self, statement: Any, label: int, function: Any) -> None:
        names = {statement.target.name}
        for each in self._ir.blocks[label].body:
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

    def _origin(self, var: Any) -> Any:
        """The statement that made what a variable holds, through copies; None if there are several."""
        while True:
            made = [
                each
                for block in self._ir.blocks.values()
                for each in block.body
                if isinstance(each, ir.Assign) and each.target.name == var.name
            ]
            if len(made) != 1:
                return None
            if not isinstance(made[0].value, ir.Var):
                return made[0]
            var = made[0].value

    def _is_used_once(self, var: Any) -> bool:
        """Whether nothing but this one use reads a variable, or what it is a copy of."""
        while True:
            if self._uses[var.name] != 1:
                return False
            made = guard(get_definition, self._ir, var)
            if not isinstance(self._copied(var), ir.Var):
                return made is not None
            var = self._copied(var)

    def _copied(self, var: Any) -> Any:
        found = self._ir._definitions.get(var.name, ())
        return found[0] if len(found) == 1 else None

    def _is_lazy(self, var: Any) -> bool:
        statement = self._origin(var)
        function = None if statement is None else _called(self._ir, statement)
        if function in _LAZY:
            return not statement.value.kws and statement.value.vararg is None and len(statement.value.args) > 1
        return function in (zip, enumerate) and any(map(self._is_lazy, statement.value.args))

    def _has_filter(self, var: Any) -> bool:
        statement = self._origin(var)
        function = None if statement is None else _called(self._ir, statement)
        if function is filter:
            return True
        return function in (*_LAZY, zip, enumerate) and any(map(self._has_filter, statement.value.args))


def _is_expr(statement: Any, op: str, of: str = "") -> bool:
    found = isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr) and statement.value.op == op
    return found and (not of or statement.value.value.name == of)


def _called(func_ir: Any, statement: Any) -> object:
    """The object of Python that a statement calls, if it is known."""
    if not _is_expr(statement, "call"):
        return None
    made = guard(get_definition, func_ir, statement.value.func)
    return made.value if isinstance(made, ir.Global | ir.FreeVar) and _is_hashable(made.value) else None


def _is_hashable(value: object) -> bool:
    return isinstance(value, type | python_types.BuiltinFunctionType) or value is functools.reduce


def _refuse(function: Any, loc: Any, hint: str) -> Exception:
    name = function.__name__
    what = f"this use of `{name}` is not supported: its elements are for one loop, where it is made"
    return refuse(what, Loc(loc.filename, loc.line), hint, name)
