"""Random programs whose variables hold matrices of one shape in several memory orders, bound anew in nested loops.

    order_program(7)          # 'def f(m):\\n    s = 0.3\\n    a = m * 0.9\\n    b = m.T\\n    while n0 < 2:\\n ...'

Numba gives a variable that holds matrices in several orders the type of any order; whatever merges two of them must.
"""

from __future__ import annotations

import random
from textwrap import dedent

NAMES = "abc"


def order_program(seed: int) -> str:
    """Return the text of a module with a function `f` of a matrix of three rows and columns."""
    writer = _Writer(random.Random(seed))
    while not any("while" in line for line in writer.lines):
        writer.lines = []
        writer.block(1)
    start = dedent(
        f"""\
        import numpy as np

        def f(m):
            s = 0.3
            a = m * 0.9
            b = {writer.rng.choice(("m.T", "m[::-1]", "m * m", "np.asfortranarray(m)", "m"))}
            c = {writer.rng.choice(("a", "b", "b.T", "m + 0.2", "a[:, ::-1]"))}
        """
    )
    return start + "\n".join([*writer.lines, "    return s + a[0, 1] * b[1, 0] + c[2, 1]", ""])


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.loops = 0

    def matrix(self) -> str:
        """Return an expression of a matrix."""
        one, other = self.rng.choice(NAMES), self.rng.choice(f"{NAMES}m")
        forms = "{0}.T|{0}[::-1]|{0}[:, ::-1]|{0}[:]|{0}[::-1].T|{0}.copy()|np.asfortranarray({0})|np.sin({0})"
        forms += "|np.ascontiguousarray({0}).copy()|{0} * {1}|{0} + 0.1|{0}.T * {1}|{0} * 0.5|{0} - {1} * 0.2"
        return self.rng.choice(forms.split("|")).format(one, other)

    def block(self, depth: int) -> None:
        """Write one to three statements."""
        for _ in range(self.rng.randint(1, 3)):
            self.rng.choice((self.binding, self.binding, self.swap, self.sum, self.loop, self.branch))(depth)

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def binding(self, depth: int) -> None:
        self.put(depth, f"{self.rng.choice(NAMES)} = {self.matrix()}")

    def swap(self, depth: int) -> None:
        one, other = self.rng.sample(NAMES, 2)
        self.put(depth, f"{one}, {other} = {other}, {self.rng.choice((one, self.matrix()))}")

    def sum(self, depth: int) -> None:
        forms = "{0}[0, 1] * {0}[2, 0]|np.sum({0} * m) * 0.1|{0}.T[1, 2]|{0}[1][2] * s * 0.1"
        self.put(depth, f"s += {self.rng.choice(forms.split('|')).format(self.rng.choice(NAMES))}")

    def loop(self, depth: int) -> None:
        if depth > 3:
            return self.binding(depth)
        count, rounds = f"n{self.loops}", self.rng.randint(1, 3)
        self.loops += 1
        if self.rng.random() < 0.6:
            test = self.rng.choice(("", " and s < 50.0"))
            self.put(depth, f"{count} = 0", f"while {count} < {rounds}{test}:", f"    {count} += 1")
        else:
            self.put(depth, f"for {count} in range({rounds}):")
        self.block(depth + 1)
        if self.rng.random() < 0.3:
            self.put(depth + 1, f"if s > {self.rng.choice((0.2, 1.0, 5.0))}:")
            self.binding(depth + 2)
            self.put(depth + 2, "break")
        return None

    def branch(self, depth: int) -> None:
        self.put(depth, f"if s > {self.rng.choice((-1.0, 0.5, 1.5))}:")
        self.binding(depth + 1)
        if self.rng.random() < 0.5:
            self.put(depth, "else:")
            self.binding(depth + 1)
