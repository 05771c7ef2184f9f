"""Calls of an object from Python that go to a compiled function, with no frame of Python's in between.

    class Derivative(DirectCalls):
        def __call__(self, *args, **kwargs): ...        # whatever `directly` does not do
        def failed(self, args, error): ...              # what to return, or raise, when the function has raised

    make_direct(Derivative)
    seen = sights([(namespace, "g", g)])                # None if machine code cannot look at one of these
    made.directly(dispatcher, python_function, code, seen)      # as long as it has this code, and all is as seen
    made.directly(None, None, None)

A method `__call__` costs more than Numba takes for a whole call: the lookup, a frame, a dict for keywords. Here the
type gets a function in machine code in its place, which is called with the arguments as they are. It calls the method
wherever it does not know what to do: with keywords, and if the Python function was changed in place, or a variable of
those in sight: a global one or one of an enclosing function, or a part of a function.

Where the type is not as CPython has laid it out since 3.8, the method stays.
"""

from __future__ import annotations

import builtins
import ctypes
import struct
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from llvmlite import binding as llvm

from zygote_py.base import defaults_of

_WORD = ctypes.sizeof(ctypes.c_void_p)
_CALL = 16 * _WORD  # where a type has `tp_call`, after its name, sizes and the slots before it
_FIRST = 2 * _WORD  # where an object has its first slot, after its count of references and its type


class Sights(NamedTuple):
    """Variables with their values, as machine code compares them, and the objects that must live as long as these.

    If there are `more` arguments, they follow those of a call, which must then be a certain number.
    """

    words: bytes  # that number; for each four: what to read, of what, by which name, the address of the value; a zero
    kept: tuple[object, ...] = ()
    more: tuple[object, ...] = ()


_ITEM, _CONTENTS, _PART = range(1, 4)
_NOTHING = Sights(bytes(2 * _WORD))


def sights(
    variables: Iterable[tuple[Any, str, object]], count: int = 0, more: tuple[object, ...] = ()
) -> Sights | None:
    """Return what to compare for variables, each by its place, its name in there, and its value.

    Places are namespaces, cells, modules and functions. None if there is another one. If there are `more` arguments,
    they follow those of a call, whose number is `count`.
    """
    words, kept = [count], []
    for place, name, value in variables:
        found = _sight(place, name, value)
        if found is None:
            return None
        words += found
        kept += [place, getattr(place, "__kwdefaults__", None), name, value]
    return Sights(struct.pack(f"{len(words) + 1}P", *words, 0), tuple(kept), more)


def _sight(place: Any, name: str, value: object) -> tuple[int, ...] | None:
    """Return four words: the kind, the place, the name or what reads the part of a function, and the value.

    They are eight for a name that Python has in every module; of its own functions it is taken to keep them.
    """
    if type(place) is CellType:
        return _CONTENTS, id(place), 0, id(value)
    if type(place) is FunctionType:
        if name in _PARTS:
            is_unset = value is None and name != "__code__"
            return _PART, id(place), _address(getattr(ctypes.pythonapi, _PARTS[name])), 0 if is_unset else id(value)
        if name not in (place.__kwdefaults__ or {}) and name in defaults_of(place):  # by its position
            return _sight(place, "__defaults__", place.__defaults__)
        place = place.__kwdefaults__
    elif type(place) is ModuleType:
        place = vars(place)
    if type(place) is not dict or type(name) is not str:
        return None
    if name in place:
        return _ITEM, id(place), id(name), id(value)
    of_python = vars(builtins)
    if name not in of_python or of_python[name] is not value:
        return None
    absent = _ITEM, id(place), id(name), 0
    is_pythons_own = isinstance(value, BuiltinFunctionType | type) and value.__module__ == "builtins"
    return absent if is_pythons_own else (*absent, _ITEM, id(of_python), id(name), id(value))


_PARTS = {
    "__code__": "PyFunction_GetCode",
    "__defaults__": "PyFunction_GetDefaults",
    "__kwdefaults__": "PyFunction_GetKwDefaults",
}


class DirectCalls:
    """A base class, of the slots that machine code reads. See above."""

    __slots__ = ("_called", "_function", "_seen", "_sights", "_sights_kept", "_sights_more")
    _called: Any
    _function: Any
    _seen: CodeType | None
    _sights: bytes
    _sights_kept: tuple[object, ...]
    _sights_more: tuple[object, ...]

    def directly(self, called: Any, function: Any, code: CodeType | None, seen: Sights = _NOTHING) -> None:
        """Let calls go to `called` as long as a Python function has this code, and variables the values that were seen.

        They go to the method again if it is None.
        """
        self._called = None  # first: what takes the place of other values may run finalisers, and these this object
        self._function, self._seen = function, code
        self._sights, self._sights_kept, self._sights_more = seen
        self._called = called if type(function) is FunctionType else None


