"""The outcome for each callable that Numba supports: differentiated, without derivative by nature, or refused.

    outcome("np.var(x)")          # Kind.DIFFERENTIABLE
    outcome("np.argsort(x)")      # Kind.FLAT
    outcome("np.nextafter(u, v)") # Kind.REFUSED

A call of each (`samples.py`) is tried: it is lowered, and its result is active or not, or an error is raised. Nothing
is emitted or compiled. `__main__` makes `docs/numpy.md` of it.
"""

from __future__ import annotations

import builtins
import cmath
import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import zygote_py.numpy_functions  # noqa: F401 (it registers the functions that `lower` knows)
from tests.docs.pages.samples import PARAMETERS, SAMPLES
from tests.docs.pages.supported import array_members, supported_callables
from zygote_py.adjoints import REFUSED, DifferentiationError
from zygote_py.adjoints.analysis import find_active
from zygote_py.adjoints.rules.formulas import opaque
from zygote_py.base import python_text
from zygote_py.frontend import lower
from zygote_py.frontend.values import implemented, is_differentiable
from zygote_py.ir import make_canonical


class Kind(enum.Enum):
    """The outcome for a callable."""

    DIFFERENTIABLE = "differentiable"
    FLAT = "no derivative by nature"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Entry:
    """A callable, or an attribute or method of arrays: its names, and a call of it."""

    names: tuple[str, ...]
    op: object = None

    @property
    def call(self) -> str:
        """Return the sample that stands for it."""
        return next(SAMPLES[name] for name in self.names if name in SAMPLES)

    def note(self, kind: Kind) -> str:
        """Return the condition under which it is differentiable, or why it is not."""
        if self.names[0] in _NOTES:
            return _NOTES[self.names[0]]
        if kind is Kind.REFUSED and self.op in REFUSED:
            return "; ".join(REFUSED[self.op])
        has_rule = self.op in opaque.SAMPLES and self.op not in implemented()
        return opaque.SAMPLES[self.op].condition if has_rule else ""  # type: ignore[index]


_NOTES = {
    "print": "it prints in the forward sweep",
    ".view": "of complex numbers as floats and back; of others see docs/complex.md",
    **dict.fromkeys((".ctypes", ".tobytes"), "it gives access to the bytes of an array"),
}
MEMBERS = "Methods and attributes of arrays"


def entries() -> Iterator[tuple[str, list[Entry]]]:
    """Return what Numba supports, by module and of arrays."""
    for module, callables in supported_callables().items():
        names: dict[object, list[str]] = {}
        for name, op in callables.items():
            names.setdefault(op, []).append(name if module == builtins.__name__ else f"{module}.{name}")
        yield module, [Entry(tuple(known), op) for op, known in names.items()]
    yield MEMBERS, [Entry((f".{name}",)) for name in array_members()]


def outcome(call: str) -> Kind:
    """Return the outcome for a call, after the statements that precede it."""
    *before, result = call.split("; ")
    lines = [f"def f({', '.join(PARAMETERS)}):", *(f"    {line}" for line in before), f"    return {result}"]
    try:
        sample = python_text.define("\n".join(lines), "f", {"np": np, "math": math, "cmath": cmath})
        function = lower(sample, tuple(PARAMETERS.values())).function
        make_canonical(function)
        active = find_active(function, [each for each in function.params if is_differentiable(each.type)])
    except DifferentiationError:
        return Kind.REFUSED
    results = (value for _, end in function.returns() for value in end.args[:1])
    return Kind.DIFFERENTIABLE if any(value in active for value in results) else Kind.FLAT
