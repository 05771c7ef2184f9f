"""What `@vectorize` makes, as loops over the elements of its arguments.

    @vectorize                          def f(x, y):                        # for f(x[:], y[:, :])
    def f(x, y): ...                        ...                             # the lengths, and whether they fit
                                            out = np.empty((n0, n1), np.float64)
                                            for i0 in range(n0):
                                                for i1 in range(n1):
                                                    out[i0, i1] = kernel(x[i1 ...], y[i0 ..., i1 ...])
                                            return out

Which loop of the ufunc is taken, Numba says; the kernel takes its elements as the types of that loop, and its divisions
by zero give what NumPy's do.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numba import types
from numba.core import errors
from numba.core.typing import npydecl
from numba.np import numpy_support

from zygote_py.ir.core import Type
from zygote_py.numba_adapter.decorations import Decoration, misfit_text, semantic
from zygote_py.numba_adapter.sources import Found, Kernel, fresh, python_source, remembered, written

_ERRORS = ("error_model", "numpy")  # of every kernel, whatever its options are


def find_in_ufunc(ufunc: Any, given: tuple[Type, ...], session: Any) -> Found:
    """The loop for arguments of these types. Raises numba's TypingError if the ufunc has none."""
    given = tuple(map(types.unliteral, given))
    handled: Any = npydecl.Numpy_rules_ufunc
    bases, outputs, rank, layout = handled._handle_inputs(ufunc.ufunc, given, {})
    elements = tuple(bases[: ufunc.nin])
    kernel = _kernel(ufunc, elements, given)
    result = session.result_type(kernel.func, kernel.types, kernel.how)
    ranks = tuple(each.ndim if isinstance(each, types.Array) else -1 for each in given)

    def make() -> Any:
        return _loop(ufunc, kernel, ranks, rank, layout == "F", None if outputs else result)

    return Found(remembered(session, (ufunc, kernel, ranks, layout), make), given)


def _kernel(ufunc: Any, elements: tuple[Type, ...], given: tuple[Type, ...]) -> Found:
    """The Python function for elements of these types, and the types that it takes them as."""
    source = python_source(ufunc)
    options = tuple(sorted({**dict(semantic(ufunc.targetoptions)), _ERRORS[0]: _ERRORS[1]}.items()))
    decoration = Decoration(options, tuple(ufunc._dispatcher.locals.items()))
    signature, _ = ufunc.find_ewise_function(elements)
    if signature is not None:
        return Found(source, tuple(signature.args), Decoration(options, decoration.locals, signature.return_type))
    if ufunc._frozen:
        known = [each.args for each in ufunc._dispatcher.overloads]
        raise errors.TypingError(misfit_text(ufunc.__name__, known, given))
    return Found(source, elements, decoration)


def _loop(ufunc: Any, kernel: Found, ranks: tuple[int, ...], rank: int, reversed_: bool, result: Type | None) -> Any:
    """The function of all elements; `ranks` has -1 for numbers; without a `result` the last argument takes it."""
    source = python_source(ufunc)
    parameters = list(inspect.signature(source).parameters)
    taken = set(parameters)
    names = {"np": np, fresh("kernel", taken): Kernel(source.__name__, kernel), fresh("function", taken): None}
    call, function = list(names)[1:]
    del names[function]
    if "np" in parameters:
        raise errors.TypingError(f"a parameter of `{source.__name__}` is called `np`")
    out = fresh("out", taken)
    arrays = dict(zip([*parameters, out], ranks, strict=False))
    lines = [f"def {function}({', '.join(arrays)}):"]
    counters = [fresh(f"i{axis}", taken) for axis in range(rank)]
    lengths = [fresh(f"n{axis}", taken) for axis in range(rank)]
    indices: dict[str, list[str]] = {name: [] for name in arrays}
    for axis, (counter, length) in enumerate(zip(counters, lengths, strict=True)):
        having = {name: axis - rank + own for name, own in arrays.items() if axis - rank + own >= 0}
        if out in having:
            having = {out: having[out], **having}
        sizes = {name: f"{name}.shape[{own}]" for name, own in having.items()}
        first, *others = sizes.values()
        lines.append(f"    {length} = {first}")
        if out not in having:
            for other in others:
                lines += [f"    if {length} == 1:", f"        {length} = {other}"]
        for name, size in sizes.items():
            if name == out or len(sizes) == 1:
                indices[name].append(counter)
                continue
            wide = fresh(f"{name}_is_wide", taken)
            message = f"unable to broadcast argument {list(arrays).index(name)} to output array"
            lines += [
                f"    {wide} = {size} == {length}",
                f"    if not {wide} and {size} != 1:",
                f'        raise ValueError("{message}")',
            ]
            indices[name].append(f"np.where({wide}, {counter}, 0)")
    args = [
        name if own < 0 else f"{name}[{', '.join(indices[name]) or '()'}]"
        for name, own in arrays.items()
        if name != out
    ]
    computed = f"{call}({', '.join(args)})"
    if not rank:
        return written("\n".join([*lines, f"    return {computed}"]), function, names, source)
    if result is not None:
        dtype = fresh("dtype", taken)
        names[dtype] = numpy_support.as_dtype(result).type
        shape = ", ".join(reversed(lengths) if reversed_ else lengths)
        lines.append(f"    {out} = np.empty(({shape},), {dtype})" + ".T" * reversed_)
        indices[out] = counters
    for depth, (counter, length) in enumerate(zip(counters, lengths, strict=True), 1):
        lines.append("    " * depth + f"for {counter} in range({length}):")
    lines.append("    " * (rank + 1) + f"{out}[{', '.join(indices[out])}] = {computed}")
    lines.append(f"    return {out}")
    return written("\n".join(lines), function, names, source)
