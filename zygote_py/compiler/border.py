"""The border of a compiled function: what it takes and gives, where the IR has something else.

    f_gradient(kind: Enum member)                     kind.value, in the IR
    f_gradient(s: ListType(Tuple(i64, f64)))          [each[0] for each in s], [each[1] for each in s], in the IR
    -> ListType(Tuple(none, f64))                     the adjoint of the second list, in the IR

Lists, dicts and objects that are arguments are read only: the IR has lists and arrays that a compiled function fills
from them. A function that writes to one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, element_of, is_float
from zygote_py.adjoints.routines import list_shares_memory
from zygote_py.frontend.values import (
    dict_of,
    enum_value,
    gradient_type,
    held_in,
    holds_container,
    is_record,
    is_structured,
    is_tuple,
    is_whole,
    key_has_floats,
    leaves_of,
    paths_of,
    template_of,
)
from zygote_py.ir import (
    NONE,
    Builder,
    Const,
    Function,
    Instr,
    Loc,
    Memory,
    Operand,
    Param,
    Phi,
    Type,
    Undef,
    Value,
    at_exit,
    components_of,
    has_memory,
    inserting,
    is_view,
    leaf_types,
    names_of,
    ops,
    reach,
    replace_uses,
    uses,
    with_components,
    writes,
)

_list_of: Any = types.List
_Convert = Callable[[Builder, Operand, Type], Operand]


def take_integers(joint: Function, given: Sequence[Type]) -> None:
    """Let the joint function cast integer arguments where the primal takes a float."""
    for number, type in enumerate(given):
        if isinstance(type, types.Integer) and is_float(joint.params[number].type):
            _take_as(joint, number, type, lambda b, new, kind: b.call(float, new, type=kind, hint=_hint(new)))


def take_arguments(function: Function, given: Sequence[Type], *, copies: bool = False) -> None:
    """Let an emitted function take members of enumerations, lists, dicts and objects, whose parts it needs.

    With `copies` all of that is memory of its own, but for structured arrays and records.
    """
    for number, param in enumerate(list(function.params)):
        type = given[number] if number < len(given) else param.type
        type = numba_adapter.typeof(type.value) if isinstance(type, types.Omitted) else type
        if copies and holds_container(type):
            _take_as(function, number, type, _copied_parts)
            _check_originals(function, function.params[number], param.type)
        elif _is_converted(type):
            _take_as(function, number, type, _parts)


def _take_as(function: Function, number: int, type: Type, convert: _Convert) -> None:
    """Let a function take a parameter of another type, and `convert` it to the one that it had."""
    param = function.params[number]
    function.params[number] = new = Param(type, param.hint, param.loc)
    with inserting(function.entry) as b:
        replace_uses(function, {param: convert(b, new, param.type)})


def _check_originals(function: Function, given: Param, kind: Type) -> None:
    """Let checks that arrays share no memory with those in a list look at the list that is given, not at its copy."""
    checks = [instr for instr in function.entry.instrs if instr.op is list_shares_memory]
    if not checks:
        return
    with inserting(function.entry) as b:
        own = _parts(b, given, kind)

        def original(operand: Operand) -> Operand | None:
            match operand:
                case Instr(op=ops.getitem, args=(whole, Const(value=int(number)))):
                    found = original(whole)
                    return None if found is None else b.item(found, number)
                case Instr() if _is_made_of(operand, given) and operand.type == kind:
                    return own
            return None

        for check in checks:
            lies, values = check.args
            found = original(values)
            if found is not None:
                check.args = (lies, found)


def _is_made_of(value: Instr, given: Param) -> bool:
    """Return whether the parts of a value come from an argument."""
    work: list[Operand] = [value]
    while work:
        each = work.pop()
        if each is given:
            return True
        work += each.args if isinstance(each, Instr) else ()
    return False


def _is_converted(type: Type) -> bool:
    return any(isinstance(leaf, types.EnumMember) or _is_taken_apart(leaf) for leaf in leaf_types(type))


def _is_taken_apart(type: Type) -> bool:
    """Return whether a container is not what the IR has, as Python's list of numbers is."""
    return is_whole(type) and not (isinstance(type, types.List) and paths_of(type) == ["each"])


def is_fresh(type: Type) -> bool:
    """Return whether this is a list, a dict or an object, or a tuple of these: what is copied when it is taken."""
    return all(
        is_whole(leaf) and not is_structured(leaf) and not is_record(leaf) for leaf in leaf_types(type)
    ) and holds_container(type)


