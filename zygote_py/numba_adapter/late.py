"""Dataclasses are made known to Numba when the first one is met: until then nothing of what that needs is imported.

    @dataclass(frozen=True)
    class Point: ...

    njit(f)(Point(1.0, 2.0))        # Numba asks for the type of the object, and the module `dataclasses` is imported

What is known of them is said there.
"""

from __future__ import annotations

import importlib
from typing import Any

from numba.extending import typeof_impl

from zygote_py import structures
from zygote_py.ir.core import Type
from zygote_py.numba_adapter.internals import cpu_target

_typeof_others = typeof_impl.dispatch(object)
_typeof_classes = typeof_impl.dispatch(type)
_MODULE = "zygote_py.numba_adapter.dataclasses"


def _typeof_after_import(value: Any, context: object) -> Type | None:
    importlib.import_module(_MODULE)
    cpu_target.target_context.refresh()  # it may be asked while something is compiled
    found: Type | None = typeof_impl(value, context)
    return found


@typeof_impl.register(object)
def _typeof_object(value: Any, context: object) -> Type | None:
    if structures.is_structure(type(value)):
        return _typeof_after_import(value, context)
    found: Type | None = _typeof_others(value, context)
    return found


@typeof_impl.register(type)
def _typeof_class(value: Any, context: object) -> Type | None:
    if structures.is_structure(value):
        return _typeof_after_import(value, context)
    found: Type | None = _typeof_classes(value, context)
    return found
