"""Names in the emitted module: its variables, its guards, and the objects it needs from outside.

Variables are named by the hints of their values, as in the source: `r`, `dr`, `dx`. Two variables with the same hint
are called `r` and `r_1`, unless they have the same type and are never live together: then they are merged into one
variable, as they usually were in the source.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import math
import random
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numba import types

from zygote_py.base import Names, captured_type, is_captured_type, structures
from zygote_py.emit.syntax.standalone import optional_imports, without_dataclasses
from zygote_py.ir import C_TYPES, MODULE, Const, Foreign, Function, Instr, Lanes, Operand, Routine, Special, ops
from zygote_py.ir.ops import OWN, Op, helpers, is_method, module_of


class Module:
    """The imports and globals of the emitted module, with names that differ from all parameters."""

    def __init__(self, names: Names, *, is_device: bool = False) -> None:
        self._names = names
        self.is_device = is_device
        self._aliases: dict[str, str] = {}  # of math, cmath, np and builtins
        self._used: set[str] = set()
        self.globals: dict[str, object] = {}
        self.helpers: dict[str, str] = {}  # the sources of helpers, by name
        self._known: dict[int, str] = {}
        self._routines: dict[Routine, str] = {}
        self.has_dataclasses = False
        self._constructed: dict[str, None] = {}  # the names of the dataclasses of which objects are made
        self._made: dict[Any, str] = {}  # the classes `Captured`
        self._imports: dict[tuple[str, str], str] = {}  # of classes and similar objects, by module and name
        self._pointers: dict[Special, str] = {}  # functions of SciPy, which are called through pointers
        self._used_pointers: set[Special] = set()

    def alias(self, name: str) -> str:
        """Return the name of `math`, `cmath`, `np` or the builtin `name` in the module."""
        self._used.add(name)
        return self._reserved(name)

    def _reserved(self, name: str) -> str:
        if name not in self._aliases:
            self._aliases[name] = self._names.fresh(name)
        return self._aliases[name]

    def reserve(self, function: Function) -> None:
        """Reserve the names that `function` may need, so that no variable takes them."""
        for value in function.values():
            if isinstance(value, Instr) and not _has_syntax(value.op):
                self.callable(value.op)
            if isinstance(value.type, Lanes):
                self.callable(ops.lanes)
                self.callable(ops.lanes_at)
        for name in ("math", "np", "range", "len"):
            self._reserved(name)
        for name in _OF_POINTERS if self._used_pointers else ():
            self._reserved(name)
        self._used.clear()
        self._constructed.clear()
        self._used_pointers.clear()
        self.helpers.clear()

    def names_inside(self, params: Iterable[str]) -> Names:
        """Return the names for variables of a function, which differ from those of the module."""
        return Names({*self._names.taken, *params})

    def routine(self, routine: Routine) -> str:
        """Return the name of the function of a routine."""
        if routine not in self._routines:
            self._routines[routine] = self._names.fresh(routine.__name__)
        return self._routines[routine]

    def value(self, value: object, hint: str) -> str:
        """Return the name of the global that holds `value`."""
        if id(value) not in self._known:
            name = self._names.fresh(hint)
            self._known[id(value)] = name
            self.globals[name] = value
        return self._known[id(value)]

    def callable(self, op: Callable[..., object]) -> tuple[str, ...]:
        """Return the dotted name of `op`."""
        if isinstance(op, Routine):
            return (self.routine(op),)
        if isinstance(op, Foreign):
            return (self.value(op.function, op.__name__),)
        if isinstance(op, Special):
            self._used_pointers.add(op)
            return (self._pointers.setdefault(op, self._names.fresh(op.__name__)),)
        name = getattr(op, "__name__", "function")
        if getattr(builtins, name, None) is op:
            return (self.alias(name),)
        for (module, *parts), namespace in _NAMESPACES.items():
            if getattr(namespace, name, None) is op:
                return (self.alias(module), *parts, name)
        if helpers.is_helper(op):
            return (self._helper(op),)
        if is_captured_type(op):
            self._imports.setdefault((captured_type.__module__, captured_type.__name__), captured_type.__name__)
            return (self._made.setdefault(op, self._names.fresh("Captured")),)
        importable = op is structures.new or (isinstance(op, type) and structures.is_importable(op))
        found = self._imported(op) if importable else self.value(op, name)
        if structures.is_structure(op):
            self._constructed[found] = None
        return (found,)

    def of_threads(self, op: Op, args: Sequence[Operand], type: Any, written: list[ast.expr]) -> ast.expr:
        """Return what `numba.cuda` has for an operation of threads, given how its operands are written."""
        name = OF_THREADS[op]
        if op in (ops.grid, ops.grid_step):
            ndim, axis = written
            every = called(name, ndim)
            return every if args[0] == Const(1, args[0].type) else ast.Subscript(every, axis)
        if op is ops.barrier:
            return called(name)
        if op is ops.cube_root:
            return called(name, *written)
        if op in ops.FAST.values():
            return called((self.imported("numba.cuda.libdevice", *name),), *written)
        if op is ops.shared:
            kind = self.imported("numba", "boolean" if type.dtype == types.boolean else str(type.dtype))
            return called(name, written[0] if len(written) == 1 else ast.Tuple(written), ast.Name(kind))
        if op in ops.ATOMIC.values() or op in (ops.raise_to, ops.lower_to):
            array, value, *index = written
            return called(name, array, index[0] if len(index) == 1 else ast.Tuple(index), value)
        (axis_,) = args
        assert isinstance(axis_, Const)
        return ast.Attribute(dotted(name), "xyz"[int(axis_.value)])  # type: ignore[call-overload]

    def maker_of_arrays(self) -> tuple[str, ...]:
        """Return the dotted name of what makes an array whose elements are not set: on a device, a thread's own."""
        return ("cuda", "local", "array") if self.is_device else self.callable(np.empty)

    def _imported(self, op: Op) -> str:
        return self.imported(op.__module__, op.__name__)

    def imported(self, module: str, name: str) -> str:
        """Return the name of what is imported from another module."""
        if (module, name) not in self._imports:
            self._imports[module, name] = self._names.fresh(name)
        return self._imports[module, name]

    def _helper(self, op: Op) -> str:
        name = self._reserved(op.__name__)
        if name not in self.helpers:
            self._used.add("np")
            text = helpers.source(op)
            for each in (*helpers.called_by(op), op):
                alias = name if each is op else self._helper(each)
                text = re.sub(rf"\b{each.__name__}\b", alias, text)
            self.helpers[name] = text
        return name

    def outlined(self, text: str, hint: str, known: Collection[str]) -> str:
        """Return the name of a function, none of the `known` ones, whose text after the name is given."""
        name = self._names.fresh(hint)
        while name in known:
            name = self._names.fresh(hint)
        self.helpers[name] = f"def {name}{text}"
        return name

    def imports(self) -> list[str]:
        """Return the import lines."""
        aliases = {name: alias for name, alias in self._aliases.items() if name in self._used}
        lines = []
        modules = ("cmath", "math", "random")
        renamed = [(name, alias) for name, alias in aliases.items() if name not in (*modules, "np") and name != alias]
        if self._used_pointers:
            lines.append("import ctypes" + _renamed("ctypes", self._reserved("ctypes")))
        lines += [f"from builtins import {name} as {alias}" for name, alias in sorted(renamed)]
        lines += [f"import {name}" + _renamed(name, aliases[name]) for name in modules if name in aliases]
        if "np" in aliases:
            lines += ["", f"import numpy as {aliases['np']}"]
        if self._used_pointers:
            name = "get_cython_function_address"
            lines += ["", f"from numba.extending import {name}" + _renamed(name, self._reserved(name))]
        imported = [
            f"from {module} import {name}" + _renamed(name, alias)
            for (module, name), alias in sorted(self._imports.items())
            if module not in _OPTIONAL
        ]
        return [*lines, "", *imported] if imported else lines

    def optional_imports(self, above: Sequence[str]) -> list[str]:
        """Return the lines that import names of this package, or define what takes their place."""
        imports = {key: alias for key, alias in self._imports.items() if key[0] in _OPTIONAL}
        return optional_imports(imports, self.has_dataclasses and bool(above), above)

    def without_dataclasses(self, name: str) -> list[str]:
        """Return the lines that let the function take and give dataclasses where this package is missing."""
        return without_dataclasses(name, self._constructed, self._names.fresh("on_named_tuples"))

    def definitions(self) -> list[str]:
        """Return the lines that define classes and function pointers."""
        lines = [
            f"{alias} = {captured_type.__name__}({', '.join(map(repr, cls._fields))})"
            for cls, alias in self._made.items()
        ]
        for op, alias in self._pointers.items():
            if op in self._used_pointers:
                ctypes_, find = map(self._reserved, _OF_POINTERS)
                kinds = [f"{ctypes_}.{C_TYPES[kind].__name__}" for kind in (op.result, *op.parameters)]
                lines += [
                    f"{alias} = {ctypes_}.CFUNCTYPE({', '.join(kinds)})(",
                    f'    {find}("{MODULE}", "{op.symbol}")',
                    ")",
                ]
        return lines


