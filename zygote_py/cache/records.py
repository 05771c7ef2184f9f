"""Kernels, the compiled functions of derivatives, and their records in the cache.

    # {"modules": [["f_gradient", 812]], "constants": [], "hidden": [[3, "WEIGHTS", ...]], "frozen": [], ...}
    import numpy as np
    ...

A record is the first line of the emitted module. A captured variable is identified by the number of its namespace among
the objects of the fingerprint, so that it can be read in another process.

Before anything is written, the constants in the code are compared with the fingerprint: a gradient with any other
constant is not kept. A float or an array that the fingerprint represents by its type, but that is not passed to the
gradient at each call, is in the record with its value, and must be the same when the record is read.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from zygote_py import compiler, numba_adapter
from zygote_py.base import Capture, caller, structures
from zygote_py.cache import environment
from zygote_py.cache.fingerprint import Fingerprint, content_of, read_from
from zygote_py.cache.folder import Place, place_in_use
from zygote_py.cache.inspection import NotCacheable
from zygote_py.compiler import Request
from zygote_py.ir import Type

if TYPE_CHECKING:
    from zygote_py.emit import Emitted

Link = Callable[[Any], None]


@dataclasses.dataclass(frozen=True, slots=True)
class MachineCode:
    """The place of a kernel's machine code; `zygote_py.numba_adapter.target.stored` reads and writes it for Numba."""

    folder: Place
    digest: str  # of what the kernel was made of
    content: str  # of what it is

    def name_of(self, signature: tuple[Any, ...], machine: str) -> str:
        """Return the name for a signature and a description of the machine."""
        found = hashlib.sha256(f"{self.content} {machine} {'; '.join(map(str, signature))}".encode()).hexdigest()
        return f"{self.digest}.{found[:16]}.code"

    def read(self, name: str) -> bytes | None:
        """Return the code under a name; None if there is none."""
        return self.folder.read(name)

    def write(self, name: str, data: bytes) -> None:
        """Keep code under a name."""
        self.folder.write(name, data)


def code_of_helper(function: Callable[..., object]) -> MachineCode | None:
    """Return where the machine code of a function of this package is kept; None if it is not."""
    try:
        described = f"{environment.versions()} {function.__module__}.{function.__qualname__}"
        environment.check_unchanged()
    except NotCacheable:
        return None
    digest = hashlib.sha256(described.encode()).hexdigest()
    return MachineCode(place_in_use(), digest[:40], digest)


class Kernel:
    """The compiled function for a signature, made by the stages or read from the cache."""

    def __init__(
        self,
        source: str,
        hidden: tuple[Capture, ...],
        frozen: tuple[Capture, ...],
        load: Callable[[], Callable[..., object]],
        compiled: compiler.Compiled | None = None,
    ) -> None:
        self.source = source
        self.hidden = hidden  # in the order of the parameters
        self.frozen = frozen
        self.compiled = compiled  # None if it was read from the cache
        self.code: MachineCode | None = None  # None if it is not kept
        self._load = load

    @functools.cached_property
    def function(self) -> Callable[..., object]:
        """The emitted function, as a plain Python function."""
        return self._load()

    @property
    def interpreted(self) -> Callable[..., Any]:
        """The function to call from Python if Numba is disabled."""
        return self.function

    def entry(self, request: Request, captured: Sequence[object], link: Link) -> Callable[..., object]:
        """Return the function that compiled code calls, with these captured values as constants.

        `link` is called with each further dispatcher whose code is stored with that of callers.
        """
        if not captured:
            return self.function
        inner = numba_adapter.make_dispatcher(self.function, lambda given: self.function, request.options)
        values = {f"captured_{number}": value for number, value in enumerate(captured)}
        parameters, passed = request.signature.parameters, ", ".join((*request.signature.parameters, *values))
        function: Any = caller(inner, ", ".join(parameters), passed, name=request.name, values=values)
        function.__globals__["__name__"] = __name__  # what Numba keeps of callers names the module
        return function  # type: ignore[no-any-return]


Found = tuple[Kernel, tuple[Capture, ...]]  # with what the kernel is passed