def _copied_parts(b: Builder, given: Operand, wanted: Type) -> Operand:
    """Return the parts of containers, with copies of the arrays in them."""
    return _parts(b, given, wanted, copies=True)


def _parts(b: Builder, given: Operand, wanted: Type, copies: bool = False) -> Operand:
    """Return what is given, with the values of members of enumerations and the parts of containers in their places."""
    hint = _hint(given)
    if isinstance(given.type, types.EnumMember):
        return b.call(enum_value, given, type=wanted, hint=hint)
    if not _is_converted(given.type) and not (copies and holds_container(given.type)):
        return given
    if is_whole(given.type):
        parts: list[Operand] = []
        for leaf, path in zip(leaves_of(given.type), paths_of(given.type), strict=True):
            if path == "first":
                parts.append(Const(0, types.int64))
                continue
            steps = f"{path}{ops.SEPARATOR}copy" if copies and _is_list_of_arrays(leaf) else path
            parts.append(b.call(ops.taken, given, _text(steps), type=leaf, hint=hint))
        return parts[0] if len(parts) == 1 else b.call(ops.pack, *parts, type=wanted, hint=hint)
    components = enumerate(zip(names_of(given.type), components_of(wanted), strict=True))
    inner = [_parts(b, b.item(given, number, f"{hint}_{name}"), own, copies) for number, (name, own) in components]
    return b.call(ops.pack, *inner, type=wanted, hint=hint)


def _is_list_of_arrays(type: Type) -> bool:
    """Return whether this is a list of arrays, or of lists of arrays."""
    if not isinstance(type, types.List):
        return False
    return isinstance(type.dtype, types.Array) or _is_list_of_arrays(type.dtype)


def _text(path: str) -> Const:
    return Const(path, types.unicode_type)


def _hint(operand: Operand) -> str:
    return getattr(operand, "hint", "")


# ----------------------------------------------------------------------------------------------------- what is given


def give_gradients(
    joint: Function, wrt: Sequence[int], given: Sequence[Type], unwrap_single: bool, with_value: bool, whole: bool
) -> Type | None:
    """Let a joint function return the gradients of containers in the form of these: their parts, or what is `whole`.

    Returns the type of the result; None if it is that of what the function returns.
    """
    asked = _asked(wrt, given)
    if not any(map(holds_container, asked)):
        return None
    b, end = at_exit(joint)
    result, *others = end.args
    value: Any = None
    if with_value:
        value, result = b.items(result)
    gradients = [result] if unwrap_single else list(b.items(result))
    kinds: list[Type] = []
    for place, (number, type) in enumerate(zip(wrt, asked, strict=True)):
        gradients[place], kind = _formed(b, type, gradients[place], joint.params[number])
        if whole:
            gradients[place] = made_whole(b, gradients[place], kind)
        kinds.append(kind)
    result = gradients[0] if unwrap_single else b.pack(gradients)
    of_result: Any = kinds[0] if unwrap_single else types.Tuple(kinds)
    if with_value:
        result, of_result = b.pack([value, result]), types.Tuple([value.type, of_result])
    end.args = (result, *others)
    return None if whole else of_result


def _asked(wrt: Sequence[int], given: Sequence[Type]) -> list[Type]:
    """Return the types of the arguments with these numbers; None for captured variables."""
    return [given[number] if number < len(given) else types.none for number in wrt]


def formed_tangents(
    b: Builder, kind: Type, value: Operand, tangents: Sequence[Operand]
) -> tuple[list[Operand], list[Type]]:
    """Return the tangents of a result with lists, dicts and objects in their form, and the types of these.

    `kind` is the type of the result, whose value is `value`.
    """
    formed = [_formed(b, kind, tangent, value) for tangent in tangents]
    return [tangent for tangent, _ in formed], [own for _, own in formed]


def give_whole(function: Function, kind: Type) -> None:
    """Let an emitted function return the lists, dicts and structured arrays in a value of this type."""
    if holds_container(kind):
        b, end = at_exit(function)
        end.args = (made_whole(b, end.args[0], kind, is_result=True),)


def without_keys(b: Builder, type: Type, tangent: Operand) -> Operand:
    """Return the tangent of an argument with None for the keys of dicts, which do not change."""
    own: Any = dict_of(type)
    if isinstance(tangent.type, types.NoneType) or (own is None and not is_tuple(type)):
        return tangent
    parts = list(b.items(tangent))
    if own is None:
        pairs = zip(components_of(type), parts, strict=True)
        return b.pack([without_keys(b, part, each) for part, each in pairs])
    keys = 1 + key_has_floats(own) + len(leaves_of(own.key_type))
    return b.pack([*([NONE] * keys), *parts[keys:]])


