"""The effects of instructions on memory: what they read and write, which results are views, and which are new.

%row = getitem %x, %i : f64[:]          is_view; PURE
%y = record %n : f64[:]                 is_fresh; ALLOCATE
setitem %y, 0.0, %i                     writes (%y,)
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

from numba import types

from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.core import Instr, Operand, Phi, Routine, Type, Value
from zygote_py.ir.ops import Effect, Role
from zygote_py.ir.types import components_of

# Most values are numbers: queries about them must be fast.
NUMBERS = frozenset({types.Integer, types.Float, types.Complex, types.Boolean})
MEMORY = (types.Array, types.List, types.ListType, types.Set, types.DictType, types.ClassInstanceType)


def has_memory(type: Type) -> bool:
    """Return whether values of this type refer to memory that can be written to."""
    if type.__class__ in NUMBERS:
        return False
    if _is_uniform(type.__class__):
        uniform: Any = type
        return has_memory(uniform.dtype)
    if _is_tuple(type.__class__):
        return any(map(has_memory, components_of(type)))
    return _is_memory(type.__class__)


# Numba's type classes have a metaclass that makes `isinstance` slow.
@functools.cache
def _is_uniform(kind: type) -> bool:
    return issubclass(kind, types.UniTuple | types.NamedUniTuple)


@functools.cache
def _is_tuple(kind: type) -> bool:
    return issubclass(kind, types.BaseTuple)


@functools.cache
def _is_memory(kind: type) -> bool:
    return issubclass(kind, MEMORY)


@functools.cache
def _is_array(kind: type) -> bool:
    return issubclass(kind, types.Array)


def is_view(instr: Instr) -> bool:
    """Return whether an instruction returns a view of its first argument's memory, without reading the elements."""
    if not _is_array(instr.type.__class__) or not instr.args or not _is_array(instr.args[0].type.__class__):
        return False
    if instr.op is ops.getitem:
        return not any(_is_array(index.type.__class__) for index in instr.args[1:])
    return ops.of(instr.op).view


def is_fresh(instr: Instr) -> bool:
    """Return whether an instruction returns a new array, which shares memory with no existing value."""
    if not isinstance(instr.type, types.Array) or effect(instr) is not Effect.ALLOCATE:
        return False
    if isinstance(instr.op, Routine):
        return not instr.op.shares
    return ops.of(instr.op).fresh or not any(has_memory(arg.type) for arg in instr.args)


def effect(instr: Instr) -> Effect:
    """Return the effect of an instruction, given the types of its arguments: array arithmetic allocates."""
    if isinstance(instr.op, Routine):
        return _effect_of_call(instr, instr.op)
    record = ops.of(instr.op)
    found = record.effect
    if found is Effect.PURE and instr.type.__class__ in NUMBERS:
        for arg in instr.args:  # a generator takes longer
            if arg.type.__class__ not in NUMBERS:
                break
        else:
            return found
    if found is Effect.READ and instr.op is ops.getitem:
        source = instr.args[0].type.__class__
        if is_view(instr) or _is_tuple(source):
            return Effect.PURE
        return Effect.ALLOCATE if _is_array(instr.type.__class__) and _is_array(source) else found
    if found is not Effect.PURE or record.handle_only or is_view(instr):
        return found
    if isinstance(instr.type, types.BaseTuple | types.Array | types.List | types.ListType) and has_memory(instr.type):
        return Effect.ALLOCATE
    return Effect.READ if any(has_memory(arg.type) for arg in instr.args) else found


def _effect_of_call(instr: Instr, routine: Routine) -> Effect:
    if routine.has_side_effects or routine.writes:
        return Effect.WRITE
    if has_memory(instr.type):
        return Effect.ALLOCATE
    return Effect.READ if any(has_memory(arg.type) for arg in instr.args) else Effect.PURE


def may_write(instr: Instr) -> bool:
    """Return whether the effect of an instruction is to write."""
    if isinstance(instr.op, Routine):
        return _effect_of_call(instr, instr.op) is Effect.WRITE
    return ops.of(instr.op).effect is Effect.WRITE  # the types of arguments make no other effect to this one


def reads(instr: Instr) -> tuple[Operand, ...]:
    """Return the arguments whose memory an instruction reads."""
    if ops.of(instr.op).role is Role.STORE:
        array, value, *index = instr.args
        found = (value, *index, array) if instr.op is ops.accumulate else (value, *index)
        return tuple(arg for arg in found if has_memory(arg.type))
    if instr.op is ops.push or effect(instr) is Effect.PURE:
        return ()
    return tuple(arg for arg in instr.args if has_memory(arg.type))


def writes(instr: Instr) -> tuple[Operand, ...]:
    """Return the arguments whose memory an instruction may write to."""
    if not may_write(instr):
        return ()
    record = ops.of(instr.op)
    if record.role in (Role.STORE, Role.APPEND, Role.POP):
        return instr.args[:1]
    if isinstance(instr.op, Routine):
        return tuple(arg for number, arg in enumerate(instr.args) if number in instr.op.writes)
    return () if record.silent else tuple(arg for arg in instr.args if has_memory(arg.type))


def draws(instr: Instr) -> bool:
    """Return whether an instruction draws random numbers, or changes the state of the generator."""
    return ops.of(instr.op).draws


def bases(operand: Operand, ends: Collection[Value] = ()) -> set[Operand]:
    """Return the values that an array may be, or be a view of, on any path; the `ends` are not followed further."""

    def origins(each: Operand) -> tuple[Operand, ...]:
        return () if each in ends else origins_of(each)

    return {each for each in reach([operand], origins) if not origins(each)}


def origins_of(value: Operand) -> tuple[Operand, ...]:
    """Return the values of which an array is one or a view."""
    if isinstance(value, Phi):
        return value.args
    return value.args[:1] if isinstance(value, Instr) and is_view(value) else ()


@functools.cache
def kinds_of(type: Type) -> frozenset[object]:
    """Return the kinds of memory that a value of a type may reach: memory of one kind is not of another."""
    if isinstance(type, types.BaseTuple):
        return frozenset().union(*map(kinds_of, components_of(type)))
    if isinstance(type, types.List | types.ListType):
        return frozenset({types.List}) | kinds_of(type.dtype)
    if isinstance(type, types.Array | types.DictType):
        return frozenset({types.Array if isinstance(type, types.Array) else types.DictType})
    return frozenset(MEMORY) if has_memory(type) else frozenset()
