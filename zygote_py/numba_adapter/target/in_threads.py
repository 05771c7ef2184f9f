"""Functions that run in the threads of `prange`: the helpers of `zygote_py.ir.ops.host_threads`.

    in_threads(f, count, 0, x, y)   store { x, y } on the stack; numba_parallel_for(kernel, numbers 0 to count, ...)
                                    kernel: for each number that the thread gets: f(number, 0, x, y)

Numba's own parallel loops become functions of arrays, typed and compiled anew in passes over the whole function. Here
the function exists; its arguments are in the memory of the caller, which waits for all threads. An exception is kept
with the number of its call, and that of the first of them is raised: in Numba they are lost.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import llvmlite.binding as binding
import llvmlite.ir as llvm
from numba import types
from numba.extending import intrinsic

from zygote_py.ir import ops
from zygote_py.numba_adapter.base import internals
from zygote_py.numba_adapter.base.internals import cgutils, signature

_MOST = 256  # calls
_LEAST_WORK = 50_000  # additions for a thread, some twenty microseconds
_Star: Any = types.StarArgTuple


_busy = ctypes.c_int64(0)  # whether threads are running, so that others run in order
_BUSY = "zygote_py_threads_are_busy"


@functools.cache
def _announce() -> None:
    binding.add_symbol(_BUSY, ctypes.addressof(_busy))
    if internals.threading_layer() == "omp" and hasattr(os, "register_at_fork"):  # whose threads a child does not have
        os.register_at_fork(after_in_child=lambda: setattr(_busy, "value", 1))


def start_threads() -> None:
    """Start Numba's threads, and let machine code find what divides work among them."""
    internals._launch_threads()
    _announce()


@intrinsic
def _threads_for(context: Any, rounds: Any, work: Any, elements: Any) -> Any:
    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        """Return the number for which work / number + 2 elements * number is least, within the bounds."""
        context.active_code_library._reload_init.add(start_threads)
        start_threads()
        word, real = context.get_value_type(types.int64), llvm.DoubleType()
        rounds, work, elements = args
        kind = llvm.FunctionType(word, [])
        threads = builder.call(cgutils.get_or_insert_function(builder.module, kind, "get_num_threads"), [])

        def least(one: Any, other: Any) -> Any:
            return builder.select(builder.icmp_signed("<", one, other), one, other)

        found = least(least(threads, word(_MOST)), least(rounds, builder.sdiv(work, word(_LEAST_WORK))))
        parts = builder.fmul(builder.sitofp(builder.add(elements, word(1)), real), real(2))
        root = builder.module.declare_intrinsic("llvm.sqrt", [real])
        best = builder.call(root, [builder.fdiv(builder.sitofp(work, real), parts)])
        is_less = builder.fcmp_ordered("<", best, real(_MOST))
        found = least(found, builder.fptosi(builder.select(is_less, best, real(_MOST)), word))
        return builder.select(builder.icmp_signed(">", found, word(1)), found, word(1))

    return signature(types.int64, types.int64, types.int64, types.int64), lowered


@intrinsic
def _in_threads(context: Any, function: Any, count: Any, seams: Any, *args: Any) -> Any:
    if not isinstance(function, types.Dispatcher):
        return None
    kinds = tuple(map(types.unliteral, args))
    called = context.resolve_function_type(function, (types.int64, types.int64, *kinds), {})

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.active_code_library._reload_init.add(start_threads)
        start_threads()
        word = context.get_value_type(types.int64)
        pointer = cgutils.voidptr_t
        _, count, seams, rest = args
        values = cgutils.unpack_tuple(builder, rest, len(kinds))
        codes = cgutils.alloca_once(builder, llvm.ArrayType(llvm.IntType(32), 2 * _MOST))
        errors = cgutils.alloca_once(builder, llvm.ArrayType(pointer, 2 * _MOST))
        data = cgutils.pack_struct(builder, [seams, *values, codes, errors])
        place = cgutils.alloca_once_value(builder, data)
        kernel = _kernel(context, builder, function, called, data.type)
        numbers, length, step = (cgutils.alloca_once(builder, kind) for kind in (pointer, word, word))
        of_all = [numbers, length, step, builder.bitcast(place, pointer)]
        builder.store(word(1), step)

        def for_numbers(start: Any, count: Any) -> None:
            builder.store(builder.inttoptr(start, pointer), numbers)
            builder.store(count, length)

        for_numbers(word(0), count)
        busy = cgutils.add_global_variable(builder.module, word, _BUSY) if _BUSY not in builder.module.globals else None
        busy = busy or builder.module.globals[_BUSY]
        several = builder.icmp_signed(">", count, word(1))
        is_free = cgutils.alloca_once_value(builder, cgutils.false_bit)
        with builder.if_then(several):
            found = builder.cmpxchg(busy, word(0), word(1), "acquire", "monotonic")
            builder.store(builder.extract_value(found, 1), is_free)
        with builder.if_else(builder.load(is_free)) as (free, otherwise):
            with free:
                _run(context, builder, kernel, of_all)
                builder.store_atomic(word(0), busy, "release", 8)
            with otherwise:
                builder.call(kernel, of_all)
        for_numbers(count, seams)
        builder.call(kernel, of_all)
        _raise_first(context, builder, count, seams, codes, errors)
        return context.get_dummy_value()

    return signature(types.none, function, types.int64, types.int64, _Star(kinds)), lowered


