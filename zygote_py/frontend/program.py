"""The choice of the called functions to inline and of those that stay routines.

    def fact(n): return n * fact(n - 1) if n > 1 else 1.0      a routine: it calls itself
    def square(x): return x * x                                small: inlined
    def model(x): ...                                          large: inlined if called in one place, else a routine

Each function is processed once for the types of its arguments, however many functions call it, so that the result is
about as long as the program.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import Checkpoint, DifferentiationError, refuse
from zygote_py.base import statements as st
from zygote_py.frontend.derived import Derived
from zygote_py.frontend.expressions.displays import with_tuples
from zygote_py.frontend.graphs.exceptions import divisions
from zygote_py.frontend.graphs.graph import targets
from zygote_py.frontend.values import held_in, is_dict, is_list, leaves_of
from zygote_py.ir import Routine, Type, identifier, is_identifier, leaf_types
from zygote_py.ir.analysis import reach

# The limit on all copies of a function that is called in several places, in Numba's statements, of which a line of
# source has about four. If it loops, and is called in many places that are in no loop, fewer: a copy is two loops, and
# takes longer to compile than a call does.
_MOST_STATEMENTS = 400
_MANY = 8  # places
_FAST = frozenset(("afn", "arcp", "contract", "fast", "ninf", "nnan", "nsz", "reassoc"))  # flags of LLVM's

Callees = Callable[[st.TypedFunction], list[st.TypedFunction]]


class Program:
    """A function and those that it calls, and the routines among them."""

    def __init__(
        self,
        root: st.TypedFunction,
        callees: Callees,
        caught: Collection[st.TypedFunction],
        repeated: Collection[st.TypedFunction],
    ) -> None:
        """`caught` are functions called in a `try`, `repeated` in a loop; `callees` adds those that it finds."""
        self._calls: dict[st.TypedFunction, list[st.TypedFunction]] = {}
        self._chosen: set[st.TypedFunction] = set()  # those that are to be routines
        self._in_threads = bool(root.options.get("parallel"))
        self._routines: dict[st.TypedFunction, Routine] = {}
        self.inlined: dict[st.TypedFunction, Derived] = {}  # the derivatives that stand in the place of their calls
        self.prepared = cache(with_tuples)  # a function as it is lowered: with tuples for lists that are only passed on
        self._survey(root, callees, [])
        self._choose(self._with_callees(caught), self._with_callees(repeated))

    def captured(self, function: st.TypedFunction) -> dict[object, tuple[st.Capture, Type]]:
        """Return the captured variables of a function and those inlined into it, by key, with names of their own."""
        found = {capture.key: (capture, type_) for capture, type_ in _own(function)}
        names = set(function.parameters)
        for callee in self._calls[function]:
            inner = self.hidden(callee) if self.is_routine(callee) else self.captured(callee).values()
            for capture, type_ in inner:
                if capture.key not in found:
                    name = name_among(names, capture.name, callee.name)
                    found[capture.key] = replace(capture, name=name), type_
        return found

    def is_routine(self, function: st.TypedFunction) -> bool:
        """Return whether calls of a function stay calls."""
        return function in self._chosen

    def options(self, function: st.TypedFunction) -> dict[str, object]:
        """Return the options of a function with those inlined into it: its loops and theirs run in threads as one."""
        options = {name: option for name, option in function.options.items() if name != "parallel"}
        in_threads = self._in_threads or any(each.options.get("parallel") for each in self._inlined_into(function))
        return options | ({"parallel": True} if in_threads else {})

    def routine(self, function: st.TypedFunction) -> Routine:
        """Return the routine of a function, created if it does not exist yet."""
        if function not in self._routines:
            self._routines[function] = made = Routine(identifier(function.name, "lambda_"))
            made.derivation = Checkpoint() if function.runs_again else None
        return self._routines[function]

    def routines(self) -> dict[st.TypedFunction, Routine]:
        """Return all routines that have been requested so far."""
        return dict(self._routines)

    def hidden(self, function: st.TypedFunction) -> list[tuple[st.Capture, Type]]:
        """Return the captured variables of a routine and its callees, with their types, in a fixed order."""
        found: dict[object, tuple[st.Capture, Type]] = {}
        seen = {function}
        pending = [function]
        while pending:
            each = pending.pop()
            for capture, type_ in _own(each):
                found.setdefault(capture.key, (capture, type_))
            for callee in self._calls[each]:
                if callee not in seen:
                    seen.add(callee)
                    pending.append(callee)
        return list(found.values())

    def _survey(self, function: st.TypedFunction, callees: Callees, active: list[st.TypedFunction]) -> None:
        self._calls[function] = []
        if function.runs_again:
            self._chosen.add(function)
        if function.derived is not None:
            self._chosen.add(function)
        elif function.given is None or (function.given.given.kind == "inverse" and _no_routine(function)):
            self._calls[function] += callees(function)
        else:
            self._chosen.add(function)
            with suppress(DifferentiationError):  # Numba may be able to call what cannot be read here
                self._calls[function] += callees(function)
            parts = function.given.parts
            self._chosen.update(parts)
            self._calls[function] += parts
        active.append(function)
        for callee in self._calls[function]:
            if callee in active:
                self._chosen.add(callee)
            elif callee not in self._calls:
                self._survey(callee, callees, active)
        active.pop()

    def _with_callees(self, functions: Iterable[st.TypedFunction]) -> set[st.TypedFunction]:
        """Return functions together with those that they call."""
        return set(reach(functions, lambda function: self._calls.get(function, ())))

    def _choose(self, caught: Collection[st.TypedFunction], repeated: Collection[st.TypedFunction]) -> None:
        """Choose the routines; a function called in a `try` is inlined if possible, so that it may raise.

        One that is called in a loop is inlined rather than others: a call that keeps records of loops takes longer.
        """
        given = [each for each in self._calls if each.given is not None]
        called = {part for each in given for part in (each, *each.given.parts)}  # type: ignore[union-attr]
        for recursive in self._chosen:
            if recursive.derived is not None:  # it writes to nothing but arrays
                continue
            is_only_recursive = recursive not in called and not recursive.runs_again
            if recursive.runs_again and recursive not in called:
                what = _of_memory(recursive) or _no_routine(recursive, recursive=True)
            else:
                what = _no_routine(recursive, is_only_recursive)
            if what:
                kind = "recursive function" if is_only_recursive else "function"
                raise refuse(
                    f"the {kind} `{recursive.name}` takes or returns {what}, which is not supported",
                    recursive.loc,
                    "pass numbers, arrays and tuples of them",
                    recursive.name,
                )
        self._keep_options(caught)
        places = Counter(callee for found in self._calls.values() for callee in found)

        @cache
        def size(function: st.TypedFunction) -> int:
            inside = (1 if callee in self._chosen else size(callee) for callee in self._calls[function])
            own = _size(function) + sum(inside)
            is_costly = places[function] >= _MANY and function not in repeated and _has_loops(function)
            most = _MOST_STATEMENTS * 3 // 8 if is_costly else _MOST_STATEMENTS
            many = places[function] > 1 and own * places[function] > most
            if many and function not in caught and not _no_routine(function):
                self._chosen.add(function)
            return 1 if function in self._chosen else own

        for function in self._calls:  # also those that only routines call
            size(function)

    def _keep_options(self, caught: Collection[st.TypedFunction]) -> None:
        """Make functions compiled with other options than their callers routines, so that each keeps its options.

        The error model does not require this of a function without divisions, or whose divisions can all be written as
        NumPy's. Nor does `fastmath` of a function without loops in a caller that allows less: it is then computed more
        strictly.
        """
        for caller, callees in self._calls.items():
            for callee in callees:
                own, around = (dict(numba_adapter.semantic(each.options)) for each in (callee, caller))
                if own == around or callee in self._chosen or callee.given is not None:
                    continue
                different = {name for name in own | around if own.get(name) != around.get(name)}
                inside = self._inlined_into(callee)
                if not any(divisions(each) - _of_numpy(own) for each in inside):
                    different.discard("error_model")
                if _flags(around) <= _flags(own) and not any(map(_has_loops, inside)):
                    different.discard("fastmath")
                if not different:
                    continue
                what = _no_routine(callee) or ("an argument that may raise in `try`" if callee in caught else "")
                if not what:
                    self._chosen.add(callee)
                elif "error_model" in different:
                    raise refuse(
                        f"`{callee.name}` has another error_model than its caller, and takes or returns {what}",
                        callee.loc,
                        "give both functions the same error_model",
                        callee.name,
                    )

    def _inlined_into(self, function: st.TypedFunction) -> set[st.TypedFunction]:
        """Return a function and those that may be inlined into it."""
        return {function, *reach(self._calls[function], self._calls.__getitem__, self._chosen)}


def _of_numpy(options: Mapping[str, object]) -> set[object]:
    """Return the divisions that can be written so that they do not depend on the options of the function's caller."""
    return {operator.truediv} if options.get("error_model") == "numpy" else set()


