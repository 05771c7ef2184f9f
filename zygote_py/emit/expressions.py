"""Python syntax for operations: each instruction that is part of a statement becomes an `ast` expression.

    add(%dx, mul(%dr, %r))              dx + dr * r
    accumulate(%dx, %d, %i, %j)         dx[i, j] += d

An expression has the same meaning in Numba and in Python, and the type that the IR specifies: a float32 constant is
written `np.float32(2.0)`. The only cast that is omitted is that of an int to float64 next to a float64 operand of `+`,
`-`, `*` or `/`, where both perform it implicitly.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.base import structures
from zygote_py.emit.out_of_ssa import Variable
from zygote_py.emit.syntax import containers
from zygote_py.emit.syntax.names import OF_THREADS, Module, called, dotted
from zygote_py.ir import (
    Const,
    Instr,
    InternalError,
    Lanes,
    Operand,
    Routine,
    Type,
    Undef,
    Value,
    components_of,
    names_of,
    ops,
    scalar_type,
)

# Operators whose operands Python casts to floats as a compiled `float` does.
_CASTS_ITSELF = (ops.Family.ARITHMETIC, ops.Family.TRUE_DIVISION)
# Operators that are written `x += y` where the result replaces an operand.
_AUGMENTED = (*_CASTS_ITSELF, ops.Family.WHOLE_DIVISION)
# The maximum number of items in a tuple display: Python builds a longer one from a list, which Numba compiles wrongly.
_LARGEST = 30


@functools.cache
def _parsed(text: str) -> Any:
    return ast.parse(text, mode="eval").body


def _syntax(op: ops.Op) -> Any:
    """Return an expression with the syntax of an operator, of names; None if `op` is not an operator."""
    text = ops.of(op).syntax
    return _parsed(text) if text else None


def _is_operator(op: ops.Op, *families: ops.Family) -> bool:
    record = ops.of(op)
    return bool(record.syntax) and record.family in families


def _class_of(type: Type) -> Any:
    """The class of the NamedTuples or the dataclasses of a type; None for any other type."""
    return type.instance_class if isinstance(type, types.NamedTuple | types.NamedUniTuple) else None


class Expressions:
    """Translates operands and instructions to `ast` nodes.

    Instructions in `inlined` are written at their use. Lists in `passed_on` are written with their element type.
    """

    def __init__(
        self,
        of: Mapping[Value, Variable],
        inlined: frozenset[Value],
        module: Module,
        passed_on: frozenset[Value] = frozenset(),
    ) -> None:
        self.of = of
        self.inlined = inlined
        self.module = module
        self.passed_on = passed_on

    def operand(self, operand: Operand) -> ast.expr:
        """Return a variable, a constant, or the expression of an inlined instruction."""
        match operand:
            case Instr() if operand in self.inlined:
                return self.computed(operand)
            case Value():
                return name(self.of[operand].name)
            case Const(value, type):
                return self.constant(value, type)
            case Undef(type):
                return self.zero(type)
            case _:
                raise InternalError(f"emit: cannot write {operand}")

    def statement(self, instr: Instr) -> ast.stmt:
        """Return the statement that executes `instr`."""
        target = self.of[instr].name
        match instr.op, instr.args:
            case (ops.setitem | ops.initialize | operator.setitem) as op, args:
                array, value, *index = args if op is not operator.setitem else (args[0], args[2], args[1])
                return ast.Assign([self._stored(array, index)], self.operand(value))
            case ops.set_slot, (slots, key, slot):
                return ast.Assign([self._subscript(slots, [key])], self.operand(slot))
            case ops.free_slot, (slots, key):
                return ast.Delete([self._subscript(slots, [key])])
            case ops.accumulate, (array, value, *index) if isinstance(value.type, Lanes):
                before = self._lanes_at(array, index, value.type)
                total = ast.BinOp(before, ast.Add(), self.operand(value))
                return ast.Assign([self._subscript(array, index)], total)
            case ops.accumulate, (array, value, *index):
                sign, value = self._signed(operator.add, value)
                whole = not index and getattr(array.type, "ndim", 0) > 0
                to = name(self.of[array].name) if whole and isinstance(array, Value) else self._subscript(array, index)
                return ast.AugAssign(to, _syntax(sign).op, self.operand(value))
            case op, (first, second) if _is_operator(op, *_AUGMENTED) and _is_number(instr.type):
                if self._is(first, instr):
                    op, second = self._signed(op, second)
                    return ast.AugAssign(name(target), _syntax(op).op, self._beside(second, first, op))
                if self._is(second, instr) and ops.of(op).commutative:
                    return ast.AugAssign(name(target), _syntax(op).op, self._beside(first, second, op))
        computed = self.computed(instr)
        return ast.Expr(computed) if instr.type == types.none else ast.Assign([name(target)], computed)

    def _is(self, operand: Operand, instr: Instr) -> bool:
        return (
            isinstance(operand, Value)
            and operand not in self.inlined
            and self.of[operand] is self.of[instr]
            and operand.type == instr.type
        )

    def computed(self, instr: Instr) -> ast.expr:
        """Return the expression that computes `instr`, without regard to its variable."""
        op, args = instr.op, instr.args
        match _syntax(op), args:
            case ast.BinOp(), (left, right):
                op, right = self._signed(op, right)
                return ast.BinOp(self._base(instr, op), _syntax(op).op, self._beside(right, left, op))
            case ast.Compare(ops=[comparison]), (left, right):
                return ast.Compare(self.operand(left), [comparison], [self.operand(right)])
            case ast.UnaryOp(op=sign), (value,):
                return ast.UnaryOp(sign, self.operand(value))
        if (special := self._special(instr)) is not None:
            return special
        positional = len(args) - len(instr.keywords)
        keywords = [
            ast.keyword(word, self.operand(arg)) for word, arg in zip(instr.keywords, args[positional:], strict=True)
        ]
        operands = list(map(self.operand, args[:positional]))
        if ops.is_method(op):
            return ast.Call(ast.Attribute(operands[0], op.__name__), operands[1:], keywords)
        return self.call(op, *operands, keywords=keywords)

    def _base(self, instr: Instr, op: ops.Op) -> ast.expr:
        """Return the left operand. Python computes a power of constants itself, and rounds it differently."""
        left, right = instr.args
        shown = self._beside(left, right, op)
        is_power = _is_operator(op, ops.Family.POWER) and left.type == types.float64
        return (
            self.call(float, shown) if is_power and _is_literal(shown) and _is_literal(self.operand(right)) else shown
        )

    def _special(self, instr: Instr) -> ast.expr | None:
        """Return the expression of an operation of the IR that has its own syntax, or None."""
        match instr.op, instr.args:
            case ((ops.const | ops.latch), (value,)):
                return self.operand(value)
            case ops.stop, (value,) if _is_number(value.type):
                return self.operand(value)
            case ops.stop, (array,):
                return self._copy(array, instr.type)
            case ops.pack, items:
                return self._construct(instr.type, [self.operand(item) for item in items])
            case ops.getitem, (whole, Const(value=int(number), type=types.Integer())) if hasattr(whole.type, "fields"):
                self._note(whole.type)
                return ast.Attribute(self.operand(whole), names_of(whole.type)[number])
            case ops.getitem, (array, *index) if isinstance(instr.type, Lanes) and index:
                return self._lanes_at(array, index, instr.type)
            case ((ops.getitem | operator.getitem), (array, *index)):
                return self._subscript(array, index)
            case ops.select, (condition, then, orelse):
                return ast.IfExp(self.operand(condition), self.operand(then), self.operand(orelse))
            case ops.element_if, (array, condition, *index):
                return ast.IfExp(self.operand(condition), self._subscript(array, index), self.zero(instr.type))
            case ops.pick, (index, *items):
                return ast.Subscript(
                    ast.Tuple([self._of_any_order(item, instr) for item in items]), self.operand(index)
                )
            case ops.dim, (array, axis):
                return self._dimension(array, axis)
            case (np.real | np.imag) as op, (number,) if _is_number(number.type):
                return ast.Attribute(self.operand(number), op.__name__)
            case np.conjugate, (number,) if _is_number(number.type):
                return ast.Call(ast.Attribute(self.operand(number), "conjugate"), [], [])
            case ops.range_length, bounds:
                return self.call(len, self.call(range, *map(self.operand, bounds)))
            case (ops.record | ops.zeros) as op, shape:
                return self._new(op, instr.type, [self.operand(length) for length in shape])
            case (ops.common_length | ops.fitting_length | ops.check_lengths | ops.spread) as op, lengths:
                return self.call(op, *map(self.operand, lengths))
            case np.copy, (array,):
                return self._copy(array, instr.type)
            case np.reshape, (Value(type=types.Array(layout="A", ndim=ndim)) as array, *numbers) if (
                len(numbers) == ndim
            ):
                return self._contiguous(array, numbers)
            case (np.reshape | np.broadcast_to | np.transpose) as op, (array, *numbers) if numbers:
                taken = list(map(self.operand, numbers))
                return self.call(op, self.operand(array), taken[0] if len(taken) == 1 else ast.Tuple(taken))
            case (np.reshape | np.broadcast_to) as op, (array,):
                return self.call(op, self.operand(array), ast.Tuple([]))
            case np.transpose, (array,):
                return ast.Attribute(self.operand(array), "T")
            case ops.view, (source,):
                return self._view(source, instr.type)
            case ops.stack, ():
                return self.zero(instr.type) if instr in self.passed_on else ast.List([])
            case np.zeros_like, (Value(type=types.List()) as values,):
                return self._zeros_in_list(self.operand(values), values.type)
            case (np.zeros_like | np.empty_like) as op, (
                Value(type=types.Array(aligned=False, layout="A" | "C")) as array,
            ):
                maker = ops.zeros if op is np.zeros_like else ops.record
                return self._new(maker, instr.type, [ast.Attribute(self.operand(array), "shape")])
            case ops.copied, (values,):
                return ast.Subscript(self.operand(values), ast.Slice(None, None, None))
            case ops.push, (values, value):
                return ast.Call(ast.Attribute(self.operand(values), "append"), [self.operand(value)], [])
            case ops.pop, (values,):
                return ast.Call(ast.Attribute(self.operand(values), "pop"), [], [])
            case ops.taken, (value, Const(value=str(path))):
                return containers.taken(self.operand(value), path, self.call)
            case ops.new_records, (Const(value=dtype), *lengths):
                named = ast.Name(self.module.value(dtype, "record_type"))
                return self.call(np.zeros, ast.Tuple(list(map(self.operand, lengths))), named)
            case ops.given, (Const(value=template), *parts):
                return containers.given(template, list(map(self.operand, parts)), self.call, self._construct)
            case ops.slot_of, (slots, key):
                return self._subscript(slots, [key])
            case ops.find_slot, (slots, key):
                return ast.Call(ast.Attribute(self.operand(slots), "get"), [self.operand(key), ast.Constant(-1)], [])
            case ops.keep_slot, (slots, key, slot):
                given = [self.operand(key), self.operand(slot)]
                return ast.Call(ast.Attribute(self.operand(slots), "setdefault"), given, [])
            case op, args if op in OF_THREADS:
                return self.module.of_threads(op, args, instr.type, list(map(self.operand, args)))
            case op, _ if op in ops.OWN:
                raise InternalError(f"emit: cannot write {ops.name_of(op)} of {len(instr.args)} operands")
            case _:
                return None

    def _note(self, type: Type) -> None:
        self.module.has_dataclasses |= structures.is_structure(_class_of(type))

    def _construct(self, type: Any, items: list[ast.expr]) -> ast.expr:
        """Return the construction of a tuple, a NamedTuple or a dataclass."""
        self._note(type)
        cls = _class_of(type)
        if structures.is_structure(cls) and not structures.only_assigns(cls):
            return self.call(structures.new, dotted(self.module.callable(cls)), ast.Tuple(items))
        if cls is not None:
            return self.call(cls, *items)
        whole: ast.expr = ast.Tuple(items[:_LARGEST])
        for start in range(_LARGEST, len(items), _LARGEST):
            whole = ast.BinOp(whole, ast.Add(), ast.Tuple(items[start : start + _LARGEST]))
        return whole

    def _signed(self, op: ops.Op, right: Operand) -> tuple[ops.Op, Operand]:
        """Write `a - b` for `a + -b`, and `a + b` for `a - -b`; the results are identical."""
        match op, right:
            case ((operator.add | operator.sub), Instr(op=operator.neg, args=(value,))):
                if right in self.inlined and value.type == right.type:
                    return operator.sub if op is operator.add else operator.add, value
        return op, right

    def call(self, op: Callable[..., object], *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
        """Return a call of `op` by its name in the module."""
        if isinstance(op, Routine) and op.in_threads:
            return self.call(ops.in_threads, dotted(self.module.callable(op)), *args)
        return called(self.module.callable(op), *args, keywords=keywords)

    def _beside(self, operand: Operand, other: Operand, op: ops.Op) -> ast.expr:
        """Return an operand of `op`, given the other operand."""
        match operand, other:
            case Const(complex() as value, types.complex128), Value(type=types.complex128):
                if _is_operator(op, *_CASTS_ITSELF, ops.Family.POWER) and repr(value) == repr(complex(value.real)):
                    return self._real(value.real)  # z + 1.0 rather than z + complex(1.0, 0.0)
        if isinstance(operand, Instr) and self._casts(operand) and _is_operator(op, *_CASTS_ITSELF):
            (whole,) = operand.args
            implied = isinstance(other, Value | Const) and other.type == types.float64
            if implied and isinstance(whole.type, types.Integer) and not self._casts(other):
                return self.operand(whole)
        return self.operand(operand)

    def _casts(self, operand: Operand) -> bool:
        """Return whether `operand` would also be written without its cast."""
        return isinstance(operand, Instr) and operand in self.inlined and operand.op is float

    def _stored(self, array: Operand, index: list[Operand]) -> ast.expr:
        """Return the target of an assignment: without an index the whole array, written `[:]` if it has axes."""
        if index or getattr(array.type, "ndim", 0) == 0:
            return self._subscript(array, index)
        if array in self.inlined:
            return self.operand(array)
        return ast.Subscript(self.operand(array), ast.Slice(None, None, None))

    def _subscript(self, array: Operand, index: list[Operand]) -> ast.Subscript:
        items = [self._index(item) for item in index]
        return ast.Subscript(self.operand(array), items[0] if len(items) == 1 else ast.Tuple(items))

    def _lanes_at(self, array: Operand, index: list[Operand], kind: Lanes) -> ast.expr:
        """Return the numbers at an index, which are those at the end of an array with one more axis."""
        if not isinstance(array.type, types.Array):
            return self._subscript(array, index)
        return self.call(ops.lanes_at, self.operand(array), ast.Constant(kind.count), *map(self.operand, index))

    def _index(self, item: Operand) -> ast.expr:
        if not (isinstance(item, Instr) and item in self.inlined and item.op is builtins.slice):
            return self.operand(item)
        bounds: list[ast.expr | None] = [
            None if isinstance(arg, Const) and arg.value is None else self.operand(arg) for arg in item.args
        ]
        return ast.Slice(None, bounds[0], None) if len(bounds) == 1 else ast.Slice(*bounds)

    def _dimension(self, array: Operand, axis: Operand) -> ast.expr:
        if not isinstance(axis, Const) or not isinstance(axis.value, int):
            raise InternalError("emit: the axis of dim is not a constant")
        if axis.value == 0 and isinstance(array, Value) and getattr(array.type, "ndim", 0) == 1:
            return self.call(len, self.operand(array))
        return ast.Subscript(ast.Attribute(self.operand(array), "shape"), ast.Constant(axis.value))

    def _new(self, op: ops.Op, type: Type, shape: list[ast.expr]) -> ast.expr:
        """Return a new array of a type: a transpose for Fortran order; C order is valid for any layout."""
        if not isinstance(type, types.Array):
            raise InternalError(f"emit: a record cannot be of type {type}")
        transposed = type.layout == "F"
        lengths = shape[::-1] if transposed else shape
        if isinstance(type.dtype, Lanes):
            lengths = [*lengths, ast.Constant(type.dtype.count)]
        maker = self.module.callable(np.zeros) if op is ops.zeros else self.module.maker_of_arrays()
        made = called(maker, lengths[0] if len(lengths) == 1 else ast.Tuple(lengths), self._dtype(type.dtype))
        return ast.Attribute(made, "T") if transposed else made

    def _copy(self, array: Operand, type: Type) -> ast.expr:
        """Return a new array of the given type with the elements of `array`."""
        assert isinstance(type, types.Array)
        assert isinstance(array.type, types.Array)
        source, dtype, layout = self.operand(array), array.type.dtype, array.type.layout
        if dtype != type.dtype:
            cast = ast.Call(ast.Attribute(source, "astype"), [self._dtype(type.dtype)], [])
            # `astype` preserves Fortran order.
            return cast if (layout == "F") == (type.layout == "F") else _reordered(cast, type)
        return self.call(np.copy, source) if (layout, type.layout) == ("C", "C") else _reordered(source, type)

    def _of_any_order(self, item: Operand, chosen: Instr) -> ast.expr:
        """Return an item of a tuple of which one is chosen: Numba may know an array's order, and needs one type."""
        shown = self.operand(item)
        is_of_any = isinstance(chosen.type, types.Array) and chosen.type.layout == "A"
        return ast.Subscript(shown, ast.Slice(None, None, ast.Constant(1))) if is_of_any else shown

    def _contiguous(self, array: Operand, lengths: Sequence[Operand]) -> ast.expr:
        """Return the elements of a field, which Numba does not know to be in C order, in their shape."""
        if len(lengths) == 1:
            return self.call(ops.contiguous, self.operand(array))
        shape = ast.Tuple(list(map(self.operand, lengths)))
        is_field = isinstance(array, Instr) and array.op is ops.getitem and all(isinstance(n, Const) for n in lengths)
        if is_field:
            return self.call(ops.contiguous, self.operand(array), shape)
        return self.call(np.reshape, self.call(ops.contiguous, self.operand(array)), shape)

    def _view(self, source: Operand, type: Type) -> ast.expr:
        """Return the bytes of an array, or of a number, as numbers of another type."""
        shown, dtype = self.operand(source), type.dtype if isinstance(type, types.Array) else type
        if not isinstance(source.type, types.Array):  # Python's numbers do not have this method
            shown = ast.Call(self._dtype(source.type), [shown], [])
        return ast.Call(ast.Attribute(shown, "view"), [self._dtype(dtype)], [])

    def _dtype(self, type: Type) -> ast.expr:
        attribute = "bool_" if type == types.boolean else str(scalar_type(type))
        return ast.Attribute(name(self.module.alias("np")), attribute)

    def constant(self, value: object, type: Type) -> ast.expr:
        """Return `value` as a constant of exactly this type."""
        if isinstance(type, types.Literal):
            type = type.literal_type
        match type:
            case Lanes(dtype=of, count=count):
                return self.call(ops.lanes, *(self.constant(value, of) for _ in range(count)))
            case types.Boolean():
                return ast.Constant(bool(value))
            case types.Float() if isinstance(value, int | float | np.number):
                written = self._real(float(value))
                return written if type == types.float64 else ast.Call(self._dtype(type), [written], [])
            case types.Complex() if isinstance(value, int | float | complex | np.number):
                number = complex(value)
                if type == types.complex128:
                    return self._complex(number)
                is_real = repr(number) == repr(complex(number.real))
                return ast.Call(self._dtype(type), [self._real(number.real) if is_real else self._complex(number)], [])
            case types.Integer() if isinstance(value, int | np.integer):
                written = signed(ast.Constant(abs(int(value))), int(value) < 0)
                return written if type == types.int64 else ast.Call(self._dtype(type), [written], [])
            case types.BaseTuple() if isinstance(value, tuple):
                items = [self.constant(*each) for each in zip(value, components_of(type), strict=True)]
                if not hasattr(value, "_fields"):
                    return ast.Tuple(items)
        if value is None or value is Ellipsis or isinstance(value, str | bytes):
            return ast.Constant(value)
        if callable(value):
            return dotted(self.module.callable(value))
        return name(self.module.value(value, "constant"))

    def _real(self, value: float) -> ast.expr:
        if math.isnan(value):
            return ast.Attribute(name(self.module.alias("np")), "nan")
        negative = math.copysign(1.0, value) < 0
        if math.isinf(value):
            return signed(ast.Attribute(name(self.module.alias("np")), "inf"), negative)
        return signed(ast.Constant(abs(value)), negative)

    def _complex(self, value: complex) -> ast.expr:
        """Write `2j`, `1.0 - 2j`, or `complex(a, b)` where the sum would lose an infinity or the sign of a zero."""
        real, imag = value.real, value.imag
        part = complex(0.0, abs(imag))
        is_finite = math.isfinite(real) and math.isfinite(imag)
        if is_finite and repr(part) == repr(value):
            return ast.Constant(part)
        negative = imag < 0.0
        if is_finite and imag and repr(real - part if negative else real + part) == repr(value):
            return ast.BinOp(self._real(real), ast.Sub() if negative else ast.Add(), ast.Constant(part))
        return self.call(complex, self._real(real), self._real(imag))

    def _zeros_in_list(self, values: ast.expr, type: Type) -> ast.expr:
        """Return a list as long as another, with zeros for its numbers and for those in its arrays and lists."""
        assert isinstance(type, types.List)
        if isinstance(type.dtype, types.Number):
            return ast.BinOp(ast.List([self.zero(type.dtype)]), ast.Mult(), self.call(len, values))
        each = ast.Name("each")
        item = (
            self._zeros_in_list(each, type.dtype)
            if isinstance(type.dtype, types.List)
            else self.call(np.zeros_like, each)
        )
        return ast.ListComp(item, [ast.comprehension(each, values, [], 0)])

    def zero(self, type: Type) -> ast.expr:
        """Return a placeholder of this type, for a variable that is never read before it is assigned."""
        match type:
            case types.Boolean() | types.Number() | Lanes():
                return self.constant(False if type == types.boolean else 0, type)
            case types.UnicodeType():
                return ast.Constant("")
            case types.Array():
                if not type.aligned:
                    return self._unaligned(type)
                return self._nothing(type)
            case types.List():
                return ast.Subscript(ast.List([self.zero(type.dtype)]), ast.Slice(None, ast.Constant(0), None))
            case types.DictType():
                return self.call(ops.no_slots, self.zero(type.key_type))
            case types.BaseTuple():
                return self._construct(type, [self.zero(item) for item in components_of(type)])
            case _ if type == types.none:
                return ast.Constant(None)
            case _:
                raise InternalError(f"emit: there is no zero of type {type}")

    def _nothing(self, type: types.Array) -> ast.expr:
        """Return an array without elements; if it must not be written to, one that the module has, as Numba sees it."""
        if type.layout == "F" and type.ndim == 1:  # a column of a matrix, for Numba
            column: list[ast.expr] = [ast.Slice(None, None, None), ast.Constant(0)]
            return ast.Subscript(self._empty(type.copy(ndim=2), (0, 1)), ast.Tuple(column))
        made = self._empty(type.copy(layout="C") if type.layout == "A" else type, (0,) * type.ndim)
        if type.layout != "A":
            return made
        every_other: list[ast.expr] = [ast.Slice(None, None, ast.Constant(2))] * type.ndim
        return ast.Subscript(made, every_other[0] if type.ndim == 1 else ast.Tuple(every_other))

    def _empty(self, type: types.Array, shape: tuple[int, ...]) -> ast.expr:
        if type.mutable:
            return self._new(ops.record, type, list(map(ast.Constant, shape)))
        is_turned = type.layout == "F" and type.ndim > 1
        held = ast.Name(self.module.value(_read_only(str(type.dtype), shape[::-1] if is_turned else shape), "nothing"))
        return ast.Attribute(held, "T") if is_turned else held

    def _unaligned(self, type: types.Array) -> ast.expr:
        """Return an array without elements that is a field of an array of records, which is not aligned for Numba."""
        packed = np.dtype([("field", type.dtype.name if type.dtype != types.boolean else "?")])
        empty = ast.Tuple([ast.Constant(0)] * type.ndim)
        made = self.call(np.zeros, empty, ast.Name(self.module.value(packed, "record_type")))
        return ast.Subscript(made, ast.Constant("field"))