def _run(context: Any, builder: Any, kernel: Any, of_all: list[Any]) -> None:
    """Call a kernel for all numbers, in threads. Python runs meanwhile: a thread may need it, to find BLAS for one."""
    word, pointer = llvm.IntType(64), cgutils.voidptr_t
    kind = llvm.FunctionType(llvm.VoidType(), [pointer] * 5 + [word] * 3)
    run = cgutils.get_or_insert_function(builder.module, kind, "numba_parallel_for")
    count = cgutils.get_or_insert_function(builder.module, llvm.FunctionType(word, []), "get_num_threads")
    given = [builder.bitcast(each, pointer) for each in (kernel, *of_all)]
    python = context.get_python_api(builder)
    held = python.gil_ensure()
    released = python.save_thread()
    builder.call(run, [*given, word(0), word(1), builder.call(count, [])])
    python.restore_thread(released)
    python.gil_release(held)


def _kernel(context: Any, builder: Any, function: Any, called: Any, kind: Any) -> Any:
    """Return the function that calls another for some of the numbers, and notes how that ended."""
    word, pointer = llvm.IntType(64), cgutils.voidptr_t
    conventions = context.call_conv
    compiled = function.dispatcher.overloads[tuple(called.args)]
    context.active_code_library.add_linking_library(compiled.library)
    callee = context.declare_function(builder.module, compiled.fndesc)
    parameters = [pointer.as_pointer(), word.as_pointer(), word.as_pointer(), pointer]
    made = llvm.Function(
        builder.module, llvm.FunctionType(llvm.VoidType(), parameters), f"zygote_py.kernel.{callee.name}"
    )
    made.linkage = "internal"
    within = llvm.IRBuilder(made.append_basic_block("entry"))
    numbers, length, _, data = made.args
    start = within.ptrtoint(within.load(numbers), word)
    given = within.load(within.bitcast(data, kind.as_pointer()))
    *values, codes, errors = (within.extract_value(given, place) for place in range(len(kind.elements)))
    with cgutils.for_range(within, within.load(length), intp=word) as each:
        number = within.add(start, each.index)
        status, _ = conventions.call_function(within, callee, called.return_type, called.args, [number, *values])
        nothing = status.code.type(0)
        code = within.select(status.is_error, status.code, nothing)
        within.store(code, within.gep(codes, [word(0), number]))
        error = within.bitcast(status.excinfoptr, pointer)
        within.store(error, within.gep(errors, [word(0), number]))
    within.ret_void()
    return made


def _raise_first(context: Any, builder: Any, count: Any, seams: Any, codes: Any, errors: Any) -> None:
    """Raise the exception of the first of the calls that ended by one. A seam comes after its chunk."""
    word = llvm.IntType(64)
    conventions = context.call_conv

    def raise_that_of(number: Any) -> None:
        code = builder.load(builder.gep(codes, [word(0), number]))
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, code.type(0))):
            error = builder.load(builder.gep(errors, [word(0), number]))
            of_caller = conventions._get_excinfo_argument(builder.function)
            known = builder.bitcast(error, of_caller.type.pointee)
            conventions.return_status_propagate(builder, conventions._get_return_status(builder, code, known))

    with cgutils.for_range(builder, count, intp=word) as each:
        raise_that_of(each.index)
        with builder.if_then(builder.icmp_signed("<", each.index, seams)):
            raise_that_of(builder.add(count, each.index))


NATIVE: dict[Any, Any] = {ops.in_threads: _in_threads, ops.threads_for: _threads_for}
