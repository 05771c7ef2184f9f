"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .syntax.standalone import Emitted as Emitted
from .target import (
    CUDA as CUDA,
    KERNEL as KERNEL,
    NJIT as NJIT,
    Widened as Widened,
    emit as emit,
    emit_and_widen as emit_and_widen,
    widen as widen,
)
