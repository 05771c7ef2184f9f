"""The border of a compiled function: what it takes and gives, where the IR has something else.

    f_gradient(kind: Enum member)                     kind.value, in the IR
    f_gradient(s: ListType(Tuple(i64, f64)))          [each[0] for each in s], [each[1] for each in s], in the IR
    -> ListType(Tuple(none, f64))                     the adjoint of the second list, in the IR

Lists, dicts and objects that are arguments are read only: the IR has lists and arrays that a compiled function fills
from them. A function that writes to one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py import numba_adapter
from zygote_py.adjoints import refuse
from zygote_py.adjoints.analysis import carries_adjoint, element_of, is_float
from zygote_py.frontend.values import (
    count_of,
    dict_of,
    enum_value,
    gradient_type,
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
    Value,
    at_exit,
    components_of,
    inserting,
    is_view,
    leaf_types,
    names_of,
    ops,
    reach,
    replace_uses,
    with_components,
    writes,
)

_Convert = Callable[[Builder, Operand, Type], Operand]


def take_integers(joint: Function, given: Sequence[Type]) -> None:
    """Let the joint function cast integer arguments where the primal takes a float."""
    for number, type in enumerate(given):
        if isinstance(type, types.Integer) and is_float(joint.params[number].type):
            _take_as(joint, number, type, lambda b, new, kind: b.call(float, new, type=kind, hint=_hint(new)))


def take_arguments(function: Function, given: Sequence[Type]) -> None:
    """Let an emitted function take members of enumerations, lists, dicts and objects, whose parts it needs."""
    for number, param in enumerate(list(function.params)):
        type = given[number] if number < len(given) else param.type
        type = numba_adapter.typeof(type.value) if isinstance(type, types.Omitted) else type
        if _is_converted(type):
            _take_as(function, number, type, _parts)


def _take_as(function: Function, number: int, type: Type, convert: _Convert) -> None:
    """Let a function take a parameter of another type, and `convert` it to the one that it had."""
    param = function.params[number]
    function.params[number] = new = Param(type, param.hint, param.loc)
    with inserting(function.entry) as b:
        replace_uses(function, {param: convert(b, new, param.type)})


def _is_converted(type: Type) -> bool:
    return any(isinstance(leaf, types.EnumMember) or _is_taken_apart(leaf) for leaf in leaf_types(type))


def _is_taken_apart(type: Type) -> bool:
    """Return whether a container is not what the IR has, as Python's list of numbers is."""
    return is_whole(type) and not (isinstance(type, types.List) and paths_of(type) == ["each"])


def _parts(b: Builder, given: Operand, wanted: Type) -> Operand:
    """Return what is given, with the values of members of enumerations and the parts of containers in their places."""
    hint = _hint(given)
    if isinstance(given.type, types.EnumMember):
        return b.call(enum_value, given, type=wanted, hint=hint)
    if not _is_converted(given.type):
        return given
    if is_whole(given.type):
        leaves = zip(leaves_of(given.type), paths_of(given.type), strict=True)
        parts = [
            Const(0, types.int64) if path == "first" else b.call(ops.taken, given, _text(path), type=leaf, hint=hint)
            for leaf, path in leaves
        ]
        return parts[0] if len(parts) == 1 else b.call(ops.pack, *parts, type=wanted, hint=hint)
    components = enumerate(zip(names_of(given.type), components_of(wanted), strict=True))
    inner = [_parts(b, b.item(given, number, f"{hint}_{name}"), own) for number, (name, own) in components]
    return b.call(ops.pack, *inner, type=wanted, hint=hint)


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
    asked = [given[number] if number < len(given) else types.none for number in wrt]
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
        elif any(isinstance(leaf, types.NoneType) for leaf in _elements(kind)):
            raise refuse(
                f"the gradient of `{joint.params[number].hint}`, which holds integers too, in a function",
                joint.loc,
                "pass the floats in a list of their own",
            )
        kinds.append(kind)
    result = gradients[0] if unwrap_single else b.pack(gradients)
    of_result: Any = kinds[0] if unwrap_single else types.Tuple(kinds)
    if with_value:
        result, of_result = b.pack([value, result]), types.Tuple([value.type, of_result])
    end.args = (result, *others)
    return None if whole else of_result


def _elements(type: Any) -> Iterator[Type]:
    """Yield the types of the leaves of the elements of containers."""
    for leaf in leaf_types(type):
        if isinstance(leaf, types.List | types.ListType):
            yield from _inside(leaf.dtype)
        elif (own := dict_of(leaf)) is not None:
            yield from _inside(own.value_type)


