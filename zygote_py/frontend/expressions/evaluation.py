"""Lowering of each kind of expression, to instructions or to a mere rearrangement of operands.

    Operate(add, ("x", "i"), (float64, float64))      %t0 = float %i : f64
                                                      %t1 = add %x, %t0 : f64
    Attribute("x", "shape")                           (dim %x, 0), (dim %x, 1)

`evaluate` returns the value of an expression as a `LoweredValue`; calls are in `zygote_py.frontend.expressions.calls`.
What cannot be represented is refused here; operations that merely lack a rule are passed through.
"""

from __future__ import annotations

import operator
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.frontend.expressions import arrays, calls, dicts, lists, records, tuples
from zygote_py.frontend.values import (
    INT,
    Emitter,
    LoweredValue,
    OverIndices,
    alternatives,
    check_count,
    component,
    components,
    constant,
    constant_of,
    counter_of,
    dim,
    elements_of,
    fields_of,
    is_dict,
    is_list,
    is_record,
    is_structured,
    is_tuple,
    known,
    leaves_of,
    literal,
    lowered,
    pick,
    plain,
    product,
    shape_of,
    tuple_of,
    undefined,
)
from zygote_py.ir import Const, Operand, Type, components_of, is_scalar, itemsize, ops
from zygote_py.ir.ops import Family

_IN_WORDS = {
    "set": ("a set is not supported", "use a tuple or an array", "{"),
}


def evaluate(at: Emitter, expression: st.Expression, target: st.Variable) -> LoweredValue:
    """Return the value of `expression`, which will be assigned to `target`."""
    type_ = at.types[target]
    match expression:
        case st.Constant(value):
            return constant_of(value, type_, at.loc)
        case st.Operate():
            return _operate(at, expression, type_)
        case st.Call():
            return calls.call(at, expression, target)
        case st.Attribute(value, name):
            found = _attribute(at, at.read(value), name, type_)
            if (array := arrays.flat_of(found)) is not None:
                at.make_iterator(target, OverIndices((), elements_of(type_), array, bare=True))
            return found
        case st.Item():
            return _item(at, expression, type_)
        case st.Build("tuple", items):
            return tuple_of([at.read_whole(item) for item in items])
        case st.Build("list", items):
            return lists.build(at, [at.read(item) for item in items], type_)
        case st.Build("dict", items):
            return dicts.build(at, [at.read(item) for item in items], type_)
        case st.Build(kind, _):
            message, hint, token = _IN_WORDS[kind]
            raise at.refuse(message, hint, token)
        case st.Iterate(value):
            iteration = calls.iteration(at, value)
            return LoweredValue(type_, (), None, (iteration, counter_of(iteration, at)))
        case st.Unpack(value, _):
            return _unpack(at, at.read(value), type_)
        case st.Unknown(kind):
            raise at.refuse(f"`{kind}` is not supported", "write it with numbers, arrays, tuples and loops")
        case _:
            raise at.refuse("this expression is not supported", "write it with numbers, arrays, tuples and loops")


def act(at: Emitter, statement: st.Statement) -> None:
    """Lower a statement without a result."""
    match statement:
        case st.Store():
            arrays.store(at, statement)
        case st.SetAttribute(target, name, value) if is_record(at.types[target]):
            records.assign_field(at, at.read(target), name, at.read(value))
        case st.SetAttribute():
            lists.assign_field(at, statement)
        case st.SideEffect("print", args):
            printed = [at.read(arg) for arg in args]
            records.refuse_parts(at, "print", printed)
            at.emit(print, [calls.whole(at, each, print) for each in printed], types.none)
        case st.SideEffect("delitem", (of, index)) if is_dict(at.types[of]):
            dicts.delete(at, at.read(of), at.read(index))
        case st.SideEffect("delitem"):
            raise at.refuse("`del` of an element is not supported", "use an array of the size that is needed", "del")
        case st.SideEffect(kind):
            raise at.refuse(f"`{kind}` is not supported", "write it with numbers, arrays, tuples and loops")


# ---------------------------------------------------------------------------------------------------- operators


