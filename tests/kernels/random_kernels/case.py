"""A random kernel with the arrays that it takes, and its text as a function of Numba.

case = Case(text, ((2,), (4,)), {"x": Array("float", (7,)), ...}, ("x", "out", "n", "reps", "s"), 7)
kernel = load(case.text)
kernel[case.grid](*case.arguments(seed=0))
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

SHARED, BARRIERS, ATOMICS, STRIDES, RAGGED = FEATURES = (
    "shared memory",
    "barriers in loops",
    "atomics",
    "loops with the step of a grid of two and more blocks",
    "a ragged last block",
)
BLOCKS, ONE_BLOCK, SINGLE, AXES, EXTREMES = OTHERS = (
    "two and more blocks",
    "one block",
    "single precision",
    "two and three axes",
    "atomic maxima and minima of floats",
)
MODULE = "import math\n\nimport numpy as np\nfrom numba import cuda, float32, float64, int64\n\n"
CAPTURED = "G0 = 0.65\nG1 = 1.2\nTAB = np.array([0.4, 0.9, 1.3])\n"


@dataclass(frozen=True)
class Array:
    """An array that a kernel takes.

    It has floats, or integers: each `index` is below n, a `count` is 0 to 3, an `order` is a permutation of the numbers
    below n, and a `counter` is changed by the kernel.
    """

    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A kernel, its grid, its arrays, and the order of its parameters; `size` is the value of n."""

    text: str
    grid: tuple[tuple[int, ...], tuple[int, ...]]
    arrays: Mapping[str, Array]
    parameters: tuple[str, ...]
    size: int
    family: str = ""
    single: bool = False
    ragged: bool = False
    dynamic: int = 0  # elements of dynamic shared memory

    @property
    def launched(self) -> tuple[Any, ...]:
        """The grid, with a stream and the bytes of dynamic shared memory."""
        return (*self.grid, 0, self.dynamic * (4 if self.single else 8)) if self.dynamic else self.grid

    @property
    def double(self) -> Case:
        """The same kernel in double precision."""
        text = self.text.replace("float32", "float64").replace("float64, float64", "float64")
        return replace(self, text=text, single=False)

    def arguments(self, seed: int) -> list[Any]:
        """Return arguments of the host, of random values."""
        rng = np.random.default_rng(seed)
        numbers = {"n": self.size, "reps": int(rng.integers(0, 4)), "s": 0.85}
        return [numbers[name] if name in numbers else self._array(name, rng) for name in self.parameters]

    def _array(self, name: str, rng: np.random.Generator) -> np.ndarray:
        array, n = self.arrays[name], self.size
        match array.kind:
            case "float":
                return rng.uniform(0.4, 1.4, array.shape).astype(np.float32 if self.single else np.float64)
            case "index":
                return rng.integers(0, n, array.shape)
            case "count":
                return rng.integers(0, 4, array.shape)
            case "order":
                return rng.permutation(n)
        return rng.integers(0, 5, array.shape)

    @functools.cached_property
    def features(self) -> frozenset[str]:
        """Those of `FEATURES` and `OTHERS` that the kernel has."""
        tree = ast.parse(self.text)
        blocks, threads = self.grid
        waiting = {"syncthreads"}
        while more := {f.name for f in _functions(tree) if _calls(f) & waiting} - waiting:
            waiting |= more
        loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
        has = {
            SHARED: "cuda.shared.array(" in self.text,
            BARRIERS: any(_calls(loop) & waiting for loop in loops),
            ATOMICS: "cuda.atomic." in self.text,
            STRIDES: prod(blocks) > 1 and _strides(tree, loops),
            RAGGED: self.ragged,
            BLOCKS: prod(blocks) > 1,
            ONE_BLOCK: prod(blocks) == 1,
            SINGLE: self.single,
            AXES: max(len(blocks), len(threads)) > 1,
            EXTREMES: self.family == "extremes",
        }
        return frozenset(name for name, is_so in has.items() if is_so)


def load(text: str) -> Any:
    """Return the kernel of a module's text, whose lines are known to Numba."""
    filename = f"<random kernel {hash(text):x}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": "random_kernel"}
    exec(compile(text, filename, "exec"), scope)
    return scope["kernel"]


def _functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _calls(tree: ast.AST) -> set[str]:
    """Return the last names of the functions that are called."""
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [each for each in functions if isinstance(each, ast.Attribute | ast.Name)]
    return {each.attr if isinstance(each, ast.Attribute) else each.id for each in named}


def _strides(tree: ast.AST, loops: list[ast.For | ast.While]) -> bool:
    """Return whether a loop moves on by the number of threads of the grid."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_of_grid(node.value)]
    steps = {name for node in assigned for name in _names(node)}

    def is_step(node: ast.expr) -> bool:
        return _is_of_grid(node) or (isinstance(node, ast.Name) and node.id in steps)

    for loop in loops:
        match loop:
            case ast.For(iter=ast.Call(args=[_, _, step])) if is_step(step):
                return True
            case ast.While(body=body) if any(isinstance(each, ast.AugAssign) and is_step(each.value) for each in body):
                return True
    return False


def _is_of_grid(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return "cuda.gridsize(" in text or ("cuda.blockDim" in text and "cuda.gridDim" in text)


def _names(node: ast.Assign) -> list[str]:
    return [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
