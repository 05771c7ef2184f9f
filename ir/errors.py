"""What goes wrong inside the compiler: `InternalError`, a bug of ours, with the pass and the IR it was found in.

    raise InternalError("the latch has two successors", "canonical", text(function))

The mistakes of users are not here: those are `zygote_py.adjoints.errors.DifferentiationError`.
"""

from __future__ import annotations


class InternalError(Exception):
    """An invariant of the compiler does not hold. `pass_name` and `ir` say where; either may be empty."""

    def __init__(self, message: str, pass_name: str = "", ir: str = "") -> None:
        self.message = message
        self.pass_name = pass_name
        self.ir = ir
        where = f" after {pass_name}" if pass_name else ""
        super().__init__(f"internal error{where}: {message}" + (f"\n{ir}" if ir else ""))