def check_returned(kind: Type, loc: Loc | None) -> None:
    """Refuse records and objects as results: Numba returns a reference to memory that the function may have made.

    Lists and dicts of them are refused too, and of structured arrays.
    """
    for leaf in leaf_types(kind):
        if is_record(leaf) or numba_adapter.is_object(leaf):
            raise refuse(f"{_name_of(leaf)} as the result is not supported", loc, "return its fields, in a tuple")
        for held in held_in(leaf):
            if is_record(held) or is_structured(held) or numba_adapter.is_object(held):
                what = f"{_name_of(held)} in a list or a dict as the result"
                raise refuse(f"{what} is not supported", loc, "return the fields, in lists of their own")


def _name_of(type: Type) -> str:
    if is_structured(type):
        return "a structured array"
    return "a record" if is_record(type) else "an object"


def _formed(b: Builder, type: Type, gradient: Operand, argument: Operand) -> tuple[Operand, Type]:
    """Return a gradient as the parts of its own type, which is that of the argument but for None; and that type."""
    if not holds_container(type) or isinstance(gradient.type, types.NoneType):
        return gradient, gradient.type
    if not is_whole(type):
        is_known = not isinstance(argument.type, types.NoneType)
        formed = [
            _formed(b, part, b.item(gradient, number), b.item(argument, number) if is_known else NONE)
            for number, part in enumerate(components_of(type))
        ]
        whole = with_components(type, tuple(kind for _, kind in formed))
        together = with_components(type, tuple(part.type for part, _ in formed))
        return b.call(ops.pack, *(part for part, _ in formed), type=together), whole
    count = len(leaves_of(type))
    parts = [gradient] if count == 1 else list(b.items(gradient))
    kind = gradient_type(type, [part.type for part in parts])
    if isinstance(kind, types.NoneType):
        return NONE, kind
    if is_structured(type) or is_record(type):  # zeros for fields without floats
        arrays = [argument] if count == 1 else b.items(argument) if shapes_gradient(type) else parts
        for number, (part, array) in enumerate(zip(parts, arrays, strict=True)):
            if isinstance(part.type, types.NoneType):
                is_array = isinstance(array.type, types.Array)
                parts[number] = b.call(np.zeros_like, array, type=array.type) if is_array else array
        parts = parts[is_record(type) :]  # without the place
        return parts[0] if len(parts) == 1 else b.pack(parts), kind
    if any(map(numba_adapter.is_object, held_in(type))) and not numba_adapter.is_object(type):
        what = "the gradient of a list or a dict that holds objects of a jitclass is not supported"
        loc = argument.loc if isinstance(argument, Value) else None
        raise refuse(what, loc, "pass their fields, in lists of their own")
    if numba_adapter.is_object(type):
        return _formed_object(b, type, kind, [_content(b, part) for part in parts]), kind
    if shapes_gradient(type):
        parts = _filled(b, type, parts, [argument] if count == 1 else b.items(argument))
    return parts[0] if len(parts) == 1 else b.pack(parts), kind


def _filled(b: Builder, type: Any, parts: Sequence[Operand], given: Sequence[Operand], depth: int = 0) -> list[Operand]:
    """Return the adjoints of what a list or a dict consists of, with the keys of the argument, and with lists of None.

    `given` are the parts of the argument, in which this is what stands in as many lists as `depth` tells.
    """
    if depth and parts and all(isinstance(part.type, types.NoneType) for part in parts):
        return [_nones(b, given[0], depth)]
    if is_tuple(type):
        made: list[Operand] = []
        start = 0
        for component in components_of(type):
            stop = start + len(leaves_of(component))
            made += _filled(b, component, parts[start:stop], given[start:stop], depth)
            start = stop
        return made
    own: Any = dict_of(type)
    if own is not None:
        keys = 1 + key_has_floats(own) + len(leaves_of(own.key_type))
        return [*given[:keys], *_filled(b, own.value_type, parts[keys:], given[keys:], depth + 1)]
    return _filled(b, type.dtype, parts, given, depth + 1) if is_whole(type) else list(parts)


