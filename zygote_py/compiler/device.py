"""Derivatives for the threads of a device: the stages of `pipeline`, then a workspace and the device's operations.

    code = compile_for_device(request, (types.float64, types.int64), ())
    code.emitted.source             # @cuda.jit(device=True) def f_gradient(x, n, r, lane, lanes): ...
    code.records                    # r: float64
    code.lengths.source             # ... def f_gradient_lengths(x, n): return (n,)

Numba types the function for the processor: what is lowered to IR is the same for both.
"""

from __future__ import annotations

from dataclasses import replace

from zygote_py.adjoints import name_apart
from zygote_py.adjoints.device.arrays import give_arrays, record_zeros, use_own_arrays
from zygote_py.adjoints.device.inlining import inline_loops, inline_recording
from zygote_py.adjoints.device.records import Record, place_records
from zygote_py.adjoints.device.vocabulary import use_device_operations
from zygote_py.base import Capture
from zygote_py.compiler.pipeline import derivative_of, lower_of
from zygote_py.compiler.prepare import result_of
from zygote_py.compiler.request import Request
from zygote_py.emit import CUDA, Emitted, emit
from zygote_py.frontend import LoweredFunction
from zygote_py.ir import Function, Type, passes, routines_of, uses
from zygote_py.ir.lazy_dataclass import dataclass

_MODULE = "cuda"  # whose name no parameter may have


@dataclass(frozen=True, eq=False)
class DeviceCode:
    """A derivative as a module for a device.

    Attributes
    ----------
    emitted : Emitted
        The function. It takes the arguments, captured values, the arrays that it returns, the arrays of the workspace,
        the number of the thread, and the number of threads; the last three only if there are records.
    hidden, frozen : tuple of Capture
        The captured variables that are passed, and those that are constants.
    given : tuple of tuple of int
        For each array in the result, the number of the argument that has its shape, and, if that is a structure, the
        parts of it that lead to the array. Where the result has None, the
        function stores in an array that it is given.
    records : tuple of Record
        The arrays of the workspace.
    lengths : Emitted or None
        The function of the arguments and captured values that returns the length of each record for a thread.
    lengths_of : tuple of int
        The numbers of the arguments, captured values among them, that the lengths depend on.
    result : Type
        The type of the result, with arrays.
    """

    emitted: Emitted
    hidden: tuple[Capture, ...]
    frozen: tuple[Capture, ...]
    given: tuple[tuple[int, ...], ...]
    records: tuple[Record, ...]
    lengths: Emitted | None
    lengths_of: tuple[int, ...]
    result: Type


def compile_for_device(
    request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...] = ()
) -> DeviceCode:
    """Run all stages for one signature. Raises DifferentiationError, also for what a device cannot do."""
    # A device knows all of these flags or none.
    fastmath = request.options.get("fastmath", False)
    is_fast = fastmath is True or (isinstance(fastmath, set | frozenset) and "fast" in fastmath)
    options: dict[str, object] = {"fastmath": True} if is_fast else {}
    request = replace(request, options={**options, "error_model": "numpy"})  # where nothing is raised

    def lower(taken: tuple[Type, ...]) -> LoweredFunction:
        lowered = lower_of(request)(taken)
        inline_loops(lowered.function)
        return replace(lowered, routines=tuple(routines_of(lowered.function)))

    made, hidden = derivative_of(request, argument_types, hidden, lower, in_lanes=False)
    result = result_of(made.joint).type
    count = len(made.joint.params)
    inline_recording(made.joint)
    record_zeros(made.joint)
    placed = place_records(made.joint)
    given = give_arrays(placed.function, count)
    if given:
        passes.run(placed.function, passes.CLEAN_UP)
    _use_device(placed.function)
    emitted = emit(placed.function, name=request.name, target=CUDA, options=options)
    lengths: Emitted | None = None
    read: tuple[int, ...] = ()
    if placed.lengths is not None:
        used = uses(placed.lengths)
        read = tuple(number for number, param in enumerate(placed.lengths.params) if param in used)
        _use_device(placed.lengths)
        lengths = emit(placed.lengths, name=f"{request.name}_lengths", target=CUDA)
    return DeviceCode(emitted, hidden, made.lowered.frozen, given, placed.records, lengths, read, result)


def _use_device(function: Function) -> None:
    for param in function.params:
        if param.hint == _MODULE:
            param.hint = f"{_MODULE}_"
    name_apart(function.params)
    use_own_arrays(function)
    use_device_operations(function)