def _operate(at: Emitter, expression: st.Operate, type_: Type) -> LoweredValue:
    if (test := alternatives.is_none(at, expression.op, [at.read_whole(arg) for arg in expression.args])) is not None:
        return LoweredValue(type_, (test,))
    args = [at.read(arg) for arg in expression.args]
    if (literal_value := known(type_)) is not None:
        return literal_value
    records.refuse_records(at, args, getattr(expression.op, "__name__", "this operator"))
    if expression.op is operator.contains:
        return LoweredValue(type_, (_contains(at, args[0], args[1]),))
    if (is_same := _with_none(expression.op, [arg.type for arg in args])) is not None:
        return LoweredValue(type_, (is_same,))
    if any(is_tuple(arg.type) for arg in args):
        return _operate_on_tuples(at, expression.op, args, type_)
    if expression.op in (operator.is_, operator.is_not) and any(isinstance(arg.type, types.EnumMember) for arg in args):
        if args[0].type != args[1].type:  # members of different enumerations differ, though their numbers may be equal
            return LoweredValue(type_, (Const(expression.op is operator.is_not, types.boolean),))
        same = _compare(at, operator.eq, args[0].leaves[0], args[1].leaves[0])
        return LoweredValue(type_, (same if expression.op is operator.is_ else _not(at, same),))
    operands = [at.cast(arg.leaves[0], to) for arg, to in zip(args, expression.types, strict=True) if arg.leaves]
    if len(operands) != len(args):
        raise at.refuse("an operator on functions or modules is not supported", "use numbers")
    own = plain(type_)
    if ops.of(expression.op).family is Family.ARITHMETIC and is_scalar(own):  # the result of `np.where` was not cast
        operands = [at.cast(each, own) if is_scalar(each.type) else each for each in operands]
    if expression.inplace and arrays.is_array(args[0].type):
        return LoweredValue(type_, (arrays.operate_in_place(at, expression.op, operands),))
    return LoweredValue(type_, (scalar(at, expression.op, operands, plain(type_)),))


def _with_none(op: ops.Op, given: list[Type]) -> Const | None:
    """Return what `is` or `is not` yields for None and something else, which may be a function, or for None twice."""
    none = [isinstance(plain(each), types.NoneType) for each in given]
    if op not in (operator.is_, operator.is_not) or not any(none):
        return None
    return Const(all(none) == (op is operator.is_), types.boolean)


def scalar(at: Emitter, op: ops.Op, operands: list[Operand], type_: Type) -> Operand:
    """Return an operator on operands of the types that it takes."""
    if (is_same := _with_none(op, [operand.type for operand in operands])) is not None:
        return is_same
    if op is operator.not_ and not isinstance(operands[0].type, types.Boolean) and is_scalar(operands[0].type):
        return at.emit(operator.eq, (operands[0], constant(0, operands[0].type)), type_, "c")
    if op is operator.pos and operands[0].type == type_ and is_scalar(type_):
        return operands[0]
    is_test = ops.of(op).family in (Family.COMPARISON, Family.IDENTITY_TEST) or op is operator.not_
    return at.emit(op, operands, type_, "c" if is_test else "")


def _operate_on_tuples(at: Emitter, op: ops.Op, args: list[LoweredValue], type_: Type) -> LoweredValue:
    if op is operator.not_:
        return LoweredValue(type_, (Const(not tuples.holds(at, args[0]), types.boolean),))
    for arg in args:
        tuples.refuse_sequence(at, arg)
    if op is operator.add and len(args) == 2:
        return LoweredValue(type_, args[0].leaves + args[1].leaves)
    if op in (operator.eq, operator.ne) and len(args) == 2:
        same = _equal(at, args[0], args[1])
        return LoweredValue(type_, (same if op is operator.eq else _not(at, same),))
    if ops.of(op).comparison and len(args) == 2 and all(is_tuple(arg.type) for arg in args):
        return LoweredValue(type_, (_in_order(at, op, args[0], args[1]),))
    raise at.refuse("this operator on tuples is not supported", "write it with the components")


def _not(at: Emitter, operand: Operand) -> Operand:
    if isinstance(operand, Const):
        return Const(not operand.value, types.boolean)
    return at.emit(operator.not_, (operand,), types.boolean, "c")


def _equal(at: Emitter, a: LoweredValue, b: LoweredValue) -> Operand:
    """Return whether two values are equal, component by component."""
    if not tuples.are_of_one_class(a, b):
        for each in (a, b):
            tuples.refuse_sequence(at, each)
    if is_tuple(a.type) and is_tuple(b.type):
        if len(components(a)) != len(components(b)):
            return Const(False, types.boolean)
        tests = [_equal(at, left, right) for left, right in zip(components(a), components(b), strict=True)]
        return _join(at, operator.and_, tests, True)
    if is_tuple(a.type) or is_tuple(b.type):
        return Const(False, types.boolean)
    return _compare(at, operator.eq, a.leaves[0], b.leaves[0])