class Making(Protocol):
    """How the kernels of a kind are made; and how from what is kept of one."""

    kind: str

    def compiled(
        self, request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
    ) -> tuple[compiler.Compiled, tuple[Capture, ...]]:
        """Run the stages."""

    def kernel(self, request: Request, argument_types: tuple[Type, ...], compiled: Any) -> Kernel:
        """Return the kernel of what the stages made."""

    def described(self, compiled: Any) -> tuple[list[Emitted], object]:
        """Return the modules to keep, the one that is entered first, and what else is to be known, for JSON."""

    def restored(
        self,
        request: Request,
        argument_types: tuple[Type, ...],
        modules: list[Emitted],
        known: Any,
        hidden: tuple[Capture, ...],
        frozen: tuple[Capture, ...],
    ) -> Kernel:
        """Return the kernel of what `described` returned."""


class _OneModule:
    """A derivative that is one function."""

    kind = ""

    def compiled(
        self, request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
    ) -> tuple[compiler.Compiled, tuple[Capture, ...]]:
        return compiler.compile_gradient(request, argument_types, hidden)

    def kernel(self, request: Request, argument_types: tuple[Type, ...], compiled: compiler.Compiled) -> Kernel:
        lowered, source = compiled.lowered, compiled.emitted.standalone
        return Kernel(source, lowered.hidden, lowered.frozen, lambda: compiled.function, compiled)

    def described(self, compiled: compiler.Compiled) -> tuple[list[Emitted], object]:
        emitted = compiled.emitted
        return [emitted, *([] if emitted.compiled is None else [emitted.compiled])], None

    def restored(
        self,
        request: Request,
        argument_types: tuple[Type, ...],
        modules: list[Emitted],
        known: object,
        hidden: tuple[Capture, ...],
        frozen: tuple[Capture, ...],
    ) -> Kernel:
        emitted, *compiled = modules
        if compiled:
            emitted = dataclasses.replace(emitted, compiled=compiled[0])
        return Kernel(emitted.source, hidden, frozen, lambda: loaded(emitted))


_ONE_MODULE = _OneModule()


def loaded(emitted: Emitted) -> Callable[..., object]:
    """Return the function of an emitted module."""
    return numba_adapter.entry_of(numba_adapter.load(emitted))


def text_of_pickled(value: object) -> str:
    """Return a value as text, for `described`. Raises PicklingError if it refers to what no other process has."""
    return base64.b64encode(numba_adapter.pickled(value)).decode()


def pickled_in(text: str) -> Any:
    """Return the value of such a text."""
    return pickle.loads(base64.b64decode(text))


