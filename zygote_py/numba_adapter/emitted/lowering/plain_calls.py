"""Calls in functions without `try`: an error of the callee is one of the caller, passed on at once.

After each call Numba takes apart what the callee has returned: whether it is an error, of which kind, whether the
caller has a handler for it, and where the exception is. Where there are no handlers, the callee writes the exception
where the caller's own belongs, and its code is returned as it is. The result is read as it was written; Numba takes
each array apart, and puts it together again. That is two thirds of the instructions of a call. Helpers take arrays by
their addresses (`numba_adapter/linking/by_address.py`).
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.ir as llvm
from numba import types

from zygote_py.ir.lazy_dataclass import dataclass
from zygote_py.numba_adapter.base.internals import CPUCallConv, cgutils
from zygote_py.numba_adapter.emitted.lowering.addresses import Addresses, addresses_of, let_addresses_be_taken, reserve
from zygote_py.numba_adapter.emitted.lowering.elements import has_one_form, items_of, places_of, size_and_alignment
from zygote_py.numba_adapter.linking import entry_by_address, is_by_address, is_called_helper, type_by_address

_OK, _NONE, _EXCEPTION, _STOP, _FIRST_OF_USER = 0, -2, -1, -3, 1
_MOST_AT_A_PLACE = 8  # calls
_PLACES = "_zygote_py_places"  # the attribute of an LLVM function: where results are written to, by type


def let_errors_pass(function: Any) -> None:
    """Let the calls in an LLVM function, which has no handlers, be plain."""
    vars(function)[_PLACES] = {}
    let_addresses_be_taken(function)


@dataclass(frozen=True, slots=True)
class _Status:
    """The outcome of a call, in the form that Numba has for it, computed where something asks for it."""

    builder: Any
    code: Any
    may_be_none: bool
    excinfoptr: Any

    @property
    def is_error(self) -> Any:
        """Whether there was an error."""
        return self.builder.not_(self.is_ok) if self.may_be_none else self._compared("!=", _OK)

    @property
    def is_ok(self) -> Any:
        """Whether there was no error."""
        is_ok = self._compared("==", _OK)
        return self.builder.or_(is_ok, self.is_none) if self.may_be_none else is_ok

    @property
    def is_none(self) -> Any:
        """Whether it is None."""
        return self._compared("==", _NONE)

    @property
    def is_python_exc(self) -> Any:
        """Whether it is an exception that Python has."""
        return self._compared("==", _EXCEPTION)

    @property
    def is_stop_iteration(self) -> Any:
        """Whether it is the end of a generator."""
        return self._compared("==", _STOP)

    @property
    def is_user_exc(self) -> Any:
        """Whether it is an exception that is described."""
        return self._compared(">=", _FIRST_OF_USER)

    def _compared(self, comparison: str, code: int) -> Any:
        return self.builder.icmp_signed(comparison, self.code, self.code.type(code))


_conventions: Any = CPUCallConv
_call, _propagate = _conventions.call_function, _conventions.return_status_propagate


@functools.wraps(_call)
def _call_function(
    self: Any, builder: Any, callee: Any, resty: Any, argtys: Any, args: Any, attrs: Any = None
) -> tuple[Any, Any]:
    places = vars(builder.function).get(_PLACES)
    kind = self.get_return_type(resty).pointee
    if places is None or attrs is not None or kind != self._get_return_argument(callee.function_type).pointee:
        return _call(self, builder, callee, resty, argtys, args, attrs)  # type: ignore[no-any-return]
    addresses = addresses_of(builder.function)
    assert addresses is not None
    is_array = is_by_address(resty)
    place = reserve(builder, kind) if is_array else _place(builder, places, kind)
    may_be_none = isinstance(resty, types.Optional)
    if may_be_none:
        builder.store(cgutils.get_null_value(kind), place)
    if is_called_helper(callee.name) and any(map(is_by_address, argtys)):
        kind_of_entry = type_by_address(self.context, resty, argtys)
        callee = cgutils.get_or_insert_function(builder.module, kind_of_entry, entry_by_address(callee.name))
        passed = _addresses_or_fields(self, builder, addresses, argtys, args)
    else:
        passed = list(self._get_arg_packer(argtys).as_arguments(builder, args))
    error = self._get_excinfo_argument(builder.function)
    code = builder.call(callee, [place, error, *passed])
    result = builder.load(place)
    if is_array:
        addresses.note(result, place)
    if not has_one_form(self.context, resty):
        result = self.context.get_returned_value(builder, resty, result)
    return _Status(builder, code, may_be_none, error), result


def _place(builder: Any, places: dict[Any, tuple[Any, int]], kind: Any) -> Any:
    """Return where a result of a type is written to. Few calls share a place: whenever LLVM removes a use of one, it
    goes through all others.
    """
    place, calls = places.get(kind, (None, 0))
    if calls % _MOST_AT_A_PLACE == 0:
        place = cgutils.alloca_once(builder, kind)
    places[kind] = place, calls + 1
    return place


def _addresses_or_fields(conventions: Any, builder: Any, addresses: Addresses, kinds: Any, values: Any) -> list[Any]:
    """Return the arguments of the second entry of a helper."""
    passed: list[Any] = []
    for kind, value in zip(kinds, values, strict=True):
        if is_by_address(kind):
            passed.append(addresses.of(builder, value))
        else:
            passed += conventions._get_arg_packer([kind]).as_arguments(builder, [value])
    return passed


@functools.wraps(_propagate)
def _return_status_propagate(self: Any, builder: Any, status: Any) -> None:
    if type(status) is _Status:
        self._return_errcode_raw(builder, status.code)
    else:
        _propagate(self, builder, status)


def return_tuple(context: Any, builder: Any, kind: Any, value: Any) -> None:
    """Return a tuple that has one form. Arrays are copied from where they stand, which is less than their words."""
    _store(context, builder, kind, value, context.call_conv._get_return_argument(builder.function))
    builder.ret(llvm.IntType(32)(_OK))


def _store(context: Any, builder: Any, kind: Any, value: Any, place: Any) -> None:
    items = items_of(value, len(kind)) if isinstance(kind, types.BaseTuple) else None
    if items is not None:
        for part, item, address in zip(kind, items, places_of(context, builder, kind, place), strict=True):
            _store(context, builder, part, item, address)
        return
    addresses = addresses_of(builder.function)
    known = None if addresses is None else addresses.find(value)
    if known is None or type(kind) is not types.Array:
        builder.store(value, place)
    else:
        size, alignment = size_and_alignment(context, value.type)
        cgutils.raw_memcpy(builder, place, known, llvm.IntType(64)(1), size, alignment)


_conventions.call_function, _conventions.return_status_propagate = _call_function, _return_status_propagate