def _compare(at: Emitter, op: ops.Op, left: Operand, right: Operand) -> Operand:
    """Lower a comparison of two numbers, cast to one type, or of other values."""
    if is_scalar(left.type) and is_scalar(right.type):
        kinds = ((types.Complex, types.complex128), (types.Float, types.float64))
        both = (left.type, right.type)
        common = next((to for kind, to in kinds if any(isinstance(own, kind) for own in both)), INT)
        if left.type != right.type:
            left, right = at.cast(left, common), at.cast(right, common)
    return at.emit(op, (left, right), types.boolean, "c")


def _in_order(at: Emitter, op: ops.Op, a: LoweredValue, b: LoweredValue) -> Operand:
    """Lower `a < b` of tuples: the first components that differ decide, then the lengths."""
    if not (is_tuple(a.type) and is_tuple(b.type)):
        return _compare(at, op, a.leaves[0], b.leaves[0])
    parts, others = components(a), components(b)
    comparison = ops.of(op).comparison
    assert comparison is not None
    found: Operand = Const(bool(op(len(parts), len(others))), types.boolean)
    for left, right in reversed(list(zip(parts, others, strict=False))):
        strictly = _in_order(at, comparison.strict, left, right)
        same = _join(at, operator.and_, [_equal(at, left, right)] + [found] * (not isinstance(found, Const)), True)
        found = strictly if found == Const(False, types.boolean) else _join(at, operator.or_, [strictly, same], False)
    return found


def _join(at: Emitter, op: ops.Op, tests: list[Operand], empty: bool) -> Operand:
    return reduce(lambda a, b: at.emit(op, (a, b), types.boolean, "c"), tests) if tests else Const(empty, types.boolean)


def _contains(at: Emitter, container: LoweredValue, item: LoweredValue) -> Operand:
    if is_tuple(container.type):
        return _join(at, operator.or_, [_equal(at, item, part) for part in components(container)], False)
    if isinstance(plain(container.type), types.UnicodeType | types.Array):
        return at.emit(operator.contains, (container.leaves[0], item.leaves[0]), types.boolean, "c")
    if is_dict(container.type):
        return dicts.contains(at, container, item)
    if isinstance(container.type, types.LiteralStrKeyDict) and isinstance(item.type, types.StringLiteral):
        return Const(item.type.literal_value in container.type.fields, types.boolean)
    raise at.refuse(
        "`in` is supported for tuples, arrays, dicts and strings only", "write a loop over the elements", "in"
    )


# ----------------------------------------------------------------------------------------- attributes and subscripts


def _attribute(at: Emitter, value: LoweredValue, name: str, type_: Type) -> LoweredValue:
    if (literal_value := known(type_)) is not None:
        return literal_value
    if isinstance(value.type, types.EnumClass) and isinstance(type_, types.EnumMember):
        return constant_of(numba_adapter.object_of(value.type).__members__[name], type_, at.loc)  # type: ignore[attr-defined]
    if isinstance(value.type, types.EnumMember) and name == "value":
        return LoweredValue(type_, value.leaves)
    if isinstance(value.static, ModuleType):
        return constant_of(getattr(value.static, name), type_, at.loc)
    if is_tuple(value.type) and name in fields_of(value.type):
        return component(value, fields_of(value.type).index(name))
    if numba_adapter.receiver_of(value.type) is not None and numba_adapter.receiver_of(type_) is not None:
        return LoweredValue(type_, value.leaves)
    if numba_adapter.is_object(value.type) and name in numba_adapter.fields_of_object(value.type):
        return lists.read_field(at, value, name)
    if not leaves_of(type_):
        return LoweredValue(type_, (), calls.Method(value, name))
    own = plain(value.type)
    if (is_record(own) and name in own.fields) or (is_structured(own) and name in own.dtype.fields):  # type: ignore[attr-defined]
        return records.field(at, value, name)
    if is_structured(own) and name not in ("shape", "ndim", "size"):
        records.refuse_records(at, [value], name)
    match own, name:
        case types.SliceType(), "start" | "stop" | "step" if bound := lists.bound(at, value.leaves[0], name):
            return LoweredValue(INT, (bound,))
        case types.Array(), "shape":
            return LoweredValue(type_, tuple(dim(at, value.leaves[0], axis) for axis in range(own.ndim)))
        case types.Array(), "ndim":
            return LoweredValue(type_, (Const(own.ndim, INT),))
        case types.Array(), "size":
            return LoweredValue(type_, (product(at, shape_of(at, value.leaves[0])),))
        case types.Array(), "itemsize":
            return LoweredValue(type_, (Const(itemsize(own), INT),))
        case types.Array(), "nbytes":
            bytes_ = (product(at, shape_of(at, value.leaves[0])), Const(itemsize(own), INT))
            return LoweredValue(type_, (at.emit(operator.mul, bytes_, INT),))
        case ((types.Array() | types.Number() | types.Boolean()), ("T" | "real" | "imag")):
            function = np.transpose if name == "T" else getattr(np, name)
            if (found := lowered(at, function, [value], {}, type_)) is not None:
                return found
    of_copy = "use `np.ascontiguousarray(x)`, which copies only if needed" if name == "flags" else ""
    raise at.refuse(
        f"the attribute `{name}` of a value of type `{own}` is not supported", of_copy or "compute it another way", name
    )


