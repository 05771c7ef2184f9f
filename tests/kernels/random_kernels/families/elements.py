"""Kernels in which each thread has elements of its own: guarded, with the step of the grid, on one to three axes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tests.kernels.random_kernels.statements import Statements
from tests.kernels.random_kernels.writer import Scope, Source


class Elements(Statements):
    """Writes a kernel without barriers."""

    family = "elements"

    def write(self) -> None:
        scope = Scope()
        axes = self.pick(1, 1, 1, 1, 1, 2, 2, 3)
        form = self.weighted(leaves=2, guarded=2, exact=1, strided_for=3, strided_while=3)
        if axes == 1:
            self.grid_of_one_axis(form)
        if self.chance(0.75):
            self.tables(scope)
        self.functions(scope)
        self.inputs(scope)
        self.totals(scope)
        if axes == 1:
            self.one_axis(scope, form)
        else:
            self.several_axes(scope, axes)

    def grid_of_one_axis(self, form: str) -> None:
        strided = form.startswith("strided")
        blocks, threads = self.pick(1, 2, 2, 3) if strided else self.pick(1, 2, 3), self.pick(2, 3, 4, 5)
        if form == "exact":
            while blocks * threads > 10:
                blocks, threads = self.pick(1, 2, 3), self.pick(2, 3, 4, 5)
            self.size = blocks * threads
        elif not strided:
            while blocks * threads < self.size and self.chance(0.8):
                blocks += 1
            self.ragged = blocks * threads > self.size and self.size % threads != 0
        elif blocks * threads >= self.size and self.chance(0.7):
            self.size = blocks * threads + self.rng.randrange(1, 4)  # some threads have a second round
        self.grid = (blocks,), (threads,)

    def one_axis(self, scope: Scope, form: str) -> None:
        n = self.size
        outputs = []
        for number in range(self.rng.randrange(1, 3)):
            name = f"o{number}"
            shape, kind = self.pick(((n,), "plain"), ((n,), "plain"), ((n, 2), "rows"), ((2, n), "columns"))
            self.floats(name, *shape)
            outputs.append((name, kind))
        self.line(self.pick("i = cuda.grid(1)", "i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x"))
        if self.chance(0.3):
            self.line("t = cuda.threadIdx.x")
            scope.indices.append("t")
        step = self.pick("cuda.gridsize(1)", "cuda.blockDim.x * cuda.gridDim.x", "w")
        if form.startswith("strided") and step == "w":
            self.line("w = cuda.gridsize(1)")
        if form.startswith("strided") and self.chance(0.3):
            self.line(f"v0 = {self.constant()}")
            scope.values.append("v0")
        heads = {
            "guarded": "if i < n:",
            "strided_for": f"for g in range(i, n, {step}):",
            "strided_while": "while i < n:",
        }
        mine = "g" if form == "strided_for" else "i"
        if form == "leaves":
            with self.indented("if i >= n:"):
                self.line("return")
        inner = scope.inner(may_return=form == "leaves" or (form == "exact" and self.chance(0.3)))
        if form.startswith("strided"):
            inner = inner.inner(depth=1, in_loop=self.chance(0.7))
        with self.indented(heads.get(form)):
            self.give(inner, mine, outputs)
            self.block(inner, self.budget // 3 + 2)
            if form == "strided_while":
                self.line(f"i += {step}")
        if "v0" in scope.values:
            self.add_to_total(scope, "v0")

    def give(self, scope: Scope, mine: str, outputs: list[tuple[str, str]]) -> None:
        """Let a thread have elements of the outputs: those of its number, from the end, or in an order."""
        at = self.pick(mine, mine, mine, f"n - 1 - {mine}", f"perm[{mine}]")
        if at.startswith("perm") and "perm" not in scope.tables:
            at = mine
        if at != mine and self.chance(0.5):
            self.line(f"me = {at}")
            at = "me"
        for name, kind in outputs:
            own = {"plain": [at], "rows": [f"{at}, 0", f"{at}, 1"], "columns": [f"0, {at}", f"1, {at}"]}[kind]
            scope.own += [f"{name}[{each}]" for each in own]
        scope.indices.append(mine)
        scope.below_n.append(mine)

    def several_axes(self, scope: Scope, axes: int) -> None:
        lengths = [self.rng.randrange(1, 4) for _ in range(axes)]
        blocks = [self.pick(1, 1, 2) for _ in range(axes)]
        threads = [max(1, -(-length // count)) for length, count in zip(lengths, blocks, strict=True)]
        strided = self.chance(0.4)
        if strided:
            threads = [max(1, count - 1) for count in threads]
            if prod(blocks) == 1:
                blocks[self.rng.randrange(axes)] = 2
        self.grid = tuple(blocks), tuple(threads)
        self.ragged = not strided and any(n % t for n, t in zip(lengths, threads, strict=True))
        order = self.rng.sample(range(axes), axes)  # the axis of the grid that an axis of the output follows
        self.floats("o0", *(lengths[axis] for axis in order))
        size = [f"o0.shape[{order.index(axis)}]" for axis in range(axes)]
        self.floats("y", *lengths)
        scope.sources.append(Source("y", tuple(f"y.shape[{axis}]" for axis in range(axes))))
        names = list("ijk"[:axes])
        self.line(f"{', '.join(names)} = cuda.grid({axes})")
        heads = [f"if {' and '.join(f'{name} < {length}' for name, length in zip(names, size, strict=True))}:"]
        if strided:
            steps = [f"cuda.blockDim.{axis} * cuda.gridDim.{axis}" for axis in "xyz"[:axes]]
            if self.chance(0.5):
                steps = [f"s{name}" for name in names]
                self.line(f"{', '.join(steps)} = cuda.gridsize({axes})")
            heads = [f"for g{a} in range({a}, {n}, {step}):" for a, n, step in zip(names, size, steps, strict=True)]
            names = [f"g{name}" for name in names]
            scope = scope.inner(depth=1, in_loop=True)
        elif self.chance(0.5):
            with self.indented(f"if {' or '.join(f'{a} >= {n}' for a, n in zip(names, size, strict=True))}:"):
                self.line("return")
            heads, scope = [], scope.inner(may_return=True)
        self.nested(heads, lambda: self.body_of_several(scope, names, size, order, lengths))

    def nested(self, heads: list[str], write: Callable[[], None]) -> None:
        """Write a body under several lines."""
        if heads:
            with self.indented(heads[0]):
                self.nested(heads[1:], write)
        else:
            write()

    def body_of_several(
        self, scope: Scope, names: list[str], size: list[str], order: list[int], lengths: list[int]
    ) -> None:
        scope.indices += names
        scope.own.append(f"o0[{', '.join(names[axis] for axis in order)}]")
        if self.chance(0.4):
            self.floats("o1", prod(lengths))
            at = names[0]
            for name, length in zip(names[1:], size[1:], strict=True):
                at = f"({at}) * {length} + {name}"
            if self.chance(0.5):
                self.line(f"me = {at}")
                at = "me"
                scope.indices.append("me")
            scope.own.append(f"o1[{at}]")
        self.block(scope, self.budget // 3 + 2)
