"""The ufuncs of `@vectorize` and `@guvectorize`, as loops over the elements or parts of their arguments.

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
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from zygote_py.base import OURS, define
from zygote_py.ir import Type
from zygote_py.numba_adapter.base import Decoration, misfit_text, semantic
from zygote_py.numba_adapter.base.internals import GUFunc, errors, npydecl, numpy_support, parse_signature
from zygote_py.numba_adapter.sources.python_sources import Kernel, ResolvedFunction, fresh, python_source

_ERRORS = {"error_model": "numpy"}  # of every kernel, whatever its options are


def find_in_ufunc(ufunc: Any, given: tuple[Type, ...], session: Any) -> ResolvedFunction:
    """The loop for arguments of these types. Raises numba's TypingError if the ufunc has none."""
    bases, outputs, rank, layout = npydecl.Numpy_rules_ufunc._handle_inputs(ufunc.ufunc, given, {})
    kernel = _kernel(ufunc, tuple(bases[: ufunc.nin]), given)
    result = session.result_type(kernel.func, kernel.types, kernel.how)
    ranks = tuple(each.ndim if isinstance(each, types.Array) else -1 for each in given)
    func = session.once(
        (ufunc, kernel, ranks, layout),
        lambda: _loop(ufunc, kernel, ranks, rank, layout == "F", None if outputs else result),
    )
    return ResolvedFunction(func, given)


def find_in_gufunc(gufunc: Any, given: tuple[Type, ...], session: Any) -> ResolvedFunction:
    """The loop for arguments of these types, the results last. Raises numba's TypingError if there is none."""
    inputs, outputs = gufunc.expected_ndims()
    cores = (*inputs, *outputs)
    if len(given) != len(cores):
        raise errors.TypingError(f"`{gufunc.__name__}` takes {len(cores)} arguments, the arrays for its results last")
    for number, (kind, core) in enumerate(zip(given, cores, strict=True)):
        rank = kind.ndim if isinstance(kind, types.Array) else 0 if number < len(inputs) else -1
        if rank < core:
            raise errors.TypingError(f"argument {number} of `{gufunc.__name__}` has too few dimensions for {core}")
    elements = tuple(each.dtype if isinstance(each, types.Array) else each for each in given)
    kernel = _kernel(gufunc, elements, given)
    for number, (own, kind) in enumerate(zip(kernel.types, given, strict=True)):
        if isinstance(own, types.Array) and own.dtype != getattr(kind, "dtype", kind):
            raise errors.TypingError(misfit_text(gufunc.__name__, [kernel.types], given))
        if not isinstance(own, types.Array) and number >= len(inputs):
            raise errors.TypingError(f"a result of `{gufunc.__name__}` is not an array")
    ranks = tuple(each.ndim if isinstance(each, types.Array) else -1 for each in given)
    func = session.once((gufunc, kernel, ranks), lambda: _core_loop(gufunc, kernel, ranks, cores, len(inputs)))
    return ResolvedFunction(func, given)


def _kernel(ufunc: Any, elements: tuple[Type, ...], given: tuple[Type, ...]) -> ResolvedFunction:
    """The Python function for elements of these types, and the types that it takes them as."""
    source = python_source(ufunc)
    options = tuple(sorted({**dict(semantic(ufunc._dispatcher.targetoptions)), **_ERRORS}.items()))
    decoration = Decoration(options, tuple(ufunc._dispatcher.locals.items()))
    signature, _ = ufunc.find_ewise_function(elements)
    if signature is not None:
        return ResolvedFunction(source, tuple(signature.args), replace(decoration, result=signature.return_type))
    if ufunc._frozen:
        known = [each.args for each in ufunc._dispatcher.overloads]
        raise errors.TypingError(misfit_text(ufunc.__name__, known, given))
    taken = tuple(ufunc._get_function_type(*elements).args) if isinstance(ufunc, GUFunc) else elements  # type: ignore[attr-defined]
    return ResolvedFunction(source, taken, decoration)


def _loop(
    ufunc: Any, kernel: ResolvedFunction, ranks: tuple[int, ...], rank: int, reversed_: bool, result: Type | None
) -> Any:
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
        lines.append(f"    return {computed}")
        return define("\n".join(lines), function, names | {OURS: True}, module=source.__module__, at=source)
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
    return define("\n".join(lines), function, names | {OURS: True}, module=source.__module__, at=source)


def _core_loop(
    gufunc: Any, kernel: ResolvedFunction, ranks: tuple[int, ...], cores: tuple[int, ...], inputs: int
) -> Any:
    """The function that calls the kernel with parts of `cores` dimensions; the first result says how often."""
    source = python_source(gufunc)
    parameters = list(inspect.signature(source).parameters)
    taken = set(parameters)
    call, function = fresh("kernel", taken), fresh("function", taken)
    lines = [f"def {function}({', '.join(parameters)}):"]
    result = parameters[inputs]
    rank = ranks[inputs] - cores[inputs]
    counters = [fresh(f"i{axis}", taken) for axis in range(rank)]
    named: dict[tuple[str, ...], str] = {}  # arguments by their part of the signature
    taken_in, given_out = parse_signature(gufunc.gufunc_builder.signature)
    for name, own, core in zip(parameters, ranks, (*taken_in, *given_out), strict=True):
        other = named.setdefault(core, name) if own >= 0 else name
        if other != name:
            before = ranks[parameters.index(other)]
            lines += _unless_equal(
                [
                    (f"{name}.shape[{own - back}]", f"{other}.shape[{before - back}]")
                    for back in range(1, len(core) + 1)
                ],
                "Operand has a mismatch in one of its core dimensions",
            )
    args, numpy = [], fresh("numpy", taken)
    for number, (name, own, core) in enumerate(zip(parameters, ranks, cores, strict=True)):
        is_one = not core and isinstance(kernel.types[number], types.Array)  # the kernel takes a number as an array
        if own < 0:
            args.append(f"{numpy}.full(1, {name})" if is_one else name)
            continue
        around = own - core
        if around > rank:
            raise errors.TypingError(f"argument {number} of `{gufunc.__name__}` has more dimensions than its result")
        if name != result:
            sizes = [(f"{name}.shape[{axis}]", f"{result}.shape[{axis}]") for axis in range(around)]
            if around < rank:  # Numba compares the first lengths, and takes the parts by the last counters
                sizes += [
                    (f"{name}.shape[{axis}]", f"{result}.shape[{rank - around + axis}]") for axis in range(around)
                ]
            lines += _unless_equal(sizes, "Loop and array shapes are incompatible")
        indices = counters[rank - around :]
        if is_one:
            if not indices:
                args.append(f"{name}.reshape(1)")
                continue
            indices = [*indices[:-1], f"{indices[-1]}:{indices[-1]} + 1"]
        args.append(f"{name}[{', '.join(indices)}]" if indices else name if core else f"{name}[()]")
    for depth, counter in enumerate(counters, 1):
        lines.append("    " * depth + f"for {counter} in range({result}.shape[{depth - 1}]):")
    lines.append("    " * (rank + 1) + f"{call}({', '.join(args)})")
    names = {call: Kernel(source.__name__, kernel), numpy: np, OURS: True}
    return define("\n".join(lines), function, names, module=source.__module__, at=source)


def _unless_equal(sizes: list[tuple[str, str]], message: str) -> list[str]:
    """The statements that raise an error unless lengths are equal."""
    test = " or ".join(f"{one} != {other}" for one, other in sizes)
    return [f"    if {test}:", f'        raise ValueError("{message}")'] if sizes else []
