"""Records: what a gradient function has to know of a gradient to call it, beside its machine code.

    # {"name": "f_gradient", "constants": [], "hidden": [[3, "WEIGHTS", ...]], "frozen": [], ...}
    import numpy as np
    ...

A record is the first line of the emitted module. A captured variable is told by the place of its namespace among the
objects of the fingerprint, so that it can be read in another process.

Before anything is written, it is checked that all that was compiled into the gradient is in the fingerprint: a constant
that is not makes the gradient one that is not kept. A float or an array that counts by its type there, and is not
passed to the gradient at each call after all, is in the record with its value, and has to be the same when it is read.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zygote_py import numba_adapter
from zygote_py.base.python_text import caller
from zygote_py.cache import environment
from zygote_py.cache.fingerprint import Fingerprint, NotCacheable, content_of, fingerprint, read_from
from zygote_py.cache.folder import Folder, folder_in_use
from zygote_py.capture import Capture
from zygote_py.ir.core import Type
from zygote_py.requests import Request

if TYPE_CHECKING:
    from zygote_py.compile import Compiled


Link = Callable[[Any], None]


class Kernel:
    """What was made for a signature: by the stages, or read from the cache."""

    def __init__(
        self,
        source: str,
        hidden: tuple[Capture, ...],
        frozen: tuple[Capture, ...],
        load: Callable[[], Callable[..., object]],
        compiled: Compiled | None = None,
    ) -> None:
        self.source = source
        self.hidden = hidden  # in the order of the parameters
        self.frozen = frozen
        self.compiled = compiled  # None if it was read from the cache
        self.key: tuple[str, str] | None = None  # digests of what it was made of, and of what it is, if it is kept
        self.folder: Folder | None = None
        self._load = load

    @functools.cached_property
    def function(self) -> Callable[..., object]:
        """The emitted function, as a plain Python function."""
        return self._load()

    @property
    def interpreted(self) -> Callable[..., Any]:
        """The function to call from Python where Numba is switched off."""
        return self.function

    def entry(self, request: Request, captured: Sequence[object], link: Link) -> Callable[..., object]:
        """The function that compiled code calls: of the arguments alone, with these captured values as constants.

        `link` is told of each further dispatcher whose code goes with that of callers.
        """
        if not captured:
            return self.function
        inner = numba_adapter.make_dispatcher(self.function, lambda given: self.function, request.options)
        values = {f"captured_{number}": value for number, value in enumerate(captured)}
        parameters, passed = request.signature.parameters, ", ".join((*request.signature.parameters, *values))
        function: Any = caller(inner, ", ".join(parameters), passed, name=request.name, values=values)
        function.__globals__["__name__"] = __name__  # what Numba keeps of callers names the module
        return function  # type: ignore[no-any-return]


def made_by_stages(compiled: Compiled) -> Kernel:
    """What the stages made."""
    lowered = compiled.lowered
    return Kernel(compiled.emitted.standalone, lowered.hidden, lowered.frozen, lambda: compiled.function, compiled)


class Found:
    """What the cache knows of a gradient: where it is, or is to be, and what is there."""

    def __init__(self, look: Callable[[], Fingerprint], folder: Folder) -> None:
        self._look = look
        self._prints = look()
        self._folder = folder
        self._name = f"{self._prints.digest}.py"
        self.hidden: tuple[Capture, ...] = ()  # what the kernel is passed
        self.kernel: Kernel | None = None

    def read(self) -> None:
        """Look for the kernel. What is damaged is as if it were not there."""
        data = self._folder.read(self._name)
        if data is None:
            return
        try:
            line, _, source = data.decode().partition("\n")
            record = json.loads(line.removeprefix(_COMMENT))
            if all(content_of(self._held(*where)) == content for *where, content in record["constants"]):
                self.hidden = tuple(self._capture(*each) for each in record["passed"])
                self.kernel = self._kernel(record, source, data)
        except Exception:  # of any kind: a file may hold anything
            return

    def _kernel(self, record: Mapping[str, Any], source: str, data: bytes) -> Kernel:
        hidden = tuple(_typed(self._capture(*each)) for each in record["hidden"])
        frozen = tuple(self._capture(*each) for each in record["frozen"])

        def load() -> Callable[..., object]:
            from zygote_py.emit import Emitted
            from zygote_py.emit import load as execute

            return numba_adapter.entry_of(execute(Emitted(source, record["name"], {})))

        kernel = Kernel(source, hidden, frozen, load)
        self._keep(kernel, data)
        return kernel

    def _keep(self, kernel: Kernel, data: bytes) -> None:
        """Let machine code of a kernel be kept: under a name of what it is, and not only of what it was made of."""
        kernel.key = self._prints.digest, hashlib.sha256(data).hexdigest()
        kernel.folder = self._folder

    def _held(self, number: int, key: str) -> object:
        return read_from(self._prints.objects[number], key)

    def _capture(self, number: int, key: str, name: str, kind: str, source: str, owner: str) -> Capture:
        place = self._prints.objects[number]
        value = self._held(number, key)
        return Capture(
            name, kind, functools.partial(read_from, place, key), (id(place), key), None, value, source, owner
        )

    def store(self, compiled: Compiled, hidden: tuple[Capture, ...]) -> Kernel:
        """Write what the stages made, if another process can use it. Gives it, ready for use.

        The emitted function is passed the captured values `hidden`.
        """
        kernel = made_by_stages(compiled)
        try:
            data = self._described(compiled, kernel, hidden)
            if not self._prints.is_like(self._look()):  # something has changed while the stages ran
                return kernel
            environment.check_unchanged()
        except Exception:  # as in `recall`
            return kernel
        if self._folder.write(self._name, data):
            self._keep(kernel, data)
        return kernel

    def _described(self, compiled: Compiled, kernel: Kernel, hidden: tuple[Capture, ...]) -> bytes:
        """What is written: a comment with what is to be known of the source, and the source."""
        emitted = compiled.emitted
        if emitted.globals:  # which are not found again in another process
            raise NotCacheable(f"{', '.join(emitted.globals)}, which cannot be imported")
        record = {
            "name": emitted.name,
            "constants": self._constants(kernel),
            "passed": [self._place(each) for each in hidden],
            "hidden": [self._place(each) for each in kernel.hidden],
            "frozen": [self._place(each) for each in kernel.frozen],
        }
        return f"{_COMMENT}{json.dumps(record)}\n{emitted.source}".encode()

    def _constants(self, kernel: Kernel) -> list[object]:
        """The captured variables that count by their types in the fingerprint and are not passed: by their values.

        Raises NotCacheable where the stages took a captured value for something else than the fingerprint did.
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


