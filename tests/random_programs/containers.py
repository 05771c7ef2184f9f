"""Random programs whose arguments are in lists, dicts, records, structured arrays and objects.

    def f(x, y, n, a):              def f(p, s):
        return x * a[n] + y             x = p.x
                                        return x * s["a"][p.n] + p["y"]

The second is made from the first, whose reference is that of both. A number or an array is read at the start, by a loop
there, or wherever it stands if it is not assigned.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numba.experimental import jitclass
from numba.typed import Dict, List

CONTAINERS = "containers"
_NUMBERS = ("list", "typed", "pairs", "named", "numbered", "record", "structured", "object")
_ARRAYS = ("list", "typed", "named", "fields", "record")


@jitclass([*((name, numba.float64) for name in "xyz"), *((name, numba.int64) for name in "nm")])  # type: ignore[misc]
class Numbers:
    """The numbers that programs take."""

    def __init__(self, x: float, y: float, z: float, n: int, m: int) -> None:
        self.x = x
        self.y = y
        self.z = z
        self.n = n
        self.m = m


@dataclass
class Container:
    """An argument that holds some of those of a program."""

    kind: str
    floats: list[str] = field(default_factory=list)
    ints: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    align: bool = False
    small: bool = False  # whether its integers have four bytes

    @property
    def names(self) -> list[str]:
        """The names that it holds."""
        return self.floats + self.ints + self.arrays

    def read(self, name: str, rng: random.Random) -> str:
        """An expression of what it holds, in which `@` is the container."""
        place = (self.ints if name in self.ints else self.arrays if name in self.arrays else self.floats).index(name)
        last = place - len(self.floats or self.arrays)
        match self.kind:
            case "list" | "typed":
                return f"@[{rng.choice((place, last))}]"
            case "pairs":
                return f"@[{place}][{int(name in self.ints)}]"
            case "named":
                return f"@[{name!r}]"
            case "numbered":
                return f"@[{7 * place}]"
            case "structured":
                of = "k" if name in self.ints else "v"
                return rng.choice(
                    (f"@[{place}].{of}", f"@['{of}'][{place}]", f"@.{of}[{place}]", f"@[{place}]['{of}']")
                )
            case "fields" | "record":
                return rng.choice((f"@.{name}", f"@[{name!r}]"))
        return f"@.{name}"

    def loop(self, name: str) -> list[str]:
        """Lines that find a float in a loop over the container; none where there is no such loop."""
        place = self.floats.index(name)
        match self.kind:
            case "list" | "typed":
                loop, found = f"for i_, u_ in enumerate(@): if i_ == {place}:", "u_"
            case "pairs":
                loop, found = f"for i_, (u_, k_) in enumerate(@): if i_ == {place}:", "u_"
            case "named":
                loop, found = f"for k_, u_ in @.items(): if k_ == {name!r}:", "u_"
            case "numbered":
                loop, found = f"for k_ in @: if k_ == {7 * place}:", "@[k_]"
            case "structured":
                loop, found = f"for i_, r_ in enumerate(@): if i_ == {place}:", "r_.v"
            case _:
                return []
        head, test = loop.split(" if ")
        return [f"{name} = 0.0", head, f"    if {test}", f"        {name} = {found}"]

    def made(self, values: Mapping[str, Any]) -> Any:
        """The container of these values."""
        floats = [float(values[name]) for name in self.floats]
        ints = [values[name] or 0 for name in self.ints]  # those of a tangent are None
        arrays = [values[name] for name in self.arrays]
        match self.kind:
            case "list":
                return floats or arrays
            case "pairs":
                return _listed(zip(floats, ints + [0] * len(floats), strict=False))
            case "typed":
                return _listed(floats or arrays)
            case "named":
                return _dict(self.names, floats or arrays)
            case "numbered":
                return _dict(range(0, 7 * len(floats), 7), floats)
            case "object":
                return Numbers(*(values.get(name, 0.5) for name in "xyz"), *(values.get(name, 1) for name in "nm"))
        made = np.zeros(self._length(arrays), self.dtype(arrays))
        if self.kind == "structured":
            made["v"][: len(floats)], made["k"][: len(ints)] = floats, ints
            return made
        for name, value in zip(self.names, [*floats, *ints, *arrays], strict=True):
            made[name] = value
        return made[0] if self.kind == "record" else made

    def _length(self, arrays: Sequence[Any]) -> Any:
        match self.kind:
            case "structured":
                return max(len(self.floats), len(self.ints))
            case "fields":
                return arrays[0].shape
        return 1

    def dtype(self, arrays: Sequence[Any]) -> Any:
        """The type of the records."""
        integer = np.int32 if self.small else np.int64
        if self.kind == "structured":
            return np.dtype([("k", integer), ("v", np.float64)], align=self.align)
        fields: list[Any] = [(name, integer) for name in self.ints] + [("unused", integer)] * (not self.ints)
        fields += [(name, np.float64) for name in self.floats]
        for name, array in zip(self.arrays, arrays, strict=True):
            fields.append((name, np.float64, array.shape) if self.kind == "record" else (name, np.float64))
        return np.dtype(fields, align=self.align)

    def parts(self, value: Any) -> dict[str, Any]:
        """Return the values in a container or in its gradient, of which those of integers must be 0 or None."""
        match self.kind:
            case "list" | "typed":
                held = [value[place] for place in range(len(self.floats or self.arrays))]
            case "pairs":
                held = [value[place][0] for place in range(len(self.floats))]
                held += [value[place][1] for place in range(len(self.ints))]
            case "named":
                held = [value[name] for name in self.names]
            case "numbered":
                held = [value[7 * place] for place in range(len(self.floats))]
            case "structured":
                held = [*value["v"][: len(self.floats)], *value["k"][: len(self.ints)]]
            case "record":
                one = np.asarray(value).reshape(-1)[0]
                held = [one[name] for name in self.names]
            case "fields":
                held = [value[name] for name in self.names]
            case _:
                held = [getattr(value, name) for name in self.names]
        return dict(zip(self.names, held, strict=True))


def _listed(items: Any) -> Any:
    made = List()
    for item in items:
        made.append(item)
    return made


def _dict(keys: Any, values: Any) -> Any:
    made = Dict()
    for key, value in zip(keys, values, strict=True):
        made[key] = value
    return made


class Form:
    """A program with containers as arguments: its text, and how arguments and gradients are put in and taken out."""

    def __init__(self, text: str, args: Sequence[Any], writes: bool, seed: int) -> None:
        self.rng = random.Random(seed)
        module = ast.parse(text)
        function = module.body[-1]
        assert isinstance(function, ast.FunctionDef)
        self.names = [each.arg for each in function.args.args]
        self.containers = self._containers(dict(zip(self.names, args, strict=True)), writes)
        held = {name for each in self.containers for name in each.names}
        self.rest = [name for name in self.names if name not in held]
        self.joined = len(self.containers) == 2 and self.rng.random() < 0.25
        self.text = self._rewritten(module, function)

    def _containers(self, values: Mapping[str, Any], writes: bool) -> list[Container]:
        rng = self.rng
        floats = [name for name, value in values.items() if isinstance(value, float)]
        ints = [name for name, value in values.items() if type(value) is int and name in "nm"]
        arrays = [name for name, value in values.items() if getattr(value, "dtype", None) == np.float64 and value.size]
        made: list[Container] = []
        if floats and (not arrays or rng.random() < 0.8):
            kind = rng.choice(_NUMBERS)
            with_ints = kind in ("record", "structured", "object", "pairs")
            taken = ints[: len(floats)] if kind == "pairs" else ints
            made.append(Container(kind, floats, taken if with_ints else []))
        if arrays and (not made or rng.random() < 0.8):
            kind = rng.choice(_ARRAYS[3:] if writes else _ARRAYS)
            if kind == "fields":
                arrays = [name for name in arrays if values[name].shape == values[arrays[0]].shape]
            elif kind != "record":
                arrays = [name for name in arrays if values[name].ndim == values[arrays[0]].ndim]
            made.append(Container(kind, arrays=arrays))
        for each in made:
            each.align, each.small = rng.random() < 0.4, rng.random() < 0.5
        return made

    def _rewritten(self, module: ast.Module, function: ast.FunctionDef) -> str:
        assigned = {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        }
        assigned |= {
            arg.arg
            for node in ast.walk(function)
            if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not function
            for arg in node.args.args
        }
        lines: list[str] = []
        direct: dict[str, Callable[[], str]] = {}
        for number, container in enumerate(self.containers):
            whole = f"t_[{number}]" if self.joined else f"p{number}_"
            for name in container.names:

                def read(name: str = name, container: Container = container, whole: str = whole) -> str:
                    return container.read(name, self.rng).replace("@", whole)

                if name not in assigned and self.rng.random() < 0.6:
                    direct[name] = read
                    continue
                loop = container.loop(name) if name in container.floats and self.rng.random() < 0.3 else []
                lines += [line.replace("@", whole) for line in loop or [f"{name} = {read()}"]]
        parameters = [f"p{number}_" for number in range(len(self.containers))]
        function.args.args = [ast.arg(each) for each in (["t_"] if self.joined else parameters) + self.rest]
        function.body = [*ast.parse("\n".join(lines)).body, *(_Direct(direct).visit(each) for each in function.body)]
        return ast.unparse(ast.fix_missing_locations(module)) + "\n"

    def given(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of the program, for those of the first."""
        values = dict(zip(self.names, args, strict=True))
        made = tuple(each.made(values) for each in self.containers)
        return (*((made,) if self.joined else made), *(values[name] for name in self.rest))

    def taken(self, found: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of the first, or their gradients, for those of the program."""
        count = 1 if self.joined else len(self.containers)
        held = found[0] if self.joined else found[:count]
        values = dict(zip(self.rest, found[count:], strict=True))
        for each, container in zip(self.containers, held, strict=True):
            values |= each.parts(container)
        return tuple(values[name] for name in self.names)

    @property
    def has_tangents(self) -> bool:
        """Whether all of the containers have tangents of their own type."""
        return not any(each.kind in ("pairs", "object") for each in self.containers)


class _Direct(ast.NodeTransformer):
    """Replaces names by what reads them from a container."""

    def __init__(self, direct: Mapping[str, Callable[[], str]]) -> None:
        self.direct = direct

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a name."""
        return ast.parse(self.direct[node.id](), mode="eval").body if node.id in self.direct else node
