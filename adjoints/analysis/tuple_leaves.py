"""The leaves of tuples: one instruction for each number or array in a tuple, where the tuple is created.

    function f(%p: (f64, (f64[:], i64)))        %p_0 = getitem %p, 0 : f64
                                                %p_1 = getitem %p, 1 : (f64[:], i64)
                                                %p_1_0 = getitem %p_1, 0 : f64[:]   ...

The front end already reads tuple parameters in this form, where it reads them; here every leaf gets exactly one
instruction, so that a leaf represents its part of the parameter like a separate parameter. The results of operations
with opaque rules are treated in the same way: a rule may need an item that the function does not use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from numba import types

from zygote_py.adjoints.rules.formulas.opaque import opaque_for
from zygote_py.ir import Const, Function, Instr, Param, Routine, Value, components_of, names_of, ops, replace


def expose_leaves(function: Function, wrt: Collection[Param]) -> dict[Value, tuple[Instr, ...]]:
    """Expose each part of the tuple parameters in `wrt` as one instruction; return the parts of each tuple."""
    parts: dict[Value, tuple[Instr, ...]] = {}
    made: list[Instr] = []

    def split(whole: Value) -> None:
        if not isinstance(whole.type, types.BaseTuple):
            return
        parts[whole] = tuple(
            Instr(ops.getitem, (whole, Const(index, types.int64)), type, f"{whole.hint}_{name}", whole.loc)
            for index, (name, type) in enumerate(zip(names_of(whole.type), components_of(whole.type), strict=True))
        )
        for part in parts[whole]:
            made.append(part)
            split(part)

    for param in function.params:
        if param in wrt:
            split(param)
    _replace_reads(function, parts)
    function.entry.instrs[:0] = made
    return parts


def expose_results(function: Function) -> None:
    """Expose each item of the tuples that opaque operations and routines return as one instruction after them."""
    parts: dict[Value, tuple[Instr, ...]] = {
        instr: tuple(
            Instr(ops.getitem, (instr, Const(index, types.int64)), type, f"{instr.hint}_{index}", instr.loc)
            for index, type in enumerate(components_of(instr.type))
        )
        for instr in function.instrs()
        if isinstance(instr.type, types.BaseTuple) and (isinstance(instr.op, Routine) or opaque_for(instr) is not None)
    }
    _replace_reads(function, parts)
    for block in function.blocks:
        block.instrs = [new for old in block.instrs for new in (old, *parts.get(old, ()))]


def reachable(values: Iterable[Value], parts: Mapping[Value, tuple[Instr, ...]]) -> Iterator[Value]:
    """Yield the values, and all parts of those that are tuples."""
    for value in values:
        yield value
        yield from reachable(parts.get(value, ()), parts)


def _replace_reads(function: Function, parts: dict[Value, tuple[Instr, ...]]) -> None:
    """Replace the reads of the parts by the parts; a part of a part is read after the part, in the same order."""
    replacement: dict[Value, Value] = {}
    for instr in function.instrs():
        match instr:
            case Instr(op=ops.getitem, args=(Value() as whole, Const(value=int(index)))):
                whole = replacement.get(whole, whole)
                if whole in parts:
                    replacement[instr] = parts[whole][index]
    replace(function, replacement)
