"""How Python enters compiled code: arrays are passed to it, and returned by it, from memory.

Numba unpacks each array in branches of its own, loads what it returns as a whole, takes that apart word by word, and
stores each array again for the call that makes an object of it. For the gradient of a function of 160 arrays these are
18,000 instructions, 6,000 of them in a row; here they are 5,000, at most 2,000 in a row.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import llvmlite.ir as llvm
import numpy as np
from numba import types

from zygote_py.numba_adapter.base.internals import (
    NativeLowering,
    PyCallWrapper,
    callwrapper,
    cgutils,
    numpy_support,
    register_pass,
)
from zygote_py.numba_adapter.emitted.lowering.addresses import addresses_of
from zygote_py.numba_adapter.emitted.lowering.elements import places_of
from zygote_py.numba_adapter.emitted.lowering.lower import EmittedLower
from zygote_py.numba_adapter.linking import (
    add_entry_by_fields,
    entry_by_address,
    is_by_address,
    taken_by_address,
    type_by_address,
)
from zygote_py.numba_adapter.types import WithClasses

_COUNTED: Any = types.MemInfoPointer(types.voidptr)
_INT, _WORD = llvm.IntType(32), llvm.IntType(64)
_TUPLES = (types.Tuple, types.UniTuple)
_NAMED = (types.NamedTuple, types.NamedUniTuple)
_WRONG = "can't unbox array from PyObject into native value.  The object maybe of a different type"  # as Numba says it


class _WithEntries(EmittedLower):
    """Lowers an emitted function, and adds the functions by which others enter it."""

    def init(self) -> None:
        """Prepare."""
        taken, given = self.fndesc.argtypes, self.fndesc.restype
        is_entered = not self.flags.no_cpython_wrapper  # a generator has another entry of its own
        is_plain = is_entered and not isinstance(given, types.Optional | types.Generator)
        self._is_of_arrays = is_plain and (_has_arrays(given) or any(map(_takes_arrays, taken)))
        self._is_by_address = self._is_of_arrays and not self.flags.dbg_optnone and any(map(is_by_address, taken))
        super().init()

    def setup_function(self, fndesc: Any) -> None:
        """Begin the LLVM function. That by which Python enters the module takes arrays by their addresses."""
        if not self._is_by_address:
            super().setup_function(fndesc)
            return
        symbol, returned, taken = fndesc.llvm_func_name, fndesc.restype, fndesc.argtypes
        kind = type_by_address(self.context, returned, taken)
        self.begin_function(llvm.Function(self.module, kind, entry_by_address(symbol)))
        for given in self.function.args[:2]:
            given.add_attribute("captures(none)")
            given.add_attribute("noalias")
        add = functools.partial(
            add_entry_by_fields, context=self.context, symbol=symbol, result=returned, arguments=taken
        )
        self.library.added = symbol, add

    def extract_function_arguments(self) -> Any:
        """Return the values of the parameters."""
        if not self._is_by_address:
            return super().extract_function_arguments()
        addresses = addresses_of(self.function)
        taken = taken_by_address(self.context, self.builder, self.fndesc.argtypes, self.function.args[2:])
        for value, address in taken:
            if address is not None:
                address.add_attribute("noalias")  # nothing else leads to where the fields of an array are
                if addresses is not None:
                    addresses.note(value, address)
        self.fnargs = [value for value, _ in taken]
        return self.fnargs

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """Add the function by which Python enters this one."""
        if not self._is_of_arrays:
            super().create_cpython_wrapper(release_gil)
            return
        module = self.context.create_module("wrapper")
        if self._is_by_address:
            entered = llvm.Function(module, self.function.function_type, self.function.name)
        else:
            kind = self.context.call_conv.get_function_type(self.fndesc.restype, self.fndesc.argtypes)
            entered = llvm.Function(module, kind, self.fndesc.llvm_func_name)
        write: Any = _Entry
        write(self.context, module, entered, self.fndesc, self.env, self.call_helper, release_gil).build()
        self.library.add_ir_module(module)

    def create_cfunc_wrapper(self) -> None:
        """Add nothing: most functions are never entered by C code (see `with_entry_for_c`)."""


@register_pass(mutates_CFG=True, analysis_only=False)
class EmittedLowering(WithClasses, NativeLowering):
    """The pass; classes are constants of the environment."""

    _name = "zygote_py_EmittedLowering"

    @property
    def lowering_class(self) -> type:
        """Return the class that lowers a function."""
        return _WithEntries


def with_entry_for_c(result: Any) -> Any:
    """Return what was compiled with the function by which C code enters it, in a library of its own.

    So do functions that are values: arguments whose type is that of functions of a signature, and what is in a tuple or
    a list of functions.
    """
    context, described = result.target_context, result.fndesc
    library = context.codegen().create_library(described.llvm_cfunc_wrapper_name)
    context.create_cfunc_wrapper(library, described, result.environment, None)
    library.add_linking_library(result.library)
    library.finalize()
    return result._replace(library=library)


def _has_arrays(kind: Any) -> bool:
    return any(map(_has_arrays, kind)) if type(kind) in _TUPLES else type(kind) is types.Array


def _takes_arrays(kind: Any) -> bool:
    """Return whether a type is one of arrays, or of tuples, also with names, in which there are some."""
    items: Any = kind if type(kind) in (*_TUPLES, *_NAMED) else ()  # dataclasses are tuples for Numba
    return type(kind) is types.Array or any(map(_takes_arrays, items))


class _Entry(PyCallWrapper):
    """Writes the function by which Python enters compiled code: one of three objects, that returns an object."""

    context: Any
    fndesc: Any
    func: Any

    def build_wrapper(self, api: Any, builder: Any, closure: Any, args: Any, kws: Any) -> None:
        """Write the function; `api` writes the calls of Python's and Numba's functions."""
        kinds, context = self.fndesc.argtypes, self.context
        nothing = api.get_null_object()
        objects = [api.alloca_obj() for _ in kinds]
        found = api.unpack_tuple(args, self.fndesc.qualname, len(kinds), len(kinds), *objects)
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, found)):
            builder.ret(nothing)
        environment = self.get_env(api, builder)  # type: ignore[no-untyped-call]
        arrays = _Arrays(context, api, environment)
        failed = builder.append_basic_block("arg.end")
        others: Any = callwrapper._ArgManager(context, builder, api, environment, failed, len(kinds))
        convention, packed = context.call_conv, []
        for object_, kind in zip(objects, kinds, strict=True):
            if isinstance(kind, types.Omitted):
                continue  # which takes none
            if arrays.can_take(kind):
                packed.append(arrays.taken(builder.load(object_), kind, others.nextblk))
                continue
            arrays.look_in(builder.load(object_), kind, others.nextblk)
            value = others.add_arg(builder.load(object_), kind)
            if is_by_address(kind):
                packed.append(cgutils.alloca_once_value(builder, value))
            else:
                packed += convention._get_arg_packer([kind]).as_arguments(builder, [value])
        with builder.goto_block(failed):
            arrays.release()
            builder.ret(nothing)
        state = api.save_thread() if self.release_gil else None
        # As Numba's convention for calls has it, but that the result stays where the function stores it.
        result, error = (cgutils.alloca_once(builder, each.type.pointee) for each in self.func.args[:2])
        code = builder.call(self.func, [result, error, *packed], attrs=("noinline",))
        status = convention._get_return_status(builder, code, builder.load(error))
        if state is not None:
            api.restore_thread(state)
        others.emit_cleanup()
        arrays.release()
        with builder.if_then(status.is_ok, likely=True):
            builder.ret(_Boxes(context, api, environment).object_at(result, self.fndesc.restype))
        convention.raise_error(builder, api, status)
        builder.ret(nothing)


class _Arrays:
    """Takes arrays out of Python's objects, which may be arrays that Numba's type does not tell from others.

    Those are masked arrays, and arrays in a tuple whose bytes are in the order of another processor.
    """

    def __init__(self, context: Any, api: Any, environment: Any) -> None:
        self._context = context
        self._api = api
        self._plain = environment.read_const(environment.add_const(np.ndarray))
        self._looking: Any = None
        self._places: list[Any] = []  # addresses of the arrays, whose first word is the memory that they count
        self._unboxing: Any = None

    @staticmethod
    def can_take(kind: Any) -> bool:
        """Return whether a type is that of arrays of which it is known how many bytes an element has."""
        return type(kind) is types.Array and _bytes_of(kind) is not None

    def taken(self, object_: Any, kind: Any, failed: Any) -> Any:
        """Return where the array stands; the block `failed` is next if the object is not one of this kind."""
        builder, api = self._api.builder, self._api
        place = cgutils.alloca_once(builder, self._context.get_value_type(kind))
        self._places.append(place)
        given = [object_, builder.bitcast(place, api.voidptr), _WORD(_bytes_of(kind)), self._plain]
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, builder.call(self._unbox(), given))):
            builder.branch(failed)
        return place

    def look_in(self, object_: Any, kind: Any, failed: Any) -> None:
        """Look at the arrays in a tuple; the block `failed` is next if there is one that cannot be taken."""
        builder, api = self._api.builder, self._api
        if type(kind) is types.Array:
            is_wrong = builder.call(self._look(), [object_, self._plain])
            with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, is_wrong)):
                api.err_set_string("PyExc_TypeError", _WRONG)
                builder.branch(failed)
        elif _takes_arrays(kind):
            size = builder.call(api._get_function(llvm.FunctionType(_WORD, [api.pyobj]), "PyTuple_Size"), [object_])
            with cgutils.if_unlikely(builder, builder.icmp_signed("!=", size, _WORD(len(kind)))):
                api.err_set_string("PyExc_TypeError", _WRONG)
                builder.branch(failed)
            items: Any = kind
            for number, item in enumerate(items):
                if _takes_arrays(item):
                    self.look_in(api.tuple_getitem(object_, number), item, failed)

    def release(self) -> None:
        """Write that the references to arrays that have been taken are given back."""
        for place in self._places:
            _release(self._context, self._api.builder, place)

    def _unbox(self) -> Any:
        """Return the function that takes one array out of an object, and returns something else than 0 if it cannot."""
        if self._unboxing is not None:
            return self._unboxing
        api = self._api
        kind = llvm.FunctionType(_INT, [api.pyobj, api.voidptr, _WORD, api.pyobj])
        made = self._unboxing = self._internal(kind, "zygote_py.unbox")
        object_, place, size, plain = made.args
        builder = llvm.IRBuilder(made.append_basic_block("entry"))
        own = self._context.get_python_api(builder)
        code = own.nrt_adapt_ndarray_from_python(object_, place)
        words = builder.bitcast(place, _WORD.as_pointer())
        other = builder.icmp_unsigned("!=", builder.load(cgutils.gep_inbounds(builder, words, _ITEMSIZE)), size)
        is_wrong = cgutils.is_not_null(builder, builder.call(self._look(), [object_, plain]))
        wrong = builder.or_(is_wrong, builder.or_(cgutils.is_not_null(builder, code), other))
        with builder.if_then(wrong, likely=False):
            own.err_set_string("PyExc_TypeError", _WRONG)
        builder.ret(builder.zext(wrong, _INT))
        return made

    def _look(self) -> Any:
        """Return the function that returns something else than 0 if an object is not an array, or not one to take."""
        if self._looking is not None:
            return self._looking
        api = self._api
        made = self._looking = self._internal(llvm.FunctionType(_INT, [api.pyobj, api.pyobj]), "zygote_py.look")
        object_, plain = made.args
        builder = llvm.IRBuilder(made.append_basic_block("entry"))
        if not _is_known_layout():
            builder.ret(_INT(0))
            return made
        own = self._context.get_python_api(builder)
        asked = own._get_function(llvm.FunctionType(_INT, [own.pyobj, own.pyobj]), "PyObject_IsInstance")
        has = own._get_function(llvm.FunctionType(_INT, [own.pyobj, own.cstring]), "PyObject_HasAttrString")

        def word(of: Any, number: int) -> Any:
            words = builder.bitcast(of, own.pyobj.as_pointer())
            return builder.load(cgutils.gep_inbounds(builder, words, number))

        with builder.if_then(builder.icmp_unsigned("!=", word(object_, _CLASS), plain), likely=False):
            is_array = builder.icmp_signed("==", builder.call(asked, [object_, plain]), _INT(1))
            with builder.if_then(builder.not_(is_array)):
                own.err_clear()
                builder.ret(_INT(1))
            mask = self._context.insert_const_string(api.module, "_sharedmask")  # of masked arrays
            with builder.if_then(cgutils.is_not_null(builder, builder.call(has, [object_, mask]))):
                builder.ret(_INT(1))
        letters = builder.bitcast(word(object_, _DTYPE), llvm.IntType(8).as_pointer())
        order = builder.load(cgutils.gep_inbounds(builder, letters, _ORDER))
        builder.ret(builder.zext(builder.icmp_unsigned("==", order, llvm.IntType(8)(ord(_FOREIGN))), _INT))
        return made

    def _internal(self, kind: Any, name: str) -> Any:
        made = llvm.Function(self._api.module, kind, name)
        made.linkage = "internal"
        made.attributes.add("noinline")
        return made


# Words of objects: of any, its class; of NumPy's arrays, the dtype; and the byte of this with the order of bytes.
_CLASS, _DTYPE, _ORDER = 1, 7, 26
_FOREIGN = ">" if sys.byteorder == "little" else "<"


@functools.cache
def _is_known_layout() -> bool:
    """Return whether arrays have in memory what they should have, as far as that can be seen."""
    sample = np.zeros(1, f"{_FOREIGN}f8")
    words = (ctypes.c_void_p * (_DTYPE + 1)).from_address(id(sample))
    letter = ctypes.c_char.from_address(id(sample.dtype) + _ORDER).value
    return (words[_CLASS], words[_DTYPE], letter) == (id(np.ndarray), id(sample.dtype), _FOREIGN.encode())


_ITEMSIZE = 3  # the word of an array that holds the bytes of an element


def _bytes_of(kind: Any) -> int | None:
    try:
        return int(numpy_support.as_dtype(kind.dtype).itemsize)
    except NotImplementedError:
        return None


def _release(context: Any, builder: Any, place: Any) -> None:
    context.nrt.decref(builder, _COUNTED, builder.load(cgutils.gep_inbounds(builder, place, 0, 0)))


class _Boxes:
    """Makes objects of values in memory."""

    def __init__(self, context: Any, api: Any, environment: Any) -> None:
        self._context = context
        self._api = api
        self._environment = environment
        self._known: dict[Any, list[Any]] = {}  # what the arrays of a type have in common

    def object_at(self, place: Any, kind: Any) -> Any:
        """Return the object of a value, which takes over the references that the value holds."""
        api, builder = self._api, self._api.builder
        if type(kind) is types.Array:
            made = builder.call(self._adapt(), [builder.bitcast(place, api.voidptr), *self._common(kind)])
            _release(self._context, builder, place)
            return made
        if not _has_arrays(kind):
            value = self._context.data_model_manager[kind].load_from_data_pointer(builder, place)
            return api.from_native_value(kind, value, self._environment)
        made = api.tuple_new(len(kind))
        for number, item in enumerate(places_of(self._context, builder, kind, place)):
            api.tuple_setitem(made, number, self.object_at(item, kind[number]))
        return made

    def _common(self, kind: Any) -> list[Any]:
        """Return the class of arrays, how many axes they have, whether they can be written to, and their dtype."""
        if kind not in self._known:
            known = (kind.box_type, numpy_support.as_dtype(kind.dtype))
            made, dtype = (self._environment.read_const(self._environment.add_const(each)) for each in known)
            self._known[kind] = [made, _INT(kind.ndim), _INT(int(kind.mutable)), dtype]
        return self._known[kind]

    def _adapt(self) -> Any:
        """Return the function that makes an array of Python's of one in memory, with a reference of its own."""
        api = self._api
        kind = llvm.FunctionType(api.pyobj, [api.voidptr, api.pyobj, _INT, _INT, api.pyobj])
        return api._get_function(kind, name="NRT_adapt_ndarray_to_python_acqref")