def _nones(b: Builder, values: Operand, depth: int) -> Operand:
    """Return a list of None that is as long as another list; of lists of them if the depth is more than one."""
    template: Any = ("none",)
    kind: Any = types.none
    for _ in range(depth):
        template, kind = ("list", list, template, (0,)), _list_of(kind)
    return b.call(ops.given, Const(template, types.pyobject), values, type=kind)


def _is_of_none(type: Any) -> bool:
    """Return whether this is None, or a list of None."""
    while isinstance(type, types.List):
        type = type.dtype
    return isinstance(type, types.NoneType)


def _content(b: Builder, cell: Operand) -> Operand:
    """Return what the memory of a field holds."""
    if isinstance(cell.type, types.NoneType):
        return NONE
    return b.call(ops.getitem, cell, Const(0, types.int64), type=element_of(cell.type))


def _formed_object(b: Builder, type: Any, kind: Any, contents: Sequence[Operand]) -> Operand:
    """Return the NamedTuple of the gradients of the fields of an object, of which these are the parts."""
    rest = list(contents)

    def made(field: Type, wanted: Any) -> Operand:
        if is_tuple(field):
            parts = [made(*each) for each in zip(components_of(field), components_of(wanted), strict=True)]
            return b.call(ops.pack, *parts, type=wanted)
        taken = [rest.pop(0) for _ in leaves_of(field)]
        if isinstance(wanted, types.NoneType):
            return NONE
        if numba_adapter.is_object(field):
            return _formed_object(b, field, wanted, [_content(b, part) for part in taken])
        if len(taken) > 1:
            raise refuse(f"the gradient of a field of type {field} is not supported", None, "pass it as an argument")
        return taken[0]

    fields = numba_adapter.fields_of_object(type).values()
    values = [made(*each) for each in zip(fields, components_of(kind), strict=True)]
    return b.call(ops.pack, *values, type=kind)


def made_whole(b: Builder, parts: Operand, type: Any, is_result: bool = False) -> Operand:
    """Return the lists and dicts of a value of this type that consists of such parts.

    With `is_result` entries may have been removed from dicts.
    """
    if not holds_container(type):
        return parts
    if not is_whole(type):
        made = [
            made_whole(b, b.item(parts, number), part, is_result) for number, part in enumerate(components_of(type))
        ]
        return b.call(ops.pack, *made, type=type)
    leaves = leaves_of(type)
    held = [parts] if len(leaves) == 1 else b.items(parts)
    held = [part for part, leaf in zip(held, leaves, strict=True) if not _is_of_none(leaf)]
    if is_structured(type):
        extents = [b.call(ops.dim, held[0], Const(axis, types.int64), type=types.int64) for axis in range(type.ndim)]
        return _made_records(b, type, held, extents)
    return b.call(ops.given, Const(template_of(type, 0, is_result), types.pyobject), *held, type=type)


def _made_records(b: Builder, type: Any, parts: Sequence[Operand], extents: Sequence[Operand]) -> Operand:
    """Return a structured array with these fields."""
    made = b.call(ops.new_records, Const(type.dtype.dtype, types.pyobject), *extents, type=type, hint="records")
    for part, path in zip(parts, paths_of(type), strict=True):
        if not (isinstance(part, Instr) and part.op is np.zeros_like and not carries_adjoint(part.type)):  # new, so 0
            field = b.call(ops.taken, made, _text(path), type=part.type)
            b.call(ops.setitem, field, part, type=types.none)
    return made


def give_whole_gradients(
    b: Builder, wrt: Sequence[int], given: Sequence[Type], gradients: Sequence[Operand], arguments: Sequence[Operand]
) -> list[Operand]:
    """Return the gradients in a pullback, those of containers in the form of these; `arguments` are those in `wrt`."""
    made = []
    for type, gradient, argument in zip(_asked(wrt, given), gradients, arguments, strict=True):
        formed, kind = _formed(b, type, gradient, argument)
        made.append(made_whole(b, formed, kind))
    return made


def shapes_gradient(type: Type) -> bool:
    """Return whether a gradient's form depends on the argument: it has the keys of a dict, or parts without floats."""
    whole = [leaf for leaf in leaf_types(type) if is_whole(leaf)]
    return any(not carries_adjoint(part) for leaf in whole for part in leaves_of(leaf))


def refuse_in_pullback(given: Sequence[Type], written: Sequence[int], result: Type, loc: Loc) -> None:
    """Refuse lists and the like as what has a cotangent, a result or an argument that is written to."""
    if holds_container(result):
        what = "a list, a dict, a structured array or an object as the result of a pullback's function"
        raise refuse(f"{what} is not supported", loc, "return an array or a tuple, or use `jvp`")
    if any(holds_container(given[number]) for number in written):
        what = "the pullback of a function that writes to a structured array or a record"
        raise refuse(f"{what} is not supported", loc, "write to a copy of it, or pass its fields")


