"""Calls: those that the front end lowers itself; all other callables become instructions.

    range(0, n)          three operands: 0, n, 1            len(x)       dim %x, 0
    float(i)             float %i : f64                     bool(c)      %c, if it is a bool already
    max((a, b))          max %a, %b                         Point(a, b)  (a, b)

Arguments are cast to the types that Numba chose for the call. Whether a callable has a rule is not checked here.
"""

from __future__ import annotations

import builtins
import cmath
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numba
import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints.analysis import kinds
from zygote_py.base import checkpoints, statements as st
from zygote_py.frontend.expressions import arrays, dicts, list_copies, lists, records, tuples
from zygote_py.frontend.expressions.arrays import is_array
from zygote_py.frontend.values import (
    INT,
    RANGES,
    ZERO,
    Emitter,
    Iteration,
    LoweredValue,
    OverArray,
    OverCheckpointed,
    OverEnumerate,
    OverIndices,
    OverRange,
    OverTuple,
    OverZip,
    by_position,
    check_out,
    check_positive,
    components,
    constant,
    constant_of,
    dict_of,
    dim,
    elements_of,
    fields_of,
    held_in,
    is_dict,
    is_list,
    is_structured,
    is_tuple,
    join,
    known,
    leaves_of,
    lowered,
    method_of,
    plain,
    shape_of,
    split,
    unsupported,
)
from zygote_py.ir import Const, Foreign, Operand, Special, Type, components_of, copied_type, is_scalar, ops
from zygote_py.ir.analysis import reach
from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.ir.special_functions import is_of_scipy, of_function, of_pointer

