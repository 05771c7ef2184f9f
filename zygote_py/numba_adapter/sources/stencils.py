"""The functions of `@stencil`, as loops that call the kernel with the place that its indices are relative to.

    @stencil                            def smooth(a):
    def smooth(a):                          out = np.empty(a.shape, np.float64)
        return a[-1] + a[1]                 out[:1] = 0; out[-1:] = 0
                                            for i0 in range(1, n0 - 1):
                                                out[i0] = kernel(a, i0)         # a[-1 + i0] + a[1 + i0]
                                            return out

The kernel is the user's function with a parameter more for each axis, which a pass over Numba's IR adds to its indices.
How far the indices go, and which arrays have relative ones, Numba says.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np
from numba import types

from zygote_py.adjoints import refuse
from zygote_py.base import MADE, OURS, define
from zygote_py.ir import Type
from zygote_py.numba_adapter.base import Decoration, definition, loc_of, rewrite
from zygote_py.numba_adapter.base.internals import errors, ir, ir_utils, numpy_support
from zygote_py.numba_adapter.sources.python_sources import Kernel, ResolvedFunction, fresh, python_source

_RELATIVE = "relative_indices_"  # the attribute of a kernel that names its arrays and its counters


def signature_of_stencil(stencil: Any) -> inspect.Signature:
    """The parameters of the kernel, and `out`."""
    own = inspect.signature(python_source(stencil))
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    return own.replace(parameters=[*own.parameters.values(), out])


def find_in_stencil(stencil: Any, given: tuple[Type, ...], session: Any) -> ResolvedFunction:
    """The loops for arguments of these types. Raises errors of numba's if the stencil does not take them."""
    count = len(inspect.signature(python_source(stencil)).parameters)
    taken = given[:count]
    is_given = len(given) > count and isinstance(given[count], types.Array)
    array = taken[0] if taken else None
    if not isinstance(array, types.Array):
        raise errors.TypingError("the first argument of a stencil is the array that it runs over")
    if stencil.neighborhood is not None and len(stencil.neighborhood) != array.ndim:
        raise errors.TypingError(
            f"a stencil with {len(stencil.neighborhood)} axes in its neighborhood takes no array with {array.ndim}"
        )
    result, typemap, calltypes = stencil.get_return_type(taken)
    size, relative = _neighborhood(stencil, typemap, calltypes, array.ndim)
    func = session.once(
        (stencil, taken, is_given), lambda: _loops(stencil, taken, result.dtype, size, relative, is_given)
    )
    return ResolvedFunction(func, (*taken, given[count]) if is_given else taken)


def _neighborhood(
    stencil: Any, typemap: Any, calltypes: Any, rank: int
) -> tuple[tuple[tuple[int, int], ...], frozenset[str]]:
    """How far the indices go on each axis, and the arrays that are indexed."""
    kernel, calls = stencil.copy_ir_with_calltypes(stencil.kernel_ir, calltypes)
    blocks = kernel.blocks
    ir_utils.remove_args(blocks)
    copies, _ = ir_utils.copy_propagate(blocks, typemap)
    ir_utils.apply_copy_propagate(blocks, copies, ir_utils.get_name_var_table(blocks), typemap, calls)
    names = [f"index{axis}" for axis in range(rank)]
    size, relative = stencil.add_indices_to_kernel(
        kernel,
        names,
        rank,
        stencil.neighborhood,
        stencil.options.get("standard_indexing", []),
        dict(typemap),
        calls,
    )
    return tuple((int(low), int(high)) for low, high in size), frozenset(relative)


def _loops(
    stencil: Any,
    taken: tuple[Type, ...],
    dtype: Type,
    size: tuple[tuple[int, int], ...],
    relative: frozenset[str],
    is_given: bool,
) -> FunctionType:
    source = python_source(stencil)
    parameters = list(inspect.signature(source).parameters)
    first = parameters[0]
    names: set[str] = {*parameters, *source.__code__.co_names, *source.__code__.co_varnames, "np", "out"}
    counters = [fresh(f"i{axis}", names) for axis in range(len(size))]
    lengths = [fresh(f"n{axis}", names) for axis in range(len(size))]
    call, function = fresh("kernel", names), fresh("function", names)
    kernel = _kernel(
        source, [each for each in parameters if each not in stencil.options.get("standard_indexing", ())], counters
    )
    held: dict[str, Any] = {
        "np": np,
        call: Kernel(source.__name__, ResolvedFunction(kernel, (*taken, *[types.intp] * len(counters)), Decoration())),
    }
    lines = [f"def {function}({', '.join([*parameters, *['out'] * is_given])}):"]
    lines += [f"    {length} = {first}.shape[{axis}]" for axis, length in enumerate(lengths)]
    for name in parameters:
        if name in relative and name != first:
            lines += _check(name, taken[parameters.index(name)], lengths)
    if not is_given:
        element = fresh("dtype", names)
        held[element] = numpy_support.as_dtype(dtype).type
        lines.append(f"    out = np.empty(({', '.join(lengths)},), {element})")
    if not is_given or "cval" in stencil.options:
        value = fresh("border", names)
        lines.append(f"    {value} = {_text_of(stencil.options.get('cval', 0))}")
        whole = [":"] * len(size)
        for axis, (low, high) in enumerate(() if is_given else size):
            before, after = list(whole), list(whole)
            before[axis], after[axis] = f":{-low}", f"{-high}:"
            lines += [f"    out[{', '.join(before)}] = {value}"] * (low < 0)
            lines += [f"    out[{', '.join(after)}] = {value}"] * (high > 0)
        lines += [f"    out[{', '.join(whole)}] = {value}"] * is_given
    for depth, (counter, length, (low, high)) in enumerate(zip(counters, lengths, size, strict=True), 1):
        stop = f"{length} - {high}" if high > 0 else length
        lines.append("    " * depth + f"for {counter} in range({max(0, -low)}, {stop}):")
    computed = f"{call}({', '.join([*parameters, *counters])})"
    lines.append("    " * (len(size) + 1) + f"out[{', '.join(counters)}] = {computed}")
    lines.append("    return out")
    return define("\n".join(lines), function, held | {OURS: True}, module=source.__module__, at=source)


