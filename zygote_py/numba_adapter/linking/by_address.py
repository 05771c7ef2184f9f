"""Entries of functions that take arrays by their addresses.

    i32 helper(ptr result, ptr error, ptr, ptr, i64, i64, ptr, [2 x i64], ...)      nine words for each matrix
    i32 helper_at(ptr result, ptr error, ptr, ...)                                  one

Numba passes an array as its fields, one by one, most of them on the stack. Where a function makes many such calls the
fields are most of what it consists of, though nothing else in it asks for them. An array that a helper has returned
stands in memory already. The second entry of a helper loads the fields and calls the first.

A function by which an emitted module is entered has the second alone: Python's arrays are taken out of their objects
into memory, and a call with 1,120 words, for 160 arrays, would take longer to compile than the function. The first,
which stores the fields and calls the second, is added where compiled code calls it.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba import types

_ENTRY = "_at"


def is_by_address(kind: Any) -> bool:
    """Return whether the second entry takes an argument of a type by its address."""
    return type(kind) is types.Array


def symbol_of_helper(symbol: str) -> str:
    """Return the symbol of a helper, given one of its entries."""
    return symbol.removesuffix(_ENTRY)


def entry_by_address(symbol: str) -> str:
    """Return the symbol of the second entry."""
    return symbol + _ENTRY


def type_by_address(context: Any, result: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the type of the second entry, in LLVM's terms."""
    plain = context.call_conv.get_function_type(result, arguments)
    passed: list[Any] = []
    for kind in arguments:
        if is_by_address(kind):
            passed.append(context.get_value_type(kind).as_pointer())
        else:
            passed += context.get_arg_packer([kind]).argument_types
    return ir.FunctionType(plain.return_type, [*plain.args[:2], *passed])


def taken_by_address(context: Any, builder: Any, arguments: tuple[Any, ...], passed: Any) -> list[tuple[Any, Any]]:
    """Return the value of each argument, given what is passed to the second entry, and the address, if it has one."""
    given, values = iter(passed), []
    for kind in arguments:
        if is_by_address(kind):
            address = next(given)
            values.append((builder.load(address), address))
        else:
            packer = context.get_arg_packer([kind])
            (value,) = packer.from_arguments(builder, [next(given) for _ in packer.argument_types])
            values.append((value, None))
    return values


def add_entry(module: Any, context: Any, symbol: str, result: Any, arguments: tuple[Any, ...]) -> None:
    """Add the second entry to the module of a helper."""
    made = _like(module)
    helper = ir.Function(made, context.call_conv.get_function_type(result, arguments), symbol)
    entry = ir.Function(made, type_by_address(context, result, arguments), entry_by_address(symbol))
    builder = ir.IRBuilder(entry.append_basic_block())
    place, error, *passed = entry.args
    values = [value for value, _ in taken_by_address(context, builder, arguments, passed)]
    passed = context.get_arg_packer(arguments).as_arguments(builder, values)
    builder.ret(builder.call(helper, [place, error, *passed]))
    module.get_function(symbol).add_function_attribute("noinline")
    module.link_in(llvm.parse_assembly(str(made)))


def add_entry_by_fields(module: Any, context: Any, symbol: str, result: Any, arguments: tuple[Any, ...]) -> None:
    """Add the first entry to a module that has the second alone."""
    made = _like(module)
    second = ir.Function(made, type_by_address(context, result, arguments), entry_by_address(symbol))
    entry = ir.Function(made, context.call_conv.get_function_type(result, arguments), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    place, error, *fields = entry.args
    packer, given, passed = context.get_arg_packer(arguments), iter(fields), []
    for kind, value in zip(arguments, packer.from_arguments(builder, fields), strict=True):
        words = [next(given) for _ in context.get_arg_packer([kind]).argument_types]
        if is_by_address(kind):
            address = builder.alloca(value.type)
            builder.store(value, address)
            words = [address]
        passed += words
    builder.ret(builder.call(second, [place, error, *passed]))
    module.link_in(llvm.parse_assembly(str(made)))


def _like(module: Any) -> Any:
    """Return a module to write to, for what will be linked into another one."""
    made = ir.Module()
    made.triple, made.data_layout = module.triple, module.data_layout
    return made
