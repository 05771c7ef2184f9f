"""What emission gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Emitted:
    """The `source` of a module that defines the function `name`, and the `globals` it needs besides its imports."""

    source: str
    name: str
    globals: Mapping[str, object]

    @property
    def standalone(self) -> str:
        """The module with definitions of what it needs besides its imports."""
        from zygote_py.emit.standalone import definitions  # a module that is read from disk does not need it

        return definitions(self.globals) + self.source