def _inside(type: Type) -> Iterator[Type]:
    for leaf in leaf_types(type):
        yield from _elements(leaf) if is_whole(leaf) else (leaf,)


def _formed(b: Builder, type: Type, gradient: Operand, argument: Operand) -> tuple[Operand, Type]:
    """Return a gradient as the parts of its own type, which is that of the argument but for None; and that type."""
    if not holds_container(type) or isinstance(gradient.type, types.NoneType):
        return gradient, gradient.type
    if not is_whole(type):
        formed = [
            _formed(b, part, b.item(gradient, number), b.item(argument, number))
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
        arrays = [argument] if count == 1 else b.items(argument)
        for number, (part, array) in enumerate(zip(parts, arrays, strict=True)):
            if isinstance(part.type, types.NoneType):
                is_array = isinstance(array.type, types.Array)
                parts[number] = b.call(np.zeros_like, array, type=array.type) if is_array else array
        parts = parts[is_record(type) :]  # without the place
        return parts[0] if len(parts) == 1 else b.pack(parts), kind
    if numba_adapter.is_object(type):
        return _formed_object(b, type, kind, [_content(b, part) for part in parts]), kind
    own: Any = dict_of(type)
    if own is not None:  # with the keys of the argument
        keys = 1 + key_has_floats(own) + len(leaves_of(own.key_type))
        parts[:keys] = b.items(argument)[:keys]
    parts = [part for part in parts if not isinstance(part.type, types.NoneType)]
    return parts[0] if len(parts) == 1 else b.pack(parts), kind


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


def made_whole(b: Builder, parts: Operand, type: Any) -> Operand:
    """Return the lists and dicts of a value of this type that consists of such parts."""
    if not holds_container(type):
        return parts
    if not is_whole(type):
        made = [made_whole(b, b.item(parts, number), part) for number, part in enumerate(components_of(type))]
        return b.call(ops.pack, *made, type=type)
    held = [parts] if count_of(type) == 1 else b.items(parts)
    if is_structured(type):
        extents = [b.call(ops.dim, held[0], Const(axis, types.int64), type=types.int64) for axis in range(type.ndim)]
        return _made_records(b, type, held, extents)
    return b.call(ops.given, Const(template_of(type), types.pyobject), *held, type=type)


def _made_records(b: Builder, type: Any, parts: Sequence[Operand], extents: Sequence[Operand]) -> Operand:
    """Return a structured array with these fields; those without floats are zero."""
    made = b.call(ops.new_records, Const(type.dtype.dtype, types.pyobject), *extents, type=type, hint="records")
    for part, path in zip(parts, paths_of(type), strict=True):
        if carries_adjoint(part.type):
            field = b.call(ops.taken, made, _text(path), type=part.type)
            b.call(ops.setitem, field, part, type=types.none)
    return made


def refuse_containers(given: Sequence[Type], loc: Loc) -> None:
    """Refuse lists, dicts and objects where they matter, since the pullback of a function keeps what it is given."""
    if any(is_whole(leaf) and carries_adjoint(leaf) for type in given for leaf in leaf_types(type)):
        hint = "use `value_and_gradient` or `jvp`, or pass arrays and tuples"
        raise refuse("the pullback of a function of a list, a dict or an object is not supported", loc, hint)


def _writers(memory: Memory, value: Value) -> list[Instr]:
    """Return the instructions that may write to a value; not those that write to new lists, and to what is in them."""

    def origins(each: Operand) -> tuple[Operand, ...]:
        if isinstance(each, Phi):
            return each.args
        return each.args[:1] if isinstance(each, Instr) and (each.op is ops.getitem or is_view(each)) else ()

    def is_of_new(target: Operand) -> bool:
        seen = list(reach([target], origins))
        in_list = any(
            isinstance(each, Instr) and isinstance(each.args[0].type, types.List) for each in seen if origins(each)
        )
        new = (np.zeros_like, ops.zeros) if in_list else (np.zeros_like, ops.zeros, ops.stack)
        return all(isinstance(each, Instr) and each.op in new for each in seen if not origins(each))

    return [writer for writer in memory.writers(value) if not all(map(is_of_new, writes(writer)))]


def refuse_writes(function: Function, given: Sequence[Type]) -> None:
    """Refuse a function that writes to lists, dicts or objects that it takes or captures, or to arrays in these.

    `given` are the types of the arguments.
    """
    if not any(isinstance(leaf, types.List) or leaf != own for leaf, own in _leaves(function, given)):
        return
    memory = Memory(function)
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
        if writers := _writers(memory, value):
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
