"""Records: what a gradient function has to know of a gradient to call it, beside its machine code.

    {"name": "f_gradient", "source": "...digest...", "globals": {}, "hidden": [[3, "WEIGHTS", ...]], "frozen": []}

A captured variable is told by the place of its namespace among the objects of the fingerprint, so that it can be read
in another process. Before anything is written, it is checked that all that was compiled into the gradient is in the
fingerprint: a constant that is not makes the gradient one that is not kept.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from zygote_py import numba_adapter
from zygote_py.cache import environment
from zygote_py.cache.fingerprint import Fingerprint, NotCacheable, fingerprint, place_of, read_from
from zygote_py.cache.folder import Folder, folder_in_use
from zygote_py.capture import Capture
from zygote_py.ir.core import Type
from zygote_py.requests import Request

if TYPE_CHECKING:
    from zygote_py.compile import Compiled


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
        self.key: str | None = None  # under which it is kept
        self.folder: Folder | None = None
        self._load = load

    @functools.cached_property
    def function(self) -> Callable[..., object]:
        """The emitted function, as a plain Python function."""
        return self._load()


def made_by_stages(compiled: Compiled) -> Kernel:
    """What the stages made."""
    lowered = compiled.lowered
    return Kernel(compiled.emitted.source, lowered.hidden, lowered.frozen, lambda: compiled.function, compiled)


class Found:
    """What the cache knows of a gradient: where it is, or is to be, and what is there."""

    def __init__(self, prints: Fingerprint, folder: Folder) -> None:
        self._prints = prints
        self._folder = folder
        self._name = f"{prints.digest}.record"
        self.hidden: tuple[Capture, ...] = ()  # what the kernel is passed
        self.kernel: Kernel | None = None

    def read(self) -> None:
        """Look for the kernel. What is damaged is as if it were not there."""
        data = self._folder.read(self._name)
        if data is None:
            return
        try:
            record = json.loads(data)
            source = (self._folder.path / f"{self._prints.digest}.py").read_bytes()
            if hashlib.sha256(source).hexdigest() != record["source"]:
                return
            self._folder.touch(f"{self._prints.digest}.py")
            self.kernel = self._kernel(record, source.decode())
            self.hidden = tuple(self._capture(*each) for each in record["passed"])
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return

    def _kernel(self, record: Mapping[str, Any], source: str) -> Kernel:
        hidden = tuple(self._capture(*each) for each in record["hidden"])
        frozen = tuple(self._capture(*each) for each in record["frozen"])
        namespace = {name: self._object(*each) for name, each in record["globals"].items()}
        path = str(self._folder.path / f"{self._prints.digest}.py")

        def load() -> Callable[..., object]:
            from zygote_py.emit import Emitted
            from zygote_py.emit import load as execute

            return numba_adapter.py_func_of(execute(Emitted(source, record["name"], namespace), path))

        kernel = Kernel(source, tuple(_typed(each) for each in hidden), frozen, load)
        kernel.key, kernel.folder = self._prints.digest, self._folder
        return kernel

    def _capture(self, number: int, key: str, name: str, kind: str, source: str, owner: str) -> Capture:
        place = self._prints.objects[number]
        value = read_from(place, key)
        return Capture(name, kind, lambda: read_from(place, key), (id(place), key), None, value, source, owner)

    def _object(self, kind: str, what: Any) -> object:
        return self._prints.objects[what] if kind == "object" else _CONSTANTS[kind](what)

    def store(self, compiled: Compiled, hidden: tuple[Capture, ...]) -> Kernel:
        """Write what the stages made, if another process can use it. Gives it, ready for use.

        The emitted function is passed the captured values `hidden`.
        """
        kernel = made_by_stages(compiled)
        try:
            environment.check_unchanged()
            self._check(compiled)
            emitted = compiled.emitted
            source = emitted.source.encode()
            record = {
                "name": emitted.name,
                "source": hashlib.sha256(source).hexdigest(),
                "globals": {name: self._described(value) for name, value in emitted.globals.items()},
                "passed": [self._place(each) for each in hidden],
                "hidden": [self._place(each) for each in kernel.hidden],
                "frozen": [self._place(each) for each in kernel.frozen],
            }
        except NotCacheable:
            return kernel
        digest = self._prints.digest
        written = self._folder.write(f"{digest}.py", source, plain=True)
        if written and self._folder.write(self._name, json.dumps(record).encode()):
            kernel.key, kernel.folder = digest, self._folder
        return kernel

    def _check(self, compiled: Compiled) -> None:
        """Whether each captured value counted for what it was compiled as. Raises NotCacheable."""
        for capture in compiled.lowered.frozen:
            value, by_value = self._prints.captured.get(place_of(capture), (None, False))
            if not by_value or value is not capture.value:
                raise NotCacheable(f"the constant {capture.name}")
        for capture in compiled.lowered.hidden:
            value, by_value = self._prints.captured.get(place_of(capture), (None, True))
            if by_value or _typed(dataclasses.replace(capture, value=value)).type != capture.type:
                raise NotCacheable(f"the captured {capture.name}")

    def _place(self, capture: Capture) -> list[object]:
        place, key = place_of(capture)
        number = next((n for n, each in enumerate(self._prints.objects) if id(each) == place), None)
        if number is None:
            raise NotCacheable(f"the captured {capture.name}")
        return [number, key, capture.name, capture.kind, capture.source, capture.owner]

    def _described(self, value: object) -> list[object]:
        number = self._prints.number_of(value)
        if number is not None and self._prints.objects[number] is value:
            return ["object", number]
        if isinstance(value, float) and type(value) is float:
            return ["float", value.hex()]
        raise NotCacheable(f"a constant {value!r}")


_CONSTANTS: Mapping[str, Callable[[Any], object]] = {"float": float.fromhex}


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
    try:
        prints = fingerprint(request, argument_types, hidden, environment.versions(), environment.registered())
    except (NotCacheable, RecursionError):
        return None
    found = Found(prints, folder)
    found.read()
    return found


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
        digest = hashlib.sha256(f"{machine} {'; '.join(map(str, signature))}".encode()).hexdigest()
        return f"{kernel.key}.{digest[:16]}.code"

    def read(self, name: str) -> bytes | None:
        """The code under a name."""
        return None if self._folder is None else self._folder.read(name)

    def write(self, name: str, data: bytes) -> None:
        """Keep code under a name."""
        if self._folder is not None:
            self._folder.write(name, data)
