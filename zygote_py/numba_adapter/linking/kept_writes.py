"""Writes to arrays that Numba would remove, because it does not see that they are used.

    s = [v * v for v in x]
    for row in m:
        row[:] = s[0]           # removed by Numba (seen in 0.68.1), which does not know that a row is memory of `m`

Numba looks for such writes where it has inlined a comprehension or an inner function, and in all functions with
`parallel=True`. It knows views that an index makes, and few more: not what a loop over an array, a choice among the
arrays of a tuple, or a call gives. Here all arrays that are written to count as used, in the functions that are read
and in emitted ones. Of others nothing changes: what `numba.njit` makes of the function above is still wrong.
"""

from __future__ import annotations

from typing import Any

from zygote_py.numba_adapter.base.internals import ir, ir_utils
from zygote_py.numba_adapter.linking.function_numbers import EMITTED
from zygote_py.numba_adapter.linking.typing_only import is_typed_only


def keep_writes() -> None:
    """Let Numba keep the writes; called before it reads or compiles a function."""
    for kind in (ir.SetItem, ir.Assign):
        found = ir_utils.alias_analysis_extensions.get(kind)
        if not isinstance(found, _Keep):
            ir_utils.alias_analysis_extensions[kind] = _Keep(found)


class _Keep:
    """A function that Numba calls for each statement, when it looks for arrays that share memory."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def __call__(
        self, statement: Any, args: Any, typemap: Any, func_ir: Any, aliases: Any, of_arguments: object
    ) -> None:
        if self.before is not None:
            self.before(statement, args, typemap, func_ir, aliases, of_arguments)
        if not isinstance(of_arguments, set):  # then it is lowering a parallel loop, and removes nothing
            return
        if not (is_typed_only() or func_ir.loc.filename.startswith(EMITTED)):
            return
        match statement:
            case ir.SetItem(target=array):
                of_arguments.add(array.name)
            case ir.Assign(value=ir.Expr(op="inplace_binop") as changed):  # an `Expr` raises KeyError for other fields
                of_arguments.add(changed.lhs.name)