ops.operation(numba.literal_unroll, numba.prange, safe_in_try=True)


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A method that was looked up and is about to be called."""

    value: LoweredValue
    name: str


def call(at: Emitter, expression: st.Call, target: st.Variable) -> LoweredValue:
    """Return the value of a call that will be assigned to `target`."""
    type_ = at.types[target]
    callee_type = at.types[expression.callee]
    callee = at.read(expression.callee).static
    if callee is None or isinstance(callee_type, types.NumberClass):
        callee = numba_adapter.object_of(callee_type)
    if isinstance(callee_type, types.ExternalFunctionPointer) and callable(callee):
        callee = callee if of_pointer(callee) is not None else _foreign(callee)
    if numba_adapter.made_by(callee_type) is not None:
        return lists.make_object(at, type_)  # whose `__init__` takes the arguments
    makes = numba_adapter.constructed_by(callee_type) is not None or numba_adapter.is_closure(type_)
    read = at.read_whole if makes or isinstance(callee_type, numba_adapter.CustomRuleType) else at.read
    args, arg_types = [read(arg) for arg in expression.args], expression.types
    if callee in (len, tuple, min, max, sum, enumerate, zip) and args:
        tuples.refuse_sequence(at, args[0])
    if expression.star is not None:
        args += components(at.read(expression.star))
    keywords = {name: read(arg) for name, arg in expression.keywords}
    if isinstance(callee_type, numba_adapter.CustomRuleType):
        return _stop(at, (args or list(keywords.values()))[0], type_)
    if (literal_value := known(type_)) is not None:
        return literal_value
    if isinstance(callee_type, numba_adapter.TransformType):
        held = (args or list(keywords.values()))[0].leaves
        if callee_type.copies and any(map(numba_adapter.is_object, held_in(type_))):
            message = "the pullback of a function that captures a list or a dict of objects is not supported here"
            raise at.refuse(message, "capture the fields, in lists of their own", "pullback")
        return LoweredValue(type_, tuple(_copied(at, leaf) for leaf in held) if callee_type.copies else held)
    if makes:
        return _construct(at, args, keywords, expression.types, type_)
    if isinstance(type_, types.ExceptionInstance):
        return LoweredValue(type_, ())
    if not keywords and (function := _of_scipy(callee, args, expression.types, type_)) is not None:
        return _call_special(at, function, args, type_)
    if (callee is type and len(args) == 1 and not leaves_of(type_)) or isinstance(type_, types.DType):
        return LoweredValue(type_, (), numba_adapter.object_of(type_))
    if isinstance(callee, Method) and dict_of(callee.value.type) is not None:
        return dicts.method(at, callee.value, callee.name, args, type_)
    if is_dict(type_) and (not args or getattr(callee, "name", "") == "empty"):
        return dicts.new(at, type_)  # `dict()`, `Dict()` and `Dict.empty(key_type, value_type)`
    if isinstance(callee, Method) and is_list(callee.value.type):
        return lists.method(at, callee.value, callee.name, args, type_)
    if is_list(type_) and (not args or getattr(callee, "name", "") == "empty_list"):
        return lists.build(at, [], type_)  # `list()`, `List()` and `List.empty_list(type)`
    if (iterable := _iterable(at, expression, callee, args, target)) is not None:
        return iterable
    if isinstance(callee, Method):
        args, arg_types = [callee.value, *args], (callee.value.type, *arg_types)
        callee = _function_of(at, callee)
    args, keywords = by_position(callee, args, keywords)
    if (records_made := records.made(at, callee, args, keywords, type_)) is not None:
        return records_made
    if callee is not len:
        records.refuse_records(at, [*args, *keywords.values()], _name(callee))
    if not keywords and (simple := _simple(at, callee, args, arg_types, type_)) is not None:
        return simple
    new = _into(at, callee, args, keywords, type_) or lowered(at, callee, args, keywords, type_)
    return new or _instruction(at, callee, args, keywords, arg_types, type_)


def _copied(at: Emitter, leaf: Operand) -> Operand:
    """Return a copy of a captured variable, or a part of one, for `SNAPSHOT`."""
    if isinstance(leaf.type, types.Array):
        return at.emit(np.copy, (leaf,), copied_type(leaf.type))
    return list_copies.with_own_items(at, leaf)


def _iterable(
    at: Emitter, expression: st.Call, callee: object, args: list[LoweredValue], target: st.Variable
) -> LoweredValue | None:
    """Return what a loop goes over, or how long that is; None for the results of other calls."""
    type_ = at.types[target]
    match callee:
        case builtins.range | numba.prange:
            return _range(at, args, type_)
        case numba.literal_unroll:
            return args[0]
        case numba_adapter.length_of_iterator:
            over = iteration(at, expression.args[0], uses_up=False)
            if isinstance(over, OverRange):
                return LoweredValue(type_, (at.emit(ops.range_length, (over.start, over.stop, over.step), INT),))
            return LoweredValue(type_, (over.length(at),))
        case checkpoints.checkpointed:
            at.make_iterator(target, _over_checkpointed(at, expression))
            return replace(args[0], iterator=None)  # that of the result is its own
        case builtins.zip:
            parts = tuple(iteration(at, arg) for arg in expression.args)
            return _iterator(at, target, OverZip(parts, elements_of(type_)))
        case builtins.enumerate:
            return _iterator(at, target, _over_enumerate(at, expression, args, type_))
        case np.ndindex:
            return _iterator(at, target, OverIndices(tuple(arrays.lengths(at, *args)), elements_of(type_)))
        case np.ndenumerate:
            (array,) = args[0].leaves
            return _iterator(at, target, OverIndices(shape_of(at, array), elements_of(type_), array))
        case _:
            return None


def _function_of(at: Emitter, method: Method) -> Callable[..., object]:
    if (function := method_of(method.value.type, method.name)) is None:
        raise at.refuse(
            f"the method `{method.name}` of a value of type `{plain(method.value.type)}` is not supported",
            "call a function instead",
            method.name,
        )
    return function


def _of_scipy(callee: object, args: list[LoweredValue], arg_types: tuple[Type, ...], type_: Type) -> Special | None:
    """Return the function of SciPy that is called, by a pointer or by its name."""
    found = of_pointer(callee)
    if found is None and is_of_scipy(callee) and all(is_scalar(plain(arg.type)) for arg in args):
        found = of_function(callee, tuple(map(plain, arg_types)), plain(type_))
    return found


def _call_special(at: Emitter, function: Special, args: list[LoweredValue], type_: Type) -> LoweredValue:
    """Return the call of a function of SciPy; a last argument that these functions ignore is omitted."""
    operands = [at.cast(arg.leaves[0], kind) for arg, kind in zip(args, function.argument_types, strict=False)]
    return LoweredValue(plain(type_), (at.emit(function, operands, function.result_type),))


_pointers: dict[int, Foreign] = {}  # C functions cannot be hashed, and are kept by identity


def _foreign(pointer: Callable[..., object]) -> Foreign:
    """Return a C function as a callable of the IR."""
    if id(pointer) not in _pointers:
        name = _name(pointer)
        _pointers[id(pointer)] = Foreign(pointer, name if name.isidentifier() else "function")
    return _pointers[id(pointer)]


def _simple(
    at: Emitter, callee: object, args: list[LoweredValue], arg_types: tuple[Type, ...], type_: Type
) -> LoweredValue | None:
    """Lower the calls that are not simply instructions of the same name."""
    if not args:
        return None
    first, own = args[0], plain(type_)
    if is_tuple(first.type):
        return tuples.call(at, callee, args, type_)
    found: Operand | None = None
    match callee, plain(first.type):
        case builtins.bool, types.NoneType():
            found = Const(False, types.boolean)
        case builtins.bool, types.Number() | types.Boolean():
            found = at.cast(first.leaves[0], types.boolean)
        case builtins.bool, types.List() | types.ListType():
            found = at.emit(operator.ne, (lists.length(at, first), ZERO), types.boolean, "c")
        case ((builtins.bool | builtins.len), own_type) if dict_of(own_type) is not None:
            found = dicts.length(at, first)
            found = found if callee is len else at.emit(operator.ne, (found, ZERO), types.boolean, "c")
        case builtins.len, types.LiteralStrKeyDict():
            found = Const(len(first.type), INT)  # type: ignore[arg-type]
        case builtins.len, types.Array():
            found = dim(at, first.leaves[0], 0)
        case builtins.len, types.List() | types.ListType():
            found = lists.length(at, first)
        case builtins.len, kind if kind in RANGES:
            found = at.emit(ops.range_length, first.leaves, INT)
        case ((builtins.min | builtins.max), _) if len(args) > 1 and is_scalar(own):
            found = at.emit(callee, [at.cast(arg.leaves[0], own) for arg in args], own)
        case np.where, _ if len(args) == 3 and is_scalar(own):
            condition = at.cast(first.leaves[0], types.boolean)
            then, orelse = (at.cast(arg.leaves[0], own) for arg in args[1:])
            found = at.emit(ops.select, (condition, then, orelse), own)
        case cmath.polar, _:
            radius, phase = leaves_of(type_)
            return LoweredValue(type_, (at.emit(abs, first.leaves, radius), at.emit(cmath.phase, first.leaves, phase)))
        case builtins.divmod, _ if len(args) == 2 and is_tuple(type_):
            operands = [at.cast(arg.leaves[0], to) for arg, to in zip(args, arg_types, strict=True)]
            both = zip((operator.floordiv, operator.mod), leaves_of(type_), strict=True)
            return LoweredValue(type_, tuple(at.emit(op, operands, leaf) for op, leaf in both))
        case _, types.Number() | types.Boolean() if len(args) == 1:
            if isinstance(ops.properties(callee).cast_to, types.Number):
                found = at.cast(first.leaves[0], own)
    return None if found is None else LoweredValue(own, (found,))


def retype_numbers(
    blocks: Iterable[st.TypedBlock],
    types_: dict[st.Variable, Type],
    return_type: Type,
    numbers: Iterable[st.Variable] = (),
) -> Type:
    """Type the results of `np.where` on numbers, and `numbers`, as such, in `types_`; return the return type, changed.

    Numba types such a result as a zero-dimensional array, which everything but indexing treats like a number.
    """
    starts = list(numbers)
    users: defaultdict[st.Variable | None, list[st.Variable]] = defaultdict(list)
    results: set[st.Variable] = set()
    for block in blocks:
        if isinstance(block.ending, st.Return):
            results.add(block.ending.value)
        for statement in block.statements:
            match statement:
                case st.Assign(target, st.Call(callee, types=argument_types)):
                    is_where = numba_adapter.object_of(types_[callee]) is np.where
                    if is_where and all(is_scalar(plain(each)) for each in argument_types):
                        starts.append(target)
                case st.Assign(target, st.Copy(source)):
                    users[source].append(target)
                case st.Assign(target, st.Phi(incoming)):
                    for _, merged in incoming:
                        users[merged].append(target)

    def retyped(variables: Iterable[st.Variable]) -> Iterator[st.Variable]:
        for variable in variables:
            if isinstance(own := types_[variable], types.Array) and own.ndim == 0:
                types_[variable] = own.dtype
                yield variable

    found = set(reach(retyped(starts), lambda variable: retyped(users[variable])))
    return return_type.dtype if isinstance(return_type, types.Array) and found & results else return_type


def _instruction(
    at: Emitter,
    callee: object,
    args: list[LoweredValue],
    keywords: dict[str, LoweredValue],
    arg_types: tuple[Type, ...],
    type_: Type,
) -> LoweredValue:
    if not callable(callee):
        raise at.refuse("a call of this object is not supported", "call a function by its name")
    if arg_types and isinstance(arg_types[-1], types.StarArgTuple | types.StarArgUniTuple):
        arg_types = (*arg_types[:-1], *components_of(arg_types[-1]))
    if not keywords and len(arg_types) == len(args):
        args = [at.cast_bundle(arg, to) for arg, to in zip(args, arg_types, strict=True)]
    name = _name(callee)
    if callee is map or callee is filter:
        instead = "`[f(v) for v in x]`" if callee is map else "`[v for v in x if f(v)]`"
        raise at.refuse(f"`{name}` is not supported", f"write {instead}", name)
    records.refuse_parts(at, name, (*args, *keywords.values()))
    operands: list[Operand] = [whole(at, arg, callee) for arg in (*args, *keywords.values())]
    if not leaves_of(type_):
        raise at.refuse(f"`{name}` is not supported", "use numbers, arrays and tuples", name)
    if kind := unsupported(type_):
        raise at.refuse(f"`{name}` gives {kind}, which is not supported", "use numbers, arrays and tuples", name)
    value = at.emit(callee, operands, plain(type_), keywords=tuple(keywords))
    return split(at, value, value.type)


def whole(at: Emitter, bundle: LoweredValue, callee: object) -> Operand:
    """Return an argument of `callee`, or a result, as one operand, tuples put together again."""

    def leaf(part: LoweredValue) -> Operand:
        records.refuse_dtype(at, part.type, _name(callee))
        if isinstance(part.type, types.DType | types.NumberClass):
            dtype = numba_adapter.object_of(part.type)
            return Const(dtype.type if isinstance(dtype, np.dtype) else dtype, part.type)
        if len(part.leaves) != 1:
            raise at.refuse(
                f"this argument of `{_name(callee)}` is not supported", "pass numbers and arrays", _name(callee)
            )
        return part.leaves[0]

    return join(at, bundle, leaf)


def _into(
    at: Emitter, callee: object, args: list[LoweredValue], keywords: dict[str, LoweredValue], type_: Type
) -> LoweredValue | None:
    """Lower a call of a function that stores its result to an output array; None if it has none."""
    operation = ops.properties(callee)
    taken, (out, *_) = args[: operation.inputs], [*args[operation.inputs :], None]
    if "out" in keywords and is_array(keywords["out"].type):
        taken, out = args, keywords["out"]
        keywords = {name: arg for name, arg in keywords.items() if name != "out"}
    elif not operation.inputs or len(args) != operation.inputs + 1:
        return None
    if out is None or not is_array(out.type):
        return None
    assert callable(callee)
    computed = numba_adapter.result_type(callee, [plain(arg.type) for arg in taken])
    if computed is None or keywords or any(len(arg.leaves) != 1 for arg in taken):
        name = getattr(callee, "__name__", "")
        raise at.refuse("an array for the result is not supported here", "assign the result: `y[:] = f(x)`", name)
    (array,) = out.leaves
    operands = [arg.leaves[0] for arg in taken]
    arrays.check_overlap(at, array, operands)
    if operation.scalar_product and any(arrays.shares_base(array, operand) for operand in operands):
        raise at.refuse("`np.dot` writes to an array that it reads", "give it another array for the result", "dot")
    result = array.type
    if operation.converts_output and isinstance(result, types.Array) and isinstance(computed, types.Array):
        if result.ndim != computed.ndim:
            raise at.refuse("the array for the result does not have its shape", "give it one that does", "out")
        computed = computed.copy(dtype=result.dtype)
    made = at.emit(callee, operands, computed)
    if operation.converts_output:
        for own, given in zip(shape_of(at, made), shape_of(at, array), strict=True):
            at.emit(check_out, (own, given), types.none)
    arrays.fill(at, array, LoweredValue(computed, (made,)))
    return LoweredValue(plain(type_), out.leaves)


def _name(callee: object) -> str:
    return getattr(callee, "__name__", str(callee))


def _construct(
    at: Emitter, args: list[LoweredValue], keywords: dict[str, LoweredValue], arg_types: tuple[Type, ...], type_: Type
) -> LoweredValue:
    """Return a NamedTuple or a dataclass; `arg_types` are in the order of the fields, those not given `Omitted`."""
    leaves: list[Operand] = []
    given = dict(zip(fields_of(type_), args, strict=False)) | keywords
    for index, (field, part) in enumerate(zip(fields_of(type_), components_of(type_), strict=True)):
        if field not in given:
            omitted = arg_types[index]
            assert isinstance(omitted, types.Omitted)
            given[field] = constant_of(omitted.value, part, at.loc)
        leaves += at.cast_bundle(given[field], part).leaves
    return LoweredValue(type_, tuple(leaves))


# ----------------------------------------------------------------------------------------------------- iteration


def _range(at: Emitter, args: list[LoweredValue], type_: Type) -> LoweredValue:
    element = RANGES[type_]
    operands = [at.cast(arg.leaves[0], element) for arg in args]
    zero, one = constant(0, element), constant(1, element)
    match operands:
        case [stop]:
            return LoweredValue(type_, (zero, stop, one))
        case [start, stop]:
            return LoweredValue(type_, (start, stop, one))
        case _:
            return LoweredValue(type_, tuple(operands))


def _iterator(at: Emitter, target: st.Variable, over: Iteration) -> LoweredValue:
    """Return an iterator over which no loop has begun."""
    at.make_iterator(target, over)
    return LoweredValue(at.types[target], ())


def _over_enumerate(at: Emitter, expression: st.Call, args: list[LoweredValue], type_: Type) -> Iteration:
    keywords = dict(expression.keywords)
    start = at.read(keywords["start"]) if "start" in keywords else args[1] if len(args) == 2 else None
    number = ZERO if start is None else at.cast(start.leaves[0], INT)
    return OverEnumerate(iteration(at, expression.args[0]), number, elements_of(type_))


def _over_checkpointed(at: Emitter, expression: st.Call) -> Iteration:
    given = dict(zip(("segments", "snapshots"), expression.args[1:], strict=False)) | dict(expression.keywords)
    numbers: dict[str, Operand] = {"segments": ZERO, "snapshots": ZERO}
    for name, variable in given.items():
        value = at.read(variable)
        if isinstance(value.type, types.NoneType | types.Omitted):
            continue
        number = at.cast(value.leaves[0], INT)
        if isinstance(number, Const) and isinstance(number.value, int) and number.value < 1:
            raise at.refuse(f"`{name}` must be at least 1, and is {number.value}", "give a positive number", name)
        if not isinstance(number, Const):
            at.emit(check_positive, (number,), types.none)
        numbers[name] = number
    if ZERO not in numbers.values():
        raise at.refuse("`checkpointed` takes segments or snapshots, not both", "leave one out", "checkpointed")
    return OverCheckpointed(iteration(at, expression.args[0]), numbers["segments"], numbers["snapshots"])


def iteration(at: Emitter, variable: st.Variable, *, uses_up: bool = True) -> Iteration:
    """Return the iteration of a loop over the value of a variable; an iterator is used up."""
    if variable in at.iterations:
        over = at.iterations[variable][0]
        if uses_up:
            at.use_up(over)
        return over.begin(at)
    return items_of(at, at.read(variable))


def items_of(at: Emitter, value: LoweredValue) -> Iteration:
    """Return the iteration of a loop over a value."""
    tuples.refuse_sequence(at, value)
    own = plain(value.type)
    if own in RANGES:
        start, stop, step = value.leaves
        return OverRange(start, stop, step, RANGES[own])
    match own:
        case types.Array(ndim=1) if is_structured(own):
            return records.OverRecords(value)
        case types.Array() if is_structured(own):
            records.refuse_records(at, [value], "a loop over the rows")
        case types.Array(ndim=1):
            return OverArray(value.leaves[0], plain(own.dtype))
        case types.Array():
            row = types.Array(
                own.dtype, own.ndim - 1, "C" if own.layout == "C" else "A", not own.mutable, None, own.aligned
            )
            return OverArray(value.leaves[0], row)
        case types.UnicodeType():
            return OverArray(value.leaves[0], types.unicode_type)
        case types.BaseTuple():
            return OverTuple(value, _in_arrays(at, value))
        case types.List() | types.ListType():
            return lists.OverList(value)
    if dict_of(value.type) is not None:
        return dicts.over(value).begin(at)
    raise at.refuse(
        f"a loop over a value of type `{own}` is not supported",
        "loop over a range, an array, a tuple, zip or enumerate",
        "in",
    )


def _in_arrays(at: Emitter, value: LoweredValue) -> tuple[Operand, ...]:
    """Return arrays of the numbers in a long tuple; none for a short one, whose items are selected one by one.

    A gradient would add to each item in each iteration: a tuple of n items took n * n steps, and code to match.
    """
    parts = components(value)
    columns = list(zip(*(part.leaves for part in parts), strict=True))
    are_numbers = all(kinds.is_number(leaf.type) for column in columns for leaf in column)
    if len(parts) <= _MOST_SELECTED or not are_numbers or all(isinstance(leaf, Const) for leaf in value.leaves):
        return ()
    return tuple(
        arrays.array_of(at, column, leaf) for column, leaf in zip(columns, leaves_of(parts[0].type), strict=True)
    )


_MOST_SELECTED = 8


def _stop(at: Emitter, value: LoweredValue, type_: Type) -> LoweredValue:
    """Return the result of `stop_gradient`: numbers, and copies of arrays, through which no derivative flows."""
    if any(isinstance(leaf.type, types.List) for leaf in value.leaves):
        raise at.refuse("`stop_gradient` of a list is not supported", "give it an array", "stop_gradient")

    def stopped(leaf: Operand) -> Operand:
        if isinstance(leaf, Const) or not (kinds.is_number(leaf.type) or kinds.is_array(leaf.type)):
            return leaf
        return at.emit(ops.stop, (leaf,), copied_type(leaf.type))

    return LoweredValue(type_, tuple(map(stopped, value.leaves)), value.static)
