"""The growth of the emitted source with the source of the function: it must grow by the same amount for each line
added.

    code_sizes()["loops"]       # {1: (5, 17), 2: (9, 30), ...}: lines of the function and of its gradient, by size

Each family is a program in which one piece is repeated; `growth` measures how uniformly the number of lines grows.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import pairwise

from numba import types

from zygote_py import gradient

Sizes = dict[int, tuple[int, int]]


def _statements(size: int) -> list[str]:
    return [f"    r = math.sin(r) * x + {k}.5" for k in range(size)]


def _loops(size: int) -> list[str]:
    return [
        line for k in range(size) for line in ("    for _ in range(n):", f"        r = r * x + math.cos(r) + {k}.5")
    ]


def _branches(size: int) -> list[str]:
    pieces = [
        (f"    if r > {k}.5:", "        r = math.sin(r) * x", "    else:", "        r = r + x * x") for k in range(size)
    ]
    return [line for piece in pieces for line in piece]


def _breaks(size: int) -> list[str]:
    pieces = [
        (
            "    for _ in range(n):",
            "        r = r * x + 0.5",
            f"        if r > {k}.5:",
            "            break",
        )
        for k in range(size)
    ]
    return [line for piece in pieces for line in piece]


def _nested(size: int) -> list[str]:
    lines = []
    for depth in range(size):
        lines.append("    " * (depth + 1) + "for _ in range(n):")
        lines.append("    " * (depth + 2) + "r = r * x + math.sin(r)")
    return lines


FAMILIES: dict[str, tuple[Callable[[int], list[str]], tuple[int, ...]]] = {
    "statements": (_statements, (1, 2, 4, 8, 16, 32)),
    "loops": (_loops, (1, 2, 4, 8, 16)),
    "branches": (_branches, (1, 2, 4, 8, 16)),
    "loops left by break": (_breaks, (1, 2, 4, 8)),
    "nested loops": (_nested, (1, 2, 4, 8)),
}


def program(family: str, size: int) -> tuple[Callable[..., float], int]:
    """Return a program of a family, and the number of its lines."""
    pieces, _ = FAMILIES[family]
    lines = ["def f(x, n):", "    r = x", *pieces(size), "    return r"]
    source = "import math\n" + "\n".join(lines) + "\n"
    file = f"<{family} {size}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, object] = {}
    exec(compile(source, file, "exec"), namespace)
    return namespace["f"], len(lines)  # type: ignore[return-value]


def code_sizes(families: tuple[str, ...] = tuple(FAMILIES)) -> dict[str, Sizes]:
    """Return, for each family and size, the non-blank lines of the program and of the emitted gradient."""
    found: dict[str, Sizes] = {}
    for family in families:
        found[family] = {}
        for size in FAMILIES[family][1]:
            function, lines = program(family, size)
            emitted = gradient(function, wrt="x").source(types.float64, types.int64)
            found[family][size] = lines, sum(1 for line in emitted.splitlines() if line.strip())
    return found


def growth(sizes: Sizes) -> float:
    """Return the largest growth, in emitted lines per added line, relative to the smallest sizes: 1 if linear."""
    points = list(sizes.values())
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(points)]
    return max(slopes) / slopes[0]