_CHOICES = (ops.pack, ops.select, ops.pick)


def _pushed(function: Function) -> dict[Operand, list[Operand]]:
    """Return what is pushed on each stack that serves for nothing else than to be popped from."""
    found: dict[Operand, list[Operand]] = {}
    for value, users in uses(function).items():
        if isinstance(value, Instr) and value.op is ops.stack:
            instrs = [use.user for use in users if isinstance(use.user, Instr) and use.user.op in (ops.push, ops.pop)]
            if len(instrs) == len(users) and all(instr.args[0] is value for instr in instrs):
                found[value] = [instr.args[1] for instr in instrs if instr.op is ops.push]
    return found


def _writers(memory: Memory, value: Value, pushed: Mapping[Operand, Sequence[Operand]]) -> list[Instr]:
    """Return the instructions that may write to a value; not those that write to new lists, and to what is in them."""

    def origins(each: Operand) -> Sequence[Operand]:
        if isinstance(each, Instr) and each.op is ops.pop and each.args[0] in pushed:
            return pushed[each.args[0]]
        if isinstance(each, Phi):
            return tuple(arg for arg in each.args if not isinstance(arg, Undef))  # which nothing reads
        if isinstance(each, Instr) and each.op in _CHOICES:
            return tuple(arg for arg in each.args if has_memory(arg.type))
        return each.args[:1] if isinstance(each, Instr) and (each.op is ops.getitem or is_view(each)) else ()

    def is_of_new(target: Operand) -> bool:
        seen = list(reach([target], origins))
        in_list = any(
            isinstance(each, Instr)
            and each.op not in (*_CHOICES, ops.pop)
            and isinstance(each.args[0].type, types.List)
            for each in seen
            if origins(each)
        )
        arrays = (np.zeros_like, ops.zeros, ops.record)
        new = arrays if in_list else (*arrays, ops.stack)
        return all(isinstance(each, Instr) and each.op in new for each in seen if not origins(each))

    return [writer for writer in memory.writers(value) if not all(map(is_of_new, writes(writer)))]


def refuse_writes(function: Function, given: Sequence[Type]) -> None:
    """Refuse a function that writes to lists, dicts or objects that it takes or captures, or to arrays in these.

    `given` are the types of the arguments.
    """
    if not any(isinstance(leaf, types.List) or leaf != own for leaf, own in _leaves(function, given)):
        return
    memory, pushed = Memory(function), _pushed(function)
    whole: dict[Value, Type] = dict(zip(function.params, (*given, *(types.none,) * len(function.params)), strict=False))
    names: dict[Value, str] = {param: param.hint for param in function.params}
    for value in [*function.params, *function.entry.instrs]:
        match value:
            case Instr(op=ops.getitem, args=(Value() as of, Const(value=int(number)))) if of in whole:
                names[value] = value.hint
                if is_whole(whole[of]):
                    whole[value], names[value] = whole[of], names[of]
                elif isinstance(whole[of], types.BaseTuple):
                    whole[value] = components_of(whole[of])[number]
                elif isinstance(of.type, types.BaseTuple):  # a closure
                    whole[value] = types.none
        if value not in whole or is_structured(whole[value]) or is_record(whole[value]):  # these may be written to
            continue
        if not (is_whole(whole[value]) or isinstance(value.type, types.List)):
            continue
        if writers := _writers(memory, value, pushed):
            kind = "a dict" if dict_of(whole[value]) is not None else "a list"
            kind = "an object" if numba_adapter.is_object(whole[value]) else kind
            raise refuse(
                f"`{names[value]}`, {kind} from outside of the function, is written to, which is not supported",
                writers[0].loc,
                "write to a copy of it, or return what is new",
            )


def _leaves(function: Function, given: Sequence[Type]) -> Iterator[tuple[Type, Type]]:
    """Yield the types of what parameters consist of, each with itself or, for those of an object, with the object's."""
    for number, param in enumerate(function.params):
        of: Any = given[number] if number < len(given) else None
        holds = of is not None and any(numba_adapter.is_object(leaf) or is_record(leaf) for leaf in leaf_types(of))
        for leaf in leaf_types(param.type):
            yield leaf, types.none if holds else leaf