@functools.cache
def _read_only(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array of a shape that must not be written to, always the same one."""
    made = np.empty(shape, dtype)
    made.flags.writeable = False
    return made


def name(identifier: str) -> ast.Name:
    """Return a variable, to be read or assigned."""
    return ast.Name(identifier)


def signed(value: ast.expr, negative: bool) -> ast.expr:
    """Return `value` or `-value`; a negative number is an operation, so that astor adds parentheses where needed."""
    return ast.UnaryOp(ast.USub(), value) if negative else value


def negated(test: ast.expr) -> ast.expr:
    """Return `not test`, with the `not` moved inwards."""
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.BoolOp(op, values):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), [negated(value) for value in values])
        case _:
            return ast.UnaryOp(ast.Not(), test)


def _reordered(array: ast.expr, type: types.Array) -> ast.expr:
    """Return a copy of an array in C or Fortran order. Numba's method `copy` returns C order."""
    if type.layout == "C":
        return ast.Call(ast.Attribute(array, "copy"), [], [])
    return ast.Attribute(ast.Call(ast.Attribute(ast.Attribute(array, "T"), "copy"), [], []), "T")


def _is_number(type: Type) -> bool:
    return isinstance(type, types.Number)


def _is_literal(shown: ast.expr) -> bool:
    """Return whether an expression is a number, also a negative one."""
    return isinstance(shown.operand if isinstance(shown, ast.UnaryOp) else shown, ast.Constant)
