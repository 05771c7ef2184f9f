"""Classes of the objects that emitted functions return: constants that are found by their names when code is read.

Numba writes a class of the main program into machine code as a whole, so that another process would make objects of a
class of its own.
"""

from __future__ import annotations

from typing import Any

from numba import types

from zygote_py.numba_adapter.base.internals import (
    NativeParforLowering,
    boxers,
    import_boxes,
    register_pass,
)
from zygote_py.numba_adapter.types.dataclasses import DataclassType, box_structure


def _class_object(typ: Any, c: Any) -> Any:
    """Return the class of a type in compiled code, a new reference. The environment of a function is stored with it."""
    found = c.env_manager.read_const(c.env_manager.add_const(typ.instance_class))
    c.pyapi.incref(found)
    return found


def _box_dataclass(typ: Any, value: Any, c: Any) -> Any:
    return box_structure(typ, value, c, _class_object(typ, c))


def _box_named_tuple(typ: Any, value: Any, c: Any) -> Any:
    cls = _class_object(typ, c)
    items = boxers[types.Tuple](typ, value, c)
    made = c.pyapi.call(cls, items)
    c.pyapi.decref(cls)
    c.pyapi.decref(items)
    return made


_BOXES = {
    DataclassType: _box_dataclass,
    types.NamedTuple: _box_named_tuple,
    types.NamedUniTuple: _box_named_tuple,
}


class WithClasses:
    """Lowering in which classes are constants of the environment. Numba's lock is held."""

    def run_pass(self, state: Any) -> bool:
        """Lower `state`."""
        import_boxes()
        given = {kind: boxers[kind] for kind in _BOXES}
        boxers.update(_BOXES)
        try:
            return super().run_pass(state)  # type: ignore[no-any-return,misc]
        finally:
            boxers.update(given)


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerParforsWithClasses(WithClasses, NativeParforLowering):
    """Numba's lowering of functions with `parallel=True`, with classes as constants."""
