"""A second entry of the helpers that are called: it takes arrays by their addresses.

    i32 helper(ptr result, ptr error, ptr, ptr, i64, i64, ptr, [2 x i64], ...)      nine words for each matrix
    i32 helper_at(ptr result, ptr error, ptr, ...)                                  one

Numba passes an array as its fields, one by one, most of them on the stack. Where a function makes many such calls the
fields are most of what it consists of, though nothing else in it asks for them. An array that a helper has returned
stands in memory already. The second entry loads the fields and calls the first.
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


def add_entry(module: Any, context: Any, symbol: str, result: Any, arguments: tuple[Any, ...]) -> None:
    """Add the second entry to the module of a helper."""
    made = ir.Module(entry_by_address(symbol))
    made.triple, made.data_layout = module.triple, module.data_layout
    helper = ir.Function(made, context.call_conv.get_function_type(result, arguments), symbol)
    entry = ir.Function(made, type_by_address(context, result, arguments), entry_by_address(symbol))
    builder = ir.IRBuilder(entry.append_basic_block())
    place, error, *rest = entry.args
    given, values = iter(rest), []
    for kind in arguments:
        if is_by_address(kind):
            values.append(builder.load(next(given)))
        else:
            packer = context.get_arg_packer([kind])
            (value,) = packer.from_arguments(builder, [next(given) for _ in packer.argument_types])
            values.append(value)
    passed = context.get_arg_packer(arguments).as_arguments(builder, values)
    builder.ret(builder.call(helper, [place, error, *passed]))
    module.get_function(symbol).add_function_attribute("noinline")
    module.link_in(llvm.parse_assembly(str(made)))
