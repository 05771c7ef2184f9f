"""The adjoint of a whole kernel: the stages of `pipeline`, for a function that each thread of a grid runs.

    code = compile_kernel(function, {}, (float64[::1], float64[::1]), None)
    code.emitted.source         # @cuda.jit def kernel_adjoint(x, dx, out, dout): ...
    code.active                 # (0, 1): the numbers of the parameters that a shadow follows

Numba types the kernel for the processor, with stand-ins for what is there of CUDA (`numba_adapter.reading.kernels`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import FunctionType

from numba import types

from zygote_py.adjoints import name_apart, refuse
from zygote_py.adjoints.analysis import has_shadow
from zygote_py.adjoints.device.arrays import use_own_arrays
from zygote_py.adjoints.device.kernels import (
    Shared,
    active_shared,
    adjoint_of_kernel,
    drop_barriers,
    give_lane,
    give_shared,
    take_threads,
    use_atomic_updates,
)
from zygote_py.adjoints.device.records import Record, place_records
from zygote_py.adjoints.device.reduction import give_parts
from zygote_py.adjoints.device.vocabulary import use_device_operations
from zygote_py.base import Capture
from zygote_py.compiler.pipeline import lower_of
from zygote_py.compiler.prepare import finish, lowered_primal
from zygote_py.compiler.request import make_request
from zygote_py.emit import CUDA, KERNEL, Emitted, emit
from zygote_py.frontend import LoweredFunction
from zygote_py.ir import Function, Param, Type, ops, passes, uses
from zygote_py.ir.lazy_dataclass import dataclass

# The options of a kernel that its adjoint has too, with what they are by default.
_OPTIONS: dict[str, object] = {
    "debug": 0,
    "fastmath": False,
    "lineinfo": False,
    "max_registers": None,
    "opt": True,
    "launch_bounds": None,
}
_MODULE = "cuda"  # whose name no parameter may have


@dataclass(frozen=True, eq=False)
class KernelCode:
    """The adjoint of a kernel, as a module for a device.

    Attributes
    ----------
    emitted : Emitted
        The kernel. It takes the arguments, each active one followed by its shadow, captured values, and the arrays of
        the workspace.
    active : tuple of int
        The parameters that a shadow follows.
    written : tuple of int
        The parameters that the kernel writes to.
    hidden, frozen : tuple of Capture
        The captured variables that are passed, and those that are constants.
    shared, shadows_of_shared : tuple of Shared
        The arrays in shared memory, and those of them that have a shadow.
    finals : tuple of int
        The parameters that are followed, after the captured values, by arrays with what they are after the kernel.
    records : tuple of Record
        The arrays of the workspace.
    lengths : Emitted or None
        The function of the arguments, their shadows and captured values that returns the length of each record for a
        thread.
    lengths_read_memory : bool
        Whether the lengths depend on what arrays hold, and not on numbers and shapes alone.
    sums : tuple of pairs
        The numbers of records whose parts, of all threads, are added to a shadow, each with the number of that shadow.
    """

    emitted: Emitted
    active: tuple[int, ...]
    written: tuple[int, ...]
    hidden: tuple[Capture, ...]
    frozen: tuple[Capture, ...]
    shared: tuple[Shared, ...]
    shadows_of_shared: tuple[Shared, ...]
    finals: tuple[int, ...]
    records: tuple[Record, ...]
    lengths: Emitted | None
    lengths_read_memory: bool
    sums: tuple[tuple[int, int], ...]


def compile_kernel(
    function: FunctionType,
    options: Mapping[str, object],
    argument_types: tuple[Type, ...],
    names: Collection[str] | None,
    axes: int = 3,
    threads: tuple[int, int, int] = (1, 1, 1),
    deterministic: bool = False,
) -> KernelCode:
    """Run all stages for one signature, and grids with as many axes and `threads` in a block.

    `names` are the active parameters: by default all arrays of floats. `deterministic` sums have a fixed order.

    Raises DifferentiationError, also for what a device cannot do.
    """
    request = make_request(function, (), with_value=False)
    is_fast = options.get("fastmath", False)
    semantic: dict[str, object] = {"fastmath": True} if is_fast else {}
    request = replace(request, name=f"{function.__name__}_adjoint", options={**semantic, "error_model": "numpy"})
    shared: list[Shared] = []

    def lower(taken: tuple[Type, ...]) -> LoweredFunction:
        lowered = lower_of(request)(taken)
        shared[:] = take_threads(lowered.function)
        return replace(lowered, routines=())

    _, _, lowered = lowered_primal(request, argument_types, lower)
    primal, count = lowered.function, lowered.argument_count
    if not isinstance(lowered.result_type, types.NoneType):
        raise refuse(f"a kernel returns nothing, and this one a value of type {lowered.result_type}", request.loc)
    active = _active(primal.params[:count], names)
    start = len(primal.params) - len(shared)
    own = [start + number for number, each in enumerate(shared) if has_shadow(each.type)]
    own = active_shared(primal, active, own) if own else []
    in_shared = {number: shared[number - start] for number in own}
    made = adjoint_of_kernel(primal, [*active, *own], in_shared, threads, axes, deterministic)
    joint, params = made.function, list(made.function.params)
    of = {number: params[place] for number, place in made.shadows.items()}
    numbers = {*made.written, *made.shadows.values()}
    joint.params = [
        *(each for number in range(count) for each in (params[number], *([of[number]] if number in active else []))),
        *params[count:start],
        *(params[place] for place in made.finals.values()),
        *(params[start + number] for number in range(len(shared))),
        *(of[number] for number in own),
    ]
    name_apart(joint.params)
    finish(joint, in_threads=True)
    drop_barriers(joint)
    in_blocks = [*params[start : start + len(shared)], *(of[number] for number in own)]
    shadows = [of[number] for number in active]
    parts = give_parts(joint, shadows, [of[number] for number in own], axes) if deterministic else {}
    use_atomic_updates(joint, [params[number] for number in numbers], in_blocks, axes)
    placed = place_records(joint, [params[number] for number in numbers])
    give_shared(joint, [(each, params[start + n], of.get(start + n)) for n, each in enumerate(shared)])
    if placed.records:
        give_lane(joint, *joint.params[-2:])
    passes.run(joint, passes.CLEAN_UP)
    _use_device(joint)
    kept = {name: option for name, option in options.items() if name in _OPTIONS and option != _OPTIONS[name]}
    emitted = emit(joint, name=request.name, target=KERNEL, options=kept)
    lengths: Emitted | None = None
    if placed.lengths is not None:
        outside = joint.params[: len(joint.params) - len(placed.records)]
        if any(param in uses(placed.lengths) for param in placed.lengths.params[len(outside) :]):
            raise refuse("how much a thread records depends on the size of shared memory", request.loc)
        placed.lengths.params = placed.lengths.params[: len(outside)]
        _use_device(placed.lengths)
        lengths = emit(placed.lengths, name=f"{request.name}_lengths", target=CUDA)
    written = tuple(number for number in made.written if number < count)
    return KernelCode(
        emitted,
        active,
        written,
        lowered.hidden,
        lowered.frozen,
        tuple(shared),
        tuple(shared[number - start] for number in own),
        tuple(made.finals),
        placed.records,
        lengths,
        placed.lengths is not None and any(each.op is ops.getitem for each in placed.lengths.instrs()),
        tuple((placed.starts[part], shadows.index(array)) for part, array in parts.items()),
    )


def _active(params: list[Param], names: Collection[str] | None) -> tuple[int, ...]:
    """Return the numbers of the parameters that a shadow follows."""
    return tuple(
        number
        for number, param in enumerate(params)
        if (names is None or param.hint in names)
        and isinstance(param.type, types.Array)
        and isinstance(param.type.dtype, types.Float)
    )


def _use_device(function: Function) -> None:
    for param in function.params:
        if param.hint == _MODULE:
            param.hint = f"{_MODULE}_"
    name_apart(function.params)
    use_own_arrays(function)
    use_device_operations(function)
