"""Functions that are written as IR, without a text in Python that would be parsed and typed.

    w = Writer(call, "f_rows", ("x",))                          primal f_rows(%x: f64[:], %closure_: ...) -> f64[:, :]
    (x,) = w.parameters
    n = w.size(*x.leaves)                                       %n = dim %x, 0 : i64
    a = w.array(ops.record, types.float64, n, n)                %a = record %n, %n : f64[:, :]
    with w.loop("k", 0, n) as k:                                (b1, the header, with %k0: i64 = phi b0: 0, b2: %k1)
        dx = w.invoke(w.derived(GradientForm()), x)             %dx = f_gradient %x : f64[:]
        w.store(a, *dx.leaves, k)                               %t = getitem %a, %k0 : f64[:]       setitem %t, %dx
    typed = w.returned(value_of(a))                             return %a

Values are those of the front end: a `LoweredValue` for anything with a type, operands for numbers and arrays. The
instructions are the ones to which the front end lowers such Python.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.base import Capture, TypedFunction
from zygote_py.frontend.derived import Derived, inlined, operand_of, set_function, typed_as_derived
from zygote_py.frontend.expressions import arrays, dicts, lists, records
from zygote_py.frontend.lowered import with_ir
from zygote_py.frontend.program import name_among
from zygote_py.frontend.values import (
    INT,
    Emitter,
    LoweredValue,
    alternatives,
    components,
    flat_type,
    is_dict,
    is_tuple,
    join,
    leaves_of,
    lowered,
    named,
    parameter,
    product,
    shape_of,
    tuple_like,
    unflatten,
    value_of,
)
from zygote_py.ir import (
    NONE,
    Block,
    Branch,
    Const,
    Function,
    Jump,
    Loc,
    Nest,
    Operand,
    Raise,
    Return,
    Routine,
    Type,
    check_after,
    find_effects,
    identifier,
    inline_calls,
    inserting,
    ops,
    routines_of,
)
from zygote_py.numba_adapter import DerivedCall

Length = Operand | int


class Writer(Emitter):
    """Writes the function for a call of a derivative: `parameters` are its arguments, `closure` what it is made of."""

    def __init__(self, call: DerivedCall, name: str, names: Sequence[str]) -> None:
        loc = Loc(f"<zygote_py {name}>", 1)
        block = Block(loc)
        super().__init__(block, loc)
        self.derived_call = call
        self.name = name
        self.function = Function(identifier(name, "lambda_"), [], [block], kind="primal", loc=loc, options=call.options)
        self.parameters = [self._parameter(*each) for each in zip(names, call.argument_types, strict=True)]
        self.closure = self._parameter(numba_adapter.CLOSURE, call.inner)
        self._hidden: dict[object, tuple[Capture, LoweredValue]] = {}
        self._frozen: dict[object, Capture] = {}
        self._routines: dict[TypedFunction, tuple[TypedFunction, Routine]] = {}

    def _parameter(self, name: str, kind: Type) -> LoweredValue:
        param, value = parameter(self, name, kind, self.loc)
        self.function.params.append(param)
        return replace(value, type=kind) if isinstance(kind, types.EnumMember) else value  # not only its number

    # ------------------------------------------------------------------------------------------------------- functions

    def derived(self, form: Any, function: LoweredValue | None = None) -> LoweredValue:
        """Return what a form makes of a function: of the one that the call is of, unless another one is given."""
        function = function or self.closure
        return replace(function, type=self.derived_call.derived(form, function.type))

    def invoke(self, function: LoweredValue, *args: LoweredValue) -> LoweredValue:
        """Return the result of a call of a derivative."""
        kind: Any = function.type
        return self._invoke(kind.typed((*(arg.type for arg in args), kind)), (*args, function))

    def run(self, *args: LoweredValue) -> LoweredValue:
        """Return the result of a call of the function itself."""
        return self._invoke(self.derived_call.typed(tuple(arg.type for arg in args)), (*args, self.closure))

    def _invoke(self, called: TypedFunction, args: Sequence[LoweredValue]) -> LoweredValue:
        typed, routine = self._routine(called)
        kinds = typed.parameter_types[typed.argument_count :]
        hidden = [self._captured(each, kind, typed.name) for each, kind in zip(typed.hidden, kinds, strict=True)]
        operands = [leaf for value in (*args, *hidden) for leaf in value.leaves]
        found = self.call(routine, *operands, type=flat_type(leaves_of(typed.return_type)))
        result = unflatten(self, found, typed.return_type)
        return result if inlined(typed) is not None else dicts.with_own_keys(self, result)

    def _routine(self, typed: TypedFunction) -> tuple[TypedFunction, Routine]:
        """Return the routine that is called for a typed function, and that function with its IR."""
        if typed not in self._routines:
            known = with_ir(typed)
            made = Routine(identifier(typed.name, "lambda_"))
            set_function(made, known)
            self._frozen |= {capture.key: capture for capture in known.frozen}
            self._routines[typed] = known, made
        return self._routines[typed]

    def _captured(self, capture: Capture, kind: Type, callee: str) -> LoweredValue:
        """Return the value of a captured variable of what is called: a parameter."""
        if capture.key not in self._hidden:
            name = name_among({param.hint for param in self.function.params}, capture.name, callee)
            with inserting(self.function.entry, loc=self.loc) as b:
                param, value = parameter(b, name, kind, self.loc)
            self.function.params.insert(len(self.function.params) - 1, param)
            records.make_readonly(value)
            self._hidden[capture.key] = replace(capture, name=name), value
        return self._hidden[capture.key][1]

    def returned(self, value: LoweredValue) -> TypedFunction:
        """Return the function, which returns this value, as a typed function."""
        function = self.function
        self.block.terminator = Return((join(self, value, operand_of),))
        lists.hoist_lengths(function)
        dicts.settle_loops(function)
        in_place = {routine for typed, routine in self._routines.values() if inlined(typed) is not None}
        inline_calls(function, lambda call: call.op in in_place)
        routines = routines_of(function)
        find_effects(routines)
        check_after("write", function, *(routine.function for routine in routines))
        derived = Derived(function, len(self.parameters), routines, is_inlined=True)
        hidden = tuple(capture for capture, _ in self._hidden.values())
        return typed_as_derived(self.derived_call, derived, self.name, value.type, hidden, tuple(self._frozen.values()))

    def cast_bundle(self, bundle: LoweredValue, type: Type) -> LoweredValue:
        """Return a value as one of another type: numbers are converted, also those in tuples."""
        return alternatives.cast(self, bundle, type)

    # -------------------------------------------------------------------------------------------------- control flow

    @contextmanager
    def loop(self, hint: str, start: Length, stop: Operand, step: int = 1) -> Iterator[Operand]:
        """Continue in the body of `for k in range(start, stop, step)`; when the context exits, after the loop."""
        nest = Nest(self.block, [stop], [hint], self.loc, as_length(start), step)
        self._begin(*nest.headers, *nest.bodies)
        yield nest.counters[0]
        nest.ends[0] = self.block
        self._begin(nest.finish()[-1])

    @contextmanager
    def when(self, condition: Operand) -> Iterator[None]:
        """Continue in the branch of `if condition`; when the context exits, after it."""
        branch, after = Block(self.loc), Block(self.loc)
        self.block.terminator = Branch(named(condition, "c"), branch, after)
        self._begin(branch)
        yield
        self.block.terminator = Jump(after)
        self._begin(after)

    def either(self, condition: Operand, then: Callable[[], None], orelse: Callable[[], None]) -> None:
        """Write `if condition: ... else: ...`."""
        branches, after = (Block(self.loc), Block(self.loc)), Block(self.loc)
        self.block.terminator = Branch(named(condition, "c"), *branches)
        for block, write in zip(branches, (then, orelse), strict=True):
            self._begin(block)
            write()
            self.block.terminator = Jump(after)
        self._begin(after)

    def raise_if(self, condition: Operand, message: str) -> None:
        """Write `if condition: raise ValueError(message)`."""
        with self.when(condition):
            raising = self.block
        raising.terminator = Raise(ValueError, (Const(message, types.unicode_type),))

    @contextmanager
    def back_in(self, block: Block) -> Iterator[None]:
        """Continue at the end of an earlier block; when the context exits, at the present place."""
        current, self.block = self.block, block
        yield
        self.block = current

    def _begin(self, *blocks: Block) -> None:
        """Append new blocks, and continue in the last of them."""
        self.function.blocks += blocks
        self.block = blocks[-1]

    # -------------------------------------------------------------------------------------------- numbers and arrays

    def plus(self, *terms: Length) -> Operand:
        """Return a sum of integers."""
        return reduce(self._sum, map(as_length, terms))

    def _sum(self, a: Operand, b: Operand) -> Operand:
        match a, b:
            case Const(value=int(one)), Const(value=int(other)):
                return Const(one + other, INT)
            case (Const(value=0), _) | (_, Const(value=0)):
                return b if a == Const(0, INT) else a
        return self.call(operator.add, a, b, type=INT)

    def least(self, a: Operand, b: Operand) -> Operand:
        """Return the smaller one of two integers."""
        return self.call(min, a, b, type=INT)

    def last(self, length: Operand) -> Operand:
        """Return the last index of an axis."""
        return self.call(operator.sub, length, Const(1, INT), type=INT)

    def size(self, leaf: Operand) -> Operand:
        """Return how many numbers an array has; 1 for a number."""
        return product(self, self.shape(leaf))

    def shape(self, array: Operand) -> tuple[Operand, ...]:
        """Return the lengths of an array's axes; none of a number."""
        return shape_of(self, array)

    def array(self, op: ops.Op, dtype: Type, *lengths: Length, hint: str = "") -> Operand:
        """Return a new array: `ops.zeros`, or `ops.record` for one that is to be filled."""
        kind = types.Array(dtype, len(lengths), "C")
        return self.call(op, *map(as_length, lengths), type=kind, hint=hint)

    def slice(self, start: Operand = NONE, stop: Operand = NONE) -> Operand:
        """Return the index `start:stop`."""
        return self.call(builtins.slice, start, stop, type=types.slice2_type)

    def element(self, array: Operand, *index: Length, hint: str = "") -> Operand:
        """Return `array[index]`."""
        operands = tuple(map(as_length, index))
        kind = numba_adapter.item_type(array.type, [each.type for each in operands])
        assert kind is not None
        return named(arrays.item(self, array, operands, kind), hint)

    def store(self, array: Operand, value: Operand, *index: Length) -> None:
        """Write `array[index] = value`."""
        arrays.store_item(self, array, tuple(map(as_length, index)), value_of(value))

    def flat(self, leaf: Operand) -> Operand:
        """Return the elements of an array in a row; a number as it is."""
        own = leaf.type
        if not isinstance(own, types.Array) or own.ndim == 1:
            return leaf
        found = lowered(self, np.ravel, [value_of(leaf)], {}, own.copy(ndim=1, layout="C"))
        assert found is not None
        return found.leaves[0]

    def reshaped(self, array: Operand, lengths: Sequence[Operand]) -> Operand:
        """Return an array in C order with other lengths."""
        own = array.type
        assert isinstance(own, types.Array)
        return self.call(np.reshape, array, *lengths, type=own.copy(ndim=len(lengths)))

    def copied(self, value: LoweredValue) -> LoweredValue:
        """Return a value that a function may mutate, its arrays copied."""
        if is_tuple(value.type) and not numba_adapter.is_closure(value.type):
            return tuple_like(value.type, [self.copied(part) for part in components(value)])
        if not isinstance(value.type, types.Array):
            return value
        made = [self.call(np.copy, leaf, type=_in_order(leaf.type)) for leaf in value.leaves]
        return LoweredValue(_in_order(value.type), tuple(made))

    def differ(self, a: Operand, b: Operand) -> Operand:
        """Return whether the shapes of two arrays with as many axes differ."""
        pairs = zip(self.shape(a), self.shape(b), strict=True)
        tests: list[Operand] = [self.call(operator.ne, *pair, type=types.boolean) for pair in pairs]
        every: Operand = Const(False, types.boolean)
        return reduce(lambda one, other: self.call(operator.or_, one, other, type=types.boolean), tests or [every])

    # ------------------------------------------------------------------------------------------------ lists and dicts

    def length(self, value: LoweredValue) -> Operand:
        """Return `len(value)`, of a list or a dict."""
        return dicts.length(self, value) if is_dict(value.type) else lists.length(self, value)

    @contextmanager
    def entries(self, value: LoweredValue) -> Iterator[tuple[LoweredValue, LoweredValue]]:
        """Continue in the body of a loop over the keys of a dict, or the indices of a list, and what is there."""
        if not is_dict(value.type):
            with self.loop("k", 0, lists.length(self, value)) as k:
                yield value_of(k), lists.item(self, value, value_of(k))
            return
        items: Any = types.DictItemsIterableType
        over = dicts.over(replace(value, type=items(value.type))).begin(self)
        with self.loop("k", 0, over.length(self)) as k:
            key, item = components(over.at(k, self))
            yield key, item

    def at_key(self, value: LoweredValue, key: LoweredValue) -> LoweredValue:
        """Return `value[key]`."""
        return (dicts.item if is_dict(value.type) else lists.item)(self, value, key)

    def field(self, value: LoweredValue, name: str) -> LoweredValue:
        """Return `value.name`, of an object of a jitclass."""
        return lists.read_field(self, value, name)

    def lacks(self, value: LoweredValue, key: LoweredValue) -> Operand:
        """Return `key not in value`, of a dict."""
        return dicts.lacks(self, value, key)

    def container(self, kind: Type) -> LoweredValue:
        """Return a new list or dict."""
        return dicts.new(self, kind) if is_dict(kind) else lists.build(self, [], kind)

    def add_at_key(self, target: LoweredValue, key: LoweredValue, value: LoweredValue) -> None:
        """Write `target[key] = value`; of a list, `target.append(value)`."""
        if is_dict(target.type):
            dicts.store_item(self, target, key, value)
        else:
            lists.method(self, target, "append", [value], types.none)


def _in_order(kind: Any) -> Type:
    """Return the type of an array's copy in C order."""
    made: Type = kind.copy(layout="C", readonly=False)
    return made


def as_length(value: Length) -> Operand:
    """Return an integer as an operand."""
    return Const(value, INT) if isinstance(value, int) else value