def make_direct(kind: type[DirectCalls]) -> bool:
    """Let objects of a type be called directly, but for its subclasses. Return whether that is possible here."""
    place = id(kind) + _CALL
    if not _is_known_layout(kind) or not isinstance(vars(kind).get("__call__"), FunctionType):
        return False
    method = _read(place)
    engine = _engine(method)
    ctypes.c_void_p.from_address(place).value = engine.get_function_address("call")
    _kept.append(engine)
    return True


_kept: list[Any] = []  # the owners of machine code


def _read(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _is_known_layout(kind: type[DirectCalls]) -> bool:
    """Return whether objects and types have in memory what they should have, as far as that can be seen."""
    if sys.implementation.name != "cpython" or getattr(sys, "_is_gil_enabled", lambda: True)() is not True:
        return False

    class Called:
        def __call__(self) -> None: ...

    class NotCalled:
        pass

    sample = kind.__new__(kind)
    marks = object(), object(), None, b"mark", (1, 2), (3, 4)
    for name, mark in zip(DirectCalls.__slots__, marks, strict=True):
        setattr(sample, name, mark)
    slots = [_read(id(sample) + _FIRST + _WORD * number) for number in range(len(marks))]
    of_type = [_read(id(each) + _CALL) for each in (kind, Called, NotCalled)]
    if slots != [id(each) for each in marks] or not of_type[0] == of_type[1] != of_type[2] == 0:
        return False
    cell = CellType(marks[0])
    return _read(id(cell) + _FIRST) == slots[0]


# Arguments are borrowed, the result is a new reference. What is called may be replaced during the call, which holds it:
# from where a tuple is made, which may run the code of finalisers; what is done before runs no code of Python's.
_CODE = """
define ptr @call(ptr %self, ptr %args, ptr %keywords) {{
    %place = getelementptr ptr, ptr %self, i64 2
    %called = load ptr, ptr %place
    %has_keywords = icmp ne ptr %keywords, null
    %is_unset = icmp eq ptr %called, null
    %is_none = icmp eq ptr %called, inttoptr (i64 {none} to ptr)
    %one = or i1 %has_keywords, %is_unset
    %any = or i1 %one, %is_none
    br i1 %any, label %otherwise, label %look
look:
    %place_of_function = getelementptr ptr, ptr %self, i64 3
    %function = load ptr, ptr %place_of_function
    %place_of_seen = getelementptr ptr, ptr %self, i64 4
    %seen = load ptr, ptr %place_of_seen
    %code = call ptr inttoptr (i64 {PyFunction_GetCode} to ptr)(ptr %function)
    %is_changed = icmp ne ptr %code, %seen
    br i1 %is_changed, label %otherwise, label %compare
compare:
    %place_of_sights = getelementptr ptr, ptr %self, i64 5
    %sights = load ptr, ptr %place_of_sights
    %words = call ptr inttoptr (i64 {PyBytes_AsString} to ptr)(ptr %sights)
    %first = getelementptr ptr, ptr %words, i64 1
    br label %next
next:
    %sight = phi ptr [%first, %compare], [%following, %same]
    %kind_of_sight = load {word}, ptr %sight, align 1
    %place_of_place = getelementptr ptr, ptr %sight, i64 1
    %place_of_name = getelementptr ptr, ptr %sight, i64 2
    switch {word} %kind_of_sight, label %otherwise [
        {word} 0, label %seen_all
        {word} {_ITEM}, label %item
        {word} {_CONTENTS}, label %contents
        {word} {_PART}, label %part]
item:
    %namespace = load ptr, ptr %place_of_place, align 1
    %name = load ptr, ptr %place_of_name, align 1
    %value_of_item = call ptr inttoptr (i64 {PyDict_GetItem} to ptr)(ptr %namespace, ptr %name)
    br label %found
contents:
    %cell = load ptr, ptr %place_of_place, align 1
    %place_of_contents = getelementptr ptr, ptr %cell, i64 2
    %value_of_cell = load ptr, ptr %place_of_contents
    br label %found
part:
    %of_function = load ptr, ptr %place_of_place, align 1
    %reader = load ptr, ptr %place_of_name, align 1
    %value_of_part = call ptr %reader(ptr %of_function)
    br label %found
found:
    %value = phi ptr [%value_of_item, %item], [%value_of_cell, %contents], [%value_of_part, %part]
    %place_of_value = getelementptr ptr, ptr %sight, i64 3
    %expected = load ptr, ptr %place_of_value, align 1
    %is_same = icmp eq ptr %value, %expected
    br i1 %is_same, label %same, label %otherwise
same:
    %following = getelementptr ptr, ptr %sight, i64 4
    br label %next
seen_all:
    call void inttoptr (i64 {Py_IncRef} to ptr)(ptr %called)
    %place_of_more = getelementptr ptr, ptr %self, i64 7
    %more = load ptr, ptr %place_of_more
    %number_of_more = call {word} inttoptr (i64 {PyTuple_Size} to ptr)(ptr %more)
    %has_more = icmp ne {word} %number_of_more, 0
    br i1 %has_more, label %count, label %directly
count:
    %number_of_args = call {word} inttoptr (i64 {PyTuple_Size} to ptr)(ptr %args)
    %number_expected = load {word}, ptr %words, align 1
    %is_as_expected = icmp eq {word} %number_of_args, %number_expected
    br i1 %is_as_expected, label %join, label %give_up
give_up:
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %called)
    br label %otherwise
join:
    call void inttoptr (i64 {Py_IncRef} to ptr)(ptr %more)
    %joined = call ptr inttoptr (i64 {PySequence_Concat} to ptr)(ptr %args, ptr %more)
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %more)
    %has_no_memory = icmp eq ptr %joined, null
    br i1 %has_no_memory, label %give_in, label %directly
give_in:
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %called)
    br label %failed
directly:
    %passed = phi ptr [%args, %seen_all], [%joined, %join]
    %to_drop = phi ptr [null, %seen_all], [%joined, %join]
    %result = call ptr inttoptr (i64 {PyObject_Call} to ptr)(ptr %called, ptr %passed, ptr null)
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %called)
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %to_drop)
    %has_failed = icmp eq ptr %result, null
    br i1 %has_failed, label %failed, label %done
done:
    ret ptr %result
failed:
    %kind = alloca [3 x ptr]
    %error = getelementptr ptr, ptr %kind, i64 1
    %trace = getelementptr ptr, ptr %kind, i64 2
    call void inttoptr (i64 {PyErr_Fetch} to ptr)(ptr %kind, ptr %error, ptr %trace)
    call void inttoptr (i64 {PyErr_NormalizeException} to ptr)(ptr %kind, ptr %error, ptr %trace)
    %class = load ptr, ptr %kind
    %raised = load ptr, ptr %error
    %frames = load ptr, ptr %trace
    %has_frames = icmp ne ptr %frames, null
    br i1 %has_frames, label %traced, label %told
traced:
    %ignored = call i32 inttoptr (i64 {PyException_SetTraceback} to ptr)(ptr %raised, ptr %frames)
    br label %told
told:
    %answer = call ptr (ptr, ptr, ...) inttoptr (i64 {PyObject_CallMethodObjArgs} to ptr)(
        ptr %self, ptr inttoptr (i64 {failed} to ptr), ptr %args, ptr %raised, ptr null)
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %class)
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %raised)
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %frames)
    ret ptr %answer
otherwise:
    %made = call ptr inttoptr (i64 {method} to ptr)(ptr %self, ptr %args, ptr %keywords)
    ret ptr %made
}}
"""
_NAMES = (
    "PyBytes_AsString",
    "PyDict_GetItem",
    "PyErr_Fetch",
    "PyErr_NormalizeException",
    "PyException_SetTraceback",
    "PyFunction_GetCode",
    "PyObject_Call",
    "PyObject_CallMethodObjArgs",
    "PySequence_Concat",
    "PyTuple_Size",
    "Py_DecRef",
    "Py_IncRef",
)
_FAILED = sys.intern("failed")


def _engine(method: int) -> Any:
    """Return the owner of machine code for a type whose `tp_call` is at an address."""
    addresses = {name: _address(getattr(ctypes.pythonapi, name)) for name in _NAMES}
    kinds = {"_ITEM": _ITEM, "_CONTENTS": _CONTENTS, "_PART": _PART}
    known = {"none": id(None), "method": method, "failed": id(_FAILED), "word": f"i{8 * _WORD}"}
    text = _CODE.format(**known, **kinds, **addresses)
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
    engine.finalize_object()
    return engine


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