class Entry:
    """The entry of a derivative in a folder, under the digest of its fingerprint."""

    def __init__(
        self,
        making: Making,
        request: Request,
        argument_types: tuple[Type, ...],
        look: Callable[[], Fingerprint],
        folder: Place,
    ) -> None:
        self._making = making
        self._request = request
        self._argument_types = argument_types
        self._look = look
        self._prints = look()
        self._folder = folder
        self._name = f"{self._prints.digest}.py"

    def read(self) -> Found | None:
        """Return the kernel and what it is passed; None if there is none, or if it is damaged."""
        data = self._folder.read(self._name)
        if data is None:
            return None
        try:
            line, _, source = data.decode().partition("\n")
            record = json.loads(line.removeprefix(_COMMENT))
            if any(content_of(self._held(*where)) != content for *where, content in record["constants"]):
                return None
            return self._kernel(record, source, data), tuple(self._capture(*each) for each in record["passed"])
        except Exception:  # of any kind: a file may hold anything
            return None

    def _kernel(self, record: Mapping[str, Any], source: str, data: bytes) -> Kernel:
        from zygote_py.emit import Emitted

        hidden = tuple(_typed(self._capture(*each)) for each in record["hidden"])
        frozen = tuple(self._capture(*each) for each in record["frozen"])
        modules = []
        for name, length, known in record["modules"]:
            modules.append(Emitted(source[:length], name, pickled_in(known)))
            source = source[length:]
        kernel = self._making.restored(self._request, self._argument_types, modules, record["known"], hidden, frozen)
        kernel.code = self._code(data)
        return kernel

    def _code(self, data: bytes) -> MachineCode:
        """Return where the machine code is kept: under the name of what it is of, not only of what this was made of."""
        return MachineCode(self._folder, self._prints.digest, hashlib.sha256(data).hexdigest())

    def _held(self, number: int, key: str) -> object:
        return read_from(self._prints.objects[number], key)

    def _capture(self, number: int, key: str, name: str, kind: str, source: str, owner: str) -> Capture:
        place = self._prints.objects[number]
        value = self._held(number, key)
        return Capture(
            name, kind, functools.partial(read_from, place, key), (id(place), key), None, value, source, owner
        )

    def store(self, kernel: Kernel, compiled: compiler.Compiled, hidden: tuple[Capture, ...]) -> None:
        """Write a kernel, which is passed the captured values `hidden`, if another process can use it."""
        try:
            data = self._described(compiled, kernel, hidden)
            if not self._prints.is_like(self._look()):  # something has changed while the stages ran
                return
            environment.check_unchanged()
        except Exception:  # as in `find`
            return
        if self._folder.write(self._name, data):
            kernel.code = self._code(data)

    def _described(self, compiled: compiler.Compiled, kernel: Kernel, hidden: tuple[Capture, ...]) -> bytes:
        """Return the content of a file: a comment with the record, and the source."""
        modules, known = self._making.described(compiled)
        for emitted in modules:
            for name, value in emitted.globals.items():
                if not _is_found(value):
                    raise NotCacheable(f"{name}, which cannot be imported")
        record = {
            "modules": [(each.name, len(each.source), text_of_pickled(each.globals)) for each in modules],
            "known": known,
            "constants": self._constants(kernel),
            "passed": [self._place(each) for each in hidden],
            "hidden": [self._place(each) for each in kernel.hidden],
            "frozen": [self._place(each) for each in kernel.frozen],
        }
        return f"{_COMMENT}{json.dumps(record)}\n{''.join(emitted.source for emitted in modules)}".encode()

    def _constants(self, kernel: Kernel) -> list[object]:
        """Return the values of captured variables that the fingerprint represents by types, but that are not passed.

        Raises NotCacheable if the stages treated a captured variable differently from the fingerprint.
        """
        captured = self._prints.captured
        for capture in kernel.frozen:
            value, _ = captured.get(self._prints.number_of(capture), (None, False))
            if value is not capture.value:
                raise NotCacheable(f"the constant {capture.name}")
        for capture in kernel.hidden:
            value, by_value = captured.get(self._prints.number_of(capture), (None, True))
            if by_value or _typed(dataclasses.replace(capture, value=value)).type != capture.type:
                raise NotCacheable(f"the captured {capture.name}")
        passed = set(map(self._prints.number_of, kernel.hidden))
        return [
            [*where, content_of(value)]
            for where, (value, by_value) in captured.items()
            if not by_value and where not in passed
        ]

    def _place(self, capture: Capture) -> list[object]:
        return [*self._prints.number_of(capture), capture.name, capture.kind, capture.source, capture.owner]


_COMMENT = "# "  # before the record, in the first line of what is written


def _is_found(value: Any) -> bool:
    """Return whether another process finds what an emitted module is given: a class, or a function of this package."""
    if isinstance(value, FunctionType):
        home = value.__module__ or ""
        return home.startswith("zygote_py.") and structures.found_by_name(home, value.__qualname__) is value
    return isinstance(value, np.dtype) or (isinstance(value, type) and structures.is_current(value))


def _typed(capture: Capture) -> Capture:
    """Return a captured variable that is passed, with its type: arrays are read-only."""
    return dataclasses.replace(capture, type=as_captured(numba_adapter.typeof(capture.value)))


def as_captured(type: Any) -> Any:
    """Return the type of a captured value: that of an array is read-only."""
    return type.copy(readonly=True) if hasattr(type, "layout") else type


def find(
    request: Request,
    argument_types: tuple[Type, ...],
    hidden: tuple[Capture, ...],
    making: Making = _ONE_MODULE,
) -> Found:
    """Return the kernel for a signature, from the cache or else from the stages, and the captured values it is passed.

    These are the ones in `hidden`, then those of the other captured variables. Raises DifferentiationError.
    """

    def look() -> Fingerprint:
        return environment.key_of(request, argument_types, hidden, making.kind)

    try:
        entry = Entry(making, request, argument_types, look, place_in_use())
    except Exception:  # NotCacheable as a rule; objects of the user's may raise anything when they are looked at
        entry = None
    if entry is not None and (found := entry.read()) is not None:
        return found
    compiled, passed = making.compiled(request, argument_types, hidden)
    kernel = making.kernel(request, argument_types, compiled)
    if entry is not None:
        entry.store(kernel, compiled, passed)
    return kernel, passed
