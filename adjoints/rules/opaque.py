"""Stub for now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from zygote_py.ir.core import Instr


@dataclass(frozen=True, slots=True)
class OpaqueAdjoint:
    function: Callable[..., object]
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpaqueRule:
    names: tuple[str, ...]
    adjoints: Mapping[int, OpaqueAdjoint]


def opaque_for(instr: Instr) -> OpaqueRule | None:
    return None
