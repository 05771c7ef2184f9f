"""Errors inside the compiler: `InternalError`, a compiler bug, with the pass and the IR in which it was detected.

    raise InternalError("the latch has two successors", "canonical", text(function))

Errors in the user's program are `zygote_py.adjoints.errors.DifferentiationError`.
"""

from __future__ import annotations


class InternalError(Exception):
    """A violated invariant of the compiler. `pass_name` and `ir` locate it; either may be empty."""

    def __init__(self, message: str, pass_name: str = "", ir: str = "") -> None:
        self.message = message
        self.pass_name = pass_name
        self.ir = ir
        where = f" after {pass_name}" if pass_name else ""
        super().__init__(f"internal error{where}: {message}" + (f"\n{ir}" if ir else ""))
