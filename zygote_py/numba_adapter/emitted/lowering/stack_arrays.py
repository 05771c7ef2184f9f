"""Small arrays that a function keeps to itself stand on the stack.

    r_record = np.empty(n)          n <= 64: in the frame of the function; else in new memory
    r_record[k] = r

The records and shadows of a function of few steps are such arrays, and to allocate one takes longer than to fill it.
Whether an array is small is known when it is made. It can be on the stack if its elements are read and written, and no
other variable, tuple or callee gets it that might keep it. Each statement that makes one has its place in the frame: in
the next round of a loop, the array of the last one is not used any more. Recursive functions have none, so that they
can be deep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numba import types

from zygote_py.numba_adapter.base.internals import ir
from zygote_py.numba_adapter.base.ir_walks import used_by
from zygote_py.numba_adapter.emitted.lowering.elements import SCALARS
from zygote_py.numba_adapter.emitted.lowering.native_calls import is_allocation

_SCALARS: tuple[Any, ...] = SCALARS
_READERS = (len, np.empty_like, np.zeros_like)  # functions that keep no reference to their arguments, nor return one
_READ = ("shape", "size", "ndim", "copy")  # attributes of which this is true


def kept_on_stack(
    function: Any, blocks: Mapping[int, Any], typeof: Callable[[str], Any], calltypes: Mapping[Any, Any]
) -> set[int]:
    """Return the identities of the calls that make these arrays, in the blocks of a function."""
    counts = Counter(each.target.name for block in blocks.values() for each in block.find_insts(ir.Assign))
    if any(isinstance(typeof(name), types.RecursiveCall) for name in counts) or _calls_itself(function):
        return set()
    calls: dict[str, Any] = {}  # by the variables that hold an array
    for block in blocks.values():
        here: dict[str, Any] = {}
        for statement in block.find_insts(ir.Assign):
            name, value = statement.target.name, statement.value
            if counts[name] > 1:
                continue
            if isinstance(value, ir.Expr) and value.op == "call" and not (value.kws or value.vararg):
                if is_allocation(typeof(value.func.name), calltypes[value].args):
                    here[name] = value
            elif isinstance(value, ir.Var) and value.name in here:
                here[name] = here[value.name]
        calls |= here
    kept = {id(call): call for call in calls.values()}
    for block in blocks.values():
        for statement in block.body:
            for name in _given_away(statement, calls, typeof):
                kept.pop(id(calls[name]), None)
    return set(kept)


def _calls_itself(function: Any) -> bool:
    """Return whether a function calls itself, perhaps by others of its module."""
    seen, pending = set(), [function]
    while pending:
        each = pending.pop()
        for name in each.__code__.co_names:
            callee = getattr(each.__globals__.get(name), "py_func", None)
            if callee is function:
                return True
            if callee is not None and callee not in seen:
                seen.add(callee)
                pending.append(callee)
    return False


def _given_away(statement: Any, calls: Mapping[str, Any], typeof: Callable[[str], Any]) -> Iterator[str]:
    """Yield the arrays that a statement may keep a reference to, or of which it uses more than elements and lengths."""
    if isinstance(statement, ir.Del):
        return
    used = [each.name for each in used_by(statement) if each.name in calls]
    held = _only_read(statement, calls, typeof) if used else None
    for name in used:
        if name == held:
            held = None  # once
        else:
            yield name


def _only_read(statement: Any, calls: Mapping[str, Any], typeof: Callable[[str], Any]) -> str | None:
    """Return the variable of which a statement reads or writes an element or a length, or which it copies."""
    read: Any = None
    if isinstance(statement, ir.SetItem | ir.StaticSetItem):
        read = statement.target if isinstance(typeof(statement.value.name), _SCALARS) else None
    value: Any = statement.value if isinstance(statement, ir.Assign) else None
    if isinstance(value, ir.Var) and calls.get(statement.target.name) is calls[value.name]:
        read = value
    match getattr(value, "op", None):
        case "getitem" | "static_getitem" if isinstance(typeof(statement.target.name), _SCALARS):
            read = value.value
        case "getattr" if value.attr in _READ:
            read = value.value
        case "call" if value.args and getattr(typeof(value.func.name), "typing_key", None) in _READERS:
            read = value.args[0]
    return None if read is None else read.name