def _text_of(value: Any) -> str:
    if value != value:
        return "np.nan"
    if value in (float("inf"), -float("inf")):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _check(name: str, type_: Type, lengths: list[str]) -> Iterator[str]:
    """Arrays with relative indices must not be smaller than the first."""
    rank = getattr(type_, "ndim", 0)
    if rank != len(lengths):
        yield '    raise ValueError("Secondary stencil array does not have same number of dimensions as the first.")'
        return
    for axis, length in enumerate(lengths):
        yield f"    if {length} > {name}.shape[{axis}]:"
        yield '        raise ValueError("Secondary stencil array has some dimension smaller than the first.")'


# ----------------------------------------------------------------------------------------------------------- the kernel


def _kernel(source: Any, arrays: list[str], counters: list[str]) -> FunctionType:
    """The kernel with parameters for the place that its indices are relative to."""
    made = FunctionType(source.__code__, source.__globals__, source.__name__, source.__defaults__, source.__closure__)
    made.__module__, made.__qualname__ = source.__module__, source.__qualname__
    own = inspect.signature(source)
    more = [inspect.Parameter(counter, inspect.Parameter.POSITIONAL_OR_KEYWORD) for counter in counters]
    vars(made)["__signature__"] = own.replace(parameters=[*own.parameters.values(), *more])
    vars(made)[MADE] = True
    vars(made)[_RELATIVE] = frozenset(arrays), tuple(counters)
    return made


def make_absolute(state: Any) -> None:
    """Add the place to the relative indices in the IR of a kernel, once; does nothing for any other function."""
    found = vars(state.func_id.func).get(_RELATIVE)
    if found is None or getattr(state, "is_absolute", False):
        return
    state.is_absolute = True
    arrays, counters = found

    def moved(block: Any, statement: Any) -> Iterator[Any] | None:
        match statement:
            case ir.Assign(value=ir.Expr(op="getitem") as read) if read.value.name in arrays:
                return _absolute(state.func_ir, block.scope, statement, counters)
            case ir.Assign(value=ir.Expr(op="static_getitem") as read) if read.value.name in arrays:
                raise _not_relative(statement)
        return None

    rewrite(state.func_ir, moved)


def _absolute(func_ir: Any, scope: Any, statement: Any, counters: tuple[str, ...]) -> Iterator[Any]:
    """The statements that read the element at a place."""
    read, loc = statement.value, statement.loc

    def new(value: Any) -> Any:
        """Return a new variable, which is assigned the value."""
        variable = scope.redefine("$place", loc)
        made.append(ir.Assign(value, variable, loc))
        return variable

    def moved(index: Any, counter: str) -> Any:
        """The index of the element, or the slice, at a place."""
        by = ir.Var(scope, counter, loc)
        part = definition(func_ir, index)
        if isinstance(part, ir.Expr) and part.op == "call":
            called = definition(func_ir, part.func)
            if isinstance(called, ir.Global) and called.value is slice and len(part.args) == 2:
                bounds = [new(ir.Expr.binop(operator.add, each, by, loc)) for each in part.args]
                return new(ir.Expr.call(part.func, bounds, (), loc))
        return new(ir.Expr.binop(operator.add, index, by, loc))

    made: list[Any] = []
    if len(counters) == 1:
        index = moved(read.index, counters[0])
    else:
        parts = _parts(func_ir, read.index, len(counters))
        if parts is None:
            raise _not_relative(statement)
        items = [new(ir.Const(each, loc)) if isinstance(each, int) else each for each in parts]
        index = new(ir.Expr.build_tuple(list(map(moved, items, counters)), loc))
    yield from made
    yield ir.Assign(ir.Expr.getitem(read.value, index, loc), statement.target, loc)


def _parts(func_ir: Any, index: Any, count: int) -> list[Any] | None:
    """The parts of an index of several, as variables or numbers."""
    parts: list[Any] = []
    match definition(func_ir, index):
        case ir.Const(value=tuple(held)) | ir.Global(value=tuple(held)) | ir.FreeVar(value=tuple(held)):
            parts = list(held)
        case ir.Expr(op="build_tuple") as made:
            parts = list(made.items)
    return parts if len(parts) == count else None


def _not_relative(statement: Any) -> Exception:
    return refuse(
        "this index in a stencil is not supported",
        loc_of(statement.loc),
        "write an integer, or a slice with two bounds, for each axis",
        "[",
    )