def _item(at: Emitter, expression: st.Item, type_: Type) -> LoweredValue:
    value = at.read(expression.value)
    if (literal_value := known(type_)) is not None:
        return literal_value
    if is_tuple(value.type):
        return _item_of_tuple(at, value, expression, type_)
    if isinstance(type_, types.EnumMember):
        return constant_of(numba_adapter.object_of(value.type)[expression.static], type_, at.loc)  # type: ignore[index]
    if isinstance(value.type, types.NumberClass):  # the type `float64[:]`, which Numba takes for such an array
        return LoweredValue(type_, undefined(type_))
    if is_list(value.type) and (expression.index is not None or isinstance(expression.static, int)):
        if expression.index is not None:
            return lists.item(at, value, at.read(expression.index))
        return lists.item(at, value, LoweredValue(INT, (literal(expression.static, at.loc),)))
    if is_dict(value.type) and expression.index is not None:
        return dicts.item(at, value, at.read(expression.index))
    if is_dict(value.type):
        dict_type: Any = value.type
        return dicts.item(at, value, constant_of(expression.static, plain(dict_type.key_type), at.loc))
    if isinstance(value.type, types.LiteralStrKeyDict):
        return dicts.item_of_display(at, value, expression.static)
    own = plain(value.type)
    if (is_record(own) or is_structured(own)) and isinstance(expression.static, str):
        return records.field(at, value, expression.static)
    if is_structured(own):
        given = expression.index
        index = arrays.static_index(at, expression.static) if given is None else arrays.index_of(at, at.read(given))
        return records.item(at, value, index, type_)
    flat = arrays.flat_of(value)
    if flat is None and (not value.leaves or not isinstance(own, types.Array | types.UnicodeType)):
        raise at.refuse(f"an element of a value of type `{own}` is not supported", "index arrays and tuples", "[")
    variable = expression.index
    parts = arrays.static_index(at, expression.static) if variable is None else arrays.index_of(at, at.read(variable))
    if flat is not None:
        return LoweredValue(type_, (arrays.item(at, flat, arrays.flat_index(at, flat, parts), plain(type_)),))
    return LoweredValue(type_, (arrays.item(at, value.leaves[0], parts, plain(type_)),))


def _item_of_tuple(at: Emitter, value: LoweredValue, expression: st.Item, type_: Type) -> LoweredValue:
    tuples.refuse_sequence(at, value)
    static = expression.static
    index = None if expression.index is None else at.read(expression.index)
    if index is not None and isinstance(index.type, types.Literal):
        static, index = index.type.literal_value, None
    if index is not None:
        return pick(value, index.leaves[0], at, type_)
    if isinstance(static, slice):
        return tuple_of(components(value)[static])
    if not isinstance(static, int):
        raise at.refuse("this index of a tuple is not supported", "use an integer or a slice of constants", "[")
    return component(value, static)


def _unpack(at: Emitter, value: LoweredValue, type_: Type) -> LoweredValue:
    tuples.refuse_sequence(at, value)
    if is_tuple(value.type):
        return value
    if not (is_list(value.type) or arrays.is_array(value.type)):
        raise at.refuse("only a tuple, a list or an array can be unpacked", "index the value: `a = x[0]`", "=")
    over, places = calls.items_of(at, value), [Const(place, INT) for place in range(len(components_of(type_)))]
    at.emit(check_count, (over.length(at), Const(len(places), INT)), types.none)
    return LoweredValue(type_, tuple(leaf for place in places for leaf in over.at(place, at).leaves))