def _typed(capture: Capture) -> Capture:
    """A captured variable that is passed, with its type: nobody may write to an array."""
    return dataclasses.replace(capture, type=as_captured(numba_adapter.typeof(capture.value)))


def as_captured(type: Any) -> Any:
    """The type that a value has as a captured one."""
    return type.copy(readonly=True) if hasattr(type, "layout") else type


def recall(request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]) -> Found | None:
    """What the cache knows of a gradient that is passed the captured values `hidden`; None if it cannot be kept."""
    folder = folder_in_use()
    if folder is None:
        return None

    def look() -> Fingerprint:
        return fingerprint(request, argument_types, hidden, environment.versions(), environment.registered())

    try:
        found = Found(look, folder)
    except Exception:  # NotCacheable as a rule; objects of the user's may raise anything when they are looked at
        return None
    found.read()
    return found


def find(
    request: Request, argument_types: tuple[Type, ...], hidden: tuple[Capture, ...]
) -> tuple[Kernel, tuple[Capture, ...]]:
    """Return the kernel for a signature, from the cache or else from the stages, and the captured values it is passed.

    These are the ones in `hidden`, and after them what else the function captures. Raises DifferentiationError.
    """
    found = recall(request, argument_types, hidden)
    if found is not None and found.kernel is not None:
        return found.kernel, found.hidden
    from zygote_py.compile import compile_gradient

    compiled, hidden = compile_gradient(request, argument_types, hidden)
    return made_by_stages(compiled) if found is None else found.store(compiled, hidden), hidden


class MachineCode:
    """Where the machine code of a dispatcher is kept: under the names of the kernels, with signature and machine."""

    def __init__(self, kernel_of: Callable[[tuple[Type, ...]], Kernel | None]) -> None:
        self._kernel_of = kernel_of
        self._folder: Folder | None = None

    def name_of(self, signature: tuple[Any, ...], machine: str) -> str | None:
        """The name for a signature; None for what is not kept."""
        kernel = self._kernel_of(signature)
        if kernel is None or kernel.key is None:
            return None
        self._folder = kernel.folder
        digest, content = kernel.key
        found = hashlib.sha256(f"{content} {machine} {'; '.join(map(str, signature))}".encode()).hexdigest()
        return f"{digest}.{found[:16]}.code"

    def read(self, name: str) -> bytes | None:
        """The code under a name."""
        return None if self._folder is None else self._folder.read(name)

    def write(self, name: str, data: bytes) -> None:
        """Keep code under a name."""
        if self._folder is not None:
            self._folder.write(name, data)
