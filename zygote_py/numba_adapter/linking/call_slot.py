"""Calls of an object from Python that go to a compiled function, with no frame of Python's in between.

    class Derivative(DirectCalls):
        def __call__(self, *args, **kwargs): ...        # whatever `directly` does not do
        def failed(self, args, error): ...              # what to return, or raise, when the function has raised

    make_direct(Derivative)
    made.directly(dispatcher, python_function, code)    # from now on, as long as the function has this code
    made.directly(None, None, None)

A method `__call__` costs more than Numba takes for a whole call: the lookup, a frame, a dict for keywords. Here the
type gets a function in machine code in its place, which is called with the arguments as they are. It calls the method
wherever it does not know what to do: with keywords, and if the Python function was changed in place.

Where the type is not as CPython has laid it out since 3.8, the method stays.
"""

from __future__ import annotations

import ctypes
import sys
from types import CodeType, FunctionType
from typing import Any

from llvmlite import binding as llvm

_WORD = ctypes.sizeof(ctypes.c_void_p)
_CALL = 16 * _WORD  # where a type has `tp_call`, after its name, sizes and the slots before it
_FIRST = 2 * _WORD  # where an object has its first slot, after its count of references and its type


class DirectCalls:
    """A base class, of the slots that machine code reads. See above."""

    __slots__ = ("_called", "_function", "_seen")
    _called: Any
    _function: Any
    _seen: CodeType | None

    def directly(self, called: Any, function: Any, code: CodeType | None) -> None:
        """Let calls go to `called` as long as a Python function has this code; or to the method again, if None."""
        self._called = None
        self._function, self._seen = function, code
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
    marks = sample._called, sample._function, sample._seen = object(), object(), None
    slots = [_read(id(sample) + _FIRST + _WORD * number) for number in range(len(marks))]
    of_type = [_read(id(each) + _CALL) for each in (kind, Called, NotCalled)]
    return slots == [id(each) for each in marks] and of_type[0] == of_type[1] != 0 and of_type[2] == 0


# Arguments are borrowed, the result is a new reference. The function may be replaced during the call, which holds it.
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
    br i1 %is_changed, label %otherwise, label %directly
directly:
    call void inttoptr (i64 {Py_IncRef} to ptr)(ptr %called)
    %result = call ptr inttoptr (i64 {PyObject_Call} to ptr)(ptr %called, ptr %args, ptr null)
    call void inttoptr (i64 {Py_DecRef} to ptr)(ptr %called)
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
    "PyErr_Fetch",
    "PyErr_NormalizeException",
    "PyException_SetTraceback",
    "PyFunction_GetCode",
    "PyObject_Call",
    "PyObject_CallMethodObjArgs",
    "Py_DecRef",
    "Py_IncRef",
)
_FAILED = sys.intern("failed")


def _engine(method: int) -> Any:
    """Return the owner of machine code for a type whose `tp_call` is at an address."""
    addresses = {name: _address(getattr(ctypes.pythonapi, name)) for name in _NAMES}
    text = _CODE.format(none=id(None), method=method, failed=id(_FAILED), **addresses)
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
    engine.finalize_object()
    return engine


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