def _flags(options: Mapping[str, Any]) -> frozenset[str]:
    """Return the flags of `fastmath`."""
    given = options.get("fastmath") or frozenset()
    return _FAST if given is True or "fast" in given else given


def _has_loops(function: st.TypedFunction) -> bool:
    """Return whether a function loops, or does more with arrays than to read and write elements."""
    whole = (types.Array, types.SliceType)
    for block in function.blocks.values():
        for each in block.statements:
            if not isinstance(each, st.Assign):
                continue
            own = isinstance(each.value, st.Parameter | st.Copy)
            taken = each.value.args if isinstance(each.value, st.Call) else ()
            of_arrays = any(isinstance(function.types[arg], types.Array) for arg in taken)
            if of_arrays or (not own and isinstance(function.types[each.target], whole)):
                return True
    return bool(labels_in_loops(function))


def labels_in_loops(function: st.TypedFunction) -> set[st.Label]:
    """Return the labels of the blocks that a function may run several times."""
    edges = ((target, label) for label, block in function.blocks.items() for target in targets(block.ending))
    back = sorted(((target, label) for target, label in edges if target <= label), reverse=True)
    found, last = set[st.Label](), -1
    for label in sorted(function.blocks):
        while back and back[-1][0] <= label:
            last = max(last, back.pop()[1])
        if label <= last:
            found.add(label)
    return found