# What `numba.cuda` has for the operations of threads.
OF_THREADS: dict[Op, tuple[str, ...]] = {
    ops.thread_index: ("cuda", "threadIdx"),
    ops.block_index: ("cuda", "blockIdx"),
    ops.block_size: ("cuda", "blockDim"),
    ops.blocks: ("cuda", "gridDim"),
    ops.grid: ("cuda", "grid"),
    ops.grid_step: ("cuda", "gridsize"),
    ops.barrier: ("cuda", "syncthreads"),
    ops.shared: ("cuda", "shared", "array"),
    ops.cube_root: ("cuda", "cbrt"),
    ops.raise_to: ("cuda", "atomic", "max"),
    ops.lower_to: ("cuda", "atomic", "min"),
    **{op: ("cuda", "atomic", name) for name, op in ops.ATOMIC.items()},
    **{op: (name,) for name, op in ops.FAST.items()},
}
# The modules of this package that emitted ones import from, if they can.
_OPTIONAL = (captured_type.__module__, structures.__name__)
_NAMESPACES: dict[tuple[str, ...], object] = {
    ("math",): math,
    ("cmath",): cmath,
    ("random",): random,
    ("np",): np,
    ("np", "linalg"): np.linalg,
    ("np", "random"): np.random,
}
_OF_POINTERS = ("ctypes", "get_cython_function_address")


def _renamed(name: str, alias: str) -> str:
    return "" if name == alias else f" as {alias}"


def _has_syntax(op: Op) -> bool:
    """Return whether an operation is written without the name of its callable."""
    return (op in OWN and not helpers.is_helper(op)) or module_of(op) == "_operator" or is_method(op)


def called(names: tuple[str, ...], *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    """Return a call of a function by its dotted name."""
    return ast.Call(dotted(names), list(args), keywords or [])


def dotted(names: tuple[str, ...]) -> ast.expr:
    """Return the expression of a dotted name."""
    first, *rest = names
    written: ast.expr = ast.Name(first)
    for attribute in rest:
        written = ast.Attribute(written, attribute)
    return written
