"""Where the arrays of a function stand in memory, for calls that take them by their addresses.

A result of a call stands where the callee has written it, an item of a record where the record is, a variable on the
stack there. Any other array is written to memory where it is made, the first time that a call asks for its address.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

_ADDRESSES = "_zygote_py_addresses"  # the attribute of an LLVM function


class Addresses:
    """The addresses of values of an LLVM function."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}  # the values are kept, so that no other has the same id
        self._of_statement: list[int] = []

    def note(self, value: Any, address: Any) -> None:
        """Remember where a value stands for as long as it is used."""
        self._known[id(value)] = value, address

    def note_variable(self, value: Any, address: Any) -> None:
        """Remember where a value stands during the statement that has loaded it: a variable, which may be assigned."""
        self.note(value, address)
        self._of_statement.append(id(value))

    def begin_statement(self) -> None:
        """Forget where variables stood."""
        for each in self._of_statement:
            self._known.pop(each, None)
        self._of_statement.clear()

    def find(self, value: Any) -> Any:
        """Return where a value stands; None if it is not known."""
        known = self._known.get(id(value))
        return None if known is None else known[1]

    def of(self, builder: Any, value: Any) -> Any:
        """Return where a value stands, which is written to memory if it stands nowhere."""
        known = self.find(value)
        if known is not None:
            return known
        place = reserve(builder, value.type)
        if not isinstance(value, ir.Instruction):
            builder.store(value, place)
            return place
        with builder.goto_block(value.parent):
            if isinstance(value, ir.PhiInstr):
                builder.position_before(next(each for each in value.parent.instructions if not _is_phi(each)))
            else:
                builder.position_after(value)
            builder.store(value, place)
        self.note(value, place)
        return place


def _is_phi(instruction: Any) -> bool:
    return isinstance(instruction, ir.PhiInstr)


def reserve(builder: Any, kind: Any) -> Any:
    """Return the address of memory on the stack for a value of a type, which is not set."""
    entry = builder.function.entry_basic_block
    with builder.goto_block(entry):
        builder.position_at_start(entry)
        return builder.alloca(kind)


def let_addresses_be_taken(function: Any) -> None:
    """Let the calls in an LLVM function take arrays by their addresses where they can."""
    vars(function)[_ADDRESSES] = Addresses()


def addresses_of(function: Any) -> Addresses | None:
    """Return the addresses of values of an LLVM function; None if its calls take fields."""
    found: Addresses | None = vars(function).get(_ADDRESSES)
    return found