def _own(function: st.TypedFunction) -> Iterator[tuple[st.Capture, Type]]:
    """Return the captured variables of a function with their types."""
    return zip(function.hidden, function.parameter_types[function.argument_count :], strict=True)


def name_among(names: set[str], name: str, callee: str) -> str:
    """Return a name for the captured variable of a callee that is not among the names yet, and add it to them."""
    while name in names:
        name = f"{callee}_{name}" if is_identifier(callee) else f"{name}_"
    names.add(name)
    return name


def _size(function: st.TypedFunction) -> int:
    """Return the number of statements of a function; for a `try`, Numba adds many that do nothing."""
    blocks = function.blocks.values()
    if not any(isinstance(block.ending, st.Try) for block in blocks):
        return sum(len(block.statements) for block in blocks)
    idle = st.Constant | st.Copy | st.Phi
    statements = [each for block in blocks for each in block.statements]
    return sum(not (isinstance(each, st.Assign) and isinstance(each.value, idle)) for each in statements)


def _no_routine(function: st.TypedFunction, recursive: bool = False) -> str:
    """Return which argument or result of a function a routine cannot have; empty if there is none.

    A recursive function, which cannot be inlined, may take what others had better not.
    """
    given = function.parameter_types[: function.argument_count]
    for type_ in (function.return_type,) if recursive else (*given, function.return_type):
        if numba_adapter.is_object(type_) and not recursive:
            return "an object of a jitclass"
        if any(isinstance(leaf, types.List | types.ListType) for leaf in leaves_of(type_)):
            return "a dict" if any(map(is_dict, leaf_types(type_))) else "a list"
    return ""


def _of_memory(function: st.TypedFunction) -> str:
    """Return which argument of a function has no copy for a second run: objects, and arrays in lists."""
    for type_ in (leaf for given in function.parameter_types for leaf in leaf_types(given)):
        held = list(held_in(type_))
        if any(map(numba_adapter.is_object, (type_, *held))):
            return "an object of a jitclass"
        if (is_list(type_) or is_dict(type_)) and any(isinstance(each, types.Array) for each in held):
            return f"a {'list' if is_list(type_) else 'dict'} of arrays"
    return ""
