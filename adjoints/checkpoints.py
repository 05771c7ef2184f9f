"""The derivative of a routine that keeps its arguments only, and runs again in the reverse sweep.

    f_checkpoint (%x):                  f_again (%x, %dy):
        %y = f %x                           %y, %kept = f_forward %x
        return %y                           %dx = f_reverse %kept, %dy
                                            return %dx

Arguments that the caller may write to are copied. The function must only compute: what it wrote or drew at first, it
would write or draw again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.calls import Case, Derivative, Source, name_apart
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.kinds import is_array
from zygote_py.adjoints.packing import pack_all, packed_type, unpack_all
from zygote_py.ir import ops
from zygote_py.ir.core import Block, Const, Function, Instr, Operand, Param, Return, Routine, Type
from zygote_py.ir.memory import draws
from zygote_py.ir.routines import routines_of
from zygote_py.ir.types import copied_type


def run_again(derivative: Derivative, plain: Derivative) -> None:
    """Make the two functions of a derivative from those of the `plain` one. Raises DifferentiationError."""
    _check(derivative.routine)
    results = derivative.results
    derivative.shadowed_results = tuple(number for number, type in enumerate(results) if is_array(type))
    function = derivative.routine.function
    params = [Param(param.type, param.hint, param.loc) for param in function.params]
    shadows = [Param(_writable(params[n].type), f"d{params[n].hint}", function.loc) for n in derivative.shadowed]
    block = Block(function.loc)
    whole = _emit(block, derivative.routine, params, _single(results))
    items = _taken_apart(block, whole, results)
    made = [
        _emit(block, np.zeros_like, [items[n]], _writable(results[n]), "shadow") for n in derivative.shadowed_results
    ]
    sources: list[Source] = []
    kept: list[Operand] = []
    for number, param in enumerate(params):
        if number in derivative.case.unstable and isinstance(param.type, types.Array):
            kept.append(_emit(block, np.copy, [param], copied_type(param.type), param.hint))
            sources.append(Source("result", len(items) + len(made) + len(kept) - 1))
        else:
            sources.append(Source("argument", number))
    sources += [Source("argument", len(params) + place) for place in range(len(shadows))]
    sources += [Source("result", len(items) + place) for place in range(len(made))]
    derivative.kept = tuple(each.type for each in kept)
    derivative.sources = tuple(sources)
    _return(block, [*items, *made, *kept])
    derivative.forward.function = _function(derivative.forward, function, [*params, *shadows], block)
    derivative.reverse.function = _reverse(derivative, plain, [each.type for each in kept])


def _reverse(derivative: Derivative, plain: Derivative, copies: list[Type]) -> Function:
    function, results = derivative.routine.function, derivative.results
    block = Block(function.loc)
    copied = iter(copies)
    unstable = derivative.case.unstable
    args: list[Operand] = [
        Param(
            next(copied) if number in unstable and isinstance(param.type, types.Array) else param.type,
            param.hint,
            param.loc,
        )
        for number, param in enumerate(function.params)
    ]
    shadows = [Param(_writable(args[n].type), f"d{function.params[n].hint}", function.loc) for n in derivative.shadowed]
    given = [Param(_writable(results[n]), "dy", function.loc) for n in derivative.shadowed_results]
    seeds = [Param(results[n], "dy", function.loc) for n in derivative.seeds]
    params = [*args, *shadows, *given, *seeds]
    stacks: list[Operand] = []
    for other in plain.group:
        assert other.record is not None
        stacks.append(_emit(block, ops.stack, [], _list_of(other.record), "records"))
    passed = [*args, *shadows, *stacks, *([Const(0, types.int64)] if plain.recursive else [])]
    returned = plain.returned
    again = _emit(block, plain.forward, passed, packed_type(returned) if returned else types.none)
    made, items = unpack_all(again, len(returned))
    block.instrs += made
    for place, number in enumerate(plain.shadowed_results):
        shadow, seed = items[len(results) + place], given[derivative.shadowed_results.index(number)]
        value: Operand = seed
        if isinstance(seed.type, types.Array) and seed.type.ndim == 0:
            value = _emit(block, ops.getitem, [seed], seed.type.dtype)
        _emit(block, ops.accumulate, [shadow, value], types.none)
    where: dict[str, Sequence[Operand]] = {"argument": passed, "result": items, "stack": stacks}
    needed = [where[source.kind][source.number] for source in plain.sources]
    kinds = tuple(function.params[number].type for number in plain.adjoints)
    adjoints = _emit(block, plain.reverse, [*needed, *seeds], packed_type(kinds) if kinds else types.none)
    made, found = unpack_all(adjoints, len(kinds))
    block.instrs += made
    _return(block, found)
    return _function(derivative.reverse, function, [each for each in params if isinstance(each, Param)], block)


def plain_case(case: Case) -> Case:
    """How a routine is differentiated that is reversed as soon as it has run."""
    return Case(case.active, frozenset(), False)


def _check(routine: Routine) -> None:
    loc, name = routine.function.loc, routine.__name__
    if routine.writes:
        written = routine.function.params[min(routine.writes)].hint
        raise refuse(
            f"`{name}` has a checkpoint, and writes to its argument `{written}`",
            loc,
            "let it return a new array: it will run again in the reverse sweep",
            "def",
        )
    if routine.shares:
        raise refuse(
            f"`{name}` has a checkpoint, and may return one of its arguments, or a part of it",
            loc,
            "let it return a copy",
            "def",
        )
    for function in (routine.function, *(other.function for other in routines_of(routine.function))):
        for instr in _instructions(function):
            if draws(instr):
                raise refuse(
                    f"`{name}` has a checkpoint, and draws random numbers, which would be others when it runs again",
                    instr.loc,
                    "draw them before, and pass them",
                )


def _instructions(function: Function) -> Iterator[Instr]:
    for block in function.blocks:
        for instr in block.instrs:
            if isinstance(instr, Instr):
                yield instr


def _emit(block: Block, op: ops.Op, args: Sequence[Operand], kind: Type, hint: str = "") -> Instr:
    instr = Instr(op, tuple(args), kind, hint, block.loc)
    block.instrs.append(instr)
    return instr


def _single(kinds: tuple[Type, ...]) -> Type:
    if not kinds:
        return types.none
    made: Type = kinds[0] if len(kinds) == 1 else types.Tuple(kinds)
    return made


def _taken_apart(block: Block, whole: Instr, kinds: tuple[Type, ...]) -> list[Operand]:
    if len(kinds) < 2:
        return [whole] if kinds else []
    return [_emit(block, ops.getitem, [whole, Const(number, types.int64)], kind) for number, kind in enumerate(kinds)]


def _return(block: Block, values: Sequence[Operand]) -> None:
    block.terminator = Return((pack_all(block, tuple(values)) if values else Const(None, types.none),))


def _function(routine: Routine, primal: Function, params: list[Param], block: Block) -> Function:
    name_apart(params)
    return Function(routine.__name__, params, [block], "joint", None, primal.loc, primal.options)


def _writable(kind: Type) -> Type:
    return types.Array(kind.dtype, kind.ndim, kind.layout) if isinstance(kind, types.Array) else kind


_list_of: Callable[[Type], Type] = types.List
